//! Dependencies between transactions: which must come before which at a level. Input: what the answers show. Output: a graph of
//! edges with kinds, each with its reason.
//!
//! Where version orders are not given, a level itself orders writes: if a transaction sees a write of a key, then what else it
//! must see of that key came before. Biswas and Enea (OOPSLA 2019) show that a history has one of the levels up to causality if
//! and only if the graph with these edges is acyclic. Møldrup and Pavlogiannis (AWDIT, PLDI 2025) show that few edges suffice.

use super::causality::Causality;
use super::level::{Isolation, Level, Respects};
use super::observed::{Node, Observed, Read};
use super::transactions::{Key, Outcome, Transactions};
use crate::order::graph::{EdgeKind, Edges, Graph};
use rustc_hash::FxHashMap;

/// Rounds of conclusions from conclusions, at most.
const ROUNDS: usize = 8;

/// Anti-dependencies of registers, at most. A search for an order does without them.
const REPLACED: usize = 8_000_000;

/// The dependencies of a history.
pub struct Dependencies<'h> {
    pub history: &'h Transactions,
    pub observed: &'h Observed,
    /// By session, its committed transactions.
    sessions: Vec<Vec<Node>>,
    /// By transaction, its session and its place there.
    pub(super) place: Vec<(u32, u32)>,
}

