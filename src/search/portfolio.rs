//! A portfolio: two strategies (searches with different costs) for one problem. Some histories are hard for one strategy and easy
//! for the other.
//!
//! The result depends on no thread and no clock. Work is counted and done in rounds of doubling size. The strategy that ends in
//! the earlier round counts, and the first one if both end in the same round. So once a strategy has ended, the other continues
//! only until it cannot end in an earlier round. A decisive result ([`Outcome::is_decisive`]) counts at once, except that a first
//! strategy which may soon report more is waited for.
//!
//! On two threads, a strategy waits for the other only if it is more than a round ahead. On one thread they take turns.

use super::budget::{BudgetGuard, NOBODY};
use super::verdict::Limit;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// The result of a strategy.
pub(super) trait Outcome: Send {
    /// Whether every other strategy has the same result.
    fn is_decisive(&self) -> bool;
}

/// A strategy, which can be interrupted and continued.
pub(super) trait Runner: Send {
    /// Its result.
    type Found: Outcome;

    /// Continues until it has done `until` units of work in all, about one for each configuration looked at. `None`: not yet at
    /// its end.
    ///
    /// # Errors
    /// The limit that ended it. It must not run again after [`Limit::Memory`].
    fn run(&mut self, until: u64, memory: usize, guard: &BudgetGuard<'_>) -> Result<Option<Self::Found>, Limit>;
}

/// Two strategies. The second begins when the first has not ended in its first round.
pub(super) struct Portfolio<A: Runner, B: Runner, F> {
    /// Work of the first round.
    base: u64,
    first: Strategy<A>,
    second: Strategy<B>,
    begin: Option<F>,
    /// Rounds that the first strategy does even if the second has a decisive result.
    patience: u32,
}

/// A strategy and its progress.
struct Strategy<R: Runner> {
    /// `None`: it has ended, or is out of memory.
    runner: Option<R>,
    /// The next round.
    next: u32,
    /// Its result, and the round in which it was found.
    found: Option<(u32, R::Found)>,
    /// The limit that ended it, other than memory.
    limit: Option<Limit>,
}

impl<R: Runner> Strategy<R> {
    fn new(runner: Option<R>, next: u32) -> Self {
        Strategy { runner, next, found: None, limit: None }
    }

    /// Does one round. A strategy that is out of memory does not end the portfolio.
    fn round(&mut self, base: u64, memory: usize, guard: &BudgetGuard<'_>) {
        let Some(runner) = &mut self.runner else { return };
        match runner.run(until(base, self.next), memory, guard) {
            Ok(None) => self.next += 1,
            Ok(Some(found)) => {
                self.found = Some((self.next, found));
                self.runner = None;
            }
            Err(Limit::Memory) => self.runner = None,
            Err(limit) => self.limit = Some(limit),
        }
    }

    /// Whether it can do a round before `end`.
    fn goes_on(&self, end: u32) -> bool {
        self.runner.is_some() && self.limit.is_none() && self.next < end
    }

    /// The first round whose result is not known.
    fn known(&self) -> u32 {
        if self.runner.is_some() { self.next } else { u32::MAX }
    }

