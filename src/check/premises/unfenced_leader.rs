#![doc = include_str!("../../../docs/rules/unfenced-leader.md")]

use crate::check::facts::version_validity::VersionValidity;
use crate::check::premises::premise_index::PremiseIndex;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{
    AttributesId, ClientId, ClockId, Declared, IdentifiedBy, IncarnationId, KeyId, Operation, OperationId, ResourceId,
    Revision, Subresource, Symbol, Verb,
};
use crate::ingest::Time;
use crate::model::declaration::{Condition, Leadership};
use crate::order::Version;
use rustc_hash::{FxHashMap, FxHashSet};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "unfenced-leader",
    title: "no replica acts as the leader after another one has taken its place",
    group: Group::Premises,
    promise: BrokenBy::Client,
    needs: "a lock with two holders in turn, and later writes of the first one",
    causes: &["monotonic-reads", "revision-rewind", "split-timeline"],
    page: include_str!("../../../docs/rules/unfenced-leader.md"),
    checks: Checks::kubernetes(check),
};

/// Consecutive versions of a lock with one holder.
#[derive(Clone, Debug)]
struct Term {
    holder: String,
    /// The process that wrote them; `None` if they disagree.
    process: Option<IncarnationId>,
    /// The version that took the lock.
    first: Version,
    /// The last renewal.
    last: Version,
    /// The lock's duration, in nanoseconds.
    duration: Option<i64>,
}

impl Term {
    /// Adds another version by the same holder.
    fn renew(&mut self, version: Version, process: Option<IncarnationId>) {
        // Two processes that write one holder's name leave the process unknown.
        self.process = self.process.filter(|known| process.is_none_or(|process| process == *known));
        self.last = version;
    }
}

