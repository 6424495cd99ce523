//! Invariants of the objects that live at one revision, swept through the revision order. Input: the versions of the objects.
//! Output: intervals in which an invariant is false. A change evaluates only the groups that its object is in before or after.
//! `plain` is the definition without any of this; both must find the same.

use crate::check::Limits;
use crate::check::invariants::declared::case::{Case, Failure, Place, Tally};
use crate::check::invariants::declared::context::{InvariantContext, StepBudget, shows};
use crate::check::invariants::declared::single::{BODY, ENDLESS, message_of};
use crate::history::{Declared, KeyId, Revision};
use crate::ingest::fields::Path;
use crate::model::declaration::Scope;
use crate::model::expression::{Bindings, Growth, Outcome, Subject};
use crate::order::Version;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// The values that the objects of a group share.
type Values = Vec<String>;

/// The reason for an undecided group.
pub const PARTIAL: &str = "groups that may have more objects than the evidence shows";

/// An object as the evidence shows it.
#[derive(Clone)]
pub struct Member<'h> {
    pub version: Version,
    pub declared: Declared<'h>,
    pub subject: Subject<'h>,
}

/// The role of a version in an invariant.
pub enum Part<'h> {
    /// Not one of the invariant's objects.
    Outside,
    /// Its fields are not shown, so it may be one.
    Hidden,
    /// A member of these groups.
    Inside(Member<'h>, Vec<Values>),
}

/// The role of a version in a case.
pub fn part<'h>(context: &InvariantContext<'h>, case: &Case<'h>, version: &Version) -> Part<'h> {
    let declared = context.declared(version);
    match case.selects(&context.evidence, version.key, declared.as_ref()) {
        Some(false) => return Part::Outside,
        None => return Part::Hidden,
        Some(true) => {}
    }
    let per: Vec<&Path> = case.invariant.per.iter().collect();
    let paths = case.invariant.read().chain(per.iter().copied());
    let Some(declared) = declared.filter(|declared| shows(declared, paths)) else { return Part::Hidden };
    let Some(rows) = declared.rows(&per) else { return Part::Hidden };
    // An object without a value is in no group with that value.
    let mut groups: Vec<Values> = rows.into_iter().filter_map(|row| row.into_iter().collect()).collect();
    groups.sort_unstable();
    groups.dedup();
    if groups.is_empty() {
        return Part::Outside;
    }
    Part::Inside(Member { version: *version, declared, subject: context.subject(version) }, groups)
}

/// The meaning of an outcome over a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The invariant holds, or holds for the known objects.
    Holds,
    /// The invariant is false.
    False,
    /// Unknown objects could change the outcome.
    Partial,
}

/// The meaning of a truth value, given whether all objects are known.
pub fn meaning(growth: Growth, truth: bool, is_complete: bool) -> Meaning {
    match (truth, growth) {
        _ if is_complete => {
            if truth {
                Meaning::Holds
            } else {
                Meaning::False
            }
        }
        (false, Growth::False | Growth::Free) => Meaning::False,
        (true, Growth::False | Growth::True | Growth::Free) => Meaning::Holds,
        _ => Meaning::Partial,
    }
}

/// One group.
#[derive(Default)]
struct GroupState<'h> {
    /// Members by path (namespace and name).
    members: BTreeMap<(String, KeyId), Member<'h>>,
    /// The last outcome, until a member changes.
    outcome: Option<Outcome>,
    /// The last outcome, if it was a truth value.
    truth: Option<bool>,
    /// Members that were added since then.
    new: Vec<(String, KeyId)>,
    /// The keys of `new`.
    newcomers: FxHashSet<KeyId>,
    /// Objects that alone make the invariant false, while all of them remain.
    proof: FxHashSet<KeyId>,
    failing: Option<Failure>,
}

/// The sweep of one case.
struct Sweep<'s, 'h> {
    context: &'s InvariantContext<'h>,
    case: &'s Case<'h>,
    groups: BTreeMap<Values, GroupState<'h>>,
    /// The groups of each object at the current revision.
    inside: FxHashMap<KeyId, Vec<Values>>,
    /// Objects that live, perhaps as members, and whose fields are not shown.
    hidden: BTreeSet<KeyId>,
    /// Objects of which nothing shows whether they still live.
    lapsed: BTreeSet<KeyId>,
    /// Groups that are false for the known objects.
    doubtful: BTreeSet<Values>,
    complete: Option<Revision>,
    /// Objects that entered or left a group at the current revision.
    moved: FxHashSet<(KeyId, Values)>,
    /// Groups that are false.
    failing: BTreeSet<Values>,
}

