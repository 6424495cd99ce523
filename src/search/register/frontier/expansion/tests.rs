//! Wide layers, on one and on several threads.

use super::super::Reached;
use super::super::tests::busy::{Busy, pools, with_problem};
use super::*;
use crate::search::portfolio::Runner;
use crate::search::register::Problem;
use crate::search::tests::random::Random;
use crate::search::verdict::Budget;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

type Slots = [u64; 1];

/// Histories of a register with a hundred configurations and more at a return.
fn each_history(test: impl Fn(&Arc<Problem<'_>>, Busy)) {
    let mut random = Random(17);
    for round in 0..24 {
        let busy = Busy {
            calls: 150 + random.below(150),
            clients: [6, 12, 20][round % 3],
            values: [2, 5, 20][round / 3 % 3],
            unknown: [0, 2, 40][round / 2 % 3],
            wrong: (round % 2 == 1).then_some(random.below(20) as i64),
        };
        with_problem(busy.draw(&mut random), |problem, _, _| test(problem, busy));
    }
}

/// Work of one search, at most.
const WORK: u64 = 1 << 18;

/// The result of a search within [`WORK`]; its work and counts; its suspicion.
fn run(
    problem: &Arc<Problem<'_>>,
    width: Width,
    memory: usize,
) -> (Result<Option<Reached<Slots>>, Limit>, [u64; 6], String) {
    let mut search = FrontierSearch::new(problem.clone(), Reductions::default(), width);
    let found = search.run(WORK, memory, &BudgetGuard::begin(&Budget::default()));
    let counts =
        [search.node_count, search.open_total, search.layers.len(), search.active.len()].map(|count| count as u64);
    let [nodes, open, layers, active] = counts;
    let suspicion = format!("{:?}", search.successors.suspicion);
    (found, [search.work(), u64::from(search.furthest), nodes, open, layers, active], suspicion)
}

#[test]
fn layers_come_to_the_same_by_the_same_work_on_any_number_of_threads() {
    let pools = pools();
    each_history(|problem, busy| {
        for width in [Width::Everything, Width::Beam(8), Width::Beam(100)] {
            let found = pools.each_ref().map(|pool| pool.install(|| run(problem, width, usize::MAX)));
            assert!(
                found.iter().all(|other| *other == found[0]),
                "{busy:?} {width:?}: {:?}",
                found.map(|of| (of.1, of.2))
            );
        }
    });
}

#[test]
fn layers_for_which_there_is_too_little_memory_prove_nothing_wrong() {
    let (pools, ended, decided) = (pools(), AtomicU32::new(0), AtomicU32::new(0));
    each_history(|problem, busy| {
        let is_goal = |found: &Option<Reached<Slots>>| found.as_ref().map(|found| matches!(found, Reached::Goal(..)));
        let Ok(whole) = run(problem, Width::Everything, usize::MAX).0.map(|found| is_goal(&found)) else {
            panic!("no limit is reached: {busy:?}")
        };
        for memory in [10_000, 40_000, 100_000, 400_000] {
            for found in pools.each_ref().map(|pool| pool.install(|| run(problem, Width::Everything, memory).0)) {
                match found.map(|found| is_goal(&found)) {
                    Ok(Some(goal)) => {
                        assert_eq!(whole.unwrap_or(goal), goal, "{busy:?}");
                        decided.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(None) => {}
                    Err(limit) => {
                        assert_eq!(limit, Limit::Memory, "{busy:?}");
                        ended.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        }
    });
    let counts = [ended, decided].map(AtomicU32::into_inner);
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}
