//! Tests what pruning says of single configurations, against what they can do without any. In a verdict, another configuration
//! may make up for one that was dropped wrongly.

pub(super) mod busy;

use super::*;
use crate::model::Spec;
use crate::search::events::events;
use crate::search::history::{Call, History};
use crate::search::partition::registers;
use crate::search::register::Forms;
use crate::search::tests::random::{Ask, Random, Register, RegisterAnswer, Text, long_history, long_text_history};
use crate::search::tests::shapes;
use crate::search::verdict::Budget;
use std::slice;

type Slots = [u64; 1];

/// All configurations that can be reached without pruning, from return to return.
struct Walk<'p> {
    problem: Arc<Problem<'p>>,
    search: FrontierSearch<'p, Slots>,
}

/// More configurations than this at one return are not compared.
const MAX_COMPARED: usize = 100;

/// More crashed operations than a move has. (With supply pruning, uses are not counted.)
const ENOUGH: u32 = 10;

impl<'p> Walk<'p> {
    fn new(problem: Problem<'p>) -> Self {
        let problem = Arc::new(problem);
        let search = FrontierSearch::new(problem.clone(), Reductions::NONE, Width::Everything);
        Walk { problem, search }
    }

    /// Whether one of these configurations, at an event, can reach the end.
    fn can_end(&self, event: u32, from: &[Configuration<Slots>]) -> bool {
        if from.is_empty() {
            return false;
        }
        let mut search = FrontierSearch::new(self.problem.clone(), Reductions::NONE, Width::Everything);
        let from: Vec<_> = from.iter().map(|at| Configuration { path: BEGIN, ..at.clone() }).collect();
        let node = |at: &Configuration<Slots>| Node { at: at.clone(), optional: 0, is_open: false };
        search.layers = vec![Layer::new(event, from.iter().map(node).collect())];
        (search.node_count, search.node_capacity) = (from.len(), from.len());
        search.active = (0..).zip(from).collect();
        search.uses = self.search.uses.clone();
        search.open.go(event);
        let reached = search.run(u64::MAX, usize::MAX, &BudgetGuard::begin(&Budget::default()));
        matches!(reached, Ok(Some(Reached::Goal(..))))
    }

    /// The successors of a configuration past the return of a slot with these reductions.
    fn successors(
        &mut self,
        from: &Configuration<Slots>,
        slot: u32,
        reductions: Reductions,
    ) -> Vec<Configuration<Slots>> {
        let FrontierSearch { open, uses, successors, .. } = &mut self.search;
        let generator =
            Generator { open, uses, successors, reductions, compared_moves: 4, from, slot, optional: (0, ENOUGH) };
        let more = generator.find(usize::MAX, &BudgetGuard::begin(&Budget::default()));
        assert!(more.is_ok(), "{more:?}");
        successors.found.iter().map(|found| found.to.clone()).collect()
    }

    /// Compares at every return. Returns how often there was something to compare.
    fn compare(mut self, shown: &dyn Fn() -> String) -> Compared {
        let mut compared = Compared::default();
        while (self.search.open.at as usize) < self.search.open.schedule().events.len() {
            let slot = match self.search.open.forward() {
                Passed::Nothing => continue,
                Passed::Invocation(slot) => {
                    self.search.invoke(slot);
                    continue;
                }
                Passed::Return(slot) => slot,
            };
            let before: Vec<_> = self.search.active.iter().map(|active| active.1.clone()).collect();
            if before.len() > MAX_COMPARED {
                return compared;
            }
            for from in before.iter().filter(|from| !from.linearized.has(slot)) {
                self.moves_are_enough(from, slot, &mut compared, shown);
            }
            let pass = self.search.pass(slot, usize::MAX, &BudgetGuard::begin(&Budget::default()));
            assert_eq!(pass, Ok(()));
            let after: Vec<_> = self.search.active.iter().map(|active| active.1.clone()).collect();
            if after.is_empty() || after.len() > MAX_COMPARED {
                return compared;
            }
            self.a_dominating_configuration_can_do_as_much(&after, &mut compared, shown);
            self.search.open.leave(slot);
        }
        compared
    }

