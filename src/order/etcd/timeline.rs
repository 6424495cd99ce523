//! The revision order of one etcd cluster: every revision with its changes, as far as evidence shows them, and contradictions.
//!
//! An acknowledged write shows all changes of its revision. So does a watch over all keys, and the members' log while it agrees
//! with both. Other watches and reads show some changes. If sources disagree, the first in this order counts, and the difference
//! is kept as a [`Contradiction`].

use super::attachment::{Attached, attached_by};
use super::attribution::Supposed;
use super::attribution::Writer;
use super::effects::{Change, Class, Effects};
use super::log::{self, Log, Logged};
use super::store::FIRST_CHANGE;
use crate::history::Symbol;
use crate::history::etcd::{Recording, Request, Step, ValueId, Watch};
use crate::ingest::Time;
use rustc_hash::FxHashMap;

/// The evidence for a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Witness {
    /// The answer to a write.
    Write(u32),
    /// An entry of the members' log.
    Log(Logged),
    /// An event: its watch, its response, and the event.
    Event(u32, u32, u32),
    /// A read: the operation, and the pair that it found.
    Pair(u32, u32),
    /// A member's store: the member, and its revision.
    Store(u32, u32),
    /// No evidence: the presumed effect of this writer.
    Supposed(Writer),
}

impl Witness {
    /// Whether a file of a member shows it, and not a client.
    pub fn is_of_member(&self) -> bool {
        matches!(self, Witness::Log(_) | Witness::Store(..))
    }
}

/// One key changed at one revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The revision.
    pub revision: i64,
    /// The change.
    pub change: Change,
    /// The evidence.
    pub shown_by: Witness,
    /// The version counter: changes since the key was created, including this one. 0: unknown, or deleted.
    pub version: i64,
    /// Upper bound on the counter: each incompletely known revision changed the key at most once. 0: deleted.
    pub most: i64,
    /// Whether the key is known not to have changed since its previous version.
    pub follows: bool,
}

impl Version {
    /// Whether a counter in an answer cannot be this version's. 0 means that the answer has none.
    pub fn miscounts(&self, told: i64) -> bool {
        told > 0 && (told > self.most || self.version > 0 && told != self.version)
    }
}

/// One revision with its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Its number.
    pub number: i64,
    /// The index of its first version in [`Timeline::versions`].
    pub start: u32,
    /// The number of its versions.
    pub len: u32,
    /// Whether these are all its changes.
    pub complete: bool,
    /// The acknowledged write.
    pub writer: Option<u32>,
    /// The log entry that made it, if the logs are trusted up to here.
    pub entry: Option<Logged>,
}

/// Facts that cannot be true together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// One revision acknowledged two writes; the first of them is not in the timeline.
    TwoWrites(u32, u32),
    /// A completely known revision is shown with another key.
    OtherKey {
        /// The revision.
        revision: i64,
        /// The key that it did not change.
        key: Symbol,
        /// The evidence for the change of that key.
        shown_by: Witness,
    },
    /// One key has two contents at one revision.
    TwoContents {
        /// The version in the timeline.
        known: u32,
        /// The other value; `None` if deleted.
        value: Option<ValueId>,
        /// The evidence for the other value.
        shown_by: Witness,
    },
    /// The members' log has another change at a revision than clients saw or requested. Reported once, because the later log
    /// belongs to another history.
    LogDiffers {
        /// The revision.
        revision: i64,
        /// The evidence for the other change.
        shown_by: Witness,
        /// The log entry.
        entry: Logged,
    },
}

/// The revision order, with indices.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Revisions with any evidence, ascending.
    pub revisions: Vec<Revision>,
    /// Versions by revision, in their order within it.
    pub versions: Vec<Version>,
    /// The contradictions, by revision.
    pub contradictions: Vec<Contradiction>,
    /// Versions by key, ascending.
    by_key: FxHashMap<Symbol, Vec<u32>>,
    /// Completely known revisions, ascending.
    complete: Vec<i64>,
    /// All revisions through this one are completely known.
    whole: i64,
    /// The lowest revision with a dropped acknowledged write, and the time through which answers may be about dropped writes.
    lost: Option<(i64, Time)>,
    /// Indices of the keys of the revision under construction, if it has many.
    places: Places,
}

