//! The definition of an invariant's result: every invariant over all objects at every revision, without any cache. Input and
//! output are those of `live` and `single`, and the tests compare the two. It is slow, and serves tests and comparisons only.

use crate::check::invariants::declared::case::{Case, Failure, Place, Tally};
use crate::check::invariants::declared::context::{InvariantContext, StepBudget};
use crate::check::invariants::declared::live::{Meaning, Member, Part, events, meaning, part};
use crate::history::Revision;
use crate::model::declaration::Scope;
use crate::model::expression::{Bindings, Outcome};
use crate::order::Version;
use std::collections::{BTreeMap, BTreeSet};

/// Evaluates all cases.
pub fn evaluate<'h>(context: &InvariantContext<'h>, cases: &[Case<'h>]) -> Vec<Tally> {
    let mut tallies = vec![Tally::default(); context.evidence.options.declarations.invariants.len()];
    for case in cases {
        let revisions: BTreeSet<Revision> = match case.invariant.scope {
            Scope::Live => events(context, case).into_iter().map(|(revision, _)| revision).collect(),
            _ => {
                let versions = context.keys_of(case.resource).iter();
                let versions = versions.flat_map(|&key| context.evidence.order.timeline.versions(key).iter());
                versions.map(|version| version.revision).collect()
            }
        };
        let tally = &mut tallies[case.nth];
        let mut failing: BTreeMap<Place, Failure> = BTreeMap::new();
        let mut last = Revision::NONE;
        for &revision in &revisions {
            let mut now = match case.invariant.scope {
                Scope::Object => objects(context, case, revision),
                Scope::Transition => {
                    tally.failures.extend(changes(context, case, revision));
                    continue;
                }
                Scope::Live => groups(context, case, revision),
            };
            // A failure that continues is one interval.
            for (of, began) in std::mem::take(&mut failing) {
                let life = |failure: &Failure| matches!(of, Place::Key(_)).then(|| failure.versions[0].uid);
                match now.get(&of).is_some_and(|now| life(now) == life(&began)) {
                    true => drop(now.insert(of, began)),
                    false => tally.failures.push(Failure { through: revision.previous().max(began.from), ..began }),
                }
            }
            failing = now;
            last = revision;
        }
        let end = if case.invariant.scope == Scope::Live { last.previous() } else { last };
        tally.failures.extend(failing.into_values().map(|began| Failure { through: end.max(began.from), ..began }));
    }
    for tally in &mut tallies {
        tally.failures.sort_by(|a, b| (a.from, &a.of).cmp(&(b.from, &b.of)));
    }
    tallies
}

fn is_false(case: &Case<'_>, bindings: &Bindings<'_>) -> bool {
    StepBudget::default().evaluate(&case.invariant.expression, bindings) == Outcome::Truth(false)
}

fn failure(of: Place, from: Revision, is_certain: bool, versions: Vec<Version>) -> Failure {
    let (through, message) = (from, None);
    Failure { of, from, through, is_certain, versions, before: None, ended: None, complete: None, message }
}

/// Failures of the last known version of each object at a revision.
fn objects(context: &InvariantContext<'_>, case: &Case<'_>, revision: Revision) -> BTreeMap<Place, Failure> {
    let timeline = &context.evidence.order.timeline;
    let mut found = BTreeMap::new();
    for &key in context.keys_of(case.resource) {
        let Some(version) = timeline.at_or_before(key, revision).filter(|v| v.change.lives() == Some(true)) else {
            continue;
        };
        if let Some(subject) = shown(context, case, &version).map(|member| member.subject)
            && is_false(case, &Bindings::object(subject))
        {
            found.insert(Place::Key(key), failure(Place::Key(key), version.revision, true, vec![version]));
        }
    }
    found
}

fn shown<'h>(context: &InvariantContext<'h>, case: &Case<'h>, version: &Version) -> Option<Member<'h>> {
    match part(context, case, version) {
        Part::Inside(member, _) => Some(member),
        _ => None,
    }
}

/// Failures of the changes at a revision.
fn changes(context: &InvariantContext<'_>, case: &Case<'_>, revision: Revision) -> Vec<Failure> {
    let timeline = &context.evidence.order.timeline;
    let mut found = Vec::new();
    for &key in context.keys_of(case.resource) {
        let Some(now) = timeline.version_at(key, revision) else { continue };
        let earlier = timeline.between(key, Revision::NONE, revision.previous());
        let earlier: Vec<Version> = earlier.iter().collect();
        let earlier = earlier.iter().rev().take_while(|v| v.change.lives() != Some(false) && v.uid == now.uid);
        let old = match case.invariant.transitive {
            true => earlier.into_iter().find(|version| shown(context, case, version).is_some()),
            false => earlier.into_iter().next(),
        };
        let Some(old) = old.copied().filter(|_| now.uid.is_some()) else { continue };
        let Some((a, b)) = shown(context, case, &old).zip(shown(context, case, &now)) else { continue };
        if is_false(case, &Bindings::change(a.subject, b.subject)) {
            let is_next = context.through(&old).0 == revision.previous();
            let is_certain = is_next || case.invariant.transitive;
            found.push(failure(Place::Key(key), revision, is_certain, vec![old, now]));
        }
    }
    found
}

/// Failures of the groups of objects that certainly exist at a revision.
fn groups(context: &InvariantContext<'_>, case: &Case<'_>, revision: Revision) -> BTreeMap<Place, Failure> {
    let timeline = &context.evidence.order.timeline;
    let complete = context.complete(case.resource).into_iter().find(|(from, to)| *from <= revision && revision <= *to);
    let mut is_complete = complete.is_some();
    // An object that was not certainly there any more, and that the list does not show, has ended.
    let has_ended = |version: &Version| {
        let Some((from, _)) = complete else { return false };
        let is_lapsed = version.change.lives() == Some(true) && context.through(version).0 < from;
        is_lapsed && context.listed(case.resource, from).is_some_and(|listed| !listed.contains(&version.key))
    };
    let mut members: BTreeMap<Vec<String>, Vec<(String, Member<'_>)>> = BTreeMap::new();
    if case.invariant.per.is_empty() {
        members.insert(Vec::new(), Vec::new());
    }
    for &key in context.keys_of(case.resource) {
        let Some(version) = timeline.at_or_before(key, revision).filter(|v| v.change.lives() != Some(false)) else {
            continue;
        };
        let part = if version.change.lives() == Some(true) { part(context, case, &version) } else { Part::Hidden };
        match part {
            Part::Outside => {}
            _ if has_ended(&version) => {}
            Part::Inside(member, groups) if context.through(&version).0 >= revision => {
                let path = crate::check::facts::live_keys::path(&context.evidence, key);
                for values in groups {
                    members.entry(values).or_default().push((path.clone(), member.clone()));
                }
            }
            Part::Hidden | Part::Inside(..) => is_complete = false,
        }
    }
    let mut found = BTreeMap::new();
    for (values, mut members) in members {
        if members.is_empty() && !is_complete {
            continue;
        }
        members.sort_by(|a, b| a.0.cmp(&b.0));
        let subjects = members.iter().map(|(_, member)| member.subject.clone());
        let bindings = Bindings::objects(subjects);
        let outcome = StepBudget::default().evaluate(&case.invariant.expression, &bindings);
        let Outcome::Truth(truth) = outcome else { continue };
        if meaning(case.invariant.expression.growth(), truth, is_complete) == Meaning::False {
            let of = Place::Group(case.resource, values);
            let versions = members.iter().map(|(_, member)| member.version).collect();
            found.insert(of.clone(), failure(of, revision, true, versions));
        }
    }
    found
}
