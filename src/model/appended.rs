//! A persistent list that grows at its end: it shares its beginning with the lists that it was made from. A search keeps
//! thousands of states that differ in the last elements.
//!
//! Full blocks are a chain, from the last to the first, and the elements after them are a slice. So equal lists have equal
//! blocks, and a comparison ends at the first block that two lists share.

use super::spread;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Elements of a full block.
const BLOCK: usize = 64;

/// A list of elements.
#[derive(Clone, Debug)]
pub struct Appended<V> {
    /// The last full block.
    full: Option<Arc<Block<V>>>,
    /// The elements after the full blocks: fewer than [`BLOCK`].
    tail: Arc<[V]>,
    len: usize,
    /// The hashes of the elements as digits of a number. It distinguishes most different lists at once.
    sum: u64,
}

/// A full block, with the blocks before it.
#[derive(Debug)]
struct Block<V> {
    elements: Box<[V]>,
    before: Option<Arc<Block<V>>>,
}

/// A chain as long as the list must not recur.
impl<V> Drop for Block<V> {
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut block) = before.and_then(Arc::into_inner) {
            before = block.before.take();
        }
    }
}

impl<V> Default for Appended<V> {
    fn default() -> Self {
        Appended { full: None, tail: Arc::default(), len: 0, sum: 0 }
    }
}

impl<V> Appended<V> {
    /// Blocks, from the last to the first.
    fn blocks(&self) -> impl Iterator<Item = &Arc<Block<V>>> {
        std::iter::successors(self.full.as_ref(), |block| block.before.as_ref())
    }

    /// Bytes that no other list shares.
    pub(super) fn own_bytes(&self) -> usize {
        const COUNTS: usize = 2 * size_of::<usize>();
        let own = self.blocks().take_while(|block| Arc::strong_count(block) == 1);
        let of_block = |block: &Arc<Block<V>>| COUNTS + size_of::<Block<V>>() + size_of_val(&*block.elements);
        let tail = if Arc::strong_count(&self.tail) == 1 { COUNTS + size_of_val(&*self.tail) } else { 0 };
        tail + own.map(of_block).sum::<usize>()
    }
}

impl<V: Clone + Hash> Appended<V> {
    /// The list with one more element.
    pub(super) fn with(&self, element: V) -> Self {
        let sum = self.sum.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(spread(&element));
        let tail = self.tail.iter().cloned().chain([element]);
        let (full, tail) = if self.tail.len() + 1 < BLOCK {
            (self.full.clone(), tail.collect())
        } else {
            (Some(Arc::new(Block { elements: tail.collect(), before: self.full.clone() })), Arc::default())
        };
        Appended { full, tail, len: self.len + 1, sum }
    }
}

impl<V: PartialEq> Appended<V> {
    /// Whether it has exactly these elements.
    pub(super) fn is(&self, elements: &[V]) -> bool {
        if elements.len() != self.len {
            return false;
        }
        let (full, tail) = elements.split_at(self.len - self.tail.len());
        *tail == *self.tail && full.rchunks(BLOCK).eq(self.blocks().map(|block| &*block.elements))
    }
}

impl<V: PartialEq> PartialEq for Appended<V> {
    fn eq(&self, other: &Self) -> bool {
        let differ = |(one, other): &(&Arc<Block<V>>, &Arc<Block<V>>)| !Arc::ptr_eq(one, other);
        (self.len, self.sum) == (other.len, other.sum)
            && self.tail == other.tail
            && self.blocks().zip(other.blocks()).take_while(differ).all(|(one, other)| one.elements == other.elements)
    }
}

impl<V: Eq> Eq for Appended<V> {}

impl<V> Hash for Appended<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.len, self.sum).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_list_that_it_should_be_and_equal_to_whatever_holds_the_same() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut lists: Vec<(Appended<u8>, Vec<u8>)> = vec![Default::default()];
        for _ in 0..2_000 {
            let (list, mut plain) = lists[random.usize(lists.len().saturating_sub(4)..lists.len())].clone();
            let element = random.u8(..2);
            plain.push(element);
            lists.push((list.with(element), plain));
        }
        assert!(lists.iter().any(|(_, plain)| plain.len() > 3 * BLOCK));
        let odd = (Appended::default(), Vec::new());
        let (again, plain) = lists.iter().max_by_key(|(_, plain)| plain.len()).unwrap_or(&odd);
        // The same list without anything shared, and lists that differ in one place.
        let build = |plain: &[u8]| plain.iter().fold(Appended::default(), |list, &element| list.with(element));
        assert!(build(plain) == *again && again.is(plain));
        for at in 0..plain.len() {
            let mut other = plain.clone();
            other[at] ^= 1;
            assert!(!again.is(&other) && build(&other) != *again);
        }
        for (list, plain) in &lists {
            assert!(list.is(plain) && !list.is(&[plain.as_slice(), &[7]].concat()));
            assert!(plain.is_empty() || !list.is(&plain[1..]));
            assert_eq!(list == again, plain.len() == again.len && again.is(plain));
        }
    }

    #[test]
    fn a_long_list_holds_little_that_the_list_before_it_does_not_hold_and_ends_without_recursion() {
        let mut lists = vec![Appended::default()];
        let mut own = 0;
        for element in 0..200_000_u32 {
            let next = lists[lists.len() - 1].with(element);
            own = own.max(next.own_bytes());
            lists.push(next);
            lists.drain(..lists.len().saturating_sub(2));
        }
        assert!(own < 1_000, "{own} bytes");
        let last = lists.pop().unwrap_or_default();
        drop(lists);
        assert!(last.own_bytes() > 200_000 * size_of::<u32>());
    }
}
