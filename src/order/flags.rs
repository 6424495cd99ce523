//! A flag for each operation, or each key, one bit each: what rules would otherwise ask again and again of the same.

/// Flags by index.
#[derive(Clone, Debug, Default)]
pub(super) struct Flags(Vec<u64>);

impl Flags {
    /// None is set of so many.
    pub(super) fn none(many: usize) -> Flags {
        Flags(vec![0; many.div_ceil(64)])
    }

    /// Sets the flag of one.
    pub(super) fn set(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    /// Whether the flag of one is set.
    #[inline]
    pub(super) fn has(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 != 0)
    }
}
