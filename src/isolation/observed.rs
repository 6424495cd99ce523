//! What the answers show: which transaction wrote what another one read, and in which order lists were appended to. Input:
//! transactions. Output: reads, writes and version orders of the committed ones, and what no cycle is needed for to see.

use super::transactions::{Key, Outcome, Step, Transactions, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// A node of the graph: a transaction, or the begin, which wrote every key first.
pub type Node = u32;

/// A read of a version that another transaction wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The key.
    pub key: Key,
    /// The writer.
    pub from: Node,
    /// The place of the step in its transaction.
    pub at: u32,
}

/// A contradiction in the answers themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flaw {
    /// A read shows a write of an aborted transaction (G1a).
    Aborted,
    /// A read shows a write that its transaction replaced later (G1b).
    Intermediate,
    /// A read shows a value that no transaction wrote.
    Unwritten,
    /// Two reads show orders of one list of which neither begins the other.
    IncompatibleOrder,
    /// A list shows an element twice.
    Duplicate,
    /// A list shows what a transaction appended in another order, or with a gap.
    Reordered,
    /// A read shows a later write of its own transaction.
    Future,
    /// A read contradicts what its own transaction did before it.
    Internal,
}

/// A flaw, with its transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flawed {
    /// The kind.
    pub flaw: Flaw,
    /// The reader.
    pub reader: Node,
    /// The writer, or the reader of the other order; the reader itself if there is none.
    pub other: Node,
    /// The key.
    pub key: Key,
}

/// The last write of a value.
#[derive(Clone, Copy)]
struct Written {
    by: Node,
    /// Its number among the transaction's writes of the key.
    nth: u32,
    is_last: bool,
}

/// The committed transactions, as their answers show them.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The node of the begin. All smaller ones are transactions.
    pub begin: Node,
    /// By transaction: whether it was committed.
    pub committed: Vec<bool>,
    reads: Vec<Read>,
    first_read: Vec<u32>,
    writes: Vec<Key>,
    first_write: Vec<u32>,
    /// For each list, its writers in the order of their elements, as far as a read shows it.
    pub chains: Vec<Vec<Node>>,
    /// For each list, the writers of elements that no read shows. They come after its chain, in any order.
    pub unseen: Vec<Vec<Node>>,
    /// Whether version orders are those of lists; otherwise they are not known.
    pub has_orders: bool,
    /// The first flaws of each kind.
    pub flaws: Vec<Flawed>,
    /// A value that several transactions wrote, so that nobody knows which one a read saw.
    pub ambiguous: Option<Key>,
}

/// Flaws of one kind, at most.
const FLAWS: usize = 16;

impl Observed {
    /// Reads the answers.
    pub fn of(history: &Transactions) -> Observed {
        let begin = history.len();
        let mut observed = Observed { begin, ..Observed::default() };
        let (written, lists) = observed.written(history);
        observed.commit(history, &written);
        observed.read(history, &written);
        observed.order(history, &written, &lists);
        observed
    }

    /// The reads of a transaction, in order.
    pub fn reads(&self, node: Node) -> &[Read] {
        &self.reads[self.first_read[node as usize] as usize..self.first_read[node as usize + 1] as usize]
    }

    /// The keys that a transaction wrote, ascending.
    pub fn writes(&self, node: Node) -> &[Key] {
        &self.writes[self.first_write[node as usize] as usize..self.first_write[node as usize + 1] as usize]
    }

    /// Whether a transaction wrote a key. The begin wrote all.
    pub fn wrote(&self, node: Node, key: Key) -> bool {
        node == self.begin || self.writes(node).binary_search(&key).is_ok()
    }

