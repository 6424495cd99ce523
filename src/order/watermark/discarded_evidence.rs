//! What shows more of a counter than there was: it dates no head.
//!
//! An event that was delivered before its own write was sent says nothing of what was complete by then. And where one list, one
//! bookmark or one event alone names a revision before a write is sent that commits at it or below it, either that record is wrong or
//! the store went back; in both cases what others were answered meanwhile is no older for it.

use super::super::observation::{Placed, Reading};
use super::super::settlement::removes;
use super::super::shown::EvidenceRef;
use super::super::timeline::Timeline;
use super::super::version::Change;
use crate::history::{DeliveryKind, History, OperationId, Revision, Symbol, Verb};
use rustc_hash::{FxHashMap, FxHashSet};

/// So often records are looked for that nothing but those found before supports.
const PASSES: usize = 8;

/// Facts that date no head.
#[derive(Debug, Default)]
pub(super) struct DiscardedEvidence {
    facts: FxHashSet<u32>,
    /// By write, the list or delivery that it stands against.
    by_write: FxHashMap<OperationId, u32>,
    /// By what shows it, the writes that stand against it, in order of being sent.
    writes: FxHashMap<EvidenceRef, Vec<OperationId>>,
}

/// The highest revision that one operation showed, and with which fact.
#[derive(Clone, Copy)]
struct Top {
    revision: Revision,
    source: OperationId,
    fact: u32,
}

impl DiscardedEvidence {
    /// Adds those of one group and clock, in order of time and of being sent.
    pub(super) fn add(&mut self, reading: Reading<'_>, timeline: &Timeline, shown: &[Placed], sent: &[Placed]) {
        self.facts.extend(shown.iter().filter(|shown| is_early(reading, timeline, shown)).map(|shown| shown.fact));
        let writes: Vec<&Placed> = sent.iter().filter(|placed| reading.is_proven(placed.fact)).collect();
        for _ in 0..PASSES {
            let found = self.alone(reading, shown, &writes);
            if found.is_empty() {
                return;
            }
            for (fact, write) in found {
                self.facts.insert(fact);
                self.by_write.insert(write, fact);
                self.writes.entry(reading.sight(fact).evidence).or_default().push(write);
            }
        }
    }

    /// Lists and deliveries that nothing of another operation supports, each with a write that stands against it.
    fn alone(&self, reading: Reading<'_>, shown: &[Placed], writes: &[&Placed]) -> Vec<(u32, OperationId)> {
        let mut shown = shown.iter().filter(|shown| !self.facts.contains(&shown.fact)).peekable();
        // The highest of two operations.
        let (mut best, mut second): (Option<Top>, Option<Top>) = (None, None);
        let mut found = Vec::new();
        for write in writes {
            while let Some(next) = shown.next_if(|shown| shown.time < write.time) {
                let (revision, source) = (next.revision(reading), reading.operation(next.fact));
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

    /// Whether a fact dates no head.
    pub(super) fn has(&self, fact: u32) -> bool {
        self.facts.contains(&fact)
    }

    /// The list or delivery that a write stands against.
    pub(super) fn by(&self, write: OperationId) -> Option<u32> {
        self.by_write.get(&write).copied()
    }

    /// The writes that stand against a list or delivery.
    pub(super) fn writes(&self, showing: EvidenceRef) -> &[OperationId] {
        self.writes.get(&showing).map_or(&[], Vec::as_slice)
    }
}

/// Whether a fact is what a list or a watch said, and no answer about one object.
fn is_of_many(reading: Reading<'_>, top: Top) -> bool {
    match reading.sight(top.fact).evidence {
        EvidenceRef::Answer(id) => reading.history.operations.verb(id.index()) == Verb::List,
        EvidenceRef::Delivery(..) => true,
    }
}

/// The write that certainly made the version that an event shows: its answer proves that it committed there, or it is the removal of
/// that very object and nothing else dates so.
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

/// Whether a fact is an event that came before the write was sent that certainly made its version.
fn is_early(reading: Reading<'_>, timeline: &Timeline, shown: &Placed) -> bool {
    let EvidenceRef::Delivery(index, watch) = reading.sight(shown.fact).evidence else { return false };
    let history = reading.history;
    let Some(write) = write_of_event(history, timeline, index as usize) else { return false };
    let (write, watch) = (history.operation(write), history.operation(watch));
    write.invoke.is_known() && write.clock == watch.clock && shown.time < write.invoke
}
