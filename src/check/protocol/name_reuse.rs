#![doc = include_str!("../../../docs/rules/name-reuse.md")]

use crate::check::facts::authorship::{Author, author};
use crate::check::facts::awareness::several;
use crate::check::facts::commit_evidence;
use crate::check::facts::knowledge::{ClientKnowledge, Known, LastRead};
use crate::check::facts::provenance::{self, AmbiguousWrite};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{
    IncarnationId, KeyId, Marks, Operation, OperationId, Outcome, Revision, Subresource, Symbol, Verb,
};
use crate::order::{Relation, Version, remembers, removes};
use rustc_hash::{FxHashMap, FxHashSet};

/// Writes that are examined at a time. Bounds the bodies in memory.
const MAX_WRITES_AT_ONCE: usize = 500;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "name-reuse",
    title: "a write that is meant for one object does not change another object of the same name",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "writes with the uid that they changed, and the uid that the writer had seen or named before",
    causes: &["broken-compare", "monotonic-reads", "read-your-writes"],
    page: include_str!("../../../docs/rules/name-reuse.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let mut unnamed: Vec<OperationId> = Vec::new();
    let mut ends: FxHashMap<KeyId, Vec<OperationId>> = FxHashMap::default();
    for (id, o) in evidence.of_verbs(&Verb::WRITES) {
        let effect = o.subresource == Subresource::Effect;
        if may_end(&o) {
            ends.entry(o.key).or_default().push(id);
        }
        if !o.key.is_some()
            || o.marks.has(Marks::DRY_RUN)
            || o.subresource == Subresource::Other
            || effect != (o.verb == Verb::Create)
        {
            continue;
        }
        let known = o.is_answered() && remembers(history, o.incarnation);
        if effect {
            if known && o.marks.has(Marks::REQUEST_BODY) && !o.request_uid.is_some() && !o.asked_revision.is_some() {
                unnamed.push(id);
            }
        } else if o.request_uid.is_some() {
            named(evidence, result, id, &o);
        } else if known
            && o.marks.has(Marks::UNCONDITIONED)
            && o.status != 201
            && o.answer_uid.is_some()
            && commit_evidence::took_effect(evidence, id, &o)
        {
            unnamed.push(id);
        }
    }
    let wanted: FxHashSet<_> = unnamed.iter().map(|&id| key_of(&history.operation(id))).collect();
    let knowledge = ClientKnowledge::collect(evidence, &wanted);
    let mut open: Vec<AmbiguousWrite> = Vec::new();
    for id in unnamed {
        let o = history.operation(id);
        let moment = (o.invoke, o.clock);
        let last = |counts: &dyn Fn(&LastRead) -> bool| knowledge.last(evidence, o.incarnation, o.key, moment, counts);
        // Answers to bindings and evictions show no object, so other evidence must show the object of the name at that time.
        let met = |seen: &LastRead| match (o.subresource, seen.known) {
            (Subresource::Effect, Known::Life(uid)) => bearer(evidence, &o, uid).map_or(uid, |bearer| bearer.uid),
            _ => o.answer_uid,
        };
        let other = |g: &LastRead| matches!(g.known, Known::Life(uid) if uid.is_some() && uid != met(g));
        if o.decision.is_some()
            && let Some(premise) = last(&|g| g.decision(evidence) == o.decision).filter(other)
        {
            result.checked(o.incarnation);
            landed(evidence, result, Landing { id, met: met(&premise), ends: &ends }, &premise, Ground::Declared);
            continue;
        }
        let Some(seen) = last(&|_| true) else {
            if knowledge.may_have_read_another(evidence, (o.incarnation, o.key), moment, other) {
                result.undecided("writes by name that nothing proves to follow a read of another object");
            }
            continue;
        };
        result.checked(o.incarnation);
        if !other(&seen) {
            // The process saw the new life as well. Its first write to the new object may still rest on the old one.
            let before = last(&other).filter(|_| o.subresource != Subresource::Effect);
            let wrote = |g: &LastRead| g.is_own_write(evidence) && !other(g);
            let own = knowledge
                .at_most(o.incarnation, o.key)
                .any(|g| wrote(g) && evidence.order.clocks.before(g.moment, moment));
            open.extend(before.filter(|_| !own).map(|seen| AmbiguousWrite { id, seen, overtaken: true }));
        } else if knowledge.may_know_more(evidence, o.incarnation, o.key, seen.moment, moment) {
            open.push(AmbiguousWrite { id, seen, overtaken: false });
        } else {
            landed(evidence, result, Landing { id, met: met(&seen), ends: &ends }, &seen, Ground::LastRead);
        }
    }
    for part in open.chunks(MAX_WRITES_AT_ONCE) {
        let derived = provenance::values(evidence, &knowledge, part);
        for (at, doubt) in part.iter().enumerate() {
            let landing = Landing { id: doubt.id, met: history.operation(doubt.id).answer_uid, ends: &ends };
            match derived.get(&at) {
                Some(value) if doubt.overtaken => {
                    landed(evidence, result, landing, &doubt.seen, Ground::Inferred(value.clone()));
                }
                Some(value) => landed(evidence, result, landing, &doubt.seen, Ground::Value(value.clone())),
                None if doubt.overtaken => {}
                None => result.undecided(
                    "writes by name to a replaced object, by processes whose watches were recorded without their events",
                ),
            }
        }
    }
}

