//! A register as an automaton. Input: the register operations of a part. Output: states, the class of each operation, and the
//! transitions of each class. Two operations of one class have the same effect.
//!
//! A value that no read, failed compare-and-set or source of a compare-and-set names is the state [`DONT_CARE`]; with appends,
//! also one that is no prefix of such a value. No operation can distinguish two of these values.

use super::append_trie::{self, AppendOnly};
use super::by_value::{ByValue, NONE};
use super::forms::{Forms, RegisterOp};
use crate::search::budget::BudgetGuard;
use crate::search::tight_vec;
use rustc_hash::FxHashMap;

/// The state of every value that no operation asks for.
pub(super) const DONT_CARE: u32 = NONE;

/// When an operation of a class is possible, and the state after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Only in this state; the state stays.
    Read(u32),
    /// Only outside this state; the state stays.
    FailedCas(u32),
    /// Always; then this state.
    Write(u32),
    /// Only in the first state; then the second.
    Cas(u32, u32),
    /// Always; then the target of its transition, or [`DONT_CARE`] without one.
    Append,
}

/// The classes that name one state alone, or [`NONE`].
#[derive(Clone, Copy, Debug)]
struct Named {
    reads: u32,
    failures: u32,
    writes: u32,
}

/// A register with numbered states.
#[derive(Debug)]
pub(super) struct Automaton {
    pub(super) initial: u32,
    /// By class: what its operations do.
    pub(super) kinds: Vec<Kind>,
    /// By state: the classes that name it alone.
    states: Vec<Named>,
    write_other: u32,
    /// By state: the classes that lead out of it, each with the target.
    out: Lists,
    /// By state: the classes other than writes that lead into it, each with the source.
    into: Lists,
    /// By class: its transitions, each as source and target.
    by_class: Lists,
}

impl Automaton {
    /// Returns the automaton for the operations of one register, and the class of each, [`NONE`] for those that do nothing.
    /// `None` if a value cannot be appended to, if a limit is reached, or if appends meet failed compare-and-sets: any append
    /// might make one fail, even one to [`DONT_CARE`], and the automaton has no such transitions.
    pub(super) fn new(
        register_ops: &[RegisterOp],
        content: u32,
        forms: &Forms<'_>,
        guard: &BudgetGuard<'_>,
    ) -> Option<(Self, Vec<u32>)> {
        let (mut state, mut asked) =
            (ByValue::new(register_ops.len(), forms.count), Vec::with_capacity(register_ops.len().min(MAX_CAPACITY)));
        for op in register_ops {
            if let RegisterOp::Read(value) | RegisterOp::FailedCas(value) | RegisterOp::Cas(value, _) = *op
                && state.of(value) == NONE
            {
                *state.entry(value) = asked.len() as u32;
                asked.push(value);
            }
        }
        let appends = register_ops.iter().any(|op| matches!(op, RegisterOp::Append(_)));
        let value_states = match appends {
            true if register_ops.iter().any(|op| matches!(op, RegisterOp::FailedCas(_))) => return None,
            true => append_trie::grow(register_ops, content, &forms.values, &asked, state, guard)?,
            false => AppendOnly { states: asked.len(), edges: Vec::new(), state },
        };
        let state_of = |value: u32| value_states.state.of(value);
        let states = value_states.states;
        let mut automaton = Automaton {
            initial: state_of(content),
            kinds: Vec::with_capacity(register_ops.len().min(MAX_CAPACITY)),
            states: vec![Named { reads: NONE, failures: NONE, writes: NONE }; states],
            write_other: NONE,
            out: Lists::default(),
            into: Lists::default(),
            by_class: Lists::default(),
        };
        let mut edges: FxHashMap<RegisterOp, u32> = FxHashMap::default();
        let mut appended = if appends { ByValue::new(register_ops.len(), forms.count) } else { ByValue::default() };
        let class_of = register_ops
            .iter()
            .map(|op| {
                let fresh = automaton.kinds.len() as u32;
                let (class, kind) = match *op {
                    RegisterOp::Nothing => return NONE,
                    RegisterOp::Read(value) => {
                        let state = state_of(value);
                        (&mut automaton.states[state as usize].reads, Kind::Read(state))
                    }
                    RegisterOp::FailedCas(value) => {
                        let state = state_of(value);
                        (&mut automaton.states[state as usize].failures, Kind::FailedCas(state))
                    }
                    RegisterOp::Write(value) => match state_of(value) {
                        DONT_CARE => (&mut automaton.write_other, Kind::Write(DONT_CARE)),
                        state => (&mut automaton.states[state as usize].writes, Kind::Write(state)),
                    },
                    RegisterOp::Cas(from, to) => {
                        let (from, to) = (state_of(from), state_of(to));
                        (edges.entry(RegisterOp::Cas(from, to)).or_insert(NONE), Kind::Cas(from, to))
                    }
                    RegisterOp::Append(value) => (appended.entry(value), Kind::Append),
                };
                if *class == NONE {
                    *class = fresh;
                    automaton.kinds.push(kind);
                }
                *class
            })
            .collect();
        automaton.kinds.shrink_to_fit();
        let mut transitions = value_states.edges;
        transitions.iter_mut().for_each(|(_, class, _)| *class = appended.of(*class));
        transitions.extend((0..).zip(&automaton.kinds).filter_map(|(class, kind)| match *kind {
            Kind::Cas(from, to) => Some((from, class, to)),
            _ => None,
        }));
        automaton.out = Lists::new(states, transitions.iter().map(|&(from, class, to)| (from, class, to)));
        automaton.into = Lists::new(
            states,
            transitions.iter().filter(|transition| transition.2 != DONT_CARE).map(|&(f, class, to)| (to, class, f)),
        );
        let classes = automaton.kinds.len();
        automaton.by_class = Lists::new(classes, transitions.iter().map(|&(from, class, to)| (class, from, to)));
        Some((automaton, class_of))
    }

