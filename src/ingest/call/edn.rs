//! Histories in Jepsen's EDN (`history.edn`): maps with `:process :type :f :value`, plain or as records. Histories that were
//! written by hand may lack the process.
//!
//! Keys may have a namespace; then the namespace of `:process`, `:type` and `:f` is the operation's, and keys of
//! others are notes. A log may be cut off anywhere, so an incomplete operation is a fault, never a shorter operation.

use super::datum::{Datum, Node};
use super::reader::{Dialect, Next, Reader};
use super::{Event, Kind, Line, fault};
use crate::ingest::Time;
use crate::ingest::problem::{Fault, Found};
use std::borrow::Cow;
use std::slice;

const EXPECTED: &str = "an operation with :type and :f";

/// Reads one element; `Ok(None)`: it is discarded (`#_`).
pub(super) fn line(text: &str) -> Result<Option<Line<'_>>, Fault> {
    let mut reader = Reader::new(text, Dialect::Edn);
    // A tag (`#jepsen.history.Op`), metadata, a namespace for its keys (`#:jepsen`) and discards may precede the map.
    let (mut begun, mut tagged) = (false, false);
    loop {
        match reader.next()? {
            Next::End if begun => return Err(cut_off(text)),
            Next::End => return Ok(None),
            Next::Close(_) => return Err(fault(EXPECTED, text)),
            Next::Form => {}
        }
        let rest = reader.rest();
        if rest.starts_with('{') {
            reader.skip();
            break;
        } else if rest.starts_with("#_") {
            reader.discarded()?;
        } else if rest.starts_with('^') {
            begun = true;
            reader.skip();
            reader.value(&mut Vec::new())?;
        } else if rest.starts_with('#') && !rest.starts_with("#{") && !rest.starts_with("#\"") {
            // The first of two tags is left of a record that was cut off. A namespace may follow a tag.
            if tagged && !rest.starts_with("#:") {
                return Err(cut_off(text));
            }
            (begun, tagged) = (true, true);
            reader.skip();
            if reader.token().is_empty() {
                return Err(fault(EXPECTED, text));
            }
        } else {
            return Err(fault(EXPECTED, text));
        }
    }
    let mut fields = Fields::default();
    loop {
        match reader.next()? {
            Next::Form if reader.discards() => reader.discarded()?,
            Next::Form => fields.take(&mut reader, text)?,
            Next::Close(b'}') => break,
            Next::Close(_) => return Err(Fault::new("}", "another bracket")),
            Next::End => return Err(cut_off(text)),
        }
    }
    reader.skip();
    reader.end()?;
    fields.line(text).map(Some)
}

/// A field of an operation that the checker reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Process,
    Type,
    Function,
    Time,
    Key,
    Value,
}

impl Field {
    /// All fields in order, by the names of their keys.
    const NAMES: [(&str, Field); 6] = [
        ("process", Field::Process),
        ("type", Field::Type),
        ("f", Field::Function),
        ("time", Field::Time),
        ("key", Field::Key),
        ("value", Field::Value),
    ];

    fn of(name: &str) -> Option<Field> {
        Field::NAMES.iter().find(|(known, _)| *known == name).map(|(_, field)| *field)
    }
}

/// A key or a value. Most are one node.
enum Content<'a> {
    One(Node<'a>),
    Any(Datum<'a>),
}

impl<'a> Content<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        if let Some(node) = reader.plain() {
            return Ok(Content::One(node));
        }
        let mut nodes = Vec::new();
        reader.value(&mut nodes)?;
        Ok(Content::Any(Datum(nodes)))
    }

    fn nodes(&self) -> &[Node<'a>] {
        match self {
            Content::One(node) => slice::from_ref(node),
            Content::Any(datum) => &datum.0,
        }
    }

    fn datum(self) -> Datum<'a> {
        match self {
            Content::One(node) => Datum(vec![node]),
            Content::Any(datum) => datum,
        }
    }
}