fn key_of(o: &Operation) -> (IncarnationId, KeyId) {
    (o.incarnation, o.key)
}

/// Judges a request that names a uid.
fn named(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, id: OperationId, o: &Operation) {
    let refused = o.outcome() == Outcome::Rejected && matches!(o.status, 409 | 412 | 422);
    if !(refused || o.is_answered()) || o.status == 201 {
        return;
    }
    let answered = o.answer_uid.is_some().then_some(o.answer_uid);
    if answered == Some(o.request_uid) {
        return result.checked(o.incarnation);
    }
    // A refusal changes no verdict, so recorded times suffice if no bound relates the clocks.
    let bearer = bearer(evidence, o, o.request_uid)
        .or_else(|| if refused { apparent_bearer(evidence, o, o.request_uid) } else { None });
    let Some(met) = answered.or(bearer.map(|v| v.uid)) else { return };
    result.checked(o.incarnation);
    if met == o.request_uid {
        return;
    }
    let history = evidence.history;
    let (client, key) = (evidence.short_client(o), history.key_name(o.key));
    let (wanted, met_short) = (evidence.short_uid(o.request_uid), evidence.short_uid(met));
    let verb = verb(o);
    let request = evidence.request(id, o.asked_revision, format!("{client} sent {verb} of {key} for the uid {wanted}"));
    let mut facts = vec![Fact { uid: o.request_uid, ..request }];
    if let Some(version) = bearer.or_else(|| first_of(evidence, o, met)) {
        facts.insert(0, evidence.version(&version, format!("{key} had uid {met_short}")));
    }
    let says = match refused {
        true => format!("the server refused it with {}", o.status),
        false => format!("the server answered with success, and the change is on uid {met_short}"),
    };
    let answer = evidence.operation(id, o.answered, says);
    facts.push(Fact { uid: met, ..answer });
    let (kind, summary) = match refused {
        true => (
            Kind::Hazard,
            format!(
                "{client} sent {verb} of {key} for uid {wanted}, which uid {met_short} had replaced; it was refused"
            ),
        ),
        false => (
            Kind::Violation,
            format!("{client} sent {verb} of {key} for uid {wanted}, and it took effect on uid {met_short}"),
        ),
    };
    result.found(draft(
        evidence,
        o,
        kind,
        summary,
        facts,
        match refused {
            true => "the server refused the write, so the pattern had no effect here".to_owned(),
            false => "a uid names one life, but the write for one life changed another".to_owned(),
        },
    ));
}

/// The object that certainly had the name when a request arrived, if it is a later life than a known one.
fn bearer(evidence: &Evidence<'_>, o: &Operation, known: Symbol) -> Option<Version> {
    let order = evidence.order;
    let versions = order.timeline.versions(o.key);
    let last = versions.iter().rev().find(|v| v.uid == known)?.revision;
    // Every revision through this one was complete before the request arrived.
    let watermark = order
        .watermarks
        .before_request(evidence.history, &order.clocks, evidence.history.resource_of(o.key), o)?
        .revision;
    let later = |v: &Version| v.uid.is_some() && v.uid != known && v.change.lives() == Some(true);
    order.timeline.between(o.key, last, watermark).iter().rev().find(later)
}

