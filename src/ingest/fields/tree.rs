//! Paths as trees: what the parser looks out for, and what is kept of a value that it found.

use super::path::Step;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The literal beginnings of all declared paths, whatever their resource. Node 0 is the object.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    /// The nodes of the places at which narrow types begin, see [`Tree::place`].
    places: [Option<u16>; Place::ALL.len()],
    /// Wanted members that the narrow type of `metadata` has anyway.
    own: Vec<(u16, Own)>,
}

/// Where a narrow type stands in an object.
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

/// A member of `metadata` of which the narrow type keeps all that there is: it is not taken a second time on the way.
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
    /// `labels`: all of them, whichever are wanted.
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
    /// The members by name, where there are more than [`FEW`].
    by_name: FxHashMap<String, u16>,
    /// A bit for each length of their names, modulo 64: most names that are met have another.
    lengths: u64,
    /// Whether it is one of [`Tree::own`].
    own: bool,
    /// Whether the value here is kept as text.
    found: bool,
    /// Whether it is kept that there is an object here.
    noted: bool,
    /// Where it is in the object.
    path: Vec<String>,
    /// The nodes on the way there, itself the last.
    lineage: Vec<u16>,
    /// Its place among all nodes by path.
    rank: u16,
}

#[derive(Clone, Debug)]
struct Member {
    /// See [`mark`].
    mark: u32,
    name: String,
    node: u16,
}

/// Up to this number of members, a walk finds one faster than a hash of its name does.
const FEW: usize = 32;

impl Node {
    fn add(&mut self, name: &str, node: u16) {
        self.members.push(Member { mark: mark(name), name: name.to_owned(), node });
        self.lengths |= length(name);
        match self.members.len() {
            0..=FEW => {}
            // All that there are so far.
            count if count == FEW + 1 => {
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

    /// Looks out for a member; where its shape counts, for the objects on the way to it too.
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
                    // More would be another kind of program; what does not fit is not kept, and rules say so.
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

    /// Knows ranks and places again, after whatever was added.
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

    /// The node of a place, where something there is wanted.
    pub fn place(&self, place: Place) -> Option<u16> {
        self.places[place as usize]
    }

    /// The node of a member, where something below it is wanted.
    pub fn member(&self, node: u16, name: &str) -> Option<u16> {
        let node = &self.nodes[usize::from(node)];
        if node.lengths & length(name) == 0 {
            return None;
        }
        if node.members.len() > FEW {
            return node.by_name.get(name).copied();
        }
        let mark = mark(name);
        node.members.iter().find(|member| member.mark == mark && member.name == name).map(|member| member.node)
    }

    /// Wanted members that the narrow type of `metadata` has anyway.
    pub fn own(&self) -> &[(u16, Own)] {
        &self.own
    }

    /// Whether a node is one of them.
    pub fn is_own(&self, node: u16) -> bool {
        self.nodes[usize::from(node)].own
    }

    /// Whether the value of a node is kept as text. What is below it is inside that text.
    pub fn is_found(&self, node: u16) -> bool {
        self.nodes[usize::from(node)].found
    }

    /// Whether it is kept that there is an object at a node.
    pub fn is_noted(&self, node: u16) -> bool {
        self.nodes[usize::from(node)].noted
    }

    /// Where it is kept that there is an object, in the order in which it was declared.
    pub(super) fn noted(&self) -> impl Iterator<Item = &[String]> {
        self.nodes.iter().filter(|node| node.noted).map(|node| &node.path[..])
    }

    /// Whether anything below a node is wanted.
    pub fn leads_on(&self, node: u16) -> bool {
        !self.nodes[usize::from(node)].members.is_empty()
    }

    /// Its place among all nodes in the order of their paths: a node comes before those below it, which come before its siblings.
    pub fn rank(&self, node: u16) -> u16 {
        self.nodes[usize::from(node)].rank
    }

    /// The nodes on the way to a node from the object (which is not among them), itself the last.
    pub fn lineage(&self, node: u16) -> &[u16] {
        &self.nodes[usize::from(node)].lineage
    }

    /// The name of a member.
    pub fn name(&self, node: u16) -> &str {
        self.nodes[usize::from(node)].path.last().map_or("", String::as_str)
    }
}

fn length(name: &str) -> u64 {
    1 << (name.len() % 64)
}

/// The length and both ends of a name: two names seldom have all of them.
fn mark(name: &str) -> u32 {
    let end = |byte: Option<&u8>| u32::from(byte.copied().unwrap_or(0));
    let bytes = name.as_bytes();
    (bytes.len() as u32) << 16 | end(bytes.first()) << 8 | end(bytes.last())
}

/// What is kept of a value: a tree over the declared paths of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// All of it.
    pub whole: bool,
    /// Of each of its elements, this.
    pub each: Option<Box<Cut>>,
    /// Of these members, this.
    pub members: BTreeMap<String, Cut>,
}

impl Cut {
    pub(super) fn keep(&mut self, steps: &[Step]) {
        match steps.first() {
            // The text that JSON stands in is kept as it is.
            None | Some(Step::Json) => self.whole = true,
            Some(Step::Key) => {}
            Some(Step::Each) => self.each.get_or_insert_default().keep(&steps[1..]),
            Some(Step::Member(name)) => self.members.entry(name.clone()).or_default().keep(&steps[1..]),
        }
        // One member by name and all of them: simply all.
        self.whole |= self.each.is_some() && !self.members.is_empty();
    }

    /// What is kept of a member.
    pub fn member(&self, name: &str) -> Option<&Cut> {
        if self.whole {
            return Some(self);
        }
        self.members.get(name).or(self.each.as_deref())
    }

    /// What is kept of an element of a list.
    pub fn element(&self) -> Option<&Cut> {
        if self.whole { Some(self) } else { self.each.as_deref() }
    }
}
