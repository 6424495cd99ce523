//! Lifetimes of leases, from grant to revoke or expiry, and the keys attached to them. Output: [`Lives`] and [`Misuse`]s.
//!
//! Grants and ends that only the members' log shows count like answered ones.
//!
//! A lease without a recorded grant may live at any time. A grant without a recorded number may have been of any lease, and
//! clients learn such a number from the list of leases. Only a misuse that is `certain` follows from answers alone.
//!
//! Source: etcd `server/lease/lessor.go` (`Grant`, `Revoke`; `Attach`: the lease has to exist), `server/etcdserver/v3_server.go`
//! (`LeaseGrant`: the server chooses the number if the client sends 0; `LeaseLeases`).

use super::attachment::{Attached, AttachedBy, Attachments, attached_by, logged_txn};
use super::attribution::{Attribution, Writer};
use super::conditions::branch;
use super::effects::{Class, Effects};
use super::log::{self, Log};
use super::proofs::Proofs;
use super::timeline::{State, Timeline};
use crate::history::Symbol;
use crate::history::etcd::{Outcome, Recording, Request, Step, Txn};
use crate::ingest::Time;
use rustc_hash::{FxHashMap, FxHashSet};

/// The lifetimes of leases, from answers alone.
#[derive(Debug, Default)]
pub struct Lives {
    rows: FxHashMap<i64, Life>,
    /// Grants without a recorded number: the revision that existed when each was sent, and the send time, ascending.
    unnumbered: Vec<(i64, Time)>,
}

/// Revisions: an event at one happened at it or after it, before the next one.
#[derive(Clone, Debug, Default)]
struct Life {
    /// Its answered grants, ascending.
    granted: Vec<i64>,
    /// Its answered revokes, ascending.
    ended: Vec<i64>,
    /// The last revision at which it was certainly alive.
    used: i64,
    /// Unanswered grants: the revision that existed when each was sent, and the send time, ascending.
    asked: Vec<(i64, Time)>,
    /// Whether it may live at any time, because no grant of it is recorded.
    always: bool,
    /// Grants and revokes in the members' log that no recorded answer tells and that removed no key, by revision.
    logged: Vec<(i64, Kind)>,
}

impl Lives {
    /// Derives the lifetimes of a recording.
    pub fn of(recording: &Recording, effects: &Effects, log: &Log, proofs: &Proofs) -> Lives {
        let mut lives = Lives::default();
        for (at, operation) in (0..).zip(&recording.operations) {
            let answered = matches!(effects.class(at), Class::Write | Class::Same | Class::Either);
            let sent = || {
                let known = proofs.before(operation.call).map_or(1, |(revision, _)| revision);
                (known, operation.call)
            };
            let (lease, kind) = match operation.request {
                Request::LeaseGrant { lease: 0, .. } => {
                    if answered || operation.outcome == Outcome::Unknown {
                        lives.unnumbered.push(sent());
                    }
                    continue;
                }
                Request::LeaseGrant { lease, .. } => (lease, Kind::Grant),
                // A refused revoke found no lease, so it is no evidence of one.
                Request::LeaseRevoke { .. } if !answered && operation.outcome != Outcome::Unknown => continue,
                Request::LeaseRevoke { lease } => (lease, Kind::End),
                Request::Txn(txn) if answered => {
                    for lease in attached(recording, txn, !operation.failure) {
                        let life = lives.rows.entry(lease).or_default();
                        life.used = life.used.max(operation.revision);
                    }
                    continue;
                }
                Request::Txn(txn) => {
                    for lease in [true, false].into_iter().flat_map(|way| attached(recording, txn, way)) {
                        lives.rows.entry(lease).or_default();
                    }
                    continue;
                }
                _ => continue,
            };
            let life = lives.rows.entry(lease).or_default();
            match kind {
                Kind::Grant if answered => life.granted.push(operation.revision),
                Kind::Grant if operation.outcome == Outcome::Unknown => life.asked.push(sent()),
                Kind::Grant => {}
                _ if !answered => {}
                _ => {
                    life.ended.push(operation.revision);
                    life.used = life.used.max(operation.revision);
                }
            }
        }
        lives.unnumbered.sort_unstable();
        for life in lives.rows.values_mut() {
            life.always = life.granted.is_empty() && life.asked.is_empty();
        }
        lives.take_log(recording, log);
        for life in lives.rows.values_mut() {
            life.asked.sort_unstable();
            life.granted.sort_unstable();
            life.ended.sort_unstable();
        }
        lives
    }

