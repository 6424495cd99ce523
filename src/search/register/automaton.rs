//! What a register can hold, as far as anybody can tell, and how it changes.
//!
//! **Values nobody asks for are one.** A state that no read, no failed or possible compare-and-set and no beginning of a later
//! answer names is [`OTHER`]: no operation that is left tells two such states apart, so they are one state.

use super::append_trie::{self, AppendOnly};
use super::by_value::{ByValue, NONE};
use super::forms::{Forms, RegisterOp};
use crate::search::budget::BudgetGuard;
use crate::search::tight_vec;
use rustc_hash::FxHashMap;

/// The state of a register that holds something nobody asks for.
pub(super) const DONT_CARE: u32 = NONE;

/// What the operations of a class do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Only in this state; it stays.
    Read(u32),
    /// Only outside this state; it stays.
    FailedCas(u32),
    /// Always; then this state.
    Write(u32),
    /// Only in the first state; then the second.
    Cas(u32, u32),
    /// Always; along its edge, or to [`OTHER`].
    Append,
}

/// The classes of operations that name one state and no other, or [`NONE`].
#[derive(Clone, Copy, Debug)]
struct Named {
    reads: u32,
    failures: u32,
    writes: u32,
}

/// A register of which the states are numbers.
#[derive(Debug)]
pub(super) struct Automaton {
    pub(super) initial: u32,
    /// What each class does.
    pub(super) kinds: Vec<Kind>,
    /// By state: the classes that name it alone.
    states: Vec<Named>,
    write_other: u32,
    /// By state: classes that lead out of it, and where to.
    out: Lists,
    /// By state: classes other than writes that lead into it, and where from.
    into: Lists,
    /// By class: states out of which it leads, and where to.
    by_class: Lists,
}

impl Automaton {
    /// For deeds on one register; with the class of each, [`NONE`] for those that do nothing. `None` where a value cannot be
    /// appended to, and for appends with failed compare-and-sets: any append might be needed to make one fail, also one that leads
    /// to [`OTHER`], and that is not followed here; and where a limit is reached.
    pub(super) fn new(
        deeds: &[RegisterOp],
        content: u32,
        forms: &Forms<'_>,
        watch: &BudgetGuard<'_>,
    ) -> Option<(Self, Vec<u32>)> {
        let (mut state, mut asked) = (ByValue::new(deeds.len(), forms.count), Vec::with_capacity(deeds.len().min(FEW)));
        for deed in deeds {
            if let RegisterOp::Read(value) | RegisterOp::FailedCas(value) | RegisterOp::Cas(value, _) = *deed
                && state.of(value) == NONE
            {
                *state.place(value) = asked.len() as u32;
                asked.push(value);
            }
        }
        let appends = deeds.iter().any(|deed| matches!(deed, RegisterOp::Append(_)));
        let growth = match appends {
            true if deeds.iter().any(|deed| matches!(deed, RegisterOp::FailedCas(_))) => return None,
            true => append_trie::grow(deeds, content, &forms.values, &asked, state, watch)?,
            false => AppendOnly { states: asked.len(), edges: Vec::new(), state },
        };
        let state_of = |value: u32| growth.state.of(value);
        let states = growth.states;
        let mut automaton = Automaton {
            initial: state_of(content),
            kinds: Vec::with_capacity(deeds.len().min(FEW)),
            states: vec![Named { reads: NONE, failures: NONE, writes: NONE }; states],
            write_other: NONE,
            out: Lists::default(),
            into: Lists::default(),
            by_class: Lists::default(),
        };
        let mut edges: FxHashMap<RegisterOp, u32> = FxHashMap::default();
        let mut appended = if appends { ByValue::new(deeds.len(), forms.count) } else { ByValue::default() };
        let class_of = deeds
            .iter()
            .map(|deed| {
                let fresh = automaton.kinds.len() as u32;
                let (class, kind) = match *deed {
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
                    RegisterOp::Append(value) => (appended.place(value), Kind::Append),
                };
                if *class == NONE {
                    *class = fresh;
                    automaton.kinds.push(kind);
                }
                *class
            })
            .collect();
        automaton.kinds.shrink_to_fit();
        let mut ways = growth.edges;
        ways.iter_mut().for_each(|(_, way, _)| *way = appended.of(*way));
        ways.extend((0..).zip(&automaton.kinds).filter_map(|(class, kind)| match *kind {
            Kind::Cas(from, to) => Some((from, class, to)),
            _ => None,
        }));
        automaton.out = Lists::new(states, ways.iter().map(|&(from, class, to)| (from, class, to)));
        automaton.into =
            Lists::new(states, ways.iter().filter(|way| way.2 != DONT_CARE).map(|&(f, class, to)| (to, class, f)));
        let classes = automaton.kinds.len();
        automaton.by_class = Lists::new(classes, ways.iter().map(|&(from, class, to)| (class, from, to)));
        Some((automaton, class_of))
    }

    /// The class of reads of a state, or [`NONE`].
    pub(super) fn reads(&self, state: u32) -> u32 {
        if state == DONT_CARE { NONE } else { self.states[state as usize].reads }
    }

    /// The class of compare-and-sets that failed because the state was not this.
    pub(super) fn failures(&self, state: u32) -> u32 {
        if state == DONT_CARE { NONE } else { self.states[state as usize].failures }
    }

    /// The class of writes of a state.
    pub(super) fn writes(&self, state: u32) -> u32 {
        if state == DONT_CARE { self.write_other } else { self.states[state as usize].writes }
    }

    /// Classes that lead out of a state, with where to.
    pub(super) fn out(&self, state: u32) -> &[(u32, u32)] {
        if state == DONT_CARE { &[] } else { self.out.of(state) }
    }

    /// Classes other than writes that lead into a state, with where from.
    pub(super) fn into(&self, state: u32) -> &[(u32, u32)] {
        if state == DONT_CARE { &[] } else { self.into.of(state) }
    }

    /// Where an operation of a class leads from a state.
    pub(super) fn edge(&self, from: u32, class: u32) -> Option<u32> {
        self.out(from).iter().find(|way| way.0 == class).map(|way| way.1)
    }

    /// States out of which operations of a class lead, and where to.
    pub(super) fn ways(&self, class: u32) -> &[(u32, u32)] {
        self.by_class.of(class)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let lists = self.out.bytes() + self.into.bytes() + self.by_class.bytes();
        tight_vec::bytes(&self.kinds) + tight_vec::bytes(&self.states) + lists
    }
}

/// More classes than these are seldom needed.
const FEW: usize = 32;

/// Lists of pairs, one after the other.
#[derive(Debug, Default)]
struct Lists {
    /// Where each begins, and where the last ends. Empty where all are.
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
