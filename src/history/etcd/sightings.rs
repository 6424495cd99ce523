//! What was last seen at each revision: reads show one revision again and again, to one client after the other, and looking at what
//! was seen there takes less than finding a name among all.

use super::value::ValueId;
use crate::history::Symbol;

/// Revisions that are kept apart; others share their places.
const PLACES: usize = 1 << 18;

/// A key and its value by revision.
#[derive(Debug, Default)]
pub(super) struct Sightings(Vec<[u32; 2]>);

impl Sightings {
    fn place(revision: i64) -> usize {
        revision.cast_unsigned() as usize % PLACES
    }

    /// What was last seen at a revision, or at one that shares its place, if anything.
    pub fn last(&self, revision: i64) -> Option<(Symbol, ValueId)> {
        self.0.get(Sightings::place(revision)).map(|[key, value]| (Symbol(*key), ValueId(*value)))
    }

    /// Keeps what was seen.
    pub fn keep(&mut self, revision: i64, (key, value): (Symbol, ValueId)) {
        if self.0.is_empty() {
            self.0 = vec![[0; 2]; PLACES];
        }
        self.0[Sightings::place(revision)] = [key.0, value.0];
    }
}