/// The index of each key among the versions of one revision.
#[derive(Debug, Default)]
struct Places {
    start: usize,
    /// The number of versions that are indexed.
    known: usize,
    by_key: FxHashMap<Symbol, usize>,
}

/// The rank of statements that only a log makes.
const LOGGED: u32 = 5;

/// The rank of presumed changes.
const SUPPOSED: u32 = 6;

/// A statement about a revision.
#[derive(Clone, Copy)]
struct Statement {
    revision: i64,
    /// Trusted sources first; within a source, in its order.
    rank: u32,
    order: u32,
    change: Change,
    by: Witness,
    complete: bool,
}

impl Timeline {
    /// Rebuilds the revision order. `proved`: the highest revision that evidence shows to exist; `supposed`: presumed changes.
    pub fn rebuild(
        recording: &Recording,
        effects: &Effects,
        log: &Log,
        proved: i64,
        supposed: &[Supposed],
    ) -> Timeline {
        let mut timeline = Timeline::default();
        let mut statements = Vec::new();
        let writers = timeline.writers(recording, effects, log);
        for (&revision, &write) in &writers {
            for (order, change) in (0..).zip(effects.changes(write)) {
                statements.push(Statement {
                    revision,
                    rank: 0,
                    order,
                    change: *change,
                    by: Witness::Write(write),
                    complete: true,
                });
            }
        }
        events(recording, &mut statements);
        let by_revision = Statements::of(&mut statements);
        let found = pairs(recording, &by_revision);
        statements.extend(found);
        stores(recording, &mut statements);
        // A log entry above every shown revision may have been lost with its member, unless it was committed.
        let shown = statements.iter().map(|one| one.revision).max().unwrap_or(1);
        let reached = |step: &&log::Step| step.revision <= shown || (step.certain && step.revision <= proved);
        for step in log.steps.iter().take_while(reached) {
            for (order, change) in (0..).zip(step.changes.of(&log.changes)) {
                let by = Witness::Log(step.entry);
                statements.push(Statement {
                    revision: step.revision,
                    rank: LOGGED,
                    order,
                    change: *change,
                    by,
                    complete: false,
                });
            }
        }
        for Supposed { revision, writer, changes } in supposed {
            for (order, change) in (0..).zip(changes) {
                let by = Witness::Supposed(*writer);
                statements.push(Statement {
                    revision: *revision,
                    rank: SUPPOSED,
                    order,
                    change: *change,
                    by,
                    complete: true,
                });
            }
        }
        statements.sort_by_key(|one| (one.revision, one.rank, one.by, one.order));
        timeline.fill(recording, &statements, &writers);
        let in_a_row = (2..).zip(&timeline.complete).take_while(|(number, known)| number == *known);
        timeline.whole = in_a_row.last().map_or(1, |(number, _)| number);
        timeline.connect();
        timeline
    }

    /// The acknowledged write of each revision.
    fn writers(&mut self, recording: &Recording, effects: &Effects, log: &Log) -> std::collections::BTreeMap<i64, u32> {
        let mut writers = std::collections::BTreeMap::new();
        let mut by_time: Vec<u32> =
            (0..recording.operations.len() as u32).filter(|at| effects.class(*at) == Class::Write).collect();
        by_time.sort_by_key(|at| (recording.operations[*at as usize].call, *at));
        for at in by_time {
            let operation = &recording.operations[at as usize];
            let Some(&before) = writers.get(&operation.revision) else {
                writers.insert(operation.revision, at);
                continue;
            };
            // The store continues from the later of two writes, unless its log shows otherwise.
            let logged = log.step(operation.revision).map(|step| step.changes.of(&log.changes));
            let keep = logged
                .is_some_and(|logged| same(logged, effects.changes(before)) && !same(logged, effects.changes(at)));
            let (lost, kept) = if keep { (at, before) } else { (before, at) };
            self.contradictions.push(Contradiction::TwoWrites(lost, kept));
            let until = recording.operations[kept as usize].call;
            let lost_from = self.lost.map_or(operation.revision, |(from, _)| from.min(operation.revision));
            self.lost = Some((lost_from, self.lost.map_or(until, |(_, other)| other.max(until))));
            writers.insert(operation.revision, kept);
        }
        writers
    }

