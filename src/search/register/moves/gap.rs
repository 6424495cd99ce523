//! Moves that put a block before the last write.

use super::{Draft, Finder, Phase, Taken, Task};
use crate::search::mask::Mask;
use crate::search::register::automaton::{Kind, OTHER};
use crate::search::register::by_value::NONE;
use crate::search::register::configuration::Configuration;
use crate::search::register::path::Step;

impl<M: Mask> Finder<'_, '_, M> {
    /// Begins blocks with the returning operation in them.
    pub(super) fn enter_gap(&mut self, task: Task, more: &mut bool) {
        let operation = self.open.operation(self.slot);
        self.find_reach(task, self.from.gap);
        match task.kind {
            Kind::Write(to) => {
                let mut at = self.from.clone();
                at.done.add(self.slot);
                self.push_in_gap(at, to, 0, operation);
                return;
            }
            Kind::Append => {
                // By itself: nobody sees what it makes.
                let mut at = self.from.clone();
                at.done.add(self.slot);
                self.finish(at, 0, Step::gap(operation));
            }
            Kind::FailedCas(shunned) => {
                for to in self.open.written(&self.from.done, self.from.gap) {
                    if to != shunned || !self.open.automaton().out(to).is_empty() {
                        self.begin_in_gap(to, more);
                    }
                }
            }
            Kind::Read(_) | Kind::Cas(..) => {}
        }
        for at in 0..self.moves.reach_in_gap.len() {
            self.begin_in_gap(self.moves.reach_in_gap[at], more);
        }
    }

    /// Begins a block with a write of a state.
    fn begin_in_gap(&mut self, to: u32, more: &mut bool) {
        let class = self.open.automaton().writes(to);
        if class == NONE {
            return;
        }
        let mut any = false;
        for slot in self.equals(self.open, class, &self.from.done, self.from.gap) {
            any = true;
            let mut at = self.from.clone();
            at.done.add(slot);
            at.idle.remove(slot);
            self.push_in_gap(at, to, 0, self.open.operation(slot));
        }
        if any && self.reductions.earliest_first {
            return;
        }
        let mut at = self.from.clone();
        if let Some(operation) = self.optional(&mut at, class, self.from.gap) {
            if self.optional.1 == 0 {
                *more = true;
            } else {
                self.push_in_gap(at, to, 1, operation);
            }
        }
    }

    fn push_in_gap(&mut self, mut at: Configuration<M>, to: u32, optional: u32, operation: u32) {
        self.open.serve(&mut at.done, to, at.gap);
        let last = Taken { step: Step::gap(operation), from: OTHER, owing: false };
        self.moves.drafts.push(Draft { at, phase: Phase::Gap(to), optional, depth: 0, last });
    }

    /// Goes on with a block in the gap. Once the returning operation is in it, it may end.
    pub(super) fn gap(&mut self, task: Task, draft: &Draft<M>, state: u32, more: &mut bool) {
        let served = draft.at.done.has(self.slot);
        if served && !draft.last.owing {
            self.finish_draft(draft);
        }
        let open = self.open;
        for &(class, to) in open.automaton().out(state) {
            let leads = || class == task.class || self.moves.reach_in_gap.contains(&to);
            if !served && !matches!(task.kind, Kind::FailedCas(_)) && !leads() {
                continue;
            }
            let mut any = false;
            for slot in self.equals(open, class, &draft.at.done, draft.at.gap) {
                any = true;
                let mut at = draft.at.clone();
                at.done.add(slot);
                self.more_in_gap(draft, at, (state, to), 0, open.operation(slot));
            }
            if any && self.reductions.earliest_first {
                continue;
            }
            let mut at = draft.at.clone();
            if let Some(operation) = self.optional(&mut at, class, draft.at.gap) {
                if draft.optional == self.optional.1 {
                    *more = true;
                } else {
                    self.more_in_gap(draft, at, (state, to), 1, operation);
                }
            }
        }
    }

    /// One operation more.
    fn more_in_gap(
        &mut self,
        draft: &Draft<M>,
        mut at: Configuration<M>,
        (from, to): (u32, u32),
        optional: u32,
        operation: u32,
    ) {
        let seen = self.open.serve(&mut at.done, to, at.gap);
        let owing = optional == 1 && !seen;
        if owing && self.is_round(draft, to) {
            return;
        }
        let last = Taken { step: Step::more(operation), from, owing };
        let optional = draft.optional + optional;
        self.moves.drafts.push(Draft { at, phase: Phase::Gap(to), optional, depth: draft.depth + 1, last });
    }
}
