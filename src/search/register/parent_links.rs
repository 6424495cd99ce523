//! Parent links: the steps to each configuration, stored as a tree of links from a step to the one before it. Output: the steps
//! of a path, for the witness builder. Unreachable steps are collected by mark and compact. That renumbers all paths, so each
//! path that is kept must be passed to [`ParentLinks::retain`].

use crate::search::tight_vec;

/// A step of a partial linearization: an operation and its [`Place`] in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step(u32);

const HIDDEN: u32 = 1 << 31;
const GAP: u32 = HIDDEN;
const MORE: u32 = HIDDEN | 1 << 30;
const IDLE: u32 = 1 << 30;
const OPERATION: u32 = (1 << 30) - 1;

/// Upper bound on the operations that a step can number.
pub(super) const MAX_OPERATIONS: usize = OPERATION as usize;

impl Step {
    /// The operation is linearized last and may change the present state.
    pub(super) const fn change(operation: u32) -> Self {
        Step(operation)
    }

    /// The operation begins a block right before the last overwrite.
    pub(super) const fn gap(operation: u32) -> Self {
        Step(operation | GAP)
    }

    /// The operation continues that block.
    pub(super) const fn more(operation: u32) -> Self {
        Step(operation | MORE)
    }

    /// The operation is an absorbable write: it is put where the register held its value.
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

    /// Whether the operation leads to a state that is not the present one.
    pub(super) const fn is_hidden(self) -> bool {
        self.0 & !OPERATION != 0
    }
}

/// Where a step puts its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Present,
    Gap,
    More,
    Idle,
}

/// The steps of all kept configurations, each linked to the one before it.
#[derive(Debug, Default)]
pub(super) struct ParentLinks {
    steps: Vec<(u32, Step)>,
    /// Steps after the last collection.
    pub(super) kept: usize,
}

/// The empty path.
pub(super) const BEGIN: u32 = u32::MAX;

impl ParentLinks {
    /// The path with these steps at its end.
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

    /// Whether enough steps are new since the last collection: `least`, and half as many as that one kept.
    pub(super) fn is_due(&self, least: usize) -> bool {
        self.steps.len() > self.kept + self.kept / 2 + least
    }

    /// Drops the steps that are on none of these paths, and renumbers the paths.
    pub(super) fn retain<'a>(&mut self, paths: impl Iterator<Item = &'a mut u32>) {
        let mut paths: Vec<&mut u32> = paths.collect();
        let mut kept_steps = KeptSteps { words: vec![(0, 0); self.steps.len().div_ceil(64)] };
        for path in &paths {
            let mut at = **path;
            while at != BEGIN && kept_steps.add(at) {
                at = self.steps[at as usize].0;
            }
        }
        let kept = kept_steps.count();
        for at in kept_steps.all() {
            let (before, step) = self.steps[at as usize];
            let before = if before == BEGIN { BEGIN } else { kept_steps.new_index(before) };
            self.steps[kept_steps.new_index(at) as usize] = (before, step);
        }
        self.steps.truncate(kept);
        self.steps.shrink_to(kept + kept / 4);
        self.kept = kept;
        for path in &mut paths {
            if **path != BEGIN {
                **path = kept_steps.new_index(**path);
            }
        }
    }

    /// Bytes held, with those that [`Self::retain`] needs while it runs.
    pub(super) fn bytes(&self) -> usize {
        tight_vec::bytes(&self.steps) + self.steps.len().div_ceil(64) * size_of::<(u64, u32)>()
    }
}

/// The steps that are kept, as a bit set: for each 64 steps their bits, and how many are kept before them.
struct KeptSteps {
    words: Vec<(u64, u32)>,
}

impl KeptSteps {
    /// Adds a step. Whether it is new.
    fn add(&mut self, at: u32) -> bool {
        let (word, bit) = (&mut self.words[at as usize / 64].0, 1 << (at % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Counts the steps. [`Self::new_index`] is valid from then on.
    fn count(&mut self) -> usize {
        let mut count = 0;
        for (word, before) in &mut self.words {
            *before = count;
            count += word.count_ones();
        }
        count as usize
    }

    /// How many kept steps precede this one: its new number.
    fn new_index(&self, at: u32) -> u32 {
        let (word, before) = self.words[at as usize / 64];
        before + (word & ((1 << (at % 64)) - 1)).count_ones()
    }

    /// The kept steps, ascending.
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