    fn fill(
        &mut self,
        recording: &Recording,
        statements: &[Statement],
        writers: &std::collections::BTreeMap<i64, u32>,
    ) {
        let mut believed = true;
        let one_key = promises_one_key(recording);
        for group in statements.chunk_by(|a, b| a.revision == b.revision) {
            let number = group[0].revision;
            let start = self.versions.len();
            let (shown, behind) = group.split_at(group.partition_point(|one| one.rank < LOGGED));
            let (logged, supposed) = behind.split_at(behind.partition_point(|one| one.rank < SUPPOSED));
            // An answer is complete. Two watches over all keys are complete compared with reads. All other sources add to each
            // other.
            let whole = shown.first().is_some_and(|one| one.rank == 0);
            let agreed = !whole && watches_over_all(shown) > 1;
            let mut complete = shown.iter().any(|one| one.complete);
            for one in shown {
                let of_source = if whole { one.rank == 0 } else { one.rank <= 2 || !agreed };
                // The key that was shown first is the one that changed.
                let of_source = of_source && (whole || !one_key || self.versions.len() == start);
                self.add(recording, start, one, of_source);
            }
            complete |= recording.unique_revisions && !shown.is_empty();
            let writer = writers.get(&number).copied();
            let mut entry = None;
            if let Some(Witness::Log(by)) = logged.first().map(|one| one.by).filter(|_| believed) {
                let changes: Vec<Change> = logged.iter().map(|one| one.change).collect();
                let known: Vec<Change> = self.versions[start..].iter().map(|version| version.change).collect();
                let last: FxHashMap<Symbol, &Change> = changes.iter().map(|change| (change.key, change)).collect();
                let fits = |change: &Change| {
                    last.get(&change.key).is_some_and(|other| agrees(recording, other.value, change.value))
                };
                let leases = || !writer.is_some_and(|at| attaches_otherwise(recording, at, by));
                if known.iter().all(fits) && (!complete || same_keys(&known, &changes)) && leases() {
                    entry = Some(by);
                    complete = true;
                    for one in logged {
                        self.add(recording, start, one, true);
                    }
                } else {
                    believed = false;
                    let shown_by = shown[0].by;
                    self.contradictions.push(Contradiction::LogDiffers { revision: number, shown_by, entry: by });
                }
            }
            complete |= !supposed.is_empty();
            supposed.iter().for_each(|one| self.add(recording, start, one, true));
            let len = (self.versions.len() - start) as u32;
            self.revisions.push(Revision { number, start: start as u32, len, complete, writer, entry });
            if complete {
                self.complete.push(number);
            }
        }
    }

    /// Adds a version to the revision that begins at index `start`, or reports a contradiction. A source that does not add must
    /// agree.
    fn add(&mut self, recording: &Recording, start: usize, statement: &Statement, adds: bool) {
        let Statement { revision, change, by: shown_by, .. } = *statement;
        match self.place(start, change.key) {
            Some(at) if !agrees(recording, self.versions[at].change.value, change.value) => {
                // A transaction may delete a key and put it again.
                if self.versions[at].shown_by == shown_by {
                    self.versions[at].change = change;
                } else {
                    let known = at as u32;
                    self.contradictions.push(Contradiction::TwoContents { known, value: change.value, shown_by });
                }
            }
            Some(_) => {}
            None if adds => {
                self.versions.push(Version { revision, change, shown_by, version: 0, most: 0, follows: false });
            }
            None => self.contradictions.push(Contradiction::OtherKey { revision, key: change.key, shown_by }),
        }
    }

