//! Sets of used crashed operations, numbered (hash consing): equal sets have equal numbers in one table. A configuration holds
//! only the number. [`CrashedUseSets::retain`] renumbers, so each kept number must be passed to it.

use crate::search::tight_vec::{self, OVERHEAD};
use hashbrown::HashTable;

/// How many operations of one crashed class were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    /// The index of the class in the event schedule.
    class: u32,
    count: u32,
    /// How many of them were invoked after the last overwrite.
    recent: u32,
}

impl Use {
    /// A pseudorandom number, by the finaliser of splitmix64.
    fn number(self) -> u64 {
        let mut bits = u64::from(self.class).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ (u64::from(self.count) << 32 | u64::from(self.recent)).wrapping_mul(0xD129_0D3E_6F4D_A9E5);
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ bits >> 31
    }
}

/// The uses of each class with at least one, by class.
#[derive(Clone, Debug)]
struct Set {
    /// The sum of [`Use::number`] of its uses: different sets seldom have the same.
    hash: u64,
    /// The bit `class % 64` of each of its classes.
    classes: u64,
    /// How many operations are in it.
    total: u32,
    uses: Box<[Use]>,
}

impl Set {
    /// `uses` is sorted by class.
    fn of(uses: Box<[Use]>) -> Self {
        let hash = uses.iter().copied().map(Use::number).fold(0, u64::wrapping_add);
        let classes = uses.iter().fold(0, |classes, used| classes | 1 << (used.class % 64));
        let total = uses.iter().map(|used| used.count).sum();
        Set { hash, classes, total, uses }
    }
}

/// A table of sets.
///
/// Operations of one class differ only in their invocation: one that is put before the last overwrite must have been invoked
/// before it. So a use after the last overwrite takes the newest available operation, and two numbers for each class suffice.
/// Whatever is available at one time is available later too. Therefore the newest one is never needed more elsewhere.
#[derive(Clone, Debug)]
pub(super) struct CrashedUseSets {
    sets: Vec<Set>,
    index: HashTable<u32>,
    /// Bytes that the sets hold outside of `sets`.
    set_bytes: usize,
}

/// The number of the empty set.
pub(super) const UNUSED: u32 = 0;

impl CrashedUseSets {
    pub(super) fn new() -> Self {
        let empty = Set { hash: 0, classes: 0, total: 0, uses: Box::default() };
        CrashedUseSets { sets: vec![empty], index: HashTable::new(), set_bytes: 0 }
    }

    fn get(&self, set: u32, class: u32) -> Option<&Use> {
        let uses = &self.sets[set as usize].uses;
        uses.binary_search_by_key(&class, |u| u.class).ok().map(|at| &uses[at])
    }

    /// How many operations of a class are in a set.
    pub(super) fn count(&self, set: u32, class: u32) -> u32 {
        self.get(set, class).map_or(0, |u| u.count)
    }

    /// How many of them were invoked after the last overwrite.
    pub(super) fn recent(&self, set: u32, class: u32) -> u32 {
        self.get(set, class).map_or(0, |u| u.recent)
    }

    /// How many operations are in a set.
    pub(super) fn total(&self, set: u32) -> u32 {
        self.sets[set as usize].total
    }

    /// The set with one more operation of a class.
    pub(super) fn add(&mut self, set: u32, class: u32, recent: bool) -> u32 {
        let Set { hash, classes, total, uses } = &self.sets[set as usize];
        let (at, before) = match uses.binary_search_by_key(&class, |u| u.class) {
            Ok(at) => (at, Some(uses[at])),
            Err(at) => (at, None),
        };
        let Use { count, recent: newer, .. } = before.unwrap_or(Use { class, count: 0, recent: 0 });
        let after = Use { class, count: count + 1, recent: newer + u32::from(recent) };
        let hash = hash.wrapping_sub(before.map_or(0, Use::number)).wrapping_add(after.number());
        let (first, last) = (&uses[..at], &uses[at + usize::from(before.is_some())..]);
        let known = self.index.find(hash, |&known| {
            let Set { hash: other, uses, .. } = &self.sets[known as usize];
            *other == hash
                && uses.len() == at + 1 + last.len()
                && uses[at] == after
                && uses[..at] == *first
                && uses[at + 1..] == *last
        });
        match known {
            Some(&known) => known,
            None => {
                let uses = [first, &[after], last].concat().into_boxed_slice();
                self.keep(Set { hash, classes: classes | 1 << (class % 64), total: total + 1, uses })
            }
        }
    }

    /// The classes of which a set has operations.
    pub(super) fn classes(&self, set: u32) -> impl Iterator<Item = u32> {
        self.sets[set as usize].uses.iter().map(|used| used.class)
    }

    /// The set without the operations of these classes, which are sorted.
    pub(super) fn without(&mut self, set: u32, classes: &[u32]) -> u32 {
        let is_left = |used: &&Use| classes.binary_search(&used.class).is_err();
        let uses: Box<[Use]> = self.sets[set as usize].uses.iter().filter(is_left).copied().collect();
        match uses.len() {
            0 => UNUSED,
            len if len == self.sets[set as usize].uses.len() => set,
            _ => self.number(Set::of(uses)),
        }
    }

