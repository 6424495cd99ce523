//! The states of a register with appends. Input: the appended values and the values asked for. Output: the states and their
//! transitions.
//!
//! Only prefixes of values asked for are states. Any other content can never become one by appending, so it is
//! [`super::automaton::DONT_CARE`]. No text is built: a state is a place in the sorted list of the values asked for, and a
//! length.

use super::by_value::{ByValue, NONE};
use super::forms::RegisterOp;
use crate::model::Value;
use crate::search::budget::BudgetGuard;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::mem::discriminant;
use std::ops::Range;

/// States, and the transitions between them by appends.
pub(super) struct AppendOnly {
    pub(super) states: usize,
    /// Source state, appended value, target state.
    pub(super) edges: Vec<(u32, u32, u32)>,
    /// The state of each value that is one.
    pub(super) state: ByValue,
}

/// `state` numbers the values asked for by their place in `asked`. `None` if a value is absent or of another type where something
/// is appended, or if a limit is reached.
pub(super) fn grow(
    register_ops: &[RegisterOp],
    content: u32,
    values: &[Value<'_>],
    asked: &[u32],
    state: ByValue,
    guard: &BudgetGuard<'_>,
) -> Option<AppendOnly> {
    let written = register_ops.iter().filter_map(|op| match *op {
        RegisterOp::Write(value) | RegisterOp::Cas(_, value) => Some(value),
        _ => None,
    });
    let written = written.chain([content]);
    let added = register_ops.iter().filter_map(|op| match *op {
        RegisterOp::Append(value) => Some(value),
        _ => None,
    });
    let kind = |value: u32| match &values[value as usize] {
        Value::Absent => None,
        held => Some(discriminant(held)),
    };
    let first = added.clone().next()?;
    let appended_kind = kind(first)?;
    let mut named = written.clone().chain(asked.iter().copied());
    if added.clone().any(|value| kind(value) != Some(appended_kind))
        || named.any(|value| kind(value).is_some_and(|of| of != appended_kind))
    {
        return None;
    }
    match values[first as usize] {
        Value::Text(_) => Trie::grow(asked, written, added, state, guard, |value| match values[value as usize] {
            Value::Text(text) => Some(text.as_bytes()),
            _ => None,
        }),
        Value::List(_) => Trie::grow(asked, written, added, state, guard, |value| match values[value as usize] {
            Value::List(list) => Some(list),
            _ => None,
        }),
        Value::Absent | Value::Number(_) => None,
    }
}

/// The values asked for, and the prefixes of them that are states.
struct Trie<'a, T> {
    /// Sorted, each with its state.
    asked: Vec<(&'a [T], u32)>,
    /// By state: the values with this prefix, as far as they are known already, and its length.
    states: Vec<(Range<u32>, u32)>,
    /// By the first value and the length: the states that are proper prefixes.
    index: FxHashMap<(u32, u32), u32>,
}

/// Range of the state of the absent value, which is no prefix.
const ABSENT: u32 = u32::MAX;

impl<'a, T: Ord + Hash> Trie<'a, T> {
    fn grow(
        asked: &[u32],
        written: impl Iterator<Item = u32>,
        added: impl Iterator<Item = u32> + Clone,
        mut state: ByValue,
        guard: &BudgetGuard<'_>,
        of: impl Fn(u32) -> Option<&'a [T]>,
    ) -> Option<AppendOnly> {
        let appends = added.clone().count();
        let mut pieces: FxHashMap<&[T], u32> = FxHashMap::default();
        pieces.reserve(appends);
        pieces.extend(added.filter_map(|value| of(value).map(|piece| (piece, value))));
        let mut lengths: Vec<usize> = pieces.keys().map(|piece| piece.len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let mut trie = Trie {
            asked: Vec::with_capacity(asked.len()),
            states: vec![(ABSENT..ABSENT, 0); asked.len()],
            index: FxHashMap::default(),
        };
        trie.asked.extend((0..).zip(asked).filter_map(|(at, &value)| of(value).map(|sequence| (sequence, at))));
        trie.asked.sort_unstable();
        // A value that is appended once leads out of one state.
        trie.states.reserve(pieces.len());
        trie.index.reserve(pieces.len());
        for (first, &(sequence, at)) in (0..).zip(&trie.asked) {
            trie.states[at as usize] = (first..first, sequence.len() as u32);
        }
        for value in written {
            if state.of(value) == NONE {
                let at = match of(value) {
                    Some(sequence) => trie.locate(sequence),
                    None => Some(trie.add(ABSENT..ABSENT, 0)),
                };
                if let Some(at) = at {
                    *state.entry(value) = at;
                }
            }
        }
        let mut edges = Vec::with_capacity(pieces.len());
        let (mut from, mut looked_up) = (0, 0);
        while let Some((values, length)) = trie.states.get(from) {
            let (Range { start, end }, length) = (values.clone(), *length as usize);
            let values = match (start, end) {
                // What is appended to the absent value may begin any value.
                (ABSENT, _) => 0..trie.asked.len(),
                (start, end) if start < end => start as usize..end as usize,
                (start, _) => {
                    let start = start as usize;
                    let begin = &trie.asked[start].0[..length];
                    start..start + count_prefix(&trie.asked[start..], |value| value.starts_with(begin))
                }
            };
            for &added in &lengths {
                trie.extend(from as u32, (values.clone(), length), added, &pieces, &mut edges);
            }
            from += 1;
            looked_up += lengths.len();
            if looked_up > 1 << 12 {
                looked_up = 0;
                if guard.reached().is_some() {
                    return None;
                }
            }
        }
        Some(AppendOnly { states: trie.states.len(), edges, state })
    }

    /// Adds the transitions out of a state by pieces of length `added`. The state is given as the values with its
    /// prefix, and the length of the prefix.
    fn extend(
        &mut self,
        from: u32,
        (asked, length): (Range<usize>, usize),
        added: usize,
        pieces: &FxHashMap<&[T], u32>,
        edges: &mut Vec<(u32, u32, u32)>,
    ) {
        let Range { start: mut at, end } = asked;
        while at < end {
            let Some(piece) = self.asked[at].0.get(length..length + added) else {
                at += 1;
                continue;
            };
            let same = at + count_prefix(&self.asked[at..end], |value| value[length..].starts_with(piece));
            if let Some(&value) = pieces.get(piece) {
                let to = self.add(at as u32..same as u32, (length + added) as u32);
                edges.push((from, value, to));
            }
            at = same;
        }
    }

    fn locate(&mut self, sequence: &[T]) -> Option<u32> {
        let at = self.asked.partition_point(|&(value, _)| value < sequence);
        let begins = self.asked.get(at).is_some_and(|(value, _)| value.starts_with(sequence));
        begins.then(|| self.add(at as u32..at as u32, sequence.len() as u32))
    }

    /// The state of a prefix: the values that have it, and its length.
    fn add(&mut self, values: Range<u32>, length: u32) -> u32 {
        match self.asked.get(values.start as usize) {
            Some(&(value, state)) if value.len() == length as usize => state,
            _ => *self.index.entry((values.start, length)).or_insert_with(|| {
                self.states.push((values, length));
                self.states.len() as u32 - 1
            }),
        }
    }
}

/// How many of these sorted values have a prefix; they are the first ones. Often all do, because answers grow.
fn count_prefix<T>(asked: &[(&[T], u32)], begins: impl Fn(&[T]) -> bool) -> usize {
    match asked.last() {
        Some((last, _)) if begins(last) => asked.len(),
        _ => asked.partition_point(|(value, _)| begins(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::verdict::Budget;
    use std::sync::atomic::AtomicBool;

    /// The number of states of a text that is appended in pieces and then read.
    fn states_of_a_text(pieces: u32, cancel: &AtomicBool) -> Option<usize> {
        let texts: Vec<String> = (0..pieces).map(|piece| format!("{piece} ")).collect();
        let whole = texts.concat();
        let values: Vec<Value<'_>> =
            texts.iter().map(|text| Value::Text(text)).chain([Value::Text(&whole), Value::Absent]).collect();
        let mut register_ops: Vec<RegisterOp> = (0..pieces).map(RegisterOp::Append).collect();
        register_ops.push(RegisterOp::Read(pieces));
        let mut state = ByValue::default();
        *state.entry(pieces) = 0;
        let budget = Budget { cancel: Some(cancel), ..Budget::default() };
        let value_states = grow(&register_ops, pieces + 1, &values, &[pieces], state, &BudgetGuard::begin(&budget))?;
        assert_eq!(value_states.state.of(pieces), 0);
        Some(value_states.states)
    }

    #[test]
    fn a_text_in_many_pieces_has_a_state_for_each_and_who_is_told_to_stop_does_so_on_the_way() {
        assert_eq!(states_of_a_text(2_000, &AtomicBool::new(false)), Some(2_001));
        assert_eq!(states_of_a_text(10, &AtomicBool::new(true)), Some(11));
        assert_eq!(states_of_a_text(2_000, &AtomicBool::new(true)), None);
    }
}
