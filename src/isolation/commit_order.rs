//! A search for an order of commits, for levels whose version orders are not known. Input: necessary dependencies. Output: an
//! order, or that there is none.
//!
//! A transaction has two units: its snapshot and its commit. Serializable transactions do both at once. Which unit may come next
//! depends only on the set of units so far: a write of a key has to wait for every reader of the version that it replaces, so each
//! reader finds the version that it read. The search is depth first, remembers the sets that lead nowhere, and takes units that
//! write nothing at once. That sets suffice is due to Biswas and Enea (OOPSLA 2019, section 4).

use super::level::{Isolation, Level};
use super::observed::{Node, Observed};
use super::transactions::{Key, Transactions};
use crate::order::graph::{EdgeKind, Graph};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Half a transaction.
type Unit = u32;

/// Whether there is an order of commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitOrder {
    /// An order of commits.
    Order(Vec<Node>),
    /// There is none.
    None,
    /// The budget was spent.
    Spent,
}

struct State<'h> {
    observed: &'h Observed,
    /// Whether snapshot and commit are one.
    is_serial: bool,
    /// Whether two transactions that write one key cannot overlap.
    locks: bool,
    /// By unit, those that come after it, and the number of those before it that are open.
    after: Vec<Vec<Unit>>,
    open: Vec<u32>,
    /// The units that no other one has to precede, in order of time.
    ready: BTreeSet<(i64, Unit)>,
    times: Vec<i64>,
    /// By key: reads of its current version that are still to come, and whether a transaction that writes it is running.
    pending: FxHashMap<Key, u32>,
    running: FxHashMap<Key, Node>,
    /// By key, the writers of its versions so far.
    versions: FxHashMap<Key, Vec<Node>>,
    /// The units taken, and the place of each.
    path: Vec<Unit>,
    place: Vec<usize>,
    /// By transaction and key, reads of its version.
    readers: FxHashMap<(Node, Key), u32>,
    hash: u128,
    hashes: Vec<u128>,
}

/// Searches an order for a level, within a number of sets of units.
pub fn search(history: &Transactions, observed: &Observed, graph: &Graph, level: Level, budget: u64) -> CommitOrder {
    let mut state = State::of(history, observed, graph, level);
    let mut seen: FxHashSet<u128> = FxHashSet::default();
    let total = observed.nodes().count() * if state.is_serial { 1 } else { 2 };
    let mut next = state.first(None);
    let mut spent = 0;
    while state.path.len() < total {
        let Some(unit) = next else {
            let Some(unit) = state.put_back() else { return CommitOrder::None };
            next = if state.is_free(unit) { None } else { state.first(Some(unit)) };
            continue;
        };
        state.take(unit);
        spent += 1;
        if spent > budget {
            return CommitOrder::Spent;
        }
        let is_new = seen.insert(state.hash);
        next = if is_new { state.first(None) } else { None };
        if next.is_none() && is_new && state.path.len() < total {
            state.jump_back();
        }
    }
    let commits = state.path.iter().copied().filter(|unit| state.is_commit(*unit));
    CommitOrder::Order(commits.map(|unit| unit / 2).collect())
}

