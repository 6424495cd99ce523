//! Paths as trees: the members that the parser captures, and the parts of a captured value that are kept.

use super::path::Step;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The member prefixes of all declared paths, whatever their resource. Node 0 is the object.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    /// Nodes at which narrow types begin, see [`Tree::place`].
    places: [Option<u16>; Place::ALL.len()],
    /// Wanted members that the narrow type of `metadata` keeps itself.
    own: Vec<(u16, Own)>,
}

/// Place of a narrow type in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The object itself.
    Object,
    /// Its `metadata`.
    Metadata,
    /// `metadata.annotations`.
    Annotations,
    /// Its `spec`.
    Spec,
    /// Its `status`.
    Status,
}

impl Place {
    const ALL: [Place; 5] = [Place::Object, Place::Metadata, Place::Annotations, Place::Spec, Place::Status];

    fn path(self) -> &'static [&'static str] {
        match self {
            Place::Object => &[],
            Place::Metadata => &["metadata"],
            Place::Annotations => &["metadata", "annotations"],
            Place::Spec => &["spec"],
            Place::Status => &["status"],
        }
    }
}

/// A member of `metadata` that its narrow type keeps completely, so the sieve does not capture it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// `name`.
    Name,
    /// `namespace`.
    Namespace,
    /// `uid`.
    Uid,
    /// `resourceVersion`.
    ResourceVersion,
    /// `creationTimestamp`.
    CreationTimestamp,
    /// `deletionTimestamp`.
    DeletionTimestamp,
    /// `labels`, all of them.
    Labels,
}

impl Own {
    const ALL: [(Own, &str); 7] = [
        (Own::Name, "name"),
        (Own::Namespace, "namespace"),
        (Own::Uid, "uid"),
        (Own::ResourceVersion, "resourceVersion"),
        (Own::CreationTimestamp, "creationTimestamp"),
        (Own::DeletionTimestamp, "deletionTimestamp"),
        (Own::Labels, "labels"),
    ];
}

#[derive(Clone, Debug, Default)]
struct Node {
    members: Vec<Member>,
    /// The members by name, if there are more than [`MAX_LINEAR_SEARCH`].
    by_name: FxHashMap<String, u16>,
    /// Bits for the lengths of the members' names, modulo 64. Most other names have another length.
    lengths: u64,
    /// Whether it is in [`Tree::own`].
    own: bool,
    /// Whether the value is kept as text.
    found: bool,
    /// Whether the presence of an object is kept.
    noted: bool,
    /// Path from the object.
    path: Vec<String>,
    /// The nodes from the object to this one, which is last.
    lineage: Vec<u16>,
    /// Rank among all nodes in the order of paths.
    rank: u16,
}

#[derive(Clone, Debug)]
struct Member {
    /// See [`mark`].
    mark: u32,
    name: String,
    node: u16,
}

/// Up to this number of members, linear search is faster than a hash of the name.
const MAX_LINEAR_SEARCH: usize = 32;

impl Node {
    fn add(&mut self, name: &str, node: u16) {
        self.members.push(Member { mark: mark(name), name: name.to_owned(), node });
        self.lengths |= length(name);
        match self.members.len() {
            0..=MAX_LINEAR_SEARCH => {}
            // The first time there are more than [`MAX_LINEAR_SEARCH`]: all members so far.
            count if count == MAX_LINEAR_SEARCH + 1 => {
                self.by_name = self.members.iter().map(|member| (member.name.clone(), member.node)).collect();
            }
            _ => drop(self.by_name.insert(name.to_owned(), node)),
        }
    }
}

impl Default for Tree {
    fn default() -> Self {
        let mut tree = Tree { nodes: vec![Node::default()], places: Default::default(), own: Vec::new() };
        tree.settle();
        tree
    }
}

impl Tree {
    /// The object itself.
    pub const ROOT: u16 = 0;

    /// Adds a member to capture. With `shape`, the objects on the way to it are noted.
    pub(super) fn look_out_for(&mut self, literal: &[&str], shape: bool) {
        let mut at = usize::from(Tree::ROOT);
        for name in literal {
            if self.nodes[at].path == ["metadata", "labels"] {
                break;
            }
            self.nodes[at].noted |= shape && at != 0;
            at = match self.member(at as u16, name) {
                Some(node) => usize::from(node),
                None => {
                    // More than 65536 nodes do not fit. Members beyond them are not kept, and rules report that.
                    let Ok(node) = u16::try_from(self.nodes.len()) else { return };
                    let path = self.nodes[at].path.iter().cloned().chain([(*name).to_owned()]).collect();
                    let lineage = self.nodes[at].lineage.iter().copied().chain([node]).collect();
                    self.nodes.push(Node { path, lineage, ..Node::default() });
                    self.nodes[at].add(name, node);
                    usize::from(node)
                }
            };
        }
        self.nodes[at].found |= at != 0;
    }

