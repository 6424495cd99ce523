//! A configuration: a partial linearization at a return, reduced to what later steps depend on. Everything else at an event is
//! common to all configurations; see [`super::pending::PendingOps`]. The path to a configuration is not part of its identity. A
//! new field must also be compared in `dominance.rs`.

use crate::search::mask::Mask;

/// A partial linearization at a return.
#[derive(Clone, Debug)]
pub(super) struct Configuration<M> {
    /// The state of the register: a number of the automaton.
    pub(super) state: u32,
    /// The crashed operations used: a number of [`crate::search::crashed_uses::CrashedUseSets`].
    pub(super) used: u32,
    /// The event at which the last write was linearized that does not depend on the state before it; 0 if there is none. An
    /// operation that was invoked before this event can still be put right before that write.
    pub(super) last_overwrite_at: u32,
    /// The last step to it in [`super::parent_links::ParentLinks`].
    pub(super) path: u32,
    /// The pending operations that are linearized.
    pub(super) linearized: M,
    /// Pending writes, not linearized, of a value that the register held while they were pending: they can be put there.
    pub(super) absorbable: M,
}

impl<M: Mask> Configuration<M> {
    /// Whether both are one configuration, whatever their paths.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.state, self.used, self.last_overwrite_at) == (other.state, other.used, other.last_overwrite_at)
            && self.linearized == other.linearized
            && self.absorbable == other.absorbable
    }
}