/// The object that had the name when a request was answered, by recorded times alone.
fn apparent_bearer(evidence: &Evidence<'_>, o: &Operation, known: Symbol) -> Option<Version> {
    let order = evidence.order;
    let versions = order.timeline.versions(o.key);
    let last = versions.iter().rev().find(|v| v.uid == known)?.revision;
    let was_made = |v: &Version| {
        let writer = v.writer.is_some().then(|| evidence.history.operation(v.writer));
        let relation = |w: Operation| order.clocks.relation((w.ret, w.clock), (o.ret, o.clock));
        writer.is_some_and(|w| matches!(relation(w), Relation::Before | Relation::BeforeUnless(_)))
    };
    let other = |v: &Version| v.uid.is_some() && v.uid != known && v.change.lives() == Some(true);
    order.timeline.between(o.key, last, Revision::new(u128::MAX)).iter().find(|v| other(v) && was_made(v))
}

fn first_of(evidence: &Evidence<'_>, o: &Operation, uid: Symbol) -> Option<Version> {
    let first = evidence.order.timeline.versions(o.key).iter().find(|v| v.uid == uid)?;
    // The write itself does not show the name's object before it.
    (first.revision != o.answered).then_some(first)
}

enum Ground {
    Declared,
    LastRead,
    Value(String),
    Inferred(String),
}

/// A request by name that changed another object than its process had known.
struct Landing<'l> {
    id: OperationId,
    /// The object that it changed.
    met: Symbol,
    /// Requests that may have ended objects, by key. Requests about many objects are under `KeyId::NONE`.
    ends: &'l FxHashMap<KeyId, Vec<OperationId>>,
}

/// Whether a request may have ended an object, or begun to, without an answer that it did.
fn may_end(o: &Operation) -> bool {
    let deletes = matches!(o.verb, Verb::Delete | Verb::DeleteCollection) && o.subresource == Subresource::None;
    (deletes && !removes(o) || o.verb == Verb::Create && o.subresource == Subresource::Effect) && o.may_write()
}

impl Landing<'_> {
    /// Whether the process itself may have asked for the end of the life that it knew. Then it may have meant the next one.
    fn was_asked_for(&self, evidence: &Evidence<'_>, before: Symbol) -> bool {
        let (history, order) = (evidence.history, evidence.order);
        let o = history.operation(self.id);
        let ends = [o.key, KeyId::NONE].into_iter().filter_map(|key| self.ends.get(&key)).flatten();
        ends.filter(|end| **end != self.id).map(|end| history.operation(*end)).any(|end| {
            let about = end.key.is_some() || history.covers_key(end.scope, o.key);
            let of = [end.request_uid, end.answer_uid].into_iter().all(|uid| !uid.is_some() || uid == before);
            about
                && of
                && order.clocks.relation((end.invoke, end.clock), (o.invoke, o.clock)) != Relation::NotBefore
                && (end.incarnation == o.incarnation
                    || order.sessions.possible_identities(history, o.incarnation).any(|life| life == end.incarnation))
        })
    }

    /// The reason why the process may have meant the object that it changed. `proved`: other evidence shows that the write was
    /// meant for the earlier object.
    fn doubt(&self, evidence: &Evidence<'_>, before: Symbol, proved: bool) -> Option<&'static str> {
        let o = evidence.history.operation(self.id);
        let creation = evidence.order.timeline.versions(o.key).iter().find(|v| v.uid == self.met);
        let made = creation.filter(|creation| creation.writer.is_some() && creation.writer != self.id);
        let by = made.map_or(Author::Another, |creation| author(evidence, &creation, o.incarnation));
        match () {
            () if self.was_asked_for(evidence, before) => Some(
                "the process itself had asked for the end of the first object, and may have meant the next object of \
                the name",
            ),
            () if by == Author::Unknown => {
                Some("the creator of the new object may be the same process in another record")
            }
            // A client that records itself would have recorded the creation.
            () if made.is_none() && !o.marks.has(Marks::CLIENT_SIDE) && !proved => {
                Some("nothing shows the creator of the new object; it may be the process, on a server without a log")
            }
            () => None,
        }
    }
}

