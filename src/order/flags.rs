//! One bit for each operation or key, which caches an answer that many rules need.

/// Flags by index. An index beyond the end reads as unset.
#[derive(Clone, Debug, Default)]
pub(super) struct Flags(Vec<u64>);

impl Flags {
    /// No flag is set; room for `many`.
    pub(super) fn none(many: usize) -> Flags {
        Flags(vec![0; many.div_ceil(64)])
    }

    pub(super) fn set(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    #[inline]
    pub(super) fn has(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 != 0)
    }
}