    /// With pruning, a successor is left that can reach the end if there is one without.
    fn moves_are_enough(
        &mut self,
        from: &Configuration<Slots>,
        slot: u32,
        compared: &mut Compared,
        shown: &dyn Fn() -> String,
    ) {
        let every = self.successors(from, slot, Reductions::NONE);
        let event = self.search.open.at + 1;
        let ends = self.can_end(event, &every);
        let none = Reductions::NONE;
        for reductions in [
            Reductions { earliest_first: true, ..none },
            Reductions { last_producer: true, ..none },
            Reductions { useless_writes: true, ..none },
            Reductions { supply: true, ..none },
            Reductions::default(),
        ] {
            let some = self.successors(from, slot, reductions);
            compared.pruned += u32::from(some.len() < every.len());
            assert_eq!(
                self.can_end(event, &some),
                ends,
                "{reductions:?}: {some:#?} of {every:#?} from {from:#?}: {}",
                shown()
            );
        }
    }

    /// The same configuration with spent uses forgotten, if it has any.
    fn without_spent(&mut self, at: &Configuration<Slots>) -> Option<Configuration<Slots>> {
        let FrontierSearch { open, uses, .. } = &mut self.search;
        let spent: Vec<u32> = uses.classes(at.used).filter(|&optional| open.is_spent(optional, at, uses)).collect();
        let used = uses.without(at.used, &spent);
        assert!(spent.iter().all(|&optional| uses.count(used, optional) == 0));
        (!spent.is_empty()).then(|| Configuration { used, ..at.clone() })
    }

    fn a_dominating_configuration_can_do_as_much(
        &mut self,
        all: &[Configuration<Slots>],
        compared: &mut Compared,
        shown: &dyn Fn() -> String,
    ) {
        let forgotten: Vec<_> = all.iter().map(|at| self.without_spent(at)).collect();
        let (open, uses) = (&self.search.open, &self.search.uses);
        let within = |less: u32, more: u32| uses.is_within(less, more);
        let ends: Vec<bool> = all.iter().map(|at| self.can_end(open.at + 1, slice::from_ref(at))).collect();
        for (at, ends_at) in forgotten.iter().zip(&ends).filter_map(|(at, ends)| Some((at.as_ref()?, ends))) {
            compared.spent += 1;
            assert_eq!(self.can_end(open.at + 1, slice::from_ref(at)), *ends_at, "{at:#?} forgot uses: {}", shown());
        }
        for (at, ends_at) in all.iter().zip(&ends) {
            let dominated = |(kept, kept_ends): &(&Configuration<Slots>, &bool)| {
                **kept_ends != *ends_at && kept.dominates(at, open, within)
            };
            for (kept, _) in all.iter().zip(&ends).filter(dominated) {
                assert!(!ends_at, "{kept:#?} dominates {at:#?}: {uses:?} {}", shown());
            }
            compared.dominated +=
                all.iter().filter(|kept| !kept.is_same(at) && kept.dominates(at, open, within)).count() as u32;
            if at.state != DONT_CARE && !open.is_useful(at.state, at, uses) && !open.is_shunned(at.state, at) {
                let forgotten = Configuration { state: DONT_CARE, ..at.clone() };
                compared.forgotten += 1;
                assert_eq!(self.can_end(open.at + 1, &[forgotten]), *ends_at, "{at:#?} is forgotten: {}", shown());
            }
        }
    }
}

/// How often there was something to compare.
#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    pruned: u32,
    dominated: u32,
    forgotten: u32,
    spent: u32,
}

fn compare<S: Spec>(spec: &S, calls: Vec<Call<S::Operation, S::Answer>>, compared: &mut Compared) {
    let history = History::new(calls).unwrap_or_else(|e| panic!("{e}"));
    let forms = Forms::of(spec, &history).unwrap_or_else(|| panic!("registers have forms"));
    for part in &registers(&history, events(history.calls()), &forms) {
        let Some(problem) =
            Problem::new(part, &forms, part.events.len(), Thresholds::SMALL, &BudgetGuard::begin(&Budget::default()))
        else {
            continue;
        };
        let one = Walk::new(problem).compare(&|| format!("{:#?}", history.calls()));
        compared.pruned += one.pruned;
        compared.dominated += one.dominated;
        compared.forgotten += one.forgotten;
        compared.spent += one.spent;
    }
}

/// Histories of registers and of texts, 400 unless `HISTORIES` is set. `HISTORIES=200000 SEED=1 cargo test --release --lib
/// each_reduction`
#[test]
fn each_reduction_keeps_what_a_configuration_can_do() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let histories = number("HISTORIES").unwrap_or(400);
    let (mut random, mut compared) = (Random(number("SEED").unwrap_or(8)), Compared::default());
    for _ in 0..histories {
        compare(&Register, long_history(10, &mut random), &mut compared);
        compare(&Text, long_text_history(10, &mut random), &mut compared);
    }
    let least = compared.pruned.min(compared.dominated).min(compared.forgotten).min(8 * compared.spent);
    assert!(u64::from(least) > histories, "{compared:?}");
}