    /// Adds the grants and ends that only the members' log shows, of leases with a recorded grant. An end that removed keys is
    /// the presumed writer of a revision instead.
    fn take_log(&mut self, recording: &Recording, log: &Log) {
        // By lease, kind and revision: answers whose entries the log may have.
        let mut told: FxHashMap<(i64, Kind, i64), usize> = FxHashMap::default();
        for (lease, life) in &self.rows {
            let granted = life.granted.iter().map(|revision| (*lease, Kind::Grant, *revision));
            let ended = life.ended.iter().map(|revision| (*lease, Kind::End, *revision));
            granted.chain(ended).for_each(|one| *told.entry(one).or_default() += 1);
        }
        for (entry, replayed) in log.entries.iter().zip(&log.replayed).take(log.certain) {
            let (lease, kind) = match log::entry(recording, *entry).map(|entry| entry.request) {
                Some(Request::LeaseGrant { lease, .. }) => (lease, Kind::Grant),
                Some(Request::LeaseRevoke { lease }) => (lease, Kind::End),
                _ => continue,
            };
            let revision = replayed.revision;
            let Some(life) = self.rows.get_mut(&lease).filter(|life| !life.always && !replayed.refused) else {
                continue;
            };
            if let Some(left) = told.get_mut(&(lease, kind, revision)).filter(|left| **left > 0) {
                *left -= 1;
            } else if !replayed.changed {
                let of = if kind == Kind::Grant { &mut life.granted } else { &mut life.ended };
                of.push(revision);
                life.logged.push((revision, kind));
            }
        }
    }

    /// Whether any operation names a lease.
    pub fn any(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Whether a lease may be alive just before a revision.
    pub fn may_live(&self, lease: i64, before: i64) -> bool {
        self.may_live_by(lease, before, &self.unnumbered)
    }

    /// The same, if only some grants without a number may have been of it.
    fn may_live_by(&self, lease: i64, before: i64, unnumbered: &[(i64, Time)]) -> bool {
        let count = |revisions: &[i64]| revisions.partition_point(|revision| *revision < before);
        self.rows.get(&lease).is_none_or(|life| {
            let (granted, ended) = (count(&life.granted), count(&life.ended));
            let sent = |grants: &[(i64, Time)]| grants.partition_point(|(revision, _)| *revision < before);
            let asked = sent(&life.asked) + sent(unnumbered);
            // A lease is granted again only after its end, and ends only after its grant, so each end used up one grant.
            let left = granted + asked > ended;
            let last = |revisions: &[i64], count: usize| count.checked_sub(1).map(|at| revisions[at]);
            let granted = last(&life.granted, granted);
            let since = granted.is_some_and(|granted| last(&life.ended, ended).is_none_or(|ended| ended <= granted));
            life.always || (left && (asked > 0 || since))
        })
    }

    /// Whether a key that was put at a revision may still be attached to its lease just before another revision. An answered
    /// revoke in between excludes it, and so does a grant, because a second grant implies an end.
    pub fn may_keep(&self, lease: i64, put: i64, before: i64) -> bool {
        self.rows.get(&lease).is_none_or(|life| {
            let none = |all: &[i64]| all.get(all.partition_point(|at| *at < put)).is_none_or(|at| *at >= before);
            none(&life.ended) && none(&life.granted)
        })
    }

    /// Whether no grant of a lease is recorded.
    pub fn is_always_alive(&self, lease: i64) -> bool {
        self.rows.get(&lease).is_none_or(|life| life.always)
    }

    /// Unanswered grants of a lease: the revision that existed when each was sent, and the send time, ascending.
    fn asked(&self, lease: i64) -> &[(i64, Time)] {
        self.rows.get(&lease).map_or(&[], |life| &life.asked)
    }

    /// The same, with the grants that may have been of any lease.
    fn perhaps_asked(&self, lease: i64) -> Vec<(i64, Time)> {
        let mut all = [self.asked(lease), &self.unnumbered].concat();
        all.sort_unstable();
        all
    }

    /// Whether some grant without a recorded number may have been of any lease.
    pub fn has_unnumbered(&self) -> bool {
        !self.unnumbered.is_empty()
    }

    /// How often a lease may have expired, or ended by an unanswered revoke.
    fn untold_ends(&self, lease: i64) -> usize {
        self.rows.get(&lease).filter(|life| !life.always).map_or(usize::MAX, |life| {
            let grants = life.granted.len() + life.asked.len() + self.unnumbered.len();
            grants.saturating_sub(life.ended.len())
        })
    }

    /// Leases that may expire at a revision; those that are used again after it come last.
    pub fn may_end(&self, revision: i64) -> Vec<i64> {
        let may = |(lease, _): &(&i64, &Life)| self.may_live(**lease, revision);
        let mut leases: Vec<(bool, i64)> =
            self.rows.iter().filter(may).map(|(lease, life)| (life.used >= revision, *lease)).collect();
        leases.sort_unstable();
        leases.into_iter().map(|(_, lease)| lease).collect()
    }
}

/// A use of a lease outside its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misuse {
    /// The client's grant or revoke that bounds the lifetime; `None` if no client requested it.
    pub bound: Option<u32>,
    /// The request that was answered as if the lease were alive; `None` for a presumed expiry.
    pub used: Option<u32>,
    /// Whether answers alone show it. Otherwise another crashed operation, or the end of a lease, may have had the presumed
    /// effect.
    pub certain: bool,
}

