#![doc = include_str!("../../../../docs/rules/intermediate-state.md")]

use crate::check::facts::authorship::{Author, author};
use crate::check::facts::commit_evidence;
use crate::check::facts::knowledge::{ClientKnowledge, Known};
use crate::check::premises::operation_groups;
use crate::check::premises::operation_groups::{Piece, Pieces};
use crate::check::premises::premise_index::PremiseIndex;
use crate::check::{BrokenBy, Checks, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{IncarnationId, KeyId, Operation, OperationId, ResourceId, Revision, Verb};
use crate::order::{Change, Ground, Pass, Premise, Reading, Version, remembers};
use rustc_hash::{FxHashMap, FxHashSet};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "intermediate-state",
    title: "no decision rests on another process's operation of several writes while that operation is half done",
    group: Group::Premises,
    promise: BrokenBy::Client,
    needs: "writes to the objects of a declared group, and the reads of their writers, with bodies",
    causes: &["name-reuse", "torn-snapshot", "monotonic-reads", "read-skew"],
    page: include_str!("../../../../docs/rules/intermediate-state.md"),
    checks: Checks::kubernetes(check),
};

/// The most versions of an object that are examined around a write.
const VERSIONS: usize = 256;
/// The reason for an undecided write whose process may have read more.
const UNSEEN: &str = "writes to parts of groups by processes whose reads were recorded without their content";

/// The reason for everything beyond the limit on parts.
const SPENT: &str = "groups with more parts than one run looks at";

mod finding;

/// A group that a process saw half done.
struct Half<'d> {
    /// The declared title of the group's operation.
    title: &'d str,
    /// The earlier part: the object, and the piece of it.
    early: (KeyId, Piece),
    /// The version that brought the earlier part, if known.
    begun: Option<Version>,
    /// The premise that shows the earlier part.
    seen_early: Premise,
    /// The premise that shows the later part's object without the later part.
    seen_late: Premise,
    /// The version that brought the later part.
    completed: Version,
}

/// An earlier part that a write removed.
struct Taken {
    write: OperationId,
    group: usize,
    part: usize,
    key: KeyId,
    piece: Piece,
    /// The revision after which it was gone, as far as known.
    gone: Revision,
}

struct Search<'s, 'h, 'd> {
    evidence: &'s Evidence<'h>,
    basis: PremiseIndex<'h>,
    groups: Vec<operation_groups::Found<'d>>,
    pieces: Pieces<'s, 'h>,
    /// Indices into `groups` by the resources of their parts.
    of_resource: FxHashMap<ResourceId, Vec<usize>>,
}

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let groups = operation_groups::found(evidence, &evidence.options.declarations);
    if groups.is_empty() {
        return;
    }
    let readers = Readers::collect(history, &groups);
    let writes: Vec<(OperationId, Operation)> = evidence
        .operations()
        .filter(|(_, o)| o.verb.is_write() && o.key.is_some() && readers.may_mind(history, o))
        .collect();
    let basis = PremiseIndex::derive(evidence);
    if writes.is_empty() && basis.decisions.is_empty() {
        return;
    }
    let mut of_resource: FxHashMap<ResourceId, Vec<usize>> = FxHashMap::default();
    for (nth, group) in groups.iter().enumerate() {
        for &resource in group.resources.iter().flatten() {
            let groups = of_resource.entry(resource).or_default();
            if groups.last() != Some(&nth) {
                groups.push(nth);
            }
        }
    }
    let mut search = Search { evidence, basis, groups, pieces: Pieces::new(evidence), of_resource };
    let mut undeclared = Vec::new();
    for (id, o) in &writes {
        let declared = search.basis.decisions.of(*id).is_some();
        if !declared && commit_evidence::took_effect(evidence, *id, o) && remembers(history, o.incarnation) {
            undeclared.extend(search.taken(*id, o));
        }
    }
    search.inferred(result, &undeclared);
    search.declared(result);
    if search.pieces.is_spent() {
        result.undecided(SPENT);
    }
}

