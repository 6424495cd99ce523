//! Attribution of revisions: the acknowledged writer, or else a crashed operation that has exactly this effect at exactly this
//! revision and was sent before evidence showed the revision. Contents are known here, so this is a bipartite matching by
//! augmenting paths (Kuhn 1955). Output: [`Attribution`]. Revisions with unknown content are left to `reconstruction`.

use super::answers::asked;
use super::attachment::{Attached, AttachedBy, Attachments, attached_by};
use super::attribution::{Attribution, Supposed, Unattributed, Unfit, Writer};
use super::conditions::{branch, decided};
use super::effects::{Answered, Change, Class, Effects};
use super::lease::{Lives, attached};
use super::log;
use super::matching::Matching;
use super::proofs::Proofs;
use super::requests::{Asked, Requests};
use super::store::{covers, reads_ahead};
use super::timeline::{Revision, State, Timeline};
use crate::history::Symbol;
use crate::history::etcd::{Operation, Recording, Request, Span, Step, Txn};
use crate::ingest::Time;
use rustc_hash::FxHashMap;

/// Limit on the candidates that are kept per revision.
const LISTED: usize = 64;

struct Builder<'t> {
    recording: &'t Recording,
    effects: &'t Effects,
    timeline: &'t Timeline,
    proofs: &'t Proofs,
    leases: Attachments,
    lives: &'t Lives,
    supposed: &'t [Supposed],
    attribution: Attribution,
    /// Unclaimed revisions with their candidates: operations, and numbers above all operations for expiries.
    gaps: Vec<(i64, Vec<u32>)>,
    /// The leases of expiries; `None` for a lease with unknown attachments.
    expiries: Vec<Option<i64>>,
    /// By key and revision of a version: the last revision at which a read found it.
    shown: Option<FxHashMap<(Symbol, i64), i64>>,
    /// By kind of request: the last revision that it was compared with, and whether it fits.
    judged: Vec<Option<(i64, Option<bool>)>>,
}

/// The crashed operations that may have written a revision.
#[derive(Default)]
struct Candidates {
    /// Those that fit.
    sure: Vec<u32>,
    /// Those for which that is unknown.
    unsure: Vec<u32>,
    /// One of each kind that fits.
    kinds: Vec<u32>,
}

impl Attribution {
    /// Attributes the revisions of a timeline. `supposed`: presumed writers of some revisions, ascending.
    pub fn of(
        recording: &Recording,
        effects: &Effects,
        timeline: &Timeline,
        proofs: &Proofs,
        lives: &Lives,
        supposed: &[Supposed],
    ) -> Attribution {
        let mut builder = Builder {
            recording,
            effects,
            timeline,
            proofs,
            leases: Attachments::default(),
            lives,
            supposed,
            attribution: Attribution::default(),
            gaps: Vec::new(),
            expiries: Vec::new(),
            shown: None,
            judged: Vec::new(),
        };
        builder.walk();
        builder.matching()
    }
}

