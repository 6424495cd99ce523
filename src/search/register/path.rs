//! How configurations came about.

use crate::search::room;

/// One step of an order in the making.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step(u32);

const HIDDEN: u32 = 1 << 31;
const GAP: u32 = HIDDEN;
const MORE: u32 = HIDDEN | 1 << 30;
const IDLE: u32 = 1 << 30;
const OPERATION: u32 = (1 << 30) - 1;

/// More operations than this have no room in a step.
pub(super) const MOST_OPERATIONS: usize = OPERATION as usize;

impl Step {
    /// The operation changes the present state.
    pub(super) const fn change(operation: u32) -> Self {
        Step(operation)
    }

    /// The operation begins a block in the gap.
    pub(super) const fn gap(operation: u32) -> Self {
        Step(operation | GAP)
    }

    /// The operation goes on with that block.
    pub(super) const fn more(operation: u32) -> Self {
        Step(operation | MORE)
    }

    /// The operation is a write of the value that the register held while it was open.
    pub(super) const fn idle(operation: u32) -> Self {
        Step(operation | IDLE)
    }

    pub(super) const fn operation(self) -> u32 {
        self.0 & OPERATION
    }

    pub(super) const fn place(self) -> Place {
        match self.0 & !OPERATION {
            GAP => Place::Gap,
            MORE => Place::More,
            IDLE => Place::Idle,
            _ => Place::Present,
        }
    }

    /// Whether the state that the operation leads to is not the present one.
    pub(super) const fn is_hidden(self) -> bool {
        self.0 & !OPERATION != 0
    }
}

/// Where a step happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Present,
    Gap,
    More,
    Idle,
}

/// The steps of all configurations that are kept, each with the one before it.
#[derive(Debug, Default)]
pub(super) struct Paths {
    steps: Vec<(u32, Step)>,
    /// How many there were after the last clearing.
    kept: usize,
}

/// The path without steps.
pub(super) const BEGIN: u32 = u32::MAX;

impl Paths {
    /// A path with more steps.
    pub(super) fn extend(&mut self, mut path: u32, steps: &[Step]) -> u32 {
        for &step in steps {
            room::push(&mut self.steps, (path, step));
            path = self.steps.len() as u32 - 1;
        }
        path
    }

    /// The steps of a path, first to last.
    pub(super) fn steps(&self, mut path: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        while path != BEGIN {
            let (before, step) = self.steps[path as usize];
            steps.push(step);
            path = before;
        }
        steps.reverse();
        steps
    }

    /// Whether so much was added that a look for what nobody needs any more pays off.
    pub(super) fn is_due(&self) -> bool {
        self.steps.len() > 2 * self.kept + (1 << 16)
    }

    /// Forgets what is on none of these paths.
    pub(super) fn retain<'a>(&mut self, paths: impl Iterator<Item = &'a mut u32>) {
        let mut paths: Vec<&mut u32> = paths.collect();
        let mut needed = vec![false; self.steps.len()];
        for path in &paths {
            let mut at = **path;
            while at != BEGIN && !std::mem::replace(&mut needed[at as usize], true) {
                at = self.steps[at as usize].0;
            }
        }
        let mut place = vec![BEGIN; self.steps.len()];
        let mut kept = 0;
        for (at, needed) in needed.into_iter().enumerate() {
            if needed {
                let (before, step) = self.steps[at];
                let before = if before == BEGIN { BEGIN } else { place[before as usize] };
                self.steps[kept] = (before, step);
                place[at] = kept as u32;
                kept += 1;
            }
        }
        self.steps.truncate(kept);
        self.steps.shrink_to(kept + kept / 4);
        self.kept = kept;
        for path in &mut paths {
            if **path != BEGIN {
                **path = place[**path as usize];
            }
        }
    }

    /// Bytes held, with those that [`Self::retain`] takes for a while.
    pub(super) fn bytes(&self) -> usize {
        room::bytes(&self.steps) + self.steps.len() * (size_of::<bool>() + size_of::<u32>())
    }
}
