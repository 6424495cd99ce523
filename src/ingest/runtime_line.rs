//! Lines of container runtimes, which cut a line of more than 16 KiB into parts.
//!
//! CRI-O and containerd write `TIME STREAM P TEXT` for each part but the last, and `TIME STREAM F TEXT` for the last.
//! Docker's driver `json-file` writes objects, of which the last part alone ends with a line end. Lines of the other
//! stream may stand between the parts. Sources: Kubernetes, `staging/src/k8s.io/cri-client/pkg/logs`; moby,
//! `daemon/logger/jsonfilelog` and `daemon/logger/copier.go`.

use super::envelope::unescaped;
use std::ops::Range;

/// Least length of a part by Docker. A shorter line without a line end went through an agent that removes line ends.
const LEAST_OF_DOCKER: usize = 16 << 10;

/// Bytes in front of the text of a line, and behind it, that are searched.
const LONGEST_FRAME: usize = 1024;

/// One line of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RuntimeLine<'t> {
    is_stderr: bool,
    /// Whether the next line of its stream continues it.
    is_part: bool,
    text: &'t [u8],
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

    fn of_cri(line: &'t [u8]) -> Option<RuntimeLine<'t>> {
        let frame = &line[..line.len().min(LONGEST_FRAME)];
        let mut words = frame.splitn(4, |byte| *byte == b' ');
        let (_, stream, flag, text) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let is_part = match flag {
            [b'P'] | [b'P', b':', ..] => true,
            [b'F'] | [b'F', b':', ..] => false,
            _ => return None,
        };
        let text = &line[frame.len() - text.len()..];
        Some(RuntimeLine { is_stderr: is_stderr(stream)?, is_part, text, by_docker: false })
    }

    fn of_docker(line: &'t [u8]) -> Option<RuntimeLine<'t>> {
        const BEFORE_STREAM: &[u8] = b"\",\"stream\":\"";
        let rest = line.strip_prefix(b"{\"log\":\"")?;
        let frame = rest.len().saturating_sub(LONGEST_FRAME);
        let end = frame + memchr::memmem::rfind(&rest[frame..], BEFORE_STREAM)?;
        let (text, stream) = (&rest[..end], rest[end + BEFORE_STREAM.len()..].split(|byte| *byte == b'"').next()?);
        let is_part = text.len() >= LEAST_OF_DOCKER && !ends_with_line_end(text);
        Some(RuntimeLine { is_stderr: is_stderr(stream)?, is_part, text, by_docker: true })
    }

    /// Appends its text without escapes.
    fn append_to(&self, text: &mut String) -> Option<()> {
        let own = std::str::from_utf8(self.text).ok()?;
        match self.by_docker {
            true => text.push_str(&unescaped(own)),
            false => text.push_str(own.trim_end_matches('\r')),
        }
        Some(())
    }
}

fn is_stderr(stream: &[u8]) -> Option<bool> {
    match stream {
        b"stdout" => Some(false),
        b"stderr" => Some(true),
        _ => None,
    }
}

/// Whether a text with escapes ends with the escape of a line end.
fn ends_with_line_end(text: &[u8]) -> bool {
    let escapes = |rest: &[u8]| rest.iter().rev().take_while(|byte| **byte == b'\\').count();
    text.strip_suffix(b"n").is_some_and(|rest| escapes(rest) % 2 == 1)
}

/// Whether bytes begin with a line of a container runtime.
pub(super) fn is_runtime(bytes: &[u8]) -> bool {
    RuntimeLine::of(first(bytes)).is_some()
}

/// Whether more bytes may complete the line that begins the bytes.
pub(super) fn may_go_on(bytes: &[u8]) -> bool {
    let is_whole = bytes.contains(&b'\n');
    !is_whole || RuntimeLine::of(first(bytes)).is_some_and(|line| line.is_part)
}

/// The first line, without its line end.
fn first(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(b'\n', bytes).unwrap_or(bytes.len())]
}

/// The length of the leading lines behind which no line lacks parts, with the last line end.
pub(super) fn closed(bytes: &[u8]) -> usize {
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
pub(super) struct Joined {
    /// Its text.
    pub text: String,
    /// Whether Docker wrote the parts.
    pub by_docker: bool,
    /// The length of its parts, and of the lines of the other stream between them, without the last line end.
    pub length: usize,
    /// Those lines: the number of line ends before each, and its place.
    pub others: Vec<(u32, Range<usize>)>,
}

/// Joins the line whose first part begins the bytes. Fails if it is no part, if its last part is missing, or if the line, or
/// what stands between its parts, is longer than `longest`. The error is the length of the lines that were searched for the
/// last part: no other line that begins there has one.
pub(super) fn joined(bytes: &[u8], longest: usize) -> Result<Joined, usize> {
    let begin = RuntimeLine::of(first(bytes)).filter(|line| line.is_part).ok_or(0_usize)?;
    let mut joined = Joined { text: String::new(), by_docker: begin.by_docker, length: 0, others: Vec::new() };
    let (mut start, mut between) = (0, 0);
    for (nth, end) in (0..).zip(memchr::memchr_iter(b'\n', bytes).chain([bytes.len()])) {
        let line = RuntimeLine::of(&bytes[start..end]).filter(|line| line.by_docker == begin.by_docker).ok_or(start)?;
        if line.is_stderr == begin.is_stderr {
            line.append_to(&mut joined.text).ok_or(end)?;
            if !line.is_part {
                joined.length = end;
                return Ok(joined);
            }
        } else {
            between += end - start;
            joined.others.push((nth, start..end));
        }
        if joined.text.len().max(between) > longest {
            return Err(end);
        }
        start = end + 1;
    }
    Err(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn docker(text: &str, stream: &str) -> String {
        serde_json::json!({"log": text, "stream": stream, "time": "t"}).to_string()
    }

    #[test]
    fn parts_are_joined_past_lines_of_the_other_stream() {
        let lines = [
            "2026 stdout P {\"a\":",
            "2026 stderr F I0302 x",
            "2026 stdout P:x \"b c",
            "2026 stdout F d\"}",
            "2026 stdout F rest",
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
    fn lines_are_closed_behind_the_last_part_of_each() {
        let (p, f, q, g) = ("2026 stdout P a\n", "2026 stdout F a\n", "2026 stderr P a\n", "2026 stderr F a\n");
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
        assert_eq!(closed(b"2026 stdout F a\nT stdout F b"), 16);
    }
}
