//! Evidence that shows a higher revision than was committed; it does not raise a watermark.
//!
//! An event that arrived before its own write was sent says nothing about what was complete then. A second case: one list,
//! bookmark or event alone names a revision, and a later write commits at or below it. Then that record is wrong or the store
//! went back. In both cases the other answers of that time are not stale because of it.

use super::super::clock::TwiceRecorded;
use super::super::observation::{Reading, SortableFact};
use super::super::settlement::removes;
use super::super::shown::EvidenceRef;
use super::super::timeline::Timeline;
use super::super::version::Change;
use crate::history::{DeliveryKind, History, OperationId, Revision, Symbol, Verb};
use rustc_hash::{FxHashMap, FxHashSet};

/// Limit on the passes. Each finds evidence that only evidence of earlier passes supported.
const PASSES: usize = 8;

/// Facts that do not raise a watermark.
#[derive(Debug, Default)]
pub(super) struct DiscardedEvidence {
    facts: FxHashSet<u32>,
    /// The other records of the lists among them.
    other_records: FxHashSet<u32>,
    /// The list or delivery that each record of a write contradicts.
    by_write: FxHashMap<OperationId, u32>,
    /// The writes that contradict each record of a list or delivery, in order of sending on each clock. A write in two records
    /// is there once.
    writes: FxHashMap<EvidenceRef, Vec<OperationId>>,
    /// Both of each pair, by the first record of either.
    known: FxHashSet<(EvidenceRef, OperationId)>,
}

/// The highest revision that one operation showed, and the fact that shows it.
#[derive(Clone, Copy)]
struct Top {
    revision: Revision,
    source: Option<OperationId>,
    fact: u32,
}

impl DiscardedEvidence {
    /// Adds the discarded facts of one group and clock. Inputs are in order of time and of sending.
    pub(super) fn add(
        &mut self,
        reading: Reading<'_>,
        timeline: &Timeline,
        twice_recorded: &TwiceRecorded,
        shown: &[SortableFact],
        sent: &[SortableFact],
    ) {
        self.facts.extend(
            shown.iter().filter(|shown| is_early(reading, timeline, twice_recorded, shown)).map(|shown| shown.fact),
        );
        let writes: Vec<&SortableFact> = sent.iter().filter(|sortable| reading.is_proven(sortable.fact)).collect();
        for _ in 0..PASSES {
            let found = self.alone(reading, twice_recorded, shown, &writes);
            if found.is_empty() {
                return;
            }
            for (fact, write) in found {
                self.facts.insert(fact);
                self.contradict(reading, twice_recorded, fact, write);
            }
        }
    }

    /// Notes that a write contradicts a list or delivery, for all records of both.
    fn contradict(&mut self, reading: Reading<'_>, twice_recorded: &TwiceRecorded, fact: u32, write: OperationId) {
        let records = |id: OperationId| twice_recorded.records(id, &reading.history.operation(id));
        for write in records(write) {
            self.by_write.insert(write, fact);
        }
        let showing: Vec<EvidenceRef> = match reading.observation(fact).evidence {
            EvidenceRef::Answer(list) => records(list).map(EvidenceRef::Answer).collect(),
            delivery => vec![delivery],
        };
        let lists = showing.iter().filter_map(|showing| match showing {
            EvidenceRef::Answer(list) => Some(reading.facts.answer(*list)),
            EvidenceRef::Delivery(..) => None,
        });
        self.other_records.extend(lists.filter(|other| *other != fact));
        let Some(first) = records(write).next().filter(|first| self.known.insert((showing[0], *first))) else { return };
        for showing in showing {
            self.writes.entry(showing).or_default().push(first);
        }
    }

