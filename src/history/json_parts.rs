//! Hash-consed JSON: the declared fields of all versions as parts, with equal parts stored once.
//!
//! Versions of one object differ in a field or two, and a thousand pods of one controller have the same owner. With equal parts
//! shared, a field changed exactly if two ids differ. Invariant: a part is interned after all parts inside it.

use super::ids::{PartId, Symbol};
use super::interner::{Index, Interner};
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// A value, one level deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'v> {
    /// `null`, and any value between the declared paths that has no declared part.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as text.
    Number(Symbol),
    /// A text.
    Text(Symbol),
    /// Elements. Their names are [`Symbol::NONE`].
    List(&'v [(Symbol, PartId)]),
    /// Members, sorted by the symbols of their names.
    Map(&'v [(Symbol, PartId)]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Number(Symbol),
    Text(Symbol),
    List(u32, u32),
    Map(u32, u32),
}

/// Bound on depth, above that of any JSON that is read (serde_json stops at 128), so that recursion over parts needs no guard.
#[cfg(feature = "container")]
const MAX_DEPTH: u8 = 200;

/// All parts of a history.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    nodes: Vec<Node>,
    children: Vec<(Symbol, PartId)>,
    index: Index,
}

impl Parts {
    /// A value.
    pub fn get(&self, id: PartId) -> Part<'_> {
        view(&self.children, self.nodes[id.index()])
    }

    /// The storage, for a container: the values, and the elements and members of all lists and maps.
    #[cfg(feature = "container")]
    pub(super) fn rows(&self) -> (&[Node], &[(Symbol, PartId)]) {
        (&self.nodes, &self.children)
    }

    /// Parts from the storage of a container. `None` if it is not valid: every value must consist of earlier ones, be at most
    /// [`MAX_DEPTH`] deep, occur once, and use only the first `names` symbols.
    #[cfg(feature = "container")]
    pub(super) fn of_rows(nodes: Vec<Node>, children: Vec<(Symbol, PartId)>, names: usize) -> Option<Parts> {
        let mut parts = Parts { nodes, children, index: Index::default() };
        let mut depths: Vec<u8> = Vec::with_capacity(parts.nodes.len());
        let mut begin = 0;
        for (id, &node) in parts.nodes.iter().enumerate() {
            if let Node::List(start, length) | Node::Map(start, length) = node {
                // Ranges of children follow each other without a hole.
                let end = start.checked_add(length)?;
                (start == begin && end as usize <= parts.children.len()).then_some(())?;
                begin = end;
            }
            let value = view(&parts.children, node);
            let is_name = |name: Symbol| name.index() < names;
            let (sound, below) = match value {
                Part::Null | Part::Bool(_) => (true, &[][..]),
                Part::Number(name) | Part::Text(name) => (is_name(name), &[][..]),
                Part::List(below) => (below.iter().all(|(name, _)| !name.is_some()), below),
                Part::Map(below) => {
                    (below.iter().all(|(name, _)| is_name(*name)) && below.is_sorted_by(|a, b| a.0 < b.0), below)
                }
            };
            let deepest =
                below.iter().map(|(_, id)| depths.get(id.index()).copied()).try_fold(0, |d, o| Some(d.max(o?)))?;
            (sound && deepest < MAX_DEPTH).then_some(())?;
            depths.push(deepest + 1);
            let hash = hash(value);
            let (nodes, children) = (&parts.nodes, &parts.children);
            if parts.index.find(hash, |other| view(children, nodes[other as usize]) == value).is_some() {
                return None;
            }
            parts.index.insert(hash, id as u32);
        }
        (begin as usize == parts.children.len()).then_some(parts)
    }

    /// Number of distinct values.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The id of a value. Members of a map may be in any order, but each name occurs once.
    pub fn intern(&mut self, value: Part<'_>) -> PartId {
        let mut sorted;
        let value = match value {
            Part::Map(members) if !members.is_sorted_by_key(|(name, _)| *name) => {
                sorted = members.to_vec();
                sorted.sort_unstable_by_key(|(name, _)| *name);
                Part::Map(&sorted)
            }
            other => other,
        };
        let hash = hash(value);
        let (nodes, children) = (&self.nodes, &self.children);
        if let Some(id) = self.index.find(hash, |id| view(children, nodes[id as usize]) == value) {
            return PartId(id);
        }
        let start = self.children.len() as u32;
        let node = match value {
            Part::Null => Node::Null,
            Part::Bool(value) => Node::Bool(value),
            Part::Number(text) => Node::Number(text),
            Part::Text(text) => Node::Text(text),
            Part::List(elements) => Node::List(start, elements.len() as u32),
            Part::Map(members) => Node::Map(start, members.len() as u32),
        };
        if let Part::List(more) | Part::Map(more) = value {
            self.children.extend_from_slice(more);
        }
        let id = self.nodes.len() as u32;
        self.nodes.push(node);
        self.index.insert(hash, id);
        PartId(id)
    }

    /// Interns the parts of a block. `name` maps the block's symbols to this history's. Returns the new ids by old id.
    pub fn absorb(&mut self, other: &Parts, name: impl Fn(Symbol) -> Symbol) -> Vec<PartId> {
        let mut moved: Vec<PartId> = Vec::with_capacity(other.nodes.len());
        let mut children = Vec::new();
        // The parts inside a value have lower ids, so they are moved already.
        for &node in &other.nodes {
            let value = view(&other.children, node);
            if let Part::List(old) | Part::Map(old) = value {
                children.clear();
                children.extend(old.iter().map(|&(n, id)| (if n.is_some() { name(n) } else { n }, moved[id.index()])));
                if matches!(value, Part::Map(_)) {
                    children.sort_unstable_by_key(|(name, _)| *name);
                }
            }
            moved.push(self.intern(match value {
                Part::Number(text) => Part::Number(name(text)),
                Part::Text(text) => Part::Text(name(text)),
                Part::List(_) => Part::List(&children),
                Part::Map(_) => Part::Map(&children),
                same => same,
            }));
        }
        moved
    }

    /// The member of a map with a name.
    pub fn member(&self, id: PartId, name: Symbol) -> Option<PartId> {
        match self.get(id) {
            Part::Map(members) => members.binary_search_by_key(&name, |(name, _)| *name).ok().map(|at| members[at].1),
            _ => None,
        }
    }

    /// The value as JSON.
    pub fn json(&self, names: &Interner, id: PartId) -> serde_json::Value {
        use serde_json::Value as Json;
        let text = |symbol| names.get(symbol).to_owned();
        match self.get(id) {
            Part::Null => Json::Null,
            Part::Bool(value) => Json::Bool(value),
            Part::Number(symbol) => serde_json::from_str(names.get(symbol)).unwrap_or(Json::Null),
            Part::Text(symbol) => Json::String(text(symbol)),
            Part::List(elements) => Json::Array(elements.iter().map(|&(_, id)| self.json(names, id)).collect()),
            Part::Map(members) => {
                Json::Object(members.iter().map(|&(name, id)| (text(name), self.json(names, id))).collect())
            }
        }
    }
}

