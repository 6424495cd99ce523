//! Breadth-first search over all runs of a transition system, so that the first counterexample of a property is a shortest one.
//!
//! Levels are expanded in blocks on all threads. Successors are then entered in the order of their parents, so that no number
//! of threads changes a result. A visited state is kept as a fingerprint of 128 bits: two of n states share one with a
//! probability below n² / 2^129 (10^-24 for 10^7 states), which is the only way in which a run can be missed.

use super::system::{Broken, TransitionSystem};
use hashbrown::HashTable;
use rayon::prelude::*;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

/// States whose successors are made before any of them is entered. It bounds what duplicates cost in memory.
const BLOCK: usize = 1 << 15;

/// States of one unit of work.
const UNIT: usize = 256;

/// Sets of visited states, each entered by one thread at a time.
const SHARDS: usize = 16;

/// Limits on an exploration.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Steps of a run, at most.
    pub steps: u32,
    /// Visited states, at most. It bounds memory: each takes about 60 bytes, and those of two levels their size.
    pub states: usize,
    /// Time, at most.
    pub time: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { steps: 40, states: 20_000_000, time: Duration::from_secs(600) }
    }
}

/// Why an exploration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every reachable state was visited.
    Exhausted,
    /// Every property is broken.
    AllBroken,
    /// Runs are cut at the limit on steps.
    Steps,
    /// The limit on states was reached.
    States,
    /// The limit on time was reached.
    Time,
}

/// The result of an exploration.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// For each property, a shortest run that breaks it: for each step, which successor it takes.
    pub counterexamples: Vec<Option<Vec<u32>>>,
    /// Visited states.
    pub states: usize,
    /// Transitions, with those to visited states.
    pub transitions: u64,
    /// The number of steps up to which all runs were explored.
    pub depth: u32,
    /// Why it ended.
    pub end: End,
}

/// How a state was first reached.
#[derive(Clone, Copy)]
struct Origin {
    parent: u32,
    /// The number of the successor.
    successor: u32,
}

struct Successor<S> {
    fingerprint: u128,
    state: S,
    origin: Origin,
}

/// The successors of one unit of states.
struct Expanded<S> {
    successors: Vec<Successor<S>>,
    /// The successors of each shard, ascending.
    of_shard: [Vec<u32>; SHARDS],
    broken: Vec<(Origin, Broken)>,
    transitions: u64,
}

struct Search<'s, T: TransitionSystem> {
    system: &'s T,
    visited: Vec<HashTable<u128>>,
    origins: Vec<Origin>,
    /// Properties without a counterexample.
    open: Broken,
    found: Exploration,
}

/// Explores every run of a system within bounds.
pub fn explore<T: TransitionSystem>(system: &T, bounds: Bounds) -> Exploration {
    let properties = system.properties().len().min(Broken::BITS as usize);
    let initial = system.initial();
    let mut search = Search {
        system,
        visited: vec![HashTable::new(); SHARDS],
        origins: vec![Origin { parent: u32::MAX, successor: 0 }],
        open: Broken::MAX.checked_shr(Broken::BITS - properties as u32).unwrap_or(0),
        found: Exploration {
            counterexamples: vec![None; properties],
            states: 1,
            transitions: 0,
            depth: 0,
            end: End::Exhausted,
        },
    };
    let fingerprint = fingerprint(&initial);
    search.visited[shard(fingerprint)].insert_unique(fingerprint as u64, fingerprint, |known| *known as u64);
    search.run(initial, bounds);
    search.found.states = search.origins.len();
    search.found
}