/// Whether a presumed end of a lease is impossible. The lease had ended since one of the removed keys was put, or it would end
/// more often than it was granted.
pub fn outlived(recording: &Recording, timeline: &Timeline, attribution: &Attribution, lives: &Lives) -> bool {
    let mut last: FxHashMap<i64, i64> = FxHashMap::default();
    let mut untold: FxHashMap<i64, usize> = FxHashMap::default();
    for (number, filler) in &attribution.writers {
        let lease = match filler {
            Writer::Expiry(lease) => *lease,
            Writer::Operation(at) => match recording.operations[*at as usize].request {
                Request::LeaseRevoke { lease } => lease,
                _ => continue,
            },
        };
        let told = match filler {
            Writer::Expiry(_) => false,
            Writer::Operation(at) => recording.operations[*at as usize].outcome == Outcome::Answered,
        };
        let times = untold.entry(lease).or_default();
        *times += usize::from(!told);
        if !told && *times > lives.untold_ends(lease) {
            return true;
        }
        let Some(end) = last.insert(lease, *number) else { continue };
        let versions = timeline.revision(*number).into_iter().flat_map(|revision| timeline.versions_of(revision));
        let put = |key| timeline.at(key, number - 1).map_or(1, |version| version.revision);
        if versions.into_iter().any(|version| put(version.change.key) <= end) {
            return true;
        }
    }
    false
}

/// Whether a presumed expiry is possible only because of a grant without a number. Each such grant is of one unknown lease, so
/// several expiries may need the same grant.
pub fn needs_unnumbered(timeline: &Timeline, attribution: &Attribution, lives: &Lives) -> bool {
    let ends = attribution.writers.iter().filter_map(|(number, filler)| match filler {
        Writer::Expiry(lease) => Some((*number, *lease)),
        Writer::Operation(_) => None,
    });
    lives.has_unnumbered()
        && ends.into_iter().any(|(number, lease)| {
            let removed = timeline.revision(number).into_iter().flat_map(|revision| timeline.versions_of(revision));
            let puts = removed.map(|version| timeline.at(version.change.key, number - 1).map_or(1, |put| put.revision));
            puts.chain([number]).any(|at| !lives.may_live_by(lease, at, &[]))
        })
}

/// Whether a key that is presumed to be put with a lease outlives an answered revoke of the lease that changed nothing.
pub fn survived(recording: &Recording, effects: &Effects, timeline: &Timeline, attribution: &Attribution) -> bool {
    let made: FxHashSet<Writer> = attribution.writers.iter().map(|(_, filler)| *filler).collect();
    let mut ends: FxHashMap<i64, Vec<i64>> = FxHashMap::default();
    for &at in &effects.revokes {
        let operation = &recording.operations[at as usize];
        if let Request::LeaseRevoke { lease } = operation.request
            && operation.outcome == Outcome::Answered
            && !made.contains(&Writer::Operation(at))
        {
            ends.entry(lease).or_default().push(operation.revision);
        }
    }
    if ends.is_empty() {
        return false;
    }
    attribution.writers.iter().any(|(number, filler)| {
        let Writer::Operation(at) = filler else { return false };
        let Request::Txn(txn) = recording.operations[*at as usize].request else { return false };
        let success = branch(recording, timeline, *at, *number);
        let mut versions = timeline.revision(*number).into_iter().flat_map(|revision| timeline.versions_of(revision));
        versions.any(|version| {
            let key = version.change.key;
            let Some(Attached::To(lease)) = attached_by(recording, txn, success, key) else { return false };
            let stays = |end: &i64| timeline.at(key, *end).is_some_and(|last| last.revision == *number);
            version.change.value.is_some() && ends.get(&lease).is_some_and(|ends| ends.iter().any(stays))
        })
    })
}

