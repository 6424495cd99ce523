#![doc = include_str!("../../../docs/rules/cross-resource-version.md")]

use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{
    Asked, ClockId, DeliveryKind, KeyId, Marks, Operation, OperationId, Outcome, ResourceId, Revision, Symbol, Verb,
};
use crate::ingest::Time;
use crate::order::graph::Record;
use crate::order::{Start, remembers};
use rustc_hash::{FxHashMap, FxHashSet};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "cross-resource-version",
    title: "a request names a resourceVersion only of the resource that it asks for",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "a read or watch with a version that no earlier list or watch of its resource explains",
    causes: &[],
    page: include_str!("../../../docs/rules/cross-resource-version.md"),
    checks: Checks::kubernetes(check),
};

/// A version that a process saw on an object.
#[derive(Clone, Copy)]
struct Sighting {
    moment: (Time, ClockId),
    record: Record,
    key: KeyId,
    uid: Symbol,
}

/// The sources of versions that requests name.
#[derive(Default)]
struct Origins {
    /// Versions named by requests, by session.
    wanted: FxHashSet<(u32, Revision)>,
    /// The lowest 16 bits of these versions, as a filter for the others.
    lowest: Vec<bool>,
    /// Per session, whether one of its requests names such a version.
    sessions: Vec<bool>,
    /// Objects with such a version.
    objects: FxHashMap<(u32, Revision), Vec<Sighting>>,
    /// Resources with such a version in a list, bookmark, event or answer.
    resources: FxHashSet<(u32, Revision, ResourceId)>,
    /// Resources that a session read without a recorded answer.
    silent: FxHashSet<(u32, ResourceId)>,
}

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let (history, order) = (evidence.history, evidence.order);
    let mut requests: Vec<OperationId> = Vec::new();
    for (id, o) in evidence.of_verbs(&[Verb::Get, Verb::List, Verb::Watch]) {
        if is_unexplained(evidence, id, &o) {
            requests.push(id);
        }
    }
    if requests.is_empty() {
        return;
    }
    let (sessions, lowest) = (vec![false; order.sessions.sessions.len()], vec![false; 1 << 16]);
    let mut origins = Origins { sessions, lowest, ..Origins::default() };
    for &id in &requests {
        let o = history.operation(id);
        let session = order.sessions.index_of(o.incarnation);
        origins.wanted.insert((session, o.asked_revision));
        origins.lowest[lowest_bits(o.asked_revision)] = true;
        origins.sessions[session as usize] = true;
    }
    origins.collect(evidence, &requests);
    for id in requests {
        let o = history.operation(id);
        let (session, version) = (order.sessions.index_of(o.incarnation), o.asked_revision);
        let resource = history.scopes[o.scope.index()].resource;
        if origins.silent.contains(&(session, resource)) {
            result.undecided("versions named by processes whose reads were recorded without their answers");
            continue;
        }
        result.checked(o.incarnation);
        if origins.resources.contains(&(session, version, resource)) {
            continue;
        }
        let earlier = |s: &&Sighting| order.clocks.before(s.moment, (o.invoke, o.clock));
        let sightings = origins.objects.get(&(session, version));
        if let Some(sighting) = sightings.into_iter().flatten().filter(earlier).min_by_key(|s| s.record) {
            found(evidence, result, id, sighting);
        }
    }
}

/// Whether no earlier list or stream explains the version that a request names.
fn is_unexplained(evidence: &Evidence<'_>, id: OperationId, o: &Operation) -> bool {
    let names = matches!(o.asked, Asked::From | Asked::Exact | Asked::LegacyExact) && o.asked_revision.is_some();
    let is_explained = || match evidence.order.chains.start_of(id) {
        Some(Start::List(_) | Start::Pair(_) | Start::Item(_)) => true,
        Some(Start::Continues(before)) => may_have_shown(evidence, before, o.asked_revision),
        _ => false,
    };
    names && !o.marks.has(Marks::SAVED) && remembers(evidence.history, o.incarnation) && !is_explained()
}