/// The bits of a number, mixed (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl<'h> State<'h> {
    fn of(history: &Transactions, observed: &'h Observed, graph: &Graph, level: Level) -> State<'h> {
        let units = 2 * observed.begin as usize;
        let is_serial = level.isolation == Isolation::Serializable;
        let mut state = State {
            observed,
            is_serial,
            locks: level.isolation == Isolation::Snapshot,
            after: vec![Vec::new(); units],
            open: vec![0; units],
            ready: BTreeSet::new(),
            times: (0..observed.begin).map(|node| history.times(node)).flat_map(|(begin, end)| [begin, end]).collect(),
            pending: FxHashMap::default(),
            running: FxHashMap::default(),
            versions: FxHashMap::default(),
            path: Vec::new(),
            place: vec![0; units],
            readers: FxHashMap::default(),
            hash: 0,
            hashes: (0..units as u64)
                .map(|unit| u128::from(mixed(2 * unit)) << 64 | u128::from(mixed(2 * unit + 1)))
                .collect(),
        };
        if is_serial {
            state.times = (0..observed.begin).map(|node| history.times(node).1).flat_map(|end| [end, end]).collect();
        }
        for node in observed.nodes() {
            if !is_serial {
                state.before(2 * node, 2 * node + 1);
            }
            for read in observed.reads(node) {
                *state.readers.entry((read.from, read.key)).or_default() += 1;
                if read.from == observed.begin {
                    *state.pending.entry(read.key).or_default() += 1;
                }
            }
            for (to, kinds) in graph.from(node).filter(|(to, _)| *to < observed.begin) {
                let (first, second) = match is_serial {
                    true => (2 * node, 2 * to),
                    // A snapshot precedes what replaces a version that it shows, and a version precedes a later one.
                    false if kinds.has(EdgeKind::AntiDependency) => (2 * node, 2 * to + 1),
                    false if kinds.has(EdgeKind::Version) => (2 * node + 1, 2 * to + 1),
                    false => (2 * node + 1, 2 * to),
                };
                state.before(first, second);
            }
        }
        for node in observed.nodes() {
            for unit in [2 * node, 2 * node + 1].into_iter().take(if is_serial { 1 } else { 2 }) {
                if state.open[unit as usize] == 0 {
                    state.ready.insert((state.times[unit as usize], unit));
                }
            }
        }
        state
    }

    fn before(&mut self, first: Unit, second: Unit) {
        self.after[first as usize].push(second);
        self.open[second as usize] += 1;
    }

    fn is_commit(&self, unit: Unit) -> bool {
        self.is_serial || unit % 2 == 1
    }

    fn is_snapshot(&self, unit: Unit) -> bool {
        self.is_serial || unit.is_multiple_of(2)
    }

    /// Whether taking it at once loses no order: it changes nothing that another unit waits for in vain.
    fn is_free(&self, unit: Unit) -> bool {
        self.observed.writes(unit / 2).is_empty() || !self.is_commit(unit) && !self.locks
    }

    fn is_possible(&self, unit: Unit) -> bool {
        self.writes_of(unit).all(|key| !self.has_readers(unit, key) && !self.is_locked(unit, key))
    }

    fn writes_of(&self, unit: Unit) -> impl Iterator<Item = Key> + '_ {
        self.observed.writes(unit / 2).iter().copied()
    }

    /// Whether it would replace a version of a key that others have still to read.
    fn has_readers(&self, unit: Unit, key: Key) -> bool {
        let own = || match self.is_serial {
            true => self.observed.reads(unit / 2).iter().filter(|read| read.key == key).count() as u32,
            false => 0,
        };
        self.is_commit(unit) && self.pending.get(&key).is_some_and(|pending| *pending > 0 && *pending > own())
    }

    /// Whether another running transaction writes a key that it writes.
    fn is_locked(&self, unit: Unit, key: Key) -> bool {
        self.locks && !self.is_commit(unit) && self.running.contains_key(&key)
    }

    /// Leaves a set after which no unit is possible.
    ///
    /// Each ready unit waits for readers of a version, or for a running transaction. They wait as long as the writer of that
    /// version, or the begin of that transaction, was taken before them. So whatever was taken after the last of these changes
    /// nothing, and the search goes back there.
    fn jump_back(&mut self) {
        let commit_of = |node: Node| if self.is_serial { 2 * node } else { 2 * node + 1 };
        let since = |unit: Unit| {
            let by_readers = self.writes_of(unit).filter(|key| self.has_readers(unit, *key)).map(|key| {
                let writer = self.versions.get(&key).and_then(|writers| writers.last());
                writer.map_or(0, |writer| self.place[commit_of(*writer) as usize] + 1)
            });
            let locked = self.writes_of(unit).filter(|key| self.is_locked(unit, *key));
            let by_locks = locked.filter_map(|key| self.running.get(&key)).map(|by| self.place[2 * *by as usize] + 1);
            by_readers.chain(by_locks).min().unwrap_or(self.path.len())
        };
        let kept = self.ready.iter().map(|(_, unit)| since(*unit)).max().unwrap_or(self.path.len());
        while self.path.len() > kept {
            self.put_back();
        }
    }

    /// The first possible unit behind another one. A free one comes first, and alone.
    fn first(&self, behind: Option<Unit>) -> Option<Unit> {
        use std::ops::Bound::{Excluded, Unbounded};
        let possible = |(_, unit): &&(i64, Unit)| self.is_possible(*unit);
        let Some(last) = behind else {
            let free = self.ready.iter().take(64).find(|(_, unit)| self.is_free(*unit) && self.is_possible(*unit));
            return free.or_else(|| self.ready.iter().find(possible)).map(|(_, unit)| *unit);
        };
        let last = (self.times[last as usize], last);
        self.ready.range((Excluded(last), Unbounded)).find(possible).map(|(_, unit)| *unit)
    }

    fn take(&mut self, unit: Unit) {
        self.place[unit as usize] = self.path.len();
        self.path.push(unit);
        self.ready.remove(&(self.times[unit as usize], unit));
        self.hash ^= self.hashes[unit as usize];
        let node = unit / 2;
        if self.is_snapshot(unit) {
            for read in self.observed.reads(node) {
                *self.pending.entry(read.key).or_default() -= 1;
            }
        }
        for key in self.observed.writes(node) {
            if self.is_commit(unit) {
                self.running.remove(key);
                self.versions.entry(*key).or_default().push(node);
                self.pending.insert(*key, self.readers.get(&(node, *key)).copied().unwrap_or_default());
            } else if self.locks {
                self.running.insert(*key, node);
            }
        }
        for at in 0..self.after[unit as usize].len() {
            let later = self.after[unit as usize][at];
            self.open[later as usize] -= 1;
            if self.open[later as usize] == 0 {
                self.ready.insert((self.times[later as usize], later));
            }
        }
    }

    /// Takes the last unit back.
    fn put_back(&mut self) -> Option<Unit> {
        let unit = self.path.pop()?;
        for at in 0..self.after[unit as usize].len() {
            let later = self.after[unit as usize][at];
            if self.open[later as usize] == 0 {
                self.ready.remove(&(self.times[later as usize], later));
            }
            self.open[later as usize] += 1;
        }
        let node = unit / 2;
        for key in self.observed.writes(node) {
            if self.is_commit(unit) {
                if self.locks {
                    self.running.insert(*key, node);
                }
                self.versions.entry(*key).or_default().pop();
                // Nothing was pending but its own reads, which follow.
                self.pending.insert(*key, 0);
            } else {
                self.running.remove(key);
            }
        }
        if self.is_snapshot(unit) {
            for read in self.observed.reads(node) {
                *self.pending.entry(read.key).or_default() += 1;
            }
        }
        self.hash ^= self.hashes[unit as usize];
        self.ready.insert((self.times[unit as usize], unit));
        Some(unit)
    }
}
