//! Whether what a read found agrees with itself: keys in their order, as many as are counted, and no more changes of one than there were
//! revisions. This takes neither another record nor T.
//!
//! Source: etcd `server/etcdserver/txn/range.go` (`executeRange`: keys come in the order of their bytes, and all that are counted are
//! shown, up to the limit), `server/storage/mvcc/index.go` (`Revisions`).

use crate::history::etcd::{Pair, Range, Recording};

/// What a read cannot have found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoherence {
    /// A key that stands behind a later one. The suite asks for no other order in reads; of steps of transactions it does not record one.
    Order {
        /// The key, as the index of a pair.
        pair: u32,
    },
    /// Fewer keys counted than found, fewer than none, or one key more than once.
    Count {
        /// The index of the result.
        result: u32,
    },
    /// Fewer keys found than counted, with room for more.
    Withheld {
        /// The index of the result.
        result: u32,
    },
    /// A key that changed more often than there were revisions.
    Version {
        /// The key, as the index of a pair.
        pair: u32,
    },
}

/// What is wrong with what a read found, and whether that is sure whatever was not recorded. `is_told`: all that was asked is recorded, as it
/// is of reads that are no step of a transaction.
pub(super) fn incoherence(recording: &Recording, range: Range, at: u32, is_told: bool) -> Option<(Incoherence, bool)> {
    let result = recording.results.get(at as usize)?;
    let pairs = result.pairs.of(&recording.pairs);
    let found = i64::from(result.pairs.len);
    let single = !range.keys.end.is_some();
    if result.count < found || single && result.count > 1 {
        return Some((Incoherence::Count { result: at }, true));
    }
    let too_often = |pair: &Pair| pair.revision > 0 && !(0..pair.revision).contains(&pair.version);
    if let Some(n) = pairs.iter().position(too_often) {
        return Some((Incoherence::Version { pair: result.pairs.start + n as u32 }, true));
    }
    // Of keys that are no text, reports do not keep the bytes.
    let text = |pair: &Pair| recording.texts.get(pair.key);
    let ordered = |pair: &[Pair]| {
        text(&pair[0]) <= text(&pair[1]) || pair.iter().any(|pair| text(pair).contains(char::REPLACEMENT_CHARACTER))
    };
    if let Some(n) = pairs.windows(2).position(|pair| !range.sorted && !ordered(pair)) {
        return Some((Incoherence::Order { pair: result.pairs.start + n as u32 + 1 }, is_told));
    }
    let limit = if range.limit > 0 { range.limit } else { i64::MAX };
    if range.count_only || found == result.count.min(limit) {
        return None;
    }
    // Transactions lose the limits of their reads, but a limit leaves a single key.
    let sure = is_told || range.limit > 0;
    (sure || single).then_some((Incoherence::Withheld { result: at }, sure))
}
