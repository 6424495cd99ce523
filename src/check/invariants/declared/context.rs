//! The evidence about the objects of invariants. Input: the history and its order. Output: each version as a value, the
//! interval in which it was certainly current, and the intervals in which all objects of a resource are known. It also holds
//! the budget of steps.

use crate::check::Evidence;
use crate::check::facts::version_validity::{Proof, VersionValidity};
use crate::check::invariants::declared::case::{Case, FailureLimit};
use crate::history::{Asked, Declared, KeyId, Marks, OperationId, ResourceId, Revision, ScopeId, Verb};
use crate::ingest::fields::Path;
use crate::model::expression::{Bindings, Expression, Outcome, Subject};
use crate::order::{Provenance, Version};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Upper bound on the steps of one evaluation.
pub const MAX_STEPS: u64 = 100_000;

/// The evidence as invariants read it.
pub struct InvariantContext<'h> {
    /// The history.
    pub evidence: Evidence<'h>,
    validity: VersionValidity<'h>,
    /// The remaining number of failures that may be kept.
    pub failure_limit: FailureLimit,
    covered: OnceCell<Covered>,
}

/// Intervals of revisions, as (after, through].
type Spans = Vec<(Revision, Revision)>;

/// The intervals that the evidence covers without a gap.
#[derive(Debug, Default)]
struct Covered {
    /// Intervals in which every change of every resource of the domain is known. Disjoint.
    of_all: Spans,
    /// Intervals in which every change of a resource is known.
    of_resource: FxHashMap<ResourceId, Spans>,
    /// The whole lists of a resource, by their revisions.
    lists: FxHashMap<ResourceId, BTreeMap<Revision, OperationId>>,
}

impl<'h> InvariantContext<'h> {
    /// Builds it from evidence.
    pub fn new(evidence: &Evidence<'h>) -> InvariantContext<'h> {
        let (failure_limit, covered) = (FailureLimit::default(), OnceCell::new());
        InvariantContext { evidence: *evidence, validity: VersionValidity::derive(evidence), failure_limit, covered }
    }

    /// The keys of a resource.
    pub fn keys_of(&self, resource: ResourceId) -> &'h [KeyId] {
        self.evidence.keys_of(resource)
    }

    /// The last revision at which a version was certainly current, and the proof.
    pub fn through(&self, version: &Version) -> (Revision, Proof) {
        self.validity.through(version)
    }

    /// The declared fields of a version; `None` if the evidence does not show them.
    pub fn declared(&self, version: &Version) -> Option<Declared<'h>> {
        let is_shown = version.change.lives() == Some(true) && version.provenance != Provenance::Base;
        let declared = self.evidence.history.declared(version.key, version.uid, version.attributes);
        declared.filter(|_| is_shown)
    }

    /// A version as a value of the expression language.
    pub fn subject(&self, version: &Version) -> Subject<'h> {
        Subject::of(self.evidence.history, (version.key, version.uid, version.revision), version.attributes)
    }

    /// The intervals in which all objects of a resource are known. Each begins with a whole list or with the first revision,
    /// and extends while every change is known. Sorted and disjoint.
    pub fn complete(&self, resource: ResourceId) -> Vec<(Revision, Revision)> {
        let history = self.evidence.history;
        let covered = self.covered.get_or_init(|| self.covered());
        let mut spans = covered.of_resource.get(&resource).cloned().unwrap_or_default();
        if history.domains[history.domain_of(resource).index()] == "default" {
            spans.extend(&covered.of_all);
        }
        spans.sort_unstable();
        let mut starts: Vec<Revision> = spans.iter().map(|(after, _)| *after).filter(|r| r.value() <= 1).collect();
        starts.extend(covered.lists.get(&resource).into_iter().flat_map(BTreeMap::keys));
        starts.sort_unstable();
        starts.dedup();
        let mut intervals: Vec<(Revision, Revision)> = Vec::new();
        let mut next = spans.into_iter().peekable();
        for start in starts {
            if intervals.last().is_some_and(|(_, through)| start <= *through) {
                continue;
            }
            let mut reach = start;
            // A span that begins inside an earlier interval cannot extend past its end.
            while let Some((_, through)) = next.next_if(|(after, _)| *after <= reach) {
                reach = reach.max(through);
            }
            intervals.push((start, reach));
        }
        intervals
    }

    /// The objects of a whole list of a resource at a revision; `None` if there is no such list.
    pub fn listed(&self, resource: ResourceId, revision: Revision) -> Option<FxHashSet<KeyId>> {
        let list = self.covered.get_or_init(|| self.covered()).lists.get(&resource)?.get(&revision)?;
        let history = self.evidence.history;
        Some(history.items_of(&history.operation(*list)).iter().map(|item| item.key).collect())
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
            let interval = (span.after, span.through);
            match span.scope.is_some() {
                false => covered.of_all.push(interval),
                true => {
                    let resource = whole(span.scope);
                    covered.of_resource.entry(resource.unwrap_or(ResourceId::NONE)).or_default().push(interval);
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
            // The answer to a request that cannot be read may be a page, too.
            let goes_on = matches!(o.asked, Asked::Continue | Asked::ContinueInconsistent | Asked::Invalid);
            if let Some(resource) = whole(o.scope).filter(|_| is_whole && !is_part && !goes_on) {
                let list = order.list_revision(history, id).map(|(revision, _)| (revision, id));
                covered.lists.entry(resource).or_default().extend(list);
            }
        }
        covered
    }
}

