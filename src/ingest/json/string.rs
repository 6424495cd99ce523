//! Strings of JSON at speed: their ends, and their text without escapes.
//!
//! An audit event that is text in a string has a backslash every few bytes, so a search from one to the next would cost
//! more than reading the event.

/// Bytes that are compared at once; the compiler makes vectors of them.
const STEP: usize = 32;

/// Bytes that are compared one by one, since most strings are short.
const SHORT: usize = 16;

/// Offset of the quote that ends a string. `from` is the offset behind the quote that begins it, or of any byte inside
/// that no backslash escapes.
pub(in crate::ingest) fn end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    let near = bytes.len().min(from.saturating_add(SHORT));
    while at < near {
        match bytes[at] {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    // Behind an escape, `at` may be the last byte of it or one behind the text.
    while let Some(near) = at.checked_sub(2).and_then(|from| bytes.get(from..)?.first_chunk::<{ STEP + 2 }>()) {
        // A quote ends the string if no backslash is in front of it, and may if two are.
        let mut may_end = 0;
        for place in 0..STEP {
            let (two, one, byte) = (near[place], near[place + 1], near[place + 2]);
            may_end |= u8::from(byte == b'"') & (u8::from(one != b'\\') | u8::from(two == b'\\'));
        }
        if may_end != 0 {
            for quote in (at..at + STEP).filter(|at| bytes[*at] == b'"') {
                let escapes = bytes[from..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
                if escapes % 2 == 0 {
                    return Some(quote);
                }
            }
        }
        at += STEP;
    }
    while at < bytes.len() {
        if bytes[at] == b'"' {
            let escapes = bytes[from..at].iter().rev().take_while(|byte| **byte == b'\\').count();
            if escapes % 2 == 0 {
                return Some(at);
            }
        }
        at += 1;
    }
    None
}

/// The reason why [`pass`] stopped at a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ingest) enum Stop {
    /// The quote that ends the string.
    End,
    /// A line end.
    Line,
    /// A backslash that escapes the next byte, which is not searched.
    Escape,
    /// The last byte that is searched.
    Inside,
}

/// Passes a part of a string that may go on behind the text. Returns the offset of the byte at which it stopped.
/// `from` is as in [`end`], and a byte of the text.
pub(in crate::ingest) fn pass(bytes: &[u8], from: usize) -> (usize, Stop) {
    /// Bytes that are searched for a line end, so that a call costs no more than it passes.
    const WINDOW: usize = 4096;
    let short = bytes.len().min(from + SHORT);
    if let Some(n) = bytes[from..short].iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n'))
        && bytes[from + n] == b'"'
    {
        return (from + n, Stop::End);
    }
    let window = &bytes[..bytes.len().min(from + WINDOW)];
    let line = memchr::memchr(b'\n', &window[from..]).map_or(window.len(), |n| from + n);
    if let Some(quote) = end(&window[..line], from) {
        return (quote, Stop::End);
    }
    if line < window.len() {
        return (line, Stop::Line);
    }
    let escapes = window[from..].iter().rev().take_while(|byte| **byte == b'\\').count();
    (window.len() - 1, if escapes % 2 == 1 { Stop::Escape } else { Stop::Inside })
}

/// The byte that each byte behind a backslash stands for.
static MEANINGS: [u8; 256] = {
    let mut meanings = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        meanings[byte] = match byte as u8 {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            other => other,
        };
        byte += 1;
    }
    meanings
};

/// Whether a byte behind a backslash is an escape by itself: 0, or 1 where it is none or needs digits.
static ODD: [u8; 256] = {
    let mut odd = [1; 256];
    let plain = b"\"\\/ntrbf";
    let mut nth = 0;
    while nth < plain.len() {
        odd[plain[nth] as usize] = 0;
        nth += 1;
    }
    odd
};

/// The text between the quotes of a string without its escapes. `None`: it has an escape with a number or one that is
/// none, or ends inside an escape.
pub(in crate::ingest) fn without_escapes(inner: &str) -> Option<String> {
    let mut odd = 0;
    let (text, length) = without_marks(inner.as_bytes(), b'\\', |escaped| {
        odd |= ODD[usize::from(escaped)];
        Some(MEANINGS[usize::from(escaped)])
    });
    if length < inner.len() || odd != 0 {
        return None;
    }
    String::from_utf8(text).ok()
}

/// The text of a quoted field of CSV, in which a quote is written twice, up to the quote that ends it; and that quote's
/// offset. Input: the bytes behind the first quote.
pub(in crate::ingest) fn without_doubled_quotes(inner: &[u8]) -> (Vec<u8>, usize) {
    without_marks(inner, b'"', |next| (next == b'"').then_some(next))
}

/// Bytes that are searched at once: a mark is a bit of a word.
const BLOCK: usize = 64;

/// Bytes that are copied at once, since marks are seldom farther apart.
const COPY: usize = 16;

