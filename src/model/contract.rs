//! The contract of reads: what a server promises for each form of request, as data with its sources. Input: an operation. Output:
//! its [`Promise`] and the row of the table.
//!
//! The table follows the API concepts page of kubernetes/website (its tables for get, list and watch), KEP-956 (bookmarks),
//! KEP-2340 (consistent reads from cache), KEP-2523 (`resourceVersionMatch`), KEP-3157 (`sendInitialEvents`), and the validation
//! of apimachinery `pkg/apis/meta/internalversion/validation`. If the page and the behaviour of servers differ, the row states
//! only what every server promises.

use crate::history::{Asked, DeliveryKind, History, Marks, Operation, Revision, Stream, Verb};

/// What a server promises about the version of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// The state is at least as new as every write that was complete when the read began.
    MostRecent,
    /// Any state that ever existed.
    Any,
    /// The state at this revision or a later one.
    NotOlderThan(Revision),
    /// The state at exactly this revision, or an error.
    Exact(Revision),
    /// Every change of the scope after this revision, in order, and nothing else.
    After(Revision),
    /// Nothing: the request is not recorded, or no server accepts it.
    Unstated,
}

/// One row of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name in reports.
    pub id: &'static str,
    /// The verb.
    pub verb: Verb,
    /// The form of the request.
    pub condition: &'static str,
    /// The promise, in a sentence.
    pub promise: &'static str,
    /// The first minor version of Kubernetes 1.x that has it; 0: all.
    pub since: u32,
    /// How releases differ.
    pub changed: &'static str,
    /// The source of the promise.
    pub source: &'static str,
}

const CONCEPTS: &str = "kubernetes/website reference/using-api/api-concepts.md";

/// The contract.
pub static CONTRACT: &[Row] = &[
    GET_UNSET,
    GET_ANY,
    GET_FROM,
    LIST_UNSET,
    LIST_ANY,
    LIST_FROM,
    LIST_EXACT,
    LIST_LEGACY_EXACT,
    LIST_CONTINUE,
    LIST_CONTINUE_INCONSISTENT,
    WATCH_FROM,
    WATCH_ANY,
    WATCH_UNSET,
    WATCH_UNSET_MARKED,
    WATCH_INITIAL_UNSET,
    WATCH_INITIAL_ANY,
    WATCH_INITIAL_FROM,
    WATCH_NO_INITIAL,
    UNSTATED,
];

const fn row(id: &'static str, verb: Verb, condition: &'static str, promise: &'static str) -> Row {
    Row { id, verb, condition, promise, since: 0, changed: "", source: CONCEPTS }
}

/// GET without a version.
pub const GET_UNSET: Row = row(
    "get-unset",
    Verb::Get,
    "resourceVersion unset",
    "the most recent version: no write to the object was complete before the read began and is missing from the answer",
);
/// GET at 0.
pub const GET_ANY: Row =
    row("get-any", Verb::Get, "resourceVersion=0", "any version, from the server's cache without waiting");
