//! Two ways to one result, raced: different growth laws beat the splitting of one search.
//!
//! The result does not depend on threads or time. Work is counted, not clocked, and given out in rounds of doubling size. Where
//! both ways come to an end in one round, the first one's result counts; it is waited for, unless the second one's is such that
//! the first can come to no other ([`Outcome::is_settled`]).

use super::budget::{NOBODY, Watch};
use super::verdict::Limit;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a way comes to.
pub(super) trait Outcome: Send {
    /// Whether every other way comes to the same.
    fn is_settled(&self) -> bool;
}

/// One way: it can be stopped after some work, and go on.
pub(super) trait Runner: Send {
    /// What it comes to.
    type Found: Outcome;

    /// Goes on until it has done so much work in all. `None`: not yet at an end. About one unit is one configuration looked at.
    ///
    /// # Errors
    /// The limit that ended it. After [`Limit::Memory`] it is not to be run again.
    fn run(&mut self, until: u64, memory: usize, watch: &Watch<'_>) -> Result<Option<Self::Found>, Limit>;
}

/// A race. The second way is begun where the first does not come to an end soon.
pub(super) struct Race<A, B, F> {
    first: Option<A>,
    second: Option<B>,
    begin: Option<F>,
}

impl<A, B, F> Race<A, B, F>
where
    A: Runner,
    B: Runner<Found = A::Found>,
    F: FnOnce() -> B + Send,
{
    pub(super) fn new(first: A, begin: F) -> Self {
        Race { first: Some(first), second: None, begin: Some(begin) }
    }
}

impl<A, B, F> Runner for Race<A, B, F>
where
    A: Runner,
    B: Runner<Found = A::Found>,
    F: FnOnce() -> B + Send,
{
    type Found = A::Found;

    fn run(&mut self, until: u64, memory: usize, watch: &Watch<'_>) -> Result<Option<A::Found>, Limit> {
        let memory = memory / 2;
        if let Some(begin) = self.begin.take() {
            let result = round(&mut self.first, until, memory, watch);
            self.second = Some(begin());
            if !matches!(result, Ok(None)) {
                return result;
            }
            return if self.first.is_some() { Ok(None) } else { round(&mut self.second, until, memory, watch) };
        }
        let (won, settled) = (AtomicUsize::new(NOBODY), AtomicUsize::new(NOBODY));
        let (first, second) = rayon::join(
            || {
                let result = round(&mut self.first, until, memory, &watch.among(&settled, 1));
                if !matches!(result, Ok(None)) {
                    won.store(0, Ordering::Relaxed);
                }
                result
            },
            || {
                let result = round(&mut self.second, until, memory, &watch.among(&won, 1));
                if result.as_ref().is_ok_and(|found| found.as_ref().is_some_and(Outcome::is_settled)) {
                    settled.store(0, Ordering::Relaxed);
                }
                result
            },
        );
        match (first, second) {
            (_, Ok(Some(found))) if Outcome::is_settled(&found) => Ok(Some(found)),
            (Ok(Some(found)), _) => Ok(Some(found)),
            (Err(limit), _) => Err(limit),
            (Ok(None), second) => match (&self.first, &self.second) {
                (None, None) => Err(Limit::Memory),
                _ => second,
            },
        }
    }
}

/// One round of one way. Memory ends a way, not the race.
fn round<R: Runner>(
    runner: &mut Option<R>,
    until: u64,
    memory: usize,
    watch: &Watch<'_>,
) -> Result<Option<R::Found>, Limit> {
    let Some(running) = runner else { return Ok(None) };
    match running.run(until, memory, watch) {
        Err(Limit::Memory) => {
            *runner = None;
            Ok(None)
        }
        result => result,
    }
}
