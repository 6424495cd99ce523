//! Where a search stands: what an order of the operations so far has come to.

use crate::search::mask::Mask;

/// What an order of operations has come to, at a return.
#[derive(Clone, Debug)]
pub(super) struct Configuration<M> {
    /// What the register holds.
    pub(super) state: u32,
    /// The optional operations used, by number in [`super::used::Uses`].
    pub(super) used: u32,
    /// The gap: the event up to which operations had been invoked when the last write happened that did not need the state before
    /// it. What was open then can still be put right before that write. 0: there was none.
    pub(super) last_overwrite_at: u32,
    /// How it came about: a place in [`super::path::Paths`].
    pub(super) path: u32,
    /// The open operations that are done.
    pub(super) linearized: M,
    /// Open writes, not done, of a value that the register held while they were open: they can be put there.
    pub(super) absorbable: M,
}

impl<M: Mask> Configuration<M> {
    /// Whether both are one, however they came about.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.state, self.used, self.last_overwrite_at) == (other.state, other.used, other.last_overwrite_at)
            && self.linearized == other.linearized
            && self.absorbable == other.absorbable
    }
}
