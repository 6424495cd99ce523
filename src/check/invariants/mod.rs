//! Rules about properties of all revisions, whichever client reads them.

pub(in crate::check) mod allocations;
pub(in crate::check) mod dead_binding;
pub mod declared;
pub(in crate::check) mod double_allocation;
pub(in crate::check) mod double_bind;
pub(in crate::check) mod duplicate_child;
pub(in crate::check) mod ghost_actor;
pub(in crate::check) mod mutual_exclusion;
pub(in crate::check) mod overlapping_lives;
pub(in crate::check) mod premature_gc;