/// Whether the evidence would show all of these fields.
pub fn shows<'p>(declared: &Declared<'_>, mut paths: impl Iterator<Item = &'p Path>) -> bool {
    paths.all(|path| declared.shows(path))
}

/// The steps that one invariant may use: its own, and those shared by all.
#[derive(Clone, Debug)]
pub struct StepBudget {
    own: u64,
    shared: Rc<Cell<u64>>,
    stopped: u32,
}

/// The steps of all evaluations of a run, and the additional steps for each version in the history.
const ALL_STEPS: u64 = 6_000_000;
const VERSION_STEPS: u64 = 48;

/// The number of stopped evaluations after which an invariant is given up.
const MAX_STOPPED: u32 = 3;

/// The members of a group that one step pays for when they are gathered.
const MEMBERS_PER_STEP: u64 = 64;

/// Divides the steps of a run. One half belongs to single invariants, in proportion to their versions; the other half is
/// shared. An invariant with costly evaluations thus leaves the others their part.
pub fn budgets(evidence: &Evidence<'_>, cases: &[Case<'_>]) -> Vec<StepBudget> {
    let mut wanted = vec![0; evidence.options.declarations.invariants.len()];
    for case in cases {
        wanted[case.nth] += evidence.versions_of(case.resource);
    }
    let all = wanted.iter().sum::<u64>().max(1);
    let half = (ALL_STEPS + VERSION_STEPS * evidence.versions()) / 2;
    let shared = Rc::new(Cell::new(half));
    let own = |wanted: u64| (u128::from(half) * u128::from(wanted) / u128::from(all)) as u64;
    wanted.into_iter().map(|wanted| StepBudget { own: own(wanted), shared: shared.clone(), stopped: 0 }).collect()
}

impl Default for StepBudget {
    fn default() -> StepBudget {
        StepBudget { own: ALL_STEPS, shared: Rc::default(), stopped: 0 }
    }
}

impl StepBudget {
    /// The reason to begin no further evaluation.
    pub fn is_spent(&self, limits: &crate::check::Limits) -> Option<&'static str> {
        match () {
            () if self.stopped >= MAX_STOPPED => Some("its evaluations take too many steps"),
            () if self.left() == 0 => Some("its evaluations take too many steps together; `per` makes groups smaller"),
            () => limits.halted(),
        }
    }

    fn left(&self) -> u64 {
        self.own + self.shared.get()
    }

    fn spend(&mut self, steps: u64) {
        let own = steps.min(self.own);
        self.own -= own;
        self.shared.set(self.shared.get().saturating_sub(steps - own));
    }

    /// Pays for a list with this number of members.
    pub fn charge_list(&mut self, members: usize) {
        self.spend(members as u64 / MEMBERS_PER_STEP);
    }

    /// Evaluates an expression.
    pub fn evaluate(&mut self, expression: &Expression, bindings: &Bindings<'_>) -> Outcome {
        self.charge(|steps| expression.evaluate(bindings, steps))
    }

    /// Evaluates only what the new objects can change. The expression must have been true before them.
    pub fn evaluate_news(&mut self, expression: &Expression, bindings: &Bindings<'_>) -> Outcome {
        self.charge(|steps| expression.evaluate_news(bindings, steps))
    }

    fn charge(&mut self, evaluate: impl FnOnce(&mut u64) -> Outcome) -> Outcome {
        let allowed = self.left().min(MAX_STEPS);
        let mut steps = allowed;
        let outcome = evaluate(&mut steps);
        self.spend(allowed - steps);
        self.stopped += u32::from(outcome == Outcome::Endless);
        outcome
    }
}