impl<'h> Dependencies<'h> {
    pub fn of(history: &'h Transactions, observed: &'h Observed) -> Dependencies<'h> {
        let mut sessions = vec![Vec::new(); history.sessions() as usize];
        let mut place = vec![(0, 0); history.len() as usize + 1];
        for node in observed.nodes() {
            let mut session = history.session(node);
            // A transaction without an answer may be committed after the next ones of its session.
            if history.outcome(node) == Outcome::Unknown {
                session = sessions.len() as u32;
                sessions.push(Vec::new());
            }
            place[node as usize] = (session, sessions[session as usize].len() as u32);
            sessions[session as usize].push(node);
        }
        Dependencies { history, observed, sessions, place }
    }

    fn edges(&self) -> Edges {
        Edges::new(self.observed.begin + 1, usize::MAX)
    }

    /// Every dependency of a level; an error says why none can be told. Anti-dependencies are there only with version orders.
    pub fn graph(&self, level: Level) -> Result<Graph, String> {
        let mut edges = self.edges();
        self.add_versions(&mut edges);
        if level.isolation > Isolation::ReadUncommitted {
            self.add_reads(&mut edges);
        }
        if level.respects >= Respects::Sessions {
            self.add_sessions(&mut edges);
        }
        if level.respects == Respects::RealTime {
            self.add_times(&mut edges);
        }
        if !matches!(level.isolation, Isolation::Prefix) && level.isolation >= Isolation::ParallelSnapshot {
            self.add_updates(&mut edges);
        }
        match level.isolation {
            Isolation::ReadUncommitted | Isolation::ReadCommitted => {}
            Isolation::MonotonicAtomicView => self.add_views(&mut edges, true),
            Isolation::ReadAtomic => self.add_atomic(&mut edges, level.respects),
            Isolation::Causal => {
                let causality = self.causality(level.respects)?;
                causality.iter().for_each(|causality| self.add_causal(&mut edges, causality));
            }
            _ if self.observed.has_orders => self.add_replaced(&mut edges),
            _ => {
                // With too many sessions for clocks, the search has fewer dependencies.
                let clocks = (level.respects > Respects::Dependencies).then(|| self.causality(level.respects).ok());
                let causality = clocks.flatten().flatten();
                match &causality {
                    Some(causality) => self.add_causal(&mut edges, causality),
                    None => self.add_atomic(&mut edges, level.respects),
                }
                let graph = self.with_replaced(&Graph::build(edges), causality.as_ref());
                let saturates = level.isolation == Isolation::Serializable && causality.is_some();
                return Ok(if saturates { self.saturated(graph) } else { graph });
            }
        }
        Ok(Graph::build(edges))
    }

    /// A graph of serializable transactions with what follows from it: whatever comes before a reader and wrote its key comes
    /// before the writer that it read, and whatever comes after that writer comes after the reader.
    fn saturated(&self, mut graph: Graph) -> Graph {
        for _ in 0..ROUNDS {
            let causality = Causality::of(&graph, self.observed, &self.sessions, &self.place);
            let Ok(Some(causality)) = causality else { break };
            let mut edges = self.copy(&graph);
            self.add_causal(&mut edges, &causality);
            let before = graph.edges();
            graph = self.with_replaced(&Graph::build(edges), Some(&causality));
            if graph.edges() == before {
                break;
            }
        }
        graph
    }

    fn copy(&self, graph: &Graph) -> Edges {
        let mut edges = self.edges();
        for node in 0..graph.nodes() {
            graph.from(node).for_each(|(to, kinds)| edges.add(node, to, kinds));
        }
        edges
    }

    /// Anti-dependencies of registers: a write that comes after another one comes after the reads of that one.
    fn with_replaced(&self, graph: &Graph, causality: Option<&Causality>) -> Graph {
        let mut edges = self.copy(graph);
        let mut readers: FxHashMap<(Key, Node), Vec<Node>> = FxHashMap::default();
        for node in self.observed.nodes() {
            for read in self.observed.reads(node) {
                readers.entry((read.key, read.from)).or_default().push(node);
            }
        }
        let most = edges.len() + REPLACED;
        let mut add = |(key, writer): (Key, Node), later: Node| {
            for reader in readers.get(&(key, writer)).into_iter().flatten() {
                let is_known = causality.is_some_and(|causality| causality.is_before(*reader, later));
                if edges.len() < most && !is_known {
                    edges.add(*reader, later, EdgeKind::AntiDependency);
                }
            }
        };
        match causality {
            // Later writers of a session follow its first one.
            Some(causality) => {
                for (key, writer) in readers.keys() {
                    let of = (*writer != self.observed.begin).then_some(*writer);
                    causality.first_after(of, *key, &mut |later| add((*key, *writer), later));
                }
            }
            None => {
                for later in self.observed.nodes() {
                    self.observed.writes(later).iter().for_each(|key| add((*key, self.observed.begin), later));
                }
            }
        }
        for writer in self.observed.nodes() {
            for (later, _) in graph.from(writer).filter(|(_, kinds)| kinds.has(EdgeKind::Version)) {
                let both = self.observed.writes(writer).iter().filter(|key| self.observed.wrote(later, **key));
                both.for_each(|key| add((*key, writer), later));
            }
        }
        Graph::build(edges)
    }

    /// The orders of lists.
    fn add_versions(&self, edges: &mut Edges) {
        for (chain, unseen) in self.observed.chains.iter().zip(&self.observed.unseen) {
            for pair in chain.windows(2) {
                edges.add(pair[0], pair[1], EdgeKind::Version);
            }
            let last = chain.last().copied().unwrap_or(self.observed.begin);
            unseen.iter().for_each(|node| edges.add(last, *node, EdgeKind::Version));
        }
    }

    fn add_reads(&self, edges: &mut Edges) {
        for node in self.observed.nodes() {
            for read in self.observed.reads(node) {
                edges.add(read.from, node, EdgeKind::ReadsFrom);
            }
        }
    }

    fn add_sessions(&self, edges: &mut Edges) {
        for pair in self.sessions.iter().flat_map(|session| session.windows(2)) {
            edges.add(pair[0], pair[1], EdgeKind::Program);
        }
    }

    /// Real time, without the pairs that another transaction lies between.
    fn add_times(&self, edges: &mut Edges) {
        let times = |node: Node| self.history.times(node);
        let mut by_begin: Vec<Node> = self.observed.nodes().collect();
        let mut by_end: Vec<Node> = by_begin.iter().copied().filter(|node| times(*node).1 < i64::MAX).collect();
        by_begin.sort_unstable_by_key(|node| (times(*node).0, *node));
        by_end.sort_unstable_by_key(|node| (times(*node).1, *node));
        // Whatever ended before this begin precedes a transaction that ended too.
        let (mut ended, mut first, mut latest_begin) = (0, 0, i64::MIN);
        for node in by_begin {
            let begin = times(node).0;
            while let Some(last) = by_end.get(ended).filter(|last| times(**last).1 < begin) {
                latest_begin = latest_begin.max(times(*last).0);
                ended += 1;
            }
            while first < ended && times(by_end[first]).1 < latest_begin {
                first += 1;
            }
            by_end[first..ended].iter().for_each(|earlier| edges.add(*earlier, node, EdgeKind::RealTime));
        }
    }

    /// Anti-dependencies: a transaction read a version that another one replaced.
    fn add_replaced(&self, edges: &mut Edges) {
        let mut next: FxHashMap<(Key, Node), Node> = FxHashMap::default();
        for (key, chain) in (0..).zip(&self.observed.chains) {
            let from_begin = [self.observed.begin].into_iter().chain(chain.iter().copied());
            // A writer that is in the chain twice is in a cycle of versions.
            next.extend(from_begin.zip(chain.iter().copied()).map(|(from, to)| ((key, from), to)));
        }
        for node in self.observed.nodes() {
            for read in self.observed.reads(node) {
                match next.get(&(read.key, read.from)) {
                    Some(later) => edges.add(node, *later, EdgeKind::AntiDependency),
                    None => {
                        let unseen = self.observed.unseen.get(read.key as usize).into_iter().flatten();
                        unseen.for_each(|later| edges.add(node, *later, EdgeKind::AntiDependency));
                    }
                }
            }
        }
    }

    /// A transaction that read a version and replaced it follows it at once, so it comes before all others that did the same, and
    /// before all writers of list elements that no read shows. Two such transactions exclude each other: a lost update.
    fn add_updates(&self, edges: &mut Edges) {
        let mut updates: FxHashMap<(Key, Node), Vec<Node>> = FxHashMap::default();
        for node in self.observed.nodes() {
            for read in self.observed.reads(node).iter().filter(|read| self.observed.wrote(node, read.key)) {
                let same = updates.entry((read.key, read.from)).or_default();
                if same.last() != Some(&node) {
                    same.push(node);
                }
            }
        }
        for ((key, from), nodes) in updates {
            let last = self.observed.chains.get(key as usize).map(|chain| chain.last().copied());
            if last.is_some_and(|last| last.unwrap_or(self.observed.begin) == from) {
                for node in &nodes {
                    let unseen = self.observed.unseen[key as usize].iter();
                    unseen.for_each(|other| edges.add(*node, *other, EdgeKind::Version));
                }
            }
            for pair in nodes.windows(2) {
                edges.add(pair[0], pair[1], EdgeKind::Version);
                edges.add(pair[1], pair[0], EdgeKind::Version);
            }
        }
    }

    /// The appends that no read shows, in this order of the transactions: one of the possible orders.
    pub fn with_unseen(&self, graph: &Graph, place: impl Fn(Node) -> u32) -> Graph {
        let mut edges = self.copy(graph);
        for unseen in self.observed.unseen.iter().filter(|unseen| unseen.len() > 1) {
            let mut unseen = unseen.clone();
            unseen.sort_unstable_by_key(|node| (place(*node), self.history.times(*node).1, *node));
            unseen.windows(2).for_each(|pair| edges.add(pair[0], pair[1], EdgeKind::Version));
        }
        Graph::build(edges)
    }

    /// What a transaction read from one writer orders that writer before the writers of its later reads, or of all its reads.
    fn add_views(&self, edges: &mut Edges, is_ordered: bool) {
        let mut reads: Vec<Read> = Vec::new();
        let mut sources: Vec<(Node, u32)> = Vec::new();
        for node in self.observed.nodes() {
            reads.clear();
            reads.extend(self.observed.reads(node));
            sources.clear();
            sources.extend(reads.iter().map(|read| (read.from, read.at)));
            sources.sort_unstable();
            sources.dedup_by_key(|(from, _)| *from);
            reads.sort_unstable_by_key(|read| (read.key, read.at));
            for &(source, first) in &sources {
                self.for_each_common(source, &reads, &mut |read| {
                    if read.from != source && (!is_ordered || read.at > first) {
                        self.add_seen(edges, source, read.from);
                    }
                });
            }
        }
    }

    /// The reads, sorted by key, of keys that another transaction wrote: by the shorter of the two lists.
    fn for_each_common(&self, source: Node, reads: &[Read], visit: &mut dyn FnMut(&Read)) {
        let writes = self.observed.writes(source);
        if source == self.observed.begin {
            return;
        }
        if writes.len() < reads.len() {
            for key in writes {
                let from = reads.partition_point(|read| read.key < *key);
                reads[from..].iter().take_while(|read| read.key == *key).for_each(&mut *visit);
            }
        } else {
            reads.iter().filter(|read| writes.binary_search(&read.key).is_ok()).for_each(visit);
        }
    }

    /// A write that a transaction saw comes before the write that it read.
    fn add_seen(&self, edges: &mut Edges, seen: Node, read: Node) {
        edges.add(seen, read, EdgeKind::Version);
        if read == self.observed.begin {
            edges.add(read, seen, EdgeKind::Version);
        }
    }

    fn add_atomic(&self, edges: &mut Edges, respects: Respects) {
        self.add_views(edges, false);
        if respects == Respects::Dependencies {
            return;
        }
        let mut last: FxHashMap<Key, Node> = FxHashMap::default();
        for session in &self.sessions {
            last.clear();
            for node in session {
                for read in self.observed.reads(*node) {
                    if let Some(before) = last.get(&read.key).filter(|before| **before != read.from) {
                        self.add_seen(edges, *before, read.from);
                    }
                }
                last.extend(self.observed.writes(*node).iter().map(|key| (*key, *node)));
            }
        }
    }

    /// All writes that happened before a read come before the write that it shows.
    fn add_causal(&self, edges: &mut Edges, causality: &Causality) {
        for node in self.observed.nodes() {
            for read in self.observed.reads(node) {
                causality.last_before(node, read.key, &mut |last| {
                    if last != read.from && last != node && !causality.is_before(last, read.from) {
                        self.add_seen(edges, last, read.from);
                    }
                });
            }
        }
    }

    /// Causality: reads and orders of sessions, and of real time if the level respects it; `None` if it has a cycle.
    fn causality(&self, respects: Respects) -> Result<Option<Causality>, String> {
        let mut edges = self.edges();
        self.add_reads(&mut edges);
        self.add_sessions(&mut edges);
        if respects == Respects::RealTime {
            self.add_times(&mut edges);
        }
        Causality::of(&Graph::build(edges), self.observed, &self.sessions, &self.place)
    }
}
