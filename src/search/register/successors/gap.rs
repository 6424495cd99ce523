//! Moves of way 3: a block is put right before the last overwrite. All its operations were invoked before that event, and the
//! present state stays. Only the reads and failed compare-and-sets that were invoked before it can see the states of the block.

use super::{Applied, Generator, Partial, Phase, Task};
use crate::search::mask::Mask;
use crate::search::register::automaton::{DONT_CARE, Kind};
use crate::search::register::by_value::NONE;
use crate::search::register::configuration::Configuration;
use crate::search::register::parent_links::Step;

impl<M: Mask> Generator<'_, '_, M> {
    /// Begins the blocks with the returning operation in them.
    pub(super) fn enter_gap(&mut self, task: Task, more: &mut bool) {
        let operation = self.open.operation(self.slot);
        self.find_reach(task, self.from.last_overwrite_at);
        match task.kind {
            Kind::Write(to) => {
                let mut at = self.from.clone();
                at.linearized.add(self.slot);
                self.push_in_gap(at, to, 0, operation);
                return;
            }
            Kind::Append => {
                // Without a block around it: no operation sees the state after it.
                let mut at = self.from.clone();
                at.linearized.add(self.slot);
                self.finish(at, 0, Step::gap(operation));
            }
            Kind::FailedCas(shunned) => {
                for to in self.open.written(&self.from.linearized, self.from.last_overwrite_at) {
                    if to != shunned || !self.open.automaton().out(to).is_empty() {
                        self.begin_in_gap(to, more);
                    }
                }
            }
            Kind::Read(_) | Kind::Cas(..) => {}
        }
        for at in 0..self.successors.reach_in_gap.len() {
            self.begin_in_gap(self.successors.reach_in_gap[at], more);
        }
    }

    /// Begins a block with a write of a state.
    fn begin_in_gap(&mut self, to: u32, more: &mut bool) {
        let class = self.open.automaton().writes(to);
        if class == NONE {
            return;
        }
        let mut any = false;
        for slot in self.equals(self.open, class, &self.from.linearized, self.from.last_overwrite_at) {
            any = true;
            let mut at = self.from.clone();
            at.linearized.add(slot);
            at.absorbable.remove(slot);
            self.push_in_gap(at, to, 0, self.open.operation(slot));
        }
        if any && self.reductions.earliest_first {
            return;
        }
        let mut at = self.from.clone();
        if let Some(operation) = self.optional(&mut at, class, self.from.last_overwrite_at) {
            if self.optional.1 == 0 {
                *more = true;
            } else {
                self.push_in_gap(at, to, 1, operation);
            }
        }
    }

    fn push_in_gap(&mut self, mut at: Configuration<M>, to: u32, optional: u32, operation: u32) {
        self.open.serve(&mut at.linearized, to, at.last_overwrite_at);
        let last = Applied { step: Step::gap(operation), from: DONT_CARE, owing: false };
        self.successors.drafts.push(Partial { at, phase: Phase::Gap(to), optional, depth: 0, last });
    }

    /// Continues a block before the last overwrite. It may end once the returning operation is in it.
    pub(super) fn gap(&mut self, task: Task, draft: &Partial<M>, state: u32, more: &mut bool) {
        let served = draft.at.linearized.has(self.slot);
        if served && !draft.last.owing {
            self.finish_draft(draft);
        }
        let open = self.open;
        for &(class, to) in open.automaton().out(state) {
            let leads = || class == task.class || self.successors.reach_in_gap.contains(&to);
            if !served && !matches!(task.kind, Kind::FailedCas(_)) && !leads() {
                continue;
            }
            let mut any = false;
            for slot in self.equals(open, class, &draft.at.linearized, draft.at.last_overwrite_at) {
                any = true;
                let mut at = draft.at.clone();
                at.linearized.add(slot);
                self.more_in_gap(draft, at, (state, to), 0, open.operation(slot));
            }
            if any && self.reductions.earliest_first {
                continue;
            }
            let mut at = draft.at.clone();
            if let Some(operation) = self.optional(&mut at, class, draft.at.last_overwrite_at) {
                if draft.optional == self.optional.1 {
                    *more = true;
                } else {
                    self.more_in_gap(draft, at, (state, to), 1, operation);
                }
            }
        }
    }

    /// Adds one operation to a block.
    fn more_in_gap(
        &mut self,
        draft: &Partial<M>,
        mut at: Configuration<M>,
        (from, to): (u32, u32),
        optional: u32,
        operation: u32,
    ) {
        let seen = self.open.serve(&mut at.linearized, to, at.last_overwrite_at);
        let owing = optional == 1 && !seen;
        if owing && self.is_round(draft, to) {
            return;
        }
        let last = Applied { step: Step::more(operation), from, owing };
        let optional = draft.optional + optional;
        self.successors.drafts.push(Partial { at, phase: Phase::Gap(to), optional, depth: draft.depth + 1, last });
    }
}
