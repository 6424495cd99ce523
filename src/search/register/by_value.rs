//! Numbers of values, in a table where the values are few and in a map where they are many.

use rustc_hash::FxHashMap;

/// No class, no slot.
pub(super) const NONE: u32 = u32::MAX;

/// Numbers of some values.
#[derive(Default)]
pub(super) struct ByValue {
    /// By value: its number, or [`NONE`]. Empty where the values of the history are many more than those of this register.
    dense: Vec<u32>,
    sparse: FxHashMap<u32, u32>,
}

impl ByValue {
    /// For so many operations, of a history with so many values.
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

    /// Where the number of a value stands; at first [`NONE`].
    pub(super) fn place(&mut self, value: u32) -> &mut u32 {
        match self.dense.get_mut(value as usize) {
            Some(place) => place,
            None => self.sparse.entry(value).or_insert(NONE),
        }
    }
}
