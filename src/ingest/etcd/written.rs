//! Operations as the suite writes them: with all their fields, in order. Requests that were read before are not read again.

use super::operation::{self, Operation, Request, ends_with_its_object};
use memchr::memmem;
use rustc_hash::FxBuildHasher;
use serde::Deserialize;
use std::hash::BuildHasher;

/// Reads that were asked for, by their texts: clients ask the same of a few keys again and again.
#[derive(Debug)]
pub(in super::super) struct Asked<'a> {
    known: Vec<Option<(&'a str, Request<'a>)>>,
    call: memmem::Finder<'static>,
}

impl Default for Asked<'_> {
    fn default() -> Self {
        Asked { known: Vec::new(), call: memmem::Finder::new(CALL) }
    }
}

/// Texts that are kept apart; others share their places.
const PLACES: usize = 64;

/// What follows a request.
const CALL: &str = "\"Call\"";

type Read<'a> = (Box<Operation<'a>>, Option<usize>);

impl<'a> Asked<'a> {
    /// Reads the operation that begins at the first byte, and says where the next one begins if something follows.
    ///
    /// What is written in another way, mistakes included, is left to [`operation::read`], which comes to the same otherwise.
    pub fn read(&mut self, text: &'a str) -> Result<Read<'a>, serde_json::Error> {
        self.as_written(text).map_or_else(|| operation::read(text), Ok)
    }

    fn as_written(&mut self, text: &'a str) -> Option<Read<'a>> {
        let mut rest = Rest(text);
        rest.pass("{")?;
        rest.pass("\"ClientId\"")?.pass(":")?;
        let stream = rest.number()?;
        rest.pass(",")?.pass("\"Input\"")?.pass(":")?;
        let request = self.request(&mut rest)?;
        rest.pass(CALL)?.pass(":")?;
        let call = rest.number()?;
        rest.pass(",")?.pass("\"Output\"")?.pass(":")?;
        let answer = rest.value()?;
        rest.pass(",")?.pass("\"Return\"")?.pass(":")?;
        let returned = rest.number()?;
        let ends = if rest.pass("}").is_some() {
            rest.0.is_empty()
        } else {
            let inside = rest.pass(",")?.0;
            rest.pass("\"Metadata\"").is_some() && ends_with_its_object(text, inside)
        };
        ends.then(|| (Box::new(Operation { stream, request, call, answer, returned, begun: false }), None))
    }

    /// A request and the comma behind it.
    fn request(&mut self, rest: &mut Rest<'a>) -> Option<Request<'a>> {
        let mut inside = Rest(rest.0);
        inside.pass("{")?.pass("\"Type\"")?.pass(":")?;
        if inside.pass("\"range\"").is_none() {
            let request = rest.value()?;
            rest.pass(",")?;
            return Some(request);
        }
        let (text, behind) = rest.0.split_at(self.call.find(rest.0.as_bytes())?);
        if self.known.is_empty() {
            self.known.resize(PLACES, None);
        }
        let place = &mut self.known[FxBuildHasher.hash_one(text) as usize % PLACES];
        if let Some((known, request)) = place
            && *known == text
        {
            rest.0 = behind;
            return Some(request.clone());
        }
        let request: Request<'a> = rest.value()?;
        rest.pass(",")?;
        rest.space();
        if rest.0.len() == behind.len() {
            *place = Some((text, request.clone()));
        }
        Some(request)
    }
}

/// What is not read yet.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn space(&mut self) {
        if self.0.as_bytes().first().is_some_and(u8::is_ascii_whitespace) {
            self.0 = self.0.trim_start_matches([' ', '\n', '\r', '\t']);
        }
    }

    /// Passes over something, with the space in front of it.
    fn pass(&mut self, what: &str) -> Option<&mut Self> {
        self.space();
        self.0 = self.0.strip_prefix(what)?;
        Some(self)
    }

    /// A number as JSON has it, if it is plain and not large.
    fn number(&mut self) -> Option<i64> {
        self.space();
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let plain = digits == 1 || (2..=18).contains(&digits) && !self.0.starts_with('0');
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        if plain { number.parse().ok() } else { None }
    }

    /// A value that is an object.
    fn value<T: Deserialize<'a>>(&mut self) -> Option<T> {
        self.space();
        let mut values = serde_json::Deserializer::from_str(self.0.starts_with('{').then_some(self.0)?).into_iter();
        let value = values.next()?.ok()?;
        self.0 = &self.0[values.byte_offset()..];
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What both ways come to must not differ, for any text.
    fn agree(text: &str) -> bool {
        let mut asked = Asked::default();
        let told = |read: Result<Read<'_>, serde_json::Error>| format!("{read:?}");
        let plain = told(operation::read(text));
        // The second time, the request may be known.
        for _ in 0..2 {
            assert_eq!(told(asked.read(text)), plain, "{text}");
        }
        asked.as_written(text).is_some()
    }

    const LISTED: &str = r#"{"ClientId":8,"Input":{"Type":"range","Range":{"Start":"a","End":"b","Limit":0,"KeysOnly":false,"Revision":0}},"Call":5,"Output":{"Range":{"KVs":[{"Key":"a","Value":{"Value":"1"},"ModRevision":2,"Version":1}],"Count":1},"Revision":2,"Error":""},"Return":17}"#;
    const PUT: &str = r#"{"ClientId":0,"Input":{"Type":"txn","Txn":{"Conditions":null,"OperationsOnSuccess":[{"Type":"put-operation","Put":{"Key":"a","Value":{"Value":"x"},"LeaseID":0}}],"OperationsOnFailure":null}},"Call":5,"Output":{"Txn":{"Failure":false,"Results":[{"KVs":null,"Count":0,"Deleted":0}]},"Revision":3},"Return":17}"#;

    fn indented(text: &str) -> String {
        serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(text).unwrap()).unwrap()
    }

