//! Runs units of work on several threads and hands their results on in order.

use std::collections::BTreeMap;
use std::iter;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Takes units from `next`, works on them with `threads` threads (0: one for each core) and passes the results to `finish` in
/// the order of the units.
///
/// Each thread takes a unit (one at a time: reading is one stream), works on it, and, where its result is the one that
/// `finish` waits for, finishes it and all that wait behind it. So reading, working and finishing overlap without a
/// barrier and without a thread of their own, and no more than a few results per thread are ever held. A single unit is worked on
/// where the caller stands: most logs are smaller than what starting a thread takes.
pub(super) fn in_order<U, R>(
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
        // The system is asked in a dozen files.
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
    let desk = ReorderBuffer { results: Mutex::default(), room: Condvar::new(), places: threads * 2 };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let guard = Abandon(&desk);
                loop {
                    let (nth, unit) = {
                        let mut source = locked(&source);
                        let Some(unit) = source.0.next() else { break };
                        source.1 += 1;
                        (source.1 - 1, unit)
                    };
                    let result = work(unit);
                    if !desk.submit(nth, result, |result| (locked(&finish))(result)) {
                        break;
                    }
                }
                drop(guard);
            });
        }
    });
}

/// A poisoned lock means that another thread panicked; the scope passes that panic on, so the data may be seen.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where results wait for their turn.
struct ReorderBuffer<R> {
    results: Mutex<Results<R>>,
    room: Condvar,
    places: usize,
}

struct Results<R> {
    waiting: BTreeMap<u64, R>,
    turn: u64,
    /// Whether some thread is finishing results now.
    busy: bool,
    abandoned: bool,
}

impl<R> Default for Results<R> {
    fn default() -> Self {
        Results { waiting: BTreeMap::new(), turn: 0, busy: false, abandoned: false }
    }
}

impl<R> ReorderBuffer<R> {
    /// Hands a result in; finishes results if it is their turn. False when another thread panicked.
    fn submit(&self, nth: u64, result: R, finish: impl Fn(R)) -> bool {
        let mut desk = locked(&self.results);
        desk.waiting.insert(nth, result);
        if !desk.busy {
            desk.busy = true;
            loop {
                let turn = desk.turn;
                let Some(result) = desk.waiting.remove(&turn) else { break };
                drop(desk);
                finish(result);
                desk = locked(&self.results);
                desk.turn += 1;
                self.room.notify_all();
            }
            desk.busy = false;
        }
        // The thread with the result of the turn never waits here, so the others are always let go.
        while desk.waiting.len() >= self.places && !desk.abandoned {
            desk = self.room.wait(desk).unwrap_or_else(PoisonError::into_inner);
        }
        !desk.abandoned
    }
}

/// Lets waiting threads go when one panics.
struct Abandon<'a, R>(&'a ReorderBuffer<R>);

impl<R> Drop for Abandon<'_, R> {
    fn drop(&mut self) {
        if thread::panicking() {
            locked(&self.0.results).abandoned = true;
            self.0.room.notify_all();
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
