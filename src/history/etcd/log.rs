//! Turns records of members' logs and stores into rows.

use super::batch::Rows;
use super::member::{Lease, Note, StoredRevision};
use super::member_row::{LogFact, LogRow, StoreFact, StoreRow};
use super::operation::{Condition, Interval, Range, Relation, Request, Span, Step, Target, Txn};
use super::value;
use crate::history::Symbol;
use crate::ingest::etcd::{backend, request as logged, wal};
use crate::ingest::{Found, Position, Refused};

/// The meaning of a proposal beside its changes of keys.
fn noted(request: &logged::Request<'_>) -> Option<Note> {
    match request {
        logged::Request::Restriction => Some(Note::Restriction),
        logged::Request::Members(logged::Membership::Voter(node)) => Some(Note::Voter(*node)),
        logged::Request::Members(logged::Membership::Other(node)) => Some(Note::NoVoter(*node)),
        logged::Request::Members(logged::Membership::Unknown) => Some(Note::Members),
        _ => None,
    }
}

impl Rows {
    /// Adds a record of a log.
    pub fn log(&mut self, position: Position, part: &wal::Part<'_>) -> Result<(), Refused> {
        let mut unreadable = None;
        let fact = match part {
            wal::Part::Metadata { node, cluster } => LogFact::Metadata { node: *node, cluster: *cluster },
            wal::Part::HardState { commit, .. } => LogFact::Commit(*commit),
            wal::Part::Crc(crc) => LogFact::Crc(*crc),
            wal::Part::Snapshot { index, .. } => LogFact::Snapshot(*index),
            wal::Part::End { crc, torn } => LogFact::End { crc: *crc, torn: *torn },
            wal::Part::Entry(entry) => {
                let (request, note) = match &entry.request {
                    Ok(request) => (self.proposal(request), noted(request)),
                    Err(error) => {
                        unreadable = Some(Refused {
                            expected: "a proposal of etcd".to_owned(),
                            found: Found::described(format!("{error}, in entry {}", entry.index)),
                        });
                        (Request::Other, Some(Note::Restriction))
                    }
                };
                LogFact::Entry { index: entry.index, term: entry.term, request, note }
            }
        };
        self.log.push(LogRow { position, fact });
        unreadable.map_or(Ok(()), Err)
    }

    /// Adds a fact of a store.
    pub fn store(&mut self, position: Position, part: &backend::Part<'_>) {
        let fact = match *part {
            backend::Part::Revision(revision) => StoreFact::Revision(StoredRevision {
                position,
                main: revision.main,
                sub: revision.sub,
                tombstone: revision.tombstone,
                key: self.key(revision.key),
                value: self.values.bytes(revision.value),
                create_revision: revision.create_revision,
                mod_revision: revision.mod_revision,
                version: revision.version,
                lease: revision.lease,
            }),
            backend::Part::ConsistentIndex(index) => StoreFact::ConsistentIndex(index),
            backend::Part::Term(term) => StoreFact::Term(term),
            backend::Part::CompactionBegun(revision) => StoreFact::CompactionBegun(revision),
            backend::Part::CompactionDone(revision) => StoreFact::CompactionDone(revision),
            backend::Part::Lease { id, ttl } => StoreFact::Lease(Lease { id, ttl }),
        };
        self.store.push(StoreRow { position, fact });
    }

    fn key(&mut self, bytes: &[u8]) -> Symbol {
        self.texts.intern(&value::text(bytes))
    }

    fn keys(&mut self, keys: &logged::Interval<'_>) -> Interval {
        let end = if keys.end.is_empty() { Symbol::NONE } else { self.key(keys.end) };
        Interval { key: self.key(keys.key), end }
    }

    /// Puts and deletes become transactions of one step, as in reports of clients.
    fn proposal(&mut self, request: &logged::Request<'_>) -> Request {
        match request {
            logged::Request::Put(put) => self.single(logged::Step::Put(*put)),
            logged::Request::Delete(keys) => self.single(logged::Step::Delete(*keys)),
            logged::Request::Txn(txn) => Request::Txn(self.txn(txn)),
            logged::Request::LeaseGrant { id, ttl } => Request::LeaseGrant { lease: *id, ttl: *ttl },
            logged::Request::LeaseRevoke { id } => Request::LeaseRevoke { lease: *id },
            logged::Request::Compaction { revision } => Request::Compact { revision: *revision },
            logged::Request::Restriction | logged::Request::Members(_) | logged::Request::Other => Request::Other,
        }
    }

    fn single(&mut self, step: logged::Step<'_>) -> Request {
        Request::Txn(Txn { success: self.logged_steps(&[step]), ..Txn::default() })
    }

    fn txn(&mut self, txn: &logged::Txn<'_>) -> Txn {
        let start = self.requests.conditions.len();
        for compare in &txn.compares {
            let condition = self.compare(compare);
            self.requests.conditions.push(condition);
        }
        let conditions = Span::since(start, &self.requests.conditions);
        Txn { conditions, success: self.logged_steps(&txn.success), failure: self.logged_steps(&txn.failure) }
    }

    fn compare(&mut self, compare: &logged::Compare<'_>) -> Condition {
        let relation = match compare.relation {
            0 => Relation::Equal,
            1 => Relation::Greater,
            2 => Relation::Less,
            3 => Relation::NotEqual,
            _ => Relation::Unknown,
        };
        let target = match compare.target {
            0 => Target::Version,
            1 => Target::CreateRevision,
            2 => Target::ModRevision,
            3 => Target::Value,
            4 => Target::Lease,
            _ => Target::Unknown,
        };
        let value = self.values.bytes(compare.value);
        Condition { keys: self.keys(&compare.keys), target, relation, number: compare.number, value }
    }

    /// Adds the steps of a transaction. Steps of an inner transaction come first, so that each list is contiguous.
    fn logged_steps(&mut self, steps: &[logged::Step<'_>]) -> Span {
        let done: Vec<Step> = steps
            .iter()
            .map(|step| match step {
                logged::Step::Range(range) => Step::Range(Range {
                    keys: self.keys(&range.keys),
                    limit: range.limit,
                    revision: range.revision,
                    keys_only: false,
                    count_only: false,
                    serializable: false,
                    sorted: range.sorted,
                }),
                logged::Step::Put(put) => Step::Put {
                    key: self.key(put.key),
                    value: self.values.bytes(put.value),
                    lease: put.lease,
                    keeps_value: put.ignore_value,
                    keeps_lease: put.ignore_lease,
                },
                logged::Step::Delete(keys) => Step::Delete(self.keys(keys)),
                logged::Step::Txn(txn) => Step::Txn(self.txn(txn)),
                logged::Step::Nothing => Step::Nothing,
            })
            .collect();
        let start = self.requests.steps.len();
        self.requests.steps.extend(done);
        Span::since(start, &self.requests.steps)
    }
}
