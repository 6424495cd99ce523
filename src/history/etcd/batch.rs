//! Turns the records of one block into rows. Names and spans are local to the block until [`Rows::append`] moves them.

use super::member_row::{LogFact, LogRow, StoreFact, StoreRow};
use super::operation::{Condition, Interval, Operation, Pair, Range, Request, Requests, Span, Step, StepResult, Txn};
use super::recording::CreationMarks;
use super::sightings::Sightings;
use super::value::{ValueId, Values};
use super::watch::{Event, Previous, Response, Watch};
use crate::history::Symbol;
use crate::history::interner::Interner;
use crate::ingest::{self, FileId, Format, Position, Record, Refused};

/// The rows of one block of one file.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Index of its recording, among those that are read together.
    pub recording: usize,
    /// The file, with its id in that recording.
    pub file: FileId,
    /// Its format.
    pub format: Option<Format>,
    pub rows: Rows,
    /// If `rows` are those of the recording, the number of operations before this block.
    pub behind: Option<usize>,
}

/// Rows with names and spans of their own tables.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub texts: Interner,
    pub values: Values,
    pub operations: Vec<Operation>,
    pub requests: Requests,
    pub results: Vec<StepResult>,
    pub pairs: Vec<Pair>,
    pub watches: Vec<Watch>,
    pub responses: Vec<Response>,
    pub events: Vec<Event>,
    pub log: Vec<LogRow>,
    pub store: Vec<StoreRow>,
    pub unique_revisions: bool,
    pub creation_marks: CreationMarks,
    /// The key in the latest request, the likely next one.
    pub last_key: Symbol,
    /// The last key and value seen at each revision.
    pub sightings: Sightings,
    /// A watch before its request was read: its position, and its first response.
    pub begun: Option<(Position, usize)>,
    /// Pieces of watches that were written while they ran.
    pub pieces: Vec<Piece>,
    /// Whether the current line belongs to the last piece.
    pub in_piece: bool,
    /// Number of watches and responses before the current line.
    pub object: (usize, usize),
}

/// A piece of a watch that was written while it ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Position.
    pub position: Position,
    /// The number of its watch in its file.
    pub number: u64,
    /// The watch, in [`Rows::watches`], if this piece has the request.
    pub watch: Option<u32>,
    /// The responses.
    pub responses: Span,
}

impl Batch {
    /// An empty batch.
    pub fn new(recording: usize, file: FileId, format: Format) -> Batch {
        Batch { recording, file, format: Some(format), ..Batch::default() }
    }

    /// A batch that appends operations to the rows of the recording itself.
    pub fn behind(rows: Rows, recording: usize, file: FileId, format: Format) -> Batch {
        Batch { behind: Some(rows.operations.len()), rows, ..Batch::new(recording, file, format) }
    }
}

impl ingest::Batch for Batch {
    fn record(&mut self, line: u32, offset: u64, record: Record<'_>) -> Result<(), Refused> {
        let position = Position { file: self.file, line, offset };
        match record {
            Record::EtcdOperation(operation) => self.rows.operation(position, &operation),
            Record::EtcdWatch(part) => self.rows.watch(position, &part),
            Record::EtcdTraffic(traffic) => {
                self.rows.unique_revisions |= traffic.unique_revisions;
                Ok(())
            }
            Record::EtcdLog(part) => self.rows.log(position, &part),
            Record::EtcdStore(part) => {
                self.rows.store(position, &part);
                Ok(())
            }
            _ => Err(Refused {
                expected: "evidence of an etcd cluster".to_owned(),
                found: "evidence of Kubernetes".into(),
            }),
        }
    }
}

/// The new ids of a batch's names, and the offsets of its spans.
pub(super) struct Moved {
    texts: Vec<Symbol>,
    values: Vec<ValueId>,
    base: Base,
    first_line: u32,
}

/// Lengths of the tables before the batch was appended.
#[derive(Clone, Copy, Default)]
struct Base {
    conditions: u32,
    steps: u32,
    results: u32,
    pairs: u32,
    responses: u32,
    events: u32,
}

impl Moved {
    /// Moves the names and spans of a log record.
    fn log_row(&self, row: &mut LogRow) {
        row.position = self.position(row.position);
        if let LogFact::Entry { request, .. } = &mut row.fact {
            *request = self.request(*request);
        }
    }

    /// Moves the names and spans of a store's fact.
    fn store_row(&self, row: &mut StoreRow) {
        row.position = self.position(row.position);
        if let StoreFact::Revision(revision) = &mut row.fact {
            revision.position = row.position;
            revision.key = self.text(revision.key);
            revision.value = self.value(revision.value);
        }
    }

