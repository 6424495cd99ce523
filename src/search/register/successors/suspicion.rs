//! Suspicion: which return no configuration can pass, guessed from the states that pruned moves lost. It saves searches for the
//! core and proves nothing. It must not depend on threads: the core of a violation begins from it.

use crate::search::mask::Mask;
use crate::search::register::automaton::Kind;
use crate::search::register::event_schedule::{NEVER, Operation};
use crate::search::register::pending::PendingOps;

/// States that pruned moves left for ever while an operation needed them.
#[derive(Debug, Default)]
pub(in crate::search::register) struct Suspicion {
    /// The latest return of a pending operation that needs one.
    returned: Option<u32>,
    /// States that only operations not yet invoked need.
    states: Vec<u32>,
    /// Whether any move ever lost a state.
    any: bool,
}

/// States that are remembered, at most.
const MOST: usize = 16;

impl Suspicion {
    pub(in crate::search::register) fn clear(&mut self) {
        self.returned = None;
        self.states.clear();
    }

    /// A move lost a state.
    pub(super) fn add<M: Mask>(&mut self, open: &PendingOps<'_, M>, state: u32, done: &M) {
        self.any = true;
        let automaton = open.automaton();
        let classes = automaton.out(state).iter().map(|way| way.0).chain([automaton.reads(state)]);
        let first = |class| open.undone(class, done).next().map(|slot| open.returned(slot));
        match classes.filter_map(first).min() {
            Some(returned) => self.returned = self.returned.max(Some(returned)),
            None => self.remember(state),
        }
    }

    /// Adds what later moves lost.
    pub(super) fn join(&mut self, later: Suspicion) {
        self.any |= later.any;
        self.returned = self.returned.max(later.returned);
        later.states.into_iter().for_each(|state| self.remember(state));
    }

    fn remember(&mut self, state: u32) {
        if self.states.len() < MOST && !self.states.contains(&state) {
            self.states.push(state);
        }
    }

    /// Whether any move ever lost a state.
    pub(in crate::search::register) fn is_any(&self) -> bool {
        self.any
    }

    /// The return before which every pruned move since the last [`Self::clear`] has lost a state that is needed.
    pub(in crate::search::register) fn first_return<M: Mask>(
        &self,
        open: &PendingOps<'_, M>,
        from: u32,
    ) -> Option<u32> {
        let schedule = open.schedule();
        let mut first = vec![NEVER; self.states.len()];
        let mut left = first.len();
        for event in schedule.events.get(from as usize..).unwrap_or_default() {
            let Operation { class, returned, .. } = *schedule.operation(event.of());
            if left == 0 {
                break;
            }
            let Some(&(Kind::Read(state) | Kind::Cas(state, _))) = open.automaton().kinds.get(class as usize) else {
                continue;
            };
            if let Some(at) = self.states.iter().position(|&lost| lost == state)
                && !event.is_return()
                && first[at] == NEVER
                && returned != NEVER
            {
                first[at] = returned;
                left -= 1;
            }
        }
        first.into_iter().filter(|&returned| returned != NEVER).chain(self.returned).max()
    }
}
