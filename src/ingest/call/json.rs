//! Operation logs in JSON (`docs/formats.md`): events one by one, or whole operations with both times.

use super::datum::{Datum, Node};
use super::reader::{Dialect, Reader};
use super::{Ending, Event, Header, Kind, Line, fault};
use crate::ingest::Time;
use crate::ingest::json::text::Text;
use crate::ingest::kubernetes::capture::Moment;
use crate::ingest::problem::{Fault, Found};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// One object of a log. Its members decide which form it has.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Object<'a> {
    #[serde(borrow)]
    kind: Text<'a>,
    version: Option<u32>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    clock: Option<Text<'a>>,
    #[serde(borrow)]
    process: Option<&'a RawValue>,
    /// Other recorders name the process so.
    #[serde(borrow)]
    client: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    event: Option<Text<'a>>,
    #[serde(borrow, alias = "f")]
    op: Option<Text<'a>>,
    #[serde(borrow)]
    key: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    value: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, alias = "time")]
    at: Moment<'a>,
    #[serde(borrow)]
    invoke: Option<Moment<'a>>,
    #[serde(borrow, rename = "return")]
    ret: Option<Moment<'a>>,
    #[serde(borrow)]
    outcome: Option<Text<'a>>,
}

/// A member that is present, possibly with the value `null`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads one object.
pub(super) fn line(text: &str) -> Result<Line<'_>, Fault> {
    let object: Object<'_> = serde_json::from_str(text).map_err(|error| {
        let cut = error.is_eof();
        Fault::new("an operation", if cut { Found::cut_off("one", text.len()) } else { Found::json(&error) })
    })?;
    if &*object.kind == "operations" {
        return match object.version {
            None | Some(1) => Ok(Line::Header(Header { model: word(object.model), clock: word(object.clock) })),
            Some(other) => {
                Err(Fault::new("version 1 of the operation format", Found::described(format!("version {other}"))))
            }
        };
    }
    let process = object.process.or(object.client);
    if !object.kind.is_empty() && process.is_none() {
        return Ok(Line::Other);
    }
    let is_transaction =
        || Some(object.value).flatten().and_then(|raw| datum(raw).ok()).is_some_and(|d| d.is_transaction());
    let function = word(object.op).or_else(|| is_transaction().then_some(Cow::Borrowed("txn")));
    let (Some(process), Some(function)) = (process, function) else {
        return Err(fault("an operation with process and op", text));
    };
    let process = match datum(process)?.0.as_slice() {
        [Node::Int(number)] => Cow::Owned(number.to_string()),
        [Node::Text(name)] if &**name == "nemesis" => return Ok(Line::Other),
        [Node::Text(name)] => name.clone(),
        _ => return Err(fault("a process with a number or a name", text)),
    };
    let (kind, at, until) = match (&object.event, object.invoke) {
        (Some(event), None) => {
            let kind = Kind::of(event).ok_or_else(|| fault("type invoke, ok, fail, info or unknown", text))?;
            (kind, time(&object.at)?, Time::UNKNOWN)
        }
        (None, Some(invoke)) => {
            let until = object.ret.as_ref().map_or(Ok(Time::UNKNOWN), time)?;
            let ending = match object.outcome.as_deref() {
                Some("ok") => Ending::Ok,
                Some("fail") => Ending::Fail,
                Some("unknown" | "info") => Ending::Unknown,
                Some(_) => return Err(fault("outcome ok, fail or unknown", text)),
                None if until.is_known() => Ending::Ok,
                None => Ending::Unknown,
            };
            if ending == Ending::Ok && !until.is_known() {
                return Err(fault("the time of the return of an operation that is ok", text));
            }
            (Kind::Whole(ending), time(&invoke)?, until)
        }
        _ => return Err(fault("either type, or invoke and return", text)),
    };
    let [key, value, result] = [object.key, object.value, object.result].map(|raw| raw.map(datum).transpose());
    let (key, value, result) = (key?, value?, result?);
    Ok(Line::Event(Event { process: Some(process), kind, function, key, value, result, at, until }))
}

