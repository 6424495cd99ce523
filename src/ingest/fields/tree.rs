//! Paths as trees: what the parser looks out for, and what is kept of a value that it found.

use super::path::Step;

/// The literal beginnings of all declared paths, whatever their resource. Node 0 is the object.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    members: Vec<(String, u16)>,
    /// A bit for each length of their names, modulo 64: most names that are met have another.
    lengths: u64,
    /// Whether the value here is kept as text.
    found: bool,
    /// Whether it is kept that there is an object here.
    noted: bool,
    /// Where it is in the object.
    path: Vec<String>,
}

impl Default for Tree {
    fn default() -> Self {
        Tree { nodes: vec![Node::default()] }
    }
}

impl Tree {
    /// The object itself.
    pub const ROOT: u16 = 0;

    /// Looks out for a member; where its shape counts, for the objects on the way to it too.
    pub(super) fn look_out_for(&mut self, literal: &[&str], shape: bool) {
        let mut at = usize::from(Tree::ROOT);
        for name in literal {
            self.nodes[at].noted |= shape && at != 0;
            let known = self.nodes[at].members.iter().find(|(member, _)| member == name).map(|(_, node)| *node);
            at = match known {
                Some(node) => usize::from(node),
                None => {
                    // More would be another kind of program; what does not fit is not kept, and rules say so.
                    let Ok(node) = u16::try_from(self.nodes.len()) else { return };
                    let path = self.nodes[at].path.iter().cloned().chain([(*name).to_owned()]).collect();
                    self.nodes.push(Node { path, ..Node::default() });
                    self.nodes[at].members.push(((*name).to_owned(), node));
                    self.nodes[at].lengths |= length(name);
                    usize::from(node)
                }
            };
        }
        self.nodes[at].found |= at != 0;
    }

    /// The node of a member, where something below it is wanted.
    pub fn member(&self, node: u16, name: &str) -> Option<u16> {
        let node = &self.nodes[usize::from(node)];
        if node.lengths & length(name) == 0 {
            return None;
        }
        node.members.iter().find(|(member, _)| member == name).map(|(_, node)| *node)
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

    /// The members that lead to a node.
    pub fn path(&self, node: u16) -> &[String] {
        &self.nodes[usize::from(node)].path
    }
}

fn length(name: &str) -> u64 {
    1 << (name.len() % 64)
}

/// What is kept of a value: a tree over the declared paths of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// All of it.
    pub whole: bool,
    /// Of each of its elements, this.
    pub each: Option<Box<Cut>>,
    /// Of these members, this.
    pub members: Vec<(String, Cut)>,
}

impl Cut {
    pub(super) fn keep(&mut self, steps: &[Step]) {
        match steps.first() {
            // The text that JSON stands in is kept as it is.
            None | Some(Step::Json) => self.whole = true,
            Some(Step::Key) => {}
            Some(Step::Each) => self.each.get_or_insert_default().keep(&steps[1..]),
            Some(Step::Member(name)) => {
                let at = self.members.iter().position(|(member, _)| member == name);
                let at = at.unwrap_or_else(|| {
                    self.members.push((name.clone(), Cut::default()));
                    self.members.len() - 1
                });
                self.members[at].1.keep(&steps[1..]);
            }
        }
        // One member by name and all of them: simply all.
        self.whole |= self.each.is_some() && !self.members.is_empty();
    }

    /// What is kept of a member.
    pub fn member(&self, name: &str) -> Option<&Cut> {
        if self.whole {
            return Some(self);
        }
        self.members.iter().find(|(member, _)| member == name).map(|(_, cut)| cut).or(self.each.as_deref())
    }

    /// What is kept of an element of a list.
    pub fn element(&self) -> Option<&Cut> {
        if self.whole { Some(self) } else { self.each.as_deref() }
    }
}
