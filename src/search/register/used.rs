//! Sets of optional operations that were used, by number.

use crate::search::room::{self, OVERHEAD};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// How many operations of one class were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Use {
    /// The place of the class among the optional ones.
    class: u32,
    /// How many.
    count: u32,
    /// How many of them were invoked after the gap.
    recent: u32,
}

/// The sets that were met.
///
/// Operations of one class differ only by their invocation: what is used in the gap must have been invoked before it. So what is
/// used after the gap is the newest that there is, and of each class two numbers are enough: the sets of what can be used at a time
/// grow with time, and in such sets taking the newest never takes what is needed more elsewhere.
#[derive(Clone, Debug)]
pub(super) struct Uses {
    sets: Vec<Box<[Use]>>,
    index: HashTable<u32>,
    held: usize,
}

/// The number of the empty set.
pub(super) const UNUSED: u32 = 0;

impl Uses {
    pub(super) fn new() -> Self {
        Uses { sets: vec![Box::default()], index: HashTable::new(), held: 0 }
    }

    fn get(&self, set: u32, class: u32) -> Option<&Use> {
        let uses = &self.sets[set as usize];
        uses.binary_search_by_key(&class, |u| u.class).ok().map(|at| &uses[at])
    }

    /// How many operations of a class are in a set.
    pub(super) fn count(&self, set: u32, class: u32) -> u32 {
        self.get(set, class).map_or(0, |u| u.count)
    }

    /// How many of them were invoked after the gap.
    pub(super) fn recent(&self, set: u32, class: u32) -> u32 {
        self.get(set, class).map_or(0, |u| u.recent)
    }

    /// How many operations are in a set.
    pub(super) fn total(&self, set: u32) -> u32 {
        self.sets[set as usize].iter().map(|u| u.count).sum()
    }

    /// The set with one operation more.
    pub(super) fn add(&mut self, set: u32, class: u32, recent: bool) -> u32 {
        let mut uses = self.sets[set as usize].to_vec();
        match uses.binary_search_by_key(&class, |u| u.class) {
            Ok(at) => {
                uses[at].count += 1;
                uses[at].recent += u32::from(recent);
            }
            Err(at) => uses.insert(at, Use { class, count: 1, recent: u32::from(recent) }),
        }
        self.intern(uses)
    }

    /// The set after a new gap: nothing is recent.
    pub(super) fn settle(&mut self, set: u32) -> u32 {
        if self.sets[set as usize].iter().all(|u| u.recent == 0) {
            return set;
        }
        let mut uses = self.sets[set as usize].to_vec();
        uses.iter_mut().for_each(|u| u.recent = 0);
        self.intern(uses)
    }

    /// Whether whatever can be used after `more` can be used after `less`: no more were used of any class, nor of those from before
    /// the gap.
    pub(super) fn is_within(&self, less: u32, more: u32) -> bool {
        if less == more || less == UNUSED {
            return true;
        }
        let mut rest = self.sets[more as usize].iter();
        self.sets[less as usize]
            .iter()
            .all(|u| rest.any(|v| v.class == u.class && u.count <= v.count && u.count - u.recent <= v.count - v.recent))
    }

    /// Forgets the sets that none of these name.
    pub(super) fn retain<'a>(&mut self, named: impl Iterator<Item = &'a mut u32>) {
        let mut place = vec![u32::MAX; self.sets.len()];
        let mut kept = Uses::new();
        place[UNUSED as usize] = UNUSED;
        for named in named {
            let place = &mut place[*named as usize];
            if *place == u32::MAX {
                *place = kept.intern(std::mem::take(&mut self.sets[*named as usize]).into_vec());
            }
            *named = *place;
        }
        *self = kept;
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.held + room::bytes(&self.sets) + self.index.capacity() * (size_of::<u32>() + 1) * 8 / 7
    }

    /// The number of a set that is not empty.
    fn intern(&mut self, uses: Vec<Use>) -> u32 {
        let sets = &self.sets;
        let hash = |uses: &[Use]| FxBuildHasher.hash_one(uses);
        let fresh = sets.len() as u32;
        match self.index.entry(hash(&uses), |&at| *sets[at as usize] == *uses, |&at| hash(&sets[at as usize])) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(vacant) => vacant.insert(fresh),
        };
        self.held += size_of_val(uses.as_slice()) + OVERHEAD;
        room::push(&mut self.sets, uses.into_boxed_slice());
        fresh
    }
}