    /// The index of a key's version among those of the last revision, which begin at `start`. A table is used if the revision has
    /// many keys.
    fn place(&mut self, start: usize, key: Symbol) -> Option<usize> {
        const FEW: usize = 32;
        let here = &self.versions[start..];
        if here.len() < FEW {
            return here.iter().rposition(|version| version.change.key == key).map(|at| start + at);
        }
        if self.places.start != start {
            self.places = Places { start, known: start, by_key: FxHashMap::default() };
        }
        for (at, version) in self.versions.iter().enumerate().skip(self.places.known) {
            self.places.by_key.insert(version.change.key, at);
        }
        self.places.known = self.versions.len();
        self.places.by_key.get(&key).copied()
    }

    /// Links the versions of each key and derives their counters.
    fn connect(&mut self) {
        for (at, version) in self.versions.iter().enumerate() {
            self.by_key.entry(version.change.key).or_default().push(at as u32);
        }
        for versions in self.by_key.values() {
            let mut before: Option<Version> = None;
            for &at in versions {
                let after = before.map_or(1, |before| before.revision);
                let here = self.versions[at as usize];
                let follows = self.known_between(after, here.revision - 1);
                let lives = here.change.value.is_some();
                let count = match before {
                    Some(before) if before.change.value.is_some() => {
                        if before.version > 0 {
                            before.version + 1
                        } else {
                            0
                        }
                    }
                    _ => 1,
                };
                let version = if follows && lives { count } else { 0 };
                let open = self.unknown_between(after, here.revision - 1);
                let most = if lives { before.map_or(0, |before| before.most) + open + 1 } else { 0 };
                self.versions[at as usize] = Version { follows, version, most, ..here };
                before = Some(self.versions[at as usize]);
            }
        }
    }

    /// Whether an entry of a log counts as evidence about what clients saw: it was known to be committed, and nothing
    /// contradicts.
    pub fn is_sure(&self, recording: &Recording, entry: Logged) -> bool {
        self.contradictions.is_empty() && log::is_committed(recording, entry)
    }

    /// Whether all revisions above `after` and through `through` are completely known.
    pub fn known_between(&self, after: i64, through: i64) -> bool {
        self.unknown_between(after, through) == 0
    }

    /// The number of revisions above `after` and through `through` that are not completely known.
    pub fn unknown_between(&self, after: i64, through: i64) -> i64 {
        if through <= after || (after >= 1 && through <= self.whole) {
            return 0;
        }
        let count = |limit: i64| self.complete.partition_point(|known| *known <= limit) as i64;
        (through - after) - (count(through) - count(after))
    }

    /// The first revision above `after` and through `through` that is not completely known.
    pub fn first_unknown(&self, after: i64, through: i64) -> Option<i64> {
        let from = self.complete.partition_point(|known| *known <= after);
        let mut expected = after + 1;
        for &known in &self.complete[from..] {
            if known != expected {
                break;
            }
            expected += 1;
        }
        (expected <= through).then_some(expected)
    }

    /// The versions of a revision, in their order.
    pub fn versions_of(&self, revision: &Revision) -> &[Version] {
        &self.versions[revision.start as usize..(revision.start + revision.len) as usize]
    }

    /// A revision; `None` without evidence of it.
    pub fn revision(&self, number: i64) -> Option<&Revision> {
        // Without unknown revisions, the index follows from the number.
        let place = usize::try_from(number).ok().and_then(|number| self.revisions.get(number.checked_sub(2)?));
        place.filter(|revision| revision.number == number).or_else(|| {
            let at = self.revisions.binary_search_by_key(&number, |revision| revision.number).ok()?;
            Some(&self.revisions[at])
        })
    }

