//! States of the relevant keys at one revision, and conditions on them.

use super::super::attachment::Attached;
use super::super::store::{Live, compare, covers};
use super::Known;
use crate::history::Symbol;
use crate::history::etcd::{Interval, Recording, Span, Target, ValueId};
use rustc_hash::FxHashMap;

/// An existing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// The revision at which it was created.
    pub created: i64,
    /// The revision of its last change.
    pub changed: i64,
    /// The number of changes since its creation.
    pub version: i64,
    /// Its value.
    pub value: ValueId,
    /// Its attachment.
    pub attached: Option<Attached>,
}

/// The cell of each key; `None` if it does not exist.
pub type State = Vec<Option<Cell>>;

/// The keys that gaps may have changed, or that conditions depend on.
pub struct Keys {
    /// Their names.
    pub names: Vec<Symbol>,
    pub places: FxHashMap<Symbol, u32>,
    /// Whether no other key ever existed.
    pub all: bool,
}

impl Keys {
    /// The index of a key.
    pub fn find(&self, key: Symbol) -> Option<u32> {
        self.places.get(&key).copied()
    }

    pub fn add(&mut self, key: Symbol) {
        let next = self.names.len() as u32;
        if *self.places.entry(key).or_insert(next) == next {
            self.names.push(key);
        }
    }

    /// The keys of an interval.
    pub fn inside<'k>(&'k self, recording: &'k Recording, keys: Interval) -> impl Iterator<Item = u32> + 'k {
        let inside = move |(_, name): &(u32, &Symbol)| covers(recording, keys, **name);
        (0..).zip(&self.names).filter(inside).map(|(at, _)| at)
    }
}

/// Whether all conditions hold; `None` if unknown.
pub fn holds(known: Known<'_>, keys: &Keys, state: &State, conditions: Span) -> Option<bool> {
    let mut all = true;
    for condition in conditions.of(&known.recording.requests.conditions) {
        if condition.keys.end.is_some() {
            return None;
        }
        let cell = keys.find(condition.keys.key).map(|key| state[key as usize])?;
        let live = match cell {
            None if condition.target == Target::Value => {
                all = false;
                continue;
            }
            None => Live::default(),
            Some(Cell { attached: Some(Attached::Unknown), .. }) if condition.target == Target::Lease => return None,
            Some(cell) => Live {
                create_revision: cell.created,
                mod_revision: cell.changed,
                version: cell.version,
                value: cell.value,
                lease: match cell.attached {
                    Some(Attached::To(lease)) => lease,
                    _ => 0,
                },
            },
        };
        all &= compare(known.recording, condition, &live).ok()?;
    }
    Some(all)
}