/// Whether the attribution fits every end of a lease: the removed keys are exactly the attached ones.
pub fn held(recording: &Recording, effects: &Effects, timeline: &Timeline, attribution: &Attribution) -> bool {
    let made: FxHashMap<i64, Writer> = attribution.writers.iter().copied().collect();
    let writers: FxHashSet<Writer> = made.values().copied().collect();
    // Answered revokes that changed nothing, by revision.
    let mut idle: Vec<(i64, i64)> = Vec::new();
    for &at in &effects.revokes {
        let operation = &recording.operations[at as usize];
        if let Request::LeaseRevoke { lease } = operation.request
            && operation.outcome == Outcome::Answered
            && !writers.contains(&Writer::Operation(at))
        {
            idle.push((operation.revision, lease));
        }
    }
    idle.sort_unstable();
    let mut idle = idle.into_iter().peekable();
    let mut attachments = Attachments::default();
    for revision in &timeline.revisions {
        let versions = || timeline.versions_of(revision).iter();
        let writer = revision.writer.map(Writer::Operation).or_else(|| made.get(&revision.number).copied());
        let request = writer.map(|writer| match writer {
            Writer::Expiry(lease) => Request::LeaseRevoke { lease },
            Writer::Operation(at) => recording.operations[at as usize].request,
        });
        if let Some(Request::LeaseRevoke { lease }) = request {
            let keys: Vec<Symbol> = versions().map(|version| version.change.key).collect();
            if !attachments.ends(lease, &keys) {
                return false;
            }
        }
        let success = match writer {
            Some(Writer::Operation(at)) => branch(recording, timeline, at, revision.number),
            _ => None,
        };
        let logged = AttachedBy::logged(recording, revision.entry, success);
        for version in versions() {
            let key = version.change.key;
            let attached = match (version.change.value, request, writer) {
                (None, ..) => None,
                _ if logged.is_some() => logged.as_ref().and_then(|logged| logged.get(key)),
                (_, Some(Request::Txn(txn)), _) => attached_by(recording, txn, success, key),
                _ => Some(Attached::Unknown),
            };
            attachments.set(key, attached);
        }
        while let Some((_, lease)) = idle.next_if(|(at, _)| *at <= revision.number) {
            if attachments.keys.get(&lease).is_some_and(|keys| !keys.is_empty()) {
                return false;
            }
        }
    }
    idle.all(|(_, lease)| attachments.keys.get(&lease).is_none_or(|keys| keys.is_empty()))
}

/// A use of a lease, by its slot in the order: a write at revision r has slot 2r, what changed nothing there has slot 2r + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    lease: i64,
    place: i64,
    kind: Kind,
    operation: Option<u32>,
    certain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Kind {
    Grant,
    Attach,
    End,
}

/// The uses of leases outside their lifetimes.
pub fn misuses(
    recording: &Recording,
    effects: &Effects,
    timeline: &Timeline,
    attribution: &Attribution,
    lives: &Lives,
) -> Vec<Misuse> {
    let mut uses = uses(recording, effects, timeline, attribution);
    for (lease, life) in &lives.rows {
        let of_log = |(revision, kind): &(i64, Kind)| {
            let place = revision * 2 + 1;
            Use { lease: *lease, place, kind: *kind, operation: None, certain: true }
        };
        uses.extend(life.logged.iter().map(of_log));
    }
    let call = |one: &Use| one.operation.map(|at| recording.operations[at as usize].call);
    uses.sort_unstable_by_key(|one| (one.lease, one.place, call(one), *one));
    let mut found = regrants(recording, timeline, &uses);
    for uses in uses.chunk_by(|a, b| a.lease == b.lease) {
        let lease = uses[0].lease;
        if !lives.is_always_alive(lease) {
            let mut misuses = Vec::new();
            life(recording, uses, lives.asked(lease), &mut misuses);
            if lives.has_unnumbered() && !misuses.is_empty() {
                let named = std::mem::take(&mut misuses);
                life(recording, uses, &lives.perhaps_asked(lease), &mut misuses);
                if misuses.is_empty() {
                    // Each such grant is of one unknown lease, so another lease may need it too.
                    misuses.extend(named.into_iter().map(|misuse| Misuse { certain: false, ..misuse }));
                }
            }
            found.extend(misuses);
            found.extend(granted_twice(recording, uses, lives.untold_ends(lease)));
        }
    }
    found
}