/// Resources that processes read.
struct Readers {
    all: FxHashSet<(IncarnationId, ResourceId)>,
    /// Per resource of a part: the resources of the later parts in its groups.
    later: FxHashMap<ResourceId, FxHashSet<ResourceId>>,
}

impl Readers {
    fn collect(history: &crate::history::History, groups: &[operation_groups::Found<'_>]) -> Readers {
        let mut all: FxHashSet<(IncarnationId, ResourceId)> = FxHashSet::default();
        for (_, o) in history.operations.of_verbs(&[Verb::Get, Verb::List, Verb::Watch]) {
            if o.scope.is_some() {
                all.insert((o.incarnation, history.scopes[o.scope.index()].resource));
            }
        }
        all.extend(history.cache_reads.iter().map(|read| (read.incarnation, history.resource_of(read.key))));
        let mut later: FxHashMap<ResourceId, FxHashSet<ResourceId>> = FxHashMap::default();
        for group in groups {
            let mut after: FxHashSet<ResourceId> = FxHashSet::default();
            for &resource in group.resources.iter().rev().flatten() {
                later.entry(resource).or_default().extend(&after);
                after.insert(resource);
            }
        }
        Readers { all, later }
    }

    /// Whether a write touches a part of a group and its process reads a later part.
    fn may_mind(&self, history: &crate::history::History, o: &Operation) -> bool {
        let later = self.later.get(&history.resource_of(o.key));
        later.is_some_and(|later| later.iter().any(|&of| self.all.contains(&(o.incarnation, of))))
    }
}

impl<'d> Search<'_, '_, 'd> {
    /// The groups with a part of a resource; none after the limit of `pieces`.
    fn groups_of(&self, resource: ResourceId) -> Vec<usize> {
        let of_resource = self.of_resource.get(&resource).filter(|_| !self.pieces.is_spent());
        of_resource.cloned().unwrap_or_default()
    }

    /// The earlier parts that a committed write removed.
    fn taken(&mut self, write: OperationId, o: &Operation) -> Vec<Taken> {
        let (history, timeline) = (self.evidence.history, &self.evidence.order.timeline);
        let resource = history.resource_of(o.key);
        let removes = crate::order::removes(o);
        let commit = self.basis.committed_at(write);
        let (before, after) = match (removes, commit) {
            // A removal at an unknown revision comes after the last known version of its object.
            (true, None) => {
                let own = |v: &Version| v.uid == o.answer_uid && v.uid.is_some() && v.change != Change::Deleted;
                (timeline.versions(o.key).iter().rfind(own), None)
            }
            (true, Some(at)) => (timeline.at_or_before(o.key, at.previous()), None),
            (false, Some(at)) => (timeline.at_or_before(o.key, at.previous()), timeline.version_at(o.key, at)),
            (false, None) => return Vec::new(),
        };
        let Some(before) = before.filter(|v| v.change.lives() == Some(true)) else { return Vec::new() };
        if !removes && (after.is_none() || after.is_some_and(|after| after.attributes == before.attributes)) {
            return Vec::new();
        }
        let mut taken = Vec::new();
        for group in self.groups_of(resource) {
            for part in 0..self.groups[group].resources.len().saturating_sub(1) {
                if self.groups[group].resources[part] != Some(resource) {
                    continue;
                }
                let declared = &self.groups[group].group.parts[part];
                let Some(had) = self.pieces.of(declared, &before) else { continue };
                let left = match &after {
                    Some(after) => self.pieces.of(declared, after),
                    None => Some(Default::default()),
                };
                let Some(left) = left else { continue };
                let gone = commit.unwrap_or(before.revision);
                for piece in had.iter().filter(|piece| left.binary_search(piece).is_err()) {
                    // Two pieces with one join in one object come from two attempts.
                    if had.iter().filter(|other| other.of == piece.of).count() == 1 {
                        taken.push(Taken { write, group, part, key: o.key, piece: piece.clone(), gone });
                    }
                }
            }
        }
        taken
    }

