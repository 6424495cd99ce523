//! Specifications as a user would write them, with few hints or none.

use crate::linearizability::subject::Subject;
use retrograde::model::Spec;

/// All subjects.
pub fn all() -> Vec<Subject> {
    vec![
        Subject::new("bank", Bank, Bank::operations(), Bank::answers()),
        Subject::new("plain register", PlainRegister, PlainRegister::operations(), PlainRegister::answers()),
        Subject::new("slot", Slot, Slot::operations(), Slot::answers()),
    ]
}

/// Accounts with transfers between them, none below zero. A transfer connects two accounts, an audit all of them.
struct Bank;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Move {
    Transfer { from: usize, to: usize },
    Balance(usize),
    Audit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Told {
    Moved,
    Refused,
    Holds(u8),
    All([u8; 3]),
}

impl Spec for Bank {
    type State = [u8; 3];
    type Operation = Move;
    type Answer = Told;

    fn initial(&self) -> [u8; 3] {
        [1, 1, 0]
    }

    fn step(&self, state: &[u8; 3], operation: &Move, answer: Option<&Told>) -> Option<[u8; 3]> {
        let (told, next) = match *operation {
            Move::Transfer { from, to } if state[from] > 0 => {
                let mut next = *state;
                next[from] -= 1;
                next[to] += 1;
                (Told::Moved, next)
            }
            Move::Transfer { .. } => (Told::Refused, *state),
            Move::Balance(account) => (Told::Holds(state[account]), *state),
            Move::Audit => (Told::All(*state), *state),
        };
        answer.is_none_or(|answer| *answer == told).then_some(next)
    }

    fn keys(&self, operation: &Move) -> Option<Vec<u64>> {
        match *operation {
            Move::Transfer { from, to } => Some(vec![from as u64, to as u64]),
            Move::Balance(account) => Some(vec![account as u64]),
            Move::Audit => None,
        }
    }
}

impl Bank {
    fn operations() -> Vec<Move> {
        let accounts = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0)];
        let mut operations: Vec<Move> = accounts.iter().map(|&(from, to)| Move::Transfer { from, to }).collect();
        operations.extend([Move::Balance(0), Move::Balance(1), Move::Balance(2), Move::Audit]);
        operations
    }

    fn answers() -> Vec<Told> {
        let mut answers = vec![Told::Moved, Told::Refused, Told::Holds(0), Told::Holds(1), Told::Holds(2)];
        for a in 0..=2 {
            answers.extend((0..=2 - a).map(|b| Told::All([a, b, 2 - a - b])));
        }
        answers
    }
}

/// A register without hints.
struct PlainRegister;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Access {
    Read,
    Write(u8),
    Swap(u8),
    Cas(u8, u8),
}

impl Spec for PlainRegister {
    type State = u8;
    type Operation = Access;
    /// The value that was read or replaced; for a compare-and-set, 1 or 0.
    type Answer = u8;

    fn initial(&self) -> u8 {
        0
    }

    fn step(&self, state: &u8, operation: &Access, answer: Option<&u8>) -> Option<u8> {
        let (told, next) = match *operation {
            Access::Read => (*state, *state),
            Access::Write(value) => (0, value),
            Access::Swap(value) => (*state, value),
            Access::Cas(from, to) if *state == from => (1, to),
            Access::Cas(..) => (0, *state),
        };
        answer.is_none_or(|answer| *answer == told).then_some(next)
    }
}

impl PlainRegister {
    fn operations() -> Vec<Access> {
        use Access::{Cas, Read, Swap, Write};
        vec![
            Read,
            Read,
            Read,
            Write(0),
            Write(1),
            Write(2),
            Swap(1),
            Swap(2),
            Cas(0, 1),
            Cas(1, 2),
            Cas(2, 0),
            Cas(1, 1),
        ]
    }

    fn answers() -> Vec<u8> {
        vec![0, 1, 2]
    }
}

/// A buffer of one place: a put blocks until it is empty, a take until it is full. A blocked call may never return.
struct Slot;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Hand {
    Put(u8),
    Take,
}

impl Spec for Slot {
    type State = Option<u8>;
    type Operation = Hand;
    /// The value that was taken; 0 for a put.
    type Answer = u8;

    fn initial(&self) -> Option<u8> {
        None
    }

    fn step(&self, state: &Option<u8>, operation: &Hand, answer: Option<&u8>) -> Option<Option<u8>> {
        let (told, next) = match (*operation, *state) {
            (Hand::Put(value), None) => (0, Some(value)),
            (Hand::Take, Some(value)) => (value, None),
            _ => return None,
        };
        answer.is_none_or(|answer| *answer == told).then_some(next)
    }
}

impl Slot {
    fn operations() -> Vec<Hand> {
        vec![Hand::Put(1), Hand::Put(2), Hand::Put(3), Hand::Take, Hand::Take, Hand::Take]
    }

    fn answers() -> Vec<u8> {
        vec![0, 1, 2, 3]
    }
}
