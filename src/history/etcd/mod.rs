//! The recorded facts of one etcd cluster: the requests and answers of clients, the logs and stores of members.
//!
//! A [`Recording`] is one report of etcd's robustness suite, or the data directories of a cluster. Keys, values and texts are
//! interned; rows are in order of client and time. This stage decides nothing: contradicting rows stay, and unusable ones are
//! problems of their file.

mod assembly;
mod batch;
mod builder;
mod catalogue;
mod cluster;
mod copies;
mod load;
mod log;
mod lowering;
mod member;
mod member_row;
mod operation;
mod outcome;
mod recording;
mod sightings;
#[cfg(test)]
mod tests;
mod value;
mod watch;
mod words;

pub use cluster::{CLOCK, Cluster};
pub use load::load;
pub use member::{Lease, Log, LogEntry, Member, Note, Overwritten, Store, StoredRevision};
pub use operation::{
    Condition, Interval, Operation, Pair, Range, Relation, Request, Requests, Span, Step, StepResult, Target, Txn,
};
pub use outcome::Outcome;
pub use recording::{Client, CreationMarks, Recording};
pub use value::{HASHED, Value, ValueId, Values, hash};
pub use watch::{Event, Previous, Response, Watch};
