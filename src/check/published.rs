//! Published bugs of etcd, as findings name them.
//!
//! Numbers are those of issues of etcd-io/etcd. Sources are these issues and etcd's `tests/robustness/README.md` ("Track
//! record").

/// A published bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// Its number, such as `etcd#13766`.
    pub issue: &'static str,
    /// The bug and its traces in a history.
    pub says: &'static str,
}

impl Published {
    /// The address of the issue, for a browser.
    pub fn address(&self) -> String {
        let number = self.issue.rsplit('#').next().unwrap_or_default();
        format!("https://github.com/etcd-io/etcd/issues/{number}")
    }
}

/// All published bugs with a fingerprint.
pub static PUBLISHED: &[&Published] = &[
    &INCONSISTENT_MEMBERS,
    &LOST_AT_RESTART,
    &APPLIED_TWICE,
    &EARLY_PROGRESS,
    &BACK_IN_TIME,
    &REPEATED_EVENT,
    &STARVED_WATCH,
    &TOMBSTONE_REVISION,
    &COMPACTED_DELETE,
    &REFUSED_WRITE,
    &FUTURE_WATCH,
    &STALE_READ,
    &MINUS_ONE,
];

pub(in crate::check) static INCONSISTENT_MEMBERS: Published = Published {
    issue: "etcd#13766",
    says: "a crash under load left a member that had not applied all of its log; members give one write different revisions",
};
pub(in crate::check) static LOST_AT_RESTART: Published = Published {
    issue: "etcd#14370",
    says: "a cluster of one member acknowledged writes before they were on disk; after a crash other writes get their \
          revisions",
};
pub(in crate::check) static APPLIED_TWICE: Published = Published {
    issue: "etcd#14685",
    says: "a crash in the middle of a defragmentation made a member apply entries again; a revision repeats a request",
};
pub(in crate::check) static EARLY_PROGRESS: Published = Published {
    issue: "etcd#15220",
    says: "a progress response that a client requested overtook the events of its watch",
};
pub(in crate::check) static BACK_IN_TIME: Published = Published {
    issue: "etcd#15271",
    says: "a member that was restored from a leader's snapshot delivered events again from an old revision on",
};
pub(in crate::check) static REPEATED_EVENT: Published =
    Published { issue: "etcd#17247", says: "a watch delivered an event twice in succession" };
pub(in crate::check) static STARVED_WATCH: Published =
    Published { issue: "etcd#17529", says: "a slow watch lost its place, and continued far ahead without an error" };
pub(in crate::check) static TOMBSTONE_REVISION: Published = Published {
    issue: "etcd#17780",
    says: "after a compaction and a crash the store went back to its last revision that was not a delete",
};
pub(in crate::check) static COMPACTED_DELETE: Published = Published {
    issue: "etcd#18089",
    says: "a compaction through the revision of a delete removed that delete, and watches from there on miss it \
          (etcd#19179: the same, if a restart resumed the compaction)",
};
pub(in crate::check) static REFUSED_WRITE: Published = Published {
    issue: "etcd#18667",
    says: "a transaction that read a compacted revision was refused by one member and applied by others",
};
pub(in crate::check) static FUTURE_WATCH: Published = Published {
    issue: "etcd#20221",
    says: "a watch from a future revision delivered earlier revisions after it was resumed",
};
pub(in crate::check) static STALE_READ: Published = Published {
    issue: "etcd#20418",
    says: "a member that had been paused answered linearizable reads from an old state after the leader had changed",
};
pub(in crate::check) static MINUS_ONE: Published = Published {
    issue: "etcd#20709",
    says: "a watch from revision -1 made the server lose events of its other watches; this report has such a watch",
};
