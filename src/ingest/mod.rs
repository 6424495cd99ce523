//! Stage 1 of 5: bytes to records. Input: files, directories, pipes. Output: [`Record`]s with their [`Position`], and
//! counted problems.
//!
//! Invariants: no knowledge of rules, and no panic on any input. Results do not depend on the number of threads.
//! Records borrow from their line, so nothing is copied before a batch keeps it.
//!
//! ```
//! use retrograde::ingest::{Format, SourceRule, inputs};
//!
//! let missing = inputs(&["no-such-folder".into()], &[], &[]).unwrap_err();
//! assert!(missing.is_not_found());
//!
//! // The file does not say which server wrote it, and its beginning may not show its format.
//! let source = SourceRule { glob: "audit-a.log".into(), server: Some("a".into()), ..SourceRule::default() };
//! # let folder = std::env::temp_dir().join(format!("retrograde-inputs-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # std::fs::write(folder.join("audit-a.log"), "")?;
//! let found = inputs(&[folder.clone()], &[source], &[("*.log".into(), Format::Audit)])?;
//! assert_eq!(found.len(), 1);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
#[doc(hidden)]
pub mod call;
mod detection;
pub(crate) mod envelope;
#[doc(hidden)]
pub mod etcd;
pub(crate) mod etcd_watch;
pub(crate) mod export;
pub(crate) mod fields;
pub(crate) mod input;
pub(crate) mod json;
#[doc(hidden)]
pub mod kubernetes;
pub(crate) mod limits;
mod parser;
pub(crate) mod position;
pub(crate) mod problem;
pub(crate) mod reports;
mod reread;
pub(crate) mod timestamp;

pub use detection::format::Format;
pub use fields::Fields;
pub use input::InputFile;
pub use input::source::{InputError, inputs};
pub use input::source_rule::SourceRule;
pub use position::FileId;
pub use problem::Problem;

#[doc(hidden)]
pub use self::{
    call::is_operation,
    detection::sniff::Beginning,
    envelope::Origin,
    export::Export,
    input::identity::identify,
    input::stream::Opener,
    input::{Identity, Member},
    position::{Position, Time},
    problem::{FileSummary, Found},
    reports::{EtcdReport, Reports, etcd_reports},
    reread::{reread, reread_by},
};

use block::ordered_parallel;
use block::read_totals::{Entry, Ledger};
use block::reader::BlockReader;
use block::{Buffers, Piece};
use kubernetes::{audit, body, capture};
use std::sync::Arc;

