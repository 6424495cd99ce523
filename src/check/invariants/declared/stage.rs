//! What the evidence shows of the objects that invariants speak of: each version as a value, how long it certainly stood, and
//! where all objects are known.

use crate::check::Evidence;
use crate::check::facts::version_validity::{Proof, VersionValidity};
use crate::check::invariants::declared::case::{Case, Room};
use crate::history::{Asked, Declared, KeyId, Marks, ResourceId, Revision, ScopeId, Verb};
use crate::ingest::fields::Path;
use crate::model::expression::{Bindings, Expression, Outcome, Subject};
use crate::order::{Provenance, Version};
use rustc_hash::FxHashMap;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// Steps of one evaluation at most.
pub const STEPS: u64 = 100_000;

/// The evidence, as invariants look at it.
pub struct Stage<'h> {
    /// The history.
    pub evidence: Evidence<'h>,
    standing: VersionValidity<'h>,
    /// How many more failures may be kept.
    pub room: Room,
    covered: OnceCell<Covered>,
}

/// Stretches of revisions after one and through another.
type Spans = Vec<(Revision, Revision)>;

/// What the evidence shows whole.
#[derive(Debug, Default)]
struct Covered {
    /// Where every change of every resource of the domain is known. They do not meet.
    of_all: Spans,
    /// Where every change of a resource is known.
    of_resource: FxHashMap<ResourceId, Spans>,
    /// The revisions of whole lists of a resource.
    lists: FxHashMap<ResourceId, Vec<Revision>>,
}

impl<'h> Stage<'h> {
    /// Of some evidence.
    pub fn set(evidence: &Evidence<'h>) -> Stage<'h> {
        let (room, covered) = (Room::default(), OnceCell::new());
        Stage { evidence: *evidence, standing: VersionValidity::derive(evidence), room, covered }
    }

    /// The keys of a resource.
    pub fn keys_of(&self, resource: ResourceId) -> &'h [KeyId] {
        self.evidence.keys_of(resource)
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
        let history = self.evidence.history;
        let covered = self.covered.get_or_init(|| self.covered());
        let mut spans = covered.of_resource.get(&resource).cloned().unwrap_or_default();
        if history.domains[history.domain_of(resource).index()] == "default" {
            spans.extend(&covered.of_all);
        }
        spans.sort_unstable();
        let mut starts: Vec<Revision> = spans.iter().map(|(after, _)| *after).filter(|r| r.value() <= 1).collect();
        starts.extend(covered.lists.get(&resource).into_iter().flatten());
        starts.sort_unstable();
        starts.dedup();
        let mut stretches: Vec<(Revision, Revision)> = Vec::new();
        let mut next = spans.into_iter().peekable();
        for start in starts {
            if stretches.last().is_some_and(|(_, through)| start <= *through) {
                continue;
            }
            let mut reach = start;
            // What begins before an earlier stretch ended ends there too, or before.
            while let Some((_, through)) = next.next_if(|(after, _)| *after <= reach) {
                reach = reach.max(through);
            }
            stretches.push((start, reach));
        }
        stretches
    }

