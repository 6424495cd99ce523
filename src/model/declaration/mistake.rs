//! Mistakes in files of declarations, shown at their place in the line.

use std::fmt;
use std::ops::Range;

/// A mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The line's text, shortened.
    pub excerpt: String,
    /// Characters of the excerpt before the mistake.
    before: usize,
    /// Characters that are wrong.
    width: usize,
    /// What is wrong.
    pub message: String,
}

/// Characters shown on either side of the mistake.
const MARGIN: usize = 60;

impl Mistake {
    /// A mistake in these bytes of a text.
    pub(super) fn new(file: &str, text: &str, span: Range<usize>, message: &str) -> Mistake {
        let boundary = |at: usize| (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let (start, end) = (boundary(span.start), boundary(span.end.max(span.start)));
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let column = text[line_start..start].chars().count();
        let skipped = column.saturating_sub(MARGIN);
        let width = text[start..end.min(line_end).max(start)].chars().count().max(1);
        let excerpt: String = text[line_start..line_end]
            .chars()
            .skip(skipped)
            .take(column - skipped + width.min(MARGIN) + MARGIN)
            .map(|c| if c == '\t' { ' ' } else { c })
            .collect();
        Mistake {
            file: file.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            column: column + 1,
            excerpt: excerpt.trim_end().to_owned(),
            before: column - skipped,
            width: width.min(MARGIN),
            message: message.to_owned(),
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        let number = self.line.to_string();
        writeln!(f, "{number} | {}", self.excerpt)?;
        write!(f, "{:>pad$} | {:>before$}{}", "", "", "^".repeat(self.width), pad = number.len(), before = self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_underlined_in_its_line() {
        let text = "a = 1\nb = \"ä wrong\"\n";
        let at = text.find("wrong").unwrap();
        let mistake = Mistake::new("x.toml", text, at..at + 5, "not so");
        assert_eq!(mistake.to_string(), "x.toml:2:8: not so\n2 | b = \"ä wrong\"\n  |        ^^^^^");
    }

    #[test]
    fn long_lines_are_cut_around_the_mistake_and_no_span_makes_it_panic() {
        let text = format!("{}ö{}", "x".repeat(500), "y".repeat(500));
        let mistake = Mistake::new("x", &text, 500..10_000, "m");
        assert!(mistake.excerpt.chars().count() <= 3 * MARGIN && mistake.column == 501);
        for span in [0..0, 501..501, 9_999..9_999] {
            assert!(!Mistake::new("x", &text, span, "m").to_string().is_empty());
        }
        assert_eq!(Mistake::new("x", "", 0..0, "m").line, 1);
    }
}