/// GET from N.
pub const GET_FROM: Row = Row {
    changed: "a server that has not reached N answers 504 `Too large resource version` after 3 s",
    ..row("get-from", Verb::Get, "resourceVersion=N", "the object as it was at N or later")
};
/// LIST without a version.
pub const LIST_UNSET: Row = Row {
    changed: "quorum read of etcd; from 1.31 on (GA 1.34) the cache once it has reached etcd's revision (KEP-2340)",
    ..row(
        "list-unset",
        Verb::List,
        "resourceVersion unset, with or without limit",
        "the most recent state: the list's revision is not below that of any write complete before the read began",
    )
};
/// LIST at 0.
pub const LIST_ANY: Row = row(
    "list-any",
    Verb::List,
    "resourceVersion=0, with or without match NotOlderThan",
    "any state, from the server's cache; a limit is ignored",
);
/// LIST from N.
pub const LIST_FROM: Row = Row {
    changed: "resourceVersionMatch from 1.19 on (KEP-2523)",
    ..row(
        "list-from",
        Verb::List,
        "resourceVersion=N without limit, or with match NotOlderThan",
        "the state at N or later: the list's revision is not below N",
    )
};
/// LIST at exactly N.
pub const LIST_EXACT: Row = Row {
    since: 19,
    changed: "read from etcd; from 1.34 on also from snapshots of the cache (KEP-4988)",
    ..row(
        "list-exact",
        Verb::List,
        "resourceVersion=N&resourceVersionMatch=Exact",
        "the state at exactly N, or 410: the list's revision is N",
    )
};
/// LIST at N with a limit and no match.
pub const LIST_LEGACY_EXACT: Row = row(
    "list-legacy-exact",
    Verb::List,
    "resourceVersion=N&limit=M without match",
    "the state at exactly N, or 410 (a legacy rule: callers usually want NotOlderThan)",
);
/// A page.
pub const LIST_CONTINUE: Row = Row {
    changed: "etcd; from 1.34 on also snapshots of the cache (KEP-4988)",
    ..row(
        "list-continue",
        Verb::List,
        "continue token",
        "a part of the state at the revision that the token names, or 410",
    )
};
/// A page at another revision.
pub const LIST_CONTINUE_INCONSISTENT: Row = Row {
    source: "apimachinery pkg/apis/meta/v1/types.go, ListOptions.Continue",
    ..row(
        "list-continue-inconsistent",
        Verb::List,
        "the continue token of a 410 answer",
        "the rest of the keys at a newer revision: the pages together are no snapshot",
    )
};
/// WATCH from N.
pub const WATCH_FROM: Row = row(
    "watch-from",
    Verb::Watch,
    "resourceVersion=N",
    "every change of the scope after N, once each and in order, or an error; nothing at or below N",
);
/// WATCH at 0.
pub const WATCH_ANY: Row = Row {
    changed: "with WatchList on (default from 1.34) the initial part ends with the bookmark initial-events-end",
    ..row(
        "watch-any",
        Verb::Watch,
        "resourceVersion=0",
        "any state as synthetic ADDED events, then every change after it",
    )
};
/// WATCH without a version.
pub const WATCH_UNSET: Row = Row {
    changed: "documented as most recent; served from the cache as if 0 (kubernetes#74022, #123935)",
    ..row(
        "watch-unset",
        Verb::Watch,
        "resourceVersion unset, no bookmark ends the initial part",
        "in effect any state as synthetic ADDED events, then every change after it",
    )
};
/// WATCH without a version, on a server that makes it consistent.
pub const WATCH_UNSET_MARKED: Row = Row {
    since: 34,
    changed: "only if the stream shows it by the bookmark initial-events-end",
    source: "KEP-3157; apiserver pkg/storage/cacher (defaulting of sendInitialEvents)",
    ..row(
        "watch-unset-marked",
        Verb::Watch,
        "resourceVersion unset, a bookmark initial-events-end ends the initial part",
        "the most recent state as synthetic ADDED events up to the bookmark, then every change after it",
    )
};
/// WatchList without a version.
pub const WATCH_INITIAL_UNSET: Row = Row {
    since: 27,
    changed: "",
    source: "KEP-3157",
    ..row(
        "watchlist-unset",
        Verb::Watch,
        "sendInitialEvents=true, resourceVersion unset",
        "the most recent state as synthetic ADDED events, a bookmark initial-events-end at its revision, then every change",
    )
};
/// WatchList at 0.
pub const WATCH_INITIAL_ANY: Row = Row {
    since: 27,
    source: "KEP-3157",
    ..row(
        "watchlist-any",
        Verb::Watch,
        "sendInitialEvents=true, resourceVersion=0",
        "any state as synthetic ADDED events, a bookmark initial-events-end at its revision, then every change",
    )
};
/// WatchList from N.
pub const WATCH_INITIAL_FROM: Row = Row {
    since: 27,
    source: "KEP-3157",
    ..row(
        "watchlist-from",
        Verb::Watch,
        "sendInitialEvents=true, resourceVersion=N",
        "the state at N or later as synthetic ADDED events, a bookmark initial-events-end at its revision, then every change",
    )
};
/// WATCH without an initial part.
pub const WATCH_NO_INITIAL: Row = Row {
    since: 27,
    source: "KEP-3157",
    ..row(
        "watch-no-initial",
        Verb::Watch,
        "sendInitialEvents=false, resourceVersion unset or 0",
        "every change after a revision that the answer does not name",
    )
};
/// A request without a promise.
pub const UNSTATED: Row =
    row("unstated", Verb::Other, "the request is not recorded, or is invalid", "nothing that a rule can check");

