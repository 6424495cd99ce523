//! Builders of small histories for the tests of rules.

mod shortcuts;
pub(in crate::check) mod specimen;
pub(crate) mod trial;
