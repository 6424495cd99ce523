//! Collects the rows of one block, in one worker. Ids are local to the block until [`Tables::absorb`] maps them.

mod audit;
mod body;
mod capture;
mod deletion;
mod fields;
mod saved;
mod tables;

pub use body::{Answer, put_answer};
pub use capture::{CaptureId, CapturePart};
pub use tables::{Moved, Tables};

use super::ids::*;
use super::interner::Table;
use super::operation::*;
use super::request;
use super::resource;
use super::revision::{Revision, RevisionError};
use super::scope::Scope;
use crate::ingest::fields::Fields;
use crate::ingest::{self, FileId, Format, Found, Origin, Position, Record, Refused, Time};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The rows of one block.
#[derive(Debug)]
pub struct Batch {
    /// The file.
    pub file: FileId,
    /// Its format.
    pub format: Format,
    /// Names.
    pub tables: Tables,
    /// Audit operations; `incarnation` holds a process of `tables`.
    pub operations: Vec<Operation>,
    /// Listed items.
    pub items: Vec<Item>,
    /// Events of a raw stream; keys are complete.
    pub deliveries: Vec<Delivery>,
    /// Lines of a capture.
    pub capture: Vec<CapturePart>,
    /// Witness events.
    pub witness: Vec<WitnessEvent>,
    /// Indices into `witness` before which a change may be missing (a cancelled or compacted watch).
    pub witness_breaks: Vec<usize>,
    /// Servers and clocks that envelopes name. The server of an audit operation is an index of this table.
    pub writers: Table<Writer>,
    /// The writer of the audit events that follow.
    writer: ServerId,
    /// Minor versions named by the loopback clients of the writers.
    pub loopback_minors: Vec<(ServerId, u32)>,
    /// Rows of audit events before the answer, by audit id, each with the hash of its URI.
    open: FxHashMap<(u64, u64), (u32, u64)>,
    refused: Option<Refused>,
    /// Processes on recent lines.
    lately: audit::Lately,
    /// The fields to keep.
    keeping: fields::Keeping,
}

impl Batch {
    /// An empty batch for a block of a file. `fields` are the declared fields to keep.
    pub fn new(file: FileId, format: Format, fields: Arc<Fields>) -> Batch {
        Batch {
            file,
            format,
            tables: Tables::default(),
            operations: Vec::new(),
            items: Vec::new(),
            deliveries: Vec::new(),
            capture: Vec::new(),
            witness: Vec::new(),
            witness_breaks: Vec::new(),
            writers: Table::default(),
            writer: ServerId::NONE,
            loopback_minors: Vec::new(),
            open: FxHashMap::default(),
            refused: None,
            lately: audit::Lately::default(),
            keeping: fields::Keeping::new(fields),
        }
    }

    /// Whether the block has no evidence of a cluster.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.deliveries.is_empty() && self.capture.is_empty() && self.witness.is_empty()
    }

    fn refuse(&mut self, expected: &str, found: impl Into<Found>) {
        if self.refused.is_none() {
            self.refused = Some(Refused { expected: expected.to_owned(), found: found.into() });
        }
    }

    /// Parses a version in a body. Absent, empty and zero mean none. Other texts that are no decimal number are refused, once per
    /// line.
    fn version(&mut self, text: &str) -> Revision {
        if text.is_empty() || text == "0" {
            return Revision::NONE;
        }
        match Revision::version(text) {
            Ok(revision) => revision,
            Err(error) => {
                let why = if error == RevisionError::TooLarge {
                    "a resourceVersion of at most 128 bits"
                } else {
                    "a decimal resourceVersion"
                };
                self.refuse(why, Found::text("a resourceVersion", text));
                Revision::NONE
            }
        }
    }

    fn audit_id(&mut self, text: &str) -> AuditId {
        if text.is_empty() {
            return AuditId::None;
        }
        uuid_words(text).map_or_else(|| AuditId::Text(self.tables.names.intern(text)), |(h, l)| AuditId::Uuid(h, l))
    }

    fn scope(&mut self, resource: ResourceId, namespace: &str, name: &str, options: &request::Options<'_>) -> ScopeId {
        let name = if name.is_empty() { &*options.selected_name } else { name };
        let (namespace, name) = (self.tables.namespace(namespace), self.tables.name(name));
        let names = &mut self.tables.names;
        let scope = Scope {
            resource,
            namespace,
            name,
            labels: names.intern(&options.label_selector),
            fields: names.intern(&options.field_selector),
            shard: names.intern(&options.shard_selector),
        };
        ScopeId(self.tables.scopes.intern(scope))
    }

    fn options(&mut self, operation: &mut Operation, options: &request::Options<'_>) {
        for (on, mark) in [
            (options.dry_run, Marks::DRY_RUN),
            (options.bookmarks, Marks::BOOKMARKS),
            (options.limited, Marks::LIMITED),
            (options.send_initial_events == Some(true), Marks::INITIAL_EVENTS),
            (options.send_initial_events == Some(false), Marks::NO_INITIAL_EVENTS),
        ] {
            if on {
                operation.marks.set(mark);
            }
        }
        if operation.verb.selects_state() {
            operation.asked = options.asked;
            operation.asked_revision = options.revision;
            operation.page_after = self.tables.optional(&options.after);
        }
    }

    fn resource_of_kind(&mut self, api_version: &str, kind: &str) -> ResourceId {
        let plural = resource::plural_of_kind(kind);
        self.tables.resource(resource::group_of_api_version(api_version), &plural)
    }
}

