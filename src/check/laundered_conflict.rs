//! A conflict is answered by deciding again, not by sending the old content with the new version: **laundered conflict**.
//!
//! The server refuses a PUT whose version is outdated, because somebody changed the object in between. Who then reads only the new
//! version number and sends the old content again has got around the check: the change of the other one is gone, and every answer
//! said success.
//!
//! ```text
//! T     20 (the client reads: replicas 3)   25 PUT by another client: replicas 5
//! PUT base 20, replicas 3 => 409            GET => 25            PUT base 25, replicas 3 => 31
//! ```
//!
//! **A violation**, of the client, where all of these hold: its PUT was refused with 409; it held a later version when it sent a
//! PUT of the same object again; every field that others had changed between the two versions went back to what the older one
//! had; and the older value of such a field was not its own either. A **suspect**, where nobody knows who had set it before. A
//! **hazard**, where it had set the older value itself and may want it back, or may not have looked (kubernetes#82149).
//!
//! **Not judged**: patches (they carry what their sender wants, not what it read); writes of which some change of others
//! survived, since they were decided on the new version; changes of the same user that may be its own (one side's recording of a
//! process and the other's are not taken for two); conflicts about another life of the name (`name-reuse`); writes that name no
//! version (`blind-write`).
//!
//! **Evidence**: both requests with their bodies, and the bodies of the versions in between (audit level RequestResponse, or
//! captures).
//!
//! Sources: API concepts, "resource versions"; client-go `util/retry` (the function that is tried again has to read the object
//! anew); kubernetes#82149; kubernetes-semantics, P-RV-LAUNDER.

use super::author::{Author, author};
use super::bodies::{Bodies, BodyReader};
use super::memory::{Glimpse, Memories};
use super::outdated::{Undone, is_others, present_before};
use super::reversion::{Changed, Fields, is_by_others, last_change};
use super::{BrokenBy, Draft, Evidence, Fact, Group, Kind, Rule, Ruling};
use crate::history::{
    Document, IncarnationId, KeyId, Marks, Operation, OperationId, Revision, Subresource, Verb, recorded_fields,
};
use crate::order::{Change, Relation, Version, Versions, remembers};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "laundered-conflict",
    title: "after a conflict the content is decided anew, not only the version",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "a PUT after one of the same object that was refused with 409, with their bodies",
    causes: &["name-reuse", "broken-compare", "monotonic-reads", "stale-consistent-read"],
    source: include_str!("laundered_conflict.rs"),
    check,
};

/// How far back it is looked who had set a value.
const EARLIER: usize = 16;

/// Writes over more versions than this are not compared.
const SINCE: usize = 64;

/// A PUT that came through, after one that was refused.
struct Retry<'e> {
    refused: OperationId,
    write: OperationId,
    /// The version that the refused one named.
    base: Version,
    /// The versions from then on, before the write.
    since: Versions<'e>,
    /// Whether the refusal was complete for certain before the write was sent.
    is_ordered: bool,
}

/// A retry that put back what others had changed.
pub struct Laundered {
    /// The PUT that was refused.
    pub refused: OperationId,
    /// The PUT that came through.
    pub write: OperationId,
    /// What it undid.
    pub undone: Undone,
    /// Who had set the value that came back.
    pub author: Author,
}

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    let (retries, unordered): (Vec<_>, Vec<_>) = retries(evidence).into_iter().partition(|retry| retry.is_ordered);
    ruling.undecided_many("writes of which nothing proves that a conflict came before them", unordered.len() as u64);
    retries.iter().for_each(|retry| ruling.checked(evidence.history.operation(retry.write).incarnation));
    let (laundered, open) = compare(evidence, &retries);
    ruling.undecided_many(
        "the version that a write after a conflict replaced, or what it sent, was not recorded as a whole",
        open,
    );
    let operation = |l: &Laundered| evidence.history.operation(l.write);
    let wanted = laundered.iter().map(|l| (operation(l).incarnation, operation(l).key)).collect();
    let memories = Memories::collect(evidence, &wanted);
    for laundered in laundered {
        let o = operation(&laundered);
        let read = memories.last(evidence, o.incarnation, o.key, (o.invoke, o.clock), |_| true);
        found(evidence, ruling, &laundered, read.filter(|read| read.revision >= laundered.undone.change.revision));
    }
}

