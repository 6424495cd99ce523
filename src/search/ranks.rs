//! Times become ranks: only the order counts.

use super::history::{Call, Outcome};

/// An invocation or a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event(u32);

impl Event {
    pub(super) const fn invoke(of: u32) -> Self {
        Event(of << 1)
    }

    pub(super) const fn ret(of: u32) -> Self {
        Event(of << 1 | 1)
    }

    /// Of which call, or operation of a part.
    pub(super) const fn of(self) -> u32 {
        self.0 >> 1
    }

    pub(super) const fn is_return(self) -> bool {
        self.0 & 1 == 1
    }
}

/// More calls than this have more events than there are ranks.
pub(super) const MOST_CALLS: usize = (u32::MAX / 2) as usize;

/// The events of the calls that may have happened, first to last. At one time invocations come before returns: intervals are
/// closed.
pub(super) fn events<O, A>(calls: &[Call<O, A>]) -> Vec<Event> {
    let mut timed = Vec::with_capacity(calls.len() * 2);
    for (at, call) in (0..).zip(calls) {
        match call.outcome {
            Outcome::Failed => {}
            Outcome::Unknown => timed.push((call.invoke, Event::invoke(at))),
            Outcome::Completed { returned, .. } => {
                timed.push((call.invoke, Event::invoke(at)));
                timed.push((returned, Event::ret(at)));
            }
        }
    }
    timed.sort_unstable_by_key(|&(time, event)| (time, event.is_return(), event.of()));
    timed.into_iter().map(|(_, event)| event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_returns_when_another_is_invoked_is_concurrent_with_it() {
        let call = |invoke, returned| Call {
            process: 0,
            operation: (),
            invoke,
            outcome: Outcome::Completed { returned, answer: () },
        };
        let events = events(&[call(5, 7), call(1, 5)]);
        assert_eq!(events, [Event::invoke(1), Event::invoke(0), Event::ret(1), Event::ret(0)]);
    }
}
