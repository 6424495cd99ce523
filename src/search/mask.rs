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

/// A set for more than 1024 slots. A copy shares the blocks that do not change: configurations that follow each other differ in a
/// few slots, and each would be as long as the number of open calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SharedBlocks {
    blocks: Arc<[Arc<[u64; BLOCK]>]>,
    /// The blocks of the empty set.
    empty: Arc<[Arc<[u64; BLOCK]>]>,
}

impl Mask for SharedBlocks {
    fn none(slots: usize) -> Self {
        let block = Arc::new([0; BLOCK]);
        let empty: Arc<[_]> = (0..slots.div_ceil(64 * BLOCK)).map(|_| block.clone()).collect();
        SharedBlocks { blocks: empty.clone(), empty }
    }

    fn len(&self) -> usize {
        self.blocks.len() * BLOCK
    }

    fn word(&self, at: usize) -> u64 {
        self.blocks[at / BLOCK][at % BLOCK]
    }

    fn word_mut(&mut self, at: usize) -> &mut u64 {
        &mut Arc::make_mut(&mut Arc::make_mut(&mut self.blocks)[at / BLOCK])[at % BLOCK]
    }

    fn clear(&mut self) {
        self.blocks = self.empty.clone();
    }

    fn heap_bytes(&self) -> usize {
        self.blocks.len() * (size_of::<Arc<()>>() + size_of::<[u64; BLOCK]>() + OVERHEAD) + OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots of more than two blocks.
    const SLOTS: usize = 64 * BLOCK * 2 + 100;

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
