//! Small random histories, weighted to cases where shortcuts fail: few values, many unknown outcomes, long overlaps,
//! equal times, one wrong answer.

use crate::chance::Chance;
use crate::linearizability::subject::Subject;
use crate::linearizability::subject::{State, Word};
use retrograde::model::Spec;
use retrograde::search::{Call, History, Outcome};

/// Time between the linearization points of two calls.
const STRIDE: i64 = 4;

/// Parameters of one history.
struct Shape {
    calls: usize,
    /// Mean length of a call in strides.
    length: u64,
    /// Times are rounded down to multiples of this.
    grain: i64,
    unknown: f64,
    failed: f64,
    wrong: Wrong,
}

/// Errors in the answers.
#[derive(Clone, Copy)]
enum Wrong {
    /// No error: some order explains the answers.
    Nothing,
    /// This number of answers are replaced.
    Answers(u64),
    /// All answers are random.
    All,
    /// This number of answers belong to another operation.
    Questions(u64),
    /// Some calls that took effect are recorded as failed.
    Failures,
    /// Some calls are recorded shorter.
    Times,
}

impl Shape {
    fn draw(chance: &mut Chance, most_calls: usize) -> Shape {
        let calls = match chance.below(10) {
            0 => 1 + chance.below(4),
            1..=3 => 4 + chance.below(4),
            _ => 7 + chance.below(6),
        };
        let unknown = *chance.one(&[0.0, 0.0, 0.1, 0.2, 0.35, 0.5]);
        Shape {
            // Each unknown outcome doubles the number of orders.
            calls: (calls as usize).min(if unknown > 0.3 { most_calls - 2 } else { most_calls }),
            length: *chance.one(&[0, 1, 1, 1, 2, 2, 3, 4, 8]),
            grain: *chance.one(&[1, 1, 1, 2, 4, 8]),
            unknown,
            failed: *chance.one(&[0.0, 0.0, 0.05, 0.2]),
            wrong: match chance.below(10) {
                0..=1 => Wrong::Nothing,
                2..=5 => Wrong::Answers(1 + chance.below(3)),
                6 => Wrong::Questions(1 + chance.below(2)),
                7 => Wrong::All,
                8 => Wrong::Failures,
                _ => Wrong::Times,
            },
        }
    }
}

/// A history of at most `most_calls` calls.
pub fn history(subject: &Subject, chance: &mut Chance, most_calls: usize) -> History<Word, Word> {
    let shape = Shape::draw(chance, most_calls);
    let operations = &subject.operations;
    let mut state = subject.initial();
    let mut visited = vec![state.clone()];
    let mut calls = Vec::with_capacity(shape.calls);
    for at in 0..shape.calls {
        let effect = (at as i64 + 1) * STRIDE;
        let mut far = |length: u64| chance.below(length * STRIDE as u64 * 2 + 1) as i64;
        let (invoke, returned) = (effect - far(shape.length), effect + far(shape.length));
        let mut operation = *chance.one(operations);
        let fate = chance.fraction();
        let outcome = if fate < shape.failed {
            Outcome::Failed
        } else if fate < shape.failed + shape.unknown {
            if chance.happens(0.5) {
                state = subject.step(&state, &operation, None).unwrap_or(state);
            }
            Outcome::Unknown
        } else {
            let mut legal = legal_answers(subject, &state, &operation);
            for _ in 0..4 {
                if legal.is_empty() {
                    operation = *chance.one(operations);
                    legal = legal_answers(subject, &state, &operation);
                }
            }
            // An operation that blocks in this state, such as on a held lock, is still open at the end of the
            // recording.
            if legal.is_empty() {
                Outcome::Unknown
            } else {
                let (answer, next) = chance.one(&legal).clone();
                state = next;
                Outcome::Completed { returned, answer }
            }
        };
        visited.push(state.clone());
        calls.push(Call { process: 0, operation, invoke, outcome });
    }
    falsify(subject, &visited, shape.wrong, chance, &mut calls);
    for call in &mut calls {
        call.invoke = call.invoke.div_euclid(shape.grain) * shape.grain;
        if let Outcome::Completed { returned, .. } = &mut call.outcome {
            *returned = returned.div_euclid(shape.grain) * shape.grain;
        }
    }
    // The order in which calls are given must not matter.
    for at in (1..calls.len()).rev() {
        calls.swap(at, chance.below(at as u64 + 1) as usize);
    }
    assign_processes(chance, &mut calls);
    History::new(calls).expect("no process overlaps itself")
}

