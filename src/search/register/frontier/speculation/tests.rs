//! Histories of thousands of operations, on one and on several threads.

use super::*;
use crate::search::check_with;
use crate::search::config::SearchConfig;
use crate::search::history::{Call, History, Outcome};
use crate::search::register::frontier::tests::busy::{Busy, pools, with_problem};
use crate::search::register::pruning::Reductions;
use crate::search::register::witness::WitnessBuilder;
use crate::search::register::{Problem, Thresholds, is_valid_linearization};
use crate::search::tests::random::{Ask, Random, Register, RegisterAnswer};
use crate::search::verdict::{Budget, Verdict};
use std::sync::Arc;

type Slots = [u64; 2];

/// Whether a segment was taken over, and if so whether the first ones failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    AtOnce,
    Later,
    Never,
}

/// The result after two rounds of a portfolio, and which segments met.
fn run(problem: &Arc<Problem<'_>>, segment_events: usize) -> (Option<Reached<Slots>>, Met) {
    let first = FrontierSearch::new(problem.clone(), Reductions::default(), Width::Beam(1));
    let mut search = SpeculativeSearch::new(first, segment_events);
    let bound = search.bounds[0];
    let guard = BudgetGuard::begin(&Budget::default());
    let work = initial_budget(problem.schedule.events.len());
    let mut round = |until| search.run(until, usize::MAX, &guard).unwrap_or_else(|limit| panic!("{limit:?}"));
    let found = round(work).or_else(|| round(2 * work));
    // The partial witness follows from the steps.
    let found = found.map(|found| match found {
        Reached::Goal(steps, boundaries, _) => Reached::Goal(steps, boundaries, None),
        nothing => nothing,
    });
    let is_met = found.is_some() && (search.first.open.at as usize) < problem.schedule.events.len();
    let met = match is_met {
        true if search.bounds[0] == bound => Met::AtOnce,
        true => Met::Later,
        false => Met::Never,
    };
    (found, met)
}

/// Whichever search proves first that there is no linearization, the core and the longest prefix are those of the first search if
/// it ends in its first rounds.
#[test]
fn violations_are_told_alike_on_any_number_of_threads() {
    let (pools, mut random, mut violated) = (pools(), Random(22), 0);
    let segment_events = Thresholds::default().segment_events;
    let thresholds = Thresholds { segment_events, ..Thresholds::SMALL };
    let config = SearchConfig { thresholds, ..SearchConfig::default() };
    for round in 0..40 {
        let busy = Busy {
            calls: 400 + random.below(1_200),
            clients: [10, 30][round % 2],
            values: [20, 100, 1_000][round % 3],
            unknown: [0, 1, 5][round / 3 % 3],
            wrong: Some(random.below(20) as i64),
        };
        let history = History::new(busy.draw(&mut random)).unwrap_or_else(|e| panic!("{e}"));
        let decide = || check_with(&Register, &history, &Budget::default(), &config);
        let found = pools.each_ref().map(|pool| pool.install(decide));
        assert!(found.iter().all(|other| *other == found[0]), "{busy:?}: {found:?}");
        violated += u32::from(matches!(found[0], Verdict::Violated(_)));
    }
    assert!(violated > 20, "{violated}");
}

#[test]
fn segments_come_to_the_same_on_any_number_of_threads_whether_they_meet_or_not() {
    let (pools, mut random, mut all, mut divided) = (pools(), Random(9), Vec::new(), 0);
    for round in 0..36 {
        let busy = Busy {
            calls: 2_000 + random.below(2_000),
            clients: [4, 20, 60][round % 3],
            values: [5, 40][usize::from(round < 12)],
            unknown: [0, 1, 5][round / 12 % 3],
            wrong: (round == 3).then_some(-1),
        };
        let calls = busy.draw(&mut random);
        // Four segments, and two.
        for segment_events in [500, calls.len() * 3 / 4] {
            with_problem(calls.clone(), |problem, part, forms| {
                let found = pools.each_ref().map(|pool| pool.install(|| run(problem, segment_events)));
                assert!(found.iter().all(|other| *other == found[0]), "{busy:?}");
                let (reached, met) = &found[0];
                match reached {
                    Some(Reached::Goal(steps, boundaries, _)) => {
                        assert!(busy.wrong.is_none(), "{busy:?}");
                        let end = part.events.len();
                        let order = WitnessBuilder::<Slots>::new(problem.clone()).order(steps, end);
                        assert!(
                            order.as_ref().is_some_and(|order| is_valid_linearization(part, forms, order)),
                            "{busy:?}"
                        );
                        for boundaries in [&boundaries[..], &boundaries[..boundaries.len().min(1)], &[]] {
                            let before = |boundary: &SegmentBoundary<_>| {
                                WitnessBuilder::up_to(problem.clone(), &steps[..boundary.steps], boundary.event)
                            };
                            for first in [None, boundaries.first().and_then(before)] {
                                assert_eq!(
                                    WitnessBuilder::in_parts(problem, steps, boundaries, first, end),
                                    order,
                                    "{busy:?}"
                                );
                            }
                        }
                        divided += u32::from(segment_events != 500 && boundaries.len() > 1);
                        all.push(*met);
                    }
                    Some(Reached::Nothing(..)) => assert!(busy.wrong.is_some(), "{busy:?}"),
                    None => {}
                }
            });
        }
    }
    for (met, least) in [(Met::AtOnce, 20), (Met::Later, 1)] {
        assert!(all.iter().filter(|other| **other == met).count() >= least, "{all:?}");
    }
    assert!(divided > 20, "{divided} of two segments were divided");
}

