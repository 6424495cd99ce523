//! Cuts lines of evidence for the page to the members on the allow-list of their format ([`shape`]).
//!
//! An unknown member may hold the data of a Secret, and so may a line that does not parse, so neither is shown. Operation logs
//! are the exception: a line that parses as an operation is shown whole, since it holds nothing but the history.

mod shape;
#[cfg(test)]
mod tests;

use crate::explain::terminal_text::visible;
use crate::history::History;
use crate::ingest::{self, FileId, Format, Position};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Characters per excerpt.
const MAX_CHARACTERS: usize = 4_000;

/// The lines at these positions, if they can be read again and shown.
pub(super) fn read(history: &History, positions: &[Position]) -> FxHashMap<Position, String> {
    // In the order of the files, so that an archive is read in one pass.
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

/// The visible part of a line of a format; `None` if there is none.
fn excerpt(format: Format, line: &str) -> Option<String> {
    let text = match shape::of(format) {
        Some(shape) => serde_json::to_string_pretty(&shape.members(line)?).ok()?,
        None if ingest::is_operation(format, line) => visible(line.trim_end()).into_owned(),
        None => return None,
    };
    Some(match text.char_indices().nth(MAX_CHARACTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    })
}
