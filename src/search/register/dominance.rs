//! Dominance: one configuration can do whatever another can, so the other is dropped. Input: two configurations at one event. A
//! wrong answer can make a wrong verdict: `frontier/tests.rs` compares what both can reach.

use super::configuration::Configuration;
use super::pending::PendingOps;
use crate::search::mask::Mask;

impl<M: Mask> Configuration<M> {
    /// Whether this configuration can do whatever `other` can, at the same event. It can if all of this holds:
    ///
    /// - Both have the same state, and the last overwrite here is not the earlier one.
    /// - A read or failed compare-and-set that is linearized there is linearized here.
    /// - Any other operation is linearized in both or in neither. The exception is a write that is linearized there and not here,
    ///   but is absorbable here or was invoked before the last overwrite here.
    /// - A write that is absorbable and not linearized there is absorbable here, or was invoked before the last overwrite here.
    /// - `is_within` holds for the crashed operations used here and there; see
    ///   [`crate::search::crashed_uses::CrashedUseSets::is_within`].
    pub(super) fn dominates(
        &self,
        other: &Self,
        open: &PendingOps<'_, M>,
        is_within: impl Fn(u32, u32) -> bool,
    ) -> bool {
        if self.state != other.state || self.last_overwrite_at < other.last_overwrite_at {
            return false;
        }
        for word in 0..open.observers.len() {
            let (observers, writes) = (open.observers.word(word), open.writes.word(word));
            let (here, there) = (self.linearized.word(word), other.linearized.word(word));
            if there & !here & observers != 0 || here & !there & !observers != 0 {
                return false;
            }
            // Linearized there, not here.
            let mut open_here = there & !here & !observers;
            if open_here & !writes != 0 {
                return false;
            }
            open_here &= !self.absorbable.word(word);
            while open_here != 0 {
                if open.invoked(word as u32 * 64 + open_here.trailing_zeros()) >= self.last_overwrite_at {
                    return false;
                }
                open_here &= open_here - 1;
            }
            let mut idle_there = other.absorbable.word(word) & !there & !self.absorbable.word(word);
            while idle_there != 0 {
                if open.invoked(word as u32 * 64 + idle_there.trailing_zeros()) >= self.last_overwrite_at {
                    return false;
                }
                idle_there &= idle_there - 1;
            }
        }
        // Compared last: the sets are elsewhere in memory.
        is_within(self.used, other.used)
    }
}
