//! The set of visited states, each a row of words. Rows are stored in a few large blocks: no row moves when the set grows, and
//! dropping all of them is fast. A memory limit relies on [`VisitedSet::growth`].

use super::incremental_table::{IncrementalTable, spread};
use super::tight_vec;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// A set of rows of equal length.
#[derive(Debug)]
pub(super) struct VisitedSet {
    width: usize,
    /// Rows that fill a block, as a power of two.
    shift: u32,
    /// All but the last are full.
    blocks: Vec<Vec<u64>>,
    count: u32,
    /// Half of the hash of a row, and its number.
    index: IncrementalTable<(u32, u32)>,
}

/// Words of a block, about.
const BLOCK: usize = 1 << 17;

/// Rows in the first block at first.
const FIRST_BLOCK_ROWS: usize = 16;

impl VisitedSet {
    /// The empty set of rows of `width` words, at least one.
    pub(super) fn new(width: usize) -> Self {
        let shift = (BLOCK / width).max(1).ilog2();
        VisitedSet { width, shift, blocks: vec![Vec::new()], count: 0, index: IncrementalTable::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Half of the hash of a row.
    pub(super) fn hash(row: &[u64]) -> u32 {
        FxBuildHasher.hash_one(row) as u32
    }

    fn row(&self, at: u32) -> &[u64] {
        let block = &self.blocks[(at >> self.shift) as usize];
        let first = (at as usize & ((1 << self.shift) - 1)) * self.width;
        &block[first..first + self.width]
    }

    pub(super) fn has(&self, hash: u32, row: &[u64]) -> bool {
        self.index.find(spread(hash), |&(other, at)| other == hash && self.row(at) == row).is_some()
    }

    /// Adds a row that is not there.
    pub(super) fn insert(&mut self, hash: u32, row: &[u64]) {
        let more = self.more();
        if let Some(block) = self.blocks.last_mut().filter(|block| block.len() < self.width << self.shift) {
            block.reserve_exact(more);
        } else {
            self.blocks.push(Vec::with_capacity(more));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.extend_from_slice(row);
        }
        self.index.insert(spread(hash), (hash, self.count), |&(hash, _)| spread(hash));
        self.count += 1;
    }

    /// Words to reserve before a row is added.
    fn more(&self) -> usize {
        let full = self.width << self.shift;
        match self.blocks.last().map(|block| (block.len(), block.capacity())) {
            Some((held, room)) if held < room => 0,
            Some((held, _)) if held < full => held.max(FIRST_BLOCK_ROWS * self.width).min(full - held),
            _ => full,
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let full = (self.blocks.len() - 1) * (self.width << self.shift) * size_of::<u64>();
        full + self.blocks.last().map_or(0, tight_vec::bytes) + tight_vec::bytes(&self.blocks) + self.index.bytes()
    }

    /// Additional bytes held while a row is added.
    pub(super) fn growth(&self, hash: u32) -> usize {
        let more = match self.more() {
            0 => 0,
            // Growing the first block copies it.
            more if self.blocks.len() == 1 => more + tight_vec::bytes(&self.blocks[0]) / size_of::<u64>(),
            more => more,
        };
        more * size_of::<u64>() + self.index.growth(spread(hash))
    }

    /// Whether all row numbers are used.
    pub(super) fn is_full(&self) -> bool {
        self.count == u32::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_a_set() {
        for width in [1, 3, 70, 200_000] {
            let mut rows = VisitedSet::new(width);
            let row = |at: u64| (0..width as u64).map(|word| at * 3 + word % 2).collect::<Vec<u64>>();
            let count = (3_000_000 / width as u64).clamp(3, 100_000);
            for at in 0..count {
                let row = row(at);
                let hash = VisitedSet::hash(&row);
                assert!(!rows.has(hash, &row));
                let (before, growth) = (rows.bytes(), rows.growth(hash));
                rows.insert(hash, &row);
                assert!(rows.bytes() <= before + growth + 1024, "{before} and {growth} bytes, then {}", rows.bytes());
            }
            assert!((0..count).all(|at| rows.has(VisitedSet::hash(&row(at)), &row(at))));
            assert!(!rows.has(VisitedSet::hash(&row(count)), &row(count)));
            let held = count as usize * width * size_of::<u64>();
            assert!(rows.blocks.iter().all(|block| block.len() * 8 <= (1 << 20).max(width * 8)));
            assert!(rows.bytes() >= held);
        }
    }
}
