//! Lays out text for people: wrapped lines, aligned labels, and colour only on request.
//!
//! Every text goes through `terminal_text`, so that a sink cannot forget it.

use crate::explain::terminal_text::{clip, visible, width, wrap};
use std::io::{self, Write};

/// The look of text for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns per line.
    pub columns: usize,
    /// Whether to write colours.
    pub colour: bool,
    /// Whether to list everything instead of the first items.
    pub verbose: bool,
}

impl Default for Look {
    fn default() -> Self {
        Look { columns: 100, colour: false, verbose: false }
    }
}

/// The role of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Running text.
    Plain,
    /// A title.
    Title,
    /// Proved wrong.
    Bad,
    /// Open, or unsafe.
    Doubt,
    /// In order.
    Good,
    /// A detail.
    Faint,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Title => "1",
            Tone::Bad => "1;31",
            Tone::Doubt => "33",
            Tone::Good => "32",
            Tone::Faint => "2",
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The heading; a table without any heading has no heading line.
    pub title: &'static str,
    /// The maximal width; longer cells lose their middle.
    pub at_most: usize,
    /// Whether to align right, as for numbers.
    pub right: bool,
}

impl Column {
    /// A column of text.
    pub const fn left(title: &'static str, at_most: usize) -> Column {
        Column { title, at_most, right: false }
    }

    /// A column of numbers.
    pub const fn right(title: &'static str, at_most: usize) -> Column {
        Column { title, at_most, right: true }
    }
}

/// A row of a table.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Cells, one per column.
    pub cells: Vec<String>,
    /// Text that wraps beside the cells, or below them.
    pub text: String,
    /// Place in the evidence; may be empty.
    pub place: String,
}

impl Row {
    /// A row without a place.
    pub fn new(cells: Vec<String>, text: String) -> Row {
        Row { cells, text, place: String::new() }
    }

    fn whole(&self) -> String {
        let place = if self.place.is_empty() { String::new() } else { format!(" [{}]", self.place) };
        visible(&self.text).into_owned() + &visible(&place)
    }
}

/// A page in progress.
pub struct Page<'w> {
    out: &'w mut dyn Write,
    look: Look,
}

impl<'w> Page<'w> {
    /// An empty page.
    pub fn new(out: &'w mut dyn Write, look: Look) -> Self {
        Page { out, look }
    }

    /// The look.
    pub fn look(&self) -> Look {
        self.look
    }

    /// An empty line.
    pub fn gap(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// A title at the left edge, after an empty line.
    pub fn title(&mut self, text: &str) -> io::Result<()> {
        self.gap()?;
        self.paragraph(0, Tone::Title, text)
    }

    /// Text, wrapped, `indent` columns from the left.
    pub fn paragraph(&mut self, indent: usize, tone: Tone, text: &str) -> io::Result<()> {
        for line in wrap(&visible(text), self.look.columns.saturating_sub(indent)) {
            self.put(indent, &[(tone, &line)])?;
        }
        Ok(())
    }

    /// A label of `room` columns, with text beside it that wraps below its own begin.
    pub fn labelled(&mut self, indent: usize, room: usize, label: (Tone, &str), text: &str) -> io::Result<()> {
        let label_text = clip(label.1, room.saturating_sub(1));
        let padding = " ".repeat(room.saturating_sub(width(&label_text)));
        let lines = wrap(&visible(text), self.look.columns.saturating_sub(indent + room));
        let first = lines.first().map_or("", String::as_str);
        self.put(indent, &[(label.0, &label_text), (Tone::Plain, &padding), (Tone::Plain, first)])?;
        for line in lines.iter().skip(1) {
            self.put(indent + room, &[(Tone::Plain, line)])?;
        }
        Ok(())
    }

    /// Rows in aligned columns, with text and place wrapped in the rest of the line. If that takes more than two lines, the place
    /// ends the line and the text follows below. Columns without any cell are omitted.
    pub fn table(&mut self, indent: usize, columns: &[Column], rows: &[Row]) -> io::Result<()> {
        let cells: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.cells.iter().zip(columns).map(|(cell, column)| clip(cell, column.at_most)).collect())
            .collect();
        let widths = widths(columns, &cells);
        let fixed: usize = widths.iter().filter(|w| **w > 0).map(|w| w + 2).sum();
        let left = self.look.columns.saturating_sub(indent + fixed);
        let beside = left >= 28 && rows.iter().all(|row| wrap(&row.whole(), left).len() <= 2);
        if !rows.is_empty() && columns.iter().any(|column| !column.title.is_empty()) {
            let titles = columns.iter().map(|column| column.title.to_owned()).collect::<Vec<_>>();
            let line = clip(aligned(columns, &widths, &titles).trim_end(), self.look.columns - indent);
            self.put(indent, &[(Tone::Faint, &line)])?;
        }
        for (row, cells) in rows.iter().zip(&cells) {
            let head = aligned(columns, &widths, cells);
            let (end, at, lines) = if beside {
                let mut lines = wrap(&row.whole(), left).into_iter();
                (lines.next().unwrap_or_default(), indent + fixed, lines.collect())
            } else if row.place.is_empty() || left < 12 {
                (String::new(), indent + 4, wrap(&row.whole(), self.look.columns - indent - 4))
            } else {
                let place = format!("[{}]", clip(&row.place, left - 2));
                (place, indent + 4, wrap(&visible(&row.text), self.look.columns - indent - 4))
            };
            self.put(indent, &[(Tone::Plain, &clip((head + &end).trim_end(), self.look.columns - indent))])?;
            for line in lines {
                self.put(at, &[(Tone::Plain, &line)])?;
            }
        }
        Ok(())
    }

