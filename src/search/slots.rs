//! Slots for the search by steps: a pending operation has a small number, free again after its return. So the linearized
//! operations are a few words, however long the history is. Crashed operations of one class are interchangeable and only counted.

use super::partition::Part;
use rustc_hash::FxHashMap;

/// The return of an operation that never returns.
pub(super) const NEVER: u32 = u32::MAX;

/// The slots of the operations of a part.
#[derive(Debug)]
pub(super) struct SlotAllocation {
    /// The slot of an operation that returns; of a crashed one, the index of its kind.
    pub(super) of: Vec<u32>,
    /// The event at which an operation returns, or [`NEVER`].
    pub(super) returns: Vec<u32>,
    /// How many kinds there are. A kind is the crashed operations of one class.
    pub(super) kinds: usize,
    /// The number of operations in the largest kind.
    pub(super) largest_kind: u32,
    /// How many slots there are.
    pub(super) count: usize,
}

impl SlotAllocation {
    /// For the operations of a part and their classes.
    pub(super) fn new(part: &Part, class: &[u32]) -> Self {
        let mut returns = vec![NEVER; part.calls.len()];
        for (at, event) in (0..).zip(&part.events) {
            if event.is_return() {
                returns[event.of() as usize] = at;
            }
        }
        let mut of = vec![0; part.calls.len()];
        let (mut count, mut free) = (0, Vec::new());
        let mut kind_of: FxHashMap<u32, u32> = FxHashMap::default();
        let mut sizes: Vec<u32> = Vec::new();
        for event in &part.events {
            let operation = event.of() as usize;
            of[operation] = if event.is_return() {
                free.push(of[operation]);
                continue;
            } else if returns[operation] == NEVER {
                let kind = *kind_of.entry(class[operation]).or_insert(sizes.len() as u32);
                sizes.resize(kind_of.len(), 0);
                sizes[kind as usize] += 1;
                kind
            } else {
                free.pop().unwrap_or_else(|| {
                    count += 1;
                    count as u32 - 1
                })
            };
        }
        let largest_kind = sizes.iter().copied().max().unwrap_or(0);
        SlotAllocation { of, returns, kinds: sizes.len(), largest_kind, count }
    }

    /// The index of the kind of a crashed operation.
    pub(super) fn kind(&self, operation: u32) -> Option<usize> {
        (self.returns[operation as usize] == NEVER).then_some(self.of[operation as usize] as usize)
    }
}