impl Builder<'_> {
    fn walk(&mut self) {
        let unknown = Requests::of(self.recording, self.effects, Class::Unknown);
        self.judged = vec![None; unknown.kinds as usize];
        let mut either: Vec<u32> =
            (0..self.recording.operations.len() as u32).filter(|at| self.effects.class(*at) == Class::Either).collect();
        either.sort_by_key(|at| self.recording.operations[*at as usize].revision);
        let mut either = either.into_iter().peekable();
        let of = |at: &u32| self.recording.operations[*at as usize].revision;
        let mut expected = 2;
        for revision in &self.timeline.revisions {
            while let Some(at) = either.next_if(|at| of(at) < revision.number) {
                self.same(at);
            }
            if revision.number != expected || !revision.complete {
                self.attribution.open.get_or_insert(expected.min(revision.number));
            }
            expected = revision.number + 1;
            let mut here = Vec::new();
            while let Some(at) = either.next_if(|at| of(at) == revision.number) {
                here.push(at);
            }
            let writer = self.revision(revision, &here, &unknown);
            here.into_iter().filter(|at| Some(*at) != writer).for_each(|at| self.same(at));
        }
        either.for_each(|at| self.same(at));
        if self.proofs.last() >= expected {
            self.attribution.open.get_or_insert(expected);
        }
    }

    /// An operation whose answer does not show whether it wrote, and that did not write at its revision.
    fn same(&mut self, at: u32) {
        let operation = &self.recording.operations[at as usize];
        let Request::LeaseRevoke { lease } = operation.request else {
            self.attribution.undecided.push(at);
            return;
        };
        let Some(keys) = self.leases.keys.get(&lease) else { return };
        let mut stay = Vec::new();
        for key in keys {
            let stays = match self.timeline.state(*key, operation.revision) {
                State::There(_) => true,
                // A key that is not seen again may have been removed by this revoke.
                State::Open(Some(version)) => {
                    let shown = self.shown.get_or_insert_with(|| shown(self.recording));
                    shown.get(&(*key, version.revision)).is_some_and(|at| *at >= operation.revision)
                }
                _ => false,
            };
            stay.extend(stays.then_some(*key));
        }
        if let Some(key) = stay.into_iter().min() {
            self.attribution.unrevoked.push((at, key));
        } else if !keys.is_empty() {
            self.attribution.undecided.push(at);
        }
    }

    /// Attributes one revision and updates the attachments. Returns the operation among `claimed` that wrote it.
    fn revision(&mut self, revision: &Revision, claimed: &[u32], unknown: &Requests) -> Option<u32> {
        let changes: Vec<Change> = self.timeline.versions_of(revision).iter().map(|version| version.change).collect();
        let number = revision.number;
        let mut claimant = None;
        let mut writer = revision.writer;
        if writer.is_none() && revision.complete {
            let pin = self.supposed.binary_search_by_key(&number, |supposed| supposed.revision).ok();
            let pin = pin.map(|at| self.supposed[at].writer);
            // A committed log entry shows whether it is a revoke.
            let ends = revision.entry.filter(|entry| log::is_committed(self.recording, *entry));
            let ends = ends.and_then(|entry| log::entry(self.recording, entry)).map(|entry| is_end(&entry.request));
            let recording = self.recording;
            let may = |writer: Writer| {
                let end = match writer {
                    Writer::Operation(at) => is_end(&recording.operations[at as usize].request),
                    Writer::Expiry(_) => true,
                };
                pin.is_none_or(|pin| pin == writer) && ends.is_none_or(|ends| ends == end)
            };
            let made = |at: &u32| may(Writer::Operation(*at)) && self.fits(*at, number, &changes) == Some(true);
            // Among several claimants, the first answered one wrote it, if it was sent in time; the others found it written.
            let seen = self.proofs.first(number).map(|(time, _)| time);
            let order = |at: &u32| {
                let operation = &self.recording.operations[*at as usize];
                (seen.is_some_and(|seen| operation.call > seen), returned(operation), *at)
            };
            claimant = claimed.iter().copied().filter(made).min_by_key(order);
            if let Some(at) = claimant {
                self.attribution.writers.push((number, Writer::Operation(at)));
                writer = Some(at);
            } else {
                let Candidates { mut sure, unsure, kinds } = self.candidates(number, &changes, unknown, may);
                // If they attach keys differently, the attachment is unknown.
                let attached = |at: u32, key| self.attached_by(at, number, key);
                let agree = |first: &u32| {
                    let same = |change: &Change| {
                        kinds.iter().all(|at| attached(*at, change.key) == attached(*first, change.key))
                    };
                    changes.iter().all(same)
                };
                let agreed = sure.first().is_none_or(agree);
                writer = sure.first().copied().filter(|_| unsure.is_empty() && agreed);
                if !agreed {
                    self.attribution.doubted.push(number);
                }
                let expired = self.expired(number, &changes, pin).filter(|_| ends != Some(false));
                if expired.is_some() || (ends != Some(false) && self.may_have_expired(number, &changes)) {
                    // A number above all operations stands for an expiry.
                    sure.push((self.recording.operations.len() + self.expiries.len()) as u32);
                    self.expiries.push(expired);
                }
                sure.extend(unsure);
                self.gaps.push((number, sure));
            }
        }
        let success = writer.and_then(|at| branch(self.recording, self.timeline, at, number));
        let asked = || match self.request(writer?) {
            Request::Txn(txn) => Some(AttachedBy::of(self.recording, txn, success)),
            _ => None,
        };
        let made = AttachedBy::logged(self.recording, revision.entry, success).or_else(asked);
        for change in &changes {
            let attached = match change.value {
                Some(_) => made.as_ref().map_or(Some(Attached::Unknown), |made| made.get(change.key)),
                None => None,
            };
            self.leases.set(change.key, attached);
        }
        claimant
    }

    /// The attachment of a key that a request put at a revision.
    fn attached_by(&self, at: u32, revision: i64, key: Symbol) -> Option<Attached> {
        let Request::Txn(txn) = self.request(at) else { return Some(Attached::Unknown) };
        attached_by(self.recording, txn, branch(self.recording, self.timeline, at, revision), key)
    }

    /// The crashed operations that may have written a revision.
    fn candidates(
        &mut self,
        revision: i64,
        changes: &[Change],
        unknown: &Requests,
        may: impl Fn(Writer) -> bool,
    ) -> Candidates {
        let mut candidates = Candidates::default();
        let seen = self.proofs.first(revision).map(|(time, _)| time);
        let recording = self.recording;
        for asked in changes.first().map(|change| unknown.making(recording, *change)).into_iter().flatten() {
            if seen.is_some_and(|seen| asked.call > seen) || !may(Writer::Operation(asked.at)) {
                continue;
            }
            let kind = asked.kind as usize;
            let fits = match self.judged[kind] {
                Some((of, fits)) if of == revision => fits,
                _ => {
                    let fits = self.fits(asked.at, revision, changes);
                    self.judged[kind] = Some((revision, fits));
                    if fits == Some(true) {
                        candidates.kinds.push(asked.at);
                    }
                    fits
                }
            };
            match fits {
                Some(true) => candidates.sure.push(asked.at),
                Some(false) => {}
                None => candidates.unsure.push(asked.at),
            }
        }
        candidates
    }

    fn request(&self, at: u32) -> Request {
        self.recording.operations[at as usize].request
    }

    /// A lease whose expiry has exactly these changes.
    fn expired(&self, revision: i64, changes: &[Change], pin: Option<Writer>) -> Option<i64> {
        let keys = removed(changes)?;
        let named = keys.iter().find_map(|key| match self.leases.of_key.get(key) {
            Some(Attached::To(lease)) => Some(*lease),
            _ => None,
        });
        // Keys that transactions put may be attached to any lease.
        let leases = named.map_or_else(|| self.lives.may_end(revision), |lease| vec![lease]);
        let may = |lease: &i64| pin.is_none_or(|pin| pin == Writer::Expiry(*lease));
        leases
            .into_iter()
            .filter(may)
            .find(|lease| self.may_hold(*lease, &keys, revision) && self.leases.ends(*lease, &keys))
    }

    /// Whether a lease may be alive just before a revision, and was alive when these keys were put.
    fn may_hold(&self, lease: i64, keys: &[Symbol], revision: i64) -> bool {
        let since = |key: &Symbol| self.timeline.at(*key, revision - 1).map_or(revision, |version| version.revision);
        let kept = |key: &Symbol| self.lives.may_keep(lease, since(key), revision);
        keys.iter().map(since).chain([revision]).all(|at| self.lives.may_live(lease, at)) && keys.iter().all(kept)
    }

    /// Whether an expiry may have these changes because an earlier unknown revision leaves attachments open.
    fn may_have_expired(&self, revision: i64, changes: &[Change]) -> bool {
        self.attribution.open.is_some() && removed(changes).is_some() && !self.lives.may_end(revision).is_empty()
    }

    /// Whether a request, applied just before a revision, has exactly these changes; `None` if unknown.
    fn fits(&self, at: u32, revision: i64, changes: &[Change]) -> Option<bool> {
        match self.recording.operations[at as usize].request {
            Request::LeaseRevoke { lease } => {
                let Some(keys) = removed(changes).filter(|_| self.lives.may_live(lease, revision)) else {
                    return Some(false);
                };
                // After an unknown revision, attachments are unknown.
                let ends = self.may_hold(lease, &keys, revision) && self.leases.ends(lease, &keys);
                (ends || self.attribution.open.is_none()).then_some(ends)
            }
            Request::Txn(txn)
                if branch(self.recording, self.timeline, at, revision).is_some_and(|success| {
                    attached(self.recording, txn, success).any(|lease| !self.lives.may_live(lease, revision))
                        || reads_ahead(self.recording, txn, success, revision - 1)
                }) =>
            {
                Some(false)
            }
            Request::Txn(txn) if !self.may_make(txn, changes) => Some(false),
            Request::Txn(txn) => self.effect(at, txn, revision - 1).map(|mut effect| {
                let mut changes = changes.to_vec();
                effect.sort_unstable();
                changes.sort_unstable();
                let same = |(a, b): (&Change, &Change)| {
                    a.key == b.key
                        && match (a.value, b.value) {
                            (Some(a), Some(b)) => self.recording.values.same(a, b) != Some(false),
                            (a, b) => a == b,
                        }
                };
                effect.len() == changes.len() && effect.iter().zip(&changes).all(same)
            }),
            _ => Some(false),
        }
    }

    /// Whether a transaction has a step that can make the first of these changes in any state.
    fn may_make(&self, txn: Txn, changes: &[Change]) -> bool {
        let Some(change) = changes.first() else { return true };
        let steps = |span: Span| span.of(&self.recording.requests.steps).iter();
        steps(txn.success).chain(steps(txn.failure)).any(|step| match (step, change.value) {
            (Step::Put { key, value, .. }, Some(made)) => {
                *key == change.key && self.recording.values.same(*value, made) != Some(false)
            }
            (Step::Delete(keys), None) => covers(self.recording, *keys, change.key),
            (Step::Txn(_) | Step::Nothing, _) => true,
            _ => false,
        })
    }

    /// The changes of a transaction in a state; none if its answer contradicts the state; `None` if unknown.
    fn effect(&self, operation: u32, txn: Txn, at: i64) -> Option<Vec<Change>> {
        let success = decided(self.recording, self.timeline, txn, at)?;
        let told = Answered::of(self.recording, operation);
        if told.is_some_and(|told| told.success != success) {
            return Some(Vec::new());
        }
        let mut changes: Vec<Change> = Vec::new();
        let set = |changes: &mut Vec<Change>, change: Change| match changes
            .iter_mut()
            .find(|other| other.key == change.key)
        {
            Some(other) => *other = change,
            None => changes.push(change),
        };
        let taken = txn.taken(success);
        for (n, step) in taken.of(&self.recording.requests.steps).iter().enumerate() {
            match step {
                Step::Put { key, value, .. } => set(&mut changes, Change { key: *key, value: Some(*value) }),
                Step::Delete(interval) => {
                    let mut keys: Vec<Symbol> = match interval.end.is_some() {
                        true => self.timeline.keys().filter(|key| covers(self.recording, *interval, *key)).collect(),
                        false => vec![interval.key],
                    };
                    // A key that it deleted before does not exist any more.
                    keys.retain(|key| !changes.iter().any(|change| change.key == *key && change.value.is_none()));
                    let mut removed = 0;
                    for key in keys {
                        match self.timeline.state(key, at) {
                            State::There(_) => {
                                set(&mut changes, Change { key, value: None });
                                removed += 1;
                            }
                            State::Absent(_) => {}
                            State::Open(_) => return None,
                        }
                    }
                    if told.and_then(|told| told.removed(n)).is_some_and(|told| told != removed) {
                        // Before an unknown revision there may be unknown keys.
                        return self.timeline.known_between(1, at).then(Vec::new);
                    }
                }
                Step::Range(_) => {}
                Step::Txn(_) | Step::Nothing => return None,
            }
        }
        Some(changes)
    }

    fn matching(mut self) -> Attribution {
        let mut matching = Matching::new(&self.gaps);
        let without: Vec<usize> = (0..self.gaps.len()).filter(|gap| !matching.augment(*gap)).collect();
        let used = matching.used;
        let count = self.recording.operations.len();
        let made = used.iter().filter_map(|(at, gap)| {
            let filler = match (*at as usize).checked_sub(count) {
                None => Writer::Operation(*at),
                Some(expiry) => Writer::Expiry(self.expiries[expiry]?),
            };
            Some((self.gaps[*gap].0, filler))
        });
        self.attribution.writers.extend(made);
        self.attribution.writers.sort_by_key(|(revision, _)| *revision);
        if !without.is_empty() {
            self.explain(&without, &used);
        }
        self.attribution
    }

    fn explain(&mut self, without: &[usize], used: &FxHashMap<u32, usize>) {
        let unknown = Requests::of(self.recording, self.effects, Class::Unknown);
        let refused = Requests::of(self.recording, self.effects, Class::Refused);
        let written = Requests::of(self.recording, self.effects, Class::Write);
        for &gap in without {
            let number = self.gaps[gap].0;
            let Some(revision) = self.timeline.revision(number) else { continue };
            let changes: Vec<Change> = self.timeline.versions_of(revision).iter().map(|v| v.change).collect();
            let Some(first) = changes.first() else { continue };
            let seen = self.proofs.first(number);
            let late = |at: u32| seen.filter(|(time, _)| self.recording.operations[at as usize].call > *time);
            let mut candidates: Vec<(u32, Unfit)> = Vec::new();
            let mut too_late = Vec::new();
            for Asked { at, .. } in unknown.about(first.key) {
                match (late(at), used.get(&at)) {
                    (Some((_, proof)), _) => too_late.push((at, Unfit::Late(proof))),
                    (None, Some(other)) if self.gaps[gap].1.contains(&at) => {
                        candidates.push((at, Unfit::Used(self.gaps[*other].0)));
                    }
                    (None, _) => candidates.push((at, Unfit::OtherEffect)),
                }
                too_late.truncate(LISTED);
                if candidates.len() == LISTED {
                    break;
                }
            }
            candidates.extend(too_late);
            candidates.truncate(LISTED);
            let more = unknown.count_about(first.key) - candidates.len();
            let recording = self.recording;
            let refused = refused
                .making(recording, *first)
                .map(|asked| asked.at)
                .find(|at| late(*at).is_none() && self.fits(*at, number, &changes) == Some(true));
            let repeats =
                written.making(recording, *first).map(|asked| asked.at).find(|at| self.effects.changes(*at) == changes);
            let entry = revision.entry;
            self.attribution.unattributed.push(Unattributed {
                revision: number,
                candidates,
                more,
                refused,
                repeats,
                entry,
            });
        }
    }
}

fn is_end(request: &Request) -> bool {
    matches!(request, Request::LeaseRevoke { .. })
}

/// By key and revision of its last change: the last revision at which a read found it.
fn shown(recording: &Recording) -> FxHashMap<(Symbol, i64), i64> {
    let mut shown: FxHashMap<(Symbol, i64), i64> = FxHashMap::default();
    for operation in &recording.operations {
        for (n, result) in (0..).zip(operation.results.of(&recording.results)) {
            let of = match (asked(recording, operation, n), operation.request) {
                (Some(range), _) if range.revision > 0 => range.revision,
                (_, Request::Range(_)) => operation.revision,
                // Reads in a writing transaction show the state before it.
                _ => operation.revision - 1,
            };
            for pair in result.pairs.of(&recording.pairs) {
                let last = shown.entry((pair.key, pair.revision)).or_insert(of);
                *last = of.max(*last);
            }
        }
    }
    shown
}

fn returned(operation: &Operation) -> Time {
    if operation.returned.is_known() { operation.returned } else { Time(i64::MAX) }
}

/// The keys, if all changes are removals.
fn removed(changes: &[Change]) -> Option<Vec<Symbol>> {
    changes.iter().map(|change| change.value.is_none().then_some(change.key)).collect()
}