    /// The committed transactions.
    pub fn nodes(&self) -> impl Iterator<Item = Node> + '_ {
        (0..self.begin).filter(|node| self.committed[*node as usize])
    }

    fn flaw(&mut self, flaw: Flaw, (reader, other): (Node, Node), key: Key) {
        if self.flaws.iter().filter(|known| known.flaw == flaw).count() < FLAWS {
            self.flaws.push(Flawed { flaw, reader, other, key });
        }
    }

    /// The writer of each value, and the keys of lists.
    fn written(&mut self, history: &Transactions) -> (FxHashMap<(Key, Value), Written>, FxHashSet<Key>) {
        let (mut written, mut lists) = (FxHashMap::default(), FxHashSet::default());
        let mut counts: FxHashMap<Key, (u32, u32)> = FxHashMap::default();
        for by in 0..self.begin {
            let steps = history.steps(by);
            counts.clear();
            for step in steps {
                if let Step::Write(key, _) | Step::Append(key, _) = step {
                    counts.entry(*key).or_insert((0, 0)).1 += 1;
                }
            }
            for step in steps {
                match *step {
                    Step::Write(key, value) | Step::Append(key, value) => {
                        let (nth, count) = counts.entry(key).or_default();
                        *nth += 1;
                        let write = Written { by, nth: *nth - 1, is_last: nth == count };
                        let replaced: Option<Written> = written.insert((key, value), write);
                        if replaced.is_some_and(|other| other.by != by || matches!(step, Step::Append(..))) {
                            self.ambiguous.get_or_insert(key);
                        }
                        if matches!(step, Step::Append(..)) {
                            lists.insert(key);
                        }
                    }
                    Step::List(key, _) => {
                        lists.insert(key);
                    }
                    Step::Read(..) => {}
                }
            }
        }
        (written, lists)
    }

    /// Decides which transactions were committed: those that say so, and the unanswered ones that a committed one saw.
    fn commit(&mut self, history: &Transactions, written: &FxHashMap<(Key, Value), Written>) {
        self.committed = (0..self.begin).map(|node| history.outcome(node) == Outcome::Committed).collect();
        let mut open: Vec<Node> = (0..self.begin).filter(|node| self.committed[*node as usize]).collect();
        while let Some(node) = open.pop() {
            // Nobody knows what an unanswered transaction read.
            if history.outcome(node) != Outcome::Committed {
                continue;
            }
            for step in history.steps(node) {
                let (key, values): (Key, &[Value]) = match step {
                    Step::Read(key, Some(value)) => (*key, std::slice::from_ref(value)),
                    Step::List(key, values) => (*key, values),
                    _ => continue,
                };
                for value in values {
                    let Some(by) = written.get(&(key, *value)).map(|written| written.by) else { continue };
                    if history.outcome(by) == Outcome::Unknown && !self.committed[by as usize] {
                        self.committed[by as usize] = true;
                    }
                }
            }
        }
    }

    /// The reads and writes of committed transactions, with the flaws of single reads.
    fn read(&mut self, history: &Transactions, written: &FxHashMap<(Key, Value), Written>) {
        let mut own: FxHashMap<Key, Vec<Value>> = FxHashMap::default();
        for node in 0..self.begin {
            self.first_read.push(self.reads.len() as u32);
            self.first_write.push(self.writes.len() as u32);
            if !self.committed[node as usize] {
                continue;
            }
            own.clear();
            let is_answered = history.outcome(node) == Outcome::Committed;
            for (at, step) in (0..).zip(history.steps(node)) {
                let key = step.key();
                let seen = match step {
                    Step::Write(_, value) | Step::Append(_, value) => {
                        own.entry(key).or_default().push(*value);
                        continue;
                    }
                    _ if !is_answered => continue,
                    Step::Read(_, value) => {
                        if let Some(last) = own.get(&key).and_then(|own| own.last()) {
                            if Some(last) != value.as_ref() {
                                self.flaw(Flaw::Internal, (node, node), key);
                            }
                            continue;
                        }
                        *value
                    }
                    Step::List(_, values) => {
                        let own = own.get(&key).map_or(&[][..], |own| own);
                        match values.strip_suffix(own) {
                            Some(before) => before.last().copied(),
                            // The list lacks its own elements, or others follow them.
                            None => {
                                if !own.iter().all(|value| values.contains(value)) {
                                    self.flaw(Flaw::Internal, (node, node), key);
                                }
                                values.last().copied()
                            }
                        }
                    }
                };
                let from = match seen {
                    None => self.begin,
                    Some(value) => match written.get(&(key, value)) {
                        None => {
                            self.flaw(Flaw::Unwritten, (node, node), key);
                            continue;
                        }
                        Some(written) if written.by == node => {
                            if !own.get(&key).is_some_and(|own| own.contains(&value)) {
                                self.flaw(Flaw::Future, (node, node), key);
                            }
                            continue;
                        }
                        Some(written) if !self.committed[written.by as usize] => {
                            self.flaw(Flaw::Aborted, (node, written.by), key);
                            continue;
                        }
                        Some(written) => {
                            if !written.is_last {
                                self.flaw(Flaw::Intermediate, (node, written.by), key);
                            }
                            written.by
                        }
                    },
                };
                self.reads.push(Read { key, from, at });
            }
            let from = self.first_write[node as usize] as usize;
            self.writes.extend(own.keys());
            self.writes[from..].sort_unstable();
        }
        // The begin has neither reads nor declared writes.
        (0..2).for_each(|_| self.first_read.push(self.reads.len() as u32));
        (0..2).for_each(|_| self.first_write.push(self.writes.len() as u32));
    }

    /// The orders of lists: each read shows the begin of one order.
    fn order(&mut self, history: &Transactions, written: &FxHashMap<(Key, Value), Written>, lists: &FxHashSet<Key>) {
        self.has_orders = !lists.is_empty();
        if !self.has_orders {
            return;
        }
        let keys = history.keys() as usize;
        let mut longest: Vec<Option<(Node, &[Value])>> = vec![None; keys];
        let mut reads: Vec<(Key, Node, &[Value])> = Vec::new();
        for node in self.nodes().filter(|node| history.outcome(*node) == Outcome::Committed) {
            for step in history.steps(node) {
                let Step::List(key, values) = step else { continue };
                reads.push((*key, node, values));
                let known = &mut longest[*key as usize];
                if known.is_none_or(|(_, known)| known.len() < values.len()) {
                    *known = Some((node, values));
                }
            }
        }
        let mut is_ordered = vec![true; keys];
        for (key, reader, values) in reads {
            let Some((other, whole)) = longest[key as usize] else { continue };
            if !whole.starts_with(values) {
                is_ordered[key as usize] = false;
                self.flaw(Flaw::IncompatibleOrder, (reader, other), key);
            }
        }
        self.chains = vec![Vec::new(); keys];
        self.unseen = vec![Vec::new(); keys];
        let mut seen: FxHashSet<Value> = FxHashSet::default();
        let mut in_chain: FxHashMap<(Key, Node), u32> = FxHashMap::default();
        for (key, known) in (0..).zip(&longest) {
            let Some((reader, values)) = known.filter(|_| is_ordered[key as usize]) else { continue };
            seen.clear();
            for value in values {
                if !seen.insert(*value) {
                    self.flaw(Flaw::Duplicate, (reader, reader), key);
                    continue;
                }
                match written.get(&(key, *value)) {
                    None => self.flaw(Flaw::Unwritten, (reader, reader), key),
                    Some(written) if !self.committed[written.by as usize] => {
                        self.flaw(Flaw::Aborted, (reader, written.by), key);
                    }
                    Some(written) => {
                        let shown = in_chain.entry((key, written.by)).or_default();
                        *shown += 1;
                        if *shown != written.nth + 1 {
                            self.flaw(Flaw::Reordered, (reader, written.by), key);
                        }
                        if self.chains[key as usize].last() != Some(&written.by) {
                            self.chains[key as usize].push(written.by);
                        }
                    }
                }
            }
        }
        for node in 0..self.begin {
            for key in self.writes(node).to_vec() {
                let is_append = |step: &&Step| matches!(step, Step::Append(of, _) if *of == key);
                let count = history.steps(node).iter().filter(is_append).count() as u32;
                // Whatever it appended that no read shows follows the chain, with its elements there or without.
                if is_ordered[key as usize] && in_chain.get(&(key, node)).is_none_or(|shown| *shown < count) {
                    self.unseen[key as usize].push(node);
                }
            }
        }
    }
}
