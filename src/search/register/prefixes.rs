//! What a register can hold that is appended to.
//!
//! **Only beginnings of answers are states.** What is not the beginning of a value that somebody asks for, nor such a value, can
//! by appending never become one; all such contents are [`super::automaton::OTHER`]. So no text is ever built: a state is a
//! place in the sorted list of the values asked for, and a length.

use super::automaton::States;
use super::forms::Deed;
use crate::model::Value;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::mem::discriminant;
use std::ops::Range;

/// States, and how appending leads from one to another.
pub(super) struct Growth {
    pub(super) states: usize,
    /// From which state, what is appended, to which state.
    pub(super) edges: Vec<(u32, u32, u32)>,
    /// How many different values are appended.
    pub(super) pieces: usize,
    /// The state of each value that is one.
    pub(super) state: States,
}

/// `None` where something stands that cannot be appended to, or not this. `state` has the values asked for.
pub(super) fn grow(deeds: &[Deed], content: u32, values: &[Value<'_>], asked: &[u32], state: States) -> Option<Growth> {
    let mut named = vec![content];
    let mut added = Vec::new();
    for deed in deeds {
        match *deed {
            Deed::Write(value) | Deed::Cas(_, value) => named.push(value),
            Deed::Append(value) => added.push(value),
            Deed::Nothing | Deed::Read(_) | Deed::FailedCas(_) => {}
        }
    }
    named.extend_from_slice(asked);
    named.sort_unstable();
    named.dedup();
    added.sort_unstable();
    added.dedup();
    let kind = |&value: &u32| match &values[value as usize] {
        Value::Absent => None,
        held => Some(discriminant(held)),
    };
    let one = kind(added.first()?)?;
    if added.iter().any(|value| kind(value) != Some(one)) || named.iter().filter_map(kind).any(|other| other != one) {
        return None;
    }
    match values[added[0] as usize] {
        Value::Text(_) => Some(Trie::grow(&named, &added, asked, state, |value| match values[value as usize] {
            Value::Text(text) => Some(text.as_bytes()),
            _ => None,
        })),
        Value::List(_) => Some(Trie::grow(&named, &added, asked, state, |value| match values[value as usize] {
            Value::List(list) => Some(list),
            _ => None,
        })),
        Value::Absent | Value::Number(_) => None,
    }
}

/// The values asked for, sorted, with the places in them that are states.
struct Trie<'a, T> {
    asked: Vec<&'a [T]>,
    /// By the first value that begins like this, and the length.
    index: FxHashMap<(u32, u32), u32>,
    /// The states: the same pairs.
    states: Vec<(u32, u32)>,
}

impl<'a, T: Ord + Hash> Trie<'a, T> {
    fn grow(
        named: &[u32],
        added: &[u32],
        asked: &[u32],
        mut state: States,
        of: impl Fn(u32) -> Option<&'a [T]>,
    ) -> Growth {
        let mut trie =
            Trie { asked: asked.iter().filter_map(|&v| of(v)).collect(), index: FxHashMap::default(), states: vec![] };
        trie.index.reserve(named.len());
        trie.asked.sort_unstable();
        trie.asked.dedup();
        let mut absent = None;
        for &value in named {
            let at = match of(value) {
                Some(sequence) => trie.locate(sequence),
                None => Some(*absent.get_or_insert_with(|| trie.add(u32::MAX, 0))),
            };
            if let Some(at) = at {
                state.set(value, at);
            }
        }
        let pieces: FxHashMap<&[T], u32> =
            added.iter().filter_map(|&value| of(value).map(|piece| (piece, value))).collect();
        let mut lengths: Vec<usize> = pieces.keys().map(|piece| piece.len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let mut edges = Vec::new();
        let mut from = 0;
        while let Some(&(first, length)) = trie.states.get(from) {
            // Nothing is the beginning of everything.
            let (at, length) = if first == u32::MAX { (0, 0) } else { (first as usize, length as usize) };
            let begin: &[T] = if first == u32::MAX { &[] } else { &trie.asked[at][..length] };
            let end = at + trie.asked[at..].partition_point(|value| value.starts_with(begin));
            for &more in &lengths {
                trie.extend(from as u32, (at..end, length), more, &pieces, &mut edges);
            }
            from += 1;
        }
        Growth { states: trie.states.len(), edges, pieces: added.len(), state }
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
            let value: &'a [T] = self.asked[at];
            let Some(piece) = value.get(length..length + more) else {
                at += 1;
                continue;
            };
            if let Some(&added) = pieces.get(piece) {
                let to = self.add(at as u32, (length + more) as u32);
                edges.push((from, added, to));
            }
            let whole = &value[..length + more];
            at += self.asked[at..end].partition_point(|value| value.starts_with(whole));
        }
    }

    fn locate(&mut self, sequence: &[T]) -> Option<u32> {
        let at = self.asked.partition_point(|value| *value < sequence);
        let begins = self.asked.get(at).is_some_and(|value| value.starts_with(sequence));
        begins.then(|| self.add(at as u32, sequence.len() as u32))
    }

    fn add(&mut self, first: u32, length: u32) -> u32 {
        let fresh = self.states.len() as u32;
        *self.index.entry((first, length)).or_insert_with(|| {
            self.states.push((first, length));
            fresh
        })
    }
}
