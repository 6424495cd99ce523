//! A watch stream as rules read it. Input: a recorded stream. Output: its initial part, its live part, and the revision after
//! which it starts. Trap: errors and DELETED events with an earlier version are in neither [`StreamView::changes`] nor
//! [`StreamView::progress`]; the former say nothing about state, the latter belong to `delete-version`.

use crate::check::{BrokenBy, Draft, Evidence, Kind};
use crate::history::{Asked, Delivery, DeliveryKind, KeyId, Marks, Operation, OperationId, Revision, Stream};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A stream, divided into its initial part and its live part.
#[derive(Clone, Debug)]
pub struct StreamView<'h> {
    evidence: Evidence<'h>,
    /// The stream.
    pub stream: &'h Stream,
    /// Its watch.
    pub watch: OperationId,
    /// The operation of `watch`.
    pub operation: Operation,
    /// The revision after which the request asked the stream to start; none if the stream brings its own initial state.
    pub start: Option<Revision>,
    /// The delivery that ends the initial events, if one does.
    pub marker: Option<usize>,
    /// If no marker ends the initial events: the lowest revision of a write that was certainly sent after the first delivery,
    /// and that write. The stream's own state lies below it.
    pub began_below: Option<(Revision, OperationId)>,
    /// Synthetic events, with the marker.
    pub initial: Range<usize>,
    /// Deliveries after the initial part.
    pub live: Range<usize>,
}

impl<'h> StreamView<'h> {
    /// Divides a stream.
    ///
    /// A bookmark `initial-events-end` ends the initial part. Without one, the initial part of a watch that brings its own
    /// state ends at the first event that is not ADDED; client-go relies on this too (`tools/cache/reflector.go`). It also
    /// ends at the first event of a write that was sent after the first delivery. The same holds for saved streams, because
    /// their request has no record. A watch from N has no initial part.
    pub fn of(evidence: &Evidence<'h>, stream: &'h Stream) -> StreamView<'h> {
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
        StreamView {
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

    /// All recorded streams with a scope. Shadow streams are left out.
    pub fn all(evidence: &Evidence<'h>) -> impl Iterator<Item = StreamView<'h>> {
        let evidence = *evidence;
        let streams = evidence.history.streams.iter();
        streams
            .filter(move |s| {
                let o = evidence.history.operation(s.operation);
                !o.marks.has(Marks::SHADOW) && o.scope.is_some()
            })
            .map(move |s| StreamView::of(&evidence, s))
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

    /// Whether the stream is a saved file without a recorded request. Such a file may hold two streams, one after the other.
    pub fn is_saved(&self) -> bool {
        self.operation.marks.has(Marks::SAVED)
    }

    /// The doubt that prevents a proof from a contradiction inside this stream, if there is one.
    pub fn doubt(&self) -> Option<&'static str> {
        self.is_saved().then_some(
            "the request of this file has no record, so the file may hold several streams one after the other",
        )
    }

    /// A finding about this stream. A violation becomes a suspect if there is doubt.
    pub fn settle(&self, mut draft: Draft) -> Draft {
        if let Some(doubt) = self.doubt().filter(|_| draft.kind == Kind::Violation) {
            draft.kind = Kind::Suspect;
            draft.reason = format!("{} Not proved: {doubt}.", draft.reason);
        }
        draft
    }

    /// A violation by the server of this stream, about a key. The caller fills in the sentences.
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

    /// The cause by which findings fold: server and resource.
    pub fn cause(&self) -> String {
        self.evidence.cause(&self.operation)
    }

    /// The watch's request in words.
    pub fn words(&self) -> String {
        self.evidence.history.request_name(&self.operation)
    }
}

impl StreamView<'_> {
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
    let (watermarks, clocks) = (&evidence.order.watermarks, &evidence.order.clocks);
    watermarks.after(evidence.history, clocks, scope.resource, o.clock, first.at)
}
