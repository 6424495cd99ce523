#![doc = include_str!("../../../docs/rules/revision-reuse.md")]

use crate::check::etcd;
use crate::check::facts::lone_witness;
use crate::check::facts::{commit_evidence, staleness};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{AuditId, IncarnationId, KeyId, OperationId, Revision, Symbol, Verb};
use crate::order::{Contradiction, Fragment, Provenance, Version, Watermark, removes};
use rustc_hash::{FxHashMap, FxHashSet};

/// Larger revisions are hardly etcd's: some stores use times as revisions.
const ETCD_LIMIT: u128 = 1_000_000_000_000_000;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "revision-reuse",
    title: "one revision is one write",
    group: Group::Writes,
    promise: BrokenBy::Server,
    needs: "versions of objects: bodies of answers, watch events, or an etcd witness",
    causes: &["torn-snapshot"],
    page: include_str!("../../../docs/rules/revision-reuse.md"),
    checks: Checks::kubernetes(check).and_etcd(etcd::writes::reuse),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let timeline = &evidence.order.timeline;
    for process in timeline.processes(evidence.history) {
        result.checked(*process);
    }
    let mut said: FxHashSet<Revision> = FxHashSet::default();
    for contradiction in timeline.contradictions() {
        match *contradiction {
            Contradiction::TwoKeys(a, b) => {
                said.insert(timeline.version(a).revision);
                two_keys(evidence, result, &timeline.version(a), &timeline.version(b));
            }
            Contradiction::TwoWrites(a, b) => {
                said.insert(evidence.history.operation(b).answered);
                two_writes(evidence, result, a, b);
            }
            Contradiction::ShownDeleted(key, revision, shown) => {
                if let Some(deletion) = timeline.version_at(key, revision) {
                    said.insert(revision);
                    shown_deleted(evidence, result, &deletion, shown);
                }
            }
            Contradiction::TwoUids(..) | Contradiction::TwoContents(..) => {}
        }
    }
    taken_before(evidence, result, &said);
    crowded_removals(evidence, result);
}

/// Writes and removals that committed at a revision that was complete before they were sent, so it belongs to another write.
/// Those below such a revision belong to `revision-rewind`.
fn taken_before(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, said: &FxHashSet<Revision>) {
    let (history, order) = (evidence.history, evidence.order);
    let removals = commit_evidence::removals(evidence);
    for (id, o) in evidence.of_verbs(&[Verb::Create, Verb::Update, Verb::Patch, Verb::Delete]) {
        if commit_evidence::is_above_all(evidence, id, &o) {
            continue;
        }
        let removal = removals.get(&id).map(|version| version.revision);
        let committed = commit_evidence::proven(evidence, &o).or(removal);
        let Some(revision) = committed.filter(|revision| !said.contains(revision)) else { continue };
        let resource = history.resource_of(o.key);
        let taken = |watermark: &Watermark| watermark.revision == revision;
        let proved = order.watermarks.before_request(history, &order.clocks, resource, &o).filter(taken);
        let alone = order.watermarks.against(history, id).filter(taken);
        // Only by times of a clock that was set back.
        let stepped = order.clocks.step(o.clock).is_some();
        let bare = || order.watermarks.before_by_the_clock(history, resource, o.invoke).filter(taken);
        let is_alone = proved.is_none() && alone.is_some();
        let Some(watermark) =
            proved.or(alone).or_else(|| bare().filter(|watermark| stepped && watermark.clock == o.clock))
        else {
            continue;
        };
        if is_alone && lone_witness::is_told(evidence, watermark.showing) {
            continue;
        }
        let doubt = is_alone.then(|| lone_witness::doubt(evidence, watermark.showing)).flatten();
        let step = (stepped && proved.is_none()).then(|| staleness::set_back(o.invoke.since(watermark.time)));
        let (what, key) = (history.request_name(&o), history.key_name(o.key));
        let facts = vec![
            evidence.showing(
                watermark.showing,
                revision,
                format!("an answer showed that revision {revision} was complete"),
            ),
            evidence.request(id, Revision::NONE, format!("{what} was sent")),
            evidence.operation(id, revision, format!("it was answered as committed at revision {revision}")),
        ];
        let (done, sent) = if removal.is_some() { ("removed", "request") } else { ("written", "write") };
        let summary = format!("{key} was {done} at revision {revision}, which was complete before the {sent} was sent");
        let cause = history.resource_name(resource);
        state(result, Reuse { revision, facts, summary, open: doubt.or(step), cause });
    }
}

