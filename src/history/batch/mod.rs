//! What one worker collects from one block: rows whose names are local to the block.

mod audit;
mod body;
mod capture;
mod fields;
mod saved;
mod tables;

pub use body::{Answer, put_answer};
pub use capture::{CaptureId, CapturePart};
pub use tables::{Moved, Tables};

use super::ids::*;
use super::operation::*;
use super::request;
use super::resource;
use super::revision::{Revision, RevisionError};
use super::scope::Scope;
use crate::ingest::fields::Fields;
use crate::ingest::{self, FileId, Format, Position, Record, Refused, Time};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Rows of one block.
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
    /// Indices into `witness` before which a hole may be (a cancelled or compacted watch).
    pub witness_breaks: Vec<usize>,
    /// Minor versions that loopback clients named.
    pub loopback_minor: Option<u32>,
    /// Rows of audit events before the answer, by audit id, each with the hash of its URI.
    open: FxHashMap<(u64, u64), (u32, u64)>,
    refused: Option<Refused>,
    /// Processes met lately.
    lately: audit::Lately,
    /// Which fields are kept.
    keeping: fields::Keeping,
}

impl Batch {
    /// An empty batch for a block of a file, which keeps the declared fields.
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
            loopback_minor: None,
            open: FxHashMap::default(),
            refused: None,
            lately: audit::Lately::default(),
            keeping: fields::Keeping::new(fields),
        }
    }

    fn refuse(&mut self, expected: &str, found: impl Into<String>) {
        if self.refused.is_none() {
            self.refused = Some(Refused { expected: expected.to_owned(), found: found.into() });
        }
    }

    /// A version out of a body. Absent, empty and zero mean "none"; anything else that is no decimal is refused, once a line.
    fn version(&mut self, text: &str) -> Revision {
        if text.is_empty() || text == "0" {
            return Revision::NONE;
        }
        match Revision::version(text) {
            Ok(revision) => revision,
            Err(error) => {
                let shown: String = text.chars().take(60).collect();
                let why = if error == RevisionError::TooLarge {
                    "a resourceVersion of at most 128 bits"
                } else {
                    "a decimal resourceVersion"
                };
                self.refuse(why, format!("resourceVersion {shown:?}"));
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

    fn options(operation: &mut Operation, options: &request::Options<'_>) {
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
        if !operation.verb.is_write() {
            operation.asked = options.asked;
            operation.asked_revision = options.revision;
        }
    }

    fn resource_of_kind(&mut self, api_version: &str, kind: &str) -> ResourceId {
        let plural = resource::plural_of_kind(kind);
        self.tables.resource(resource::group_of_api_version(api_version), &plural)
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

/// The two words of a UUID in canonical form (36 characters, lower case), so that writing it again gives the same text.
fn uuid_words(text: &str) -> Option<(u64, u64)> {
    let b = text.as_bytes();
    if b.len() != 36 {
        return None;
    }
    let mut value: u128 = 0;
    for (at, &c) in b.iter().enumerate() {
        let digit = match (at, c) {
            (8 | 13 | 18 | 23, b'-') => continue,
            (8 | 13 | 18 | 23, _) => return None,
            (_, b'0'..=b'9') => c - b'0',
            (_, b'a'..=b'f') => c - b'a' + 10,
            _ => return None,
        };
        value = value << 4 | u128::from(digit);
    }
    Some(((value >> 64) as u64, value as u64))
}