    /// The objects that may have a later part.
    fn later(&mut self, group: usize, part: usize, of: &str) -> Vec<(usize, KeyId)> {
        let mut all = Vec::new();
        for later in part + 1..self.groups[group].resources.len() {
            let Some(resource) = self.groups[group].resources[later] else { continue };
            let declared = &self.groups[group].group.parts[later];
            all.extend(self.pieces.keys(declared, resource, of).into_iter().map(|key| (later, key)));
        }
        all
    }

    /// Judges writes without a declared decision by the last reads of their processes.
    fn inferred(&mut self, result: &mut RuleResult<'_>, undeclared: &[Taken]) {
        let evidence = self.evidence;
        let history = evidence.history;
        let mut wanted: FxHashSet<(IncarnationId, KeyId)> = FxHashSet::default();
        for taken in undeclared {
            let process = history.operation(taken.write).incarnation;
            wanted.insert((process, taken.key));
            let later = self.later(taken.group, taken.part, &taken.piece.of);
            wanted.extend(later.into_iter().map(|(_, key)| (process, key)));
        }
        let knowledge = ClientKnowledge::collect(evidence, &wanted);
        let mut reported: FxHashSet<OperationId> = FxHashSet::default();
        for taken in undeclared {
            let o = history.operation(taken.write);
            let moment = (o.invoke, o.clock);
            result.checked(o.incarnation);
            let mut silent = false;
            let mut view = |key: KeyId| {
                let last = knowledge.last(evidence, o.incarnation, key, moment, |_| true)?;
                silent |= knowledge.may_know_more(evidence, o.incarnation, key, last.moment, moment);
                let reading = match last.known {
                    Known::Life(uid) => Reading::Present { uid, revision: last.revision },
                    Known::End(_) | Known::Nothing => Reading::Absent,
                    Known::Left(_) | Known::Unsure => return None,
                };
                let source = crate::check::premises::premise_index::source(last.shown);
                Some(Premise { key, reading, moment: last.moment, source, ground: Ground::Inferred })
            };
            let half = self.half(taken, &mut view);
            if silent {
                result.undecided(UNSEEN);
                continue;
            }
            if let Some(half) = half.filter(|_| reported.insert(taken.write)) {
                self.state(result, taken.write, Kind::Suspect, &half);
            }
        }
    }

    /// Judges declared decisions by their own reads.
    fn declared(&mut self, result: &mut RuleResult<'_>) {
        let evidence = self.evidence;
        let history = evidence.history;
        let passes = std::mem::take(&mut self.basis.decisions.passes);
        for pass in &passes {
            let mut committed = false;
            for (nth, &write) in pass.writes.iter().enumerate() {
                let o = history.operation(write);
                if !commit_evidence::took_effect(evidence, write, &o) {
                    continue;
                }
                committed = true;
                result.checked(o.incarnation);
                let mut view = |key: KeyId| pass.last_of(history, nth, key);
                let taken = self.taken(write, &o);
                let half = taken.iter().find_map(|taken| self.half(taken, &mut view));
                let half = half.or_else(|| self.landed(write, &o, &mut view));
                if let Some(half) = half {
                    // The completing process may be this one unless the evidence shows another.
                    let another = author(evidence, &half.completed, o.incarnation) == Author::Another;
                    let kind = if another { Kind::Violation } else { Kind::Suspect };
                    self.state(result, write, kind, &half);
                }
            }
            if !committed && let Some(half) = self.looked(pass) {
                self.only_seen(result, pass, &half);
            }
        }
        self.basis.decisions.passes = passes;
    }

