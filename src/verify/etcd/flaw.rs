//! The reasons why an order of a report of etcd is rejected.

/// The reason why an order does not explain a report of etcd.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdFlaw {
    /// Two members have different contents, or only one of them has one.
    #[error("the members {} and {} differ at {what} {number}", members[0], members[1])]
    Members {
        /// `index` of their logs, or `revision` of their stores.
        what: &'static str,
        /// The index or the revision.
        number: i64,
        /// The members.
        members: [String; 2],
    },
    /// The report has no such operation.
    #[error("there is no operation {operation}: the report has {operations}")]
    NoSuchOperation {
        /// The number.
        operation: u32,
        /// Number of operations in the report.
        operations: usize,
    },
    /// An operation occurs twice.
    #[error("operation {operation} is in the order twice")]
    Twice {
        /// The operation.
        operation: u32,
    },
    /// An operation without effect occurs.
    #[error("operation {operation} had no effect, but is in the order")]
    Failed {
        /// The operation.
        operation: u32,
    },
    /// An answered operation does not occur.
    #[error("operation {operation} was answered, but is not in the order")]
    Missing {
        /// The operation.
        operation: u32,
    },
    /// The order contradicts real time.
    #[error("operation {first} is before operation {second}, which had returned before operation {first} was sent")]
    Backwards {
        /// The operation that was sent later.
        first: u32,
        /// The operation that had returned.
        second: u32,
    },
    /// etcd would give another answer.
    #[error("operation {operation}, at place {place}, cannot have the recorded answer: {why}")]
    Answer {
        /// The operation.
        operation: u32,
        /// Index in the order, from 0.
        place: usize,
        /// The state or the answer expected from etcd.
        why: String,
    },
    /// A request of unknown outcome occurs, but has no effect there.
    #[error("operation {operation}, at place {place}, has no effect there: {why}")]
    NoEffect {
        /// The operation.
        operation: u32,
        /// Index in the order, from 0.
        place: usize,
        /// The reason.
        why: &'static str,
    },
    /// The end of a lease removes a key that was not attached to it.
    #[error("the end of lease {lease} removes {key}, which is not attached to it")]
    NotAttached {
        /// The lease.
        lease: i64,
        /// The key.
        key: String,
    },
    /// A lease ends on its own without removing a key, or is not alive.
    #[error("lease {lease} ends at place {place} without a removed key")]
    NoTrace {
        /// The lease.
        lease: i64,
        /// Index in the order, from 0.
        place: usize,
    },
    /// A watch received another response than the order implies.
    #[error("watch {watch} received another response than the order implies, response {response}: {why}")]
    Watch {
        /// The watch.
        watch: u32,
        /// Index of the response, from 0.
        response: u32,
        /// The expected delivery.
        why: String,
    },
    /// A member's store contradicts the order.
    #[error("the store of {member} has another change at revision {revision}")]
    Store {
        /// The member.
        member: String,
        /// The revision.
        revision: i64,
    },
}