/// Two completed grants of one lease without enough ends begun in between: a living lease cannot be granted again.
///
/// Source: etcd `server/lease/lessor.go` (`Grant`: `ErrLeaseExists`).
fn granted_twice(recording: &Recording, uses: &[Use], untold: usize) -> Option<Misuse> {
    let all = |kind: Kind| {
        let of_kind = uses.iter().filter(move |one| one.kind == kind && one.certain);
        of_kind.filter_map(|one| one.operation).map(|at| (at, &recording.operations[at as usize]))
    };
    let mut over: Vec<(Time, u32)> = all(Kind::Grant).map(|(at, grant)| (grant.returned, at)).collect();
    over.sort_unstable();
    // Ends that only the log shows may have come at any time.
    let logged = uses.iter().filter(|one| one.kind == Kind::End && one.certain && one.operation.is_none()).count();
    let untold = untold.saturating_add(logged);
    let mut begun: Vec<Time> = all(Kind::End).map(|(_, end)| end.call).collect();
    begun.sort_unstable();
    over.windows(2).zip(2usize..).find_map(|(pair, grants)| {
        let ends = begun.partition_point(|call| *call <= pair[1].0);
        (grants - 1 > ends.saturating_add(untold)).then_some(Misuse {
            bound: Some(pair[0].1),
            used: Some(pair[1].1),
            certain: false,
        })
    })
}

/// Sweeps the uses of one lease. `asked`: unanswered grants. Each may have taken effect at any time after it was sent, so a use
/// that needs one takes the first that is left.
fn life(recording: &Recording, uses: &[Use], asked: &[(i64, Time)], found: &mut Vec<Misuse>) {
    let operation = |one: &Use| one.operation.map(|at| &recording.operations[at as usize]);
    // Two uses that changed nothing at one revision are ordered by time, unless they overlap.
    let may_precede = |one: &Use, other: &Use| {
        one.place == other.place
            && operation(one).zip(operation(other)).is_none_or(|(one, other)| one.call <= other.returned)
    };
    let grants = || uses.iter().filter(|one| one.kind == Kind::Grant);
    let mut alive = false;
    let mut taken = 0;
    // The number of unanswered grants that may come before a use.
    let askable = |one: &Use| {
        let returned = operation(one).map_or(Time(i64::MAX), |operation| operation.returned);
        let before = asked.iter().filter(|(known, call)| known * 2 < one.place && *call <= returned);
        before.count()
    };
    // The current slot, and whether the lease was alive before it.
    let mut before = (i64::MIN, false);
    let mut end: Option<&Use> = None;
    for one in uses {
        if one.place != before.0 {
            before = (one.place, alive);
        }
        // Whether a grant in this slot is left over after all ends in the slot.
        let here = |kind: Kind| uses.iter().filter(|other| other.place == one.place && other.kind == kind).count();
        let spare = || here(Kind::Grant) + usize::from(before.1) > here(Kind::End);
        if one.kind == Kind::Grant {
            let needed = |end: &Use| end.place == one.place && may_precede(one, end) && !spare();
            alive |= !end.is_some_and(needed);
            continue;
        }
        let ungranted = !alive && !grants().any(|grant| may_precede(grant, one));
        if ungranted && askable(one) > taken {
            taken += 1;
            alive = true;
        }
        if ungranted && !alive {
            // Without one, every grant is unanswered, and none was sent in time.
            let bound = end.or_else(|| grants().find(|grant| grant.place >= one.place));
            let certain = one.certain && bound.is_some_and(|bound| bound.certain) && taken == 0;
            found.push(Misuse { bound: bound.and_then(|bound| bound.operation), used: one.operation, certain });
        }
        if one.kind == Kind::End {
            let through = |other: &&Use| other.place <= one.place;
            let granted = grants().filter(through).count();
            let ends = || uses.iter().filter(|other| other.kind == Kind::End).filter(through);
            if ends().count() > granted + askable(one) {
                // There are more ends than grants in any order within a slot.
                let asked = asked.iter().filter(|(known, _)| known * 2 < one.place).count();
                let certain = ends().filter(|end| end.certain).count() > granted + asked;
                found.push(Misuse { bound: end.and_then(|end| end.operation), used: one.operation, certain });
            }
            end = Some(one);
            alive = spare() && grants().any(|grant| may_precede(one, grant));
        }
    }
}

