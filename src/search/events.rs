//! The events of a history in order. Input: calls with times. Output: invocations and returns, whose places replace the times. At
//! one time all invocations come before all returns, because intervals are closed.

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

    /// The call, or the operation of a part.
    pub(super) const fn of(self) -> u32 {
        self.0 >> 1
    }

    pub(super) const fn is_return(self) -> bool {
        self.0 & 1 == 1
    }
}

/// Calls whose events have places in a `u32`, at most.
pub(super) const MOST_CALLS: usize = (u32::MAX / 2) as usize;

/// The events of the calls that may have taken effect, in order. At one time invocations come before returns.
pub(super) fn events<O, A>(calls: &[Call<O, A>]) -> Vec<Event> {
    let timed = || (0..).zip(calls).flat_map(|(at, call)| times(at, call));
    let (mut count, mut first, mut last) = (0, i64::MAX, i64::MIN);
    timed().for_each(|(time, _)| (count, first, last) = (count + 1, first.min(time), last.max(time)));
    match last.checked_sub(first).and_then(|span| usize::try_from(span).ok()) {
        // Hardly more times than events, as with line numbers.
        Some(span) if span < 2 * count => by_counting(timed, count, first, span),
        _ => by_sorting(timed()),
    }
}

/// Invocations are mostly in order already, and returns nearly so.
fn by_sorting(timed: impl Iterator<Item = (i64, Event)>) -> Vec<Event> {
    let (mut invocations, mut returns): (Vec<_>, Vec<_>) = timed.partition(|(_, event)| !event.is_return());
    for events in [&mut invocations, &mut returns] {
        // Events of one time stay in the order of their calls.
        events.sort_by_key(|&(time, _)| time);
    }
    let mut events = Vec::with_capacity(invocations.len() + returns.len());
    let mut invocations = invocations.into_iter().peekable();
    for (returned, event) in returns {
        while let Some((_, invocation)) = invocations.next_if(|&(invoked, _)| invoked <= returned) {
            events.push(invocation);
        }
        events.push(event);
    }
    events.extend(invocations.map(|(_, event)| event));
    events
}

fn times<O, A>(at: u32, call: &Call<O, A>) -> impl Iterator<Item = (i64, Event)> + use<O, A> {
    let (invoked, returned) = match call.outcome {
        Outcome::Failed => (None, None),
        Outcome::Unknown => (Some(call.invoke), None),
        Outcome::Completed { returned, .. } => (Some(call.invoke), Some(returned)),
    };
    let invoked = invoked.map(|time| (time, Event::invoke(at)));
    invoked.into_iter().chain(returned.map(|time| (time, Event::ret(at))))
}

/// `timed` yields `count` events, by call, at times from `first` to `first + span`.
fn by_counting<I: Iterator<Item = (i64, Event)>>(
    timed: impl Fn() -> I,
    count: usize,
    first: i64,
    span: usize,
) -> Vec<Event> {
    let place = |time: i64, event: Event| (time - first) as usize * 2 + usize::from(event.is_return());
    let mut next = vec![0u32; span * 2 + 3];
    timed().for_each(|(time, event)| next[place(time, event) + 1] += 1);
    for at in 1..next.len() {
        next[at] += next[at - 1];
    }
    let mut events = vec![Event::invoke(0); count];
    timed().for_each(|(time, event)| {
        let next = &mut next[place(time, event)];
        events[*next as usize] = event;
        *next += 1;
    });
    events
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

    #[test]
    fn times_far_apart_are_put_in_the_same_order_as_numbers_of_lines() {
        let mut random = fastrand::Rng::with_seed(1);
        for most in [1, 3, 10, 40] {
            let mut below = |most: i64| random.i64(0..most);
            let drawn: Vec<(i64, i64)> = (0..12).map(|_| (below(most), below(most))).collect();
            let calls = |far: i64| {
                let call = |&(invoke, length): &(i64, i64)| Call {
                    process: 0,
                    operation: (),
                    invoke: invoke * far - 5,
                    outcome: match length % 4 {
                        0 => Outcome::Unknown,
                        1 => Outcome::Failed,
                        _ => Outcome::Completed { returned: (invoke + length) * far - 5, answer: () },
                    },
                };
                drawn.iter().map(call).collect::<Vec<_>>()
            };
            assert_eq!(events(&calls(1)), events(&calls(1_000_000_007)), "{drawn:?}");
        }
    }
}