/// A process that lost a lock.
struct Loss {
    lock: KeyId,
    term: Term,
    successor: Term,
    /// Whether it released the lock itself.
    released: bool,
    /// Its last known write to the lock.
    end: Version,
    /// The version with which it held the lock again.
    again: Option<Version>,
}

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let mut terms: FxHashMap<KeyId, Vec<Term>> = FxHashMap::default();
    let mut locks: FxHashSet<ResourceId> = FxHashSet::default();
    for leadership in &evidence.options.declarations.leaderships {
        for resource in evidence.resources_named(&leadership.resource) {
            collect(evidence, leadership, resource, &mut terms);
            if leadership.resource.group.is_some() {
                locks.insert(resource);
            }
        }
    }
    let mut losses: FxHashMap<IncarnationId, Vec<Loss>> = FxHashMap::default();
    let mut held: Vec<(&Vec<Term>, KeyId)> = terms.iter().map(|(key, terms)| (terms, *key)).collect();
    held.sort_by_key(|(_, key)| *key);
    for (terms, lock) in &held {
        let named: Vec<usize> = (0..terms.len()).filter(|&at| !terms[at].holder.is_empty()).collect();
        let index = TermIndex::of(evidence, terms);
        for (&at, &next) in named.iter().zip(&named[1.min(named.len())..]) {
            let (term, successor) = (&terms[at], &terms[next]);
            let Some(process) = term.process.filter(|p| successor.process != Some(*p)) else { continue };
            if term.holder != successor.holder {
                // A version without holder between the two terms is the holder's own release.
                let released = terms[at + 1..next].iter().rev().find(|t| t.process == Some(process)).map(|t| t.first);
                let again = index.next(evidence, term, process, next).map(|t| t.first);
                let (end, released) = (released.unwrap_or(term.last), released.is_some());
                let loss = Loss { lock: *lock, term: term.clone(), successor: successor.clone(), released, end, again };
                losses.entry(process).or_default().push(loss);
            }
        }
    }
    if losses.is_empty() {
        return;
    }
    let possible_identities = possible_identities(evidence, &losses);
    let mut locks_of: FxHashMap<IncarnationId, Vec<KeyId>> = FxHashMap::default();
    for (terms, lock) in &held {
        for process in terms.iter().filter_map(|term| term.process) {
            let own = losses.contains_key(&process).then_some(process);
            for process in possible_identities.get(&process).into_iter().flatten().copied().chain(own) {
                let known = locks_of.entry(process).or_default();
                if known.last() != Some(lock) {
                    known.push(*lock);
                }
            }
        }
    }
    let judge = Judge {
        evidence,
        basis: PremiseIndex::derive(evidence),
        validity: VersionValidity::derive(evidence),
        multi_lock_clients: multi_lock_clients(evidence, &held),
    };
    let basis = &judge.basis;
    let followers = Followers::collect(evidence, &held, &losses);
    let mut shared: FxHashSet<(ClientId, &str, ResourceId)> = FxHashSet::default();
    let mut cases: Vec<Case<'_>> = Vec::new();
    let mut activity: FxHashMap<(IncarnationId, ResourceId), ResourceWrites> = FxHashMap::default();
    for id in history.operations.ids_of_verbs(&Verb::WRITES) {
        let process = history.operations.incarnation(id.index());
        let (former, of, peer) =
            (losses.get(&process), possible_identities.get(&process), followers.are_peers(process));
        if former.is_none() && of.is_none() && !peer {
            continue;
        }
        let o = history.operation(id);
        if !commits(evidence, basis, id, &o) {
            continue;
        }
        let resource = history.resource_of(o.key);
        let is_lock = locks.contains(&resource) || terms.contains_key(&o.key);
        if is_lock || history.name(history.resources[resource.index()].plural) == "events" {
            continue;
        }
        // Marks business from before the process first led, and business from while it led.
        for process in of.into_iter().flatten().chain(former.map(|_| &o.incarnation)) {
            let Some(first) = losses[process].iter().map(|loss| loss.term.first).min_by_key(|v| v.revision) else {
                continue;
            };
            let before = !basis.before_commit(&first, id);
            activity.entry((*process, resource)).or_default().before |= before;
        }
        if peer && of.is_none() && followers.followed(evidence, basis, id, o.incarnation) {
            let life = &history.incarnations[o.incarnation.index()];
            shared.insert((life.client, &life.program, resource));
        }
        let Some(losses) = former else { continue };
        result.checked(o.incarnation);
        let known = activity.entry((o.incarnation, resource)).or_default();
        let lost = losses.iter().rev().find(|loss| basis.before_commit(&loss.successor.first, id));
        let Some(loss) = lost else {
            // It still led when it renewed its term, and until another holder took the lock.
            let led = |loss: &Loss| [loss.term.last, loss.successor.first].map(|v| is_before(evidence, basis, id, &v));
            if losses.iter().any(|loss| led(loss).contains(&true)) {
                known.led = true;
                known.objects.insert(o.key);
            }
            continue;
        };
        if let Some(again) = loss.again.filter(|again| !is_before(evidence, basis, id, again)) {
            known.led |= basis.before_commit(&again, id);
            continue;
        }
        let case = Case { write: id, loss, led: known.led, before: known.before };
        if !leads_elsewhere(evidence, &terms, &locks_of[&o.incarnation], loss, id, basis) {
            cases.push(case);
        }
    }
    let mut successors: FxHashMap<(KeyId, KeyId, Revision), bool> = FxHashMap::default();
    for Case { write: id, loss, led, before } in cases {
        let o = history.operation(id);
        let known = &activity[&(o.incarnation, history.resource_of(o.key))];
        if before {
            let place = (loss.lock, o.key, loss.successor.first.revision);
            let both = known.objects.contains(&o.key)
                && *successors.entry(place).or_insert_with(|| wrote_as_successor(evidence, basis, loss, o.key));
            if both {
                judge.found(result, id, loss, LeaderEvidence { led: false, is_whole: true });
            } else {
                result.undecided(
                    "writes after the loss of a lock to resources that the process had written before it first held a lock",
                );
            }
            continue;
        }
        let renewed = loss.term.first.revision != loss.term.last.revision;
        let is_whole = !loss.released || renewed || known.objects.contains(&o.key);
        let life = &history.incarnations[o.incarnation.index()];
        let shared = shared.contains(&(life.client, &*life.program, history.resource_of(o.key)));
        judge.found(result, id, loss, LeaderEvidence { led: led && !shared, is_whole });
    }
}

/// The terms of one lock, indexed by what terms of one process may share. A lookup then visits few terms.
struct TermIndex<'t> {
    terms: &'t [Term],
    by_holder: FxHashMap<&'t str, Vec<usize>>,
    by_session: FxHashMap<u32, Vec<usize>>,
    by_client: FxHashMap<ClientId, Vec<usize>>,
    /// Terms of processes without a client name, which may belong to any client.
    nameless: Vec<usize>,
}