    /// A group that the process of a write had seen half done, if the write removed its earlier part.
    fn half(&mut self, taken: &Taken, view: &mut dyn FnMut(KeyId) -> Option<Premise>) -> Option<Half<'d>> {
        let history = self.evidence.history;
        let process = history.operation(taken.write).incarnation;
        let seen_early = self.seen_early(taken, view)?;
        for (later, key) in self.later(taken.group, taken.part, &taken.piece.of) {
            if key == taken.key {
                continue;
            }
            let Some(seen_late) = view(key) else { continue };
            let Some(completed) = self.completed(taken.group, later, &taken.piece.of, &seen_late) else { continue };
            if completed.writer == taken.write || self.is_own(&completed, process) {
                continue;
            }
            let begun = self.begun(taken, &seen_early);
            let own = begun.is_some_and(|begun| self.is_own(&begun, process));
            let backwards = begun.is_some_and(|begun| self.basis.before(&completed, &begun));
            let other = begun.is_some_and(|begun| self.is_of_another(taken.group, later, &begun, &completed));
            if own || backwards || other || self.saw_it_whole(&seen_early, &completed) || self.again(taken, &completed)
            {
                continue;
            }
            let title = self.groups[taken.group].group.title.as_str();
            let early = (taken.key, taken.piece.clone());
            return Some(Half { title, early, begun, seen_early, seen_late, completed });
        }
        None
    }

    /// The premise that showed the earlier part: the last read of the object, else the version that the server compared.
    fn seen_early(&mut self, taken: &Taken, view: &mut dyn FnMut(KeyId) -> Option<Premise>) -> Option<Premise> {
        let read = view(taken.key);
        let compared = crate::order::premise::compared(self.evidence.history, taken.write);
        let shows = |premise: &Premise| self.shows(taken.group, taken.part, &taken.piece.of, premise) == Some(true);
        read.into_iter().chain(compared).find(shows)
    }

    /// Whether a premise shows a part; `None` without evidence.
    fn shows(&mut self, group: usize, part: usize, of: &str, premise: &Premise) -> Option<bool> {
        let Reading::Present { revision, .. } = premise.reading else { return Some(false) };
        let version = self.evidence.order.timeline.version_at(premise.key, revision)?;
        let pieces = self.pieces.of(&self.groups[group].group.parts[part], &version)?;
        Some(pieces.iter().any(|piece| piece.of == of))
    }

    /// Whether the earlier part was read from a state that certainly had the later one. Then the operation was complete, and
    /// only the process's knowledge of the later part was stale (`read-skew`, `stale-premise`).
    fn saw_it_whole(&self, early: &Premise, completed: &Version) -> bool {
        let history = self.evidence.history;
        let (of_early, of_late) = (history.resource_of(early.key), history.resource_of(completed.key));
        let from = early.seen(history, &self.basis.validity).from;
        let shown = match early.reading {
            Reading::Present { revision, .. } => revision.max(from),
            Reading::Absent => from,
        };
        history.share_counter(of_early, of_late) && shown >= completed.revision || self.read_after(early, completed)
    }

    /// Whether a value was requested after a version had been shown.
    fn read_after(&self, early: &Premise, completed: &Version) -> bool {
        use crate::order::Source;
        let history = self.evidence.history;
        let sent = match early.source {
            Source::Answer(id) | Source::List(id) => (history.operation(id).invoke, history.operation(id).clock),
            // A cache received its value earlier, and the base of a write was read earlier.
            Source::Event(..) | Source::Cache(_) | Source::Request(_) => return false,
        };
        self.basis.shown_before(completed, sent)
    }

    /// The version that brought a later part after the process had read its object.
    fn completed(&mut self, group: usize, part: usize, of: &str, seen: &Premise) -> Option<Version> {
        if self.shows(group, part, of, seen)? {
            return None;
        }
        let timeline = &self.evidence.order.timeline;
        let (after, uid) = match seen.reading {
            Reading::Present { uid, revision } => (revision, Some(uid)),
            Reading::Absent => {
                let end = self.basis.used(*seen).truth.ended_by?;
                (end.revision.previous(), None)
            }
        };
        let declared = &self.groups[group].group.parts[part];
        for version in timeline.between(seen.key, after, Revision::new(u128::MAX)).iter().take(VERSIONS) {
            // A field comes to the same object, but an object may come with a new uid.
            let another = uid.is_some_and(|uid| uid.is_some() && version.uid.is_some() && version.uid != uid);
            if another && declared.field.is_some() {
                return None;
            }
            if self.pieces.of(declared, &version)?.iter().any(|piece| piece.of == of) {
                return Some(version);
            }
        }
        None
    }