    /// The set after a new overwrite: no operation is recent.
    pub(super) fn seal(&mut self, set: u32) -> u32 {
        let Set { hash, classes, total, uses } = &self.sets[set as usize];
        if uses.iter().all(|u| u.recent == 0) {
            return set;
        }
        let sealed = |u: &Use| Use { recent: 0, ..*u };
        let difference = uses.iter().filter(|u| u.recent > 0).map(|u| sealed(u).number().wrapping_sub(u.number()));
        let (hash, classes, total) = (difference.fold(*hash, u64::wrapping_add), *classes, *total);
        let known = self.index.find(hash, |&known| {
            let other = &self.sets[known as usize];
            other.hash == hash && other.uses.iter().copied().eq(uses.iter().map(sealed))
        });
        match known {
            Some(&known) => known,
            None => {
                let uses = uses.iter().map(sealed).collect();
                self.keep(Set { hash, classes, total, uses })
            }
        }
    }

    /// The set of the first `counts[class]` operations of each class.
    pub(super) fn first(&mut self, counts: &[u32]) -> u32 {
        let used = (0..).zip(counts).filter(|used| *used.1 > 0);
        let uses: Box<[Use]> = used.map(|(class, &count)| Use { class, count, recent: 0 }).collect();
        if uses.is_empty() {
            return UNUSED;
        }
        self.number(Set::of(uses))
    }

    /// Adds a set of another table.
    pub(super) fn adopt(&mut self, others: &CrashedUseSets, set: u32) -> u32 {
        if set == UNUSED {
            return UNUSED;
        }
        let set = &others.sets[set as usize];
        self.known(set).unwrap_or_else(|| self.keep(set.clone()))
    }

    /// The number of a set that is not empty; adds it if it is new.
    fn number(&mut self, set: Set) -> u32 {
        self.known(&set).unwrap_or_else(|| self.keep(set))
    }

    fn known(&self, set: &Set) -> Option<u32> {
        let is_it = |&known: &u32| {
            let known = &self.sets[known as usize];
            known.hash == set.hash && known.uses == set.uses
        };
        self.index.find(set.hash, is_it).copied()
    }

    /// Whether whatever can be used after `more` can be used after `less`: `less` has no more operations of any class, nor more
    /// that were invoked before the last overwrite.
    pub(super) fn is_within(&self, less: u32, more: u32) -> bool {
        less == more || self.is_within_of(less, self, more)
    }

    /// The same, with `more` in another table.
    pub(super) fn is_within_of(&self, less: u32, others: &CrashedUseSets, more: u32) -> bool {
        if less == UNUSED {
            return true;
        }
        let (less, more) = (&self.sets[less as usize], &others.sets[more as usize]);
        let mut rest = more.uses.iter();
        less.total <= more.total
            && less.classes & !more.classes == 0
            && less.uses.iter().all(|u| {
                rest.any(|v| v.class == u.class && u.count <= v.count && u.count - u.recent <= v.count - v.recent)
            })
    }

    /// Drops the sets that none of these numbers name, and renumbers the rest.
    pub(super) fn retain<'a>(&mut self, named: impl Iterator<Item = &'a mut u32>) {
        let mut numbers = vec![u32::MAX; self.sets.len()];
        let mut kept = CrashedUseSets::new();
        numbers[UNUSED as usize] = UNUSED;
        for named in named {
            let number = &mut numbers[*named as usize];
            if *number == u32::MAX {
                let set = &mut self.sets[*named as usize];
                *number = kept.keep(Set { uses: std::mem::take(&mut set.uses), ..*set });
            }
            *named = *number;
        }
        *self = kept;
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.set_bytes + tight_vec::bytes(&self.sets) + self.index.capacity() * (size_of::<u32>() + 1) * 8 / 7
    }

    /// Adds a set that is not in the table.
    fn keep(&mut self, set: Set) -> u32 {
        let fresh = self.sets.len() as u32;
        let sets = &self.sets;
        self.index.insert_unique(set.hash, fresh, |&at| sets[at as usize].hash);
        self.set_bytes += size_of_val(&*set.uses) + OVERHEAD;
        tight_vec::push(&mut self.sets, set);
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn equal_sets_have_one_number_however_they_came_about_and_others_have_others() {
        type Shown = BTreeMap<u32, (u32, u32)>;
        let mut uses = CrashedUseSets::new();
        let mut numbers: BTreeMap<Vec<(u32, u32, u32)>, u32> = BTreeMap::new();
        let mut random = 1u32;
        for _ in 0..300 {
            let (mut set, mut shown) = (UNUSED, Shown::new());
            for _ in 0..8 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let (class, recent) = (random >> 16 & 3, random >> 20 & 1);
                if random >> 28 == 0 {
                    set = uses.seal(set);
                    shown.values_mut().for_each(|of| of.1 = 0);
                } else {
                    set = uses.add(set, class, recent == 1);
                    let of = shown.entry(class).or_default();
                    *of = (of.0 + 1, of.1 + recent);
                }
                let list = shown.iter().map(|(&class, &(count, recent))| (class, count, recent)).collect();
                assert_eq!(*numbers.entry(list).or_insert(set), set, "{shown:?}");
                assert_eq!(uses.total(set), shown.values().map(|of| of.0).sum::<u32>());
                assert!(shown.iter().all(|(&class, of)| (uses.count(set, class), uses.recent(set, class)) == *of));
            }
        }
        let mut kept: Vec<u32> = numbers.values().copied().collect();
        assert_eq!(kept.iter().collect::<std::collections::BTreeSet<_>>().len(), numbers.len());
        uses.retain(kept.iter_mut());
        let counts = |set: u32| (0..4).map(|class| uses.count(set, class)).sum::<u32>();
        assert!(kept.iter().all(|&set| uses.total(set) == counts(set)));
    }
}
