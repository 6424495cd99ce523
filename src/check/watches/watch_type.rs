#![doc = include_str!("../../../docs/rules/watch-type.md")]

use crate::check::etcd;
use crate::check::facts::commit_evidence;
use crate::check::facts::stream_view::StreamView;
use crate::check::watches::scope_membership::{MemberState, Membership, ScopeEvidence};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Rule, RuleResult};
use crate::history::{DeliveryKind, History, IncarnationId, KeyId, Marks, Revision, ScopeId};
use crate::order::Provenance;
use rustc_hash::FxHashMap;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-type",
    title: "the type of an event fits what the stream showed before, and fits the revision order",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "two events about one object on one watch",
    causes: &["revision-rewind", "watch-gap", "watch-reorder", "watch-duplicate", "watch-prehistory", "delete-version"],
    page: include_str!("../../../docs/rules/watch-type.md"),
    checks: Checks::kubernetes(check).and_etcd(etcd::watches::kind),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let mut membership = Membership::of(evidence);
    let mut disagreements = Disagreements::default();
    let mut last = LastEvents::new(history);
    for view in StreamView::all(evidence) {
        last.forget();
        let (mut identified, mut checked) = (true, 0);
        let mut reached = Revision::NONE;
        let initial = history.deliveries[view.initial.clone()].iter();
        let began = initial.map(|d| d.revision).max().unwrap_or_default();
        let scope = view.operation.scope;
        let selects = history.is_selective(scope).then_some(scope);
        for index in view.initial.start..view.live.end {
            let d = &history.deliveries[index];
            if d.kind == DeliveryKind::Unidentified {
                // The event may be about any object.
                last.forget();
                identified = false;
            }
            if !matches!(d.kind, DeliveryKind::Added | DeliveryKind::Modified | DeliveryKind::Deleted)
                || !d.key.is_some()
            {
                continue;
            }
            if evidence.order.timeline.is_misdated(index) {
                last.replace(d.key, None);
                continue;
            }
            let live = index >= view.live.start;
            if live {
                if d.revision <= reached || view.start.is_some_and(|start| d.revision <= start) {
                    // The event's place in the order is open, so the membership after it is open too.
                    last.replace(d.key, None);
                    continue;
                }
                reached = d.revision;
            }
            let before = last.replace(d.key, Some(index));
            let in_order = if live && selects.is_none() { by_order(evidence, &view, index) } else { None };
            checked += u64::from(in_order.is_some());
            if let Some(Err((shown, was))) = in_order {
                contradicted(evidence, result, &view, index, shown, was);
                continue;
            }
            if live {
                disagreements.observe(evidence, &view, selects, index);
            }
            // A state that shows a name twice before its marker belongs to `bad-initial-state`.
            if !live && (view.marker.is_some() || before.is_none()) {
                continue;
            }
            let before = match before {
                Some(event) => event.map(|event| {
                    let d = &history.deliveries[event];
                    let source = ScopeEvidence::Event(event, view.watch);
                    MemberState { source, uid: d.uid, member: d.kind != DeliveryKind::Deleted }
                }),
                None => membership.at_start(&view, d.key).filter(|_| identified),
            };
            let Some(before) = before else { continue };
            checked += 1;
            let same = before.uid == d.uid && d.uid.is_some();
            let reason = match (d.kind, before.source) {
                (DeliveryKind::Added, _) if before.member && same => {
                    "ADDED says that an object enters the scope, and this one was in it."
                }
                (DeliveryKind::Added, _) => continue,
                _ if before.member => continue,
                // Servers before 1.10 date the event by the object's last version. The object may have been gone when the
                // state was taken.
                (DeliveryKind::Deleted, ScopeEvidence::NotYetShown(_)) if d.revision < began => continue,
                (_, ScopeEvidence::Event(..)) => {
                    "MODIFIED and DELETED are about objects in the scope, and this name had left it."
                }
                (_, _) => {
                    "MODIFIED and DELETED are about objects in the scope, and this one was not in it and had not been added."
                }
            };
            let event = evidence.delivery_words(index);
            let earlier = before.source.words(evidence, d.key);
            let earlier = match before.source {
                ScopeEvidence::Event(_, watch) if watch == view.watch => format!("{earlier} on one stream"),
                _ => earlier,
            };
            let mut facts = vec![before.source.fact(evidence, d.key, before.uid)];
            if let Some(start) =
                view.start.filter(|_| !matches!(before.source, ScopeEvidence::Event(_, watch) if watch == view.watch))
            {
                facts.push(evidence.request(view.watch, start, format!("{} continued from there", view.words())));
            }
            facts.push(evidence.delivery(
                index,
                view.watch,
                format!("received {event} as the next event of that name"),
            ));
            let draft = Draft {
                summary: format!("{} received {event} after {earlier}", evidence.observer_words(&view.operation)),
                facts,
                reason: format!("{reason} Either the type is wrong or an event between the two was lost."),
                refuted_by: "a record of the stream that holds an event of this object between the two".to_owned(),
                consequence: "a client that keeps a set of objects by event types keeps a wrong one".to_owned(),
                ..view.draft(d.key)
            };
            result.found(evidence.unless_lost(view.settle(draft)));
        }
        result.checked_many(view.operation.incarnation, checked);
    }
    disagreements.judge(evidence, result);
}

