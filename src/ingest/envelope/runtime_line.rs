//! Lines of container runtimes, which cut a line of more than 16 KiB into parts.
//!
//! CRI-O and containerd write `TIME STREAM P TEXT` for each part but the last, and `TIME STREAM F TEXT` for the last.
//! Docker's driver `json-file` writes objects, of which the last part alone ends with a line end. Lines of the other
//! stream may stand between the parts. Sources: Kubernetes, `staging/src/k8s.io/cri-client/pkg/logs`; moby,
//! `daemon/logger/jsonfilelog` and `daemon/logger/copier.go`.
//!
//! Trap: where a file of a rotated log is missing, the parts of two events meet. Joined, they could read as an event that
//! no server wrote. So the times of parts must be near, and an event that begins ends the line before it.

use super::quoted::unescaped;
use crate::ingest::timestamp;
use std::ops::Range;

/// Least length of a part by Docker. A shorter line without a line end went through an agent that removes line ends.
const LEAST_OF_DOCKER: usize = 16 << 10;

/// Beginning of a line by Docker.
const BEGIN_DOCKER: &[u8] = b"{\"log\":\"";

/// Bytes in front of the text of a line, and behind it, that are searched.
const LONGEST_FRAME: usize = 1024;

/// Nanoseconds between the times of two parts of a line. A runtime reads the parts one after the other.
const MOST_BETWEEN: u64 = 1_000_000_000;

/// Beginnings of an audit event, by themselves and inside a string of JSON.
const BEGINNINGS: [&[u8]; 2] =
    [br#"{"kind":"Event","apiVersion":"audit.k8s.io/"#, br#"{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/"#];

/// One line of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuntimeLine<'t> {
    is_stderr: bool,
    /// Whether the next line of its stream continues it.
    pub is_part: bool,
    pub text: &'t [u8],
    /// RFC 3339.
    time: &'t [u8],
    by_docker: bool,
}

