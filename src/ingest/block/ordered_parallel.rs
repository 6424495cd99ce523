//! Runs units of work on several threads and passes their results on in order, through a bounded reorder buffer.

use std::collections::BTreeMap;
use std::iter;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Takes units from `next`, runs `work` on `threads` threads (0: one per core), and passes the results to `finish` in
/// the order of the units.
///
/// One thread at a time takes a unit, since reading is one stream. The thread with the next result in order finishes
/// it and all that wait behind it. So reading, work and finishing overlap without a barrier, and the buffer holds at
/// most two results per thread and those in progress. A single unit runs on the caller's thread: most logs take less
/// time than the start of a thread.
pub(in crate::ingest) fn in_order<U, R>(
    threads: usize,
    mut next: impl FnMut() -> Option<U> + Send,
    work: impl Fn(U) -> R + Sync,
    mut finish: impl FnMut(R) + Send,
) where
    U: Send,
    R: Send,
{
    let first = next();
    let second = if threads != 1 && first.is_some() { next() } else { None };
    let threads = match (&second, threads) {
        (None, _) => 1,
        // The query reads a dozen files, so one unit does without it.
        (Some(_), 0) => thread::available_parallelism().map_or(1, usize::from),
        (Some(_), threads) => threads,
    };
    let units = first.into_iter().chain(second).chain(iter::from_fn(next));
    if threads == 1 {
        units.for_each(|unit| finish(work(unit)));
        return;
    }
    let source = Mutex::new((units, 0u64));
    let finish = Mutex::new(finish);
    let buffer = ReorderBuffer { results: Mutex::default(), has_space: Condvar::new(), capacity: threads * 2 };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let guard = Abandon(&buffer);
                loop {
                    let (nth, unit) = {
                        let mut source = locked(&source);
                        let Some(unit) = source.0.next() else { break };
                        source.1 += 1;
                        (source.1 - 1, unit)
                    };
                    let result = work(unit);
                    if !buffer.submit(nth, result, |result| (locked(&finish))(result)) {
                        break;
                    }
                }
                drop(guard);
            });
        }
    });
}

/// A poisoned lock means that another thread panicked. The scope propagates that panic, so no result of this data is
/// used.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Results that wait for their turn.
struct ReorderBuffer<R> {
    results: Mutex<Results<R>>,
    has_space: Condvar,
    capacity: usize,
}

struct Results<R> {
    waiting: BTreeMap<u64, R>,
    turn: u64,
    /// Whether a thread is finishing results.
    busy: bool,
    abandoned: bool,
}

impl<R> Default for Results<R> {
    fn default() -> Self {
        Results { waiting: BTreeMap::new(), turn: 0, busy: false, abandoned: false }
    }
}

impl<R> ReorderBuffer<R> {
    /// Submits a result, and finishes results if it is their turn. False if another thread panicked.
    fn submit(&self, nth: u64, result: R, finish: impl Fn(R)) -> bool {
        let mut results = locked(&self.results);
        results.waiting.insert(nth, result);
        if !results.busy {
            results.busy = true;
            loop {
                let turn = results.turn;
                let Some(result) = results.waiting.remove(&turn) else { break };
                drop(results);
                finish(result);
                results = locked(&self.results);
                results.turn += 1;
                self.has_space.notify_all();
            }
            results.busy = false;
        }
        // The thread with the next result in order never waits here, so the others are released.
        while results.waiting.len() >= self.capacity && !results.abandoned {
            results = self.has_space.wait(results).unwrap_or_else(PoisonError::into_inner);
        }
        !results.abandoned
    }
}

/// Releases waiting threads after a panic.
struct Abandon<'a, R>(&'a ReorderBuffer<R>);

impl<R> Drop for Abandon<'_, R> {
    fn drop(&mut self) {
        if thread::panicking() {
            locked(&self.0.results).abandoned = true;
            self.0.has_space.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_finished_in_order_for_any_number_of_threads() {
        for threads in [1, 2, 3, 8] {
            let mut units = 0..500u64;
            let mut seen = Vec::new();
            in_order(
                threads,
                || units.next(),
                |n| {
                    if n % 7 == 0 {
                        thread::yield_now();
                    }
                    n * 2
                },
                |n| seen.push(n),
            );
            assert_eq!(seen, (0..500).map(|n| n * 2).collect::<Vec<_>>(), "{threads} threads");
        }
    }

    #[test]
    fn a_panic_of_one_thread_ends_the_others() {
        let mut units = 0..500u64;
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            in_order(4, || units.next(), |n| assert!(n != 40, "intended"), |()| {});
        }));
        assert!(result.is_err());
    }
}
