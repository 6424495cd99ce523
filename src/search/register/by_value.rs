//! A map from the numbers of values to other numbers (states, classes). It is a table if the history has few values, and a hash
//! map if it has many.

use rustc_hash::FxHashMap;

/// No class, no state, no slot.
pub(super) const NONE: u32 = u32::MAX;

/// Numbers of values; a value without an entry has [`NONE`].
#[derive(Default)]
pub(super) struct ByValue {
    /// Indexed by value. Empty if the history has many more values than this register has operations.
    dense: Vec<u32>,
    sparse: FxHashMap<u32, u32>,
}

impl ByValue {
    /// For a register with `operations` operations, in a history with `values` different values.
    pub(super) fn new(operations: usize, values: usize) -> Self {
        let dense = if values <= 8 * operations + 64 { vec![NONE; values] } else { Vec::new() };
        ByValue { dense, sparse: FxHashMap::default() }
    }

    /// The number of a value, or [`NONE`].
    pub(super) fn of(&self, value: u32) -> u32 {
        match self.dense.get(value as usize) {
            Some(&number) => number,
            None => self.sparse.get(&value).copied().unwrap_or(NONE),
        }
    }

    /// The entry of a value; at first [`NONE`].
    pub(super) fn entry(&mut self, value: u32) -> &mut u32 {
        match self.dense.get_mut(value as usize) {
            Some(entry) => entry,
            None => self.sparse.entry(value).or_insert(NONE),
        }
    }
}