/// Removals without a free revision: above every revision that was complete before the request, and below the next life.
fn crowded_removals(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let (history, order) = (evidence.history, evidence.order);
    let removing = || {
        let all = evidence.of_verbs(&[Verb::Update, Verb::Patch, Verb::Delete]);
        all.filter(|(_, o)| removes(o) && o.answer_uid.is_some())
    };
    let next_lives = next_lives(evidence, removing().map(|(_, o)| o.key));
    for (id, o) in removing() {
        let Some(next) = next_lives.get(&(o.key, o.answer_uid)) else { continue };
        let Some(watermark) = order.watermarks.before_request(history, &order.clocks, history.resource_of(o.key), &o)
        else {
            continue;
        };
        result.checked(o.incarnation);
        if next.revision > watermark.revision.next() {
            continue;
        }
        let key = history.key_name(o.key);
        let shown = format!("revision {} was complete", watermark.revision);
        let facts = vec![
            evidence.showing(watermark.showing, watermark.revision, shown),
            evidence.request(id, Revision::NONE, format!("a request to remove {key} was sent, and succeeded")),
            evidence.version(next, format!("{key} existed again, as another object, at revision {}", next.revision)),
        ];
        let summary = format!(
            "{key} was removed after revision {} and created again at {}: no revision is left for its removal",
            watermark.revision, next.revision
        );
        let cause = history.resource_name(history.resource_of(o.key));
        state(result, Reuse { revision: next.revision, facts, summary, open: None, cause });
    }
}

/// Behind the last living version of each object of these names: the first version of another object of the name.
fn next_lives(evidence: &Evidence<'_>, names: impl Iterator<Item = KeyId>) -> FxHashMap<(KeyId, Symbol), Version> {
    let mut next_lives = FxHashMap::default();
    let (names, mut ends): (FxHashSet<KeyId>, FxHashSet<(KeyId, Symbol)>) = (names.collect(), FxHashSet::default());
    for key in names {
        // The walk goes down: `first` is the version last passed, `other` the next one above it of another object.
        let (mut first, mut other): (Option<Version>, Option<Version>) = (None, None);
        for version in evidence.order.timeline.versions(key).iter().rev().filter(|v| v.uid.is_some()) {
            if version.change.lives() == Some(true) && ends.insert((key, version.uid)) {
                let next = if first.is_some_and(|first| first.uid == version.uid) { other } else { first };
                next_lives.extend(next.map(|next| ((key, version.uid), next)));
            }
            if version.provenance < Provenance::Base {
                if first.is_some_and(|first| first.uid != version.uid) {
                    other = first;
                }
                first = Some(version);
            }
        }
    }
    next_lives
}

fn two_keys(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, a: &Version, b: &Version) {
    let history = evidence.history;
    // One object under two names of its kind, as an OpenShift project is a namespace.
    let name = |v: &Version| history.keys[v.key.index()].name;
    if a.uid == b.uid && a.uid.is_some() && name(a) == name(b) {
        return;
    }
    let (ra, rb) = (history.resource_of(a.key), history.resource_of(b.key));
    let one_counter = history.share_counter(ra, rb);
    let says = |v: &Version| format!("{} had the version {}", history.key_name(v.key), v.revision);
    let facts = vec![evidence.version(a, says(a)), evidence.version(b, says(b))];
    let (na, nb) = (history.resource_name(ra), history.resource_name(rb));
    let summary = format!(
        "revision {} is the version of {} and of {}, but etcd gives one revision to one write",
        a.revision,
        history.key_name(a.key),
        history.key_name(b.key)
    );
    let open = (!one_counter).then(|| {
        format!(
            "{na} and {nb} may live in different etcd clusters (--etcd-servers-overrides), each with its own \
            revisions; declare with --domain whether they share one"
        )
    });
    let cause = if na <= nb { format!("{na} {nb}") } else { format!("{nb} {na}") };
    state(result, Reuse { revision: a.revision, facts, summary, open, cause });
}

fn two_writes(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, a: OperationId, b: OperationId) {
    let history = evidence.history;
    let (first, second) = (history.operation(a), history.operation(b));
    let one_request = first.verb == second.verb
        && ((first.audit_id == second.audit_id && first.audit_id != AuditId::None)
            || (first.invoke, first.ret, first.incarnation) == (second.invoke, second.ret, second.incarnation));
    if one_request {
        return;
    }
    let fact = |id: OperationId| {
        let o = history.operation(id);
        evidence.operation(id, o.answered, format!("{} was answered as committed", history.request_name(&o)))
    };
    let key = history.key_name(second.key);
    let summary = format!("two requests committed {key} at one revision, {}", second.answered);
    let cause = history.resource_name(history.resource_of(second.key));
    let facts = vec![fact(a), fact(b)];
    state(result, Reuse { revision: second.answered, facts, summary, open: None, cause });
}