impl<'t> TermIndex<'t> {
    fn of(evidence: &Evidence<'_>, terms: &'t [Term]) -> TermIndex<'t> {
        let (by_holder, by_session, by_client) = Default::default();
        let mut index = TermIndex { terms, by_holder, by_session, by_client, nameless: Vec::new() };
        for (at, term) in terms.iter().enumerate() {
            index.by_holder.entry(&term.holder).or_default().push(at);
            let Some(process) = term.process else { continue };
            index.by_session.entry(evidence.order.sessions.index_of(process)).or_default().push(at);
            match named_client(evidence, process) {
                Some(client) => index.by_client.entry(client).or_default().push(at),
                None => index.nameless.push(at),
            }
        }
        index
    }

    /// The first term after `place` that has the holder of a term, or may be of its process.
    fn next(&self, evidence: &Evidence<'_>, term: &Term, process: IncarnationId, place: usize) -> Option<&'t Term> {
        let may_be = |p| !evidence.order.sessions.are_two(evidence.history, p, process);
        let is_own = |at: &usize| {
            let other = &self.terms[*at];
            other.holder == term.holder || other.process.is_some_and(may_be)
        };
        let Some(client) = named_client(evidence, process) else {
            return (place + 1..self.terms.len()).find(is_own).map(|at| &self.terms[at]);
        };
        let session = evidence.order.sessions.index_of(process);
        let lists = [
            self.by_holder.get(&*term.holder),
            self.by_session.get(&session),
            self.by_client.get(&client),
            Some(&self.nameless),
        ];
        let first = |list: &Vec<usize>| {
            let from = list.partition_point(|at| *at <= place);
            list[from..].iter().copied().find(is_own)
        };
        lists.into_iter().flatten().filter_map(first).min().map(|at| &self.terms[at])
    }
}

/// The client of a process, if it has a name.
fn named_client(evidence: &Evidence<'_>, process: IncarnationId) -> Option<ClientId> {
    let life = evidence.history.incarnations.get(process.index())?;
    (!evidence.history.client_name(process).is_empty()).then_some(life.client)
}

/// A write of a process that had lost a lock.
struct Case<'l> {
    write: OperationId,
    loss: &'l Loss,
    /// Whether it wrote such objects while it led.
    led: bool,
    /// Whether it wrote such objects before it ever led.
    before: bool,
}

/// The evidence about the business of a former leader.
struct LeaderEvidence {
    /// Whether it did such business as the leader, and no follower did.
    led: bool,
    /// Whether the lock guards more than the acts of its holder during the term.
    is_whole: bool,
}

/// Whether the successor wrote an object after it had taken the lock. Then the object is the leader's business.
fn wrote_as_successor(evidence: &Evidence<'_>, basis: &PremiseIndex<'_>, loss: &Loss, key: KeyId) -> bool {
    let Some(process) = loss.successor.process else { return false };
    evidence.order.timeline.versions(key).iter().rev().any(|version| {
        version.writer.is_some()
            && evidence.history.operations.incarnation(version.writer.index()) == process
            && basis.before_commit(&loss.successor.first, version.writer)
    })
}

/// The replicas of former leaders, and the times at which they followed others.
struct Followers {
    /// Per process life, whether it has the user and program of a former leader.
    peers: Vec<bool>,
    /// The version with which each process first took a lock.
    first: FxHashMap<IncarnationId, Version>,
    /// Whether every holder of a lock is known.
    known: bool,
}

impl Followers {
    fn collect(
        evidence: &Evidence<'_>,
        held: &[(&Vec<Term>, KeyId)],
        losses: &FxHashMap<IncarnationId, Vec<Loss>>,
    ) -> Followers {
        let lives = &evidence.history.incarnations;
        let of = |life: &IncarnationId| (lives[life.index()].client, &*lives[life.index()].program);
        let former: FxHashSet<(ClientId, &str)> = losses.keys().map(of).collect();
        let peers = (0..lives.len() as u32).map(|life| former.contains(&of(&IncarnationId(life)))).collect();
        let mut first: FxHashMap<IncarnationId, Version> = FxHashMap::default();
        let mut known = true;
        for term in held.iter().flat_map(|(terms, _)| terms.iter()).filter(|term| !term.holder.is_empty()) {
            known &= term.process.is_some();
            if let Some(process) = term.process {
                let taken = first.entry(process).or_insert(term.first);
                if term.first.revision < taken.revision {
                    *taken = term.first;
                }
            }
        }
        Followers { peers, first, known }
    }