/// An event of the sweep.
pub enum Event {
    /// A version begins, or the object ends.
    Version(Version),
    /// Nothing shows the version from here on.
    Lapse(KeyId),
    /// From here on all objects are known, by a list of this revision.
    Complete(Revision),
    /// From here on not all objects are known.
    Partial,
}

/// All events of a case, in the revision order.
pub fn events(context: &InvariantContext<'_>, case: &Case<'_>) -> Vec<(Revision, Event)> {
    let mut events = Vec::new();
    for &key in context.keys_of(case.resource) {
        let versions = context.evidence.order.timeline.versions(key);
        for (nth, version) in versions.iter().enumerate() {
            events.push((version.revision, Event::Version(version)));
            if version.change.lives() != Some(true) {
                continue;
            }
            let after = (context.through(&version).0).next();
            if versions.get(nth + 1).is_none_or(|next| next.revision > after) {
                events.push((after, Event::Lapse(key)));
            }
        }
    }
    for (from, through) in context.complete(case.resource) {
        events.push((from, Event::Complete(from)));
        events.push((through.next(), Event::Partial));
    }
    // At one revision, completeness comes last, because it concerns the objects of that revision.
    events.sort_by_key(|(revision, event)| (*revision, matches!(event, Event::Complete(_) | Event::Partial)));
    events
}

/// Evaluates the cases of living objects.
pub fn evaluate<'h>(
    context: &InvariantContext<'h>,
    cases: &[Case<'h>],
    limits: Limits,
    budgets: &mut [StepBudget],
    tallies: &mut [Tally],
) {
    for case in cases.iter().filter(|case| case.invariant.scope == Scope::Live) {
        let mut sweep = Sweep {
            context,
            case,
            groups: BTreeMap::new(),
            inside: FxHashMap::default(),
            hidden: BTreeSet::new(),
            lapsed: BTreeSet::new(),
            doubtful: BTreeSet::new(),
            complete: None,
            moved: FxHashSet::default(),
            failing: BTreeSet::new(),
        };
        if case.invariant.per.is_empty() {
            sweep.groups.insert(Vec::new(), GroupState::default());
        }
        let (budget, tally) = (&mut budgets[case.nth], &mut tallies[case.nth]);
        sweep.run(&limits, budget, tally);
        tally.failures.sort_by(|a, b| (a.from, &a.of).cmp(&(b.from, &b.of)));
    }
}

impl GroupState<'_> {
    fn add_new(&mut self, place: (String, KeyId)) {
        self.newcomers.insert(place.1);
        self.new.push(place);
    }

    /// Drops what was derived from an object's old version.
    fn forget(&mut self, place: &(String, KeyId)) {
        self.outcome = None;
        if self.newcomers.remove(&place.1) {
            self.new.retain(|new| new != place);
        }
        if self.proof.contains(&place.1) {
            self.proof.clear();
        }
    }

    /// The outcome for the current members.
    fn outcome(&mut self, case: &Case<'_>, budget: &mut StepBudget) -> Outcome {
        if let Some(known) = &self.outcome {
            return known.clone();
        }
        let outcome = self.evaluated(case, budget);
        self.outcome = Some(outcome.clone());
        outcome
    }

    fn evaluated(&mut self, case: &Case<'_>, budget: &mut StepBudget) -> Outcome {
        let expression = &case.invariant.expression;
        if expression.growth() == Growth::False {
            // Fewer objects cannot make it false, and more objects cannot make it true.
            match self.truth {
                Some(true) if self.new.is_empty() => return Outcome::Truth(true),
                Some(true) if expression.asks_only_news() => {
                    budget.charge_list(self.members.len());
                    let new = self.new.iter().filter_map(|place| self.members.get(place));
                    let new: Vec<Subject<'_>> = new.map(|member| member.subject.clone()).collect();
                    let all = self.members.values().map(|member| member.subject.clone());
                    return budget.evaluate_news(expression, &Bindings::objects(all).with_new(new));
                }
                Some(false) if !self.proof.is_empty() => return Outcome::Truth(false),
                _ => {}
            }
        }
        self.proof.clear();
        budget.charge_list(self.members.len());
        let all = self.members.values().map(|member| member.subject.clone());
        budget.evaluate(expression, &Bindings::objects(all))
    }
}