/// The fields of an operation.
#[derive(Default)]
struct Fields<'a> {
    /// Fields with plain keys, by [`Field`].
    plain: [Option<Content<'a>>; Field::NAMES.len()],
    /// Fields whose keys have a namespace.
    spaced: Vec<(&'a str, Field, Content<'a>)>,
}

impl<'a> Fields<'a> {
    /// Reads one key and its value.
    fn take(&mut self, reader: &mut Reader<'a>, text: &str) -> Result<(), Fault> {
        let (space, name) = match Content::read(reader)?.nodes() {
            &[Node::Keyword(name)] => match name.bytes().rposition(|byte| byte == b'/') {
                Some(at) => (&name[..at], &name[at + 1..]),
                None => ("", name),
            },
            _ => ("", ""),
        };
        loop {
            match reader.next()? {
                Next::Form if reader.discards() => reader.discarded()?,
                Next::Form => break,
                Next::Close(_) => return Err(Fault::new("a value for each key", "a key without a value")),
                Next::End => return Err(cut_off(text)),
            }
        }
        let content = Content::read(reader)?;
        let Some(field) = Field::of(name) else { return Ok(()) };
        let content = match (field, content) {
            // A process is identified by its digits as written.
            (Field::Process, Content::One(Node::Int(number))) => {
                let digits = number.checked_ilog10().map_or(1, |most| most as usize + 1);
                Content::One(Node::Symbol(reader.last(digits)))
            }
            (_, content) => content,
        };
        if !space.is_empty() {
            self.spaced.push((space, field, content));
        } else if self.plain[field as usize].replace(content).is_some() {
            // A duplicate key is ambiguous, so the map is refused.
            let (name, _) = Field::NAMES[field as usize];
            return Err(Fault::new("each key once", Found::described(format!(":{name} twice"))));
        }
        Ok(())
    }

    /// Moves fields with namespaces to the plain ones. A field without a plain key is that of the namespace in which
    /// the operation names process, type or function. Keys of other namespaces are notes: `:error/type`, `:db/value`.
    /// A key or value that only such a namespace has may be the operation's, so a client's operation gets the
    /// returned fault.
    fn take_spaced(&mut self) -> Result<Option<Fault>, Fault> {
        let mut own = None;
        for field in [Field::Process, Field::Type, Field::Function] {
            let mut spaces = self.spaced.iter().filter(|spaced| spaced.1 == field).map(|spaced| spaced.0);
            if let (None, None, Some(space)) = (own, &self.plain[field as usize], spaces.next()) {
                if spaces.next().is_some() {
                    let (name, _) = Field::NAMES[field as usize];
                    let found = Found::described(format!(":{name} in two namespaces"));
                    return Err(Fault::new(format!("one :{name}"), found));
                }
                own = Some(space);
            }
        }
        let mut notes = Vec::new();
        for (space, field, content) in std::mem::take(&mut self.spaced) {
            if Some(space) == own {
                self.plain[field as usize].get_or_insert(content);
            } else {
                notes.push((space, field));
            }
        }
        let open = |&&(_, field): &&(&str, Field)| {
            matches!(field, Field::Key | Field::Value) && self.plain[field as usize].is_none()
        };
        Ok(notes.iter().find(open).map(|&(_, field)| {
            let (name, _) = Field::NAMES[field as usize];
            let found = Found::described(format!(":{name} only under another namespace"));
            Fault::new(format!(":{name} of the operation itself"), found)
        }))
    }

