//! Rules about the writes that servers commit.

pub(in crate::check) mod broken_compare;
pub(in crate::check) mod identity_break;
pub(in crate::check) mod lost_write;
pub(in crate::check) mod revision_reuse;
pub(in crate::check) mod revision_rewind;
pub(in crate::check) mod split_timeline;
