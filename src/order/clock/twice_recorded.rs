//! Requests that a client and a server recorded. The server's interval lies inside the client's, so each record can prove an
//! order of two requests that the other does not: the server's is narrower, and other times may compare with the client's clock
//! only.

use crate::history::{AuditId, ClockId, History, Marks, Operation, OperationId, Verb};
use crate::ingest::Time;
use rustc_hash::FxHashMap;

/// The times of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::order) struct Interval {
    /// The record.
    pub id: OperationId,
    /// When the request was sent (client) or received (server).
    pub invoke: Time,
    /// When the answer was received (client) or sent (server).
    pub ret: Time,
    /// The clock of both times.
    pub clock: ClockId,
}

impl Interval {
    fn of(id: OperationId, o: &Operation) -> Interval {
        Interval { id, invoke: o.invoke, ret: o.ret, clock: o.clock }
    }
}

/// Both records of each such request: the client's, then the server's.
#[derive(Clone, Debug, Default)]
pub(in crate::order) struct TwiceRecorded(FxHashMap<(AuditId, Verb), [Interval; 2]>);

impl TwiceRecorded {
    /// Collects the requests whose audit id occurs once on each side.
    pub fn collect(history: &History) -> TwiceRecorded {
        let mut known: FxHashMap<(AuditId, Verb), [Option<Interval>; 2]> = FxHashMap::default();
        let mut ambiguous = Vec::new();
        for (id, o) in history.operations.of_marks(Marks::BOTH_SIDES) {
            let side = match (o.marks.has(Marks::CLIENT_SIDE), o.marks.has(Marks::SHADOW)) {
                (true, _) => 0,
                (false, true) => 1,
                (false, false) => continue,
            };
            let request = (o.audit_id, o.verb);
            if known.entry(request).or_default()[side].replace(Interval::of(id, &o)).is_some() {
                ambiguous.push(request);
            }
        }
        for request in ambiguous {
            known.remove(&request);
        }
        let both = |(request, [client, server]): (_, [Option<Interval>; 2])| Some((request, [client?, server?]));
        TwiceRecorded(known.into_iter().filter_map(both).collect())
    }

    /// All pairs.
    pub fn all(&self) -> impl Iterator<Item = (Verb, [Interval; 2])> {
        self.0.iter().map(|((_, verb), pair)| (*verb, *pair))
    }

    /// The other record of a request.
    pub fn other(&self, o: &Operation) -> Option<Interval> {
        if !o.marks.has(Marks::BOTH_SIDES) {
            return None;
        }
        let [client, server] = *self.0.get(&(o.audit_id, o.verb))?;
        Some(if o.marks.has(Marks::CLIENT_SIDE) { server } else { client })
    }

    /// All records of a request: the client's first.
    pub fn records(&self, id: OperationId, o: &Operation) -> impl Iterator<Item = OperationId> + use<> {
        let other = self.other(o).map(|other| other.id);
        let (first, second) = match other {
            Some(client) if !o.marks.has(Marks::CLIENT_SIDE) => (client, Some(id)),
            _ => (id, other),
        };
        std::iter::once(first).chain(second)
    }
}
