//! A watch stream as rules look at it: where its initial part ends, and what it delivered after.

use crate::check::{BrokenBy, Draft, Evidence, Kind};
use crate::history::{Asked, Delivery, DeliveryKind, KeyId, Marks, Operation, OperationId, Revision, Stream};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A stream taken apart. Errors, and DELETED events that carry an earlier version of their object, are left out of
/// [`Course::events`]: the former say nothing about state, the latter are `delete-version`'s.
#[derive(Clone, Debug)]
pub struct Course<'h> {
    evidence: Evidence<'h>,
    /// The stream.
    pub stream: &'h Stream,
    /// Its watch.
    pub watch: OperationId,
    /// The watch's row.
    pub operation: Operation,
    /// The revision that it asked to start after; none where it brings its own initial state.
    pub start: Option<Revision>,
    /// The delivery that ends the initial events, where one does.
    pub marker: Option<usize>,
    /// Where no marker ends the initial events: the lowest revision of a write that was certainly sent after the first delivery, and
    /// that write. The state with which the stream began lies below it.
    pub began_below: Option<(Revision, OperationId)>,
    /// Synthetic events, the marker included.
    pub initial: Range<usize>,
    /// What came after them.
    pub live: Range<usize>,
}

impl<'h> Course<'h> {
    /// Takes a stream apart.
    ///
    /// A bookmark `initial-events-end` ends the initial part. Without one, a watch that brings its own state is in its initial
    /// part up to the first event that is not ADDED, which is what client-go trusts too (`tools/cache/reflector.go`), or that is of a
    /// write which was sent after the first delivery; the same holds for saved streams, whose request nobody recorded. A watch from
    /// N has none.
    pub fn of(evidence: &Evidence<'h>, stream: &'h Stream) -> Course<'h> {
        let history = evidence.history;
        let operation = history.operation(stream.operation);
        let all = stream.deliveries();
        let marker = all.clone().find(|&d| history.deliveries[d].kind == DeliveryKind::InitialEventsEnd);
        let plain = operation.asked == Asked::From && !operation.marks.has(Marks::INITIAL_EVENTS);
        let own = marker.is_none() && !plain && matches!(operation.asked, Asked::Any | Asked::Unset | Asked::From);
        let began_below = if own { began_below(evidence, &operation, &history.deliveries[all.clone()]) } else { None };
        let end = match marker {
            Some(marker) => marker + 1,
            None if plain || operation.marks.has(Marks::NO_INITIAL_EVENTS) => all.start,
            None => {
                let later = |d: &Delivery| began_below.is_some_and(|(below, _)| d.revision >= below);
                let is_live = |d: &Delivery| d.kind != DeliveryKind::Added || later(d);
                all.clone().find(|&d| is_live(&history.deliveries[d])).unwrap_or(all.end)
            }
        };
        Course {
            evidence: *evidence,
            stream,
            watch: stream.operation,
            operation,
            start: plain.then_some(operation.asked_revision),
            marker,
            began_below,
            initial: all.start..end,
            live: end..all.end,
        }
    }

    /// All streams that some client recorded.
    pub fn all(evidence: &Evidence<'h>) -> impl Iterator<Item = Course<'h>> {
        let evidence = *evidence;
        let streams = evidence.history.streams.iter();
        streams
            .filter(move |s| {
                let o = evidence.history.operation(s.operation);
                !o.marks.has(Marks::SHADOW) && o.scope.is_some()
            })
            .map(move |s| Course::of(&evidence, s))
    }

    /// The changes among some deliveries, with their indices.
    pub fn changes(&self, range: Range<usize>) -> impl Iterator<Item = (usize, &'h Delivery)> + use<'h> {
        let evidence = self.evidence;
        range.map(move |index| (index, &evidence.history.deliveries[index])).filter(move |(index, d)| {
            matches!(d.kind, DeliveryKind::Added | DeliveryKind::Modified | DeliveryKind::Deleted)
                && d.revision.is_some()
                && d.key.is_some()
                && !evidence.order.timeline.is_misdated(*index)
        })
    }

    /// Changes and bookmarks after the initial part, with their indices.
    pub fn progress(&self) -> impl Iterator<Item = (usize, &'h Delivery)> + use<'h> {
        let evidence = self.evidence;
        self.live
            .clone()
            .map(move |index| (index, &evidence.history.deliveries[index]))
            .filter(move |(index, d)| d.kind != DeliveryKind::Error && !evidence.order.timeline.is_misdated(*index))
    }

    /// Whether nobody knows that this is one stream: a file that someone saved may hold two, one after the other.
    pub fn is_saved(&self) -> bool {
        self.operation.marks.has(Marks::SAVED)
    }

    /// What stands between a contradiction inside this stream and its proof, if something does.
    pub fn doubt(&self) -> Option<&'static str> {
        self.is_saved()
            .then_some("nobody recorded the request of this file: it may hold several streams one after the other")
    }

    /// A finding about this stream: a suspect where there is doubt.
    pub fn settle(&self, mut draft: Draft) -> Draft {
        if let Some(doubt) = self.doubt().filter(|_| draft.kind == Kind::Violation) {
            draft.kind = Kind::Suspect;
            draft.reason = format!("{} Not proved: {doubt}.", draft.reason);
        }
        draft
    }

    /// A violation by the server of this stream, about a key; the words are left to say.
    pub fn draft(&self, key: KeyId) -> Draft {
        Draft {
            kind: Kind::Violation,
            broken_by: BrokenBy::Server,
            incarnation: self.operation.incarnation,
            key,
            cause: self.cause(),
            summary: String::new(),
            facts: Vec::new(),
            reason: String::new(),
            refuted_by: String::new(),
            consequence: String::new(),
        }
    }

    /// What findings of one cause have in common: server and resource.
    pub fn cause(&self) -> String {
        self.evidence.cause(&self.operation)
    }

    /// The watch in words.
    pub fn words(&self) -> String {
        self.evidence.history.request_name(&self.operation)
    }
}

impl Course<'_> {
    /// The first delivery of each (key, revision) of the stream, initial part included.
    pub fn first_deliveries(&self) -> FxHashMap<(KeyId, Revision), usize> {
        let mut first = FxHashMap::default();
        for (index, d) in self.changes(self.initial.start..self.live.end) {
            first.entry((d.key, d.revision)).or_insert(index);
        }
        first
    }
}

/// The lowest revision of a write that was certainly sent after the first event of a stream.
fn began_below(evidence: &Evidence<'_>, o: &Operation, deliveries: &[Delivery]) -> Option<(Revision, OperationId)> {
    let scope = evidence.history.scopes.get(o.scope.index()).filter(|_| !o.marks.has(Marks::SAVED))?;
    let first = deliveries.first().filter(|first| first.at.is_known() && first.key.is_some())?;
    let (heads, clocks) = (&evidence.order.heads, &evidence.order.clocks);
    heads.after(evidence.history, clocks, scope.resource, o.clock, first.at)
}
