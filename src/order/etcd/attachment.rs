//! Attachments of keys to leases, as far as requests show them.

use super::log::{self, Logged};
use crate::history::Symbol;
use crate::history::etcd::{Recording, Request, Span, Step, Txn};
use rustc_hash::{FxHashMap, FxHashSet};

/// The current attachments, indexed both ways.
#[derive(Default)]
pub(super) struct Attachments {
    /// The attachment of each key.
    pub of_key: FxHashMap<Symbol, Attached>,
    /// The keys that are known to be attached to each lease.
    pub keys: FxHashMap<i64, FxHashSet<Symbol>>,
}

/// The attachment of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Attached {
    /// A lease.
    To(i64),
    /// Unknown, because client records of transactions lack leases.
    Unknown,
}

impl Attachments {
    /// Sets or removes the attachment of a key.
    pub fn set(&mut self, key: Symbol, attached: Option<Attached>) {
        if let Some(Attached::To(lease)) = self.of_key.remove(&key)
            && let Some(keys) = self.keys.get_mut(&lease)
        {
            keys.remove(&key);
        }
        if let Some(attached) = attached {
            self.of_key.insert(key, attached);
            if let Attached::To(lease) = attached {
                self.keys.entry(lease).or_default().insert(key);
            }
        }
    }

    /// Whether these keys can be exactly those that end with a lease.
    pub fn ends(&self, lease: i64, keys: &[Symbol]) -> bool {
        let attached = self.keys.get(&lease);
        let fits = |key: &Symbol| match self.of_key.get(key) {
            Some(Attached::To(other)) => *other == lease,
            Some(Attached::Unknown) => true,
            None => false,
        };
        keys.iter().all(fits) && attached.is_none_or(|attached| attached.iter().all(|key| keys.contains(key)))
    }
}

/// The attachment of a key that a transaction puts. `success`: whether its conditions were true, if known.
pub(super) fn attached_by(recording: &Recording, txn: Txn, success: Option<bool>, key: Symbol) -> Option<Attached> {
    let last = |way: Span| {
        let mut attached = attaches(recording, txn, way, false).rev();
        attached.find_map(|(put, attached)| (put == key).then_some(attached))
    };
    chosen(success, || last(txn.success), || last(txn.failure))
}

/// The attachments of all keys of a transaction, indexed because there may be many.
pub(super) struct AttachedBy {
    success: Option<bool>,
    /// By branch, the final attachment of each key.
    ways: [FxHashMap<Symbol, Option<Attached>>; 2],
}

impl AttachedBy {
    pub fn of(recording: &Recording, txn: Txn, success: Option<bool>) -> AttachedBy {
        let ways = [txn.success, txn.failure].map(|way| attaches(recording, txn, way, false).collect());
        AttachedBy { success, ways }
    }

    /// The attachments by the transaction of a log entry, like [`logged_txn`].
    /// `success`: whether its conditions were true, if known.
    pub fn logged(recording: &Recording, entry: Option<Logged>, success: Option<bool>) -> Option<AttachedBy> {
        let txn = logged_txn(recording, entry)?;
        let ways = [txn.success, txn.failure].map(|way| attaches(recording, txn, way, true).collect());
        let success = if txn.conditions.len == 0 { Some(true) } else { success };
        Some(AttachedBy { success, ways })
    }

    pub fn get(&self, key: Symbol) -> Option<Attached> {
        let last = |way: usize| self.ways[way].get(&key).copied();
        chosen(self.success, || last(0), || last(1))
    }
}

/// The transaction of a log entry; `None` if its member did not know it to be committed.
pub(super) fn logged_txn(recording: &Recording, entry: Option<Logged>) -> Option<Txn> {
    let logged = entry.filter(|entry| log::is_committed(recording, *entry))?;
    match log::entry(recording, logged)?.request {
        Request::Txn(txn) => Some(txn),
        _ => None,
    }
}

/// The keys that one branch of a transaction puts, with their attachments in order. Logs record every lease. Records of clients
/// have the lease of a put, and not those of the puts of a transaction.
fn attaches(
    recording: &Recording,
    txn: Txn,
    way: Span,
    is_logged: bool,
) -> impl DoubleEndedIterator<Item = (Symbol, Option<Attached>)> {
    let plain = is_logged || txn.conditions.len == 0 && txn.failure.len == 0 && txn.success.len == 1;
    way.of(&recording.requests.steps).iter().filter_map(move |step| match *step {
        // It keeps the previous attachment.
        Step::Put { key, keeps_lease: true, .. } => Some((key, Some(Attached::Unknown))),
        Step::Put { key, lease: 0, .. } => Some((key, (!plain).then_some(Attached::Unknown))),
        Step::Put { key, lease, .. } => Some((key, Some(Attached::To(lease)))),
        _ => None,
    })
}

/// The attachment of a key, given those of both branches.
fn chosen(
    success: Option<bool>,
    one: impl FnOnce() -> Option<Option<Attached>>,
    other: impl FnOnce() -> Option<Option<Attached>>,
) -> Option<Attached> {
    match success {
        Some(true) => one(),
        Some(false) => other(),
        None => match (one(), other()) {
            (Some(one), Some(other)) if one != other => None,
            (one, other) => one.or(other),
        },
    }
    .unwrap_or(Some(Attached::Unknown))
}
