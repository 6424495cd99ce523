//! The model `list-append`: lists that transactions append to and read as a whole.
//!
//! ```
//! use retrograde::model::{ListAppend, list_append::Access};
//! use retrograde::{Recorder, assert_linearizable};
//!
//! let recorder = Recorder::new();
//! recorder.client("a").invoke(vec![Access::Append("x", 1), Access::Append("y", 2)]).ok(vec![]);
//! recorder.client("b").invoke(vec![Access::Read("x"), Access::Read("y")]).ok(vec![vec![1], vec![2]]);
//! assert_linearizable!(ListAppend::default(), recorder);
//! ```

use super::appended::Appended;
use super::parts::Parts;
use super::recorded::{Log, Meaning, Mismatch, Recorded, Recording};
use super::{Datum, Effect, Spec, number};
use crate::history::ValueId;

/// Lists by key, and transactions of appends and whole reads at one moment (the `list-append` workload of Jepsen and Elle). A
/// transaction sees its own appends; a list begins empty.
///
/// Decides strict serializability: one order of whole transactions that respects real time. The weaker levels of Elle are not
/// decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListAppend<K, V> {
    kinds: std::marker::PhantomData<fn() -> (K, V)>,
}

impl<K, V> Default for ListAppend<K, V> {
    fn default() -> Self {
        ListAppend { kinds: std::marker::PhantomData }
    }
}

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Access<K, V> {
    /// Reads the list of a key.
    Read(K),
    /// Appends an element to the list of a key.
    Append(K, V),
}

impl<K, V> Access<K, V> {
    fn key(&self) -> &K {
        match self {
            Access::Read(key) | Access::Append(key, _) => key,
        }
    }
}

impl<K: Datum, V: Datum> Spec for ListAppend<K, V> {
    type State = Parts<K, Appended<V>>;
    /// The steps, in order.
    type Operation = Vec<Access<K, V>>;
    /// The lists of the reads, in order.
    type Answer = Vec<Vec<V>>;

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
                Access::Append(key, value) => {
                    let after = next.get(key).unwrap_or(&Appended::default()).with(value.clone());
                    next.set(key, Some(after));
                }
                Access::Read(key) => {
                    if let Some(seen) = &mut seen
                        && !next.get(key).unwrap_or(&Appended::default()).is(seen.next()?)
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

    fn heap_bytes(&self, state: &Self::State) -> usize {
        state.heap_bytes() + state.iter().map(|(_, list)| list.own_bytes()).sum::<usize>()
    }
}

/// Transactions of `[:r key list]` and `[:append key value]`.
impl Recorded for ListAppend<ValueId, ValueId> {
    fn of(_log: &Log<'_>) -> Self {
        ListAppend::default()
    }

    fn meaning(
        &self,
        call: &Recording<'_>,
    ) -> Result<Meaning<Vec<Access<ValueId, ValueId>>, Vec<Vec<ValueId>>>, Mismatch> {
        if call.function() != "txn" {
            return Err(call.foreign("txn"));
        }
        let steps = |id: Option<ValueId>| {
            let steps = call.steps(id?)?.into_iter().map(|(word, key, value)| match word {
                "r" | "read" => Some((Access::Read(key), value)),
                "append" if value.is_some() => Some((Access::Append(key, value), ValueId::NONE)),
                _ => None,
            });
            steps.collect::<Option<Vec<_>>>()
        };
        let expected = "a transaction of [:r key list] and [:append key value]";
        let Some(asked) = steps(call.argument()) else { return Err(call.mismatch(expected)) };
        let operation: Vec<_> = asked.into_iter().map(|(access, _)| access).collect();
        if call.is_unseen() {
            return Ok(Meaning::One(operation, None));
        }
        let answered =
            steps(call.answer().flatten()).filter(|answered| answered.iter().map(|(access, _)| access).eq(&operation));
        let Some(answered) = answered else { return Err(call.mismatch("an answer with the steps of the transaction")) };
        let lists = answered.into_iter().filter(|(access, _)| matches!(access, Access::Read(_))).map(|(_, seen)| {
            match call.some(seen) {
                None => Some(Vec::new()),
                Some(list) => call.log.calls.values.sequence(list).map(<[ValueId]>::to_vec),
            }
        });
        match lists.collect() {
            Some(lists) => Ok(Meaning::One(operation, Some(lists))),
            None => Err(call.mismatch("a list for each read")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_gives_every_element_in_the_order_of_the_appends() {
        let lists = ListAppend::<char, u8>::default();
        let (read, append) = (Access::Read, Access::Append);
        let first = vec![append('x', 1), read('x'), append('x', 2), append('y', 3)];
        let state = lists.step(&lists.initial(), &first, Some(&vec![vec![1]])).unwrap();
        let reads = |list: &[u8]| lists.step(&state, &vec![read('x')], Some(&vec![list.to_vec()])).is_some();
        assert!(reads(&[1, 2]));
        assert!(!reads(&[2, 1]) && !reads(&[1]) && !reads(&[]) && !reads(&[1, 2, 2]));
        assert!(lists.step(&lists.initial(), &vec![read('z')], Some(&vec![vec![]])).is_some());
        assert_eq!(lists.step(&lists.initial(), &first, None), Some(state));
    }
}