/// One piece of evidence, borrowed from its line.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub enum Record<'a> {
    /// An audit event (one record for each event of an `EventList`).
    Audit(Box<audit::Event<'a>>),
    /// A capture line.
    Capture(Box<capture::Line<'a>>),
    /// One event of a raw watch stream.
    Watch(Box<capture::WatchEvent<'a>>),
    /// A list response, or a single object in a file.
    List(Box<body::Body<'a>>),
    /// A response of `etcdctl watch`.
    Etcd(Box<etcd_watch::Response<'a>>),
    /// An element of an operation log.
    Call(Box<call::Line<'a>>),
    /// An operation of an etcd client.
    EtcdOperation(Box<etcd::operation::Operation<'a>>),
    /// A part of a watch of an etcd client.
    EtcdWatch(Box<etcd::watch::Part<'a>>),
    /// Promises of the traffic in an etcd report.
    EtcdTraffic(etcd::traffic::Traffic),
    /// A record of an etcd member's write-ahead log.
    EtcdLog(Box<etcd::wal::Part<'a>>),
    /// One fact of an etcd member's store.
    EtcdStore(etcd::backend::Part<'a>),
}

/// A record that a batch refuses after parsing. It becomes a [`Problem`] of its line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Refused {
    /// Description of a valid record, without the word "expected".
    pub expected: String,
    /// Description of the actual one.
    pub found: Found,
}

/// The result of one block, filled by a worker; see [`read`].
#[doc(hidden)]
pub trait Batch: Send {
    /// Takes one record. `line` counts from 0 within the block; in binary files it counts records. `offset` is the
    /// byte offset of the line or document in the decompressed file. An error becomes a problem of the line, and the
    /// batch continues.
    fn record(&mut self, line: u32, offset: u64, record: Record<'_>) -> Result<(), Refused>;

    /// Takes the writer of the audit events that follow, as their envelope names it. It comes before the first event
    /// with a name, and at each change.
    fn origin(&mut self, _origin: &Origin<'_>) {}
}

/// Options of [`read`].
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Number of parser threads; 0: one per core.
    pub threads: usize,
    /// Least bytes of a block, the unit of work of a thread. Each block has its own table of names, which costs time
    /// at the merge.
    pub block_bytes: usize,
    /// Longest line or document in bytes; a longer one is a problem. It bounds memory.
    pub max_line_bytes: usize,
    /// Declared fields that are kept.
    pub fields: Arc<Fields>,
    /// Functions of operation logs that have other names than in the models: the name in the log, and that of the model.
    pub functions: Arc<[(String, String)]>,
}

impl ReadOptions {
    /// Least bytes of a block of a format. Operations need a few times the memory of their text, so their blocks are
    /// small.
    fn block(&self, format: Format) -> usize {
        let most = if format.is_operation_log() { 1 << 20 } else { usize::MAX };
        self.block_bytes.clamp(1, most)
    }

    /// Longest value of a format in bytes. One watch of an etcd client is one value, and a member's file from a
    /// stream is read whole.
    fn longest(&self, format: Format) -> usize {
        if format.is_of_etcd() {
            self.max_line_bytes.saturating_mul(limits::LONGER_OF_ETCD)
        } else {
            self.max_line_bytes
        }
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            threads: 0,
            block_bytes: 8 << 20,
            max_line_bytes: limits::LONGEST_LINE,
            fields: Arc::default(),
            functions: Arc::default(),
        }
    }
}

/// Receives the progress of reading.
pub trait Progress: Sync {
    /// Reports `_n` more bytes from disk, before decompression.
    fn bytes(&self, _n: u64) {}
}

impl Progress for () {}

/// Result of [`read`].
#[derive(Clone, Debug, Default)]
#[doc(hidden)]
pub struct Reading {
    /// One summary per input, in the order of the inputs.
    pub files: Vec<FileSummary>,
    /// The problems by file and line; of each file no more than `limits::KEPT_PROBLEMS_PER_FILE`, of all no more than
    /// `limits::KEPT_PROBLEMS`.
    pub problems: Vec<Problem>,
}

/// Reads all inputs.
///
/// Workers call `start` for each block of evidence and fill the batch that it returns. `merge` receives the batches
/// in the order of files and lines, whatever the number of threads, with the number (from 1) of the line from which
/// the batch counts. It runs while later blocks are parsed.
///
/// Memory is bounded by a few blocks per thread, and by the longest line. Evidence that cannot be used is counted and
/// described, never fatal.
#[doc(hidden)]
pub fn read<B: Batch>(
    files: &[InputFile],
    options: &ReadOptions,
    progress: &dyn Progress,
    start: impl Fn(&InputFile, Format) -> B + Sync,
    mut merge: impl FnMut(FileId, u32, B) + Send,
) -> Reading {
    let buffers = Buffers::default();
    let mut reader = BlockReader::new(files, options, progress, &buffers);
    let mut ledger = Ledger::new(files);
    ordered_parallel::in_order(
        options.threads,
        || reader.unit(),
        |unit| {
            let entry = |piece| match piece {
                Piece::Closed(closed) => Entry::Closed(closed),
                Piece::Whole(whole) => {
                    let mut batch = start(&files[whole.file], whole.format);
                    let tally = parser::parse_whole(&whole, &mut batch);
                    Entry::Block { file: whole.file, batch: Some(batch), tally }
                }
                Piece::Block(block) => {
                    let (batch, tally) = match block.format {
                        Format::LegacyAudit => (None, parser::count_lines(&block)),
                        format => {
                            let mut batch = start(&files[block.file], format);
                            let tally = fields::field_capture::during(options.fields.tree(), || {
                                parser::parse(&block, options.longest(format), &mut batch)
                            });
                            (Some(batch), tally)
                        }
                    };
                    buffers.give_back(block.storage, options.block_bytes);
                    Entry::Block { file: block.file, batch, tally }
                }
            };
            unit.into_iter().map(entry).collect::<Vec<_>>()
        },
        |entries| {
            for entry in entries {
                if let Some((file, line, batch)) = ledger.enter(entry) {
                    merge(file, line, batch);
                }
            }
        },
    );
    ledger.reading()
}

#[cfg(test)]
mod tests;