fn word(text: Option<Text<'_>>) -> Option<Cow<'_, str>> {
    text.map(|text| text.0).filter(|text| !text.is_empty())
}

fn time(moment: &Moment<'_>) -> Result<Time, Fault> {
    moment.time().map_err(|stamp| Fault::new("a time (RFC 3339, or whole nanoseconds)", Found::text("a text", &stamp)))
}

fn datum(raw: &RawValue) -> Result<Datum<'_>, Fault> {
    let mut nodes = Vec::new();
    Reader::new(raw.get(), Dialect::Json).value(&mut nodes)?;
    Ok(Datum(nodes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> Event<'_> {
        match line(text) {
            Ok(Line::Event(event)) => event,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn an_event_has_a_type_and_a_whole_operation_both_its_times() {
        let invoke = event(r#"{"process":3,"type":"invoke","op":"write","key":"x","value":[1,null],"at":17}"#);
        assert_eq!((invoke.process.as_deref(), invoke.kind, &*invoke.function), (Some("3"), Kind::Invoke, "write"));
        assert_eq!(invoke.value, Some(Datum(vec![Node::Int(1), Node::Nil, Node::Sequence(2)])));
        assert_eq!((invoke.at, invoke.result), (Time(17), None));
        let whole = event(r#"{"process":"a","op":"read","result":null,"invoke":17,"return":"1970-01-01T00:00:01Z"}"#);
        assert_eq!((whole.kind, whole.at, whole.until), (Kind::Whole(Ending::Ok), Time(17), Time(1_000_000_000)));
        assert_eq!((whole.value, whole.result), (None, Some(Datum(vec![Node::Nil]))));
        assert_eq!(event(r#"{"client":3,"type":"ok","op":"read"}"#).process.as_deref(), Some("3"));
        assert_eq!(event(r#"{"client":"pool","process":1,"type":"ok","op":"read"}"#).process.as_deref(), Some("1"));
        let open = event(r#"{"process":1,"op":"write","value":2,"invoke":17}"#);
        assert_eq!(open.kind, Kind::Whole(Ending::Unknown));
    }

    #[test]
    fn the_names_that_jepsen_uses_are_understood() {
        let text = r#"{"index":0,"type":"info","f":"txn","value":[["append",9,1]],"process":0,"time":5}"#;
        assert_eq!((event(text).kind, event(text).at), (Kind::Return(Ending::Unknown), Time(5)));
        assert_eq!(line(r#"{"type":"info","f":"start","process":"nemesis"}"#).ok(), Some(Line::Other));
    }

    #[test]
    fn a_header_names_model_and_clock() {
        let header = Header { model: Some("kv".into()), clock: None };
        assert_eq!(line(r#"{"kind":"operations","version":1,"model":"kv"}"#).ok(), Some(Line::Header(header)));
        assert_eq!(line(r#"{"kind":"note","text":"x"}"#).ok(), Some(Line::Other));
    }

    #[test]
    fn what_is_no_operation_says_what_is_missing() {
        for (text, why) in [
            (r#"{"process":1,"type":"ok"}"#, "process and op"),
            (r#"{"op":"read","type":"ok"}"#, "process and op"),
            (r#"{"process":1,"op":"read"}"#, "either type, or invoke"),
            (r#"{"process":1,"op":"read","type":"ok","invoke":1}"#, "either type, or invoke"),
            (r#"{"process":[],"op":"read","type":"ok"}"#, "a number or a name"),
            (r#"{"process":1,"op":"read","type":"done"}"#, "type invoke, ok"),
            (r#"{"process":1,"op":"read","invoke":1,"outcome":"ok"}"#, "the time of the return"),
            (r#"{"process":1,"op":"read","invoke":1,"return":2,"outcome":"fine"}"#, "outcome ok, fail"),
            (r#"{"process":1,"op":"read","type":"ok","at":"noon"}"#, "a time"),
            (r#"{"process":1,"op":"read","type":"ok","op":"read"}"#, "duplicate field"),
            (r#"{"kind":"operations","version":2}"#, "version 1"),
            (r#"{"process":1,"#, "cut off"),
        ] {
            let fault = line(text).expect_err(text);
            assert!(format!("{} {}", fault.expected, fault.found).contains(why), "{text}: {fault:?}");
        }
    }
}
