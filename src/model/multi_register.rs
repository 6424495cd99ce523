//! The model `multi-register`: registers that transactions read and write together.
//!
//! ```
//! use retrograde::model::{MultiRegister, multi_register::Access};
//! use retrograde::{Recorder, assertion::Claim};
//!
//! let recorder = Recorder::new();
//! recorder.client("a").invoke(vec![Access::Write("x", 1), Access::Write("y", 1)]).ok(vec![]);
//! recorder.client("b").invoke(vec![Access::Read("x"), Access::Read("y")]).ok(vec![Some(1), None]); // half of it
//! assert!(Claim::default().linearizable(&MultiRegister::default(), &recorder).is_err());
//! ```

use super::datum::held;
use super::form::{Action, RegisterForm};
use super::parts::Parts;
use super::recorded::{Event, Log, Meaning, Mismatch, Recorded, Recording};
use super::{Datum, Effect, Spec, number};
use crate::history::ValueId;
use crate::history::calls::Value as Recordable;
use rustc_hash::FxHashSet;

/// Registers by key, and transactions that read and write some of them at one moment (`multi-register` of knossos, `txn` of `:r`
/// and `:w` of Jepsen). A transaction sees its own writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiRegister<K, V> {
    kinds: std::marker::PhantomData<fn() -> (K, V)>,
}

impl<K, V> Default for MultiRegister<K, V> {
    fn default() -> Self {
        MultiRegister { kinds: std::marker::PhantomData }
    }
}

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Access<K, V> {
    /// Reads the value of a key.
    Read(K),
    /// Writes the value of a key.
    Write(K, V),
}

impl<K, V> Access<K, V> {
    fn key(&self) -> &K {
        match self {
            Access::Read(key) | Access::Write(key, _) => key,
        }
    }
}

impl<K: Datum, V: Datum> Spec for MultiRegister<K, V> {
    type State = Parts<K, V>;
    /// The steps, in order.
    type Operation = Vec<Access<K, V>>;
    /// The values of the reads, in order; `None`: there is no value.
    type Answer = Vec<Option<V>>;

    fn initial(&self) -> Self::State {
        Parts::default()
    }

    fn step(
        &self,
        state: &Self::State,
        operation: &Self::Operation,
        answer: Option<&Self::Answer>,
    ) -> Option<Self::State> {
        let mut next = state.clone();
        let mut seen = answer.map(|answer| answer.iter());
        for access in operation {
            match access {
                Access::Write(key, value) => next.set(key, Some(value.clone())),
                Access::Read(key) => {
                    if let Some(seen) = &mut seen
                        && seen.next()?.as_ref() != next.get(key)
                    {
                        return None;
                    }
                }
            }
        }
        match seen {
            Some(more) if more.len() > 0 => None,
            _ => Some(next),
        }
    }

    fn keys(&self, operation: &Self::Operation) -> Option<Vec<u64>> {
        Some(operation.iter().map(|access| number(access.key())).collect())
    }

    fn effect(&self, operation: &Self::Operation, _answer: Option<&Self::Answer>) -> Effect {
        let reads = operation.iter().all(|access| matches!(access, Access::Read(_)));
        if reads { Effect::Read } else { Effect::Any }
    }

    fn form<'a>(
        &'a self,
        operation: &'a Self::Operation,
        answer: Option<&'a Self::Answer>,
    ) -> Option<RegisterForm<'a>> {
        let [access] = operation.as_slice() else { return None };
        let action = match (access, answer.map(Vec::as_slice)) {
            (Access::Read(_), None) => Action::Nothing,
            (Access::Read(_), Some([seen])) => Action::Read(held(seen)?),
            (Access::Write(_, value), None | Some([])) => Action::Write(value.value()?),
            _ => return None,
        };
        Some(RegisterForm { register: access.key().value()?, action })
    }

    fn heap_bytes(&self, state: &Self::State) -> usize {
        state.heap_bytes()
    }
}

/// Transactions of `[:r key value]` and `[:w key value]`, or `read` and `write` of maps from key to value.
impl Recorded for MultiRegister<ValueId, ValueId> {
    fn of(_log: &Log<'_>) -> Self {
        MultiRegister::default()
    }