/// A writer of audit events, as an envelope names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Writer {
    /// The API server.
    pub server: Symbol,
    /// The clock of its times.
    pub clock: Symbol,
}

impl Batch {
    /// Sets the writer of the audit events that follow.
    pub fn written_by(&mut self, origin: &Origin<'_>) {
        self.writer = ServerId::NONE;
        if !origin.server.is_empty() {
            let clock = if origin.clock.is_empty() { &origin.server } else { &origin.clock };
            let (server, clock) = (self.tables.names.intern(&origin.server), self.tables.names.intern(clock));
            self.writer = ServerId(self.writers.intern(Writer { server, clock }));
        }
    }
}

impl ingest::Batch for Batch {
    fn record(&mut self, line: u32, offset: u64, record: Record<'_>) -> Result<(), Refused> {
        let position = Position { file: self.file, line, offset };
        match record {
            Record::Audit(event) => self.audit(position, &event),
            Record::Capture(part) => self.capture(position, &part),
            Record::Watch(event) => {
                let resource = self.resource_of_kind(&event.object.api_version, &event.object.kind);
                let rows = self.delivery(position, Time::UNKNOWN, &event, resource);
                self.deliveries.extend(rows);
            }
            Record::List(body) => self.saved_list(position, &body),
            Record::Etcd(response) => self.witness(position, &response),
            // Operation logs have batches of their own.
            Record::Call(_) => {}
            Record::EtcdOperation(_)
            | Record::EtcdWatch(_)
            | Record::EtcdTraffic(_)
            | Record::EtcdLog(_)
            | Record::EtcdStore(_) => self.refuse("evidence of Kubernetes", "evidence of an etcd cluster"),
        }
        self.refused.take().map_or(Ok(()), Err)
    }
}

/// The two words of a UUID in canonical form (36 characters, lower case), which determine the text exactly.
fn uuid_words(text: &str) -> Option<(u64, u64)> {
    const NONE: u8 = 0x10;
    /// Digit by character. A table has no branch, and branches on random digits are mispredicted.
    const DIGITS: [u8; 256] = {
        let mut digits = [NONE; 256];
        let mut value = 0;
        while value < 16 {
            digits[b"0123456789abcdef"[value as usize] as usize] = value;
            value += 1;
        }
        digits
    };
    let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
    let mut all = 0;
    let mut word = |range: std::ops::Range<usize>| {
        text[range].iter().fold(0u64, |word, &c| {
            let digit = DIGITS[usize::from(c)];
            all |= digit;
            word << 4 | u64::from(digit & 0xf)
        })
    };
    let high = word(0..8) << 32 | word(9..13) << 16 | word(14..18);
    let low = word(19..23) << 48 | word(24..36);
    let dashes = [8, 13, 18, 23].iter().all(|&at| text[at] == b'-');
    (dashes && all & NONE == 0).then_some((high, low))
}

#[cfg(test)]
mod tests {
    use super::uuid_words;
    use crate::history::{Domains, load};
    use crate::ingest::limits::LONGEST_ADDRESS;
    use crate::ingest::{FileId, InputFile, ReadOptions};

    #[test]
    fn labels_longer_than_the_limit_are_a_problem_and_nothing_is_known_of_them() {
        for (length, problems) in [(LONGEST_ADDRESS, 0), (LONGEST_ADDRESS + 1, 1)] {
            let labels = format!(r#"{{"a":"{}"}}"#, "x".repeat(length - 8));
            let line = format!(
                r#"{{"type":"ADDED","object":{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a","uid":"u","resourceVersion":"7","creationTimestamp":"2026-03-02T09:00:00Z","labels":{labels}}},"spec":{{}}}}}}"#
            );
            let file = InputFile::in_memory(FileId(0), "w.json", line.into_bytes());
            let history = load(vec![file], &ReadOptions::default(), &Domains::default(), &());
            assert_eq!((history.files[0].records + history.files[0].problems, history.problems.len()), (1, problems));
            assert_eq!(history.deliveries[0].attributes.is_some(), problems == 0);
        }
    }

    #[test]
    fn words_stand_for_one_text_only() {
        let text = "01234567-89ab-cdef-fedc-ba9876543210";
        assert_eq!(uuid_words(text), Some((0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210)));
        for at in 0..text.len() {
            for other in ["A", "g", "/", ":", "`", "-", "0", "\u{0}", "\u{e9}"] {
                let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                let same = changed == text || (other == "0" && text.as_bytes()[at] != b'-');
                assert_eq!(uuid_words(&changed).is_some(), same, "{changed}");
            }
        }
        assert_eq!((uuid_words(&text[1..]), uuid_words("")), (None, None));
    }
}