    fn are_peers(&self, process: IncarnationId) -> bool {
        self.peers.get(process.index()).is_some_and(|peer| *peer)
    }

    /// Whether a process certainly was no leader when it wrote something.
    fn followed(
        &self,
        evidence: &Evidence<'_>,
        basis: &PremiseIndex<'_>,
        write: OperationId,
        process: IncarnationId,
    ) -> bool {
        match self.first.get(&process) {
            Some(first) => is_before(evidence, basis, write, first),
            None => self.known,
        }
    }
}

/// Whether a write certainly took effect, at a known revision or between its request and its answer.
fn commits(evidence: &Evidence<'_>, basis: &PremiseIndex<'_>, id: OperationId, o: &Operation) -> bool {
    let writes = evidence.committed(o) && o.key.is_some();
    let effect = o.subresource == Subresource::Effect && o.verb == Verb::Create;
    writes && (effect || basis.committed_at(id).is_some() || crate::order::removes(o))
}

/// Per process, the former leaders that it may be although nothing shows it.
fn possible_identities(
    evidence: &Evidence<'_>,
    losses: &FxHashMap<IncarnationId, Vec<Loss>>,
) -> FxHashMap<IncarnationId, Vec<IncarnationId>> {
    let mut possible_identities: FxHashMap<IncarnationId, Vec<IncarnationId>> = FxHashMap::default();
    for process in losses.keys() {
        for other in evidence.order.sessions.possible_identities(evidence.history, *process) {
            possible_identities.entry(other).or_default().push(*process);
        }
    }
    possible_identities
}

/// Users and programs with processes that held several locks. A lock that exists in several resources counts once, by name.
fn multi_lock_clients(evidence: &Evidence<'_>, held: &[(&Vec<Term>, KeyId)]) -> FxHashSet<(ClientId, String)> {
    let history = evidence.history;
    let mut names: FxHashMap<(ClientId, &str), FxHashSet<(Symbol, Symbol)>> = FxHashMap::default();
    for (terms, lock) in held {
        let key = history.keys[lock.index()];
        for term in terms.iter().filter(|term| !term.holder.is_empty()) {
            let Some(life) = term.process.and_then(|process| history.incarnations.get(process.index())) else {
                continue;
            };
            names.entry((life.client, &life.program)).or_default().insert((key.namespace, key.name));
        }
    }
    let crowded = names.into_iter().filter(|(_, names)| names.len() > 1);
    crowded.map(|((client, program), _)| (client, program.to_owned())).collect()
}

/// Whether a write certainly took effect before a version of a lock: by revisions, or because its answer came before that
/// version's request.
fn is_before(evidence: &Evidence<'_>, basis: &PremiseIndex<'_>, write: OperationId, version: &Version) -> bool {
    let history = evidence.history;
    let o = history.operation(write);
    let shared = history.share_counter(history.resource_of(o.key), history.resource_of(version.key));
    let commit = basis.committed_at(write).filter(|_| shared);
    let asked = version.writer.is_some().then(|| history.operation(version.writer));
    commit.is_some_and(|commit| commit < version.revision)
        || asked.is_some_and(|w| o.ret.is_known() && evidence.order.clocks.is_answered_before(&o, &w))
}

/// The writes of a process to a resource, in relation to its terms.
#[derive(Default)]
struct ResourceWrites {
    before: bool,
    led: bool,
    /// The objects that it wrote while it led.
    objects: FxHashSet<KeyId>,
}

