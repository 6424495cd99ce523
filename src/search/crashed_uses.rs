//! Sets of used crashed operations, numbered (hash consing): equal sets have equal numbers in one table. A configuration holds
//! only the number. [`CrashedUseSets::retain`] renumbers, so each kept number must be passed to it.
//!
//! A set is a radix tree over its classes. Sets share their equal parts, so a set with one more operation takes the space of one
//! path. A history of n operations of unknown outcome can need n sets of up to n classes.

use crate::search::tight_vec::{self, OVERHEAD};
use hashbrown::HashTable;

/// How many operations of one crashed class were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    /// The number of the class.
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

/// A part of a set, or a whole set: the uses of the classes that differ only in the low bits, by class.
#[derive(Clone, Debug)]
struct Node {
    /// The sum of [`Use::number`] of its uses: different nodes of one level seldom have the same.
    hash: u64,
    /// The bit `class % 64` of each of its classes.
    classes: u64,
    /// How many operations are in it.
    total: u32,
    /// How many classes are in it.
    width: u32,
    /// The height above the leaves. The root of a set is as low as its highest class allows.
    level: u32,
    /// Whether an operation was invoked after the last overwrite.
    has_recent: bool,
    content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    /// Uses with at least one operation, by class.
    Leaf(Box<[Use]>),
    /// Nodes of the level below, by slot. None is empty.
    Inner(Box<[Child]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Child {
    /// The bits of its classes at the level of the parent.
    slot: u32,
    node: u32,
}

/// Bits of a class that choose a child.
const BITS: u32 = 5;

/// The bits of a class from a level on.
fn from_level(class: u32, level: u32) -> u32 {
    class.checked_shr(BITS * level).unwrap_or(0)
}

fn slot(class: u32, level: u32) -> u32 {
    from_level(class, level) & ((1 << BITS) - 1)
}

impl Node {
    fn leaf(uses: Box<[Use]>) -> Node {
        Node {
            hash: uses.iter().copied().map(Use::number).fold(0, u64::wrapping_add),
            classes: uses.iter().fold(0, |classes, used| classes | 1 << (used.class % 64)),
            total: uses.iter().map(|used| used.count).sum(),
            width: uses.len() as u32,
            level: 0,
            has_recent: uses.iter().any(|used| used.recent > 0),
            content: Content::Leaf(uses),
        }
    }

    fn uses(&self) -> &[Use] {
        match &self.content {
            Content::Leaf(uses) => uses,
            Content::Inner(_) => &[],
        }
    }

    fn children(&self) -> &[Child] {
        match &self.content {
            Content::Leaf(_) => &[],
            Content::Inner(children) => children,
        }
    }

    fn child(&self, slot: u32) -> Option<u32> {
        let children = self.children();
        children.binary_search_by_key(&slot, |child| child.slot).ok().map(|at| children[at].node)
    }

    /// Bytes held beside the node itself.
    fn bytes(&self) -> usize {
        size_of_val(self.uses()) + size_of_val(self.children()) + OVERHEAD
    }
}

/// A table of sets. The number of a set is that of its root.
///
/// Operations of one class differ only in their invocation: one that is put before the last overwrite must have been invoked
/// before it. So a use after the last overwrite takes the newest available operation, and two numbers for each class suffice.
/// Whatever is available at one time is available later too. Therefore the newest one is never needed more elsewhere.
#[derive(Clone, Debug)]
pub(super) struct CrashedUseSets {
    nodes: Vec<Node>,
    index: HashTable<u32>,
    /// Bytes that the nodes hold outside of `nodes`.
    node_bytes: usize,
}

/// The number of the empty set.
pub(super) const UNUSED: u32 = 0;

impl CrashedUseSets {
    pub(super) fn new() -> Self {
        CrashedUseSets { nodes: vec![Node::leaf(Box::default())], index: HashTable::new(), node_bytes: 0 }
    }

    fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }

    fn get(&self, set: u32, class: u32) -> Option<&Use> {
        let mut node = self.node(set);
        if from_level(class, node.level + 1) != 0 {
            return None;
        }
        while node.level > 0 {
            node = self.node(node.child(slot(class, node.level))?);
        }
        let uses = node.uses();
        uses.binary_search_by_key(&class, |used| used.class).ok().map(|at| &uses[at])
    }

    /// How many operations of a class are in a set.
    pub(super) fn count(&self, set: u32, class: u32) -> u32 {
        self.get(set, class).map_or(0, |used| used.count)
    }

    /// How many of them were invoked after the last overwrite.
    pub(super) fn recent(&self, set: u32, class: u32) -> u32 {
        self.get(set, class).map_or(0, |used| used.recent)
    }

    /// How many operations are in a set.
    pub(super) fn total(&self, set: u32) -> u32 {
        self.node(set).total
    }

    /// The set with one more operation of a class.
    pub(super) fn add(&mut self, set: u32, class: u32, recent: bool) -> u32 {
        let mut level = self.node(set).level;
        while from_level(class, level + 1) != 0 {
            level += 1;
        }
        self.add_below(set, level, class, recent)
    }

    /// The same for a node, or for no node, with the result at a level.
    fn add_below(&mut self, node: u32, level: u32, class: u32, recent: bool) -> u32 {
        if level == 0 {
            return self.add_to_leaf(node, class, recent);
        }
        let slot = slot(class, level);
        let place = self.node(node).children().binary_search_by_key(&slot, |child| child.slot);
        if node != UNUSED && self.node(node).level < level {
            // The root is too low for the class.
            let rest = Child { slot: 0, node: self.raise(node, level - 1) };
            let child = Child { slot, node: self.add_below(UNUSED, level - 1, class, recent) };
            return self.inner(level, Box::new([rest, child]));
        }
        let below = place.map_or(UNUSED, |at| self.node(node).children()[at].node);
        let child = Child { slot, node: self.add_below(below, level - 1, class, recent) };
        let children = self.node(node).children();
        let children: Box<[Child]> = match place {
            Ok(at) => [&children[..at], &[child], &children[at + 1..]].concat(),
            Err(at) => [&children[..at], &[child], &children[at..]].concat(),
        }
        .into();
        self.inner(level, children)
    }

    fn add_to_leaf(&mut self, leaf: u32, class: u32, recent: bool) -> u32 {
        let hash = self.node(leaf).hash;
        let uses = self.node(leaf).uses();
        let (at, before) = match uses.binary_search_by_key(&class, |used| used.class) {
            Ok(at) => (at, Some(uses[at])),
            Err(at) => (at, None),
        };
        let Use { count, recent: newer, .. } = before.unwrap_or(Use { class, count: 0, recent: 0 });
        let after = Use { class, count: count + 1, recent: newer + u32::from(recent) };
        let hash = hash.wrapping_sub(before.map_or(0, Use::number)).wrapping_add(after.number());
        let (first, last) = (&uses[..at], &uses[at + usize::from(before.is_some())..]);
        let known = self.index.find(hash, |&known| {
            let node = self.node(known);
            let uses = node.uses();
            node.hash == hash
                && uses.len() == at + 1 + last.len()
                && uses[at] == after
                && uses[..at] == *first
                && uses[at + 1..] == *last
        });
        match known {
            Some(&known) => known,
            None => {
                let uses = [first, &[after], last].concat().into_boxed_slice();
                self.keep(Node::leaf(uses))
            }
        }
    }

    /// The node as the only child of others, up to a level.
    fn raise(&mut self, mut node: u32, level: u32) -> u32 {
        while self.node(node).level < level {
            node = self.inner(self.node(node).level + 1, Box::new([Child { slot: 0, node }]));
        }
        node
    }

    /// The number of a node with these children, of which there is at least one.
    fn inner(&mut self, level: u32, children: Box<[Child]>) -> u32 {
        let mut node = Node {
            hash: 0,
            classes: 0,
            total: 0,
            width: 0,
            level,
            has_recent: false,
            content: Content::Inner(Box::default()),
        };
        for child in &children {
            let child = self.node(child.node);
            node.hash = node.hash.wrapping_add(child.hash);
            node.classes |= child.classes;
            node.total += child.total;
            node.width += child.width;
            node.has_recent |= child.has_recent;
        }
        node.content = Content::Inner(children);
        self.number(node)
    }

    /// The classes of which a set has operations.
    pub(super) fn classes(&self, set: u32) -> impl Iterator<Item = u32> {
        let root = self.node(set);
        let (mut uses, mut above) = (root.uses().iter(), vec![root.children().iter()]);
        std::iter::from_fn(move || {
            loop {
                if let Some(used) = uses.next() {
                    return Some(used.class);
                }
                match above.last_mut()?.next() {
                    Some(child) => {
                        let node = self.node(child.node);
                        match &node.content {
                            Content::Leaf(of_leaf) => uses = of_leaf.iter(),
                            Content::Inner(children) => above.push(children.iter()),
                        }
                    }
                    None => {
                        above.pop();
                    }
                }
            }
        })
    }

    /// How many classes those are.
    pub(super) fn width(&self, set: u32) -> u32 {
        self.node(set).width
    }

    /// The set without the operations of these classes, which are sorted.
    pub(super) fn without(&mut self, set: u32, classes: &[u32]) -> u32 {
        let level = self.node(set).level;
        let covered = classes.partition_point(|class| from_level(*class, level + 1) == 0);
        let mut node = self.without_below(set, &classes[..covered]);
        // The root is as low as its highest class allows.
        while let [Child { slot: 0, node: only }] = *self.node(node).children() {
            node = only;
        }
        node
    }

    fn without_below(&mut self, node: u32, classes: &[u32]) -> u32 {
        if classes.iter().all(|class| self.node(node).classes >> (class % 64) & 1 == 0) {
            return node;
        }
        match self.node(node).content.clone() {
            Content::Leaf(uses) => {
                let is_left = |used: &&Use| classes.binary_search(&used.class).is_err();
                let left: Box<[Use]> = uses.iter().filter(is_left).copied().collect();
                match left.len() {
                    0 => UNUSED,
                    len if len == uses.len() => node,
                    _ => self.number(Node::leaf(left)),
                }
            }
            Content::Inner(children) => {
                let level = self.node(node).level;
                let mut rest = classes;
                let mut left = Vec::with_capacity(children.len());
                for child in &children {
                    // Classes below this child can be no class of a later one.
                    let of_slot = |class: u32| slot(class, level).cmp(&child.slot);
                    let from = rest.partition_point(|class| of_slot(*class).is_lt());
                    let to = rest.partition_point(|class| of_slot(*class).is_le());
                    let below = self.without_below(child.node, &rest[from..to]);
                    rest = &rest[to..];
                    if below != UNUSED {
                        left.push(Child { slot: child.slot, node: below });
                    }
                }
                if left.is_empty() { UNUSED } else { self.inner(level, left.into()) }
            }
        }
    }

    /// The set after a new overwrite: no operation is recent.
    pub(super) fn seal(&mut self, set: u32) -> u32 {
        if !self.node(set).has_recent {
            return set;
        }
        match self.node(set).content.clone() {
            Content::Leaf(mut uses) => {
                uses.iter_mut().for_each(|used| used.recent = 0);
                self.number(Node::leaf(uses))
            }
            Content::Inner(mut children) => {
                children.iter_mut().for_each(|child| child.node = self.seal(child.node));
                self.inner(self.node(set).level, children)
            }
        }
    }

    /// The set of the first `counts[class]` operations of each class.
    pub(super) fn first(&mut self, counts: &[u32]) -> u32 {
        let used = (0..).zip(counts).filter(|used| *used.1 > 0);
        let uses: Vec<Use> = used.map(|(class, &count)| Use { class, count, recent: 0 }).collect();
        if uses.is_empty() {
            return UNUSED;
        }
        // The nodes of one level, each with the bits of its classes from the next level on.
        let leaves = uses.chunk_by(|a, b| from_level(a.class, 1) == from_level(b.class, 1));
        let mut nodes: Vec<Child> = leaves
            .map(|leaf| Child { slot: from_level(leaf[0].class, 1), node: self.number(Node::leaf(leaf.into())) })
            .collect();
        let mut level = 0;
        while nodes.len() > 1 || nodes[0].slot != 0 {
            level += 1;
            let parents = nodes.chunk_by(|a, b| from_level(a.slot, 1) == from_level(b.slot, 1));
            nodes = parents
                .map(|children| {
                    let slots = children.iter().map(|child| Child { slot: slot(child.slot, 0), ..*child });
                    let node = self.inner(level, slots.collect());
                    Child { slot: from_level(children[0].slot, 1), node }
                })
                .collect();
        }
        nodes[0].node
    }

    /// Adds a set of another table.
    pub(super) fn adopt(&mut self, others: &CrashedUseSets, set: u32) -> u32 {
        if set == UNUSED {
            return UNUSED;
        }
        let node = others.node(set);
        match &node.content {
            Content::Leaf(_) => self.known(node).unwrap_or_else(|| self.keep(node.clone())),
            Content::Inner(children) => {
                let adopted =
                    children.iter().map(|child| Child { slot: child.slot, node: self.adopt(others, child.node) });
                let adopted = adopted.collect();
                self.inner(node.level, adopted)
            }
        }
    }

    /// The number of a node that is not empty; adds it if it is new.
    fn number(&mut self, node: Node) -> u32 {
        self.known(&node).unwrap_or_else(|| self.keep(node))
    }

    fn known(&self, node: &Node) -> Option<u32> {
        let is_it = |&known: &u32| {
            let known = self.node(known);
            known.hash == node.hash && known.level == node.level && known.content == node.content
        };
        self.index.find(node.hash, is_it).copied()
    }

    /// Whether whatever can be used after `more` can be used after `less`: `less` has no more operations of any class, nor more
    /// that were invoked before the last overwrite.
    pub(super) fn is_within(&self, less: u32, more: u32) -> bool {
        self.is_within_of(less, self, more)
    }

    /// The same, with `more` in another table.
    pub(super) fn is_within_of(&self, less: u32, others: &CrashedUseSets, more: u32) -> bool {
        if less == UNUSED || std::ptr::eq(self, others) && less == more {
            return true;
        }
        let (less, mut more) = (self.node(less), others.node(more));
        if less.total > more.total || less.classes & !more.classes != 0 || less.level > more.level {
            return false;
        }
        while more.level > less.level {
            match more.child(0) {
                Some(low) => more = others.node(low),
                None => return false,
            }
        }
        let mut uses = more.uses().iter();
        let mut children = more.children().iter();
        less.uses().iter().all(|u| {
            let v = uses.find(|v| v.class >= u.class);
            v.is_some_and(|v| v.class == u.class && u.count <= v.count && u.count - u.recent <= v.count - v.recent)
        }) && less.children().iter().all(|child| {
            let other = children.find(|other| other.slot >= child.slot);
            other.is_some_and(|other| other.slot == child.slot && self.is_within_of(child.node, others, other.node))
        })
    }

    /// Drops the sets that none of these numbers name, and renumbers the rest.
    pub(super) fn retain<'a>(&mut self, named: impl Iterator<Item = &'a mut u32>) {
        let mut numbers = vec![u32::MAX; self.nodes.len()];
        let mut kept = CrashedUseSets::new();
        numbers[UNUSED as usize] = UNUSED;
        for named in named {
            *named = self.take(*named, &mut numbers, &mut kept);
        }
        *self = kept;
    }

