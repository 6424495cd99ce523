//! Rules about what one process observes over time.

pub(in crate::check) mod causal_order;
pub(in crate::check) mod consistent_prefix;
pub(in crate::check) mod monotonic_reads;
pub(in crate::check) mod monotonic_writes;
pub(in crate::check) mod observed_effect;
pub(in crate::check) mod read_your_writes;
pub(in crate::check) mod writes_follow_reads;