/// The last event of each key on a stream. One table serves all streams, one after the other.
struct LastEvents {
    /// Per key: the round that wrote the entry, and the event.
    of: Vec<(u32, u32)>,
    round: u32,
}

impl LastEvents {
    /// Marks an event at an open place in the order.
    const OPEN: u32 = u32::MAX;

    fn new(history: &History) -> LastEvents {
        LastEvents { of: vec![(0, 0); history.keys.len()], round: 1 }
    }

    /// Begins anew, without an event of any key.
    fn forget(&mut self) {
        self.round += 1;
    }

    /// Sets the last event of a key, `None` for one whose place is open. Returns the one before, if there was one.
    fn replace(&mut self, key: KeyId, event: Option<usize>) -> Option<Option<usize>> {
        let now = (self.round, event.map_or(LastEvents::OPEN, |event| event as u32));
        let (round, before) = std::mem::replace(&mut self.of[key.index()], now);
        (round == self.round).then_some((before != LastEvents::OPEN).then_some(before as usize))
    }
}

/// Whether the type of an event of an unselected scope fits the revision order; `None` if that is open. The error is the
/// evidence against it, and what the change was.
fn by_order(evidence: &Evidence<'_>, view: &StreamView<'_>, index: usize) -> Option<Result<(), (Fact, &'static str)>> {
    let (history, timeline) = (evidence.history, &evidence.order.timeline);
    let d = &history.deliveries[index];
    if view.operation.marks.has(Marks::SAVED) || !view.operation.scope.is_some() {
        return None;
    }
    let versions = timeline.versions(d.key);
    let at = versions.through(d.revision).checked_sub(1)?;
    let version = versions.get(at).filter(|version| version.revision == d.revision)?;
    let earlier = at.checked_sub(1).and_then(|at| versions.get(at));
    let lived = earlier.filter(|v| {
        v.uid == d.uid && v.uid.is_some() && v.change.lives() == Some(true) && v.provenance < Provenance::Base
    });
    // A watch without a start sends its own state as ADDED, for old objects too.
    if let Some(earlier) =
        lived.filter(|_| d.kind == DeliveryKind::Added && (view.start.is_some() || view.marker.is_some()))
    {
        let says = format!("{} existed at revision {} already", history.key_name(d.key), earlier.revision);
        return Some(Err((evidence.version(&earlier, says), "the change of an object that existed before")));
    }
    let created = commit_evidence::is_creation(evidence, &version)?;
    let was = match (d.kind, created) {
        (DeliveryKind::Added, false) => "an update of a living object",
        (DeliveryKind::Modified, true) => "a creation",
        _ => return Some(Ok(())),
    };
    Some(Err((evidence.version(&version, format!("the change at revision {} was {was}", d.revision)), was)))
}