/// An object that was shown at the revision of its deletion.
fn shown_deleted(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, deletion: &Version, shown: Fragment) {
    let history = evidence.history;
    let (key, revision) = (history.key_name(deletion.key), deletion.revision);
    let facts = vec![
        evidence.version(deletion, format!("{key} was deleted at revision {revision}")),
        evidence.shown(deletion, shown.origin, shown.uid, format!("{key} was shown at version {revision}")),
    ];
    let summary = format!("revision {revision} is the deletion of {key}, but {key} was shown at this version");
    let cause = history.resource_name(history.resource_of(deletion.key));
    state(result, Reuse { revision, facts, summary, open: None, cause });
}

struct Reuse {
    revision: Revision,
    facts: Vec<Fact>,
    summary: String,
    open: Option<String>,
    cause: String,
}

fn state(result: &mut RuleResult<'_>, reuse: Reuse) {
    let huge = reuse.revision.value() > ETCD_LIMIT;
    let open = reuse.open.or_else(|| {
        huge.then(|| {
            "revisions of this size are not etcd's, and another store may give one number to several writes".into()
        })
    });
    let kind = if open.is_some() { Kind::Suspect } else { Kind::Violation };
    let last = reuse.facts.iter().rev().find(|f| f.incarnation.is_some()).cloned();
    result.found(Draft {
        kind,
        broken_by: BrokenBy::Server,
        incarnation: last.as_ref().map_or(IncarnationId::NONE, |f| f.incarnation),
        key: reuse.facts[1].key,
        cause: reuse.cause,
        summary: reuse.summary,
        facts: reuse.facts,
        reason: open
            .unwrap_or_else(|| "etcd's revisions count commits, so one revision is one write to one key".into()),
        refuted_by:
            "evidence that the two came from API servers on different etcd clusters, or that the recording was \
                     altered"
                .into(),
        consequence:
            "two timelines exist: caches, locks and watches that compare their versions are wrong, and the writes \
                      of one of them are lost"
                .into(),
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    #[test]
    fn two_keys_at_one_revision_are_two_timelines() {
        assert_eq!(kinds(&RULE, "a@A CREATE x => x:u1@40\nb@B CREATE y => y:u2@40\n"), [Kind::Violation]);
        assert!(holds(&RULE, "a@A CREATE x => x:u1@40\nb@B CREATE y => y:u2@41\n"));
    }

    #[test]
    fn built_in_resources_may_have_a_counter_each() {
        assert_eq!(kinds(&RULE, "a@A CREATE x => x:u1@40\nb@B CREATE nodes/n => nodes/n:u2@40\n"), [Kind::Suspect]);
    }

    #[test]
    fn huge_revisions_may_be_another_store_s() {
        let n = 1_759_127_820_246_769_000u64;
        let text = format!("a@A CREATE x => x:u1@{n}\nb@B CREATE y => y:u2@{n}\n");
        assert_eq!(kinds(&RULE, &text), [Kind::Suspect]);
    }

    #[test]
    fn two_requests_cannot_commit_at_one_revision() {
        let text = "a@A PUT x:u1@20 => x:u1@31\nb@A PUT x:u1@25 => x:u1@31\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        // The second write changed nothing, so it committed no revision.
        assert!(holds(&RULE, "a@A PUT x:u1@20 => x:u1@31\nb@A PUT x:u1@31 => x:u1@31\n"));
        assert!(holds(&RULE, "a@A PUT x:u1@20 => x:u1@31\nb@A PATCH x => x:u1@31\n"));
    }

    #[test]
    fn a_revision_that_was_complete_is_taken() {
        assert_eq!(kinds(&RULE, "a@A LIST => 71 {}\na@A CREATE x => x:u1@71\n"), [Kind::Violation]);
        assert!(holds(&RULE, "a@A |--LIST => 71 {x:u1@71}--|\nb@A |--CREATE x => x:u1@71--|\n"));
    }

    #[test]
    fn a_removal_needs_a_revision_of_its_own() {
        let text = |created: u32| {
            format!("a@A LIST => 70 {{x:u1@60}}\na@A DELETE x:u1 => x:u1@60 gone\na@A CREATE x => x:u2@{created}\n")
        };
        assert_eq!(kinds(&RULE, &text(71)), [Kind::Violation]);
        assert!(holds(&RULE, &text(72)));
    }

    #[test]
    fn one_request_recorded_by_both_sides_is_one() {
        let text = "recorded both\nserver A clock=a\nclock a -3ms\na@A PUT x:u1@20 => x:u1@31\n";
        assert!(holds(&RULE, text));
    }
}
