//! The error of a sketch that cannot be parsed, with its place.

use super::syntax::Place;
use std::fmt;

/// A sketch that cannot be parsed: the place, what was expected there, and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SketchError {
    line: u32,
    column: u32,
    expected: String,
    found: String,
    text: String,
}

impl SketchError {
    /// The line of the sketch, from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The column in this line, from 1, in characters.
    pub fn column(&self) -> u32 {
        self.column
    }

    pub(super) fn at(place: Place, expected: impl Into<String>, found: impl Into<String>) -> SketchError {
        SketchError {
            line: place.line,
            column: place.column + 1,
            expected: expected.into(),
            found: found.into(),
            text: String::new(),
        }
    }

    /// Adds the line of the sketch to the error.
    pub(super) fn with_text(mut self, sketch: &str) -> SketchError {
        let line = sketch.lines().nth(self.line.saturating_sub(1) as usize).unwrap_or("");
        self.text = line.trim_end().to_owned();
        self
    }
}

impl fmt::Display for SketchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gutter = self.line.to_string();
        let pad = " ".repeat(gutter.len());
        writeln!(f, "line {}, column {}: expected {}, found {}", self.line, self.column, self.expected, self.found)?;
        writeln!(f, "{pad} |")?;
        writeln!(f, "{gutter} | {}", self.text)?;
        write!(f, "{pad} | {}^", " ".repeat(self.column.saturating_sub(1) as usize))
    }
}

impl std::error::Error for SketchError {}
