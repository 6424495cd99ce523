//! Stage 4 of 5: history, order and contract to findings. Input: a [`crate::history::History`] and its
//! [`crate::order::Order`]. Output: a [`Judgement`]. Invariant: prints nothing; a rule is a pure predicate that returns its
//! certificate.

pub mod evidence;
pub mod finding;
pub mod focus;
pub mod judgement;
pub mod rule;
pub mod rules;
pub mod ruling;

mod bad_initial_state;
mod basis;
mod below_minimum;
mod blind_write;
mod broken_compare;
mod census;
mod changes;
mod commit;
mod course;
mod dangling_reference;
mod dead_binding;
mod delete_version;
mod derivation;
mod double_allocation;
mod double_bind;
mod duplicate_child;
mod exclusion;
mod false_absence;
mod false_progress;
mod ghost_actor;
mod holding;
mod identity_break;
mod ignored_gone;
mod inconsistent_continue;
mod intermediate_state;
pub mod lag;
mod legacy_exact_limit;
mod linearizability;
mod memory;
mod mentions;
mod monotonic_reads;
mod monotonic_writes;
mod name_reuse;
mod overlapping_lives;
mod parts;
mod place;
mod premature_gc;
mod presumed;
mod read_skew;
mod read_your_writes;
mod relist_gap;
mod resume_backwards;
mod resume_from_item;
mod reversion;
mod revision_reuse;
mod revision_rewind;
mod snapshot;
#[cfg(test)]
mod specimen;
mod stale_consistent_read;
mod stale_premise;
mod standing;
mod stretch;
mod torn_snapshot;
#[cfg(test)]
mod trial;
mod unfenced_leader;
mod unsafe_first_read;
mod unsafe_relist;
mod watch_duplicate;
mod watch_gap;
mod watch_prehistory;
mod watch_reorder;
mod watch_type;
mod writes_follow_reads;
mod wrong_snapshot;

pub use evidence::Evidence;
pub use finding::*;
pub use focus::Focus;
pub use judgement::{NO_EVIDENCE, OTHER_NATURE, Options, judge};
pub use rule::{Group, Rule};
pub use rules::RULES;
pub use ruling::{Draft, Limits, Ruling};
