//! Histories of which only some outcomes are known.

use super::world::{CoreModel, Group, Required, Times};
use crate::search::budget::BudgetGuard;
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes that states may hold.
const BYTES: usize = 256 << 20;

/// So many optional calls are few.
const FEW: usize = 24;

/// One call in an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// The call.
    pub(super) call: u32,
    /// Whether its outcome counts.
    pub(super) known: bool,
}

/// What asking came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// No order explains the calls whose outcomes are known.
    Impossible,
    /// This one does.
    Explained(Vec<Placed>),
    /// The budget was spent.
    Open,
}

/// What deciding may cost.
pub(super) struct Budget<'w, 'b> {
    /// Steps that are left for everything.
    pub(super) steps: u64,
    /// Steps that one question may take.
    pub(super) each: u64,
    /// The budget of the whole search.
    pub(super) watch: &'w BudgetGuard<'b>,
}

impl Budget<'_, '_> {
    /// Spends a step, if there is one.
    pub(super) fn spend(&mut self) -> bool {
        let Some(left) = self.steps.checked_sub(1) else { return false };
        self.steps = left;
        if left.is_multiple_of(256) && self.watch.reached().is_some() {
            self.steps = 0;
        }
        true
    }
}

/// A history of which only some outcomes are known: does an order explain those?
pub(super) struct Relaxation<'a, W> {
    world: &'a mut W,
    times: &'a Times,
    known: &'a [bool],
    /// Calls that must have happened, by invocation.
    pub(super) required: Vec<Required>,
    /// The others.
    pub(super) optional: Vec<Group>,
}

/// How far an order has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// The state.
    pub(super) state: u32,
    /// The first required call that is not done.
    pub(super) first: u32,
    /// Which of those after it are.
    pub(super) after: u128,
}

/// Required calls that one can tell apart behind the first that is not done.
const WINDOW: usize = u128::BITS as usize;

impl Place {
    fn has(&self, required: usize) -> bool {
        let first = self.first as usize;
        required < first || required > first && self.after >> (required - first - 1) & 1 == 1
    }

    /// With one more required call done.
    pub(super) fn with(mut self, required: usize) -> Self {
        match required - self.first as usize {
            0 => {
                let more = self.after.trailing_ones();
                self.first += more + 1;
                self.after = if more + 1 >= u128::BITS { 0 } else { self.after >> (more + 1) };
            }
            distance => self.after |= 1 << (distance - 1),
        }
        self
    }
}

struct Frame {
    place: Place,
    /// Whoever was invoked later has to wait.
    bound: i64,
    /// The next choice: a required call, or, counted from their number on, a group.
    choice: usize,
    /// The choice that led here, and the bound at which it was taken.
    chosen: Option<(usize, i64)>,
}

/// Places that lead nowhere, and how many of each group had been used there: fewer would do as well.
type Refuted = FxHashMap<Place, Vec<Box<[u8]>>>;

enum Found {
    Nothing,
    Open,
    Choices(Vec<(usize, i64)>),
}

impl<'a, W: CoreModel> Relaxation<'a, W> {
    /// `required` are completed calls among those that are `known`, by invocation.
    pub(super) fn new(world: &'a mut W, times: &'a Times, known: &'a [bool], required: Vec<Required>) -> Self {
        let optional = world.relax(&required, known);
        Relaxation { world, times, known, required, optional }
    }

    /// Tries orders, depth first.
    ///
    /// Where that ends, first as if each optional call could happen any number of times once it was invoked: what is
    /// impossible even so is impossible, and an order found so is one if enough calls are there to stand for those uses.
    pub(super) fn decide(&mut self, budget: &mut Budget<'_, '_>) -> Decision {
        if self.world.is_finite() || self.optional.iter().map(Vec::len).sum::<usize>() > FEW {
            match self.search(false, budget) {
                Found::Nothing => return Decision::Impossible,
                Found::Choices(choices) => {
                    if let Some(order) = self.staffed(&choices) {
                        return Decision::Explained(order);
                    }
                }
                Found::Open => {}
            }
        }
        match self.search(true, budget) {
            Found::Nothing => Decision::Impossible,
            Found::Open => Decision::Open,
            Found::Choices(choices) => self.staffed(&choices).map_or(Decision::Open, Decision::Explained),
        }
    }

    /// Whether it is impossible even if every optional call could happen any number of times; `None`: the budget was spent.
    pub(super) fn is_impossible_without_counting(&mut self, budget: &mut Budget<'_, '_>) -> Option<bool> {
        match self.search(false, budget) {
            Found::Nothing => Some(true),
            Found::Choices(_) => Some(false),
            Found::Open => None,
        }
    }

    /// The state after a required call, or any other.
    pub(super) fn take(&mut self, state: u32, required: Option<Required>, other: u32) -> Option<u32> {
        match required {
            Some(Required { call, answered: true }) => self.world.step(state, call, true),
            Some(Required { call, answered: false }) => self.world.happen(state, call),
            None => self.world.step(state, other, false),
        }
    }

    /// The call that a group offers after so many of it were used, if it was invoked by a time.
    pub(super) fn available(&self, group: usize, used: usize, bound: i64) -> Option<u32> {
        self.optional[group].get(used).copied().filter(|&call| self.times.invoke[call as usize] <= bound)
    }

