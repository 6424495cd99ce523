//! Rules about the events that servers deliver on watches.

pub(in crate::check) mod bad_initial_state;
pub(in crate::check) mod delete_version;
pub(in crate::check) mod false_progress;
pub(in crate::check) mod scope_membership;
pub(in crate::check) mod watch_before_write;
pub(in crate::check) mod watch_duplicate;
pub(in crate::check) mod watch_filter;
pub(in crate::check) mod watch_gap;
pub(in crate::check) mod watch_prehistory;
pub(in crate::check) mod watch_prev_value;
pub(in crate::check) mod watch_reorder;
pub(in crate::check) mod watch_split;
pub(in crate::check) mod watch_type;
