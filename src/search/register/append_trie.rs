//! What a register can hold that is appended to.
//!
//! **Only beginnings of answers are states.** What is not the beginning of a value that somebody asks for, nor such a value, can
//! by appending never become one; all such contents are [`super::automaton::OTHER`]. So no text is ever built: a state is a
//! place in the sorted list of the values asked for, and a length.

use super::by_value::{ByValue, NONE};
use super::forms::RegisterOp;
use crate::model::Value;
use crate::search::budget::BudgetGuard;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::mem::discriminant;
use std::ops::Range;

/// States, and how appending leads from one to another.
pub(super) struct AppendOnly {
    pub(super) states: usize,
    /// From which state, what is appended, to which state.
    pub(super) edges: Vec<(u32, u32, u32)>,
    /// The state of each value that is one.
    pub(super) state: ByValue,
}

/// `None` where something stands that cannot be appended to, or not this; and where a limit is reached. `state` has the values
/// asked for, each with its place there.
pub(super) fn grow(
    deeds: &[RegisterOp],
    content: u32,
    values: &[Value<'_>],
    asked: &[u32],
    state: ByValue,
    watch: &BudgetGuard<'_>,
) -> Option<AppendOnly> {
    let written = deeds.iter().filter_map(|deed| match *deed {
        RegisterOp::Write(value) | RegisterOp::Cas(_, value) => Some(value),
        _ => None,
    });
    let written = written.chain([content]);
    let added = deeds.iter().filter_map(|deed| match *deed {
        RegisterOp::Append(value) => Some(value),
        _ => None,
    });
    let kind = |value: u32| match &values[value as usize] {
        Value::Absent => None,
        held => Some(discriminant(held)),
    };
    let first = added.clone().next()?;
    let one = kind(first)?;
    let mut named = written.clone().chain(asked.iter().copied());
    if added.clone().any(|value| kind(value) != Some(one)) || named.any(|value| kind(value).is_some_and(|of| of != one))
    {
        return None;
    }
    match values[first as usize] {
        Value::Text(_) => Trie::grow(asked, written, added, state, watch, |value| match values[value as usize] {
            Value::Text(text) => Some(text.as_bytes()),
            _ => None,
        }),
        Value::List(_) => Trie::grow(asked, written, added, state, watch, |value| match values[value as usize] {
            Value::List(list) => Some(list),
            _ => None,
        }),
        Value::Absent | Value::Number(_) => None,
    }
}

/// The values asked for, with the places in them that are states.
struct Trie<'a, T> {
    /// Sorted, each with its state.
    asked: Vec<(&'a [T], u32)>,
    /// The states: the values that begin like this, as far as they are known already, and the length.
    states: Vec<(Range<u32>, u32)>,
    /// By the first of the values, and the length: those that are not the whole of a value.
    index: FxHashMap<(u32, u32), u32>,
}

/// The state of no sequence at all, which is no beginning of one.
const ABSENT: u32 = u32::MAX;

impl<'a, T: Ord + Hash> Trie<'a, T> {
    fn grow(
        asked: &[u32],
        written: impl Iterator<Item = u32>,
        added: impl Iterator<Item = u32> + Clone,
        mut state: ByValue,
        watch: &BudgetGuard<'_>,
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
        // What is appended once leads on from one state.
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
                    *state.place(value) = at;
                }
            }
        }
        let mut edges = Vec::with_capacity(pieces.len());
        let (mut from, mut looked) = (0, 0);
        while let Some((values, length)) = trie.states.get(from) {
            let (Range { start, end }, length) = (values.clone(), *length as usize);
            let values = match (start, end) {
                // Nothing is the beginning of everything.
                (ABSENT, _) => 0..trie.asked.len(),
                (start, end) if start < end => start as usize..end as usize,
                (start, _) => {
                    let start = start as usize;
                    let begin = &trie.asked[start].0[..length];
                    start..start + so_many(&trie.asked[start..], |value| value.starts_with(begin))
                }
            };
            for &more in &lengths {
                trie.extend(from as u32, (values.clone(), length), more, &pieces, &mut edges);
            }
            from += 1;
            looked += lengths.len();
            if looked > 1 << 12 {
                looked = 0;
                if watch.reached().is_some() {
                    return None;
                }
            }
        }
        Some(AppendOnly { states: trie.states.len(), edges, state })
    }

    /// The ways out of a state by pieces of one length. The state: the values asked for that begin so, and how long that is.
    fn extend(
        &mut self,
        from: u32,
        (asked, length): (Range<usize>, usize),
        more: usize,
        pieces: &FxHashMap<&[T], u32>,
        edges: &mut Vec<(u32, u32, u32)>,
    ) {
        let Range { start: mut at, end } = asked;
        while at < end {
            let Some(piece) = self.asked[at].0.get(length..length + more) else {
                at += 1;
                continue;
            };
            let same = at + so_many(&self.asked[at..end], |value| value[length..].starts_with(piece));
            if let Some(&added) = pieces.get(piece) {
                let to = self.add(at as u32..same as u32, (length + more) as u32);
                edges.push((from, added, to));
            }
            at = same;
        }
    }

    fn locate(&mut self, sequence: &[T]) -> Option<u32> {
        let at = self.asked.partition_point(|&(value, _)| value < sequence);
        let begins = self.asked.get(at).is_some_and(|(value, _)| value.starts_with(sequence));
        begins.then(|| self.add(at as u32..at as u32, sequence.len() as u32))
    }

    /// The state of values that begin alike, for so long.
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

/// How many of these begin so, which are the first of them. Often all do: answers grow.
fn so_many<T>(asked: &[(&[T], u32)], begins: impl Fn(&[T]) -> bool) -> usize {
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

    /// Pieces that make up a text, which is read.
    fn states_of_a_text(pieces: u32, cancel: &AtomicBool) -> Option<usize> {
        let texts: Vec<String> = (0..pieces).map(|piece| format!("{piece} ")).collect();
        let whole = texts.concat();
        let values: Vec<Value<'_>> =
            texts.iter().map(|text| Value::Text(text)).chain([Value::Text(&whole), Value::Absent]).collect();
        let mut deeds: Vec<RegisterOp> = (0..pieces).map(RegisterOp::Append).collect();
        deeds.push(RegisterOp::Read(pieces));
        let mut state = ByValue::default();
        *state.place(pieces) = 0;
        let budget = Budget { cancel: Some(cancel), ..Budget::default() };
        let growth = grow(&deeds, pieces + 1, &values, &[pieces], state, &BudgetGuard::begin(&budget))?;
        assert_eq!(growth.state.of(pieces), 0);
        Some(growth.states)
    }

    #[test]
    fn a_text_in_many_pieces_has_a_state_for_each_and_who_is_told_to_stop_does_so_on_the_way() {
        assert_eq!(states_of_a_text(2_000, &AtomicBool::new(false)), Some(2_001));
        assert_eq!(states_of_a_text(10, &AtomicBool::new(true)), Some(11));
        assert_eq!(states_of_a_text(2_000, &AtomicBool::new(true)), None);
    }
}