    fn line(mut self, text: &'a str) -> Result<Line<'a>, Fault> {
        let open = if self.spaced.is_empty() { None } else { self.take_spaced()? };
        let word = |field: Field| self.plain[field as usize].as_ref().map(Content::nodes);
        let Some(kind) = word(Field::Type) else { return Err(fault(EXPECTED, text)) };
        let Some(kind) = Kind::of(&name(kind).unwrap_or_default()) else {
            return Err(fault(":type :invoke, :ok, :fail or :info", text));
        };
        let process = match word(Field::Process) {
            None => None,
            Some([Node::Int(number)]) => Some(Cow::Owned(number.to_string())),
            // The nemesis is no client.
            Some([Node::Text(name)]) if &**name == "nemesis" => return Ok(Line::Other),
            Some([Node::Keyword("nemesis") | Node::Symbol("nemesis")]) => return Ok(Line::Other),
            Some([Node::Text(name)]) => Some(name.clone()),
            Some([Node::Symbol(name)]) => Some(Cow::Borrowed(*name)),
            // A keyword keeps its colon. A process of that name that never invokes an operation is no client either.
            Some([Node::Keyword(name)]) => Some(Cow::Owned(format!(":{name}"))),
            _ => return Err(fault(":process with a number or a name", text)),
        };
        if let Some(open) = open {
            return Err(open);
        }
        let function = word(Field::Function).and_then(name);
        let at = match word(Field::Time) {
            None | Some([Node::Nil]) => Time::UNKNOWN,
            Some([Node::Int(time)]) => Time(*time),
            Some(_) => return Err(fault(":time in whole nanoseconds", text)),
        };
        let [_, _, _, _, key, value] = self.plain;
        let [key, value] = [key, value].map(|content| content.map(Content::datum));
        let is_transaction = || value.as_ref().is_some_and(Datum::is_transaction);
        let Some(function) = function.or_else(|| is_transaction().then_some(Cow::Borrowed("txn"))) else {
            return Err(fault(EXPECTED, text));
        };
        Ok(Line::Event(Event { process, kind, function, key, value, result: None, at, until: Time::UNKNOWN }))
    }
}

fn cut_off(text: &str) -> Fault {
    Fault::new("a whole operation", Found::cut_off("an operation", text.len()))
}

/// The text of a keyword, symbol or string.
fn name<'a>(nodes: &[Node<'a>]) -> Option<Cow<'a, str>> {
    match nodes {
        [Node::Keyword(name) | Node::Symbol(name)] => Some(Cow::Borrowed(*name)),
        [Node::Text(name)] => Some(name.clone()),
        _ => None,
    }
}

