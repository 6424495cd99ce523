//! Boundaries of the contract as a table for people and as JSON. This is the output of `retrograde explore --boundaries`.

use super::page::{Column, Page, Row, Tone};
use crate::explore::{Action, Boundary};
use serde::Serialize;
use std::io;

/// The name of the JSON format.
pub const SCHEMA: &str = "retrograde/boundaries/1";

/// Writes the table.
pub fn write(page: &mut Page<'_>, found: &[Boundary]) -> io::Result<()> {
    let columns = [Column::left("answer of", 16), Column::left("never of", 16)];
    let rows =
        found.iter().map(|boundary| Row::new(vec![boundary.row.to_owned(), boundary.other.to_owned()], run(boundary)));
    page.table(2, &columns, &rows.collect::<Vec<_>>())?;
    page.gap()?;
    let text = "Before each run there is one object, and the caches of two servers have it. list: list the most recent state; its \
                version is the one that a read names. hold: wait until the second server has all writes, and then keep its cache \
                there. read: send the read of the first column to the second server.";
    page.paragraph(2, Tone::Faint, text)
}

/// A run in words.
fn run(boundary: &Boundary) -> String {
    let word = |action: &Action| match action {
        Action::Write => "write",
        Action::Know => "list",
        Action::Hold => "hold",
        Action::Read => "read",
    };
    let words: Vec<&str> = boundary.actions.iter().map(word).collect();
    let writes = boundary.actions.iter().filter(|action| **action == Action::Write).count();
    format!("{}: {} of {writes} writes shown", words.join(", "), boundary.shown)
}

#[derive(Serialize)]
struct Document<'b> {
    schema: &'static str,
    boundaries: &'b [Boundary],
}

/// Writes the same as JSON.
pub fn json(out: &mut dyn io::Write, found: &[Boundary]) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &Document { schema: SCHEMA, boundaries: found })?;
    writeln!(out)
}
