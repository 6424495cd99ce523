//! A flag for each operation, one bit each: what rules would otherwise ask again and again of the same operations.

use crate::history::OperationId;

/// Flags by operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Flags(Vec<u64>);

impl Flags {
    /// None is set of so many operations.
    pub(super) fn none(operations: usize) -> Flags {
        Flags(vec![0; operations.div_ceil(64)])
    }

    /// Sets the flag of an operation.
    pub(super) fn set(&mut self, id: OperationId) {
        self.0[id.index() / 64] |= 1 << (id.index() % 64);
    }

    /// Whether the flag of an operation is set.
    #[inline]
    pub(super) fn has(&self, id: OperationId) -> bool {
        self.0.get(id.index() / 64).is_some_and(|word| word >> (id.index() % 64) & 1 != 0)
    }
}
