//! A persistent sorted set: it shares memory with the sets that it was made from. A search keeps thousands of states that differ
//! in one element each.
//!
//! It is a treap whose priorities are hashes of the elements (Seidel and Aragon 1996). So equal sets have equal trees, whatever
//! their history, and a comparison skips what two trees share. Small trees are slices. Every change must keep the form canonical,
//! or equal sets compare unequal.

use super::spread;
use std::hash::Hash;
use std::sync::Arc;

/// A tree of up to this many elements is a slice.
const MAX_SLICE_ELEMENTS: usize = 24;

/// Elements in ascending order, each once.
#[derive(Clone, Debug)]
pub(super) enum Sorted<T> {
    Few(Arc<[T]>),
    Many(Arc<Node<T>>),
}

/// More than [`MAX_SLICE_ELEMENTS`] elements.
#[derive(Debug)]
pub(super) struct Node<T> {
    /// The element with the highest priority, and that priority.
    element: T,
    priority: u64,
    len: usize,
    /// The elements before it and after it.
    sides: [Sorted<T>; 2],
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Sorted::Few(Arc::default())
    }
}

impl<T: PartialEq> PartialEq for Sorted<T> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Sorted::Few(one), Sorted::Few(other)) => Arc::ptr_eq(one, other) || one == other,
            (Sorted::Many(one), Sorted::Many(other)) => {
                Arc::ptr_eq(one, other)
                    || (one.len == other.len && one.element == other.element && one.sides == other.sides)
            }
            _ => false,
        }
    }
}

impl<T: Eq> Eq for Sorted<T> {}

impl<T> Sorted<T> {
    pub(super) fn len(&self) -> usize {
        match self {
            Sorted::Few(elements) => elements.len(),
            Sorted::Many(node) => node.len,
        }
    }

    pub(super) fn first(&self) -> Option<&T> {
        match self {
            Sorted::Few(elements) => elements.first(),
            Sorted::Many(node) => node.sides[0].first().or(Some(&node.element)),
        }
    }

    /// The elements, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let mut above = Vec::new();
        let mut here = Some(self);
        let mut few: &[T] = &[];
        std::iter::from_fn(move || {
            while let Some(tree) = here.take() {
                match tree {
                    Sorted::Few(elements) => few = elements,
                    Sorted::Many(node) => {
                        above.push(&**node);
                        here = Some(&node.sides[0]);
                    }
                }
            }
            if let [first, rest @ ..] = few {
                few = rest;
                return Some(first);
            }
            let node: &Node<T> = above.pop()?;
            here = Some(&node.sides[1]);
            Some(&node.element)
        })
    }

    /// Bytes that no other set shares.
    pub(super) fn own_bytes(&self) -> usize {
        match self {
            Sorted::Few(elements) if Arc::strong_count(elements) == 1 => COUNTS + size_of_val(&**elements),
            Sorted::Many(node) if Arc::strong_count(node) == 1 => {
                COUNTS + size_of::<Node<T>>() + node.sides.iter().map(Sorted::own_bytes).sum::<usize>()
            }
            _ => 0,
        }
    }
}

/// The counts of an [`Arc`].
const COUNTS: usize = 2 * size_of::<usize>();

impl<T: Ord + Clone + Hash> Sorted<T> {
    /// The set with one more element; `None` if it has that element.
    pub(super) fn with(&self, element: T) -> Option<Self> {
        let node = match self {
            Sorted::Few(elements) => {
                let at = elements.binary_search(&element).err()?;
                return Some(Sorted::slices(&elements[..at], Some(element), &elements[at..]));
            }
            Sorted::Many(node) => node,
        };
        if element == node.element {
            return None;
        }
        let priority = spread(&element);
        if (priority, &element) > (node.priority, &node.element) {
            let [before, after] = self.split(&element);
            return Some(Sorted::node([before, after], element, priority));
        }
        let side = usize::from(element > node.element);
        Some(node.with_side(side, node.sides[side].with(element)?))
    }

    /// The set without an element; `None` if it does not have it.
    pub(super) fn without(&self, element: &T) -> Option<Self> {
        match self {
            Sorted::Few(elements) => {
                let at = elements.binary_search(element).ok()?;
                Some(Sorted::slices(&elements[..at], None, &elements[at + 1..]))
            }
            Sorted::Many(node) if *element == node.element => Some(Sorted::join(&node.sides[0], &node.sides[1])),
            Sorted::Many(node) => {
                let side = usize::from(*element > node.element);
                Some(node.with_side(side, node.sides[side].without(element)?))
            }
        }
    }

    /// The elements before and after an element that the set does not have.
    fn split(&self, element: &T) -> [Self; 2] {
        match self {
            Sorted::Few(elements) => {
                let at = elements.partition_point(|other| other < element);
                [Sorted::Few(elements[..at].into()), Sorted::Few(elements[at..].into())]
            }
            Sorted::Many(node) => {
                let side = usize::from(*element > node.element);
                let mut parts = node.sides[side].split(element);
                parts[1 - side] = node.with_side(side, std::mem::take(&mut parts[1 - side]));
                parts
            }
        }
    }

