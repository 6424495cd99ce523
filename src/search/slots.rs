//! Open operations get small numbers, so that a set of them is a few words however long the history.

use super::partition::Part;
use rustc_hash::FxHashMap;

/// An operation that never returns has this for a return.
pub(super) const NEVER: u32 = u32::MAX;

/// Where the operations of a part are kept while they are open.
#[derive(Debug)]
pub(super) struct Slots {
    /// How many are needed.
    pub(super) count: usize,
    /// The slot of an operation that returns; of another, which of `kinds` it is.
    pub(super) of: Vec<u32>,
    /// The event at which an operation returns, or [`NEVER`].
    pub(super) returns: Vec<u32>,
    /// The classes that operations without return have.
    pub(super) kinds: Vec<u32>,
}

impl Slots {
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
        let mut kinds = Vec::new();
        let mut kind_of: FxHashMap<u32, u32> = FxHashMap::default();
        for event in &part.events {
            let operation = event.of() as usize;
            of[operation] = if event.is_return() {
                free.push(of[operation]);
                continue;
            } else if returns[operation] == NEVER {
                *kind_of.entry(class[operation]).or_insert_with(|| {
                    kinds.push(class[operation]);
                    kinds.len() as u32 - 1
                })
            } else {
                free.pop().unwrap_or_else(|| {
                    count += 1;
                    count - 1
                })
            };
        }
        Slots { count: count as usize, of, returns, kinds }
    }

    /// Which of the kinds of unknown outcome an operation is.
    pub(super) fn kind(&self, operation: u32) -> Option<usize> {
        (self.returns[operation as usize] == NEVER).then_some(self.of[operation as usize] as usize)
    }
}
