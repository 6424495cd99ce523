//! Why an order of a report of etcd is none.

/// Why an order of a report of etcd is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdFlaw {
    /// There is no such operation.
    #[error("there is no operation {operation}: the report has {operations}")]
    NoSuchOperation {
        /// The number.
        operation: u32,
        /// How many operations there are.
        operations: usize,
    },
    /// An operation stands in it twice.
    #[error("operation {operation} happens twice")]
    Twice {
        /// The operation.
        operation: u32,
    },
    /// An operation that certainly had no effect stands in it.
    #[error("operation {operation} had no effect, yet it happens")]
    Failed {
        /// The operation.
        operation: u32,
    },
    /// An operation that was answered does not stand in it.
    #[error("operation {operation} was answered, yet it does not happen")]
    Missing {
        /// The operation.
        operation: u32,
    },
    /// Real time says otherwise.
    #[error("operation {first} happens before operation {second}, which had returned before it was sent")]
    Backwards {
        /// The operation that was sent later.
        first: u32,
        /// The operation that had returned.
        second: u32,
    },
    /// etcd would not answer like this.
    #[error("operation {operation}, at place {place}, cannot be answered as it was: {why}")]
    Answer {
        /// The operation.
        operation: u32,
        /// Its place in the order, from 0.
        place: usize,
        /// What etcd would answer.
        why: String,
    },
    /// A request that nobody was told the outcome of is in it without an effect.
    #[error("operation {operation}, at place {place}, has no effect there: {why}")]
    NoEffect {
        /// The operation.
        operation: u32,
        /// Its place in the order, from 0.
        place: usize,
        /// Why.
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
    /// A lease ends on its own and no key with it, or it is not alive.
    #[error("lease {lease} ends at place {place} without a trace")]
    NoTrace {
        /// The lease.
        lease: i64,
        /// Its place in the order, from 0.
        place: usize,
    },
    /// A watch was told something else.
    #[error("watch {watch} was told something else, in response {response}: {why}")]
    Watch {
        /// The watch.
        watch: u32,
        /// Which of its responses, from 0.
        response: u32,
        /// What it would have been told.
        why: String,
    },
    /// A member's store has something else.
    #[error("the store of {member} has something else at revision {revision}")]
    Store {
        /// The member.
        member: String,
        /// The revision.
        revision: i64,
    },
}