    #[test]
    fn both_ways_of_reading_agree_whatever_is_changed() {
        let metadata = LISTED.replace(r#","Return":17}"#, r#","Return":17,"Metadata":{"Call":[1]}}"#);
        let inner = LISTED.replace(r#""Start":"a""#, r#""Start":"\"Call\"""#);
        // Objects of `Value` come in the order of their names, which is that of the suite but for `Call`.
        let in_order = |text: &str| indented(text).replace("\"Call\"", "\"Cbll\"");
        for text in [LISTED, PUT, &metadata, &inner, &indented(LISTED), &in_order(PUT), &format!("{PUT}{LISTED}")] {
            agree(text);
            for at in 0..text.len() {
                let (before, after) = (&text[..at], &text[at + 1..]);
                agree(before);
                agree(&format!("{before}{after}"));
                for other in
                    ["{", "}", "\"", ",", ":", "0", "-", "1e", " ", "\u{85}", "null", "\n", "\\", "\"Call\":1,"]
                {
                    agree(&format!("{before}{other}{after}"));
                    agree(&format!("{before}{other}{}", &text[at..]));
                }
            }
        }
    }

    #[test]
    fn what_the_suite_writes_is_read_at_once() {
        let lines = |text: &str| text.replace(r#""Call""#, "\n  \"Call\"").replace('{', "{ ");
        for text in [LISTED, PUT, &lines(LISTED), &lines(PUT)] {
            assert!(agree(text), "{text}");
        }
        let opened = LISTED.replace("{\"ClientId\"", "{\n  \"ClientId\"");
        let text = opened.replace("17}", "17,\n  \"Metadata\": {}\n}");
        assert!(agree(&text), "{text}");
        assert!(!agree(&LISTED.replace("\"Call\":5", "\"Call\":-5")));
    }

    #[test]
    fn a_request_is_known_by_its_whole_text() {
        let mut asked = Asked::default();
        for n in 0..500 {
            let text: &'static str = LISTED.replace("\"Start\":\"a\"", &format!("\"Start\":\"{n}\"")).leak();
            for _ in 0..2 {
                let (read, _) = asked.read(text).unwrap();
                assert_eq!(&*read.request.range.unwrap().start, n.to_string());
            }
        }
    }
}