/// The retries of a history that put back what others had changed.
pub fn laundered(evidence: &Evidence<'_>) -> Vec<Laundered> {
    let retries: Vec<_> = retries(evidence).into_iter().filter(|retry| retry.is_ordered).collect();
    compare(evidence, &retries).0
}

/// Whether an operation is a PUT whose content can be compared.
fn is_put(evidence: &Evidence<'_>, o: &Operation) -> bool {
    o.verb == Verb::Update
        && o.key.is_some()
        && o.asked_revision.is_some()
        && o.marks.has(Marks::REQUEST_BODY)
        && !o.marks.has(Marks::DRY_RUN)
        && matches!(o.subresource, Subresource::None | Subresource::Status)
        && remembers(evidence.history, o.incarnation)
}

/// Pairs of a refused PUT and the next one of the same object by the same process that came through, on a later version.
fn retries<'e>(evidence: &Evidence<'e>) -> Vec<Retry<'e>> {
    let timeline = &evidence.order.timeline;
    let mut refused: FxHashMap<(IncarnationId, KeyId, Subresource), Vec<OperationId>> = FxHashMap::default();
    let mut found = Vec::new();
    for (id, o) in evidence.of_verbs(&[Verb::Update]).filter(|(_, o)| is_put(evidence, o)) {
        let place = (o.incarnation, o.key, o.subresource);
        // A conflict about the uid names the one that bears the name.
        if o.status == 409 && !o.answer_uid.is_some() {
            refused.entry(place).or_default().push(id);
        }
        if !o.is_answered() || !o.marks.has(Marks::ANSWER_BODY) {
            continue;
        }
        let Some(before) = refused.remove(&place) else { continue };
        let Some(through) = present_before(evidence, id, None) else { continue };
        let pairs = before.into_iter().filter_map(|refused| {
            let r = evidence.history.operation(refused);
            let base = timeline.version_at(o.key, r.asked_revision)?;
            let since = timeline.between(o.key, base.revision, through);
            let one_life = since.iter().all(|v| v.uid == base.uid && v.change.lives() == Some(true));
            let held = o.asked_revision > r.asked_revision && o.asked_revision <= through;
            let relation = evidence.order.clocks.relation((r.ret, r.clock), (o.invoke, o.clock));
            let may_follow = matches!(relation, Relation::Before | Relation::BeforeUnless(_));
            let fits = held && may_follow && one_life && !since.is_empty() && since.len() <= SINCE;
            fits.then_some(Retry { refused, write: id, base, since, is_ordered: relation == Relation::Before })
        });
        found.extend(pairs);
    }
    found.retain(|retry| retry.since.iter().any(|v| is_others(evidence, &v, retry.write)));
    found
}

/// The versions that one retry needs.
struct Plan {
    since: Vec<Version>,
    /// Before the base, the nearest first.
    earlier: Vec<Version>,
}

impl Plan {
    fn of(evidence: &Evidence<'_>, retry: &Retry<'_>) -> Plan {
        let base = &retry.base;
        let versions = evidence.order.timeline.versions(base.key);
        let at = versions.through(base.revision).saturating_sub(1);
        let life = versions.iter().take(at).rev().take_while(|v| v.uid == base.uid && v.change.lives() == Some(true));
        Plan { since: retry.since.iter().collect(), earlier: life.take(EARLIER).collect() }
    }
}