/// A request without uid and version, by a process that had last known another object.
fn landed(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, landing: Landing<'_>, seen: &LastRead, ground: Ground) {
    let history = evidence.history;
    let (id, met) = (landing.id, landing.met);
    let o = history.operation(id);
    let Known::Life(before) = seen.known else { return };
    let (client, key, verb) = (evidence.short_client(&o), history.key_name(o.key), verb(&o));
    let (old, new) = (evidence.short_uid(before), evidence.short_uid(met));
    let read = match ground {
        Ground::Declared => format!("{client} read {key} with uid {old} for its decision"),
        Ground::Inferred(_) => format!("{client} saw {key} with uid {old}"),
        _ => format!("{client} last saw {key} with uid {old}"),
    };
    let mut facts = vec![seen.fact(evidence, o.key, read)];
    if let Some(version) = first_of(evidence, &o, met) {
        facts.push(evidence.version(&version, format!("{key} had uid {new}")));
    }
    facts.push(evidence.request(
        id,
        o.asked_revision,
        format!("{client} sent {verb} of {key} by name, without a precondition"),
    ));
    facts.push(evidence.operation(
        id,
        o.answered,
        format!("the server answered with success, and the change is on uid {new}"),
    ));
    // A decision that declares its reads belongs to one process.
    let several = || several(evidence, o.incarnation).filter(|_| !matches!(ground, Ground::Declared));
    let doubt = landing.doubt(evidence, before, !matches!(ground, Ground::LastRead)).or_else(several);
    let suspect = doubt.is_some() || matches!(ground, Ground::Inferred(_));
    let kind = if suspect { Kind::Suspect } else { Kind::Violation };
    let reason = match ground {
        Ground::Inferred(value) => format!(
            "the write sends the value {value:?}, which no known version of the new object had, although the process \
            had seen the new object by then: a record of the decision would show which of the two it rests on"
        ),
        Ground::Declared => "the decision had read one object of the name, and its write changed another".to_owned(),
        Ground::LastRead => {
            "the process knew one object of the name and had not seen its end; its write changed another".to_owned()
        }
        Ground::Value(value) => format!(
            "the write sends the value {value:?}: the object that the process had read had this value, and no known \
            version of the new object had it, so the write was meant for the first object"
        ),
    };
    let reason = doubt.map_or(reason.clone(), |doubt| format!("{reason}. Not proved: {doubt}"));
    let summary = format!("{client} knew {key} with uid {old}, and {verb} by name took effect on uid {new}");
    result.found(draft(evidence, &o, kind, summary, facts, reason));
}

fn draft(
    evidence: &Evidence<'_>,
    o: &Operation,
    kind: Kind,
    summary: String,
    facts: Vec<Fact>,
    reason: String,
) -> Draft {
    let history = evidence.history;
    Draft {
        kind,
        broken_by: BrokenBy::Client,
        incarnation: o.incarnation,
        key: o.key,
        cause: history.resource_name(history.resource_of(o.key)),
        summary,
        facts,
        reason,
        refuted_by: "evidence that the process had seen the new object before it wrote".to_owned(),
        consequence: "the new object carries data of the old one".to_owned(),
    }
}