/// Whether a stream showed a version, or may have shown it because the stream or its bookmarks were not recorded.
fn may_have_shown(evidence: &Evidence<'_>, watch: OperationId, revision: Revision) -> bool {
    let (history, o) = (evidence.history, evidence.history.operation(watch));
    let Some(stream) = history.stream_of(watch) else { return true };
    let deliveries = || history.deliveries_of(stream).iter();
    o.asked_revision == revision
        || deliveries().rev().any(|d| d.revision == revision)
        || (o.marks.has(Marks::BOOKMARKS) && !deliveries().any(|d| d.kind == DeliveryKind::Bookmark))
}

fn lowest_bits(revision: Revision) -> usize {
    usize::from(revision.value() as u16)
}

impl Origins {
    /// Records that a session saw a version. `sighting` is called only for versions that a request names.
    fn saw(&mut self, session: u32, revision: Revision, sighting: impl FnOnce() -> (ResourceId, Option<Sighting>)) {
        if self.lowest[lowest_bits(revision)] && self.wanted.contains(&(session, revision)) {
            let (resource, sighting) = sighting();
            self.resources.insert((session, revision, resource));
            if let Some(sighting) = sighting.filter(|s| s.key.is_some()) {
                self.objects.entry((session, revision)).or_default().push(sighting);
            }
        }
    }

    fn collect(&mut self, evidence: &Evidence<'_>, requests: &[OperationId]) {
        let (history, order) = (evidence.history, evidence.order);
        for id in history.operations.ids_but_shadows() {
            let session = order.sessions.index_of(history.operations.incarnation(id.index()));
            if !self.sessions.get(session as usize).is_some_and(|wanted| *wanted) {
                continue;
            }
            let o = history.operation(id);
            let resource = || history.scopes[o.scope.index()].resource;
            let sighting = |key, uid| Sighting { moment: (o.ret, o.clock), record: Record::Operation(id), key, uid };
            for item in history.items_of(&o) {
                self.saw(session, item.revision, || (resource(), Some(sighting(item.key, item.uid))));
            }
            let listed = (o.verb == Verb::List).then(|| order.list_revision(history, id)).flatten();
            let revision = listed.map_or(o.answered, |(revision, _)| revision);
            self.saw(session, revision, || (resource(), Some(sighting(o.key, o.answer_uid))));
            if o.verb.is_write() {
                self.saw(session, o.asked_revision, || (resource(), None));
                continue;
            }
            // An explained start of a watch came from the resource itself.
            let explained = o.verb == Verb::Watch && requests.binary_search(&id).is_err();
            let stream = history.stream_of(id).filter(|_| o.verb == Verb::Watch);
            for index in stream.into_iter().flat_map(|stream| stream.deliveries()) {
                let d = &history.deliveries[index];
                let record = Record::Delivery(index as u32, id);
                let sighting = || Sighting { moment: (d.at, o.clock), record, key: d.key, uid: d.uid };
                self.saw(session, d.revision, || (resource(), Some(sighting())));
            }
            if explained {
                self.saw(session, o.asked_revision, || (resource(), None));
            }
            let shows = match o.verb {
                Verb::Watch => !explained || stream.is_some(),
                _ => revision.is_some(),
            };
            if !shows && o.outcome() != Outcome::Rejected {
                self.silent.insert((session, resource()));
            }
        }
        for (index, read) in history.cache_reads.iter().enumerate() {
            let (session, record) = (order.sessions.index_of(read.incarnation), Record::Cache(index as u32));
            let sighting = Sighting { moment: (read.at, read.clock), record, key: read.key, uid: read.uid };
            self.saw(session, read.revision, || (history.resource_of(read.key), Some(sighting)));
        }
    }
}