    /// The required calls that can come next.
    pub(super) fn next(&self, place: Place, bound: i64) -> impl Iterator<Item = usize> {
        let open = move |at: &usize| !place.has(*at) && self.times.invoke[self.required[*at].call as usize] <= bound;
        (place.first as usize..self.required.len()).filter(open)
    }

    /// The earliest return of what is not done: who was invoked later has to wait.
    pub(super) fn bound(&self, place: &Place) -> i64 {
        let mut bound = i64::MAX;
        for at in place.first as usize..self.required.len() {
            let call = self.required[at].call as usize;
            if self.times.invoke[call] > bound {
                break;
            }
            if !place.has(at) {
                bound = bound.min(self.times.returned[call]);
            }
        }
        bound
    }

    fn search(&mut self, counting: bool, budget: &mut Budget<'_, '_>) -> Found {
        let mut left = budget.each;
        let mut used = vec![0u8; if counting { self.optional.len() } else { 0 }];
        let mut refuted = Refuted::default();
        let start = Place::default();
        refuted.insert(start, vec![used.clone().into_boxed_slice()]);
        let mut frames = vec![self.frame(start, None)];
        while let Some(frame) = frames.last_mut() {
            let first = frame.place.first as usize;
            if first >= self.required.len() {
                return Found::Choices(frames.into_iter().filter_map(|frame| frame.chosen).collect());
            }
            let at = frame.choice.max(first);
            frame.choice = at + 1;
            let group = at.checked_sub(self.required.len());
            let (call, answered) = match group {
                None if self.times.invoke[self.required[at].call as usize] > frame.bound => {
                    frame.choice = self.required.len();
                    continue;
                }
                None if frame.place.has(at) => continue,
                None if at - first > WINDOW => return Found::Open,
                None => (self.required[at].call, self.required[at].answered),
                Some(group) if group < self.optional.len() => {
                    let number = if counting { usize::from(used[group]) } else { 0 };
                    match self.optional[group].get(number) {
                        Some(&call) if self.times.invoke[call as usize] <= frame.bound => (call, false),
                        _ => continue,
                    }
                }
                Some(_) => {
                    let left = frames.pop().and_then(|frame| frame.chosen);
                    if let Some((at, _)) = left
                        && counting
                        && let Some(group) = at.checked_sub(self.required.len())
                    {
                        used[group] -= 1;
                    }
                    continue;
                }
            };
            if left == 0 || self.world.bytes() > BYTES || !budget.spend() {
                return Found::Open;
            }
            left -= 1;
            // Of two overwrites nobody looks between, the first may as well never have happened.
            let after_optional = frame.chosen.is_some_and(|(before, _)| before >= self.required.len());
            if group.is_some() && after_optional && self.world.overwrites(call) {
                continue;
            }
            let (place, bound) = (frame.place, frame.bound);
            let before = place.state;
            let required = group.is_none().then_some(Required { call, answered });
            let Some(state) = self.take(before, required, call) else { continue };
            let Some(frame) = frames.last_mut() else { continue };
            let mut next = Place { state, ..place };
            match group {
                None => {
                    next = next.with(at);
                    if answered && !self.world.changes(call) {
                        // What never changes anything can as well happen now: no order needs it later.
                        frame.choice = usize::MAX - 1;
                    }
                }
                // The order without it is one as well.
                Some(_) if state == before => continue,
                Some(_) if !counting => {}
                Some(group) if used[group] == u8::MAX => return Found::Open,
                Some(group) => used[group] += 1,
            }
            let known = refuted.entry(next).or_default();
            if known.iter().any(|fewer| fewer.iter().zip(&used).all(|(fewer, used)| fewer <= used)) {
                if let Some(group) = group
                    && counting
                {
                    used[group] -= 1;
                }
                continue;
            }
            known.retain(|more| !used.iter().zip(more).all(|(used, more)| used <= more));
            known.push(used.clone().into_boxed_slice());
            let next = self.frame(next, Some((at, bound)));
            frames.push(next);
        }
        Found::Nothing
    }

    fn frame(&self, place: Place, chosen: Option<(usize, i64)>) -> Frame {
        Frame { place, bound: self.bound(&place), choice: 0, chosen }
    }

    /// The calls that stand for the choices of an order: of a group the latest that can, since what is still to be seen of a
    /// later one contradicts less. `None`: there are too few.
    fn staffed(&mut self, choices: &[(usize, i64)]) -> Option<Vec<Placed>> {
        let mut order = Vec::with_capacity(choices.len());
        let mut taken = FxHashSet::default();
        // From behind, because those that can stand later include those that can stand earlier.
        for &(at, bound) in choices.iter().rev() {
            let placed = match self.required.get(at) {
                Some(required) => Placed { call: required.call, known: true },
                None => {
                    let group = &self.optional[at - self.required.len()];
                    let mut alike = self.world.alike(group[0], self.known, self.times, bound);
                    // Where only the latest few were looked at, any earlier one will do.
                    alike.extend(group.iter().rev().filter(|&&call| self.times.invoke[call as usize] <= bound));
                    Placed { call: alike.into_iter().find(|call| !taken.contains(call))?, known: false }
                }
            };
            taken.insert(placed.call);
            order.push(placed);
        }
        order.reverse();
        Some(order)
    }
}