/// The promise of a server for an operation. `stream` is what a watch delivered, if known: only it shows whether a watch without
/// a version is consistent.
pub fn promise(history: &History, operation: &Operation, stream: Option<&Stream>) -> (Promise, &'static Row) {
    let asked = operation.asked_revision;
    let initial = operation.marks.has(Marks::INITIAL_EVENTS);
    match (operation.verb, operation.asked) {
        (_, Asked::Unrecorded | Asked::Invalid) => (Promise::Unstated, &UNSTATED),
        (Verb::Get, Asked::Unset) => (Promise::MostRecent, &GET_UNSET),
        (Verb::Get, Asked::Any) => (Promise::Any, &GET_ANY),
        (Verb::Get, Asked::From) => (Promise::NotOlderThan(asked), &GET_FROM),
        (Verb::List | Verb::DeleteCollection, Asked::Unset) => (Promise::MostRecent, &LIST_UNSET),
        (Verb::List, Asked::Any) => (Promise::Any, &LIST_ANY),
        (Verb::List, Asked::From) => (Promise::NotOlderThan(asked), &LIST_FROM),
        (Verb::List, Asked::Exact) => (Promise::Exact(asked), &LIST_EXACT),
        (Verb::List, Asked::LegacyExact) => (Promise::Exact(asked), &LIST_LEGACY_EXACT),
        (Verb::List, Asked::Continue) => (Promise::Exact(asked), &LIST_CONTINUE),
        (Verb::List, Asked::ContinueInconsistent) => (Promise::Unstated, &LIST_CONTINUE_INCONSISTENT),
        (Verb::Watch, Asked::Unset) if initial => (Promise::MostRecent, &WATCH_INITIAL_UNSET),
        (Verb::Watch, Asked::Any) if initial => (Promise::Any, &WATCH_INITIAL_ANY),
        (Verb::Watch, Asked::From) if initial => (Promise::NotOlderThan(asked), &WATCH_INITIAL_FROM),
        (Verb::Watch, Asked::From) => (Promise::After(asked), &WATCH_FROM),
        (Verb::Watch, Asked::Unset | Asked::Any) if operation.marks.has(Marks::NO_INITIAL_EVENTS) => {
            (Promise::Any, &WATCH_NO_INITIAL)
        }
        (Verb::Watch, Asked::Unset) if stream.is_some_and(|s| is_marked(history, s)) => {
            (Promise::MostRecent, &WATCH_UNSET_MARKED)
        }
        (Verb::Watch, Asked::Unset) => (Promise::Any, &WATCH_UNSET),
        (Verb::Watch, Asked::Any) => (Promise::Any, &WATCH_ANY),
        _ => (Promise::Unstated, &UNSTATED),
    }
}

/// Whether a bookmark ends the initial part of a stream.
fn is_marked(history: &History, stream: &Stream) -> bool {
    history.deliveries_of(stream).iter().any(|d| d.kind == DeliveryKind::InitialEventsEnd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own_and_a_source() {
        for (at, row) in CONTRACT.iter().enumerate() {
            assert!(CONTRACT[..at].iter().all(|other| other.id != row.id), "{}", row.id);
            assert!(!row.source.is_empty() && !row.promise.is_empty() && !row.condition.is_empty(), "{}", row.id);
        }
    }
}