    /// Recomputes ranks and places after additions.
    pub(super) fn settle(&mut self) {
        let mut by_path: Vec<usize> = (0..self.nodes.len()).collect();
        by_path.sort_by(|&a, &b| self.nodes[a].path.cmp(&self.nodes[b].path));
        for (rank, node) in by_path.into_iter().enumerate() {
            self.nodes[node].rank = rank as u16;
        }
        let metadata = self.member(Tree::ROOT, "metadata");
        let own = |(own, name): (Own, &str)| {
            let node = self.member(metadata?, name)?;
            self.is_found(node).then_some((node, own))
        };
        self.own = Own::ALL.into_iter().filter_map(own).collect();
        for &(node, _) in &self.own {
            self.nodes[usize::from(node)].own = true;
        }
        self.places =
            Place::ALL.map(|place| place.path().iter().try_fold(Tree::ROOT, |node, name| self.member(node, name)));
    }

    /// The node of a place, if something below it is wanted.
    pub fn place(&self, place: Place) -> Option<u16> {
        self.places[place as usize]
    }

    /// The node of a member, if it or something below it is wanted.
    pub fn member(&self, node: u16, name: &str) -> Option<u16> {
        let node = &self.nodes[usize::from(node)];
        if node.lengths & length(name) == 0 {
            return None;
        }
        if node.members.len() > MAX_LINEAR_SEARCH {
            return node.by_name.get(name).copied();
        }
        let mark = mark(name);
        node.members.iter().find(|member| member.mark == mark && member.name == name).map(|member| member.node)
    }

    /// Wanted members that the narrow type of `metadata` keeps itself.
    pub fn own(&self) -> &[(u16, Own)] {
        &self.own
    }

    /// Whether a node is in [`Tree::own`].
    pub fn is_own(&self, node: u16) -> bool {
        self.nodes[usize::from(node)].own
    }

    /// Whether the value of a node is kept as text, with everything below it.
    pub fn is_found(&self, node: u16) -> bool {
        self.nodes[usize::from(node)].found
    }

    /// Whether the presence of an object at a node is kept.
    pub fn is_noted(&self, node: u16) -> bool {
        self.nodes[usize::from(node)].noted
    }

    /// Paths at which the presence of an object is kept, in the order of declaration.
    pub(super) fn noted(&self) -> impl Iterator<Item = &[String]> {
        self.nodes.iter().filter(|node| node.noted).map(|node| &node.path[..])
    }

    /// Whether something below a node is wanted.
    pub fn leads_on(&self, node: u16) -> bool {
        !self.nodes[usize::from(node)].members.is_empty()
    }

    /// Rank among all nodes in the order of paths: a node precedes those below it, and these precede its siblings.
    pub fn rank(&self, node: u16) -> u16 {
        self.nodes[usize::from(node)].rank
    }

    /// The nodes from the object (excluded) to this one (last).
    pub fn lineage(&self, node: u16) -> &[u16] {
        &self.nodes[usize::from(node)].lineage
    }

    /// Name of a member.
    pub fn name(&self, node: u16) -> &str {
        self.nodes[usize::from(node)].path.last().map_or("", String::as_str)
    }
}

fn length(name: &str) -> u64 {
    1 << (name.len() % 64)
}

/// Length, first and last byte of a name: a filter before the comparison.
fn mark(name: &str) -> u32 {
    let end = |byte: Option<&u8>| u32::from(byte.copied().unwrap_or(0));
    let bytes = name.as_bytes();
    (bytes.len() as u32) << 16 | end(bytes.first()) << 8 | end(bytes.last())
}

/// The kept parts of a value, as a tree over the declared paths of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Keep all of it.
    pub whole: bool,
    /// Kept parts of each element.
    pub each: Option<Box<Cut>>,
    /// Kept parts of each member.
    pub members: BTreeMap<String, Cut>,
}

impl Cut {
    pub(super) fn keep(&mut self, steps: &[Step]) {
        match steps.first() {
            // A text that holds JSON is kept whole.
            None | Some(Step::Json) => self.whole = true,
            Some(Step::Key) => {}
            Some(Step::Each) => self.each.get_or_insert_default().keep(&steps[1..]),
            Some(Step::Member(name)) => self.members.entry(name.clone()).or_default().keep(&steps[1..]),
        }
        // Named members together with every element: keep all.
        self.whole |= self.each.is_some() && !self.members.is_empty();
    }

    /// Kept parts of a member.
    pub fn member(&self, name: &str) -> Option<&Cut> {
        if self.whole {
            return Some(self);
        }
        self.members.get(name).or(self.each.as_deref())
    }

    /// Kept parts of an element.
    pub fn element(&self) -> Option<&Cut> {
        if self.whole { Some(self) } else { self.each.as_deref() }
    }
}