    fn covered(&self) -> Covered {
        let (history, order) = (self.evidence.history, self.evidence.order);
        let whole = |scope: ScopeId| {
            let wanted = history.scopes[scope.index()];
            let open = history.name(wanted.namespace).is_empty() && history.name(wanted.name).is_empty();
            (open && !history.is_selective(scope)).then_some(wanted.resource)
        };
        let mut covered = Covered::default();
        for span in order.timeline.spans().iter().filter(|span| span.provenance <= Provenance::Event) {
            let stretch = (span.after, span.through);
            match span.scope.is_some() {
                false => covered.of_all.push(stretch),
                true => {
                    let resource = whole(span.scope);
                    covered.of_resource.entry(resource.unwrap_or(ResourceId::NONE)).or_default().push(stretch);
                }
            }
        }
        covered.of_resource.remove(&ResourceId::NONE);
        covered.of_all.sort_unstable();
        covered.of_all.dedup_by(|later, earlier| {
            let meets = later.0 <= earlier.1;
            if meets {
                earlier.1 = earlier.1.max(later.1);
            }
            meets
        });
        for (id, o) in self.evidence.of_verbs(&[Verb::List]).filter(|(_, o)| o.is_answered()) {
            let marks = |mark| o.marks.has(mark);
            let is_whole = marks(Marks::LIST_ANSWER) && marks(Marks::ANSWER_BODY);
            let is_part = marks(Marks::MORE_PAGES) || marks(Marks::SAVED) || marks(Marks::TRUNCATED);
            let goes_on = matches!(o.asked, Asked::Continue | Asked::ContinueInconsistent);
            if let Some(resource) = whole(o.scope).filter(|_| is_whole && !is_part && !goes_on) {
                let revision = order.list_revision(history, id).map(|(revision, _)| revision);
                covered.lists.entry(resource).or_default().extend(revision);
            }
        }
        covered
    }
}

/// Whether the evidence would show all of these fields.
pub fn shows<'p>(declared: &Declared<'_>, mut paths: impl Iterator<Item = &'p Path>) -> bool {
    paths.all(|path| declared.shows(path))
}

/// The steps that an invariant may take, altogether: its own, and those that are there for all.
#[derive(Clone, Debug)]
pub struct Purse {
    own: u64,
    common: Rc<Cell<u64>>,
    endless: u32,
}

/// Steps of all evaluations of a run, and how many more for each version that the history has.
const ALL_STEPS: u64 = 6_000_000;
const VERSION_STEPS: u64 = 48;

/// How many evaluations may be endless before an invariant is given up.
const ENDLESS: u32 = 3;

/// Members of a group that are put together in a step.
const GATHERED: u64 = 64;

/// Half of the steps of a run belongs to invariants, in proportion to the versions that each looks at; the other half to whoever asks
/// first. So one that takes many leaves the others theirs.
pub fn purses(evidence: &Evidence<'_>, cases: &[Case<'_>]) -> Vec<Purse> {
    let mut wanted = vec![0; evidence.options.declarations.invariants.len()];
    for case in cases {
        wanted[case.nth] += evidence.versions_of(case.resource);
    }
    let all = wanted.iter().sum::<u64>().max(1);
    let half = (ALL_STEPS + VERSION_STEPS * evidence.versions()) / 2;
    let common = Rc::new(Cell::new(half));
    let own = |wanted: u64| (u128::from(half) * u128::from(wanted) / u128::from(all)) as u64;
    wanted.into_iter().map(|wanted| Purse { own: own(wanted), common: common.clone(), endless: 0 }).collect()
}

impl Default for Purse {
    fn default() -> Purse {
        Purse { own: ALL_STEPS, common: Rc::default(), endless: 0 }
    }
}

impl Purse {
    /// Why no more evaluation is to be begun.
    pub fn is_spent(&self, limits: &crate::check::Limits) -> Option<&'static str> {
        match () {
            () if self.endless >= ENDLESS => Some("its evaluations take too many steps"),
            () if self.left() == 0 => Some("its evaluations take too many steps together; `per` makes groups smaller"),
            () => limits.halted(),
        }
    }

    fn left(&self) -> u64 {
        self.own + self.common.get()
    }

    fn spend(&mut self, steps: u64) {
        let own = steps.min(self.own);
        self.own -= own;
        self.common.set(self.common.get().saturating_sub(steps - own));
    }

    /// Pays for a list of so many members.
    pub fn gather(&mut self, members: usize) {
        self.spend(members as u64 / GATHERED);
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
        let allowed = self.left().min(STEPS);
        let mut steps = allowed;
        let outcome = evaluate(&mut steps);
        self.spend(allowed - steps);
        self.endless += u32::from(outcome == Outcome::Endless);
        outcome
    }
}