/// The retries that put back what others had changed, and how many others could not be compared.
fn compare(evidence: &Evidence<'_>, retries: &[Retry<'_>]) -> (Vec<Laundered>, u64) {
    let (mut found, mut open): (Vec<Laundered>, u64) = (Vec::new(), 0);
    let reader = BodyReader::new(evidence, retries.iter().map(|retry| retry.base.key));
    for part in retries.chunks(super::outdated::AT_ONCE) {
        let plans: Vec<Plan> = part.iter().map(|retry| Plan::of(evidence, retry)).collect();
        let versions: Vec<Version> = part
            .iter()
            .zip(&plans)
            .flat_map(|(retry, plan)| [&retry.base].into_iter().chain(&plan.since).chain(&plan.earlier).copied())
            .collect();
        let own = |retry: &Retry<'_>| [Document::Request(retry.write), Document::Answer(retry.write)];
        let bodies = reader.read(&versions, part.iter().flat_map(own));
        for (retry, plan) in part.iter().zip(&plans) {
            match undone(evidence, retry, plan, &bodies) {
                Some(laundered) => found.extend(laundered),
                None => open += 1,
            }
        }
    }
    // Of several attempts before one write the first that proves it.
    let mut told: FxHashSet<OperationId> = FxHashSet::default();
    found.sort_by_key(|l| (l.write, l.author, l.refused));
    found.retain(|l| told.insert(l.write));
    (found, open)
}

fn whole(body: Option<&Value>) -> Option<Fields<'_>> {
    body.filter(|body| recorded_fields(body).is_none()).map(Fields::of)
}

/// What a retry put back, if nothing of what others had changed survived it. `None`: what was read, replaced, sent or stored was not
/// recorded as a whole.
fn undone(evidence: &Evidence<'_>, retry: &Retry<'_>, plan: &Plan, bodies: &Bodies) -> Option<Option<Laundered>> {
    let sent = whole(bodies.get(Document::Request(retry.write)))?;
    let after = whole(bodies.get(Document::Answer(retry.write)))?;
    let old = whole(bodies.of(&retry.base))?;
    let since: Vec<Option<Fields<'_>>> = plan.since.iter().map(|v| whole(bodies.of(v))).collect();
    let earlier: Vec<Fields<'_>> = plan.earlier.iter().map_while(|v| whole(bodies.of(v))).collect();
    let now = since.last()?.as_ref()?;
    let changed = |path: &&String| old.get(path) != now.get(path);
    let all: FxHashSet<&String> = old.paths().chain(now.paths()).filter(changed).collect();
    let process = evidence.history.operation(retry.write).incarnation;
    let authors: Vec<Author> = plan.since.iter().map(|v| author(evidence, v, process)).collect();
    let mut undone: Vec<(bool, &String, Changed)> = Vec::new();
    for path in all {
        let Some(changed) = last_change(path, &old, &since) else { continue };
        let Some(certain) = is_by_others(&authors, &changed) else { continue };
        if sent.get(path) != old.get(path) {
            return Some(None);
        }
        if after.get(path) == old.get(path) {
            undone.push((!certain, path, changed));
        }
    }
    // Of several fields the one that proves most.
    let authored = undone
        .into_iter()
        .map(|(open, path, changed)| (open, setter(evidence, retry, path, &old, &earlier), path, changed));
    let most = authored.min_by_key(|(open, author, path, _)| (*open, *author, *path));
    Some(most.map(|(_, author, path, changed)| {
        let undone = Undone::new(evidence, path.clone(), &plan.since, &authors, &changed);
        Laundered { refused: retry.refused, write: retry.write, undone, author }
    }))
}

/// Who had set the value that a field had in the base.
fn setter(evidence: &Evidence<'_>, retry: &Retry<'_>, path: &str, old: &Fields<'_>, earlier: &[Fields<'_>]) -> Author {
    let versions = evidence.order.timeline.versions(retry.base.key);
    let at = versions.through(retry.base.revision).saturating_sub(1);
    let same = earlier.iter().take_while(|fields| fields.get(path) == old.get(path)).count();
    let Some(set) = versions.get(at - same) else { return Author::Unknown };
    // A creation, or a version before it that had another value.
    let is_known = set.change == Change::Created || same < earlier.len();
    let by = || author(evidence, &set, evidence.history.operation(retry.write).incarnation);
    if is_known { by() } else { Author::Unknown }
}

