//! Input: PUTs that were accepted after one of the same object was refused with 409. Output: the retries whose content put
//! back every change of others between the two versions. Only bodies that were recorded as a whole are compared.

use super::Evidence;
use super::authorship::{Author, author};
use super::bodies::{Bodies, BodyReader};
use super::stale_writes::{MAX_WRITES_AT_ONCE, Undone, is_others, present_before};
use super::three_way_diff::{Changed, Fields, is_by_others, last_change};
use crate::history::{
    Document, IncarnationId, KeyId, Marks, Operation, OperationId, Subresource, Verb, recorded_fields,
};
use crate::order::{Change, Relation, Version, Versions, remembers};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

/// The most earlier versions that are examined for the writer of a value.
const EARLIER: usize = 16;

/// Writes over more versions than this are not compared.
const SINCE: usize = 64;

/// An accepted PUT after a refused one.
pub struct Retry<'e> {
    /// The refused PUT.
    pub refused: OperationId,
    /// The accepted PUT.
    pub write: OperationId,
    /// The version that the refused PUT named.
    base: Version,
    /// The versions after the base and before the write.
    since: Versions<'e>,
    /// Whether the refusal was certainly complete before the write was sent.
    pub is_ordered: bool,
}

/// A retry that put back the changes of others.
pub struct Laundered {
    /// The refused PUT.
    pub refused: OperationId,
    /// The accepted PUT.
    pub write: OperationId,
    /// The change that it undid.
    pub undone: Undone,
    /// The author of the restored value.
    pub author: Author,
}

/// The retries of a history that put back the changes of others.
pub fn laundered(evidence: &Evidence<'_>) -> Vec<Laundered> {
    let retries: Vec<_> = retries(evidence).into_iter().filter(|retry| retry.is_ordered).collect();
    compare(evidence, &retries).0
}

/// Whether an operation is a PUT with comparable content.
fn is_put(evidence: &Evidence<'_>, o: &Operation) -> bool {
    o.verb == Verb::Update
        && o.key.is_some()
        && o.asked_revision.is_some()
        && o.marks.has(Marks::REQUEST_BODY)
        && !o.marks.has(Marks::DRY_RUN)
        && matches!(o.subresource, Subresource::None | Subresource::Status)
        && remembers(evidence.history, o.incarnation)
}

/// Pairs of a refused PUT and the next accepted one of the same object by the same process, on a later version.
pub fn retries<'e>(evidence: &Evidence<'e>) -> Vec<Retry<'e>> {
    let timeline = &evidence.order.timeline;
    let mut refused: FxHashMap<(IncarnationId, KeyId, Subresource), Vec<OperationId>> = FxHashMap::default();
    let mut found = Vec::new();
    for (id, o) in evidence.of_verbs(&[Verb::Update]).filter(|(_, o)| is_put(evidence, o)) {
        let place = (o.incarnation, o.key, o.subresource);
        // A conflict about the uid names the uid of the current object.
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
    /// Versions before the base, the nearest first.
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

/// The retries that put back the changes of others, and the number of retries that could not be compared.
pub fn compare(evidence: &Evidence<'_>, retries: &[Retry<'_>]) -> (Vec<Laundered>, u64) {
    let (mut found, mut open): (Vec<Laundered>, u64) = (Vec::new(), 0);
    let reader = BodyReader::new(evidence, retries.iter().map(|retry| retry.base.key));
    for part in retries.chunks(MAX_WRITES_AT_ONCE) {
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
    // If several refusals precede one write, the first one that proves it counts.
    let mut reported: FxHashSet<OperationId> = FxHashSet::default();
    found.sort_by_key(|l| (l.write, l.author, l.refused));
    found.retain(|l| reported.insert(l.write));
    (found, open)
}

fn whole(body: Option<&Value>) -> Option<Fields<'_>> {
    body.filter(|body| recorded_fields(body).is_none()).map(Fields::of)
}

/// The change that a retry undid, if no change of others survived the retry. `None`: the version read, replaced, sent or
/// stored was not recorded as a whole.
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
    // If several fields went back, the one with the strongest proof counts.
    let authored = undone
        .into_iter()
        .map(|(open, path, changed)| (open, setter(evidence, retry, path, &old, &earlier), path, changed));
    let most = authored.min_by_key(|(open, author, path, _)| (*open, *author, *path));
    Some(most.map(|(_, author, path, changed)| {
        let undone = Undone::new(evidence, path.clone(), &plan.since, &authors, &changed);
        Laundered { refused: retry.refused, write: retry.write, undone, author }
    }))
}

/// The author of a field's value in the base.
fn setter(evidence: &Evidence<'_>, retry: &Retry<'_>, path: &str, old: &Fields<'_>, earlier: &[Fields<'_>]) -> Author {
    let versions = evidence.order.timeline.versions(retry.base.key);
    let at = versions.through(retry.base.revision).saturating_sub(1);
    let same = earlier.iter().take_while(|fields| fields.get(path) == old.get(path)).count();
    let Some(set) = versions.get(at - same) else { return Author::Unknown };
    // A creation, or an earlier version with another value, shows the author.
    let is_known = set.change == Change::Created || same < earlier.len();
    let by = || author(evidence, &set, evidence.history.operation(retry.write).incarnation);
    if is_known { by() } else { Author::Unknown }
}