    /// The class of reads of a state, or [`NONE`].
    pub(super) fn reads(&self, state: u32) -> u32 {
        if state == DONT_CARE { NONE } else { self.states[state as usize].reads }
    }

    /// The class of compare-and-sets that failed because the register did not hold this state, or [`NONE`].
    pub(super) fn failures(&self, state: u32) -> u32 {
        if state == DONT_CARE { NONE } else { self.states[state as usize].failures }
    }

    /// The class of writes of a state, or [`NONE`].
    pub(super) fn writes(&self, state: u32) -> u32 {
        if state == DONT_CARE { self.write_other } else { self.states[state as usize].writes }
    }

    /// The classes that lead out of a state, each with the target.
    pub(super) fn out(&self, state: u32) -> &[(u32, u32)] {
        if state == DONT_CARE { &[] } else { self.out.of(state) }
    }

    /// The classes other than writes that lead into a state, each with the source.
    pub(super) fn into(&self, state: u32) -> &[(u32, u32)] {
        if state == DONT_CARE { &[] } else { self.into.of(state) }
    }

    /// The target of a class from a state, if it has a transition there.
    pub(super) fn edge(&self, from: u32, class: u32) -> Option<u32> {
        self.out(from).iter().find(|transition| transition.0 == class).map(|transition| transition.1)
    }

    /// The transitions of a class, each as source and target.
    pub(super) fn transitions(&self, class: u32) -> &[(u32, u32)] {
        self.by_class.of(class)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let lists = self.out.bytes() + self.into.bytes() + self.by_class.bytes();
        tight_vec::bytes(&self.kinds) + tight_vec::bytes(&self.states) + lists
    }
}

/// Upper bound on the first capacity for classes and values asked for.
const MAX_CAPACITY: usize = 32;

/// Lists of pairs in one allocation.
#[derive(Debug, Default)]
struct Lists {
    /// Where each list begins, and where the last one ends. Empty if all are.
    begin: Vec<u32>,
    pairs: Vec<(u32, u32)>,
}

impl Lists {
    fn new(count: usize, items: impl DoubleEndedIterator<Item = (u32, u32, u32)> + Clone) -> Self {
        if items.clone().next().is_none() {
            return Lists::default();
        }
        let mut begin = vec![0; count + 1];
        for (of, ..) in items.clone() {
            begin[of as usize] += 1;
        }
        for at in 1..=count {
            begin[at] += begin[at - 1];
        }
        let mut pairs = vec![(0, 0); begin[count] as usize];
        for (of, a, b) in items.rev() {
            begin[of as usize] -= 1;
            pairs[begin[of as usize] as usize] = (a, b);
        }
        Lists { begin, pairs }
    }

    fn of(&self, at: u32) -> &[(u32, u32)] {
        match self.begin.get(at as usize..at as usize + 2) {
            Some(&[begin, end]) => &self.pairs[begin as usize..end as usize],
            _ => &[],
        }
    }

    fn bytes(&self) -> usize {
        tight_vec::bytes(&self.begin) + tight_vec::bytes(&self.pairs)
    }
}
