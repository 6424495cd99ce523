//! The nodes of the graph: a request, an event, or all reads and writes of one decision, with the keys and versions they touch.

use super::sparse::Node;
use crate::history::{
    ClockId, DeliveryKind, History, IncarnationId, KeyId, Marks, Operation, OperationId, Outcome, Revision,
    Subresource, Symbol, Verb,
};
use crate::ingest::Time;
use crate::order::{Change, Order, held};

/// One record of the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Record {
    /// A request with its answer.
    Operation(OperationId),
    /// An event: index of the delivery, and its watch.
    Delivery(u32, OperationId),
    /// A read from a cache: index into the history's cache reads.
    Cache(u32),
}

/// The identity of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// One record.
    Record(Record),
    /// A decision of a process.
    Decision(Symbol),
}

/// A node of the graph, which comes before or after others as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// The record or decision.
    pub what: What,
    /// Its process.
    pub incarnation: IncarnationId,
    /// Not later than its true begin.
    pub begin: Time,
    /// Not earlier than its true end; unknown if the evidence shows none.
    pub end: Time,
    /// The clock of both times.
    pub clock: ClockId,
}

/// The effect of an access on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Touch {
    /// Made this version.
    Wrote,
    /// Saw this version.
    Saw,
    /// Saw no object at this revision.
    SawNothing,
}

/// One access of a unit to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The key.
    pub key: KeyId,
    /// The version, or the revision at which the key had no object.
    pub revision: Revision,
    /// The effect.
    pub touch: Touch,
    /// The unit.
    pub unit: Node,
    /// The record that shows the access.
    pub at: Record,
}

/// Units with their accesses.
#[derive(Debug, Default)]
pub struct Units {
    /// By node.
    pub units: Vec<Unit>,
    /// In no particular order.
    pub accesses: Vec<Access>,
}

impl Units {
    /// Adds a unit without accesses.
    pub fn add(&mut self, unit: Unit) -> Node {
        self.units.push(unit);
        self.units.len() as Node - 1
    }

    /// The unit of a record: an existing one, else a new one without accesses.
    pub fn unit_of(&mut self, history: &History, record: Record) -> Node {
        let what = What::Record(record);
        if let Some(known) = self.units.iter().position(|unit| unit.what == what) {
            return known as Node;
        }
        self.add(of_record(history, record))
    }

    /// Adds one record as a unit, with its accesses.
    pub fn add_record(&mut self, history: &History, order: &Order, record: Record) -> Node {
        let node = self.add(of_record(history, record));
        self.include(history, order, node, record);
        node
    }

    /// Adds the accesses of a record to a unit.
    ///
    /// A read that found no object counts only with a revision; otherwise the time of the absence is unknown.
    pub fn include(&mut self, history: &History, order: &Order, unit: Node, record: Record) {
        let mut touched = |key: KeyId, revision: Revision, touch| {
            if key.is_some() && revision.is_some() {
                self.accesses.push(Access { key, revision, touch, unit, at: record });
            }
        };
        match record {
            Record::Operation(id) => {
                let o = history.operation(id);
                if o.marks.has(Marks::DRY_RUN) || o.outcome() == Outcome::Rejected {
                    return;
                }
                match o.verb {
                    Verb::List if o.is_answered() => {
                        history.items_of(&o).iter().for_each(|item| touched(item.key, item.revision, Touch::Saw));
                    }
                    Verb::Get if o.is_answered() => touched(o.key, o.answered, Touch::Saw),
                    verb if verb.is_write() => {
                        if held(history, order, &o) {
                            touched(o.key, o.asked_revision, Touch::Saw);
                        }
                        match written(order, id, &o) {
                            Some(revision) => touched(o.key, revision, Touch::Wrote),
                            // The write changed nothing, so the answer shows the existing version.
                            None if shows_version(&o) => touched(o.key, o.answered, Touch::Saw),
                            None => {}
                        }
                    }
                    _ => {}
                }
            }
            Record::Delivery(index, _) => {
                let d = history.deliveries[index as usize];
                match d.kind {
                    DeliveryKind::Added | DeliveryKind::Modified => touched(d.key, d.revision, Touch::Saw),
                    // With a selector, the object may only have left the selection.
                    DeliveryKind::Deleted if !order.timeline.is_misdated(index as usize) => {
                        let version = order.timeline.version_at(d.key, d.revision);
                        let is_gone = version.is_some_and(|v| v.change == Change::Deleted);
                        touched(d.key, d.revision, if is_gone { Touch::SawNothing } else { Touch::Saw });
                    }
                    _ => {}
                }
            }
            Record::Cache(index) => {
                let read = history.cache_reads[index as usize];
                touched(read.key, read.revision, Touch::Saw);
            }
        }
    }
}

/// A unit that consists of one record.
fn of_record(history: &History, record: Record) -> Unit {
    let (incarnation, begin, end, clock) = match record {
        Record::Operation(id) => {
            let o = history.operation(id);
            // A watch ends when it is sent; the events of its stream are units of their own.
            (o.incarnation, o.invoke, if o.verb == Verb::Watch { o.invoke } else { o.ret }, o.clock)
        }
        Record::Delivery(index, watch) => {
            let (o, at) = (history.operation(watch), history.deliveries[index as usize].at);
            (o.incarnation, at, at, o.clock)
        }
        Record::Cache(index) => {
            let read = history.cache_reads[index as usize];
            (read.incarnation, read.at, read.at, read.clock)
        }
    };
    Unit { what: What::Record(record), incarnation, begin, end, clock }
}

/// The revision at which a write committed its key, by the revision order.
pub fn written(order: &Order, id: OperationId, o: &Operation) -> Option<Revision> {
    let timeline = &order.timeline;
    if o.answered.is_some() && timeline.writer(o.key, o.answered) == Some(id) {
        return Some(o.answered);
    }
    // The answer of a deletion does not always name its revision.
    let is_own = |v: &crate::order::Version| v.writer == id;
    timeline.versions(o.key).iter().rev().find(is_own).map(|v| v.revision)
}

fn shows_version(o: &Operation) -> bool {
    o.is_answered() && !matches!(o.subresource, Subresource::Scale | Subresource::Effect | Subresource::Other)
}