    /// Moves a node and those below it to another table, once.
    fn take(&mut self, at: u32, numbers: &mut [u32], kept: &mut CrashedUseSets) -> u32 {
        if numbers[at as usize] != u32::MAX {
            return numbers[at as usize];
        }
        let empty = Content::Leaf(Box::default());
        let content = std::mem::replace(&mut self.nodes[at as usize].content, empty);
        let content = match content {
            Content::Leaf(uses) => Content::Leaf(uses),
            Content::Inner(mut children) => {
                children.iter_mut().for_each(|child| child.node = self.take(child.node, numbers, kept));
                Content::Inner(children)
            }
        };
        let number = kept.keep(Node { content, ..*self.node(at) });
        numbers[at as usize] = number;
        number
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.node_bytes + tight_vec::bytes(&self.nodes) + self.index.capacity() * (size_of::<u32>() + 1) * 8 / 7
    }

    /// Adds a node that is not in the table.
    fn keep(&mut self, node: Node) -> u32 {
        let fresh = self.nodes.len() as u32;
        let nodes = &self.nodes;
        self.index.insert_unique(node.hash, fresh, |&at| nodes[at as usize].hash);
        self.node_bytes += node.bytes();
        tight_vec::push(&mut self.nodes, node);
        fresh
    }
}

#[cfg(test)]
mod tests;
