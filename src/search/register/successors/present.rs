//! Moves of ways 1 and 2: they change the present state. A partial move that leaves a state which an operation still needs, and
//! which cannot come back, is pruned here.

use super::{Applied, Generator, Partial, Phase, Task};
use crate::search::mask::Mask;
use crate::search::register::automaton::{DONT_CARE, Kind};
use crate::search::register::by_value::NONE;
use crate::search::register::configuration::Configuration;
use crate::search::register::event_schedule::NEVER;
use crate::search::register::parent_links::Step;

impl<M: Mask> Generator<'_, '_, M> {
    /// Continues from the present state, after `depth` steps.
    pub(super) fn chain(&mut self, task: Task, draft: &Partial<M>, depth: u32, more: &mut bool) {
        self.last(task, draft, depth);
        // A write would overwrite what a crashed operation led to before any operation needed it.
        if !draft.last.owing {
            match task.kind {
                Kind::Write(_) => {}
                Kind::FailedCas(shunned) => {
                    for to in self.open.written(&draft.at.linearized, NEVER) {
                        if to != shunned || !self.open.automaton().out(to).is_empty() {
                            self.begin(draft, to, depth, more);
                        }
                    }
                }
                Kind::Read(_) | Kind::Cas(..) | Kind::Append => {
                    for at in 0..self.successors.reach.len() {
                        self.begin(draft, self.successors.reach[at], depth, more);
                    }
                }
            }
        }
        for &way in self.open.automaton().out(draft.at.state) {
            self.follow(draft, way, depth, more);
        }
    }

    /// Continues a new block.
    pub(super) fn block(&mut self, task: Task, draft: &Partial<M>, more: &mut bool) {
        let depth = draft.depth + 1;
        self.last(task, draft, depth);
        for &way in self.open.automaton().out(draft.at.state) {
            if self.successors.reach.contains(&way.1) || matches!(task.kind, Kind::FailedCas(_)) {
                self.follow(draft, way, depth, more);
            }
        }
    }

    /// Takes the returning operation itself, if it changes the state.
    fn last(&mut self, task: Task, draft: &Partial<M>, depth: u32) {
        let step = Step::change(self.open.operation(self.slot));
        let state = draft.at.state;
        let useless = task.hideable && self.reductions.useless_writes && !self.open.any_failing(&draft.at.linearized);
        let mut at = draft.at.clone();
        at.linearized.add(self.slot);
        match task.kind {
            Kind::Write(to) => {
                let for_nothing = draft.last.owing || useless && !self.open.is_useful(to, &draft.at, self.uses);
                if for_nothing || depth == 0 && to == state {
                    return;
                }
                self.overwrite(&mut at, to);
            }
            Kind::Cas(from, to) if from == state => {
                self.change(&mut at, to);
            }
            Kind::Append => match self.open.automaton().edge(state, task.class) {
                Some(to) => {
                    self.change(&mut at, to);
                }
                None if useless || draft.last.owing || matches!(draft.phase, Phase::Block) => return,
                None => {
                    self.change(&mut at, DONT_CARE);
                }
            },
            Kind::Read(_) | Kind::FailedCas(_) | Kind::Cas(..) => return,
        }
        self.push(draft, at, draft.phase, 0, depth, Applied { step, from: state, owing: false });
    }

    /// Begins a block with a write of a state.
    fn begin(&mut self, draft: &Partial<M>, to: u32, depth: u32, more: &mut bool) {
        let class = self.open.automaton().writes(to);
        if class == NONE {
            return;
        }
        let mut any = false;
        for slot in self.equals(self.open, class, &draft.at.linearized, NEVER) {
            any = true;
            let mut at = draft.at.clone();
            at.linearized.add(slot);
            let step = Step::change(self.open.operation(slot));
            self.overwrite(&mut at, to);
            self.push(draft, at, Phase::Block, 0, depth, Applied { step, from: draft.at.state, owing: false });
        }
        if any && self.reductions.earliest_first {
            return;
        }
        let mut at = draft.at.clone();
        if let Some(operation) = self.optional(&mut at, class, NEVER) {
            if draft.optional == self.optional.1 {
                *more = true;
                return;
            }
            let step = Step::change(operation);
            self.overwrite(&mut at, to);
            self.push(draft, at, Phase::Block, 1, depth, Applied { step, from: draft.at.state, owing: false });
        }
    }

    /// Adds one compare-and-set or append.
    ///
    /// Of equal operations, the one that returns first is used. But one that could be put before the last overwrite may be worth
    /// more there than one that could not. So if the first can, the first that cannot is tried too, or a crashed one that cannot.
    fn follow(&mut self, draft: &Partial<M>, (class, to): (u32, u32), depth: u32, more: &mut bool) {
        let (open, from, gap) = (self.open, draft.at.state, draft.at.last_overwrite_at);
        let each = self.reductions.earliest_first;
        let (mut early, mut late) = (false, false);
        for slot in open.undone(class, &draft.at.linearized) {
            let is_late = open.invoked(slot) >= gap;
            if each && !is_late && early {
                continue;
            }
            (early, late) = (early || !is_late, late || is_late);
            if slot != self.slot {
                let mut at = draft.at.clone();
                at.linearized.add(slot);
                self.change(&mut at, to);
                let step = Step::change(open.operation(slot));
                self.push(draft, at, draft.phase, 0, depth, Applied { step, from, owing: false });
            }
            if each && late {
                return;
            }
        }
        let mut at = draft.at.clone();
        if let Some(operation) = self.optional(&mut at, class, NEVER) {
            if each && early && open.schedule().operation(operation).invoked < gap {
                return;
            }
            if draft.optional == self.optional.1 {
                *more = true;
                return;
            }
            let owing = !self.change(&mut at, to);
            if !(owing && self.is_round(draft, to)) {
                let step = Step::change(operation);
                self.push(draft, at, draft.phase, 1, depth, Applied { step, from, owing });
            }
        }
    }

    /// Keeps a partial move, unless it leaves a state that an operation still needs and that cannot come back.
    fn push(
        &mut self,
        draft: &Partial<M>,
        at: Configuration<M>,
        phase: Phase,
        optional: u32,
        depth: u32,
        last: Applied,
    ) {
        let left = last.from;
        if self.reductions.last_producer && left != at.state && self.open.is_lost(left, &at, self.uses) {
            self.successors.suspicion.add(self.open, left, &at.linearized);
            return;
        }
        self.successors.drafts.push(Partial { at, phase, optional: draft.optional + optional, depth, last });
    }
}
