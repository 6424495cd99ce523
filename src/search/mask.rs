//! Sets of slots, as the words of a bit set. Their size is fixed when the search begins, so small sets need no allocation.

use super::tight_vec::OVERHEAD;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

/// A set of slots of one fixed size.
pub(super) trait Mask: Clone + Eq + Hash + Debug + Send + Sync {
    /// The empty set of up to `slots` slots.
    fn none(slots: usize) -> Self;
    /// Number of words.
    fn len(&self) -> usize;
    /// The word with the slots from 64 times its index on.
    fn word(&self, at: usize) -> u64;
    fn word_mut(&mut self, at: usize) -> &mut u64;
    /// Removes all slots.
    fn clear(&mut self);

    fn has(&self, slot: u32) -> bool {
        self.word(slot as usize / 64) >> (slot % 64) & 1 == 1
    }

    fn add(&mut self, slot: u32) {
        *self.word_mut(slot as usize / 64) |= 1 << (slot % 64);
    }

    fn remove(&mut self, slot: u32) {
        *self.word_mut(slot as usize / 64) &= !(1 << (slot % 64));
    }

    /// The slots that are not in another set.
    fn minus<'m>(&'m self, other: &'m Self) -> impl Iterator<Item = u32> + use<'m, Self> {
        let difference = |at: usize| self.word(at) & !other.word(at);
        let mut at = 0;
        let mut left = if self.len() > 0 { difference(0) } else { 0 };
        std::iter::from_fn(move || {
            while left == 0 {
                at += 1;
                left = (at < self.len()).then(|| difference(at))?;
            }
            let slot = at as u32 * 64 + left.trailing_zeros();
            left &= left - 1;
            Some(slot)
        })
    }

    /// Most bytes that it holds beyond its own size.
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl<const WORDS: usize> Mask for [u64; WORDS] {
    fn none(slots: usize) -> Self {
        debug_assert!(slots <= WORDS * 64);
        [0; WORDS]
    }

    fn len(&self) -> usize {
        WORDS
    }

    fn word(&self, at: usize) -> u64 {
        self[at]
    }

    fn word_mut(&mut self, at: usize) -> &mut u64 {
        &mut self[at]
    }

    fn clear(&mut self) {
        self.fill(0);
    }
}

/// Words of a block.
const BLOCK: usize = 64;

/// Blocks of a group. One list of all blocks would be copied with each change, so 300,000 open calls took quadratic time.
const GROUP: usize = 16;

/// A set for more than 1024 slots. A copy shares the blocks that do not change: configurations that follow each other differ in a
/// few slots, and each would be as long as the number of open calls. A change copies a block, its group, and the list of groups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SharedBlocks {
    groups: Arc<[Arc<Group>]>,
    /// The groups of the empty set.
    empty: Arc<[Arc<Group>]>,
    /// Blocks that have slots. The last group may have more.
    blocks: usize,
}

/// Blocks that are listed together.
type Group = [Arc<[u64; BLOCK]>; GROUP];

impl Mask for SharedBlocks {
    fn none(slots: usize) -> Self {
        let block = Arc::new([0; BLOCK]);
        let group: Arc<Group> = Arc::new(std::array::from_fn(|_| block.clone()));
        let blocks = slots.div_ceil(64 * BLOCK);
        let empty: Arc<[_]> = (0..blocks.div_ceil(GROUP)).map(|_| group.clone()).collect();
        SharedBlocks { groups: empty.clone(), empty, blocks }
    }

    fn len(&self) -> usize {
        self.blocks * BLOCK
    }

    fn word(&self, at: usize) -> u64 {
        self.groups[at / BLOCK / GROUP][at / BLOCK % GROUP][at % BLOCK]
    }

    fn word_mut(&mut self, at: usize) -> &mut u64 {
        let group = Arc::make_mut(&mut Arc::make_mut(&mut self.groups)[at / BLOCK / GROUP]);
        &mut Arc::make_mut(&mut group[at / BLOCK % GROUP])[at % BLOCK]
    }

    fn clear(&mut self) {
        self.groups = self.empty.clone();
    }

    fn heap_bytes(&self) -> usize {
        let block = size_of::<[u64; BLOCK]>() + OVERHEAD;
        let group = size_of::<Arc<()>>() + size_of::<Group>() + OVERHEAD;
        self.blocks * block + self.groups.len() * group + OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots of more than one group and two blocks.
    const SLOTS: usize = 64 * BLOCK * (GROUP + 2) + 100;

    #[test]
    fn copies_of_shared_blocks_change_apart_and_hold_what_plain_words_hold() {
        type Plain = [u64; SLOTS.div_ceil(64)];
        let mut random = fastrand::Rng::with_seed(1);
        let mut sets: Vec<(SharedBlocks, Plain)> = vec![(SharedBlocks::none(SLOTS), Plain::none(SLOTS))];
        for _ in 0..3_000 {
            let at = random.usize(..sets.len());
            let slot = random.u32(..SLOTS as u32);
            let (shared, plain) = &mut sets[at];
            match random.u32(..40) {
                0 => (shared.clear(), plain.clear()),
                1..4 => {
                    let copy = sets[at].clone();
                    let to = random.usize(..8);
                    if to < sets.len() {
                        sets[to] = copy
                    } else {
                        sets.push(copy)
                    }
                    continue;
                }
                4..10 => {
                    let taken = (0..SLOTS as u32).filter(|slot| plain.has(*slot)).nth(random.usize(..50));
                    taken.map_or(((), ()), |slot| (shared.remove(slot), plain.remove(slot)))
                }
                _ => (shared.add(slot), plain.add(slot)),
            };
        }
        assert!(sets.len() == 8 && sets.iter().any(|(shared, _)| shared.clone() != SharedBlocks::none(SLOTS)));
        for (shared, plain) in &sets {
            assert!((0..SLOTS as u32).all(|slot| shared.has(slot) == plain.has(slot)));
            for (other, also) in &sets {
                assert!(shared.minus(other).eq(plain.minus(also)));
                assert_eq!(shared == other, plain == also);
            }
        }
    }
}