fn contradicted(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    view: &StreamView<'_>,
    index: usize,
    shown: Fact,
    was: &str,
) {
    let d = &evidence.history.deliveries[index];
    let event = evidence.delivery_words(index);
    let draft = Draft {
        summary: format!("{} received {event}, which was {was}", evidence.observer_words(&view.operation)),
        facts: vec![shown, evidence.delivery(index, view.watch, format!("received {event}"))],
        reason: "Without selectors a creation is ADDED and an update is MODIFIED, so this type is wrong.".to_owned(),
        refuted_by: "evidence that the write at that revision was of the other kind".to_owned(),
        consequence: "a client that keeps a set of objects by event types keeps a wrong one".to_owned(),
        ..view.draft(d.key)
    };
    result.found(view.settle(draft));
}

/// A change in a scope: key, revision, and the scope if it selects.
type ScopedChange = (KeyId, Revision, ScopeId);

/// The first event of each change after the initial parts of all streams, and the first event of another type. All streams of
/// one scope must give one type to one change.
#[derive(Default)]
struct Disagreements {
    first: FxHashMap<ScopedChange, u32>,
    other: FxHashMap<ScopedChange, u32>,
}

impl Disagreements {
    fn observe(&mut self, evidence: &Evidence<'_>, view: &StreamView<'_>, selects: Option<ScopeId>, index: usize) {
        let deliveries = &evidence.history.deliveries;
        let d = &deliveries[index];
        if d.kind == DeliveryKind::Deleted || !d.uid.is_some() || view.is_saved() {
            return;
        }
        let change = (d.key, d.revision, selects.unwrap_or(ScopeId::NONE));
        let first = &deliveries[*self.first.entry(change).or_insert(index as u32) as usize];
        if d.kind != first.kind && d.uid == first.uid {
            self.other.entry(change).or_insert(index as u32);
        }
    }