    fn meaning(
        &self,
        call: &Recording<'_>,
    ) -> Result<Meaning<Vec<Access<ValueId, ValueId>>, Vec<Option<ValueId>>>, Mismatch> {
        let function = call.function();
        if !matches!(function, "txn" | "read" | "write") {
            return Err(call.foreign("txn, read, write"));
        }
        if let Some(pairs) = map(call, call.argument()) {
            return match function {
                "write" => {
                    let value = |id| call.some(id).ok_or_else(|| call.mismatch("a value for each key"));
                    let writes: Result<_, _> = pairs.map(|(key, id)| Ok(Access::Write(key, value(id)?))).collect();
                    Ok(Meaning::One(writes?, (!call.is_unseen()).then(Vec::new)))
                }
                "read" => Ok(snapshot(call)),
                _ => Err(call.mismatch("a transaction of [:r key value] and [:w key value]")),
            };
        }
        if function == "read" && map(call, call.answer().flatten()).is_some() {
            return Ok(snapshot(call));
        }
        let expected = "a transaction of [:r key value] and [:w key value]";
        let steps = |id: Option<ValueId>| {
            let steps = call.steps(id?)?.into_iter().map(|(word, key, value)| match word {
                "r" | "read" => Some((Access::Read(key), call.some(value))),
                "w" | "write" => Some((Access::Write(key, call.some(value)?), None)),
                _ => None,
            });
            steps.collect::<Option<Vec<_>>>()
        };
        let Some(asked) = steps(call.argument()) else { return Err(call.mismatch(expected)) };
        let operation: Vec<_> = asked.into_iter().map(|(access, _)| access).collect();
        let answer = match call.answer() {
            _ if call.is_unseen() => None,
            answer => {
                let answered =
                    steps(answer.flatten()).filter(|answered| answered.iter().map(|(access, _)| access).eq(&operation));
                let Some(answered) = answered else {
                    return Err(call.mismatch("an answer with the steps of the transaction"));
                };
                Some(
                    answered
                        .into_iter()
                        .filter(|(access, _)| matches!(access, Access::Read(_)))
                        .map(|(_, seen)| seen)
                        .collect(),
                )
            }
        };
        Ok(Meaning::One(operation, answer))
    }

    /// For each register, the first value that was seen.
    fn beginnings(
        events: &[Event<'_, Self::Operation, Self::Answer>],
        all: bool,
        is_natural: &dyn Fn(ValueId) -> bool,
    ) -> Vec<(Self::Operation, Self::Answer)> {
        let (mut first, mut shown) = (Vec::new(), FxHashSet::default());
        let mut may_be: FxHashSet<(ValueId, ValueId)> = FxHashSet::default();
        for event in events {
            match event {
                Event::Asked(operation) => {
                    for access in *operation {
                        if let Access::Write(key, value) = access {
                            may_be.insert((*key, *value));
                        }
                    }
                }
                Event::Answered(operation, answer) => {
                    let reads = operation.iter().filter_map(|access| match access {
                        Access::Read(key) => Some(*key),
                        Access::Write(..) => None,
                    });
                    for (key, value) in reads.zip(answer.iter()) {
                        if let Some(value) = *value
                            && is_natural(value)
                            && (all || !may_be.contains(&(key, value)))
                            && shown.insert(key)
                        {
                            first.push(Access::Write(key, value));
                        }
                    }
                }
            }
        }
        if first.is_empty() { Vec::new() } else { vec![(first, Vec::new())] }
    }
}

/// The keys and values of a map.
fn map<'l>(call: &Recording<'l>, id: Option<ValueId>) -> Option<impl Iterator<Item = (ValueId, ValueId)> + use<'l>> {
    match call.value(id?) {
        Recordable::Map(pairs) => Some(pairs.chunks_exact(2).map(|pair| (pair[0], pair[1]))),
        _ => None,
    }
}

/// A read whose answer is a map.
fn snapshot(call: &Recording<'_>) -> Meaning<Vec<Access<ValueId, ValueId>>, Vec<Option<ValueId>>> {
    match map(call, call.answer().flatten()) {
        Some(pairs) => {
            let (reads, seen) = pairs.map(|(key, value)| (Access::Read(key), call.some(value))).unzip();
            Meaning::One(reads, Some(seen))
        }
        None => Meaning::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_reads_all_keys_at_one_moment_and_sees_its_own_writes() {
        let registers = MultiRegister::<char, u8>::default();
        let (read, write) = (Access::Read, Access::Write);
        let both = vec![read('x'), write('x', 1), read('x'), write('y', 2)];
        let state = registers.step(&registers.initial(), &both, Some(&vec![None, Some(1)])).unwrap();
        let reads = |x, y| registers.step(&state, &vec![read('x'), read('y')], Some(&vec![x, y])).is_some();
        assert!(reads(Some(1), Some(2)));
        assert!(!reads(None, Some(2)) && !reads(Some(1), None));
        assert_eq!(registers.step(&registers.initial(), &both, None), Some(state));
    }

    #[test]
    fn an_answer_with_more_or_fewer_values_than_reads_fits_nothing() {
        let registers = MultiRegister::<char, u8>::default();
        let reads = |n| registers.step(&registers.initial(), &vec![Access::Read('x')], Some(&vec![None; n])).is_some();
        assert!(reads(1) && !reads(0) && !reads(2));
    }
}