    /// The union of two sets, one entirely before the other.
    fn join(before: &Self, after: &Self) -> Self {
        if let (Sorted::Few(before), Sorted::Few(after)) = (before, after) {
            return Sorted::slices(before, None, after);
        }
        if before.top() > after.top() {
            let ([first, second], element, priority) = before.cut();
            Sorted::node([first, Sorted::join(&second, after)], element, priority)
        } else {
            let ([first, second], element, priority) = after.cut();
            Sorted::node([Sorted::join(before, &first), second], element, priority)
        }
    }

    /// The element with the highest priority; of equal priorities the last.
    fn top(&self) -> Option<(u64, &T)> {
        match self {
            Sorted::Few(elements) => elements.iter().map(|element| (spread(element), element)).max(),
            Sorted::Many(node) => Some((node.priority, &node.element)),
        }
    }

    /// [`Self::top`] of a nonempty set, and the elements before and after it.
    fn cut(&self) -> ([Self; 2], T, u64) {
        match self {
            Sorted::Few(elements) => {
                let top = (0..elements.len()).map(|at| (spread(&elements[at]), at)).max();
                let (priority, at) = top.expect("the set is not empty");
                let sides = [Sorted::Few(elements[..at].into()), Sorted::Few(elements[at + 1..].into())];
                (sides, elements[at].clone(), priority)
            }
            Sorted::Many(node) => (node.sides.clone(), node.element.clone(), node.priority),
        }
    }

    /// The elements of two slices and one between them, ascending: at most twice as many as a slice holds.
    fn slices(before: &[T], element: Option<T>, after: &[T]) -> Self {
        let all = Sorted::Few(before.iter().cloned().chain(element).chain(after.iter().cloned()).collect());
        if all.len() <= MAX_SLICE_ELEMENTS {
            return all;
        }
        let (sides, element, priority) = all.cut();
        let [before, after] = sides.map(|side| match side {
            Sorted::Few(elements) if elements.len() > MAX_SLICE_ELEMENTS => Sorted::slices(&elements, None, &[]),
            side => side,
        });
        Sorted::node([before, after], element, priority)
    }

    /// An element with the elements before and after it, which have lower priorities.
    fn node(sides: [Self; 2], element: T, priority: u64) -> Self {
        let len = 1 + sides[0].len() + sides[1].len();
        match &sides {
            [Sorted::Few(before), Sorted::Few(after)] if len <= MAX_SLICE_ELEMENTS => {
                Sorted::slices(before, Some(element), after)
            }
            _ => Sorted::Many(Arc::new(Node { element, priority, len, sides })),
        }
    }
}

impl<T: Ord + Clone + Hash> Node<T> {
    /// The node with another side.
    fn with_side(&self, side: usize, tree: Sorted<T>) -> Sorted<T> {
        let mut sides = [tree, self.sides[1 - side].clone()];
        if side == 1 {
            sides.swap(0, 1);
        }
        Sorted::node(sides, self.element.clone(), self.priority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every slice is short, every node has more than a slice may have and the highest priority.
    fn assert_canonical(tree: &Sorted<u32>) {
        match tree {
            Sorted::Few(elements) => assert!(elements.len() <= MAX_SLICE_ELEMENTS),
            Sorted::Many(node) => {
                assert!(node.len > MAX_SLICE_ELEMENTS && node.len == tree.iter().count());
                assert_eq!(node.priority, spread(&node.element));
                assert!(node.sides.iter().all(|side| side.top() < Some((node.priority, &node.element))));
                node.sides.iter().for_each(assert_canonical);
            }
        }
    }

    #[test]
    fn it_is_the_set_that_it_should_be_and_equal_to_whatever_holds_the_same() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut slices, mut trees) = (0, 0);
        for most in [5, 40, 60, 300] {
            let (mut tree, mut set) = (Sorted::default(), BTreeSet::new());
            for _ in 0..3000 {
                let element = random.u64(..most) as u32;
                let next = if random.u64(..2) == 0 {
                    let with = tree.with(element);
                    assert_eq!(with.is_some(), set.insert(element));
                    with
                } else {
                    let without = tree.without(&element);
                    assert_eq!(without.is_some(), set.remove(&element));
                    without
                };
                let Some(next) = next else { continue };
                assert!(next != tree);
                tree = next;
                *(if matches!(tree, Sorted::Few(_)) { &mut slices } else { &mut trees }) += 1;
                assert_eq!((tree.len(), tree.first()), (set.len(), set.first()));
                assert!(tree.iter().eq(&set));
                assert_canonical(&tree);
                let again = set.iter().rev().fold(Sorted::default(), |tree, &element| tree.with(element).unwrap());
                assert!(again == tree);
            }
        }
        assert!(slices > 1000 && trees > 1000, "{slices} slices, {trees} trees");
    }

    #[test]
    fn a_set_holds_little_that_the_set_before_it_does_not_hold() {
        let mut trees: Vec<Sorted<u32>> = vec![Sorted::default()];
        let mut held = 0;
        for element in 0..20_000 {
            let tree = trees[trees.len() - 1].with(element).unwrap();
            held += tree.own_bytes();
            trees.push(tree);
        }
        assert!(held < 20_000 * 2000, "{held} bytes");
        assert!(trees[20_000].own_bytes() < 4000);
        drop(trees.drain(..20_000));
        assert!(trees[0].own_bytes() > 20_000 * size_of::<u32>());
    }
}