    /// The revisions above `after` and through `through` with any evidence.
    pub fn range(&self, after: i64, through: i64) -> &[Revision] {
        let start = self.revisions.partition_point(|revision| revision.number <= after);
        let end = self.revisions.partition_point(|revision| revision.number <= through);
        &self.revisions[start..end.max(start)]
    }

    /// The highest revision with any evidence; 1 if there is none.
    pub fn last(&self) -> i64 {
        self.revisions.last().map_or(1, |revision| revision.number)
    }

    /// The versions of a key, as indices of [`Timeline::versions`].
    pub fn versions_of_key(&self, key: Symbol) -> &[u32] {
        self.by_key.get(&key).map_or(&[], |versions| versions)
    }

    /// The keys that ever changed, in no particular order.
    pub fn keys(&self) -> impl Iterator<Item = Symbol> {
        self.by_key.keys().copied()
    }

    /// The index of a version, which must be a reference into [`Timeline::versions`].
    pub fn index(&self, version: &Version) -> u32 {
        let of_revision = self.revision(version.revision).map_or(0, |revision| revision.start);
        let rest = &self.versions[of_revision as usize..];
        of_revision + rest.iter().position(|other| std::ptr::eq(other, version)).unwrap_or(0) as u32
    }

    /// The last known version of a key at or below a revision.
    pub fn at(&self, key: Symbol, revision: i64) -> Option<&Version> {
        let versions = self.versions_of_key(key);
        let at = versions.partition_point(|at| self.versions[*at as usize].revision <= revision);
        versions[..at].last().map(|at| &self.versions[*at as usize])
    }

    /// The state of a key at a revision.
    pub fn state(&self, key: Symbol, revision: i64) -> State<'_> {
        self.state_since(self.at(key, revision), revision)
    }

    /// The state of a key at a revision, given its last known version by then.
    pub fn state_since<'t>(&self, last: Option<&'t Version>, revision: i64) -> State<'t> {
        let since = last.map_or(1, |version| version.revision);
        match last {
            _ if !self.known_between(since, revision) => State::Open(last),
            Some(version) if version.change.value.is_some() => State::There(version),
            last => State::Absent(last),
        }
    }

    /// The creation revision of an existing key; `None` if an unknown revision leaves it open.
    pub fn created(&self, key: Symbol, version: &Version) -> Option<i64> {
        if version.version == 1 {
            return Some(version.revision);
        }
        let versions = self.versions_of_key(key);
        let through = versions.partition_point(|at| self.versions[*at as usize].revision <= version.revision);
        let of_life = versions[..through].iter().rev().map(|at| &self.versions[*at as usize]);
        let first = of_life.take_while(|version| version.change.value.is_some()).last()?;
        // Before it the key was absent or deleted.
        let sure = first.version == 1 || self.known_between(1, first.revision);
        (sure && self.known_between(first.revision, version.revision)).then_some(first.revision)
    }

    /// Whether an answer at a revision and time may come from a history that the store abandoned, whose writes are not in the
    /// timeline.
    pub fn may_be_lost(&self, revision: i64, until: Time) -> bool {
        self.lost.is_some_and(|(from, left)| revision >= from && until <= left)
    }
}

