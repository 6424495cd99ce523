//! Where a search stands: what an order of the operations so far has come to.

use super::open::Open;
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
    pub(super) gap: u32,
    /// How it came about: a place in [`super::path::Paths`].
    pub(super) path: u32,
    /// The open operations that are done.
    pub(super) done: M,
    /// Open writes, not done, of a value that the register held while they were open: they can be put there.
    pub(super) idle: M,
}

impl<M: Mask> Configuration<M> {
    /// Whether this one can do whatever `other` can.
    ///
    /// Both are in the same state. No optional operation is used up here that is not there. What could be put into the gap there can
    /// be put into the gap here. A read or failed compare-and-set that is done there is done here. Another operation is done in both
    /// or neither; or it is a write that is done there, and here could be put where nobody sees it when it returns. And a write that
    /// could be put so there, and is not done, can be put so here. `is_within`: as [`super::used::Uses::is_within`], of what is used
    /// here and there.
    pub(super) fn dominates(&self, other: &Self, open: &Open<'_, M>, is_within: impl Fn(u32, u32) -> bool) -> bool {
        if self.state != other.state || self.gap < other.gap {
            return false;
        }
        let (observers, writes) = (open.observers.words(), open.writes.words());
        for word in 0..observers.len() {
            let (here, there) = (self.done.words()[word], other.done.words()[word]);
            if there & !here & observers[word] != 0 || here & !there & !observers[word] != 0 {
                return false;
            }
            // Done there, not here.
            let mut open_here = there & !here & !observers[word];
            if open_here & !writes[word] != 0 {
                return false;
            }
            open_here &= !self.idle.words()[word];
            while open_here != 0 {
                if open.invoked(word as u32 * 64 + open_here.trailing_zeros()) >= self.gap {
                    return false;
                }
                open_here &= open_here - 1;
            }
            let mut idle_there = other.idle.words()[word] & !there & !self.idle.words()[word];
            while idle_there != 0 {
                if open.invoked(word as u32 * 64 + idle_there.trailing_zeros()) >= self.gap {
                    return false;
                }
                idle_there &= idle_there - 1;
            }
        }
        // What is used lies elsewhere in memory.
        is_within(self.used, other.used)
    }

    /// Whether both are one, however they came about.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.state, self.used, self.gap) == (other.state, other.used, other.gap)
            && self.done == other.done
            && self.idle == other.idle
    }
}
