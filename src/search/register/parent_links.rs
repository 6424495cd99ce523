//! How configurations came about.

use crate::search::tight_vec;

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
pub(super) struct ParentLinks {
    steps: Vec<(u32, Step)>,
    /// How many there were after the last clearing.
    kept: usize,
}

/// A look for so few steps more is not worth it.
const FEW: usize = if cfg!(test) { 1 << 6 } else { 1 << 16 };

/// The path without steps.
pub(super) const BEGIN: u32 = u32::MAX;

impl ParentLinks {
    /// A path with more steps.
    pub(super) fn extend(&mut self, mut path: u32, steps: &[Step]) -> u32 {
        for &step in steps {
            tight_vec::push(&mut self.steps, (path, step));
            path = self.steps.len() as u32 - 1;
        }
        path
    }

    /// The steps of a path, first to last.
    pub(super) fn steps(&self, mut path: u32) -> Vec<Step> {
        let mut steps = Vec::with_capacity(self.steps.len());
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
        self.steps.len() > self.kept + self.kept / 2 + FEW
    }

    /// Forgets what is on none of these paths.
    pub(super) fn retain<'a>(&mut self, paths: impl Iterator<Item = &'a mut u32>) {
        let mut paths: Vec<&mut u32> = paths.collect();
        let mut needed = Needed { words: vec![(0, 0); self.steps.len().div_ceil(64)] };
        for path in &paths {
            let mut at = **path;
            while at != BEGIN && needed.add(at) {
                at = self.steps[at as usize].0;
            }
        }
        let kept = needed.count();
        for at in needed.all() {
            let (before, step) = self.steps[at as usize];
            let before = if before == BEGIN { BEGIN } else { needed.place(before) };
            self.steps[needed.place(at) as usize] = (before, step);
        }
        self.steps.truncate(kept);
        self.steps.shrink_to(kept + kept / 4);
        self.kept = kept;
        for path in &mut paths {
            if **path != BEGIN {
                **path = needed.place(**path);
            }
        }
    }

    /// Bytes held, with those that [`Self::retain`] takes for a while.
    pub(super) fn bytes(&self) -> usize {
        tight_vec::bytes(&self.steps) + self.steps.len().div_ceil(64) * size_of::<(u64, u32)>()
    }
}

/// Steps that stay: of each 64 a bit each, and how many stay before them.
struct Needed {
    words: Vec<(u64, u32)>,
}

impl Needed {
    /// Adds one. Whether it is new.
    fn add(&mut self, at: u32) -> bool {
        let (word, bit) = (&mut self.words[at as usize / 64].0, 1 << (at % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// How many they are; [`Self::place`] knows from then on.
    fn count(&mut self) -> usize {
        let mut count = 0;
        for (word, before) in &mut self.words {
            *before = count;
            count += word.count_ones();
        }
        count as usize
    }

    /// How many stay before one.
    fn place(&self, at: u32) -> u32 {
        let (word, before) = self.words[at as usize / 64];
        before + (word & ((1 << (at % 64)) - 1)).count_ones()
    }

    /// They, in order.
    fn all(&self) -> impl Iterator<Item = u32> {
        (0..).step_by(64).zip(&self.words).flat_map(|(first, &(word, _))| {
            let mut left = word;
            std::iter::from_fn(move || {
                let at = (left != 0).then(|| first + left.trailing_zeros())?;
                left &= left - 1;
                Some(at)
            })
        })
    }
}
