//! Random registers with many calls, and the problem of each.

use crate::search::budget::BudgetGuard;
use crate::search::events::events;
use crate::search::history::{Call, History, Outcome};
use crate::search::partition::{Part, registers};
use crate::search::register::{Forms, Problem, Thresholds};
use crate::search::tests::random::{Ask, Random, Register, RegisterAnswer};
use crate::search::verdict::Budget;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;

/// The shape of a random history of one register.
#[derive(Clone, Copy, Debug)]
pub(in crate::search::register::frontier) struct Busy {
    pub(in crate::search::register::frontier) calls: u64,
    pub(in crate::search::register::frontier) clients: u64,
    pub(in crate::search::register::frontier) values: u64,
    /// Calls with an unknown outcome, in percent.
    pub(in crate::search::register::frontier) unknown: u64,
    /// One read returns this value instead of its own.
    pub(in crate::search::register::frontier) wrong: Option<i64>,
}

impl Busy {
    pub(in crate::search::register::frontier) fn draw(self, random: &mut Random) -> Vec<Call<Ask, RegisterAnswer>> {
        let mut clock = vec![0; self.clients as usize];
        let mut planned = Vec::new();
        for process in 0..self.calls {
            let free = &mut clock[(process % self.clients) as usize];
            let invoke = *free + 1 + random.below(2000) as i64;
            let happen = invoke + random.below(1000) as i64;
            let returned = happen + random.below(1000) as i64;
            *free = returned;
            let mut value = || random.below(self.values) as i64;
            let ask = [Ask::Read, Ask::Write(value()), Ask::Cas(value(), value())][random.below(3) as usize];
            planned.push((happen, process as u32, invoke, returned, ask));
        }
        planned.sort_by_key(|plan| (plan.0, plan.1));
        let (mut state, mut calls) = (0, Vec::new());
        for (_, process, invoke, returned, operation) in planned {
            let is_unknown = random.chance(self.unknown);
            let happens = !is_unknown || random.chance(50);
            let (next, answer) = match operation {
                Ask::Read => (state, RegisterAnswer::Value(state)),
                Ask::Write(value) => (value, RegisterAnswer::Written),
                Ask::Cas(from, to) if from == state => (to, RegisterAnswer::Set(true)),
                Ask::Cas(..) => (state, RegisterAnswer::Set(false)),
            };
            state = if happens { next } else { state };
            let outcome = if is_unknown { Outcome::Unknown } else { Outcome::Completed { returned, answer } };
            calls.push(Call { process, operation, invoke, outcome });
        }
        let reads = calls.iter_mut().skip(self.calls as usize * 2 / 3);
        let read = reads.map(|call| &mut call.outcome).find_map(|outcome| match outcome {
            Outcome::Completed { answer: RegisterAnswer::Value(value), .. } => Some(value),
            _ => None,
        });
        if let (Some(wrong), Some(value)) = (self.wrong, read) {
            *value = wrong;
        }
        calls
    }
}

/// Pools of one thread, of two and of four.
pub(in crate::search::register::frontier) fn pools() -> [ThreadPool; 3] {
    [1, 2, 4].map(|threads| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap_or_else(|e| panic!("{e}"))
    })
}

/// Runs a test on the register of these calls: the problem, its part and the forms.
pub(in crate::search::register::frontier) fn with_problem(
    calls: Vec<Call<Ask, RegisterAnswer>>,
    test: impl FnOnce(&Arc<Problem<'_>>, &Part, &Forms<'_>),
) {
    with_thresholds(Thresholds::SMALL, calls, test);
}

/// [`with_problem`] for a search with these thresholds.
pub(in crate::search::register::frontier) fn with_thresholds(
    thresholds: Thresholds,
    calls: Vec<Call<Ask, RegisterAnswer>>,
    test: impl FnOnce(&Arc<Problem<'_>>, &Part, &Forms<'_>),
) {
    let history = History::new(calls).unwrap_or_else(|e| panic!("{e}"));
    let forms = Forms::of(&Register, &history).unwrap_or_else(|| panic!("registers have forms"));
    let parts = registers(&history, events(history.calls()), &forms);
    let part = parts.iter().max_by_key(|part| part.events.len()).unwrap_or_else(|| panic!("calls"));
    let problem = Problem::new(part, &forms, part.events.len(), thresholds, &BudgetGuard::begin(&Budget::default()));
    test(&Arc::new(problem.unwrap_or_else(|| panic!("forms are enough"))), part, &forms);
}
