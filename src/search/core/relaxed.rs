//! A relaxation: a history in which only some outcomes are known. Input: required calls, and groups of optional ones. Output: an
//! order that explains the required calls, or the proof that there is none. It is a search depth first, as by Wing and Gong
//! (1993), with visited states as by Lowe (2017). A place is visited only with the fewest uses of each group.

use super::world::{CoreModel, Group, Required, Times};
use crate::search::budget::BudgetGuard;
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes of states, at most.
const BYTES: usize = 256 << 20;

/// Optional calls above which the first search does not count uses.
const FEW: usize = 24;

/// A call in an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// The call.
    pub(super) call: u32,
    /// Whether its outcome counts.
    pub(super) known: bool,
}

/// The result of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// No order explains the calls whose outcomes are known.
    Impossible,
    /// This order explains them.
    Explained(Vec<Placed>),
    /// The budget was spent.
    Open,
}

/// The budget of decisions.
pub(super) struct Budget<'w, 'b> {
    /// Steps left for all decisions.
    pub(super) steps: u64,
    /// Steps of one decision, at most.
    pub(super) each: u64,
    /// The budget of the whole search.
    pub(super) watch: &'w BudgetGuard<'b>,
}

impl Budget<'_, '_> {
    /// Spends a step; `false` if none is left.
    pub(super) fn spend(&mut self) -> bool {
        let Some(left) = self.steps.checked_sub(1) else { return false };
        self.steps = left;
        if left.is_multiple_of(256) && self.watch.reached().is_some() {
            self.steps = 0;
        }
        true
    }
}

/// The question whether an order explains the known outcomes of a history.
pub(super) struct Relaxation<'a, W> {
    world: &'a mut W,
    times: &'a Times,
    known: &'a [bool],
    /// Calls that must have taken effect, by invocation.
    pub(super) required: Vec<Required>,
    /// All other calls, in groups.
    pub(super) optional: Vec<Group>,
}

/// A place in an order: the state and the required calls that are linearized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// The state.
    pub(super) state: u32,
    /// The first required call that is not linearized.
    pub(super) first: u32,
    /// The linearized ones of the calls after it, as bits.
    pub(super) after: u128,
}

/// Required calls that `after` can hold.
const WINDOW: usize = u128::BITS as usize;

impl Place {
    fn has(&self, required: usize) -> bool {
        let first = self.first as usize;
        required < first || required > first && self.after >> (required - first - 1) & 1 == 1
    }

    /// The same with one more required call linearized.
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
    /// Calls that were invoked later must wait.
    bound: i64,
    /// The next choice: a required call, or a group, numbered after the required calls.
    choice: usize,
    /// The choice that led here, and the bound at which it was taken.
    chosen: Option<(usize, i64)>,
}

/// Places that lead nowhere, each with the uses of every group. More uses lead nowhere either.
type Refuted = FxHashMap<Place, Vec<Box<[u8]>>>;

enum Found {
    Nothing,
    Open,
    Choices(Vec<(usize, i64)>),
}

impl<'a, W: CoreModel> Relaxation<'a, W> {
    /// `required`: completed calls among the `known` ones, by invocation.
    pub(super) fn new(world: &'a mut W, times: &'a Times, known: &'a [bool], required: Vec<Required>) -> Self {
        let optional = world.relax(&required, known);
        Relaxation { world, times, known, required, optional }
    }

    /// Tries orders depth first.
    ///
    /// If that is finite or there are many optional calls, it first lets each optional call take effect any number of times after
    /// its invocation. What is impossible even so is impossible. An order found so is valid if there are enough calls for its
    /// uses.
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

    /// Whether it is impossible even if every optional call could take effect any number of times; `None`: the budget was spent.
    pub(super) fn is_impossible_without_counting(&mut self, budget: &mut Budget<'_, '_>) -> Option<bool> {
        match self.search(false, budget) {
            Found::Nothing => Some(true),
            Found::Choices(_) => Some(false),
            Found::Open => None,
        }
    }

    /// The state after a required call, or else after `other`.
    pub(super) fn take(&mut self, state: u32, required: Option<Required>, other: u32) -> Option<u32> {
        match required {
            Some(Required { call, answered: true }) => self.world.step(state, call, true),
            Some(Required { call, answered: false }) => self.world.happen(state, call),
            None => self.world.step(state, other, false),
        }
    }

    /// The next call of a group of which `used` were used, if it was invoked by a time.
    pub(super) fn available(&self, group: usize, used: usize, bound: i64) -> Option<u32> {
        self.optional[group].get(used).copied().filter(|&call| self.times.invoke[call as usize] <= bound)
    }

    /// The required calls that can be next.
    pub(super) fn next(&self, place: Place, bound: i64) -> impl Iterator<Item = usize> {
        let open = move |at: &usize| !place.has(*at) && self.times.invoke[self.required[*at].call as usize] <= bound;
        (place.first as usize..self.required.len()).filter(open)
    }

    /// The earliest return of a required call that is not linearized: calls that were invoked later must wait.
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
            // Of two overwrites with no call between them, the first may as well never have taken effect.
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
                        // A read can be linearized at once: no order needs it later.
                        frame.choice = usize::MAX - 1;
                    }
                }
                // The order without this call explains as much.
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

    /// Assigns calls to the choices of an order. Of a group it takes the latest that fits, because the known outcome of a later
    /// call contradicts less. `None` if there are too few calls.
    fn staffed(&mut self, choices: &[(usize, i64)]) -> Option<Vec<Placed>> {
        let mut order = Vec::with_capacity(choices.len());
        let mut taken = FxHashSet::default();
        // From the end, because the calls that fit later include those that fit earlier.
        for &(at, bound) in choices.iter().rev() {
            let placed = match self.required.get(at) {
                Some(required) => Placed { call: required.call, known: true },
                None => {
                    let group = &self.optional[at - self.required.len()];
                    let mut alike = self.world.alike(group[0], self.known, self.times, bound);
                    // Only the latest few were looked at, so any earlier one of the group will do.
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
