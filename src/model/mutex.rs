//! The model `mutex`: a lock.
//!
//! ```
//! use retrograde::model::{Mutex, mutex::Operation};
//! use retrograde::{Recorder, assertion::Claim};
//!
//! let recorder = Recorder::new();
//! recorder.client("a").invoke(Operation::Acquire(Some("a"))).ok(());
//! recorder.client("b").invoke(Operation::Acquire(Some("b"))).ok(()); // a still holds it
//! assert!(Claim::default().linearizable(&Mutex::default(), &recorder).is_err());
//! ```

use super::recorded::{Log, Meaning, Mismatch, Recorded, Recording};
use super::{Datum, Spec};
use crate::history::ValueId;

/// A lock with one holder at a time (`mutex` of knossos), with its owner if the history records owners.
///
/// Without owners, any release frees a held lock, because a recording of bare acquires and releases does not name the holder.
/// With an owner on both, only the holder's release can succeed. A refused acquire is not an observation: a lock also refuses
/// after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutex<O> {
    owners: std::marker::PhantomData<fn() -> O>,
}

impl<O> Default for Mutex<O> {
    fn default() -> Self {
        Mutex { owners: std::marker::PhantomData }
    }
}

/// What a client calls on a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation<O> {
    /// Acquires the lock for this owner.
    Acquire(Option<O>),
    /// Releases the lock of this owner.
    Release(Option<O>),
}

/// The state of the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum State<O> {
    /// No client holds it.
    Free,
    /// This owner holds it, if an owner was recorded.
    Held(Option<O>),
}

impl<O: Datum> Spec for Mutex<O> {
    type State = State<O>;
    type Operation = Operation<O>;
    /// Success; a refusal is [`Outcome::Failed`](crate::search).
    type Answer = ();

    fn initial(&self) -> State<O> {
        State::Free
    }

    fn step(&self, state: &State<O>, operation: &Operation<O>, _answer: Option<&()>) -> Option<State<O>> {
        match (operation, state) {
            (Operation::Acquire(owner), State::Free) => Some(State::Held(owner.clone())),
            (Operation::Release(Some(owner)), State::Held(Some(holder))) if owner != holder => None,
            (Operation::Release(_), State::Held(_)) => Some(State::Free),
            _ => None,
        }
    }
}

/// `acquire` and `release` (or `lock` and `unlock`); an argument is the owner.
impl Recorded for Mutex<ValueId> {
    fn of(_log: &Log<'_>) -> Self {
        Mutex::default()
    }

    fn meaning(&self, call: &Recording<'_>) -> Result<Meaning<Operation<ValueId>, ()>, Mismatch> {
        let operation = match call.function() {
            "acquire" | "lock" => Operation::Acquire(call.argument()),
            "release" | "unlock" => Operation::Release(call.argument()),
            _ => return Err(call.foreign("acquire, release, lock, unlock")),
        };
        Ok(Meaning::One(operation, (!call.is_unseen()).then_some(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(operations: &[Operation<u8>]) -> Option<State<u8>> {
        let mutex = Mutex::default();
        operations.iter().try_fold(mutex.initial(), |state, operation| mutex.step(&state, operation, Some(&())))
    }

    #[test]
    fn one_holds_it_at_a_time() {
        let (acquire, release) = (|| Operation::Acquire(None), || Operation::Release(None));
        assert_eq!(ends(&[acquire(), release(), acquire()]), Some(State::Held(None)));
        assert_eq!(ends(&[acquire(), acquire()]), None);
        assert_eq!(ends(&[release()]), None);
    }

    #[test]
    fn only_the_owner_releases_where_owners_are_recorded() {
        let (acquire, release) = (|o| Operation::Acquire(Some(o)), |o| Operation::Release(Some(o)));
        assert_eq!(ends(&[acquire(1), release(1), acquire(2)]), Some(State::Held(Some(2))));
        assert_eq!(ends(&[acquire(1), release(2)]), None);
        assert_eq!(ends(&[acquire(1), Operation::Release(None)]), Some(State::Free));
        assert_eq!(ends(&[Operation::Acquire(None), release(2)]), Some(State::Free));
    }
}
