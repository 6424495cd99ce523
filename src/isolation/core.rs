//! The transactions of which no order of commits exists, without those that are not needed for that.

use super::observed::{Node, Observed};
use super::transactions::{Key, Outcome, Step, Transactions};
use rustc_hash::FxHashSet;

/// Smaller sets of transactions that are tried, at most.
const TRIES: usize = 2_000;

/// A transaction read what another one wrote. A third one wrote the key too, so it comes before the writer, or after the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The reader.
    pub reader: Node,
    /// The writer of what it read.
    pub writer: Node,
    /// The third one.
    pub other: Node,
    /// The key.
    pub key: Key,
}

/// Few transactions that have no order by themselves.
///
/// An order of all transactions is one of any subset: a read of what another member wrote stays a read of the last write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoOrder {
    /// The transactions.
    pub transactions: Vec<Node>,
    /// Readers, each with the transaction that wrote what it read, and the key.
    pub reads: Vec<(Node, Node, Key)>,
    /// The choices that no order makes.
    pub choices: Vec<Choice>,
}

impl NoOrder {
    /// Reduces transactions that have no order. The caller decides that of fewer ones.
    pub(super) fn of(history: &Transactions, has_no_order: impl Fn(&Transactions) -> bool) -> NoOrder {
        let mut nodes: Vec<Node> = Observed::of(history).nodes().collect();
        let (mut size, mut tries) = (nodes.len().div_ceil(2), 0);
        while size > 0 && tries < TRIES {
            let mut at = 0;
            while at < nodes.len() && tries < TRIES {
                tries += 1;
                let mut fewer = nodes.clone();
                fewer.drain(at..(at + size).min(nodes.len()));
                if has_no_order(&part(history, &fewer)) {
                    nodes = fewer;
                } else {
                    at += size;
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        NoOrder::told(history, nodes)
    }

    fn told(history: &Transactions, transactions: Vec<Node>) -> NoOrder {
        let part = part(history, &transactions);
        let observed = Observed::of(&part);
        // The begin of the part is that of the whole.
        let number = |node: Node| transactions.get(node as usize).copied().unwrap_or(history.len());
        let (mut reads, mut choices) = (Vec::new(), Vec::new());
        for reader in observed.nodes() {
            for read in observed.reads(reader) {
                if read.from != observed.begin {
                    reads.push((number(reader), number(read.from), read.key));
                }
                let others = observed.nodes().filter(|other| *other != reader && *other != read.from);
                choices.extend(others.filter(|other| observed.wrote(*other, read.key)).map(|other| Choice {
                    reader: number(reader),
                    writer: number(read.from),
                    other: number(other),
                    key: read.key,
                }));
            }
        }
        NoOrder { transactions, reads, choices }
    }
}

/// Some transactions of a history. Reads of what the others wrote are left out.
pub(super) fn part(history: &Transactions, nodes: &[Node]) -> Transactions {
    let mut written: FxHashSet<(Key, u32)> = FxHashSet::default();
    for step in nodes.iter().flat_map(|node| history.steps(*node)) {
        if let Step::Write(key, value) = step {
            written.insert((*key, *value));
        }
    }
    let mut part = Transactions::default();
    for node in nodes {
        let is_kept = |step: &&Step| match step {
            Step::Read(key, Some(value)) => written.contains(&(*key, *value)),
            _ => true,
        };
        let steps: Vec<Step> = history.steps(*node).iter().filter(is_kept).cloned().collect();
        let outcome = match history.outcome(*node) {
            // Its writes were seen, perhaps by a transaction that is left out.
            Outcome::Unknown => Outcome::Committed,
            outcome => outcome,
        };
        let times = (!history.is_timeless()).then(|| history.times(*node));
        part.push(history.session(*node), times, outcome, steps);
    }
    part
}