impl<'t> RuntimeLine<'t> {
    /// Reads a line without its line end.
    fn of(line: &'t [u8]) -> Option<RuntimeLine<'t>> {
        match line.first()? {
            b'0'..=b'9' => RuntimeLine::of_cri(line),
            b'{' => RuntimeLine::of_docker(line),
            _ => None,
        }
    }

    /// Reads a line of CRI-O or containerd.
    pub fn of_cri(line: &'t [u8]) -> Option<RuntimeLine<'t>> {
        let frame = &line[..line.len().min(LONGEST_FRAME)];
        let mut words = frame.splitn(4, |byte| *byte == b' ');
        let (time, stream, flag, text) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let is_part = match flag {
            [b'P'] | [b'P', b':', ..] => true,
            [b'F'] | [b'F', b':', ..] => false,
            _ => return None,
        };
        let text = &line[frame.len() - text.len()..];
        Some(RuntimeLine { is_stderr: is_stderr(stream)?, is_part, text, time, by_docker: false })
    }

    fn of_docker(line: &'t [u8]) -> Option<RuntimeLine<'t>> {
        const BEFORE_STREAM: &[u8] = b"\",\"stream\":\"";
        const BEFORE_TIME: &[u8] = b"\"time\":\"";
        let until_quote = |bytes: &'t [u8]| bytes.split(|byte| *byte == b'"').next();
        let rest = line.strip_prefix(BEGIN_DOCKER)?;
        let frame = rest.len().saturating_sub(LONGEST_FRAME);
        let end = frame + memchr::memmem::rfind(&rest[frame..], BEFORE_STREAM)?;
        let (text, members) = (&rest[..end], &rest[end + BEFORE_STREAM.len()..]);
        let time = memchr::memmem::rfind(members, BEFORE_TIME).map_or(&[][..], |at| &members[at + BEFORE_TIME.len()..]);
        let is_part = is_part_of_docker(text);
        let (is_stderr, time) = (is_stderr(until_quote(members)?)?, until_quote(time)?);
        Some(RuntimeLine { is_stderr, is_part, text, time, by_docker: true })
    }

    /// Appends its text without escapes. A runtime may cut inside a character.
    fn append_to(&self, text: &mut Vec<u8>) -> Option<()> {
        match self.by_docker {
            true => text.extend_from_slice(unescaped(std::str::from_utf8(self.text).ok()?).as_bytes()),
            false => text.extend_from_slice(self.text.strip_suffix(b"\r").unwrap_or(self.text)),
        }
        Some(())
    }

    fn begins_event(&self) -> bool {
        self.text.starts_with(BEGINNINGS[usize::from(self.by_docker)])
    }

    /// Whether it can continue the line of a part.
    fn continues(&self, part: &RuntimeLine<'_>) -> bool {
        let time = |line: &RuntimeLine<'_>| timestamp::parse(std::str::from_utf8(line.time).ok()?);
        let are_near = time(part).zip(time(self)).is_some_and(|(a, b)| a.0.abs_diff(b.0) <= MOST_BETWEEN);
        are_near && !self.begins_event()
    }
}

fn is_stderr(stream: &[u8]) -> Option<bool> {
    match stream {
        b"stdout" => Some(false),
        b"stderr" => Some(true),
        _ => None,
    }
}

/// Whether a text with escapes is a part that Docker cut: only the last part ends with the escape of a line end.
pub(super) fn is_part_of_docker(text: &[u8]) -> bool {
    let escapes = |rest: &[u8]| rest.iter().rev().take_while(|byte| **byte == b'\\').count();
    let ends_line = text.strip_suffix(b"n").is_some_and(|rest| escapes(rest) % 2 == 1);
    text.len() >= LEAST_OF_DOCKER && !ends_line
}

/// Whether the first bytes are those of a line of a container runtime.
fn may_begin(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(u8::is_ascii_digit) || bytes.starts_with(BEGIN_DOCKER)
}

/// Whether bytes begin with a line of a container runtime.
pub fn is_runtime(bytes: &[u8]) -> bool {
    RuntimeLine::of(first(bytes)).is_some()
}

/// Whether bytes begin with a line of a container runtime that begins with an audit event.
pub fn begins_event(bytes: &[u8]) -> bool {
    RuntimeLine::of(first(bytes)).is_some_and(|line| line.begins_event())
}

/// Whether more bytes may complete the line that begins the bytes.
pub fn may_go_on(bytes: &[u8]) -> bool {
    let is_whole = bytes.contains(&b'\n');
    !is_whole || RuntimeLine::of(first(bytes)).is_some_and(|line| line.is_part)
}

/// The first line, without its line end.
fn first(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(b'\n', bytes).unwrap_or(bytes.len())]
}

/// The length of the leading lines behind which no line lacks parts, with the last line end.
pub fn closed(bytes: &[u8]) -> usize {
    let (mut is_open, mut start, mut closed) = ([false; 2], 0, 0);
    for end in memchr::memchr_iter(b'\n', bytes) {
        match RuntimeLine::of(&bytes[start..end]) {
            Some(line) => is_open[usize::from(line.is_stderr)] = line.is_part,
            None => is_open = [false; 2],
        }
        start = end + 1;
        if is_open == [false; 2] {
            closed = start;
        }
    }
    closed
}

/// A line that was joined from its parts.
#[derive(Debug)]
pub struct Joined {
    /// Its text.
    pub text: String,
    /// Whether Docker wrote the parts.
    pub by_docker: bool,
    /// The length of its parts, and of the lines of the other stream between them, without the last line end.
    pub length: usize,
    /// Those lines: the number of line ends before each, and its place.
    pub others: Vec<(u32, Range<usize>)>,
}

/// Joins the line whose first part begins the bytes. Fails if it is no part, if its last part is missing, if it is no UTF-8
/// text, or if the line, or what stands between its parts, is longer than `longest`. The error is the length of the lines
/// that were searched for the last part: no other line that begins there has one.
pub fn joined(bytes: &[u8], longest: usize) -> Result<Joined, usize> {
    // Most lines are no lines of a runtime. Their ends are not searched here.
    if !may_begin(bytes) {
        return Err(0);
    }
    let begin = RuntimeLine::of(first(bytes)).filter(|line| line.is_part).ok_or(0_usize)?;
    let (mut text, mut others, mut last) = (Vec::new(), Vec::new(), begin);
    let (mut start, mut between) = (0, 0);
    for (nth, end) in (0..).zip(memchr::memchr_iter(b'\n', bytes).chain([bytes.len()])) {
        let line = RuntimeLine::of(&bytes[start..end]).filter(|line| line.by_docker == begin.by_docker).ok_or(start)?;
        if line.is_stderr == begin.is_stderr {
            if start > 0 && !line.continues(&last) {
                return Err(start);
            }
            line.append_to(&mut text).ok_or(end)?;
            if !line.is_part {
                let text = String::from_utf8(text).map_err(|_| end)?;
                return Ok(Joined { text, by_docker: begin.by_docker, length: end, others });
            }
            last = line;
        } else {
            between += end - start;
            others.push((nth, start..end));
        }
        if text.len().max(between) > longest {
            return Err(end);
        }
        start = end + 1;
    }
    Err(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-03-02T09:00:00.5Z";

    fn docker(text: &str, stream: &str) -> String {
        serde_json::json!({"log": text, "stream": stream, "time": TIME}).to_string()
    }

    #[test]
    fn parts_are_joined_past_lines_of_the_other_stream() {
        let lines = [
            "2026-03-02T09:00:00Z stdout P {\"a\":",
            "2026-03-02T09:00:00Z stderr F I0302 x",
            "2026-03-02T09:00:00Z stdout P:x \"b c",
            "2026-03-02T09:00:00Z stdout F d\"}",
            "2026-03-02T09:00:00Z stdout F rest",
        ];
        let text = lines.join("\n");
        let found = joined(text.as_bytes(), 100).unwrap();
        assert_eq!((&*found.text, found.by_docker), (r#"{"a":"b cd"}"#, false));
        assert_eq!(&text[..found.length], lines[..4].join("\n"));
        let others: Vec<_> = found.others.iter().map(|(nth, place)| (*nth, &text[place.clone()])).collect();
        assert_eq!(others, [(1, lines[1])]);
        assert_eq!(joined(text.as_bytes(), 10).unwrap_err(), lines[..2].join("\n").len());
        // The last part is missing, another line stands in its place, or the first line is whole.
        let length = |lines: &[&str]| lines.join("\n").len();
        for (lines, searched) in
            [(&lines[..3], length(&lines[..3])), (&[lines[0], "other", lines[3]], lines[0].len() + 1), (&lines[3..], 0)]
        {
            assert_eq!(joined(lines.join("\n").as_bytes(), 100).unwrap_err(), searched, "{lines:?}");
        }
    }

    #[test]
    fn parts_of_docker_are_long_and_only_the_last_has_a_line_end() {
        let long = format!("{{\"a\":\"{}\\n", "x".repeat(LEAST_OF_DOCKER));
        let text = [docker(&long, "stdout"), docker("other\n", "stderr"), docker("é\"}\n", "stdout")].join("\n");
        let found = joined(text.as_bytes(), 1 << 20).unwrap();
        assert_eq!((found.text, found.by_docker, found.others.len()), (format!("{long}é\"}}\n"), true, 1));
        for whole in ["short", &format!("{long}\n")] {
            assert_eq!(joined(docker(whole, "stdout").as_bytes(), 1 << 20).unwrap_err(), 0);
            assert!(is_runtime(docker(whole, "stdout").as_bytes()));
        }
        assert!(!is_runtime(br#"{"log":"x"}"#) && !is_runtime(b"2026 x P y") && !is_runtime(b""));
    }

    #[test]
    fn parts_that_meet_where_a_file_is_missing_are_not_joined() {
        let cri = |second: u32, flag: char, text: &str| format!("2026-03-02T09:00:{second:02}Z stdout {flag} {text}");
        let event = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","a":1}"#;
        for (next, is_joined) in [
            (cri(1, 'F', "b\"}"), true),
            (cri(0, 'F', "b\"}"), true),
            // Parts of one line are not seconds apart.
            (cri(3, 'F', "b\"}"), false),
            ("then stdout F b\"}".to_owned(), false),
            ("2026-13-02T09:00:00Z stdout F b\"}".to_owned(), false),
            (cri(1, 'F', event), false),
            (cri(1, 'P', event), false),
        ] {
            let first = cri(0, 'P', r#"{"a":"x"#);
            let found = joined(format!("{first}\n{next}").as_bytes(), 100);
            assert_eq!(
                found.map(|joined| joined.text).map_err(|length| length == first.len() + 1),
                match is_joined {
                    true => Ok(r#"{"a":"xb"}"#.to_owned()),
                    false => Err(true),
                }
            );
        }
        assert!(begins_event(cri(0, 'P', event).as_bytes()) && begins_event(docker(event, "stdout").as_bytes()));
        assert!(!begins_event(cri(0, 'P', "{\"a\":1}").as_bytes()) && !begins_event(event.as_bytes()));
    }

    #[test]
    fn a_runtime_may_cut_inside_a_character() {
        let line = |flag: u8, text: &[u8]| [b"2026-03-02T09:00:00Z stdout ", &[flag, b' '][..], text].concat();
        let (before, after) = "{\"a\":\"é\"}".as_bytes().split_at(7);
        let found = joined(&[line(b'P', before), line(b'F', after)].join(&b'\n'), 100).unwrap();
        assert_eq!(found.text, "{\"a\":\"é\"}");
        let odd = [line(b'P', before), line(b'F', b"x\"}")].join(&b'\n');
        assert_eq!(joined(&odd, 100).unwrap_err(), odd.len());
    }

    #[test]
    fn lines_are_closed_behind_the_last_part_of_each() {
        let (p, f, q, g) = (
            "2026-03-02T09:00:00Z stdout P a\n",
            "2026-03-02T09:00:00Z stdout F a\n",
            "2026-03-02T09:00:00Z stderr P a\n",
            "2026-03-02T09:00:00Z stderr F a\n",
        );
        for (lines, expected) in [
            (vec![f, g], 2),
            (vec![f, p], 1),
            (vec![p, p], 0),
            (vec![f, p, g, p], 1),
            (vec![p, g, f], 3),
            (vec![q, p, g, p], 0),
            (vec![q, p, g, f, p], 4),
            (vec![p, "other\n", p], 2),
            (vec![], 0),
        ] {
            let length: usize = lines[..expected].iter().map(|line| line.len()).sum();
            assert_eq!(closed(lines.concat().as_bytes()), length, "{lines:?}");
        }
        assert_eq!(closed(b"2026-03-02T09:00:00Z stdout F a\nT stdout F b"), 32);
    }
}