/// Copies bytes, and replaces each `mark` with the byte behind it by the `meaning` of that byte. The text ends in front
/// of a mark without a meaning, or of a mark that is the last byte. Also returns the length that was read.
fn without_marks(bytes: &[u8], mark: u8, mut meaning: impl FnMut(u8) -> Option<u8>) -> (Vec<u8>, usize) {
    let mut text = vec![0; bytes.len() + COPY];
    // Bytes that were searched, bytes that were copied or replaced, and what became of them.
    let (mut at, mut read, mut length) = (0, 0, 0);
    while bytes.len() - at > BLOCK + COPY
        && let Some(block) = bytes[at..].first_chunk()
    {
        let mut bits = places(block, mark);
        if read > at {
            // The mark in front of the block has replaced its first byte.
            bits &= !1;
        }
        while bits != 0 {
            let place = bits.trailing_zeros() as usize;
            let plain = at + place - read;
            match (bytes[read..].first_chunk::<COPY>(), text[length..].first_chunk_mut()) {
                (Some(from), Some(to)) if plain <= COPY => *to = *from,
                _ => text[length..length + plain].copy_from_slice(&bytes[read..read + plain]),
            }
            length += plain;
            let next = bytes[at + place + 1];
            let Some(byte) = meaning(next) else {
                text.truncate(length);
                return (text, at + place);
            };
            text[length] = byte;
            length += 1;
            read = at + place + 2;
            // A mark behind a mark is replaced with it.
            bits &= !(1 << place | u64::from(next == mark) << place << 1);
        }
        at += BLOCK;
    }
    if read < at {
        text[length..length + at - read].copy_from_slice(&bytes[read..at]);
        length += at - read;
        read = at;
    }
    while let Some(byte) = bytes.get(read) {
        text[length] = *byte;
        if *byte == mark {
            let Some(byte) = bytes.get(read + 1).and_then(|next| meaning(*next)) else { break };
            text[length] = byte;
            read += 1;
        }
        read += 1;
        length += 1;
    }
    text.truncate(length);
    (text, read)
}

/// A bit for each byte that is the mark, the first byte lowest.
fn places(block: &[u8; BLOCK], mark: u8) -> u64 {
    // A product with this word moves bit 0 of each of eight bytes into the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut is_mark = [0; BLOCK];
    for (is_mark, byte) in is_mark.iter_mut().zip(block) {
        *is_mark = u8::from(*byte == mark);
    }
    let mut places = 0;
    for word in is_mark.as_chunks().0.iter().rev() {
        places = places << 8 | u64::from_le_bytes(*word).wrapping_mul(GATHER) >> 56;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_ends_where_a_search_byte_by_byte_finds_its_end() {
        let plainly = |bytes: &[u8]| {
            let mut at = 0;
            while at < bytes.len() {
                match bytes[at] {
                    b'"' => return Some(at),
                    b'\\' => at += 2,
                    _ => at += 1,
                }
            }
            None
        };
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let length = random.usize(..150);
            let quotes = random.u8(1..60);
            let bytes: Vec<u8> = (0..length)
                .map(|_| match random.u8(..120) {
                    n if n < quotes => b'\\',
                    119 => b'"',
                    n if n < 2 * quotes && random.bool() => b'"',
                    _ => b'a',
                })
                .collect();
            let mut escaped: Vec<u8> = Vec::new();
            for byte in &bytes {
                if *byte == b'"' && random.u8(..50) > 0 {
                    escaped.push(b'\\');
                }
                escaped.push(*byte);
            }
            for bytes in [&bytes, &escaped] {
                assert_eq!(end(bytes, 0), plainly(bytes), "{}", String::from_utf8_lossy(bytes));
            }
        }
    }

    #[test]
    fn a_string_is_passed_in_any_pieces() {
        let inner = r#"a\\\"\\\\\n\\\"x"#.repeat(700);
        let text = format!("{inner}\n{inner}\" rest");
        for step in [1, 2, 3, 7, 100, 5000, text.len()] {
            let (mut at, mut lines, mut length) = (0, 0, step.min(text.len()));
            let end = loop {
                if at >= length {
                    length = (at + step).min(text.len());
                }
                let (stop, why) = pass(&text.as_bytes()[..length], at);
                match why {
                    Stop::End => break stop,
                    Stop::Line => lines += 1,
                    _ => {}
                }
                at = stop + 1 + usize::from(why == Stop::Escape);
            };
            assert_eq!((end, lines), (text.len() - 6, 1), "{step}");
        }
    }

    #[test]
    fn escapes_are_those_of_serde_json_or_left() {
        for inner in ["", "a", r#"{\"a\":\"b\\\\\\\"\"}"#, r"é\n\t\r\b\f\/\\"] {
            let expected: String = serde_json::from_str(&format!("\"{inner}\"")).unwrap();
            assert_eq!(without_escapes(inner), Some(expected), "{inner}");
        }
        for inner in [r"\u0041", r"\", r"\é", r"a\\\", r"\x"] {
            assert_eq!(without_escapes(inner), None, "{inner}");
            assert_eq!(without_escapes(&format!("abcdefghijk{inner}")), None, "{inner}");
        }
    }

    #[test]
    fn marks_are_replaced_as_byte_by_byte() {
        let mut random = fastrand::Rng::with_seed(11);
        let (mut whole, mut ended) = (0, 0);
        for _ in 0..20_000 {
            let marks = random.u8(1..90);
            let mark = if random.bool() { b'\\' } else { b'"' };
            let longest = if random.bool() { 60 } else { 400 };
            let bytes: Vec<u8> = (0..random.usize(..longest))
                .map(|_| if random.u8(..100) < marks { mark } else { random.u8(b'a'..=b'z') })
                .collect();
            // Like escapes, of which one is none.
            let meaning = |next: u8| (next != b'q').then_some(next.to_ascii_uppercase());
            let (mut text, mut at) = (Vec::new(), 0);
            while let Some(&byte) = bytes.get(at) {
                if byte != mark {
                    text.push(byte);
                    at += 1;
                } else if let Some(byte) = bytes.get(at + 1).and_then(|next| meaning(*next)) {
                    text.push(byte);
                    at += 2;
                } else {
                    break;
                }
            }
            (whole, ended) = (whole + u32::from(at == bytes.len()), ended + u32::from(at < bytes.len()));
            assert_eq!(without_marks(&bytes, mark, meaning), (text, at), "{}", String::from_utf8_lossy(&bytes));
        }
        assert!(whole > 5_000 && ended > 5_000, "{whole} {ended}");
    }
}