impl<'h> Sweep<'_, 'h> {
    fn run(&mut self, limits: &Limits, budget: &mut StepBudget, tally: &mut Tally) {
        let events = events(self.context, self.case);
        for same in events.chunk_by(|a, b| a.0 == b.0) {
            let revision = same[0].0;
            tally.given_up = tally.given_up.or_else(|| budget.is_spent(limits));
            if tally.given_up.is_some() {
                break;
            }
            self.moved.clear();
            let was_complete = self.is_complete();
            let mut touched: BTreeSet<Values> = BTreeSet::new();
            for (_, event) in same {
                self.apply(event, &mut touched, tally);
            }
            if self.is_complete() != was_complete {
                // The objects are the same, but it is now known whether there are others.
                touched.extend(self.doubtful.iter().cloned());
                touched.extend(self.failing.iter().cloned());
                if self.case.invariant.per.is_empty() {
                    touched.insert(Vec::new());
                }
            }
            for values in touched {
                self.judge(revision, &values, same, budget, tally);
            }
        }
        for group in self.groups.values_mut() {
            if let Some(mut failing) = group.failing.take() {
                failing.through =
                    events.last().map_or(failing.from, |(revision, _)| (*revision).previous()).max(failing.from);
                tally.is_false(failing, &self.context.failure_limit);
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.complete.is_some() && self.hidden.is_empty() && self.lapsed.is_empty()
    }

    fn apply(&mut self, event: &Event, touched: &mut BTreeSet<Values>, tally: &mut Tally) {
        match event {
            Event::Version(version) => {
                self.hidden.remove(&version.key);
                self.lapsed.remove(&version.key);
                let part = match version.change.lives() {
                    Some(true) => part(self.context, self.case, version),
                    Some(false) => Part::Outside,
                    None => Part::Hidden,
                };
                match part {
                    Part::Outside => drop(self.leave(version.key, touched)),
                    Part::Hidden => {
                        self.leave(version.key, touched);
                        self.hidden.insert(version.key);
                        tally.unseen(BODY);
                    }
                    Part::Inside(member, groups) => {
                        if self.inside.get(&version.key) == Some(&groups) {
                            self.replace(member, &groups, touched);
                        } else {
                            self.leave(version.key, touched);
                            self.enter(member, groups, touched);
                        }
                    }
                }
            }
            // Nothing shows whether the object still lives.
            Event::Lapse(key) => {
                if self.leave(*key, touched) || self.hidden.remove(key) {
                    self.lapsed.insert(*key);
                }
            }
            Event::Complete(list) => {
                self.complete = Some(*list);
                // An object that the list does not show has ended.
                if !self.lapsed.is_empty()
                    && let Some(listed) = self.context.listed(self.case.resource, *list)
                {
                    self.lapsed.retain(|key| listed.contains(key));
                }
            }
            Event::Partial => self.complete = None,
        }
    }

    fn leave(&mut self, key: KeyId, touched: &mut BTreeSet<Values>) -> bool {
        let Some(groups) = self.inside.remove(&key) else { return false };
        for values in groups {
            if let Some(group) = self.groups.get_mut(&values) {
                let place = (crate::check::facts::live_keys::path(&self.context.evidence, key), key);
                group.members.remove(&place);
                group.forget(&place);
            }
            self.moved.insert((key, values.clone()));
            touched.insert(values);
        }
        true
    }

    /// Replaces the version of an object in its groups.
    fn replace(&mut self, member: Member<'h>, groups: &[Values], touched: &mut BTreeSet<Values>) {
        let key = member.version.key;
        let history = self.context.evidence.history;
        let place = (crate::check::facts::live_keys::path(&self.context.evidence, key), key);
        for values in groups {
            self.moved.insert((key, values.clone()));
            touched.insert(values.clone());
            let Some(group) = self.groups.get_mut(values) else { continue };
            let last = group.members.insert(place.clone(), member.clone());
            let is_same = |last: &Member<'h>| {
                last.version.uid == member.version.uid
                    && self.case.reads.agree(history, &last.declared, &member.declared)
            };
            if !last.as_ref().is_some_and(is_same) {
                group.forget(&place);
                group.add_new(place.clone());
            }
        }
    }

    fn enter(&mut self, member: Member<'h>, groups: Vec<Values>, touched: &mut BTreeSet<Values>) {
        let key = member.version.key;
        let path = crate::check::facts::live_keys::path(&self.context.evidence, key);
        for values in &groups {
            let group = self.groups.entry(values.clone()).or_default();
            let place = (path.clone(), key);
            group.members.insert(place.clone(), member.clone());
            group.forget(&place);
            group.add_new(place);
            self.moved.insert((key, values.clone()));
            touched.insert(values.clone());
        }
        self.inside.insert(key, groups);
    }

    fn judge(
        &mut self,
        revision: Revision,
        values: &Values,
        events: &[(Revision, Event)],
        budget: &mut StepBudget,
        tally: &mut Tally,
    ) {
        let is_complete = self.is_complete();
        let Some(group) = self.groups.get_mut(values) else { return };
        let is_empty = group.members.is_empty();
        // The group has no members left.
        let nobody = is_empty && (!values.is_empty() || !is_complete);
        let outcome = (!nobody).then(|| group.outcome(self.case, budget));
        let growth = self.case.invariant.expression.growth();
        let truth = match &outcome {
            Some(Outcome::Truth(truth)) => Some(*truth),
            _ => None,
        };
        group.truth = truth;
        group.new.clear();
        group.newcomers.clear();
        let meaning = truth.map(|truth| meaning(growth, truth, is_complete));
        match (&outcome, meaning) {
            (_, Some(Meaning::Holds | Meaning::False)) => tally.checked += 1,
            (_, Some(Meaning::Partial)) => tally.unseen(PARTIAL),
            (Some(Outcome::Failed(reason)), None) => tally.failed(reason.clone()),
            (Some(Outcome::Endless), None) => tally.failed(ENDLESS.to_owned()),
            (Some(Outcome::Text(_)), None) => tally.failed("it yields a text".to_owned()),
            (_, None) => {}
        }
        match (truth, meaning) {
            (Some(false), Some(Meaning::Partial)) => self.doubtful.insert(values.clone()),
            _ => self.doubtful.remove(values),
        };
        if meaning == Some(Meaning::False) {
            if group.failing.is_none() {
                let rests_on_all = !matches!(growth, Growth::False | Growth::Free);
                let changed: FxHashSet<KeyId> = changed(events).map(|version| version.key).collect();
                let (witnesses, is_proof) = witnesses(self.case, group, &changed, rests_on_all, budget);
                budget.charge_list(group.members.len());
                let all = group.members.values().map(|member| member.subject.clone());
                let message = message_of(self.case.invariant, budget, &Bindings::objects(all));
                self.failing.insert(values.clone());
                group.failing = Some(Failure {
                    of: Place::Group(self.case.resource, values.clone()),
                    from: revision,
                    through: revision,
                    is_certain: true,
                    versions: witnesses.iter().take(MAX_SHOWN).copied().collect(),
                    before: None,
                    ended: None,
                    complete: self.complete.filter(|_| rests_on_all),
                    message,
                });
                if is_proof {
                    group.proof = witnesses.iter().map(|version| version.key).collect();
                }
            }
        } else if let Some(mut failing) = group.failing.take() {
            self.failing.remove(values);
            failing.through = revision.previous().max(failing.from);
            let moved = |version: &Version| self.moved.contains(&(version.key, values.clone()));
            failing.ended = changed(events).find(moved);
            tally.is_false(failing, &self.context.failure_limit);
        }
        if is_empty && !values.is_empty() {
            self.groups.remove(values);
            self.doubtful.remove(values);
        }
    }
}