/// At any configuration of a search, the witness of its steps can be divided into parts.
#[test]
fn orders_are_the_same_in_whatever_parts_they_are_made() {
    let (mut random, mut tried) = (Random(31), 0);
    for round in 0..60 {
        let busy = Busy {
            calls: 60 + random.below(60),
            clients: [4, 8, 16][round % 3],
            values: [2, 3, 6][round / 3 % 3],
            unknown: [0, 10, 30][round / 9 % 3],
            wrong: None,
        };
        with_problem(busy.draw(&mut random), |problem, part, _| {
            let mut search = FrontierSearch::<Slots>::new(problem.clone(), Reductions::default(), Width::Beam(1));
            // All configurations are noted.
            search.splice_candidates.end = NEVER;
            let found = search.run(u64::MAX, usize::MAX, &BudgetGuard::begin(&Budget::default()));
            let Ok(Some(Reached::Goal(steps, ..))) = found else { panic!("{busy:?}: {found:?}") };
            let boundary = |(event, at): &(u32, Configuration<Slots>)| SegmentBoundary {
                event: *event,
                steps: search.paths.steps(at.path).len(),
                last_overwrite_at: at.last_overwrite_at,
                linearized: at.linearized,
            };
            let boundaries: Vec<_> = search.splice_candidates.by_event.iter().map(boundary).collect();
            let end = part.events.len();
            let order = WitnessBuilder::<Slots>::new(problem.clone()).order(&steps, end);
            assert!(order.is_some(), "{busy:?}");
            for at in 0..boundaries.len() {
                let later = at + 1 + random.below(8) as usize;
                for boundaries in [
                    &boundaries[at..=at],
                    &[&boundaries[at..=at], boundaries.get(later..=later).unwrap_or_default()].concat(),
                ] {
                    assert_eq!(
                        WitnessBuilder::in_parts(problem, &steps, boundaries, None, end),
                        order,
                        "{busy:?} {boundaries:?}"
                    );
                    tried += 1;
                }
            }
        });
    }
    assert!(tried > 2_000, "{tried}");
}

/// A segment whose first half is hard ends there, and another one begins there, on any number of threads.
#[test]
fn a_hard_segment_is_two_on_any_number_of_threads() {
    let (pools, mut random, mut halved) = (pools(), Random(12), 0);
    for round in 0..12 {
        let busy =
            Busy { calls: 1_500, clients: 20, values: [5, 20][round % 2], unknown: [1, 5][round / 2 % 2], wrong: None };
        with_problem(busy.draw(&mut random), |problem, _, _| {
            let ends = || {
                let first = FrontierSearch::<Slots>::new(problem.clone(), Reductions::default(), Width::Beam(1));
                let end = problem.schedule.events.len() as u32;
                let runner =
                    SegmentRunner::after(&first, &[end / 4, end], usize::MAX, BudgetGuard::begin(&Budget::default()));
                let segments = runner.begin(&[end / 4, end]).and_then(|segment| runner.end(segment));
                let shown = |segment: Segment<'_, Slots>| {
                    (segment.start.begin, segment.end, segment.search.work(), segment.goal)
                };
                segments.map(|segments| segments.into_iter().map(shown).collect::<Vec<_>>())
            };
            let ends = pools.each_ref().map(|pool| pool.install(ends));
            assert!(ends.iter().all(|other| *other == ends[0]), "{busy:?}");
            halved += usize::from(ends[0].as_ref().is_some_and(|segments| segments.len() > 1));
        });
    }
    assert!((1..12).contains(&halved), "{halved} were halved");
}

/// The first segment needs a crashed write for a read; the second, whose guess holds that value already, does not. Both then have
/// the same configuration apart from uses, and another read needs the write: for the second segment it is still available. (The
/// second segment backtracks to the write of 4. The last write keeps the first one from seeing sooner that nothing is left.)
#[test]
fn what_one_segment_has_used_and_the_other_has_not_is_not_used_twice() {
    let mut calls = Vec::new();
    let mut call = |operation, answer: Option<RegisterAnswer>| {
        let process = calls.len() as u32;
        let invoke = 2 * i64::from(process);
        let outcome = answer.map_or(Outcome::Unknown, |answer| Outcome::Completed { returned: invoke + 1, answer });
        calls.push(Call { process, operation, invoke, outcome });
    };
    (0..5).for_each(|_| call(Ask::Write(1), Some(RegisterAnswer::Written)));
    call(Ask::Write(2), None);
    call(Ask::Read, Some(RegisterAnswer::Value(2)));
    call(Ask::Write(3), Some(RegisterAnswer::Written));
    call(Ask::Write(4), Some(RegisterAnswer::Written));
    call(Ask::Read, Some(RegisterAnswer::Value(2)));
    call(Ask::Write(2), Some(RegisterAnswer::Written));
    with_problem(calls, |problem, _, _| {
        let (found, _) = run(problem, problem.schedule.events.len() / 2);
        assert!(matches!(found, Some(Reached::Nothing(..))), "{found:?}");
    });
}
