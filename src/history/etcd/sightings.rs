//! A cache of the last key and value seen at each revision. Many clients read one revision, and comparing with the last sighting
//! is cheaper than a look-up among all names.

use super::value::ValueId;
use crate::history::Symbol;

/// Slots; revisions that are equal modulo this number share one.
const PLACES: usize = 1 << 18;

/// A key and its value by slot.
#[derive(Debug, Default)]
pub(super) struct Sightings(Vec<[u32; 2]>);

impl Sightings {
    fn place(revision: i64) -> usize {
        revision.cast_unsigned() as usize % PLACES
    }

    /// The last sighting in the slot of a revision. It may be of another revision, so compare it.
    pub fn last(&self, revision: i64) -> Option<(Symbol, ValueId)> {
        self.0.get(Sightings::place(revision)).map(|[key, value]| (Symbol(*key), ValueId(*value)))
    }

    /// Stores a sighting.
    pub fn keep(&mut self, revision: i64, (key, value): (Symbol, ValueId)) {
        if self.0.is_empty() {
            self.0 = vec![[0; 2]; PLACES];
        }
        self.0[Sightings::place(revision)] = [key.0, value.0];
    }
}