/// The versions that begin among events.
fn changed(events: &[(Revision, Event)]) -> impl Iterator<Item = Version> {
    events.iter().filter_map(|(_, event)| match event {
        Event::Version(version) => Some(*version),
        _ => None,
    })
}

/// The most objects of a false group that a finding shows.
const MAX_SHOWN: usize = 4;

/// Some objects for which the invariant is false already, and whether they alone make it false.
fn witnesses(
    case: &Case<'_>,
    group: &GroupState<'_>,
    changed: &FxHashSet<KeyId>,
    rests_on_all: bool,
    budget: &mut StepBudget,
) -> (Vec<Version>, bool) {
    let mut members: Vec<&Member<'_>> = group.members.values().collect();
    // The newest first, because one of them made it false.
    members.sort_by_key(|member| (!changed.contains(&member.version.key), member.version.key));
    if rests_on_all {
        return (members.iter().map(|member| member.version).collect(), false);
    }
    let mut is_false = |chosen: &[&Member<'_>]| {
        let chosen = chosen.iter().map(|member| member.subject.clone());
        budget.evaluate(&case.invariant.expression, &Bindings::objects(chosen)) == Outcome::Truth(false)
    };
    if let Some((first, others)) = members.split_first() {
        if is_false(&[first]) {
            return (vec![first.version], true);
        }
        if let Some(other) = others.iter().take(2_000).find(|other| is_false(&[other, first])) {
            return (vec![other.version, first.version], true);
        }
    }
    // Leaves out one object after the other while the invariant stays false.
    let mut at = if members.len() <= 200 { members.len() } else { 0 };
    while at > 0 {
        at -= 1;
        let mut fewer = members.clone();
        fewer.remove(at);
        if is_false(&fewer) {
            members = fewer;
        }
    }
    (members.iter().map(|member| member.version).collect(), true)
}
