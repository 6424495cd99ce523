//! What happened before what: vector clocks over sessions, and the writers of each key by session.

use super::observed::{Node, Observed};
use super::transactions::Key;
use crate::order::graph::Graph;

/// Numbers in all vector clocks, at most: 1 GiB.
const CLOCKS: u64 = 1 << 28;

/// A writer of a key: its session, its place there, and its number.
type Writer = (u32, u32, Node);

/// The transactions that happened before each transaction.
pub struct Causality {
    /// By transaction and session, how many transactions of the session happened before.
    clocks: Vec<u32>,
    sessions: usize,
    /// By transaction, its session and its place there.
    place: Vec<(u32, u32)>,
    /// By key, its writers by session and place.
    writers: Vec<Vec<Writer>>,
}

impl Causality {
    /// The clocks of a graph of all that happens before; `None` if it has a cycle. An error says why they are not computed.
    pub fn of(
        graph: &Graph,
        observed: &Observed,
        sessions: &[Vec<Node>],
        place: &[(u32, u32)],
    ) -> Result<Option<Causality>, String> {
        let nodes = observed.begin as usize;
        if nodes as u64 * sessions.len() as u64 > CLOCKS {
            let count = sessions.len();
            return Err(format!("causality of {nodes} transactions in {count} sessions needs too much memory"));
        }
        let mut open = vec![0u32; nodes + 1];
        (0..=observed.begin).flat_map(|node| graph.from(node)).for_each(|(to, _)| open[to as usize] += 1);
        let mut ready: Vec<Node> = (0..=observed.begin).filter(|node| open[*node as usize] == 0).collect();
        let mut clocks = vec![0u32; nodes * sessions.len()];
        let mut done = 0;
        while let Some(node) = ready.pop() {
            done += 1;
            for (to, _) in graph.from(node) {
                if node != observed.begin {
                    let (from, into) = (node as usize * sessions.len(), to as usize * sessions.len());
                    for at in 0..sessions.len() {
                        clocks[into + at] = clocks[into + at].max(clocks[from + at]);
                    }
                    let (session, place) = place[node as usize];
                    let own = into + session as usize;
                    clocks[own] = clocks[own].max(place + 1);
                }
                open[to as usize] -= 1;
                if open[to as usize] == 0 {
                    ready.push(to);
                }
            }
        }
        if done <= nodes {
            return Ok(None);
        }
        let mut writers: Vec<Vec<Writer>> = Vec::new();
        for (number, session) in (0..).zip(sessions) {
            for (at, node) in (0..).zip(session) {
                for key in observed.writes(*node) {
                    let key = *key as usize;
                    writers.resize_with(writers.len().max(key + 1), Vec::new);
                    writers[key].push((number, at, *node));
                }
            }
        }
        Ok(Some(Causality { clocks, sessions: sessions.len(), place: place.to_vec(), writers }))
    }

    /// How many transactions of a session happened before one.
    fn through(&self, node: Node, session: u32) -> u32 {
        self.clocks[node as usize * self.sessions + session as usize]
    }

    /// Whether one transaction happened before another one. Nothing happened before the begin.
    pub fn is_before(&self, first: Node, second: Node) -> bool {
        let (session, place) = self.place[first as usize];
        (second as usize) < self.clocks.len() / self.sessions.max(1) && self.through(second, session) > place
    }

    /// The writers of a key, each session by itself.
    fn by_session(&self, key: Key) -> impl Iterator<Item = &[Writer]> {
        self.writers.get(key as usize).map_or(&[][..], |all| all).chunk_by(|a, b| a.0 == b.0)
    }

    /// Visits, for each session, its last writer of a key that happened before a transaction.
    pub fn last_before(&self, node: Node, key: Key, visit: &mut dyn FnMut(Node)) {
        for of_session in self.by_session(key) {
            let known = self.through(node, of_session[0].0);
            let before = of_session.partition_point(|(_, place, _)| *place < known);
            before.checked_sub(1).into_iter().for_each(|last| visit(of_session[last].2));
        }
    }

    /// Visits, for each session, its first writer of a key after which a transaction happened not; `None`: the begin.
    pub fn first_after(&self, node: Option<Node>, key: Key, visit: &mut dyn FnMut(Node)) {
        for of_session in self.by_session(key) {
            let is_not_after = |writer: &Writer| node.is_some_and(|node| !self.is_before(node, writer.2));
            let first = of_session.partition_point(is_not_after);
            of_session.get(first).into_iter().for_each(|writer| visit(writer.2));
        }
    }
}