/// The terms of all locks of a resource.
fn collect(
    evidence: &Evidence<'_>,
    leadership: &Leadership,
    resource: ResourceId,
    terms: &mut FxHashMap<KeyId, Vec<Term>>,
) {
    let history = evidence.history;
    for &key in evidence.keys_of(resource) {
        let mut of_key: Vec<Term> = Vec::new();
        // Most versions have the same value as the one before.
        let mut before: Option<(Symbol, AttributesId)> = None;
        for version in evidence.order.timeline.versions(key).iter() {
            let process = version.writer.is_some().then(|| history.operations.incarnation(version.writer.index()));
            let content = (version.uid, version.attributes);
            if let Some(last) = of_key.last_mut().filter(|_| before == Some(content)) {
                last.renew(version, process);
                continue;
            }
            before = None;
            let declared = history.declared(key, version.uid, version.attributes);
            let holder = declared.and_then(|declared| declared.text(&leadership.holder));
            let elects = |declared: &Declared<'_>| {
                let met = |condition: &Condition| condition.admits(declared.text(&condition.path).as_deref());
                !leadership.unless.iter().any(met)
            };
            if declared.is_some_and(|declared| !elects(&declared)) {
                of_key.clear();
                break;
            }
            let Some((declared, holder)) = declared.zip(holder) else {
                // A version with an unknown holder ends the known terms.
                if version.change.lives() == Some(true) && !version.attributes.is_some() {
                    continue;
                }
                of_key.extend(vacancy(&of_key, version, process));
                continue;
            };
            before = Some(content);
            let seconds = declared.text(&leadership.duration).and_then(|text| text.parse::<i64>().ok());
            let duration = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000));
            match of_key.last_mut().filter(|last| last.holder == holder) {
                Some(last) => {
                    last.renew(version, process);
                    last.duration = duration.or(last.duration);
                }
                None => of_key.push(Term { holder, process, first: version, last: version, duration }),
            }
        }
        if !of_key.is_empty() {
            terms.insert(key, of_key);
        }
    }
}

/// A term without holder, if it follows one with a holder.
fn vacancy(terms: &[Term], version: Version, process: Option<IncarnationId>) -> Option<Term> {
    let vacancy = Term { holder: String::new(), process, first: version, last: version, duration: None };
    terms.last().is_some_and(|last| !last.holder.is_empty()).then_some(vacancy)
}

/// Whether a process may write as the holder of another lock.
fn leads_elsewhere(
    evidence: &Evidence<'_>,
    terms: &FxHashMap<KeyId, Vec<Term>>,
    locks: &[KeyId],
    loss: &Loss,
    write: OperationId,
    basis: &PremiseIndex<'_>,
) -> bool {
    let process = evidence.history.operation(write).incarnation;
    locks.iter().filter(|lock| **lock != loss.lock).any(|lock| {
        let last = terms[lock].iter().rev().find(|term| basis.before_commit(&term.first, write));
        let may_be_own = |p| !evidence.order.sessions.are_two(evidence.history, p, process);
        last.is_some_and(|term| term.process.is_some_and(may_be_own))
    })
}

/// The indices by which writes of former leaders are judged.
struct Judge<'e, 'h> {
    evidence: &'e Evidence<'h>,
    basis: PremiseIndex<'h>,
    validity: VersionValidity<'h>,
    multi_lock_clients: FxHashSet<(ClientId, String)>,
}

impl Judge<'_, '_> {
    fn found(&self, result: &mut RuleResult<'_>, write: OperationId, loss: &Loss, leader_evidence: LeaderEvidence) {
        let (evidence, history) = (self.evidence, self.evidence.history);
        let o = history.operation(write);
        let (client, lock, object) = (evidence.short_client(&o), history.key_name(loss.lock), history.key_name(o.key));
        let (a, b) = (&loss.term, &loss.successor);
        let doubt = self.doubt(&o, loss, leader_evidence);
        let kind = if doubt.is_some() { Kind::Suspect } else { Kind::Violation };
        let unproved = doubt.map_or(String::new(), |doubt| format!(" Not proved: {doubt}."));
        let committed = self.basis.committed_at(write).unwrap_or(o.answered);
        result.found(Draft {
            kind,
            broken_by: BrokenBy::Client,
            incarnation: o.incarnation,
            key: o.key,
            cause: format!("{lock} {}", history.resource_name(history.resource_of(o.key))),
            summary: format!(
                "{client} wrote {object} as the leader {:?} after {:?} had taken {lock} at revision {}",
                a.holder, b.holder, b.first.revision
            ),
            facts: vec![
                evidence.version(&a.last, format!("{:?} held {lock}: {}", a.holder, evidence.change_words(&a.last))),
                evidence.version(&b.first, format!("{:?} took it: {}", b.holder, evidence.change_words(&b.first))),
                evidence.operation(write, committed, format!("{} was answered with success", history.request_name(&o))),
            ],
            reason: format!(
                "At the commit of the write the lock named another holder, and the API server does not check the \
                lock.{unproved}"
            ),
            refuted_by:
                "evidence that the write was sent by another process, or that the object is not the leader's business"
                    .to_owned(),
            consequence: "two replicas act as the only leader, so a resource with one holder may be assigned twice"
                .to_owned(),
        });
    }

