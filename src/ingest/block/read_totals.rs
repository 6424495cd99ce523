//! Adds up the results of blocks, file by file, in order.
//!
//! Blocks count lines from 0; the sums here give each block the number of its first line. Problems are kept within
//! limits; the first of a file and those of whole files always are.

use super::Closed;
use crate::ingest::Reading;
use crate::ingest::detection::format::Format;
use crate::ingest::input::InputFile;
use crate::ingest::limits::{KEPT_PROBLEMS, KEPT_PROBLEMS_PER_FILE};
use crate::ingest::parser::Tally;
use crate::ingest::position::FileId;
use crate::ingest::problem::{Fault, FileSummary, Found, Problem, count};

/// One result of a worker.
pub(in crate::ingest) enum Entry<B> {
    /// A parsed block.
    Block { file: usize, batch: Option<B>, tally: Tally },
    /// The end of a file.
    Closed(Closed),
}

/// Running totals.
pub(in crate::ingest) struct Ledger<'a> {
    inputs: &'a [InputFile],
    reading: Reading,
    /// Line number at which the next block begins.
    line: u32,
    /// Problems kept of the present file.
    kept: usize,
    /// Records of the present file that its recorder dropped.
    dropped: u64,
}

impl<'a> Ledger<'a> {
    pub fn new(inputs: &'a [InputFile]) -> Ledger<'a> {
        let files = inputs.iter().map(|input| FileSummary { path: input.shown.clone(), ..FileSummary::default() });
        Ledger {
            inputs,
            reading: Reading { files: files.collect(), problems: Vec::new() },
            line: 1,
            kept: 0,
            dropped: 0,
        }
    }

    /// Adds a result. Returns the batch with its file and the number of its first line.
    pub fn enter<B>(&mut self, entry: Entry<B>) -> Option<(FileId, u32, B)> {
        match entry {
            Entry::Block { file, batch, tally } => {
                let first = self.line;
                let summary = &mut self.reading.files[file];
                summary.lines += tally.lines;
                summary.records += tally.records;
                summary.problems += tally.problems;
                summary.unknown += tally.unknown;
                self.dropped = self.dropped.saturating_add(tally.dropped);
                summary.export.add(tally.export);
                for (line, fault) in tally.kept {
                    self.keep(file, first.saturating_add(line), fault);
                }
                self.line = first.saturating_add(tally.line_ends);
                batch.map(|batch| (self.inputs[file].id, first, batch))
            }
            Entry::Closed(closed) => {
                self.close(closed);
                None
            }
        }
    }

    fn close(&mut self, closed: Closed) {
        let file = closed.file;
        let summary = &mut self.reading.files[file];
        summary.format = closed.format.map(Format::name);
        summary.ignored = closed.ignored;
        summary.bytes = closed.bytes;
        summary.has_grown = closed.has_grown;
        if closed.format == Some(Format::LegacyAudit) {
            let lines = summary.lines;
            summary.problems += lines;
            let found = Found::described(format!("{lines} lines of the legacy audit format"));
            self.keep(file, 0, Fault::new("audit events as JSON (record with --audit-log-format=json)", found));
        }
        // Problems of the whole file must be kept: they show that the file is incomplete.
        let dropped = std::mem::take(&mut self.dropped);
        let whole = closed.faults.len() + usize::from(dropped > 0);
        self.kept = self.kept.min(KEPT_PROBLEMS_PER_FILE.saturating_sub(whole));
        for fault in closed.faults {
            self.reading.files[file].problems += 1;
            self.keep(file, 0, fault);
        }
        if dropped > 0 {
            let problems = &mut self.reading.files[file].problems;
            *problems = problems.saturating_add(dropped);
            let found = Found::described(format!("{} that the recorder dropped", count(dropped, "record")));
            self.keep(file, 0, Fault::new("every record of the client", found));
        }
        (self.line, self.kept) = (1, 0);
    }

    fn keep(&mut self, file: usize, line: u32, fault: Fault) {
        // The first problem of a file shows from where on it may be incomplete, and one of the whole file that it is.
        let must_be_seen = self.kept == 0 || line == 0;
        if self.kept == KEPT_PROBLEMS_PER_FILE || (self.reading.problems.len() >= KEPT_PROBLEMS && !must_be_seen) {
            return;
        }
        self.kept += 1;
        let input = &self.inputs[file];
        let (path, Fault { expected, found }) = (input.shown.clone(), fault);
        self.reading.problems.push(Problem { file: Some(input.id), path, line, expected, found: found.into() });
    }

    pub fn reading(self) -> Reading {
        self.reading
    }
}
