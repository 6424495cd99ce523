//! Text of the evidence, made safe and measurable for terminals: control characters become visible, and long names are cut in the
//! middle.
//!
//! Any client that can send a request chooses names. Printed raw, a name could move the cursor, hide a line, or reverse a
//! sentence (the "Trojan Source" marks).

use std::borrow::Cow;
use std::fmt::Write as _;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text with every control, direction and invisible character as an escape (`\n`, `\u{1b}`, `\u{202e}`).
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ if acts(c) => write!(shown, "\\u{{{:x}}}", u32::from(c)).expect("a String takes all"),
            _ => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Whether a character does anything else than show itself.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' // zero width, direction marks
            | '\u{2028}'..='\u{202e}' // separators, embeddings and overrides
            | '\u{2060}'..='\u{206f}' // joiners, isolates
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}') // tags
        || is_no_character(c)
}

/// The noncharacters of Unicode; XML 1.0 forbids two of them.
fn is_no_character(c: char) -> bool {
    matches!(u32::from(c), 0xfdd0..=0xfdef) || u32::from(c) & 0xfffe == 0xfffe
}

/// The width of a text on a terminal, in columns.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text in at most `columns` columns, with `…` for its middle if it is longer. Both ends of a name matter more than the
/// middle: a pod name begins with its controller and ends with its random part.
pub fn shorten(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let room = columns.saturating_sub(1);
    let (front, back) = (room.div_ceil(2), room / 2);
    let head = prefix(text.chars(), front);
    let tail: String = prefix(text.chars().rev(), back).chars().rev().collect();
    Cow::Owned(format!("{head}…{tail}"))
}

/// The longest prefix that fits.
fn prefix(characters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    characters
        .take_while(|c| {
            let needed = c.width().unwrap_or(0);
            let fits = needed <= left;
            left = left.saturating_sub(needed);
            fits
        })
        .collect()
}

/// The text made visible, in at most `columns` columns.
pub fn clip(text: &str, columns: usize) -> String {
    shorten(&visible(text), columns).into_owned()
}

/// Breaks a visible text at spaces into lines of at most `columns` columns, 8 at least. A longer word is cut in its middle.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(8);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let word = shorten(word, columns);
        let needed = width(&word);
        if used > 0 && used + 1 + needed > columns {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(&word);
        used += needed;
    }
    if used > 0 {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_upon_is_written_out() {
        assert_eq!(visible("web-0"), "web-0");
        assert_eq!(visible("a\u{1b}[2Jb\n\tc\u{7f}\u{9b}"), "a\\u{1b}[2Jb\\n\\tc\\u{7f}\\u{9b}");
        assert_eq!(visible("pod\u{202e}0-bew\u{200b}"), "pod\\u{202e}0-bew\\u{200b}");
        assert_eq!(visible("Köln 東京"), "Köln 東京");
        assert_eq!(visible("\u{fffe}\u{ffff}\u{10ffff}"), "\\u{fffe}\\u{ffff}\\u{10ffff}");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shorten("web-0", 5), "web-0");
        assert_eq!(shorten("deployment-7d9c5b6f4-x7k2p", 11), "deplo…x7k2p");
        assert_eq!(shorten("東京東京東京", 5), "東…京");
        for columns in 1..40 {
            assert!(width(&shorten("a-long-name-of-several-parts", columns)) <= columns);
        }
    }

    #[test]
    fn lines_break_at_spaces_and_never_run_over() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert!(wrap("", 8).is_empty());
        assert_eq!(wrap("x 0123456789abcdef", 9), ["x", "0123…cdef"]);
    }
}
