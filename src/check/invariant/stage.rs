//! What the evidence shows of the objects that invariants speak of: each version as a value, how long it certainly stood, and
//! where all objects are known.

use super::super::Evidence;
use super::super::standing::{Proof, Standing};
use super::case::Case;
use crate::history::{Asked, Declared, KeyId, Marks, ResourceId, Revision, Verb};
use crate::ingest::fields::Path;
use crate::model::expression::{Bindings, Expression, Outcome, Subject};
use crate::order::{Provenance, Version};
use rustc_hash::{FxHashMap, FxHashSet};

/// Steps of one evaluation at most.
pub const STEPS: u64 = 100_000;

/// The evidence, as invariants look at it.
pub struct Stage<'h> {
    /// The history.
    pub evidence: Evidence<'h>,
    standing: Standing<'h>,
    /// By resource that an invariant speaks of: its keys.
    pub keys: FxHashMap<ResourceId, Vec<KeyId>>,
}

impl<'h> Stage<'h> {
    /// Of the resources of these cases.
    pub fn set(evidence: &Evidence<'h>, cases: &[Case<'h>]) -> Stage<'h> {
        let wanted: FxHashSet<ResourceId> = cases.iter().map(|case| case.resource).collect();
        let mut keys: FxHashMap<ResourceId, Vec<KeyId>> = FxHashMap::default();
        for (index, key) in evidence.history.keys.iter().enumerate().filter(|(_, key)| wanted.contains(&key.resource)) {
            keys.entry(key.resource).or_default().push(KeyId(index as u32));
        }
        Stage { evidence: *evidence, standing: Standing::derive(evidence), keys }
    }

    /// The keys of a resource.
    pub fn keys_of(&self, resource: ResourceId) -> &[KeyId] {
        self.keys.get(&resource).map_or(&[], Vec::as_slice)
    }

    /// The last revision at which a version certainly stood, and what proves it.
    pub fn through(&self, version: &Version) -> (Revision, Proof) {
        self.standing.through(version)
    }

    /// The declared fields of a version; `None` where the evidence does not show them.
    pub fn declared(&self, version: &Version) -> Option<Declared<'h>> {
        let is_shown = version.change.lives() == Some(true) && version.provenance != Provenance::Base;
        let declared = self.evidence.history.declared(version.key, version.uid, version.attributes);
        declared.filter(|_| is_shown)
    }

    /// A version as a value.
    pub fn subject(&self, version: &Version) -> Subject<'h> {
        Subject::of(self.evidence.history, (version.key, version.uid, version.revision), version.attributes)
    }

    /// The revisions at which all objects of a resource are known: stretches that begin with a list of all of it, or with the
    /// first revision, and go on as far as every change is known. In order; they do not meet.
    pub fn complete(&self, resource: ResourceId) -> Vec<(Revision, Revision)> {
        let (history, order) = (self.evidence.history, self.evidence.order);
        let everything = history.domains[history.domain_of(resource).index()] == "default";
        let whole = |scope: crate::history::ScopeId| {
            let wanted = history.scopes[scope.index()];
            let open = history.name(wanted.namespace).is_empty() && history.name(wanted.name).is_empty();
            wanted.resource == resource && open && !history.is_selective(scope)
        };
        let mut spans: Vec<(Revision, Revision)> = order
            .timeline
            .spans()
            .iter()
            .filter(|span| span.provenance <= Provenance::Event)
            .filter(|span| if span.scope.is_some() { whole(span.scope) } else { everything })
            .map(|span| (span.after, span.through))
            .collect();
        spans.sort_unstable();
        let mut starts: Vec<Revision> = spans.iter().map(|(after, _)| *after).filter(|r| r.value() <= 1).collect();
        for (id, o) in self.evidence.of_verbs(&[Verb::List]).filter(|(_, o)| o.is_answered()) {
            let marks = |mark| o.marks.has(mark);
            let is_whole = marks(Marks::LIST_ANSWER) && marks(Marks::ANSWER_BODY) && whole(o.scope);
            let is_part = marks(Marks::MORE_PAGES) || marks(Marks::SAVED) || marks(Marks::TRUNCATED);
            let goes_on = matches!(o.asked, Asked::Continue | Asked::ContinueInconsistent);
            if is_whole && !is_part && !goes_on {
                starts.extend(order.list_revision(history, id).map(|(revision, _)| revision));
            }
        }
        starts.sort_unstable();
        starts.dedup();
        let mut stretches: Vec<(Revision, Revision)> = Vec::new();
        for start in starts {
            if stretches.last().is_some_and(|(_, through)| start <= *through) {
                continue;
            }
            let mut reach = start;
            for (after, through) in &spans {
                if *after <= reach {
                    reach = reach.max(*through);
                }
            }
            stretches.push((start, reach));
        }
        stretches
    }
}

/// Whether the evidence would show all of these fields.
pub fn shows<'p>(declared: &Declared<'_>, mut paths: impl Iterator<Item = &'p Path>) -> bool {
    paths.all(|path| declared.shows(path))
}

/// The steps that an invariant may take, altogether.
#[derive(Clone, Copy, Debug)]
pub struct Purse {
    left: u64,
    endless: u32,
}

/// Steps of all evaluations of an invariant, and how many evaluations may be endless before it is given up.
const ALL_STEPS: u64 = 20_000_000;
const ENDLESS: u32 = 3;

impl Default for Purse {
    fn default() -> Purse {
        Purse { left: ALL_STEPS, endless: 0 }
    }
}

impl Purse {
    /// Why no more evaluation is to be begun.
    pub fn is_spent(&self, limits: &super::super::Limits) -> Option<&'static str> {
        match () {
            () if self.endless >= ENDLESS => Some("its evaluations take too many steps"),
            () if self.left == 0 => Some("its evaluations take too many steps together; `per` makes groups smaller"),
            () => limits.halted(),
        }
    }

    /// Evaluates.
    pub fn evaluate(&mut self, expression: &Expression, bindings: &Bindings<'_>) -> Outcome {
        self.pay(|steps| expression.evaluate(bindings, steps))
    }

    /// Evaluates what was true before there were the new objects.
    pub fn evaluate_news(&mut self, expression: &Expression, bindings: &Bindings<'_>) -> Outcome {
        self.pay(|steps| expression.evaluate_news(bindings, steps))
    }

    fn pay(&mut self, evaluate: impl FnOnce(&mut u64) -> Outcome) -> Outcome {
        let allowed = self.left.min(STEPS);
        let mut steps = allowed;
        let outcome = evaluate(&mut steps);
        self.left -= allowed - steps;
        self.endless += u32::from(outcome == Outcome::Endless);
        outcome
    }
}
