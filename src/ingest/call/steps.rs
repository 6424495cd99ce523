//! Steps of transactions, one a line, as checkers of isolation levels write them. There are two forms:
//!
//! - `w(KEY,VALUE,SESSION,TRANSACTION)` and `r(...)`: dbcop's text, PolySI, Viper and IsoVista. A reader of a key without a value
//!   reads 0.
//! - `w KEY VALUE` and `r KEY VALUE`, with a line `-----` between two transactions and `=====` between two sessions: Plume and
//!   AWDIT.
//!
//! Sessions are in order, and nothing has a time. All transactions were committed.

use super::datum::{Datum, Node};
use super::{Event, Kind, fault};
use crate::ingest::Time;
use crate::ingest::problem::Fault;
use std::borrow::Cow;

/// What is expected of a line.
const EXPECTED: &str = "a step such as `w(1,2,0,3)` or `r 1 2`, or a line of - or =";

/// Characters of a line of `-` or `=`, at least.
const RULE: usize = 3;

/// Reads one line; `Ok(None)`: it is empty.
pub(super) fn line(text: &str) -> Result<Option<Event<'_>>, Fault> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    step(text).map(Some).ok_or_else(|| fault(EXPECTED, text))
}

/// Whether a line is a step. Lines of `-` begin other formats, too.
pub(super) fn is_step(text: &str) -> bool {
    step(text.trim()).is_some_and(|event| event.kind == Kind::Step)
}

fn step(text: &str) -> Option<Event<'_>> {
    let event = |kind: Kind| Event {
        process: None,
        kind,
        function: Cow::Borrowed("txn"),
        key: None,
        value: None,
        result: None,
        at: Time::UNKNOWN,
        until: Time::UNKNOWN,
    };
    let is_rule = |of: char| text.len() >= RULE && text.chars().all(|c| c == of);
    if is_rule('-') || is_rule('=') {
        return Some(event(Kind::Boundary { of_session: is_rule('=') }));
    }
    let word = text.get(..1).filter(|word| matches!(*word, "w" | "r"))?;
    let rest = text[1..].trim_start();
    let value = |key: &str, value: &str| {
        let number = |text: &str| text.trim().parse().ok().map(Node::Int);
        let (key, value) = (number(key)?, number(value)?);
        let word = Node::Text(Cow::Owned(word.to_owned()));
        Some(Datum(vec![word, key, value, Node::Sequence(3)]))
    };
    if let Some(inner) = rest.strip_prefix('(') {
        let parts: Vec<&str> = inner.strip_suffix(')')?.split(',').map(str::trim).collect();
        let [key, written, session, transaction] = parts[..] else { return None };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        if !is_number(session) || !is_number(transaction) {
            return None;
        }
        let process = Some(Cow::Borrowed(session));
        let key = value(key, written)?;
        let number = Datum(vec![Node::Text(Cow::Borrowed(transaction))]);
        return Some(Event { process, key: Some(number), value: Some(key), ..event(Kind::Step) });
    }
    let mut parts = rest.split_ascii_whitespace();
    let (key, written) = (parts.next()?, parts.next()?);
    let read = value(key, written).filter(|_| parts.next().is_none())?;
    Some(Event { value: Some(read), ..event(Kind::Step) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_step_are_read() {
        fn step(text: &str) -> Event<'_> {
            line(text).unwrap().unwrap()
        }
        let one = step("w(4,-1,2,7)");
        assert_eq!((one.process.as_deref(), one.kind), (Some("2"), Kind::Step));
        assert_eq!(one.key, Some(Datum(vec![Node::Text("7".into())])));
        assert_eq!(one.value, step(" w 4 -1 ").value);
        assert_eq!(step("-----").kind, Kind::Boundary { of_session: false });
        assert_eq!(step("=====").kind, Kind::Boundary { of_session: true });
        assert_eq!(line("  "), Ok(None));
        for text in ["w(4,1,2)", "w 4", "x 1 2", "r 1 2 3", "w(a,1,2,3)", "-=-=", "--", "r(1,2,x,3)", "w(1,2,3,4) x"] {
            assert!(line(text).is_err(), "{text}");
        }
    }
}