fn legal_answers(subject: &Subject, state: &State, operation: &Word) -> Vec<(Word, State)> {
    let answers = subject.answers.iter();
    answers.filter_map(|answer| Some((*answer, subject.step(state, operation, Some(answer))?))).collect()
}

/// Another answer that the operation has in some state of the history, if there is one.
fn other_answer(subject: &Subject, visited: &[State], call: &Call<Word, Word>, chance: &mut Chance) -> Option<Word> {
    let Outcome::Completed { answer: present, .. } = &call.outcome else { return None };
    let possible: Vec<&Word> = subject
        .answers
        .iter()
        .filter(|answer| *answer != present)
        .filter(|answer| visited.iter().any(|state| subject.step(state, &call.operation, Some(answer)).is_some()))
        .collect();
    (!possible.is_empty()).then(|| **chance.one(&possible))
}

fn falsify(subject: &Subject, visited: &[State], wrong: Wrong, chance: &mut Chance, calls: &mut [Call<Word, Word>]) {
    let replace = |call: &mut Call<Word, Word>, chance: &mut Chance| {
        let other = other_answer(subject, visited, call, chance);
        if let (Outcome::Completed { answer, .. }, Some(other)) = (&mut call.outcome, other) {
            *answer = other;
        }
    };
    match wrong {
        Wrong::Nothing => {}
        Wrong::Answers(number) => {
            for _ in 0..number {
                // A few draws look for a call that can have another answer.
                for _ in 0..4 {
                    let at = chance.below(calls.len() as u64) as usize;
                    let before = calls[at].outcome.clone();
                    replace(&mut calls[at], chance);
                    if calls[at].outcome != before {
                        break;
                    }
                }
            }
        }
        Wrong::Questions(number) => {
            for _ in 0..number {
                let at = chance.below(calls.len() as u64) as usize;
                calls[at].operation = *chance.one(&subject.operations);
                replace(&mut calls[at], chance);
            }
        }
        Wrong::All => calls.iter_mut().for_each(|call| replace(call, chance)),
        Wrong::Failures => {
            for call in calls.iter_mut().filter(|_| chance.happens(0.2)) {
                call.outcome = Outcome::Failed;
            }
        }
        Wrong::Times => {
            for call in calls.iter_mut() {
                let (early, late) = (chance.happens(0.5), chance.happens(0.5));
                if let Outcome::Completed { returned, .. } = &mut call.outcome {
                    let half = (*returned - call.invoke) / 2;
                    call.invoke += if late { half } else { 0 };
                    *returned -= if early { half } else { 0 };
                }
            }
        }
    }
}

/// Assigns each call to a free process. A process may continue after an unknown outcome.
fn assign_processes<O, A>(chance: &mut Chance, calls: &mut [Call<O, A>]) {
    let mut order: Vec<usize> = (0..calls.len()).collect();
    let end = |call: &Call<O, A>| match call.outcome {
        Outcome::Completed { returned, .. } => returned,
        Outcome::Failed | Outcome::Unknown => call.invoke,
    };
    order.sort_by_key(|&at| (calls[at].invoke, end(&calls[at])));
    let mut free_from: Vec<i64> = Vec::new();
    for at in order {
        let free: Vec<usize> = (0..free_from.len()).filter(|&p| free_from[p] <= calls[at].invoke).collect();
        let process = if free.is_empty() || chance.happens(0.1) {
            free_from.push(0);
            free_from.len() - 1
        } else {
            *chance.one(&free)
        };
        free_from[process] = end(&calls[at]);
        calls[at].process = process as u32;
    }
}
