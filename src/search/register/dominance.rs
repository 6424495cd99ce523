//! Dominance: which configuration can do whatever another one can, so that the other need not be kept.

use super::configuration::Configuration;
use super::pending::PendingOps;
use crate::search::mask::Mask;

impl<M: Mask> Configuration<M> {
    /// Whether this one can do whatever `other` can.
    ///
    /// Both are in the same state. No optional operation is used up here that is not there. What could be put into the gap there can
    /// be put into the gap here. A read or failed compare-and-set that is done there is done here. Another operation is done in both
    /// or neither; or it is a write that is done there, and here could be put where nobody sees it when it returns. And a write that
    /// could be put so there, and is not done, can be put so here. `is_within`: as [`super::used::Uses::is_within`], of what is used
    /// here and there.
    pub(super) fn dominates(
        &self,
        other: &Self,
        open: &PendingOps<'_, M>,
        is_within: impl Fn(u32, u32) -> bool,
    ) -> bool {
        if self.state != other.state || self.last_overwrite_at < other.last_overwrite_at {
            return false;
        }
        let (observers, writes) = (open.observers.words(), open.writes.words());
        for word in 0..observers.len() {
            let (here, there) = (self.linearized.words()[word], other.linearized.words()[word]);
            if there & !here & observers[word] != 0 || here & !there & !observers[word] != 0 {
                return false;
            }
            // Done there, not here.
            let mut open_here = there & !here & !observers[word];
            if open_here & !writes[word] != 0 {
                return false;
            }
            open_here &= !self.absorbable.words()[word];
            while open_here != 0 {
                if open.invoked(word as u32 * 64 + open_here.trailing_zeros()) >= self.last_overwrite_at {
                    return false;
                }
                open_here &= open_here - 1;
            }
            let mut idle_there = other.absorbable.words()[word] & !there & !self.absorbable.words()[word];
            while idle_there != 0 {
                if open.invoked(word as u32 * 64 + idle_there.trailing_zeros()) >= self.last_overwrite_at {
                    return false;
                }
                idle_there &= idle_there - 1;
            }
        }
        // What is used lies elsewhere in memory.
        is_within(self.used, other.used)
    }
}