    fn judge(self, evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
        let history = evidence.history;
        let mut all: Vec<_> =
            self.other.into_iter().map(|(change, other)| (change, self.first[&change], other)).collect();
        all.sort_unstable();
        for (change, one, other) in all {
            let [one, other] = [one, other].map(|index| (index as usize, history.watch_of(index as usize)));
            let (to, o) = (history.operation(one.1), history.operation(other.1));
            let [said, otherwise] = [one, other].map(|(index, _)| evidence.delivery_words(index));
            let facts = [one, other].map(|(index, watch)| {
                evidence.delivery(index, watch, format!("received {}", evidence.delivery_words(index)))
            });
            let draft = StreamView::of(evidence, history.stream_of(other.1).expect("it delivered")).draft(change.0);
            result.found(Draft {
                summary: format!(
                    "{} received {otherwise}, and {} received {said}",
                    evidence.observer_words(&o),
                    evidence.observer_words(&to)
                ),
                facts: facts.into(),
                reason: "One change either brings an object into a scope or changes an object in it, so all streams \
                        of the scope deliver one type."
                    .to_owned(),
                refuted_by: "evidence that the two streams are of two stores".to_owned(),
                consequence: "a client that keeps a set of objects by event types keeps a wrong one".to_owned(),
                // The evidence does not show which of the two types is right.
                incarnation: if o.incarnation == to.incarnation { o.incarnation } else { IncarnationId::NONE },
                ..draft
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::testing::specimen::Specimen;

    #[test]
    fn finds_types_that_contradict_the_stream() {
        for (first, second, found) in [
            ("ADDED", "ADDED", 1),
            ("ADDED", "MODIFIED", 0),
            ("DELETED", "MODIFIED", 1),
            ("DELETED", "DELETED", 1),
            ("DELETED", "ADDED", 0),
        ] {
            let mut s = Specimen::new();
            let w = s.watch("&resourceVersion=20");
            s.event(w, first, ("a", "u", 23)).event(w, second, ("a", "u", 25));
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{first} {second}");
        }
    }

    #[test]
    fn finds_types_that_contradict_the_write_itself() {
        let text = |event: &str| {
            format!(
                "
ctrl   |-CREATE a => a:u1@23-|  |-PUT a:u1@23 => a:u1@25-|
view   |-WATCH from 20 +a:u1@23 {event}a:u1@25 ..
"
            )
        };
        let kinds = |event: &str| {
            let history = crate::history::sketch::sketch(&text(event)).unwrap();
            let order = crate::order::Order::derive(&history, &Default::default());
            let only = crate::check::Options { only: vec![RULE.slug.to_owned()], ..Default::default() };
            crate::check::judge(&history, &order, &only).findings.len()
        };
        assert_eq!((kinds("~"), kinds("+")), (0, 1));
        let fresh = "
ctrl   |-CREATE a => a:u1@23-|
view   |-WATCH from 20 ~a:u1@23 ..
";
        let history = crate::history::sketch::sketch(fresh).unwrap();
        let order = crate::order::Order::derive(&history, &Default::default());
        let found = crate::check::judge(&history, &order, &Default::default()).findings;
        assert!(found.iter().any(|f| f.rule == RULE.slug), "{found:?}");
    }

    #[test]
    fn what_was_there_before_is_not_added() {
        for (query, uid, found) in
            [("&resourceVersion=20", "u1", 1), ("&resourceVersion=20", "u2", 0), ("&resourceVersion=0", "u1", 0)]
        {
            let mut s = Specimen::new();
            s.list("", 20, &[("a", "u1", 15)]);
            let w = s.watch(query);
            s.event(w, "ADDED", ("a", uid, 25));
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{query} {uid}");
        }
    }

    #[test]
    fn another_life_of_the_name_is_not_a_wrong_type() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=20");
        s.event(w, "ADDED", ("a", "u1", 23)).event(w, "ADDED", ("a", "u2", 25));
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn a_deletion_with_an_old_version_leaves_membership_open() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=20");
        s.event(w, "ADDED", ("a", "u1", 23)).event(w, "DELETED", ("a", "u1", 23)).event(w, "ADDED", ("a", "u2", 29));
        assert!(s.kinds(&RULE).is_empty());
    }

    #[test]
    fn what_the_list_of_the_same_selector_showed_is_in_it() {
        let selected = "labelSelector=a%3Db";
        for (listed, uid, from, first, found) in [
            (selected, "u1", 20, "ADDED", 1),
            (selected, "u1", 20, "MODIFIED", 0),
            (selected, "u2", 20, "ADDED", 0),
            // It may have left in between, and a stream with another selector shows nothing about that.
            (selected, "u1", 21, "ADDED", 0),
            ("labelSelector=a%3Dc", "u1", 20, "ADDED", 0),
        ] {
            let mut s = Specimen::new();
            s.list(&format!("?{listed}"), 20, &[("a", "u1", 15)]);
            let w = s.watch(&format!("&resourceVersion={from}&{selected}"));
            s.event(w, first, ("a", uid, 25));
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{listed} {uid} {from} {first}");
        }
        // It left and came back.
        let mut s = Specimen::new();
        s.list(&format!("?{selected}"), 20, &[("a", "u1", 15)]);
        let w = s.watch(&format!("&resourceVersion=20&{selected}"));
        s.event(w, "DELETED", ("a", "u1", 24)).event(w, "ADDED", ("a", "u1", 25));
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn a_line_that_could_not_be_used_may_have_told_that_it_left() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=20&labelSelector=a%3Db");
        s.event(w, "ADDED", ("a", "u", 23)).event(w, "DELETED", ("a", "u", 24)).cut().event(w, "ADDED", ("a", "u", 25));
        assert_eq!(s.kinds(&RULE), [Kind::Suspect]);
    }
}