    /// The reason why a write of a former leader is no proved fault.
    fn doubt(&self, o: &Operation, loss: &Loss, leader_evidence: LeaderEvidence) -> Option<&'static str> {
        let LeaderEvidence { led, is_whole } = leader_evidence;
        let (history, order) = (self.evidence.history, self.evidence.order);
        let life = &history.incarnations[o.incarnation.index()];
        let expired = loss.released
            || expiry(self.evidence, &loss.term).is_some_and(|end| order.clocks.before(end, (o.invoke, o.clock)));
        let another = loss.successor.process.is_none_or(|taker| order.sessions.are_two(history, taker, o.incarnation));
        match () {
            () if !led => Some(
                "it had not written such objects while it led, or it had written them before, or replicas that did \
                not lead did: they may not be the leader's business",
            ),
            () if !is_whole => Some(
                "it held the lock in a single known version and released it, and did not write this object meanwhile: \
                the lock may guard only what the process did then",
            ),
            () if self.multi_lock_clients.contains(&(life.client, life.program.clone())) => Some(
                "processes of this user hold several such locks, so the loss of one may say nothing about other \
                writes of a process",
            ),
            () if !matches!(life.identified_by, IdentifiedBy::CaptureLabel | IdentifiedBy::PodUid) => {
                Some("only the address identifies the process, so a restart in between would not show")
            }
            () if !another => Some("the new holder of the lock may be the same process in another record"),
            () if !self.was_last(loss) => Some(
                "it may have renewed its term without a record: nothing shows what came between its last known \
                renewal and the next holder",
            ),
            () if !expired => Some(
                "its own term had not run out by then, as far as the evidence shows: the next holder took the lock \
                early, or the clocks differ",
            ),
            () => None,
        }
    }

    /// Whether the evidence shows every version between the holder's last known write to the lock and the successor's first
    /// one.
    fn was_last(&self, loss: &Loss) -> bool {
        let taken = loss.successor.first.revision;
        let (after, through) = (loss.end.revision.previous(), taken.previous());
        let before: Vec<Version> = self.evidence.order.timeline.between(loss.lock, after, through).iter().collect();
        let nexts = before.iter().skip(1).map(|v| v.revision).chain([taken]);
        before.iter().zip(nexts).all(|(version, next)| {
            let known = version.change.lives() == Some(false) || version.attributes.is_some();
            known && self.validity.through(version).0.next() >= next
        })
    }
}

