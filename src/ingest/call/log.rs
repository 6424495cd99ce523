//! Lines of Jepsen's text log: `INFO  jepsen.util - 3 :invoke :cas [1 2]`, with tabs or spaces in between.
//!
//! The meaning of `:fail` depends on the logger: see [`line`].

use super::datum::Datum;
use super::reader::{Dialect, Next, Reader};
use super::{Ending, Event, Kind, Node, fault};
use crate::ingest::Time;
use crate::ingest::problem::Fault;
use std::borrow::Cow;

/// Reads one line; `Ok(None)`: it is no operation, like most lines of such a log.
///
/// Jepsen's early tests of etcd have a logger that writes `INFO  jepsen.util - ` in front. They log a compare-and-set
/// that found another value as `:fail` with its own arguments, which is an answer; porcupine reads these logs so.
/// They log any other failure with a word (`:timed-out`), which is no answer. Later versions of Jepsen write errors
/// in a column behind the value, and `jepsen.util: ` or nothing in front. Their `:fail` means the same as in EDN:
/// without effect.
pub(super) fn line(text: &str) -> Result<Option<Event<'_>>, Fault> {
    let Some(Operation { process, kind, rest, early }) = operation(text) else { return Ok(None) };
    let mut reader = Reader::new(rest, Dialect::Edn);
    let mut value = Vec::new();
    reader.value(&mut value)?;
    let [Node::Keyword(function)] = value[..] else { return Err(fault("an operation such as :read", rest)) };
    value.clear();
    if let Next::Form = reader.next()? {
        reader.value(&mut value)?;
    }
    let refused = early
        && function == "cas"
        && kind == Kind::Return(Ending::Fail)
        && matches!(value.last(), Some(Node::Sequence(2)))
        // A value behind the value is an error.
        && matches!(reader.next()?, Next::End);
    Ok(Some(Event {
        process: Some(Cow::Borrowed(process)),
        kind: if refused { Kind::Return(Ending::Refused) } else { kind },
        function: Cow::Borrowed(function),
        key: None,
        value: (!value.is_empty()).then_some(Datum(value)),
        result: None,
        at: Time::UNKNOWN,
        until: Time::UNKNOWN,
    }))
}

/// A line with an operation.
struct Operation<'a> {
    process: &'a str,
    kind: Kind,
    /// Text behind the type.
    rest: &'a str,
    /// Whether the logger is that of Jepsen's early tests.
    early: bool,
}

fn operation(text: &str) -> Option<Operation<'_>> {
    for at in memchr::memchr_iter(b':', text.as_bytes()) {
        let rest = &text[at + 1..];
        let word = &rest[..rest.find(char::is_whitespace)?];
        let (Some(kind), true) =
            (Kind::of(word).filter(|_| word != "unknown"), text[..at].ends_with(char::is_whitespace))
        else {
            continue;
        };
        let before = text[..at].trim_end();
        let process = before.rsplit(char::is_whitespace).next()?;
        let logger = before[..before.len() - process.len()].trim_end();
        let whole = before.len() == process.len() || logger.ends_with(['-', ':']);
        let number = !process.is_empty() && process.bytes().all(|b| b.is_ascii_digit());
        // A client's name may be a keyword. A process that only logs `:info` is the nemesis or similar.
        let named = process.len() > 1 && process.starts_with(':') && process != ":nemesis";
        let client = number || named && kind != Kind::Return(Ending::Unknown);
        let early = logger.ends_with('-');
        return (whole && client).then_some(Operation { process, kind, rest: &rest[word.len()..], early });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_stands_behind_whatever_the_logger_writes() {
        for text in [
            "INFO  jepsen.util - 12\t:invoke\t:cas\t[1 2]",
            "INFO  jepsen.util - 12  :invoke :cas    [1 2]\r",
            "2026-11-20 20:26:45,607{GMT}\tINFO\t[jepsen worker 2] jepsen.util: 12\t:invoke\t:cas\t[1 2]",
            "12 :invoke :cas [1 2]",
        ] {
            let event = line(text).ok().flatten().unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                (event.process.as_deref(), event.kind, &*event.function),
                (Some("12"), Kind::Invoke, "cas"),
                "{text}"
            );
            assert_eq!(event.value, Some(Datum(vec![Node::Int(1), Node::Int(2), Node::Sequence(2)])));
        }
        let named = line("12:00 INFO [worker] jepsen.util: :c3\t:invoke\t:read\tnil").ok().flatten();
        assert_eq!(named.and_then(|event| event.process).as_deref(), Some(":c3"));
    }

    #[test]
    fn a_failed_compare_and_set_with_its_arguments_was_answered_no() {
        let kind = |text| line(text).ok().flatten().map(|event| event.kind);
        assert_eq!(kind("INFO - 1 :fail :cas [1 2]"), Some(Kind::Return(Ending::Refused)));
        assert_eq!(kind("INFO  jepsen.util - 1\t:fail\t:cas\t[1 2]\r"), Some(Kind::Return(Ending::Refused)));
        assert_eq!(kind("INFO - 1 :fail :cas :timed-out"), Some(Kind::Return(Ending::Fail)));
        assert_eq!(kind("INFO - 1 :fail :read :timed-out"), Some(Kind::Return(Ending::Fail)));
        assert_eq!(kind("INFO - 1 :info :write :timed-out"), Some(Kind::Return(Ending::Unknown)));
        assert_eq!(kind("INFO - 1 :ok :read nil"), Some(Kind::Return(Ending::Ok)));
    }

    #[test]
    fn a_failure_of_todays_logs_did_not_happen_and_an_error_behind_the_value_is_no_answer() {
        for text in [
            "INFO - 1\t:fail\t:cas\t[1 2]\t:connection-refused",
            "INFO - 1\t:fail\t:cas\t[1 2]\t[:timed-out \"n1\"]",
            "2024-05-01 10:00:00,004{GMT}\tINFO\t[jepsen worker 1] jepsen.util: 1\t:fail\t:cas\t[1 2]\t:timeout",
            "2024-05-01 10:00:00,004{GMT}\tINFO\t[jepsen worker 1] jepsen.util: 1\t:fail\t:cas\t[1 2]",
            "1\t:fail\t:cas\t[1 2]\t[:connection-refused \"n1\"]",
            "1\t:fail\t:cas\t[1 2]",
        ] {
            let event = line(text).ok().flatten().unwrap_or_else(|| panic!("{text}"));
            assert_eq!(event.kind, Kind::Return(Ending::Fail), "{text}");
            assert_eq!(event.value, Some(Datum(vec![Node::Int(1), Node::Int(2), Node::Sequence(2)])), "{text}");
        }
    }

    #[test]
    fn other_lines_are_no_operations_and_a_broken_one_is_a_problem() {
        for text in [
            "",
            "INFO  jepsen.core - Running test",
            "INFO  jepsen.util - :nemesis\t:info\t:start\tnil",
            "INFO  jepsen.core - time is 12 :ok then",
            "at 12:ok:35",
        ] {
            assert_eq!(line(text).ok(), Some(None), "{text}");
        }
        for text in ["INFO - 1 :ok :read [1", "INFO - 1 :ok read 1", "INFO - 1 :ok "] {
            assert!(line(text).is_err(), "{text}");
        }
    }
}
