//! Sets of slots, as the words of a bit set. Their size is fixed when the search begins, so small sets need no allocation.

use super::tight_vec::OVERHEAD;
use std::fmt::Debug;
use std::hash::Hash;

/// A set of slots of one fixed size.
pub(super) trait Mask: Clone + Eq + Hash + Debug + Send + Sync {
    /// The empty set of up to `slots` slots.
    fn none(slots: usize) -> Self;
    fn words(&self) -> &[u64];
    fn words_mut(&mut self) -> &mut [u64];

    fn has(&self, slot: u32) -> bool {
        self.words()[slot as usize / 64] >> (slot % 64) & 1 == 1
    }

    fn add(&mut self, slot: u32) {
        self.words_mut()[slot as usize / 64] |= 1 << (slot % 64);
    }

    fn remove(&mut self, slot: u32) {
        self.words_mut()[slot as usize / 64] &= !(1 << (slot % 64));
    }

    /// The slots that are not in another set.
    fn minus<'m>(&'m self, other: &'m Self) -> impl Iterator<Item = u32> + use<'m, Self> {
        let (mine, other) = (self.words(), other.words());
        let mut word = 0;
        let mut left = mine.first().map_or(0, |mine| mine & !other[0]);
        std::iter::from_fn(move || {
            while left == 0 {
                word += 1;
                left = mine.get(word)? & !other[word];
            }
            let slot = word as u32 * 64 + left.trailing_zeros();
            left &= left - 1;
            Some(slot)
        })
    }

    /// Bytes that it holds beyond its own size.
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl<const WORDS: usize> Mask for [u64; WORDS] {
    fn none(slots: usize) -> Self {
        debug_assert!(slots <= WORDS * 64);
        [0; WORDS]
    }

    fn words(&self) -> &[u64] {
        self
    }

    fn words_mut(&mut self) -> &mut [u64] {
        self
    }
}

/// For more than 1024 slots.
impl Mask for Box<[u64]> {
    fn none(slots: usize) -> Self {
        vec![0; slots.div_ceil(64)].into_boxed_slice()
    }

    fn words(&self) -> &[u64] {
        self
    }

    fn words_mut(&mut self) -> &mut [u64] {
        self
    }

    fn heap_bytes(&self) -> usize {
        size_of_val::<[u64]>(self) + OVERHEAD
    }
}