/// The time by which a term had certainly run out. Its last renewal was made before it was answered.
fn expiry(evidence: &Evidence<'_>, term: &Term) -> Option<(Time, ClockId)> {
    let (time, clock) = match term.last.writer.is_some() {
        true => {
            let o = evidence.history.operation(term.last.writer);
            (o.ret, o.clock)
        }
        false => term.last.moment(evidence.history),
    };
    let end = time.0.checked_add(term.duration?)?;
    time.is_known().then_some((Time(end), clock))
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    /// a leads and assigns a range; its lease of one second runs out, and b takes it; a assigns another range.
    const STORY: &str = "default ciliumnodes\n\
        a@A CREATE leases/kube-system/op[.spec.holderIdentity=a-1 .spec.leaseDurationSeconds=1] => leases/kube-system/op:l1@10\n\
        a@A CREATE node-1 => node-1:n1@12\n\
        a@A PUT leases/kube-system/op:l1@10[.spec.holderIdentity=a-1 .spec.leaseDurationSeconds=1] => leases/kube-system/op:l1@14\n\
        --- 5s\n\
        b@A PUT leases/kube-system/op:l1@14[.spec.holderIdentity=b-1 .spec.leaseDurationSeconds=1] => leases/kube-system/op:l1@40\n\
        a@A CREATE node-2 => node-2:n2@44\n";

    #[test]
    fn a_replica_writes_on_after_another_took_its_place() {
        assert_eq!(kinds(&RULE, STORY), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &STORY.replace("=> node-2:n2@44", "=> !409")), []);
    }

    #[test]
    fn it_may_write_until_another_takes_the_lock_and_after_it_has_it_again() {
        let before = STORY
            .replace("a@A CREATE node-2 => node-2:n2@44\n", "")
            .replace("--- 5s\n", "--- 5s\na@A CREATE node-2 => node-2:n2@30\n");
        assert!(holds(&RULE, &before));
        let again = STORY.replace(
            "a@A CREATE node-2",
            "a@A PUT leases/kube-system/op:l1@40[.spec.holderIdentity=a-1 .spec.leaseDurationSeconds=1] => leases/kube-system/op:l1@42\na@A CREATE node-2",
        );
        assert!(holds(&RULE, &again));
    }

    #[test]
    fn whoever_let_go_of_the_lock_is_no_leader_either() {
        let released = STORY.replace(
            "--- 5s\n",
            "a@A PUT leases/kube-system/op:l1@14[.spec.holderIdentity=\"\"] => leases/kube-system/op:l1@16\n",
        );
        let released = released.replace("op:l1@14[.spec.holderIdentity=b-1", "op:l1@16[.spec.holderIdentity=b-1");
        assert_eq!(kinds(&RULE, &released), [Kind::Violation]);
    }

    #[test]
    fn a_lock_that_was_held_once_may_guard_only_what_its_holder_did_meanwhile() {
        let once = "default ciliumnodes\n\
            a@A CREATE leases/kube-system/op[.spec.holderIdentity=a-1] => leases/kube-system/op:l1@10\n\
            a@A CREATE node-1 => node-1:n1@12\n\
            a@A PUT leases/kube-system/op:l1@10[.spec.holderIdentity=\"\"] => leases/kube-system/op:l1@16\n\
            b@A PUT leases/kube-system/op:l1@16[.spec.holderIdentity=b-1] => leases/kube-system/op:l1@40\n";
        let more = "a@A CREATE node-2 => node-2:n2@44\na@A CREATE node-3 => node-3:n3@45\n";
        assert_eq!(kinds(&RULE, &format!("{once}{more}")), [Kind::Suspect]);
        // The lock guarded only its acts during that term.
        assert_eq!(kinds(&RULE, &format!("{once}a@A PUT node-1:n1@12 => node-1:n1@44\n")), [Kind::Violation]);
    }

    #[test]
    fn what_it_did_before_it_ever_led_is_not_the_leader_s_business() {
        let always = STORY.replace("a@A CREATE leases", "a@A CREATE node-0 => node-0:n0@5\na@A CREATE leases");
        assert!(holds(&RULE, &always));
        // Unless the lock's next holder wrote the same object.
        let again = always.replace("a@A CREATE node-2 => node-2:n2@44", "a@A PUT node-1:n1@12 => node-1:n1@44");
        assert!(holds(&RULE, &again));
        let both = always.replace(
            "a@A CREATE node-2 => node-2:n2@44",
            "b@A PUT node-1:n1@12 => node-1:n1@42\na@A PUT node-1:n1@42 => node-1:n1@44",
        );
        assert_eq!(kinds(&RULE, &both), [Kind::Suspect]);
    }

    #[test]
    fn what_the_evidence_leaves_open_is_a_suspect() {
        // Not written while it led.
        assert_eq!(kinds(&RULE, &STORY.replace("a@A CREATE node-1 => node-1:n1@12\n", "")), [Kind::Suspect]);
        // Its own term had not run out.
        assert_eq!(kinds(&RULE, &STORY.replace("--- 5s\n", "")), [Kind::Suspect]);
        // Identified by its address only.
        assert_eq!(kinds(&RULE, &format!("recorded audit\n{STORY}")), [Kind::Suspect]);
    }

    #[test]
    fn a_renewal_that_nobody_recorded_may_have_made_its_term_longer() {
        let unseen = STORY.replace("b@A PUT leases/kube-system/op:l1@14", "b@A PUT leases/kube-system/op:l1@38");
        assert_eq!(kinds(&RULE, &unseen), [Kind::Suspect]);
        let patched = STORY.replace("b@A PUT leases/kube-system/op:l1@14", "b@A PATCH leases/kube-system/op");
        assert_eq!(kinds(&RULE, &patched), [Kind::Suspect]);
        let events = [10, 14, 40].map(|at| format!("~leases/kube-system/op:l1@{at}")).join(" ");
        let watched = format!("{patched}w@A WATCH leases in kube-system from 9 {events} ^50\n");
        assert_eq!(kinds(&RULE, &watched), [Kind::Violation]);
    }

    #[test]
    fn a_lock_for_each_of_many_things_stands_for_no_process() {
        let other = "b@A CREATE leases/kube-system/op-2[.spec.holderIdentity=b-1 .spec.leaseDurationSeconds=9] => leases/kube-system/op-2:l2@11\n";
        let agents = |program: &str| {
            let clients = format!("client a user=agent agent=agent/1\nclient b user=agent agent={program}/1\n");
            format!("{clients}{}", STORY.replace("a@A CREATE node-1", &format!("{other}a@A CREATE node-1")))
        };
        assert_eq!(kinds(&RULE, &agents("agent")), [Kind::Suspect]);
        assert_eq!(kinds(&RULE, &agents("other")), [Kind::Violation]);
    }

    #[test]
    fn what_replicas_write_that_do_not_lead_is_not_the_leader_s_business() {
        let agents = |also: &str| {
            let clients = ["a", "b", "c"].map(|name| format!("client {name} user=agent agent=agent/1\n")).concat();
            format!("{clients}{}", STORY.replace("a@A CREATE node-1", &format!("{also}a@A CREATE node-1")))
        };
        assert_eq!(kinds(&RULE, &agents("c@A CREATE node-9 => node-9:n9@11\n")), [Kind::Suspect]);
        assert_eq!(kinds(&RULE, &agents("b@A CREATE node-9 => node-9:n9@11\n")), [Kind::Suspect]);
        assert_eq!(kinds(&RULE, &agents("c@A CREATE pods/p => pods/p:p1@11\n")), [Kind::Violation]);
        // Writes of the new leader are its own business.
        let after = agents("") + "b@A CREATE node-3 => node-3:n3@46\n";
        assert_eq!(kinds(&RULE, &after), [Kind::Violation]);
    }

    #[test]
    fn bindings_and_evictions_are_writes_too() {
        let binds = |before: &str, after: &str| {
            STORY
                .replace("a@A CREATE node-1 => node-1:n1@12", &format!("a@A CREATE pods/p1 {before} => ok"))
                .replace("a@A CREATE node-2 => node-2:n2@44", &format!("a@A CREATE pods/p2 {after}"))
        };
        assert_eq!(kinds(&RULE, &binds("binding", "binding => ok")), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &binds("eviction", "eviction => ok")), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &binds("eviction", "eviction => !429")), []);
        let earlier = binds("binding", "binding => ok");
        let (story, last) = earlier.trim_end().rsplit_once('\n').unwrap_or_default();
        assert!(holds(&RULE, &story.replace("--- 5s\n", &format!("{last}\n--- 5s\n")).replace("p2", "p3")));
    }

    #[test]
    fn whoever_took_it_need_not_be_recorded() {
        let b = "b@A PUT leases/kube-system/op:l1@14[.spec.holderIdentity=b-1 .spec.leaseDurationSeconds=1] => leases/kube-system/op:l1@40\n";
        let taken = "leases/kube-system/op:l1@40[.spec.holderIdentity=b-1 .spec.leaseDurationSeconds=1]";
        let watched = format!("w@A WATCH leases in kube-system from 14 as s\nw@A ..s ~{taken} ^42\n");
        assert_eq!(kinds(&RULE, &STORY.replace(b, &watched)), [Kind::Violation]);
        // Without a later renewal nothing shows that it led when it wrote such objects.
        let (last, node) = ("op:l1@14\n", "a@A CREATE node-1 => node-1:n1@12\n");
        let unclear = STORY.replace(node, "").replacen(last, &format!("{last}{node}"), 1);
        assert_eq!(kinds(&RULE, &unclear), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &unclear.replace(b, &watched)), [Kind::Suspect]);
    }

    #[test]
    fn whoever_took_it_may_be_the_same_process() {
        let twin = format!("client a user=u recorded=capture\nclient b user=u recorded=audit\n{STORY}");
        assert_eq!(kinds(&RULE, &twin), [Kind::Suspect]);
        let again = twin.clone()
            + "b@A PUT leases/kube-system/op:l1@40[.spec.holderIdentity=a-1 .spec.leaseDurationSeconds=1] => leases/kube-system/op:l1@46\n\
               a@A CREATE node-3 => node-3:n3@48\n";
        assert_eq!(kinds(&RULE, &again).len(), 1);
    }

    #[test]
    fn another_lock_may_be_what_it_writes_for() {
        let both = STORY.replace(
            "a@A CREATE node-1",
            "a@A CREATE leases/kube-system/other[.spec.holderIdentity=a-1 .spec.leaseDurationSeconds=9] => leases/kube-system/other:l2@11\na@A CREATE node-1",
        );
        assert!(holds(&RULE, &both));
    }
}