    /// The version that brought the earlier part that was seen.
    fn begun(&mut self, taken: &Taken, seen: &Premise) -> Option<Version> {
        let Reading::Present { revision, .. } = seen.reading else { return None };
        let declared = &self.groups[taken.group].group.parts[taken.part];
        let mut first = None;
        let versions = self.evidence.order.timeline.versions(taken.key);
        for version in versions.iter().take(versions.through(revision)).rev().take(VERSIONS) {
            if self.pieces.of(declared, &version)?.binary_search(&taken.piece).is_err() {
                return first;
            }
            first = Some(version);
        }
        first.filter(|first| first.change == Change::Created)
    }

    /// Whether the earlier part was written again after its removal, and not certainly after the later part. Then the later
    /// part may belong to a second attempt.
    fn again(&mut self, taken: &Taken, completed: &Version) -> bool {
        let timeline = &self.evidence.order.timeline;
        let resource = self.evidence.history.resource_of(taken.key);
        let declared = &self.groups[taken.group].group.parts[taken.part];
        for key in self.pieces.keys(declared, resource, &taken.piece.of) {
            // Another object may have had its own part before. Only a new part is a second attempt.
            let mut had = key != taken.key
                && timeline.at_or_before(key, taken.gone).is_some_and(|version| {
                    self.pieces.of(declared, &version).is_none_or(|p| p.iter().any(|p| p.of == taken.piece.of))
                });
            let later = timeline.between(key, taken.gone, Revision::new(u128::MAX));
            for (nth, version) in later.iter().enumerate() {
                if self.basis.before(completed, &version) {
                    break;
                }
                let Some(pieces) = self.pieces.of(declared, &version).filter(|_| nth < VERSIONS) else { return true };
                let has = pieces.iter().any(|piece| piece.of == taken.piece.of);
                if has && !had {
                    return true;
                }
                had = has;
            }
        }
        false
    }