fn view(children: &[(Symbol, PartId)], node: Node) -> Part<'_> {
    let part = |start: u32, length: u32| &children[start as usize..(start + length) as usize];
    match node {
        Node::Null => Part::Null,
        Node::Bool(value) => Part::Bool(value),
        Node::Number(text) => Part::Number(text),
        Node::Text(text) => Part::Text(text),
        Node::List(start, length) => Part::List(part(start, length)),
        Node::Map(start, length) => Part::Map(part(start, length)),
    }
}

/// Half a hash; see [`Index`].
fn hash(value: Part<'_>) -> u32 {
    let mut hasher = FxHasher::default();
    match value {
        Part::Null => 0u8.hash(&mut hasher),
        Part::Bool(value) => (1u8, value).hash(&mut hasher),
        Part::Number(text) => (2u8, text).hash(&mut hasher),
        Part::Text(text) => (3u8, text).hash(&mut hasher),
        Part::List(elements) => (4u8, elements).hash(&mut hasher),
        Part::Map(members) => (5u8, members).hash(&mut hasher),
    }
    Index::half(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_are_one_part_whatever_their_order() {
        let (mut names, mut parts) = (Interner::default(), Parts::default());
        let [a, b, x] = ["a", "b", "x"].map(|name| names.intern(name));
        let text = parts.intern(Part::Text(x));
        let one = parts.intern(Part::Map(&[(a, text), (b, text)]));
        let other = parts.intern(Part::Map(&[(b, text), (a, text)]));
        assert_eq!((one, parts.len()), (other, 2));
        assert_eq!((parts.member(one, b), parts.member(one, x)), (Some(text), None));
        assert_ne!(parts.intern(Part::List(&[(Symbol::NONE, text)])), one);
        assert_ne!(parts.intern(Part::Number(x)), text);
    }

    #[cfg(feature = "container")]
    #[test]
    fn rows_are_parts_again_unless_they_cannot_have_been_any() {
        let (mut names, mut parts) = (Interner::default(), Parts::default());
        let [a, b] = ["a", "b"].map(|name| names.intern(name));
        let text = parts.intern(Part::Text(a));
        let list = parts.intern(Part::List(&[(Symbol::NONE, text), (Symbol::NONE, text)]));
        let map = parts.intern(Part::Map(&[(a, list), (b, text)]));
        let (nodes, children) = (parts.rows().0.to_vec(), parts.rows().1.to_vec());
        let mut again = Parts::of_rows(nodes.clone(), children.clone(), 2).expect("the same parts");
        assert_eq!(again.json(&names, map), parts.json(&names, map));
        assert_eq!((again.intern(Part::Text(a)), again.len()), (text, 3));
        let changed = |node: usize, to: Node, child: (usize, Symbol, PartId)| {
            let (mut nodes, mut children) = (nodes.clone(), children.clone());
            nodes[node] = to;
            children[child.0] = (child.1, child.2);
            Parts::of_rows(nodes, children, 2)
        };
        let same = (0, Symbol::NONE, text);
        assert!(changed(0, nodes[0], same).is_some());
        for wrong in [
            changed(0, nodes[0], (0, Symbol::NONE, list)),
            changed(0, nodes[0], (0, Symbol::NONE, PartId::NONE)),
            changed(0, nodes[0], (0, a, text)),
            changed(0, nodes[0], (2, b, list)),
            changed(0, nodes[0], (3, Symbol(2), text)),
            changed(0, Node::Text(Symbol::NONE), same),
            changed(1, Node::List(0, 5), same),
            changed(1, Node::List(u32::MAX, 2), same),
            changed(1, Node::List(1, 1), same),
            changed(1, Node::Text(a), same),
        ] {
            assert!(wrong.is_none());
        }
        let chain = |depth: u32| {
            let nodes = std::iter::once(Node::Null).chain((0..depth).map(|at| Node::List(at, 1))).collect();
            Parts::of_rows(nodes, (0..depth).map(|at| (Symbol::NONE, PartId(at))).collect(), 0)
        };
        assert!(chain(128).is_some() && chain(100_000).is_none());
    }

    #[test]
    fn values_of_a_block_keep_their_meaning_under_other_names() {
        let (mut names, mut parts) = (Interner::default(), Parts::default());
        let [b, a] = ["b", "a"].map(|name| names.intern(name));
        let text = parts.intern(Part::Text(a));
        let list = parts.intern(Part::List(&[(Symbol::NONE, text)]));
        let map = parts.intern(Part::Map(&[(b, list), (a, text)]));
        let (mut all_names, mut all) = (Interner::default(), Parts::default());
        all_names.intern("a");
        let moved: Vec<Symbol> = names.iter().map(|name| all_names.intern(name)).collect();
        let ids = all.absorb(&parts, |symbol| moved[symbol.index()]);
        let again = all.absorb(&parts, |symbol| moved[symbol.index()]);
        assert_eq!((&ids, all.len()), (&again, 3));
        assert_eq!(all.json(&all_names, ids[map.index()]), parts.json(&names, map));
        assert_eq!(all.json(&all_names, ids[map.index()]), serde_json::json!({"a": "a", "b": ["a"]}));
    }
}
