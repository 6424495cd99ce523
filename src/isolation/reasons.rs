//! The reasons for dependencies, for those of one cycle.

use super::dependencies::Dependencies;
use super::observed::{Node, Observed, Read};
use super::transactions::Key;
use crate::order::graph::EdgeKind;
use rustc_hash::{FxHashMap, FxHashSet};

/// The reason for an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// The later one read what the earlier one wrote.
    Read(Key),
    /// A list shows the elements of both, in this order.
    Order(Key),
    /// A list shows the element of the earlier one, and none shows that of the later one.
    Unseen(Key),
    /// A transaction read the key as the later one wrote it, and had to see the earlier one.
    Seen {
        /// That transaction.
        reader: Node,
        /// The key.
        key: Key,
        /// Whether it read what the earlier one wrote. Otherwise that happened before it.
        is_read: bool,
    },
    /// The earlier one read a version of the key that the later one replaced.
    Replaced(Key),
    /// The earlier one read the whole list and appended to it, and no list shows the element of the later one.
    First(Key),
    /// Both read the same version of the key, and each replaced it.
    Updated(Key),
    /// The begin comes before every write.
    Begin,
    /// Both are of one session.
    Session,
    /// The earlier one ended before the later one began.
    Time,
}

/// Finds reasons. It is made for a cycle, since it reads the whole history once.
pub struct Reasons<'d> {
    dependencies: &'d Dependencies<'d>,
    observed: &'d Observed,
    /// Keys of lists, each with two writers that follow each other in it. The begin comes first.
    next: FxHashSet<(Key, Node, Node)>,
    /// By writer, those that read from it.
    readers: FxHashMap<Node, Vec<Node>>,
}

impl<'d> Reasons<'d> {
    pub fn of(dependencies: &'d Dependencies<'d>) -> Reasons<'d> {
        let observed = dependencies.observed;
        let (mut next, mut readers) = (FxHashSet::default(), FxHashMap::<Node, Vec<Node>>::default());
        for (key, chain) in (0..).zip(&observed.chains) {
            let earlier = [observed.begin].into_iter().chain(chain.iter().copied());
            next.extend(earlier.zip(chain.iter().copied()).map(|(from, to)| (key, from, to)));
        }
        for node in observed.nodes() {
            observed.reads(node).iter().for_each(|read| readers.entry(read.from).or_default().push(node));
        }
        Reasons { dependencies, observed, next, readers }
    }

    /// The reason for an edge.
    pub fn because(&self, (from, kind, to): (Node, EdgeKind, Node)) -> Because {
        match kind {
            EdgeKind::ReadsFrom => {
                let read = self.observed.reads(to).iter().find(|read| read.from == from);
                Because::Read(read.map_or(0, |read| read.key))
            }
            EdgeKind::AntiDependency => Because::Replaced(self.replaced(from, to)),
            EdgeKind::Version if from == self.observed.begin => Because::Begin,
            EdgeKind::Program => Because::Session,
            EdgeKind::RealTime => Because::Time,
            _ => match self.observed.writes(to).iter().find(|key| self.next.contains(&(**key, from, to))) {
                Some(key) => Because::Order(*key),
                None => {
                    let known = self.unseen(from, to).or_else(|| self.updated(from, to));
                    known.or_else(|| self.first(from, to)).unwrap_or_else(|| self.seen(from, to))
                }
            },
        }
    }

    /// The key of which a transaction read a version that another one replaced.
    fn replaced(&self, reader: Node, later: Node) -> Key {
        let reads = || self.observed.reads(reader).iter().filter(|read| read.from != later);
        let follows = |read: &&Read| {
            self.next.contains(&(read.key, read.from, later)) || self.is_last(read.from, read.key, later)
        };
        let wrote = |read: &&Read| self.observed.wrote(later, read.key);
        reads().find(follows).or_else(|| reads().find(wrote)).map_or(0, |read| read.key)
    }

    /// Whether a transaction wrote the last element of a list that a read shows, and another one an element that none shows.
    fn is_last(&self, writer: Node, key: Key, unseen: Node) -> bool {
        let last = |chain: &Vec<Node>| chain.last().copied().unwrap_or(self.observed.begin) == writer;
        self.observed.chains.get(key as usize).is_some_and(last) && self.observed.unseen[key as usize].contains(&unseen)
    }

    fn unseen(&self, from: Node, to: Node) -> Option<Because> {
        let keys = self.observed.writes(to).iter();
        keys.copied().find(|key| self.is_last(from, *key, to)).map(Because::Unseen)
    }

    fn updated(&self, from: Node, to: Node) -> Option<Because> {
        let updates = |node: Node| {
            let reads = self.observed.reads(node).iter().copied();
            reads.filter(move |read| self.observed.wrote(node, read.key))
        };
        let same = |read: &Read| updates(to).any(|other| (other.key, other.from) == (read.key, read.from));
        updates(from).find(same).map(|read| Because::Updated(read.key))
    }

    fn first(&self, from: Node, to: Node) -> Option<Because> {
        let mut reads = self.observed.reads(from).iter().filter(|read| self.observed.wrote(from, read.key));
        reads.find(|read| self.is_last(read.from, read.key, to)).map(|read| Because::First(read.key))
    }

    /// The reader that had to see one write and read the other one.
    fn seen(&self, seen: Node, read: Node) -> Because {
        let readers = self.readers.get(&read).map_or(&[][..], |readers| readers);
        let key = |node: Node| {
            let reads = self.observed.reads(node).iter();
            let is_one = |other: &&Read| other.from == read && node != seen && self.observed.wrote(seen, other.key);
            reads.clone().find(is_one).map(|read| (node, read.key))
        };
        let sees = |node: &Node| self.observed.reads(*node).iter().any(|other| other.from == seen);
        let follows = |node: &Node| {
            let place = &self.dependencies.place;
            let ((session, at), (of_seen, before)) = (place[*node as usize], place[seen as usize]);
            session == of_seen && before < at
        };
        let direct = readers.iter().copied().filter(sees).find_map(key);
        let by_session = || readers.iter().copied().filter(follows).find_map(key);
        let found = direct.or_else(by_session).or_else(|| readers.iter().copied().find_map(key));
        let is_read = direct.is_some();
        found.map_or(Because::Begin, |(reader, key)| Because::Seen { reader, key, is_read })
    }
}