    /// A write to an object that the later part created, by a decision that had read another object of the name, or none.
    fn landed(
        &mut self,
        write: OperationId,
        o: &Operation,
        view: &mut dyn FnMut(KeyId) -> Option<Premise>,
    ) -> Option<Half<'d>> {
        let (history, timeline) = (self.evidence.history, &self.evidence.order.timeline);
        let seen_late = view(o.key)?;
        let met = timeline.at_or_before(o.key, (self.basis.committed_at(write)?).previous())?;
        let another = match seen_late.reading {
            Reading::Present { uid, .. } => uid.is_some() && met.uid.is_some() && uid != met.uid,
            Reading::Absent => true,
        };
        let completed = timeline.versions(o.key).iter().find(|v| v.uid == met.uid && met.uid.is_some())?;
        let made = completed.change == Change::Created && !self.is_own(&completed, o.incarnation);
        if !another || !made || o.verb == Verb::Create {
            return None;
        }
        let resource = history.resource_of(o.key);
        for group in self.groups_of(resource) {
            let Some(later) = self.groups[group].resources.iter().rposition(|r| *r == Some(resource)) else { continue };
            let declared = &self.groups[group].group.parts[later];
            let Some(pieces) = self.pieces.of(declared, &completed).filter(|_| declared.field.is_none()) else {
                continue;
            };
            for piece in pieces.iter() {
                for part in 0..later {
                    let Some(resource) = self.groups[group].resources[part] else { continue };
                    let declared = &self.groups[group].group.parts[part];
                    for key in self.pieces.keys(declared, resource, &piece.of) {
                        let Some(seen_early) = view(key) else { continue };
                        if self.shows(group, part, &piece.of, &seen_early) != Some(true) {
                            continue;
                        }
                        let early = Piece { of: piece.of.clone(), entry: String::new() };
                        let taken =
                            Taken { write, group, part, key, piece: early.clone(), gone: Revision::new(u128::MAX) };
                        let begun = self.begun(&taken, &seen_early);
                        let own = begun.is_some_and(|begun| self.is_own(&begun, o.incarnation));
                        if own || self.saw_it_whole(&seen_early, &completed) {
                            continue;
                        }
                        let title = self.groups[group].group.title.as_str();
                        return Some(Half { title, early: (key, early), begun, seen_early, seen_late, completed });
                    }
                }
            }
        }
        None
    }

    /// A group that a pass saw half done.
    fn looked(&mut self, pass: &Pass) -> Option<Half<'d>> {
        let (history, timeline) = (self.evidence.history, &self.evidence.order.timeline);
        let nth = pass.writes.len();
        for premise in pass.everything(history, nth) {
            let Reading::Present { revision, .. } = premise.reading else { continue };
            let resource = history.resource_of(premise.key);
            let concerned = |group: &operation_groups::Found<'_>| group.resources.contains(&Some(resource));
            if !self.groups.iter().any(concerned) {
                continue;
            }
            let Some(version) = timeline.version_at(premise.key, revision) else { continue };
            for group in self.groups_of(resource) {
                for part in 0..self.groups[group].resources.len().saturating_sub(1) {
                    if self.groups[group].resources[part] != Some(resource) {
                        continue;
                    }
                    let declared = &self.groups[group].group.parts[part];
                    let Some(pieces) = self.pieces.of(declared, &version) else { continue };
                    for piece in pieces.iter() {
                        let gone = self.gone(declared, &version, piece);
                        let write = OperationId::NONE;
                        let taken = Taken { write, group, part, key: premise.key, piece: piece.clone(), gone };
                        if let Some(half) = self.seen_half(&taken, premise, pass, nth) {
                            return Some(half);
                        }
                    }
                    if self.pieces.is_spent() {
                        return None;
                    }
                }
            }
        }
        None
    }

    /// The revision of the first later version without a part; `u128::MAX` if there is none.
    fn gone(&mut self, part: &crate::model::declaration::Part, seen: &Version, piece: &Piece) -> Revision {
        let last = Revision::new(u128::MAX);
        let later = self.evidence.order.timeline.between(seen.key, seen.revision, last);
        let mut versions = later.iter().take(VERSIONS);
        let lacks = |pieces: &[Piece]| pieces.binary_search(piece).is_err();
        versions.find(|v| self.pieces.of(part, v).is_none_or(|pieces| lacks(&pieces))).map_or(last, |v| v.revision)
    }

    fn seen_half(&mut self, taken: &Taken, seen_early: Premise, pass: &Pass, nth: usize) -> Option<Half<'d>> {
        let history = self.evidence.history;
        for (later, key) in self.later(taken.group, taken.part, &taken.piece.of) {
            let Some(seen_late) = pass.last_of(history, nth, key) else { continue };
            let Some(completed) = self.completed(taken.group, later, &taken.piece.of, &seen_late) else { continue };
            let begun = self.begun(taken, &seen_early);
            let own = begun.into_iter().chain([completed]).any(|version| self.is_own(&version, pass.incarnation));
            let other = begun.is_some_and(|begun| self.is_of_another(taken.group, later, &begun, &completed));
            if !own && !other && !self.saw_it_whole(&seen_early, &completed) && !self.again(taken, &completed) {
                let title = self.groups[taken.group].group.title.as_str();
                let early = (taken.key, taken.piece.clone());
                return Some(Half { title, early, begun, seen_early, seen_late, completed });
            }
        }
        None
    }

    /// Whether the object with the completing field was created after the earlier part, which then belonged to another object
    /// of the name.
    fn is_of_another(&self, group: usize, part: usize, begun: &Version, completed: &Version) -> bool {
        let evidence = self.evidence;
        let declared = &self.groups[group].group.parts[part];
        let life = evidence.order.lifetimes(evidence.history).of(completed.uid).filter(|life| life.is_born);
        let birth = life.and_then(|life| evidence.order.timeline.version_at(life.key, life.from));
        declared.field.is_some()
            && declared.is_joined_by_names()
            && birth.is_some_and(|birth| self.basis.before(begun, &birth))
    }

    /// Whether a process made a version itself.
    fn is_own(&self, version: &Version, process: IncarnationId) -> bool {
        author(self.evidence, version, process) == Author::Itself
    }
}

#[cfg(test)]
mod tests;