/// Reads one EDN value.
///
/// # Errors
///
/// Expected and found, if the text is no EDN value.
pub fn parse(text: &str) -> Result<Datum<'_>, (String, String)> {
    let mut reader = Reader::new(text, Dialect::Edn);
    let mut nodes = Vec::new();
    let read = reader.value(&mut nodes).and_then(|()| reader.end());
    match read {
        Ok(()) => Ok(Datum(nodes)),
        Err(Fault { expected, found }) => Err((expected, found.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ending;
    use super::*;

    fn event(text: &str) -> Event<'_> {
        match line(text) {
            Ok(Some(Line::Event(event))) => event,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn refused(text: &str) -> String {
        let fault = line(text).expect_err(text);
        format!("expected {}, found {}", fault.expected, fault.found)
    }

    #[test]
    fn an_operation_is_read_whatever_it_is_wrapped_in() {
        let plain = event("{:process 3, :type :ok, :f :read, :value [1 nil], :time 17, :index 9}");
        assert_eq!(
            (plain.process.as_deref(), plain.kind, &*plain.function),
            (Some("3"), Kind::Return(Ending::Ok), "read")
        );
        assert_eq!(plain.value, Some(Datum(vec![Node::Int(1), Node::Nil, Node::Sequence(2)])));
        assert_eq!((plain.at, plain.key.is_none()), (Time(17), true));
        for text in [
            "#jepsen.history.Op{:index 9, :time 17, :type :ok, :process 3, :f :read, :value [1 nil]}",
            "#knossos.op.Op {:process 3 :type :ok :f :read :value (1 nil) :time 17N :error [:x {:y \"}\"}]}",
            "^{:line 1} {:jepsen/process 3 #_4 :jepsen/type :ok :f #_:write :read :value [1 nil] :time 17}",
            "#jepsen.history.Op #:jepsen{:process 3 :type :ok :f :read :value [1 nil] :time 17}",
            "#:jepsen{:process 3 :type \"ok\" :f read :value [1 nil] :time 17 :extra #{1 2}} ; end",
        ] {
            assert_eq!(event(text), plain, "{text}");
        }
    }

    #[test]
    fn keys_of_another_namespace_than_that_of_the_operation_are_notes() {
        let plain = event("{:process 3, :type :ok, :f :read, :value 1}");
        for text in [
            "{:process 3, :type :ok, :f :read, :value 1, :error/type :timeout, :db/value 9, :node/process 8, :x/time 7}",
            "{:error/type :timeout, :db/value 9, :node/process 8, :process 3, :type :ok, :f :read, :value 1}",
            "{:op/process 3, :op/type :ok, :error/type :timeout, :db/value 9, :op/f :read, :op/value 1, :extra/f :x}",
            "{:process 3, :op/type :ok, :op/f :read, :op/value 1, :op/process 8}",
        ] {
            assert_eq!(event(text), plain, "{text}");
        }
        for (text, why) in [
            (
                "{:process 3, :type :ok, :f :read, :db/value 9}",
                "expected :value of the operation itself, found :value only under another namespace",
            ),
            (
                "{:process 3, :type :ok, :f :read, :value 1, :txn/key 7}",
                "expected :key of the operation itself, found :key only under another namespace",
            ),
            (
                "{:op/process 3, :node/process 8, :op/type :ok, :op/f :read}",
                "expected one :process, found :process in two namespaces",
            ),
        ] {
            assert_eq!(refused(text), why, "{text}");
        }
    }

    #[test]
    fn the_nemesis_is_no_client_and_a_discarded_operation_is_none() {
        let nemesis = "{:type :info, :f :start, :process :nemesis, :value \"cut off {n1 #{n2}}\"}";
        assert_eq!(line(nemesis).ok(), Some(Some(Line::Other)));
        let noted = "{:type :info, :f :start, :process :nemesis, :net/value \"cut off\"}";
        assert_eq!(line(noted).ok(), Some(Some(Line::Other)));
        assert_eq!(line("#_{:process 3}").ok(), Some(None));
        assert_eq!(line("; nothing\n").ok(), Some(None));
    }

    #[test]
    fn a_client_may_be_called_by_any_word() {
        for (process, name) in [("\"c1\"", "c1"), ("c2", "c2"), (":c3", ":c3"), (":jepsen/c4", ":jepsen/c4")] {
            let named = format!("{{:process {process}, :type :invoke, :f :read}}");
            assert_eq!(event(&named).process.as_deref(), Some(name));
        }
        for nemesis in [":nemesis", "nemesis", "\"nemesis\""] {
            let text = format!("{{:process {nemesis}, :type :info, :f :start}}");
            assert_eq!(line(&text).ok(), Some(Some(Line::Other)), "{nemesis}");
        }
    }

    #[test]
    fn what_is_no_operation_says_what_is_missing() {
        for (text, why) in [
            ("{:process 1, :f :read}", "expected an operation with :type and :f"),
            ("{:process 1, :type :ok}", ":f"),
            ("{:process 1, :type :done, :f :read}", ":type :invoke, :ok, :fail or :info"),
            ("{:process nil, :type :ok, :f :read}", "a number or a name"),
            ("{:process 1, :type :ok, :f :read, :time \"now\"}", "whole nanoseconds"),
            ("{:process 1, :type :ok, :f", "cut off"),
            ("#jepsen.histor", "cut off after 14 bytes"),
            ("#jepsen.history.Op ", "cut off"),
            ("#:jepsen ; {", "cut off"),
            ("#jepsen.histor\n#jepsen.history.Op{:process 1, :type :ok, :f :read}", "cut off after 66 bytes"),
            ("^{:line 1}", "cut off"),
            ("#_{:process 1} #jepsen.history.Op #_{}", "cut off"),
            ("{:process 1, :type}", "a key without a value"),
            ("{:process 1, :type :ok, :f :read, :value 1, :value 2}", "expected each key once, found :value twice"),
            ("{:process 1] }", "found another bracket"),
            ("[1 2]", "an operation"),
            ("17", "an operation"),
        ] {
            assert!(refused(text).contains(why), "{text}: {}", refused(text));
        }
    }
}
