//! Rules about what servers answer to reads.

pub(in crate::check) mod below_minimum;
pub(in crate::check) mod false_compaction;
pub(in crate::check) mod stale_consistent_read;
pub(in crate::check) mod torn_snapshot;
pub(in crate::check) mod wrong_snapshot;