fn found(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>, laundered: &Laundered, read: Option<Glimpse>) {
    let history = evidence.history;
    let (o, refused) = (history.operation(laundered.write), history.operation(laundered.refused));
    let (client, key) = (evidence.short_client(&o), history.key_name(o.key));
    let field = &laundered.undone.field;
    let (by, when) = (laundered.undone.author_words(evidence), laundered.undone.when_words());
    let mut facts: Vec<Fact> = vec![
        evidence.version(&laundered.undone.change, format!("{by} had changed {field} of {key} {when}")),
        evidence.operation(
            laundered.refused,
            refused.asked_revision,
            format!("{client} sent {key} as of version {} and was refused with 409", refused.asked_revision),
        ),
    ];
    facts.extend(
        read.map(|read| read.fact(evidence, o.key, format!("{client} saw {key} at version {}", read.revision))),
    );
    let sent = format!("{client} sent {key} again, as of version {}, with {field} as it was before", o.asked_revision);
    facts.push(evidence.request(laundered.write, Revision::NONE, sent));
    facts.push(evidence.operation(laundered.write, o.answered, format!("the PUT put {field} back")));
    let (kind, reason) = match laundered.author {
        Author::Another => (
            Kind::Violation,
            "nothing of what others had changed between the two versions survived, so the content is that of the older one: the \
             conflict was answered with a new version number only",
        ),
        Author::Unknown => (
            Kind::Suspect,
            "the field went back to its older value; who had set that value first is not in the evidence, and the process may \
             have wanted it back",
        ),
        Author::Itself => (
            Kind::Hazard,
            "nothing of what others had changed survived; the process had set the older value itself, and may have wanted it back",
        ),
    };
    let (kind, reason) = match kind {
        Kind::Violation => laundered.undone.reason(reason),
        kind => (kind, reason.to_owned()),
    };
    ruling.found(Draft {
        kind,
        broken_by: BrokenBy::Client,
        incarnation: o.incarnation,
        key: o.key,
        cause: history.resource_name(history.resource_of(o.key)),
        summary: format!(
            "{client} answered a conflict by sending its old content of {key} with the new version, undoing what {by} had changed \
             {when}"
        ),
        facts,
        reason,
        refuted_by: "evidence that the process decided on the newer version and wanted the older values".to_owned(),
        consequence: "a change that was accepted is undone, and optimistic locking shows nobody that it was".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::super::trial::{holds, judged, kinds, unlinked};
    use super::{Kind, Marks, RULE, Verb};

    /// `a` is the other one's field, `b` the retrying client's.
    fn history(sent: &str, answered: &str) -> String {
        format!(
            "o@A CREATE x[a=1 b=1] => x:u1@10[a=1 b=1]\nc@A GET x => x:u1@10\no@A PUT x:u1@10[a=2 b=1] => x:u1@12[a=2 b=1]\n\
             c@A PUT x:u1@10[a=1 b=5] => !409\nc@A GET x => x:u1@12\nc@A PUT x:u1@12[{sent}] => x:u1@15[{answered}]\n"
        )
    }

    #[test]
    fn old_content_with_a_new_version_is_a_violation() {
        assert_eq!(kinds(&RULE, &history("a=1 b=5", "a=1 b=5")), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &history("a=1 b=6", "a=1 b=6")), [Kind::Violation]);
    }

    #[test]
    fn content_decided_on_the_new_version_is_none() {
        assert!(holds(&RULE, &history("a=2 b=5", "a=2 b=5")));
        assert!(holds(&RULE, &history("a=3 b=5", "a=3 b=5")));
        // The server kept the other one's field: a subresource, or admission.
        assert!(holds(&RULE, &history("a=1 b=5", "a=2 b=5")));
    }

    #[test]
    fn taking_away_what_another_one_added_is_a_violation() {
        let added = history("b=5", "b=5").replace("[a=1 b=1]", "[b=1]").replace("[a=1 b=5]", "[b=5]");
        assert_eq!(kinds(&RULE, &added), [Kind::Violation]);
    }

    #[test]
    fn a_value_of_its_own_may_be_wanted_back() {
        let own = history("a=1 b=5", "a=1 b=5").replacen("o@A CREATE", "c@A CREATE", 1);
        assert_eq!(kinds(&RULE, &own), [Kind::Hazard]);
    }

    #[test]
    fn a_value_of_unknown_origin_is_a_suspect() {
        let history = history("a=1 b=5", "a=1 b=5");
        let (_, rest) = history.split_once('\n').unwrap();
        let text = rest.replacen("x:u1@10", "x:u1@10[a=1 b=1]", 1);
        assert_eq!(kinds(&RULE, &text), [Kind::Suspect]);
    }

    #[test]
    fn some_change_that_survives_shows_that_it_decided_anew() {
        let text =
            history("a=1 b=5 d=9", "a=1 b=5 d=9").replacen("PUT x:u1@10[a=2 b=1]", "PUT x:u1@10[a=2 b=1 d=9]", 1);
        assert!(holds(&RULE, &text.replacen("@12[a=2 b=1]", "@12[a=2 b=1 d=9]", 1)));
    }

    #[test]
    fn another_life_of_the_name_is_another_rule_s() {
        let text = "o@A CREATE x[a=1] => x:u1@10[a=1]\nc@A GET x => x:u1@10\no@A DELETE x:u1 => ok\n\
                    o@A CREATE x[a=2] => x:u2@14[a=2]\nc@A PUT x:u1@10[a=1] => !409 live=:u2\nc@A GET x => x:u2@14\n\
                    c@A PUT x:u2@14[a=1] => x:u2@16[a=1]\n";
        assert_eq!(kinds(&RULE, text), []);
    }

    /// One client twice: as it recorded itself, and as a server did.
    const ITS_OWN: &str = "client c user=u recorded=capture\nclient s user=u recorded=audit\n\
        o@A CREATE x[a=1 b=1] => x:u1@10[a=1 b=1]\nc@A GET x => x:u1@10\ns@A PUT x:u1@10[a=2 b=1] => x:u1@12[a=2 b=1]\n\
        c@A PUT x:u1@10[a=1 b=5] => !409\nc@A GET x => x:u1@12\nc@A PUT x:u1@12[a=1 b=5] => x:u1@15[a=1 b=5]\n";

    #[test]
    fn what_only_a_server_recorded_of_the_same_user_may_be_its_own() {
        assert_eq!(kinds(&RULE, ITS_OWN), []);
        assert_eq!(kinds(&RULE, &ITS_OWN.replace("client s user=u", "client s user=v")), [Kind::Violation]);
        // Requests that both recorded show at which address it is.
        let elsewhere = "client c user=u recorded=both\nclient s user=u recorded=audit address=10.9.9.9\n";
        let replica = format!("{elsewhere}{}", ITS_OWN.split_once("o@A").map_or("", |(_, rest)| rest));
        assert_eq!(kinds(&RULE, &replica.replacen(" CREATE", "o@A CREATE", 1)), [Kind::Violation]);
    }

    #[test]
    fn both_records_of_a_write_are_one_without_an_audit_id() {
        let both = |other: &str| {
            let text = format!("client c user=u recorded=both\n{other}recorded both\n");
            unlinked(&format!("{text}{}", history("a=1 b=5", "a=1 b=5")))
        };
        assert_eq!(judged(&RULE, &both("")).kinds(), [Kind::Violation]);
        // A replica at another address.
        assert_eq!(judged(&RULE, &both("client o user=u recorded=audit\n")).kinds(), [Kind::Violation]);
        let own = history("a=1 b=5", "a=1 b=5").replace("o@A PUT", "c@A PUT");
        let own = unlinked(&format!("client c user=u recorded=both\nrecorded both\n{own}"));
        assert_eq!(judged(&RULE, &own).kinds(), []);
        let puts = own.operations.of_verbs(&[Verb::Update]).filter(|(_, o)| o.is_answered());
        assert_eq!(puts.map(|(_, o)| o.marks.has(Marks::BOTH_SIDES)).collect::<Vec<_>>(), [true, true]);
    }
}