fn verb(o: &Operation) -> &'static str {
    match (o.verb, o.subresource) {
        (Verb::Patch, Subresource::Status) => "a status PATCH",
        (Verb::Update, Subresource::Status) => "a status PUT",
        (Verb::Patch, _) => "a PATCH",
        (Verb::Delete, _) => "a DELETE",
        (Verb::Create, _) => "a POST to a subresource",
        _ => "a PUT",
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds, trial};

    /// Another client replaces web-0.
    const REPLACED: &str = "o@A DELETE w:u1 => ok\no@A CREATE w => w:u2@33\n";

    #[test]
    fn a_request_that_names_one_life_must_not_change_another() {
        assert_eq!(kinds(&RULE, "c@A PATCH status w:u1 => w:u2@45\n"), [Kind::Violation]);
        assert!(holds(&RULE, "c@A PATCH status w:u2 => w:u2@45\n"));
    }

    #[test]
    fn a_patch_that_changed_nothing_did_not_land() {
        let text = format!("c@A GET w => w:u1@26\n{REPLACED}");
        assert_eq!(kinds(&RULE, &format!("{text}c@A PATCH w => w:u2@45\n")), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &format!("{text}c@A PATCH w => w:u2@33\n")), []);
    }

    #[test]
    fn a_refusal_is_a_hazard() {
        let text = format!("c@A GET w => w:u1@26\n{REPLACED}c@A PUT w:u1@26 => !409\n");
        assert_eq!(kinds(&RULE, &text), [Kind::Hazard]);
        assert_eq!(kinds(&RULE, &text.replace("!409", "!504")), []);
    }

    #[test]
    fn t_says_who_bore_the_name_where_the_answer_does_not() {
        let text = "recorded audit\nclient k level=request\n\
                    o@A CREATE w => w:u1@20\no@A DELETE w:u1 => ok\no@A CREATE w => w:u2@33\nk@A PATCH status w:u1 => 45\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &text.replace("o@A CREATE w => w:u2@33\n", "")), []);
    }

    #[test]
    fn a_write_by_name_by_a_process_that_knew_another_life() {
        let before = format!("c@A LIST rv=0 => 26 {{w:u1@26}}\nc@A WATCH from 26 as s\n{REPLACED}");
        assert_eq!(kinds(&RULE, &format!("{before}c@A PATCH w => w:u2@36\n")), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &format!("{before}c@A DELETE w => w:u2@36 gone\n")), [Kind::Violation]);
        // It saw the new object, or the end of the old one.
        assert!(holds(&RULE, &format!("{before}c@A ..s -w:u1@31 +w:u2@33\nc@A PATCH w => w:u2@36\n")));
        assert!(holds(&RULE, &format!("{before}c@A ..s -w:u1@31\nc@A PATCH w => w:u2@36\n")));
        assert!(holds(&RULE, &format!("{before}c@A GET w => w:u2@33\nc@A PATCH w => w:u2@36\n")));
        // It sent a precondition.
        assert_eq!(kinds(&RULE, &format!("{before}c@A PATCH w test(@26) => !422\n")), []);
        assert_eq!(kinds(&RULE, &format!("{before}c@A PATCH w dry-run => w:u2@36\n")), []);
    }

    #[test]
    fn a_replica_s_memory_is_its_own() {
        let text = format!("c/a@A GET w => w:u1@26\n{REPLACED}c/b@A PATCH w => w:u2@36\n");
        assert_eq!(kinds(&RULE, &text), []);
    }

    #[test]
    fn a_creation_without_answer_may_have_been_its_own() {
        let text = "c@A GET w => w:u1@26\no@A DELETE w:u1 => ok\nc@A CREATE w => !504\nc@A PATCH w => w:u2@36\n";
        assert_eq!(kinds(&RULE, text), []);
    }

    #[test]
    fn whoever_asked_for_the_end_of_the_first_may_mean_the_second() {
        let story = "c@A GET w => w:u1@26\no@A DELETE w:u1 => ok\no@A CREATE w => w:u2@33\nc@A PATCH w => w:u2@36\n";
        assert_eq!(kinds(&RULE, story), [Kind::Violation]);
        for asked in
            ["c@A DELETE w => !504", "c@A DELETE w => w:u1@28[finalizer=x deleting]", "c@A DELETE w:u1@26 => ?"]
        {
            let text = story.replace("o@A DELETE", &format!("{asked}\no@A DELETE"));
            assert_eq!(kinds(&RULE, &text), [Kind::Suspect], "{asked}");
        }
        for other in ["c@A DELETE w => !409", "c@A DELETE w:u0 => !504", "c@A DELETE v => !504", "o@A DELETE w => !504"]
        {
            let text = story.replace("o@A DELETE", &format!("{other}\no@A DELETE"));
            assert_eq!(kinds(&RULE, &text), [Kind::Violation], "{other}");
        }
    }

    #[test]
    fn an_eviction_by_name_of_a_pod_that_was_replaced() {
        let text = format!("c@A GET w => w:u1@26\n{REPLACED}c@A CREATE w eviction => ok\n");
        assert_eq!(kinds(&RULE, &text), [Kind::Violation]);
        // It names the uid, saw the new object, or was refused; or nothing shows the object of the name at that time.
        assert!(!kinds(&RULE, &text.replace("CREATE w eviction", "CREATE w:u1 eviction")).contains(&Kind::Violation));
        assert!(holds(&RULE, &text.replace("c@A CREATE", "c@A GET w => w:u2@33\nc@A CREATE")));
        assert_eq!(kinds(&RULE, &text.replace("eviction => ok", "eviction => !429")), []);
        assert!(holds(&RULE, &text.replace("o@A CREATE w => w:u2@33\n", "")));
        let later = "c@A GET w => w:u1@26\nc@A CREATE w eviction => ok\no@A CREATE w => w:u2@33\n";
        assert!(holds(&RULE, later));
    }

    #[test]
    fn what_an_earlier_life_made_a_later_one_may_not_know() {
        let text = "o@A CREATE w => w:u1@26\no@A DELETE w:u1 => ok\nc/1@A CREATE w => w:u2@33\n\
                    c/2@A GET w rv=0 => w:u1@26\nc/2@A PATCH w => w:u2@36\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &text.replace("c/2@A GET w rv=0 => w:u1@26", "c/2@A GET w => w:u2@33")), []);
    }

    #[test]
    fn what_another_recorder_knows_the_process_may_know() {
        let text = "client c user=u recorded=capture\nclient s user=u recorded=audit\nc@A GET w => w:u1@26\n\
                    s@A DELETE w:u1 => ok:u1\ns@A CREATE w => w:u2@33\nc@A PATCH w => w:u2@36\n";
        assert!(!kinds(&RULE, text).contains(&Kind::Violation));
        assert_eq!(kinds(&RULE, &text.replace("client s user=u", "client s user=v")), [Kind::Violation]);
    }

    #[test]
    fn a_process_may_have_made_the_new_one_on_a_server_whose_log_is_missing() {
        let text = "recorded audit\nclient c address=127.0.0.1\nw@A WATCH from 20\nc@A GET w => w:u1@26\nc@A DELETE w => w:u2@36 gone\n";
        assert_eq!(kinds(&RULE, text), [Kind::Suspect]);
        let known = text.replace("c@A DELETE", "o@B CREATE w => w:u2@33\nc@A DELETE");
        assert_eq!(kinds(&RULE, &known), [Kind::Violation]);
        let own = text.replace("c@A DELETE", "c@B CREATE w => w:u2@33\nc@A DELETE");
        assert_eq!(kinds(&RULE, &own), []);
        // A client that records itself records its creations.
        assert_eq!(kinds(&RULE, &text.replace("recorded audit", "recorded capture")), [Kind::Violation]);
    }

    #[test]
    fn a_declared_decision_outweighs_what_the_cache_saw_meanwhile() {
        let text =
            format!("c@A GET w for d => w:u1@26\n{REPLACED}c@A LIST => 34 {{w:u2@33}}\nc@A PATCH w for d => w:u2@36\n");
        assert_eq!(kinds(&RULE, &text), [Kind::Violation]);
        let read =
            format!("c@A READ w => :u1@26 for d\n{REPLACED}c@A GET w => w:u2@33\nc@A PATCH w for d => w:u2@36\n");
        assert_eq!(kinds(&RULE, &read), [Kind::Violation]);
        assert!(holds(&RULE, &text.replace("for d => w:u2", "=> w:u2")));
    }

    #[test]
    fn a_watch_without_events_leaves_it_open() {
        let text = format!(
            "recorded audit\nc@A LIST rv=0 => 26 {{w:u1@26}}\nc@A WATCH from 26\n{REPLACED}c@A PATCH w => w:u2@36\n"
        );
        let trial = trial(&RULE, &text);
        assert_eq!((trial.kinds(), trial.undecided), (vec![], 1));
    }
}
