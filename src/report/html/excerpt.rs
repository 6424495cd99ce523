//! Lines of the evidence as the page shows them: the members of the allow-list of their format ([`shape`]), and nothing else.
//!
//! A member that nobody thought of may hold the data of a Secret, and so may a line that does not parse. Neither is shown. Only
//! an operation log is shown as it stands, and only where its line reads as an operation: what it holds is the history.

mod shape;
#[cfg(test)]
mod tests;

use crate::explain::terminal_text::visible;
use crate::history::History;
use crate::ingest::{self, FileId, Format, Position};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Characters of one excerpt.
const LONGEST: usize = 4_000;

/// The lines at these positions, as far as they can be read again and shown.
pub(super) fn read(history: &History, positions: &[Position]) -> FxHashMap<Position, String> {
    // In the order of the files: those of an archive are then read in one pass.
    let mut by_file: BTreeMap<FileId, Vec<Position>> = BTreeMap::new();
    for position in positions {
        by_file.entry(position.file).or_default().push(*position);
    }
    let mut found = FxHashMap::default();
    let mut opener = ingest::Opener::default();
    for (file, positions) in by_file {
        let Some(input) = history.input(file) else { continue };
        let format = history.files.get(file.0 as usize).and_then(|file| file.format).and_then(Format::from_name);
        let Some(format) = format else { continue };
        for (position, text) in positions.iter().zip(ingest::reread_by(&mut opener, input, &positions)) {
            if let Some(shown) = text.and_then(|text| excerpt(format, &text)) {
                found.insert(*position, shown);
            }
        }
    }
    found
}

/// What is shown of a line of a format; `None` where that is nothing.
fn excerpt(format: Format, line: &str) -> Option<String> {
    let text = match shape::of(format) {
        Some(shape) => serde_json::to_string_pretty(&shape.members(line)?).ok()?,
        None if ingest::is_operation(format, line) => visible(line.trim_end()).into_owned(),
        None => return None,
    };
    Some(match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    })
}