    fn is_settled(&self) -> bool {
        self.found.as_ref().is_some_and(|(_, found)| found.is_decisive())
    }
}

fn until(base: u64, round: u32) -> u64 {
    base.saturating_mul(1 << round.min(40))
}

impl<A, B, F> Portfolio<A, B, F>
where
    A: Runner,
    B: Runner<Found = A::Found>,
    F: FnOnce() -> B + Send,
{
    /// `base` is the work of the first round.
    pub(super) fn new(base: u64, first: A, begin: F) -> Self {
        Portfolio {
            base,
            first: Strategy::new(Some(first), 0),
            second: Strategy::new(None, 1),
            begin: Some(begin),
            patience: 0,
        }
    }

    /// The first strategy reports more if it ends in its first `rounds` rounds, so it does these in any case.
    pub(super) fn grace_rounds(self, rounds: u32) -> Self {
        Portfolio { patience: rounds, ..self }
    }

    /// The result, if it is known.
    fn result(&mut self) -> Option<A::Found> {
        let (first, second) = (&mut self.first, &mut self.second);
        let second_counts = match (&first.found, &second.found) {
            (None, None) => return None,
            _ if first.is_settled() => false,
            _ if second.is_settled() && first.goes_on(self.patience) => return None,
            _ if second.is_settled() => true,
            (Some((round, _)), None) if second.known() >= *round => false,
            (None, Some((round, _))) if first.known() > *round => true,
            (Some((first, _)), Some((second, _))) => second < first,
            _ => return None,
        };
        let found = if second_counts { second.found.take() } else { first.found.take() };
        found.map(|(_, found)| found)
    }

    /// Runs both strategies, each on its own thread if there are two. Returns when one has ended, has done the rounds before
    /// `end`, or is a round ahead.
    fn together(&mut self, end: u32, memory: usize, guard: &BudgetGuard<'_>) {
        let (first, second, base) = (&mut self.first, &mut self.second, self.base);
        let known = [first.known(), second.known()].map(AtomicU32::new);
        // A strategy that is too far ahead waits, and the other one does no more rounds than it must.
        let waits = [false, false].map(AtomicBool::new);
        let pauses = |at: usize, next: u32| {
            let other = known[1 - at].load(Ordering::Relaxed);
            let is_ahead = next > other.saturating_add(1);
            waits[at].store(is_ahead, Ordering::Relaxed);
            is_ahead || waits[1 - at].load(Ordering::Relaxed) && next.saturating_add(1) >= other
        };
        // Without another thread for the second strategy, they take turns.
        let [beside, first_rests] = [false, false].map(AtomicBool::new);
        // The first round in which the other strategy need not continue. Its rank is one more than its round.
        let [first_won, second_won] = [NOBODY, NOBODY].map(AtomicUsize::new);
        let patience = self.patience as usize;
        rayon::join(
            || {
                let is_turn = |next| beside.load(Ordering::Relaxed) || next <= known[1].load(Ordering::Relaxed);
                while first.goes_on(end) && !pauses(0, first.next) && is_turn(first.next) {
                    let rank = first.next as usize + 1;
                    if second_won.load(Ordering::Relaxed) < rank {
                        break;
                    }
                    first.round(base, memory, &guard.competing(&second_won, rank));
                    if let Some((round, found)) = &first.found {
                        first_won.store(if found.is_decisive() { 0 } else { *round as usize }, Ordering::Relaxed);
                    }
                    known[0].store(first.known(), Ordering::Relaxed);
                }
                first_rests.store(true, Ordering::Relaxed);
            },
            || {
                beside.store(true, Ordering::Relaxed);
                let is_turn = |next| !first_rests.load(Ordering::Relaxed) || next < known[0].load(Ordering::Relaxed);
                while second.goes_on(end) && !pauses(1, second.next) && is_turn(second.next) {
                    let rank = second.next as usize + 1;
                    if first_won.load(Ordering::Relaxed) < rank {
                        break;
                    }
                    second.round(base, memory, &guard.competing(&first_won, rank));
                    if let Some((round, found)) = &second.found {
                        let won = if found.is_decisive() { patience } else { *round as usize + 1 };
                        second_won.store(won, Ordering::Relaxed);
                    }
                    known[1].store(second.known(), Ordering::Relaxed);
                }
            },
        );
    }
}

impl<A, B, F> Runner for Portfolio<A, B, F>
where
    A: Runner,
    B: Runner<Found = A::Found>,
    F: FnOnce() -> B + Send,
{
    type Found = A::Found;

    fn run(&mut self, work: u64, memory: usize, guard: &BudgetGuard<'_>) -> Result<Option<A::Found>, Limit> {
        let memory = memory / 2;
        let end = (0..u64::BITS).find(|&round| until(self.base, round) > work).unwrap_or(u32::MAX);
        loop {
            if let Some(found) = self.result() {
                return Ok(Some(found));
            }
            if let Some(limit) = self.first.limit.take().or(self.second.limit.take()) {
                return Err(limit);
            }
            let begun = self.begin.is_none();
            match (self.first.goes_on(end), begun && self.second.goes_on(end)) {
                (true, false) => self.first.round(self.base, memory, guard),
                (false, true) => self.second.round(self.base, memory, guard),
                (true, true) if rayon::current_num_threads() > 1 => self.together(end, memory, guard),
                (true, true) if self.first.next <= self.second.next => self.first.round(self.base, memory, guard),
                (true, true) => self.second.round(self.base, memory, guard),
                (false, false) if begun && self.first.runner.is_none() && self.second.runner.is_none() => {
                    return Err(Limit::Memory);
                }
                (false, false) if begun || self.first.runner.is_some() => return Ok(None),
                (false, false) => {}
            }
            if (self.first.next > 0 || self.first.runner.is_none())
                && let Some(begin) = self.begin.take_if(|_| self.first.found.is_none())
            {
                self.second.runner = Some(begin());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Budget;
    use super::*;

    /// Ends after `end` units of work.
    struct Count {
        work: u64,
        end: u64,
        found: &'static str,
    }

    impl Outcome for &'static str {
        fn is_decisive(&self) -> bool {
            self.starts_with("settled")
        }
    }

    impl Runner for Count {
        type Found = &'static str;

        fn run(&mut self, until: u64, _memory: usize, guard: &BudgetGuard<'_>) -> Result<Option<&'static str>, Limit> {
            while self.work < until {
                if self.work >= self.end {
                    return if self.found == "memory" { Err(Limit::Memory) } else { Ok(Some(self.found)) };
                }
                self.work += 1;
                if self.work.is_multiple_of(64)
                    && let Some(limit) = guard.reached()
                {
                    return Err(limit);
                }
            }
            Ok(None)
        }
    }

    fn race(
        first: (u64, &'static str),
        second: (u64, &'static str),
        patience: u32,
        threads: usize,
        steps: bool,
    ) -> Result<&'static str, Limit> {
        let count = |(end, found)| Count { work: 0, end, found };
        let mut race = Portfolio::new(100, count(first), || count(second)).grace_rounds(patience);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let guard = BudgetGuard::begin(&Budget::default());
        pool.install(|| {
            let mut until = if steps { 70 } else { u64::MAX };
            loop {
                match race.run(until, usize::MAX, &guard) {
                    Ok(Some(found)) => return Ok(found),
                    Ok(None) => until = until.saturating_mul(2),
                    Err(limit) => return Err(limit),
                }
            }
        })
    }

    #[test]
    fn who_ends_in_the_earlier_round_counts_on_any_number_of_threads() {
        for (first, second, result) in [
            ((10, "a"), (10, "b"), Ok("a")),
            ((150, "a"), (10, "b"), Ok("a")),
            ((250, "a"), (10, "b"), Ok("b")),
            ((100_000, "a"), (99_000, "b"), Ok("a")),
            ((100_000, "a"), (40_000, "b"), Ok("b")),
            ((40_000, "a"), (100_000, "b"), Ok("a")),
            ((40_000, "a"), (u64::MAX, "b"), Ok("a")),
            ((u64::MAX, "a"), (40_000, "b"), Ok("b")),
            ((u64::MAX, "a"), (40_000, "settled"), Ok("settled")),
            ((40_000, "settled"), (u64::MAX, "b"), Ok("settled")),
            ((50, "memory"), (40_000, "b"), Ok("b")),
            ((5_000, "memory"), (40_000, "b"), Ok("b")),
            ((40_000, "a"), (5_000, "memory"), Ok("a")),
            ((40_000, "memory"), (5_000, "memory"), Err(Limit::Memory)),
        ] {
            for (threads, steps) in [(1, false), (2, false), (1, true), (2, true), (3, false)] {
                for _ in 0..20 {
                    assert_eq!(
                        race(first, second, 0, threads, steps),
                        result,
                        "{first:?} {second:?} {threads} {steps}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_first_way_that_says_more_is_waited_for_in_its_first_rounds_only() {
        for (first, second, result) in [
            ((350, "settled, more"), (10, "settled"), "settled, more"),
            ((350, "settled, more"), (350, "settled"), "settled, more"),
            ((450, "settled, more"), (10, "settled"), "settled"),
            ((u64::MAX, "settled, more"), (350, "settled"), "settled"),
            ((u64::MAX, "settled, more"), (5_000, "settled"), "settled"),
            ((350, "memory"), (150, "settled"), "settled"),
        ] {
            for (threads, steps) in [(1, false), (2, false), (1, true), (2, true), (3, false)] {
                for _ in 0..20 {
                    let found = race(first, second, 3, threads, steps);
                    assert_eq!(found, Ok(result), "{first:?} {second:?} {threads} {steps}");
                }
            }
        }
    }

    #[test]
    fn a_race_within_a_race_comes_to_the_same_on_any_number_of_threads() {
        let ends = [10, 350, 5_000, 90_000];
        for first in ends {
            for (second, third) in ends.into_iter().flat_map(|second| ends.map(|third| (second, third))) {
                let outcome = |threads: usize| {
                    let count = |end, found| Count { work: 0, end, found };
                    let inner = move || Portfolio::new(100, count(second, "b"), move || count(third, "c"));
                    let mut race = Portfolio::new(100, count(first, "a"), inner);
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| race.run(u64::MAX, usize::MAX, &BudgetGuard::begin(&Budget::default())))
                };
                let expected = outcome(1);
                assert!(matches!(expected, Ok(Some(_))), "{expected:?}");
                for threads in [2, 2, 3] {
                    assert_eq!(outcome(threads), expected, "{first} {second} {third}");
                }
            }
        }
    }
}
