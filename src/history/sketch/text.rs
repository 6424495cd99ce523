//! Splits a line into words with their columns.

use super::error::SketchError;
use super::syntax::Place;

/// A piece of a line.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'t> {
    /// Its text.
    pub text: &'t str,
    /// Place of its first character.
    pub at: Place,
}

impl<'t> Piece<'t> {
    /// A whole line.
    pub fn line(text: &'t str, number: u32) -> Piece<'t> {
        Piece { text, at: Place { line: number, column: 0 } }
    }

    /// The part from byte `from` to byte `to`.
    pub fn part(self, from: usize, to: usize) -> Piece<'t> {
        let column = self.at.column + self.text[..from].chars().count() as u32;
        Piece { text: &self.text[from..to], at: Place { column, ..self.at } }
    }

    /// The part from byte `from` on.
    pub fn after(self, from: usize) -> Piece<'t> {
        self.part(from, self.text.len())
    }

    /// Without surrounding white space.
    pub fn trimmed(self) -> Piece<'t> {
        let from = self.text.len() - self.text.trim_start().len();
        self.part(from, self.text.trim_end().len().max(from))
    }

    /// The rest after a prefix.
    pub fn strip(self, prefix: &str) -> Option<Piece<'t>> {
        self.text.strip_prefix(prefix).map(|_| self.after(prefix.len()))
    }

    /// The content between `open` and `close`, if they enclose the whole piece.
    pub fn enclosed(self, open: char, close: char) -> Option<Piece<'t>> {
        let inner = self.text.strip_prefix(open)?.strip_suffix(close)?;
        Some(self.part(1, 1 + inner.len()))
    }

    /// Splits at the first `separator`, which belongs to neither part.
    pub fn split(self, separator: char) -> (Piece<'t>, Option<Piece<'t>>) {
        match self.text.find(separator) {
            Some(at) => (self.part(0, at), Some(self.after(at + separator.len_utf8()))),
            None => (self, None),
        }
    }

    /// The place after the last character.
    pub fn end(self) -> Place {
        Place { column: self.at.column + self.text.chars().count() as u32, ..self.at }
    }

    /// The error that this piece should have been something else.
    pub fn unexpected(self, expected: impl Into<String>) -> SketchError {
        let found = if self.text.is_empty() { "nothing".to_owned() } else { format!("{:?}", self.text) };
        SketchError::at(self.at, expected, found)
    }

    /// Parses a whole number.
    pub fn number(self, what: &str) -> Result<u128, SketchError> {
        let digits = !self.text.is_empty() && self.text.bytes().all(|b| b.is_ascii_digit());
        let number = if digits { self.text.parse().ok() } else { None };
        number.ok_or_else(|| self.unexpected(what))
    }

    /// Words, separated by white space (and by `,` if `commas`). Brackets hold their content together.
    pub fn words(self, commas: bool) -> Result<Vec<Piece<'t>>, SketchError> {
        let mut words = Vec::new();
        let mut start = None;
        let mut open: Vec<(usize, char)> = Vec::new();
        for (at, c) in self.text.char_indices() {
            let separates = open.is_empty() && (c.is_whitespace() || (commas && c == ','));
            if separates {
                if let Some(from) = start.take() {
                    words.push(self.part(from, at));
                }
                continue;
            }
            start.get_or_insert(at);
            match c {
                '(' | '[' | '{' => open.push((at, c)),
                ')' | ']' | '}' => match open.pop() {
                    Some((_, o)) if partner(o) == c => {}
                    Some((_, o)) => {
                        return Err(self.part(at, at + 1).unexpected(format!("{:?}", partner(o).to_string())));
                    }
                    None => return Err(self.part(at, at + 1).unexpected("no closing bracket without an opening one")),
                },
                _ => {}
            }
        }
        if let Some((at, o)) = open.pop() {
            let place = self.after(at);
            return Err(place.unexpected(format!("a later {:?}", partner(o).to_string())));
        }
        if let Some(from) = start {
            words.push(self.after(from));
        }
        Ok(words)
    }
}

fn partner(open: char) -> char {
    match open {
        '(' => ')',
        '[' => ']',
        _ => '}',
    }
}
