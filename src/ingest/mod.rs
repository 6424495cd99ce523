//! Stage 1 of 5: bytes to records. Input: files, directories, pipes. Output: [`Record`]s with their [`Position`], problems
//! counted. Invariant: knows no rule, and panics on no input.

pub mod audit;
pub mod capture;
pub mod etcd_watch;
pub mod format;
pub mod object;
pub mod position;
pub mod problem;
pub mod source;
pub mod timestamp;

pub use format::Format;
pub use position::{FileId, Position, Time};
pub use problem::{FileSummary, Problem};
pub use source::{InputFile, SourceRule};

/// One piece of evidence, borrowed from its line.
#[derive(Clone, Debug)]
pub enum Record<'a> {
    /// An audit event (one record for each event of an `EventList`).
    Audit(Box<audit::Event<'a>>),
    /// A capture line.
    Capture(Box<capture::Line<'a>>),
    /// One event of a raw watch stream.
    Watch(Box<capture::WatchEvent<'a>>),
    /// A list response or a single object in a file.
    List(Box<object::Body<'a>>),
    /// A response of `etcdctl watch`.
    Etcd(Box<etcd_watch::Response<'a>>),
}

/// Why a record was refused after it was parsed: becomes a [`Problem`] of its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What stood to reason.
    pub expected: String,
    /// What was found.
    pub found: String,
}

/// What a worker collects from one block of one file; see [`read`].
pub trait Batch: Send {
    /// Takes one record. `line` counts from 0 within the block, `offset` is the absolute byte offset of the line (or
    /// document) in the decompressed file. An error is counted as a problem of the line; the batch goes on.
    fn record(&mut self, line: u32, offset: u64, record: Record<'_>) -> Result<(), Refused>;
}
