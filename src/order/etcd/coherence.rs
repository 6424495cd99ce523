//! Consistency of a single read with itself: keys in order, as many as counted, and no more changes than revisions. No other
//! record is needed.
//!
//! Source: etcd `server/etcdserver/txn/range.go` (`executeRange`: keys come in the order of their bytes, and all counted keys are
//! shown, up to the limit), `server/storage/mvcc/index.go` (`Revisions`).

use crate::history::etcd::{Pair, Range, Recording};

/// A result that no read has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoherence {
    /// A key after a later one. Reads of the recorded suite request no other order; for steps of transactions the order is not
    /// recorded.
    Order {
        /// The key, as the index of a pair.
        pair: u32,
    },
    /// The count is below the number of found keys, negative, or above one for a single key.
    Count {
        /// The index of the result.
        result: u32,
    },
    /// Fewer keys were found than counted, although the limit allows more.
    Withheld {
        /// The index of the result.
        result: u32,
    },
    /// A key changed more often than there were revisions.
    Version {
        /// The key, as the index of a pair.
        pair: u32,
    },
}

/// The inconsistency of a read, and whether it holds whatever is not recorded. `is_told`: the whole request is recorded, as it is
/// for reads outside transactions.
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
    // Recordings do not keep the bytes of keys that are not text.
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
    // The limits of reads in transactions are not recorded, but every limit allows the first key.
    let sure = is_told || range.limit > 0;
    (sure || found == 0).then_some((Incoherence::Withheld { result: at }, sure))
}
