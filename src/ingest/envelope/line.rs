//! Events behind a prefix on a line: a time (exports of CloudWatch to S3), or a time, a stream and a flag (CRI-O and
//! containerd).

use super::runtime_line::RuntimeLine;
use super::{Cursor, Envelope};

/// A line with a prefix. It is in no table, since it is no JSON.
pub static STAMPED: Envelope =
    Envelope { name: "stamped-line", lacks: "", keys: &[], read: |_: &mut Cursor<'_>, _| false };

/// An entry that is a line of another log.
pub const OTHER_TEXT: &str = "lines of other logs";

/// A container runtime cuts lines of more than 16 KiB into parts.
pub const PARTS: &str = "parts of lines that a container runtime cut";

/// Longest text in front of an event.
const LONGEST_PREFIX: usize = 1024;

/// What a text holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// JSON that begins at this offset.
    Event(usize),
    /// A part of a line.
    Part,
    /// Other text.
    Nothing,
}

/// Finds the JSON object in a text, which may have a prefix with a time.
pub fn event_in(text: &str) -> Found {
    let begin = text.len() - text.trim_start().len();
    let line = &text[begin..];
    if line.starts_with('{') {
        return Found::Event(begin);
    }
    if !is_stamped(line) {
        return Found::Nothing;
    }
    if let Some(of_runtime) = RuntimeLine::of_cri(line.as_bytes()) {
        return match of_runtime.is_part {
            true => Found::Part,
            false if of_runtime.text.starts_with(b"{") => Found::Event(text.len() - of_runtime.text.len()),
            false => Found::Nothing,
        };
    }
    let mut from = 0;
    while let Some(n) = line.as_bytes().get(from..).and_then(|rest| memchr::memchr(b'{', rest)) {
        let at = from + n;
        if at > LONGEST_PREFIX {
            break;
        }
        if line[at + 1..].trim_start().starts_with('"') {
            return Found::Event(begin + at);
        }
        from = at + 1;
    }
    Found::Nothing
}

/// Whether a line begins with a date, or with the priority of a syslog message.
pub fn is_stamped(line: &str) -> bool {
    let bytes = line.as_bytes();
    match bytes {
        [a, b, c, d, b'-', ..] => [a, b, c, d].iter().all(|digit| digit.is_ascii_digit()),
        [b'<', digit, ..] => digit.is_ascii_digit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_found_behind_a_time() {
        for (text, expected) in [
            ("{\"a\":1}", Found::Event(0)),
            (" \n{\"a\":1}", Found::Event(2)),
            ("2023-06-12T13:30:25.757Z {\"a\":1}", Found::Event(25)),
            ("2023-06-12T13:30:25.757203Z stdout F {\"a\":1}", Found::Event(37)),
            ("2023-06-12T13:30:25Z stderr F:x { \"a\":1}", Found::Event(32)),
            ("2023-06-12T13:30:25Z stdout P {\"a\":1", Found::Part),
            ("2023-06-12T13:30:25Z stdout F 1,\"b\":{\"c\":1}}", Found::Nothing),
            ("2023-06-12T13:30:25Z {app=\"x\", b=\"{y\"} {\"a\":1}", Found::Event(39)),
            ("<134>1 2023-06-12T13:30:25Z host app - - - {\"a\":1}", Found::Event(43)),
            ("I0612 13:30:25.757203 1 trace.go:1] {\"a\":1}", Found::Nothing),
            ("2023-06-12 no braces", Found::Nothing),
            ("2023-", Found::Nothing),
            ("", Found::Nothing),
        ] {
            assert_eq!(event_in(text), expected, "{text}");
        }
        let far = format!("2023-06-12 {}{{\"a\":1}}", "x".repeat(LONGEST_PREFIX));
        assert_eq!(event_in(&far), Found::Nothing);
    }
}