    /// Lists and deliveries that no other operation supports, each with a write that contradicts it.
    fn alone(
        &self,
        reading: Reading<'_>,
        twice_recorded: &TwiceRecorded,
        shown: &[SortableFact],
        writes: &[&SortableFact],
    ) -> Vec<(u32, OperationId)> {
        // Two records of one request are one source.
        let source = |fact| {
            let id = reading.operation(fact);
            twice_recorded.records(id, &reading.history.operation(id)).next()
        };
        let mut shown = shown.iter().filter(|shown| !self.facts.contains(&shown.fact)).peekable();
        // The highest revisions of two different operations.
        let (mut best, mut second): (Option<Top>, Option<Top>) = (None, None);
        let mut found = Vec::new();
        for write in writes {
            while let Some(next) = shown.next_if(|shown| shown.time < write.time) {
                let (revision, source) = (next.revision(reading), source(next.fact));
                let top = Some(Top { revision, source, fact: next.fact });
                match best {
                    Some(known) if known.source == source => {
                        if revision > known.revision {
                            best = top;
                        }
                    }
                    Some(known) if revision <= known.revision => {
                        if second.is_none_or(|second| revision > second.revision) {
                            second = top;
                        }
                    }
                    _ => (second, best) = (best, top),
                }
            }
            let revision = write.revision(reading);
            if let Some(best) = best.filter(|best| best.revision >= revision)
                && second.is_none_or(|second| second.revision < revision)
                && is_of_many(reading, best)
            {
                found.push((best.fact, reading.operation(write.fact)));
            }
        }
        found
    }

    /// Whether a fact is discarded.
    pub(super) fn has(&self, fact: u32) -> bool {
        self.facts.contains(&fact) || self.other_records.contains(&fact)
    }

    /// The list or delivery that a write contradicts.
    pub(super) fn by(&self, write: OperationId) -> Option<u32> {
        self.by_write.get(&write).copied()
    }

    /// The writes that contradict a list or delivery.
    pub(super) fn writes(&self, showing: EvidenceRef) -> &[OperationId] {
        self.writes.get(&showing).map_or(&[], Vec::as_slice)
    }
}

/// Whether a fact comes from a list or a watch, not from an answer about one object.
fn is_of_many(reading: Reading<'_>, top: Top) -> bool {
    match reading.observation(top.fact).evidence {
        EvidenceRef::Answer(id) => reading.history.operations.verb(id.index()) == Verb::List,
        EvidenceRef::Delivery(..) => true,
    }
}

/// The write that certainly made the version that an event shows. Its answer proves that it committed at this revision, or it
/// removed exactly this object and the revision of the deletion is certain.
pub fn write_of_event(history: &History, timeline: &Timeline, delivery: usize) -> Option<OperationId> {
    let d = &history.deliveries[delivery];
    let is_event = matches!(d.kind, DeliveryKind::Added | DeliveryKind::Modified | DeliveryKind::Deleted);
    if !is_event || !d.key.is_some() || !d.revision.is_some() || timeline.is_misdated(delivery) {
        return None;
    }
    let version = timeline.version_at(d.key, d.revision).filter(|version| version.writer.is_some())?;
    let o = history.operation(version.writer);
    let same = |uid: Symbol| uid == d.uid && uid.is_some();
    let made = match version.change {
        Change::Deleted => {
            let before = if o.answered.is_some() { o.answered } else { o.asked_revision };
            let dated = timeline.is_dated(&version) || (before.is_some() && before < d.revision);
            removes(&o) && dated && d.kind == DeliveryKind::Deleted
        }
        _ => timeline.wrote_its_answer(version.writer) && o.shows_its_commit() && o.answered == d.revision,
    };
    (made && o.key == d.key && same(o.answer_uid)).then_some(version.writer)
}

/// Whether a fact is an event that arrived before the write that certainly made its version was sent.
fn is_early(reading: Reading<'_>, timeline: &Timeline, twice_recorded: &TwiceRecorded, shown: &SortableFact) -> bool {
    let EvidenceRef::Delivery(index, watch) = reading.observation(shown.fact).evidence else { return false };
    let history = reading.history;
    let Some(write) = write_of_event(history, timeline, index as usize) else { return false };
    let (write, watch) = (history.operation(write), history.operation(watch));
    let other = twice_recorded.other(&write).map(|other| (other.invoke, other.clock));
    let mut sent = [(write.invoke, write.clock)].into_iter().chain(other);
    sent.any(|(sent, clock)| sent.is_known() && clock == watch.clock && shown.time < sent)
}