    pub fn text(&self, symbol: Symbol) -> Symbol {
        if symbol.is_some() { self.texts[symbol.index()] } else { symbol }
    }

    pub fn value(&self, id: ValueId) -> ValueId {
        self.values[id.0 as usize]
    }

    pub fn position(&self, position: Position) -> Position {
        Position { line: position.line.saturating_add(self.first_line), ..position }
    }

    fn interval(&self, keys: Interval) -> Interval {
        Interval { key: self.text(keys.key), end: self.text(keys.end) }
    }

    fn range(&self, range: Range) -> Range {
        Range { keys: self.interval(range.keys), ..range }
    }

    fn txn(&self, txn: Txn) -> Txn {
        Txn {
            conditions: txn.conditions.moved(self.base.conditions),
            success: txn.success.moved(self.base.steps),
            failure: txn.failure.moved(self.base.steps),
        }
    }

    pub fn request(&self, request: Request) -> Request {
        match request {
            Request::Range(range) => Request::Range(self.range(range)),
            Request::Txn(txn) => Request::Txn(self.txn(txn)),
            other => other,
        }
    }

    fn step(&self, step: Step) -> Step {
        match step {
            Step::Range(range) => Step::Range(self.range(range)),
            Step::Put { key, value, lease, keeps_value, keeps_lease } => {
                Step::Put { key: self.text(key), value: self.value(value), lease, keeps_value, keeps_lease }
            }
            Step::Delete(keys) => Step::Delete(self.interval(keys)),
            Step::Txn(txn) => Step::Txn(self.txn(txn)),
            Step::Nothing => Step::Nothing,
        }
    }

    fn event(&self, event: &Event) -> Event {
        let previous = event.previous.map(|previous| Previous { value: self.value(previous.value), ..previous });
        Event {
            line: event.line.saturating_add(self.first_line),
            key: self.text(event.key),
            value: self.value(event.value),
            previous,
            ..*event
        }
    }
}

impl Rows {
    /// Appends the rows of a batch. Rows of members stay in the batch, with the names of these tables.
    pub fn append(&mut self, first_line: u32, batch: &mut Rows) -> Moved {
        let base = Base {
            conditions: self.requests.conditions.len() as u32,
            steps: self.requests.steps.len() as u32,
            results: self.results.len() as u32,
            pairs: self.pairs.len() as u32,
            responses: self.responses.len() as u32,
            events: self.events.len() as u32,
        };
        let texts = self.texts.absorb(&batch.texts);
        let values = self.values.absorb(&batch.values);
        let moved = Moved { texts, values, base, first_line };
        self.requests.conditions.extend(batch.requests.conditions.iter().map(|condition| Condition {
            keys: moved.interval(condition.keys),
            value: moved.value(condition.value),
            ..*condition
        }));
        self.requests.steps.extend(batch.requests.steps.iter().map(|step| moved.step(*step)));
        self.pairs.extend(batch.pairs.iter().map(|pair| Pair {
            key: moved.text(pair.key),
            value: moved.value(pair.value),
            ..*pair
        }));
        self.results
            .extend(batch.results.iter().map(|result| StepResult { pairs: result.pairs.moved(base.pairs), ..*result }));
        self.operations.extend(batch.operations.iter().map(|operation| Operation {
            position: moved.position(operation.position),
            request: moved.request(operation.request),
            results: operation.results.moved(base.results),
            error: moved.text(operation.error),
            ..*operation
        }));
        self.events.extend(batch.events.iter().map(|event| moved.event(event)));
        self.responses.extend(batch.responses.iter().map(|response| Response {
            line: response.line.saturating_add(first_line),
            error: moved.text(response.error),
            events: response.events.moved(base.events),
            ..*response
        }));
        let watches = self.watches.len() as u32;
        self.pieces.extend(batch.pieces.iter().map(|piece| Piece {
            position: moved.position(piece.position),
            watch: piece.watch.map(|watch| watch + watches),
            responses: piece.responses.moved(base.responses),
            ..*piece
        }));
        self.watches.extend(batch.watches.iter().map(|watch| Watch {
            position: moved.position(watch.position),
            key: moved.text(watch.key),
            end: moved.text(watch.end),
            responses: watch.responses.moved(base.responses),
            ..*watch
        }));
        for row in &mut batch.log {
            moved.log_row(row);
        }
        for row in &mut batch.store {
            moved.store_row(row);
        }
        self.unique_revisions |= batch.unique_revisions;
        self.creation_marks = self.creation_marks.max(batch.creation_marks);
        moved
    }
}