/// Grants of leases to which a key stays attached that was put before the grant; no end came in between.
fn regrants(recording: &Recording, timeline: &Timeline, uses: &[Use]) -> Vec<Misuse> {
    let mut found = Vec::new();
    for uses in uses.chunk_by(|a, b| a.lease == b.lease) {
        let of_kind = |kind: Kind| uses.iter().filter(move |one| one.kind == kind);
        let mut attaches = of_kind(Kind::Attach).peekable();
        for grant in of_kind(Kind::Grant) {
            // A key from before the previous grant was compared with that grant.
            let mut bound: Option<&Use> = None;
            while let Some(put) = attaches.next_if(|put| put.place < grant.place) {
                let better = bound.is_none_or(|bound| put.certain && !bound.certain);
                if better && stays(recording, timeline, put, grant.place / 2) {
                    bound = Some(put);
                }
            }
            if let Some(put) = bound {
                let certain = put.certain && grant.certain;
                found.push(Misuse { bound: put.operation, used: grant.operation, certain });
            }
        }
    }
    found
}

/// Whether a key that was put with a lease is unchanged at a revision.
fn stays(recording: &Recording, timeline: &Timeline, put: &Use, at: i64) -> bool {
    let (made, Some(operation)) = (put.place / 2, put.operation) else { return false };
    let Request::Txn(txn) = recording.operations[operation as usize].request else { return false };
    let Some(success) = branch(recording, timeline, operation, made) else { return false };
    let Some(revision) = timeline.revision(made) else { return false };
    let logged = AttachedBy::logged(recording, revision.entry, Some(success));
    timeline.versions_of(revision).iter().any(|version| {
        let key = version.change.key;
        let attached = match &logged {
            Some(logged) => logged.get(key),
            None => attached_by(recording, txn, Some(success), key),
        };
        version.change.value.is_some()
            && attached == Some(Attached::To(put.lease))
            && matches!(timeline.state(key, at), State::There(version) if version.revision == made)
    })
}

fn uses(recording: &Recording, effects: &Effects, timeline: &Timeline, attribution: &Attribution) -> Vec<Use> {
    let mut uses = Vec::new();
    let mut writers: FxHashMap<u32, i64> = FxHashMap::default();
    for (revision, filler) in &attribution.writers {
        match filler {
            Writer::Operation(at) => drop(writers.insert(*at, *revision)),
            Writer::Expiry(lease) => {
                let place = revision * 2;
                uses.push(Use { lease: *lease, place, kind: Kind::End, operation: None, certain: false });
            }
        }
    }
    for (at, operation) in (0..).zip(&recording.operations) {
        let made = writers.get(&at).copied();
        // The slot, and whether the answer alone determines it.
        let place = match effects.class(at) {
            Class::Write => Some((operation.revision * 2, true)),
            Class::Same => Some((operation.revision * 2 + 1, true)),
            Class::Either => Some(made.map_or((operation.revision * 2 + 1, true), |revision| (revision * 2, true))),
            _ => made.map(|revision| (revision * 2, false)),
        };
        let Some((place, certain)) = place else { continue };
        let mut add = |lease: i64, kind: Kind| {
            uses.push(Use { lease, place, kind, operation: Some(at), certain });
        };
        match operation.request {
            Request::LeaseGrant { lease, .. } if lease != 0 => add(lease, Kind::Grant),
            Request::LeaseRevoke { lease } => add(lease, Kind::End),
            Request::Txn(txn) => {
                let revision = made.unwrap_or(operation.revision);
                let success = branch(recording, timeline, at, revision);
                // Client records lack the leases of some puts.
                let wrote = timeline.revision(revision).filter(|_| place == revision * 2);
                let txn = wrote.and_then(|wrote| logged_txn(recording, wrote.entry)).unwrap_or(txn);
                let leases = success.into_iter().flat_map(|success| attached(recording, txn, success));
                leases.for_each(|lease| add(lease, Kind::Attach));
            }
            _ => {}
        }
    }
    uses
}

/// The leases that must be alive for the steps that a transaction took, as far as they are recorded.
pub fn attached(recording: &Recording, txn: Txn, success: bool) -> impl Iterator<Item = i64> {
    txn.taken(success).of(&recording.requests.steps).iter().filter_map(|step| match step {
        Step::Put { lease, .. } if *lease != 0 => Some(*lease),
        _ => None,
    })
}