    /// One line of pieces that are escaped and fit.
    fn put(&mut self, indent: usize, pieces: &[(Tone, &str)]) -> io::Result<()> {
        let mut line = " ".repeat(indent);
        for (tone, text) in pieces {
            if self.look.colour && *tone != Tone::Plain && !text.is_empty() {
                line += &format!("\x1b[{}m{text}\x1b[0m", tone.code());
            } else {
                line += text;
            }
        }
        writeln!(self.out, "{}", line.trim_end())
    }
}

/// The width of each column: that of its widest cell or its heading, and 0 without any cell.
fn widths(columns: &[Column], cells: &[Vec<String>]) -> Vec<usize> {
    let widest = |at: usize| cells.iter().filter_map(|row| row.get(at)).map(|cell| width(cell)).max().unwrap_or(0);
    let wide = |(at, column): (usize, &Column)| match widest(at) {
        0 => 0,
        widest => widest.max(width(column.title)),
    };
    columns.iter().enumerate().map(wide).collect()
}

/// Cells or headings as one line.
fn aligned(columns: &[Column], widths: &[usize], cells: &[String]) -> String {
    let mut line = String::new();
    for ((cell, column), &wide) in cells.iter().zip(columns).zip(widths).filter(|(_, wide)| **wide > 0) {
        let padding = " ".repeat(wide - width(cell));
        line += &if column.right { format!("{padding}{cell}  ") } else { format!("{cell}{padding}  ") };
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(look: Look, draw: impl FnOnce(&mut Page<'_>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        draw(&mut Page::new(&mut out, look)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn labels_align_and_their_text_hangs() {
        let look = Look { columns: 24, ..Look::default() };
        let text = drawn(look, |page| page.labelled(2, 6, (Tone::Bad, "Why"), "one two three four five"));
        assert_eq!(text, "  Why   one two three\n        four five\n");
    }

    #[test]
    fn colour_is_written_only_where_it_was_asked_for() {
        let draw = |page: &mut Page<'_>| page.paragraph(0, Tone::Bad, "no\u{1b}[31m");
        assert_eq!(drawn(Look::default(), draw), "no\\u{1b}[31m\n");
        let coloured = drawn(Look { colour: true, ..Look::default() }, draw);
        assert_eq!(coloured, "\u{1b}[1;31mno\\u{1b}[31m\u{1b}[0m\n");
    }

    #[test]
    fn a_table_drops_empty_columns_and_wraps_its_last() {
        let columns = [Column::left("", 8); 3];
        let row = |a: &str, b: &str| Row::new(vec![a.to_owned(), String::new(), b.to_owned()], "text ".repeat(9));
        let look = Look { columns: 50, ..Look::default() };
        let text = drawn(look, |page| page.table(2, &columns, &[row("a", "long-long-name"), row("bb", "c")]));
        assert_eq!(text.lines().next(), Some("  a   long…ame  text text text text text text text"));
        assert!(text.lines().all(|line| width(line) <= 50), "{text}");
    }

    #[test]
    fn a_long_text_stands_below_its_row_and_the_place_ends_the_row() {
        let row = Row { cells: vec!["cell".to_owned()], text: "text ".repeat(30), place: "a.log:7".to_owned() };
        let look = Look { columns: 60, ..Look::default() };
        let text = drawn(look, |page| page.table(2, &[Column::left("", 8)], &[row]));
        assert!(text.starts_with("  cell  [a.log:7]\n      text text"), "{text}");
    }
}