/// The state of a key at a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<'t> {
    /// It exists, in this version.
    There(&'t Version),
    /// It does not exist: this version deleted it, or it never existed.
    Absent(Option<&'t Version>),
    /// An unknown revision may have changed it since this version.
    Open(Option<&'t Version>),
}

/// Whether each revision changed exactly one key: the recording promises it, and no recorded request breaks the promise.
fn promises_one_key(recording: &Recording) -> bool {
    let writes = |steps: &[Step]| steps.iter().filter(|step| !matches!(step, Step::Range(_) | Step::Nothing)).count();
    let one = |request: &Request| match request {
        Request::Txn(txn) => {
            let spans = [txn.success, txn.failure].map(|span| span.of(&recording.requests.steps));
            spans.iter().all(|steps| writes(steps) <= 1 && steps.iter().all(changes_one))
        }
        Request::LeaseGrant { .. } | Request::LeaseRevoke { .. } | Request::Other => false,
        Request::Range(_) | Request::Compact { .. } | Request::Defragment => true,
    };
    recording.unique_revisions && recording.operations.iter().all(|operation| one(&operation.request))
}

/// Whether a step changes at most one key.
fn changes_one(step: &Step) -> bool {
    match step {
        Step::Delete(keys) => !keys.end.is_some(),
        Step::Txn(_) => false,
        Step::Put { .. } | Step::Range(_) | Step::Nothing => true,
    }
}

/// The number of watches over all keys that show a revision.
fn watches_over_all(group: &[Statement]) -> usize {
    let watch = |one: &Statement| match one.by {
        Witness::Event(watch, ..) if one.complete => Some(watch),
        _ => None,
    };
    let mut watches: Vec<u32> = group.iter().filter_map(watch).collect();
    watches.dedup();
    watches.len()
}

/// Whether a log entry attaches a key to another lease than the acknowledged request asked for, or to none.
fn attaches_otherwise(recording: &Recording, operation: u32, by: Logged) -> bool {
    let operation = &recording.operations[operation as usize];
    let logged = log::entry(recording, by).map(|entry| entry.request);
    let (Request::Txn(asked), Some(Request::Txn(logged))) = (operation.request, logged) else { return false };
    let success = !operation.failure;
    asked.taken(success).of(&recording.requests.steps).iter().any(|step| {
        let Step::Put { key, .. } = *step else { return false };
        let asked = attached_by(recording, asked, Some(success), key);
        let logged = attached_by(recording, logged, None, key);
        matches!(asked, Some(Attached::To(_))) && logged != asked && logged != Some(Attached::Unknown)
    })
}

/// Whether two lists have the same changes, in any order.
pub fn same(a: &[Change], b: &[Change]) -> bool {
    let sorted = |changes: &[Change]| {
        let mut changes = changes.to_vec();
        changes.sort_unstable();
        changes.dedup();
        changes
    };
    a == b || sorted(a) == sorted(b)
}

fn same_keys(a: &[Change], b: &[Change]) -> bool {
    let keys = |changes: &[Change]| {
        let mut keys: Vec<Symbol> = changes.iter().map(|change| change.key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    };
    keys(a) == keys(b)
}

/// Whether two values may be equal.
fn agrees(recording: &Recording, a: Option<ValueId>, b: Option<ValueId>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => recording.values.same(a, b) != Some(false),
        (a, b) => a == b,
    }
}

/// Whether a watch covers all keys.
pub fn is_over_all(recording: &Recording, watch: &Watch) -> bool {
    watch.prefix && recording.texts.get(watch.key).is_empty()
}

fn events(recording: &Recording, statements: &mut Vec<Statement>) {
    for (at, watch) in (0..).zip(&recording.watches) {
        let complete = is_over_all(recording, watch);
        for n in watch.responses.start..watch.responses.start + watch.responses.len {
            let span = recording.responses[n as usize].events;
            for e in span.start..span.start + span.len {
                let event = &recording.events[e as usize];
                // No store gives a change a lower revision.
                if event.revision < FIRST_CHANGE {
                    continue;
                }
                let change = Change { key: event.key, value: (!event.delete).then_some(event.value) };
                let by = Witness::Event(at, n, e);
                statements.push(Statement { revision: event.revision, rank: 2, order: 0, change, by, complete });
            }
        }
    }
}

/// Statements of writes and events by revision. Reads mostly repeat them, and only new statements of reads are kept.
struct Statements<'s> {
    statements: &'s [Statement],
    /// The start of each revision, from 0 through the one after the last; empty if revisions are sparse.
    starts: Vec<u32>,
    /// For each of these, the first change, if no other change of the same source can replace it.
    first: Vec<Option<Change>>,
}

impl<'s> Statements<'s> {
    fn of(statements: &'s mut [Statement]) -> Statements<'s> {
        statements.sort_by_key(|one| (one.revision, one.rank, one.by, one.order));
        let last = statements.last().and_then(|one| usize::try_from(one.revision).ok()).unwrap_or(0);
        let mut starts = Vec::new();
        let mut first = Vec::new();
        if last / 8 <= statements.len() {
            starts.resize(last + 2, 0);
            first.resize(last + 1, None);
            for group in statements.chunk_by(|a, b| a.revision == b.revision).filter(|group| group[0].revision >= 0) {
                let sole = group.get(1).is_none_or(|second| group[0].rank > 0 || second.rank > 0);
                first[group[0].revision as usize] = sole.then_some(group[0].change);
            }
            for one in statements.iter() {
                starts[one.revision.max(0) as usize + 1] += 1;
            }
            for at in 1..starts.len() {
                starts[at] += starts[at - 1];
            }
        }
        Statements { statements, starts, first }
    }

    fn about(&self, revision: i64) -> &'s [Statement] {
        let at = |revision: i64| match usize::try_from(revision).ok().and_then(|at| self.starts.get(at)) {
            Some(start) => *start as usize,
            None => self.statements.partition_point(|one| one.revision < revision),
        };
        let (start, end) = (at(revision), at(revision.saturating_add(1)));
        &self.statements[start..end.max(start)]
    }

    /// Whether a revision already has a change.
    fn has(&self, recording: &Recording, revision: i64, change: Change) -> bool {
        let first = usize::try_from(revision).ok().and_then(|revision| *self.first.get(revision)?);
        if first == Some(change) {
            return true;
        }
        let statements = self.about(revision);
        let same_key = |one: &&Statement| one.change.key == change.key;
        let known = match statements.first() {
            // The later of two changes of one write counts.
            Some(Statement { rank: 0, .. }) => {
                statements.iter().take_while(|one| one.rank == 0).filter(same_key).last()
            }
            _ => statements.iter().find(same_key),
        };
        known.is_some_and(|known| agrees(recording, known.change.value, change.value))
    }
}

/// The statements of reads that are not known yet.
fn pairs(recording: &Recording, by_revision: &Statements<'_>) -> Vec<Statement> {
    let mut statements = Vec::new();
    for (at, operation) in (0..).zip(&recording.operations) {
        let steps = match operation.request {
            Request::Range(range) if range.keys_only => continue,
            Request::Txn(txn) => txn.taken(!operation.failure).of(&recording.requests.steps),
            _ => &[],
        };
        for (n, result) in operation.results.of(&recording.results).iter().enumerate() {
            if matches!(steps.get(n), Some(Step::Range(range)) if range.keys_only) {
                continue;
            }
            for p in result.pairs.start..result.pairs.start + result.pairs.len {
                let pair = &recording.pairs[p as usize];
                // A pair above the read's own revision is not evidence about the past.
                if pair.revision < FIRST_CHANGE || pair.revision > operation.revision {
                    continue;
                }
                let change = Change { key: pair.key, value: Some(pair.value) };
                if by_revision.has(recording, pair.revision, change) {
                    continue;
                }
                let by = Witness::Pair(at, p);
                statements.push(Statement { revision: pair.revision, rank: 3, order: 0, change, by, complete: false });
            }
        }
    }
    statements
}

fn stores(recording: &Recording, statements: &mut Vec<Statement>) {
    for (at, member) in (0..).zip(&recording.members) {
        for (n, revision) in (0..).zip(member.store.iter().flat_map(|store| &store.revisions)) {
            let change = Change { key: revision.key, value: (!revision.tombstone).then_some(revision.value) };
            let by = Witness::Store(at, n);
            let order = u32::try_from(revision.sub).unwrap_or(u32::MAX);
            statements.push(Statement { revision: revision.main, rank: 4, order, change, by, complete: false });
        }
    }
}
