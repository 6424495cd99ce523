//! Rules about the premises of writes.

pub(in crate::check) mod dangling_reference;
pub(in crate::check) mod false_absence;
pub(in crate::check) mod intermediate_state;
pub(in crate::check) mod lost_update;
pub(in crate::check) mod operation_groups;
pub(in crate::check) mod premise_index;
pub(in crate::check) mod presumed_absence;
pub(in crate::check) mod read_skew;
pub(crate) mod stale_decisions;
pub(in crate::check) mod stale_premise;
pub(in crate::check) mod unfenced_leader;
pub(in crate::check) mod write_skew;
