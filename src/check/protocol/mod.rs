//! Rules about how a client uses the protocol.

pub(in crate::check) mod blind_write;
pub(in crate::check) mod changes_between;
pub(in crate::check) mod cross_resource_version;
pub(in crate::check) mod ignored_gone;
pub(in crate::check) mod inconsistent_continue;
pub(in crate::check) mod laundered_conflict;
pub(in crate::check) mod legacy_exact_limit;
pub(in crate::check) mod name_reuse;
pub(in crate::check) mod relist_gap;
pub(in crate::check) mod resume_backwards;
pub(in crate::check) mod resume_from_item;
pub(in crate::check) mod unsafe_first_read;
pub(in crate::check) mod unsafe_relist;