#[test]
fn each_reduction_keeps_what_a_configuration_can_do_in_histories_that_tell_conditions() {
    let mut compared = Compared::default();
    shapes::of_registers().into_iter().for_each(|(_, calls)| compare(&Register, calls, &mut compared));
    shapes::of_texts().into_iter().for_each(|(_, calls)| compare(&Text, calls, &mut compared));
    assert!(compared.pruned > 0 && compared.dominated > 0, "{compared:?}");
}

#[test]
fn what_is_open_is_in_the_order_of_returns_wherever_a_search_goes() {
    let mut random = Random(12);
    for round in 0..30 {
        let busy = busy::Busy { calls: 120, clients: 30, values: 1 + round % 3, unknown: 10, wrong: None };
        busy::with_problem(busy.draw(&mut Random(round)), |problem, _, _| {
            let mut open: PendingOps<'_, Slots> = PendingOps::new(problem.clone(), 0);
            for _ in 0..40 {
                open.go(random.below(problem.schedule.events.len() as u64 + 1) as u32);
                let mut listed = 0;
                for class in 0..problem.automaton.kinds.len() as u32 {
                    let slots: Vec<u32> = open.undone(class, &Slots::none(64)).collect();
                    assert!(slots.windows(2).all(|pair| open.returned(pair[0]) < open.returned(pair[1])), "{slots:?}");
                    assert!(slots.iter().all(|&slot| open.class(slot) == class && open.invoked(slot) < open.at));
                    listed += slots.len();
                }
                let is_open = |of: &&crate::search::register::event_schedule::Operation| {
                    of.class != u32::MAX && of.invoked < open.at && of.returned != NEVER && of.returned >= open.at
                };
                assert_eq!(listed, problem.schedule.operations.iter().filter(is_open).count());
            }
        });
    }
}

/// A search of 240 calls with these thresholds: whether it finds a linearization, and whether it had a checkpoint, collected
/// steps, and expanded a layer on several threads. The last number is its work.
fn searched(
    calls: &[Call<Ask, RegisterAnswer>],
    width: Width,
    thresholds: Thresholds,
) -> (Option<bool>, [bool; 3], u64) {
    let mut found = None;
    busy::with_thresholds(thresholds, calls.to_vec(), |problem, _, _| {
        let mut search = FrontierSearch::<Slots>::new(problem.clone(), Reductions::default(), width);
        let reached = search.run(1 << 18, usize::MAX, &BudgetGuard::begin(&Budget::default()));
        let reached = reached.unwrap_or_else(|limit| panic!("{limit:?}"));
        let widest = search.layers.iter().map(|layer| layer.nodes.len()).max();
        let crossed = [
            search.layers.iter().any(|layer| layer.checkpoint.is_some()),
            search.paths.kept > 0,
            widest >= Some(thresholds.parallel_configurations),
        ];
        found = Some((reached.map(|reached| matches!(reached, Reached::Goal(..))), crossed, search.work()));
    });
    found.unwrap_or_else(|| panic!("a search"))
}

#[test]
fn small_histories_exceed_the_small_thresholds_and_are_decided_as_with_the_shipped_ones() {
    let (mut random, mut exceeded, mut decided) = (Random(23), [0; 4], 0);
    for round in 0..24 {
        let busy = busy::Busy {
            calls: 240,
            clients: [6, 10][round % 2],
            values: [3, 20][round / 2 % 2],
            unknown: [0, 5][round / 4 % 2],
            wrong: (round % 3 == 1).then_some(random.below(20) as i64),
        };
        let calls = busy.draw(&mut random);
        for width in [Width::Beam(8), Width::Everything] {
            let [small, shipped] =
                [Thresholds::SMALL, Thresholds::default()].map(|thresholds| searched(&calls, width, thresholds));
            assert_eq!(shipped.1[..2], [false; 2], "{busy:?}");
            if let (Some(small), Some(shipped)) = (small.0, shipped.0) {
                assert_eq!(small, shipped, "{busy:?} {width:?}");
                decided += 1;
            }
            // Equal partial moves are left out sooner, so the work differs.
            let [checkpoint, collected, wide] = small.1;
            let all = [checkpoint, collected, wide, small.2 != shipped.2];
            exceeded.iter_mut().zip(all).for_each(|(count, is_over)| *count += u32::from(is_over));
        }
    }
    assert!(decided > 24 && exceeded.iter().all(|count| *count > 2), "{decided} were decided, exceeded: {exceeded:?}");
}