fn found(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, id: OperationId, sighting: &Sighting) {
    let history = evidence.history;
    let o = history.operation(id);
    let (client, version) = (evidence.short_client(&o), o.asked_revision);
    let (scope, object) = (history.scope_name(o.scope), history.key_name(sighting.key));
    let saw = format!("{client} saw {object} at version {version}");
    let saw = match sighting.record {
        Record::Operation(read) => evidence.item(read, sighting.key, sighting.uid, version, saw),
        Record::Delivery(index, watch) => evidence.delivery(index as usize, watch, saw),
        Record::Cache(index) => Fact { revision: version, ..evidence.cache_read(index as usize, saw) },
    };
    result.found(Draft {
        kind: Kind::Hazard,
        broken_by: BrokenBy::Client,
        incarnation: o.incarnation,
        key: o.key,
        cause: format!("{scope} by {}", history.resource_name(history.resource_of(sighting.key))),
        summary: format!("{client} asked for {scope} at {version}, which is the version of {object}"),
        facts: vec![saw, evidence.request(id, version, format!("{client} sent {}", history.request_name(&o)))],
        reason: "no version of this resource that the process read was at that revision; versions of two resources \
                may come from two stores, and the API does not compare them"
            .to_owned(),
        refuted_by: "a list, bookmark or event of this resource at that revision, seen by the process before"
            .to_owned(),
        consequence:
            "if the resource has a store of its own, the answer is older than meant, never comes, or skips changes"
                .to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds, trial};

    #[test]
    fn a_version_of_another_resource_is_a_hazard() {
        assert_eq!(kinds(&RULE, "c@A GET p => p:p1@41\nc@A WATCH services from 41\n"), [Kind::Hazard]);
        assert_eq!(kinds(&RULE, "c@A LIST => 50 {p:p1@41}\nc@A LIST services atleast=41 => 60 {}\n"), [Kind::Hazard]);
        assert_eq!(
            kinds(&RULE, "c@A WATCH from 30 +p:p1@41\nc@A GET services/s rv=41 => services/s:s1@9\n"),
            [Kind::Hazard]
        );
    }

    #[test]
    fn a_version_that_the_resource_itself_showed_is_its_own() {
        assert!(holds(
            &RULE,
            "c@A GET p => p:p1@41\nc@A LIST services exact=41 => 41 {}\nc@A LIST services => 41 {}\n"
        ));
        assert_eq!(kinds(&RULE, "c@A GET p => p:p1@41\nc@A LIST services => 41 {}\nc@A WATCH services from 41\n"), []);
        assert!(holds(
            &RULE,
            "c@A GET p => p:p1@41\nc@A WATCH services from 9 ^41 closed\nc@A LIST services atleast=41 => 60 {}\n"
        ));
        assert!(holds(&RULE, "o@A GET p => p:p1@41\nc@A WATCH services from 41\n"));
    }

    #[test]
    fn a_stream_is_resumed_from_what_it_showed() {
        let resumed = |shown: &str, from: u32| {
            let text = format!(
                "c@A LIST services => 9 {{}}\nc@A WATCH services from 9 +services/s:s1@12 {shown} closed\nc@A GET p => p:p1@41\n\
                 c@A WATCH services from {from}\n"
            );
            kinds(&RULE, &text)
        };
        assert_eq!(resumed("", 41), [Kind::Hazard]);
        assert_eq!(resumed("", 12), []);
        assert_eq!(resumed("", 9), []);
        assert_eq!(resumed("^41", 41), [], "a bookmark showed it");
        let text = "c@A LIST services => 9 {}\nc@A WATCH services from 9 bookmarks +services/s:s1@12 closed\nc@A GET p => p:p1@41\n\
                    c@A WATCH services from 41\n";
        assert_eq!(kinds(&RULE, text), [], "a bookmark may have shown it, and none is recorded");
    }

    #[test]
    fn reads_without_answers_leave_it_open() {
        let text = "client c recorded=audit level=metadata\nc@A LIST services => 41 {}\nc@A GET services/s => services/s:s1@9\n\
                    c@A GET p => p:p1@41\nc@A LIST services atleast=41 => 60 {}\n";
        assert_eq!(trial(&RULE, text).kinds(), []);
    }
}
