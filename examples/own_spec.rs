//! Checks a data type of your own: a stock of items that four clients take from at once.
//!
//! ```console
//! $ cargo run --example own_spec
//! ```
//!
//! One stock is correct. The other one loses an update, and the program prints the fewest calls that prove it.

use retrograde::Recorder;
use retrograde::assertion::{Claim, ClaimError};
use retrograde::model::Spec;
use std::error::Error;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

/// A stock of so many items. Its `Spec` says what it does, one call after the other.
struct Stock(u32);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Request {
    Take,
    Left,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Taken,
    SoldOut,
    Items(u32),
}

impl Spec for Stock {
    type State = u32;
    type Operation = Request;
    type Answer = Answer;

    fn initial(&self) -> u32 {
        self.0
    }

    fn step(&self, left: &u32, request: &Request, answer: Option<&Answer>) -> Option<u32> {
        let (next, right) = match (request, left) {
            (Request::Take, 0) => (0, Answer::SoldOut),
            (Request::Take, left) => (left - 1, Answer::Taken),
            (Request::Left, left) => (*left, Answer::Items(*left)),
        };
        // A call without an answer, such as one that timed out, may have had any answer.
        answer.is_none_or(|answer| *answer == right).then_some(next)
    }
}

/// Records five calls on a stock of three items: one asks how many are left, then four clients take one each, at once.
/// The error is the report for people, with the fewest calls that no order explains. `take` is the code under test.
pub(crate) fn checked(take: impl Fn(&AtomicU32) -> Answer + Sync) -> Result<(), ClaimError> {
    let (recorder, stock) = (Recorder::new(), AtomicU32::new(3));
    let call = recorder.client("main").invoke(Request::Left); // before the request is sent
    call.ok(Answer::Items(stock.load(SeqCst))); // after the answer has arrived
    thread::scope(|scope| {
        for name in ["ann", "bob", "cleo", "dan"] {
            let (client, stock, take) = (recorder.client(name), &stock, &take);
            scope.spawn(move || client.invoke(Request::Take).ok(take(stock)));
        }
    });
    // In a test, `assert_linearizable!(Stock(3), recorder)` panics with the report.
    Claim::default().linearizable(&Stock(3), &recorder)
}

/// Takes an item in one step.
pub(crate) fn take_at_once(stock: &AtomicU32) -> Answer {
    let taken = stock.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
    if taken.is_ok() { Answer::Taken } else { Answer::SoldOut }
}

/// Takes an item in two steps, which is wrong. The barrier lets all four clients read before one writes.
pub(crate) fn take_in_two_steps(stock: &AtomicU32, all_have_read: &Barrier) -> Answer {
    let left = stock.load(SeqCst);
    all_have_read.wait();
    stock.store(left - 1, SeqCst);
    Answer::Taken
}

fn main() -> Result<(), Box<dyn Error>> {
    checked(take_at_once)?;
    println!("The correct stock is linearizable. The other one is not:\n");
    let all_have_read = Barrier::new(4);
    let report = checked(|stock| take_in_two_steps(stock, &all_have_read)).err().ok_or("the fault was not found")?;
    println!("{report}");
    Ok(())
}