impl<T: TransitionSystem> Search<'_, T> {
    fn run(&mut self, initial: T::State, bounds: Bounds) {
        let deadline = Instant::now().checked_add(bounds.time);
        let mut level = vec![initial];
        let mut first = 0;
        while !level.is_empty() {
            if self.open == 0 {
                return self.found.end = End::AllBroken;
            }
            if self.found.depth == bounds.steps {
                return self.found.end = End::Steps;
            }
            let mut next = Vec::new();
            for (block, states) in level.chunks(BLOCK).enumerate() {
                self.expand(states, first + (block * BLOCK) as u32, &mut next);
                if self.origins.len() >= bounds.states.min(u32::MAX as usize) {
                    return self.found.end = End::States;
                }
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return self.found.end = End::Time;
                }
            }
            first += level.len() as u32;
            level = next;
            self.found.depth += u32::from(!level.is_empty());
        }
    }

    /// Enters the successors of states, of which the first has a number.
    fn expand(&mut self, states: &[T::State], first: u32, next: &mut Vec<T::State>) {
        let (system, visited) = (self.system, &self.visited);
        let units: Vec<Expanded<T::State>> = states
            .par_chunks(UNIT)
            .enumerate()
            .map(|(unit, states)| {
                let mut expanded = Expanded {
                    successors: Vec::with_capacity(2 * UNIT),
                    of_shard: Default::default(),
                    broken: Vec::new(),
                    transitions: 0,
                };
                for (parent, state) in (first + (unit * UNIT) as u32..).zip(states) {
                    let mut successor = 0;
                    system.successors(state, &mut |state, broken| {
                        let origin = Origin { parent, successor };
                        successor += 1;
                        if broken != 0 {
                            expanded.broken.push((origin, broken));
                        }
                        let fingerprint = fingerprint(&state);
                        let known = visited[shard(fingerprint)].find(fingerprint as u64, |known| *known == fingerprint);
                        if known.is_none() {
                            expanded.of_shard[shard(fingerprint)].push(expanded.successors.len() as u32);
                            expanded.successors.push(Successor { fingerprint, state, origin });
                        }
                    });
                    expanded.transitions += u64::from(successor);
                }
                expanded
            })
            .collect();
        let is_new: Vec<Vec<(u32, u32)>> = self
            .visited
            .par_iter_mut()
            .enumerate()
            .map(|(number, visited)| {
                let mut new = Vec::new();
                for (unit, expanded) in (0..).zip(&units) {
                    for &at in &expanded.of_shard[number] {
                        let fingerprint = expanded.successors[at as usize].fingerprint;
                        if visited.find(fingerprint as u64, |known| *known == fingerprint).is_none() {
                            visited.insert_unique(fingerprint as u64, fingerprint, |known| *known as u64);
                            new.push((unit, at));
                        }
                    }
                }
                new
            })
            .collect();
        let mut new: Vec<(u32, u32)> = is_new.into_iter().flatten().collect();
        new.par_sort_unstable();
        let mut new = new.into_iter().peekable();
        for (unit, expanded) in (0..).zip(units) {
            self.found.transitions += expanded.transitions;
            for (origin, broken) in expanded.broken {
                self.report(origin, broken);
            }
            for (at, successor) in (0..).zip(expanded.successors) {
                if new.next_if_eq(&(unit, at)).is_some() {
                    self.origins.push(successor.origin);
                    next.push(successor.state);
                }
            }
        }
    }

    /// Keeps the first run that breaks each property.
    fn report(&mut self, origin: Origin, broken: Broken) {
        for (property, counterexample) in self.found.counterexamples.iter_mut().enumerate() {
            if broken >> property & 1 == 1 && counterexample.is_none() {
                let mut path = vec![origin.successor];
                let mut at = origin.parent;
                while at != 0 {
                    let Origin { parent, successor } = self.origins[at as usize];
                    path.push(successor);
                    at = parent;
                }
                path.reverse();
                *counterexample = Some(path);
                self.open &= !(1 << property);
            }
        }
    }
}

fn shard(fingerprint: u128) -> usize {
    (fingerprint >> 120) as usize % SHARDS
}

/// Two products of 128 bits of everything that a state hashes, with different constants.
fn fingerprint(state: &impl Hash) -> u128 {
    let mut hasher = Fingerprint { low: 0x9e37_79b9_7f4a_7c15, high: 0xc2b2_ae3d_27d4_eb4f };
    state.hash(&mut hasher);
    let Fingerprint { low, high } = hasher;
    u128::from(mixed(low, 0xd6e8_feb8_6659_fd93)) << 64 | u128::from(mixed(high, 0xa076_1d64_78bd_642f))
}

struct Fingerprint {
    low: u64,
    high: u64,
}

/// Both halves of a product, folded.
fn mixed(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            self.write_u64(u64::from_le_bytes(padded) ^ (word.len() as u64) << 61);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.low = mixed(self.low ^ word, 0xe703_7ed1_a0b4_28db).wrapping_add(word);
        self.high = mixed(self.high.rotate_left(23) ^ word, 0x8ebc_6af0_9c88_c6e3) ^ self.low.rotate_left(41);
    }

    fn finish(&self) -> u64 {
        self.low ^ self.high
    }
}
