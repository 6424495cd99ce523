//! Which levels a history has, and why it does not have the others.

use super::commit_order::{self, CommitOrder};
use super::core::NoOrder;
use super::dependencies::Dependencies;
use super::level::{Isolation, Level, Respects};
use super::observed::{Flaw, Flawed, Node, Observed};
use super::reasons::{Because, Reasons};
use super::transactions::Transactions;
use crate::order::graph::{Components, Cycle, CycleSearch, EdgeKind, EdgeKinds, Edges, Found, Graph};

/// Sets of transactions that are tried for each smaller set without an order, beyond those of one order.
const SETS: u64 = 1_000;

/// Sets that a first search tries for each transaction: twice as many as an order without backtracking.
const SETS_EACH: u64 = 4;

/// Why a history does not have a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The answers contradict themselves.
    Flaw(Flawed),
    /// A cycle of dependencies, each with its reason.
    Cycle(Vec<Dependency>),
    /// No order of commits explains these transactions.
    NoOrder(NoOrder),
}

/// One step of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The earlier transaction.
    pub from: Node,
    /// The later transaction.
    pub to: Node,
    /// The reason.
    pub because: Because,
}

/// Whether a history has a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It has.
    Holds,
    /// It has not.
    Violated(Violation),
    /// Nobody knows, for this reason.
    Unknown(String),
}

/// The levels of a history.
#[derive(Clone, Debug)]
pub struct Levels {
    decisions: Vec<(Level, Decision)>,
}

impl Flaw {
    /// The weakest level that excludes it.
    pub(super) fn excluded_by(self) -> Isolation {
        match self {
            Flaw::Duplicate | Flaw::Reordered => Isolation::ReadUncommitted,
            Flaw::Aborted | Flaw::Intermediate | Flaw::Unwritten | Flaw::IncompatibleOrder | Flaw::Future => {
                Isolation::ReadCommitted
            }
            Flaw::Internal => Isolation::ReadAtomic,
        }
    }

    /// The name in the literature.
    pub fn name(self) -> &'static str {
        match self {
            Flaw::Aborted => "G1a (aborted read)",
            Flaw::Intermediate => "G1b (intermediate read)",
            Flaw::Unwritten => "read of a value that nobody wrote",
            Flaw::IncompatibleOrder => "incompatible order",
            Flaw::Duplicate => "duplicate element",
            Flaw::Reordered => "appends of one transaction out of order",
            Flaw::Future => "future read",
            Flaw::Internal => "internal",
        }
    }
}

impl Levels {
    /// Decides all levels. `budget` limits the sets of transactions of each search for an order, and the edges of each search for
    /// a short cycle.
    pub fn of(history: &Transactions, budget: u64) -> Levels {
        let observed = Observed::of(history);
        let dependencies = Dependencies::of(history, &observed);
        let has_times = |level: &Level| level.respects < Respects::RealTime || !history.is_timeless();
        let open = |level| (level, Decision::Unknown(String::new()));
        let mut levels = Levels { decisions: Level::all().filter(has_times).map(open).collect() };
        let all: Vec<Level> = levels.all().map(|(level, _)| level).collect();
        // Most histories have all levels. Of the others, the weakest violated level excludes those above. Cycles take linear time,
        // so a long search for an order comes last.
        let strongest = all[all.len() - 1];
        let sets = SETS + SETS_EACH * u64::from(history.len());
        if let decision @ (Decision::Holds | Decision::Violated(Violation::Cycle(_))) =
            decide(&dependencies, strongest, sets.min(budget))
        {
            levels.settle(strongest, decision);
        }
        for level in &all {
            if levels.is_open(*level) {
                levels.settle(*level, by_cycles(&dependencies, *level, budget).0);
            }
        }
        for level in all.iter().rev() {
            if levels.is_open(*level) {
                levels.settle(*level, decide(&dependencies, *level, budget));
            }
        }
        levels
    }

    /// An order of commits, one transaction at a time and in real time, that gives all answers.
    pub fn strict_order(history: &Transactions, budget: u64) -> CommitOrder {
        let observed = Observed::of(history);
        let dependencies = Dependencies::of(history, &observed);
        match by_cycles(&dependencies, Level::STRICT, budget) {
            (Decision::Violated(_), _) => return CommitOrder::None,
            (Decision::Unknown(why), Some(graph)) if why.is_empty() => {
                return commit_order::search(history, &observed, &graph, Level::STRICT, budget);
            }
            (Decision::Unknown(_), _) => return CommitOrder::Spent,
            (Decision::Holds, _) => {}
        }
        let Ok(graph) = dependencies.graph(Level::STRICT) else { return CommitOrder::Spent };
        let place = Components::find(&graph, EdgeKinds::ALL);
        let mut order: Vec<Node> = observed.nodes().collect();
        order.sort_unstable_by_key(|node| place.of(*node));
        CommitOrder::Order(order)
    }

    fn is_open(&self, level: Level) -> bool {
        let is_open = |decision: &Decision| matches!(decision, Decision::Unknown(why) if why.is_empty());
        self.decisions.iter().any(|(other, decision)| *other == level && is_open(decision))
    }

    fn settle(&mut self, level: Level, decision: Decision) {
        for (other, known) in &mut self.decisions {
            let follows = match decision {
                Decision::Holds => level.implies(*other),
                Decision::Violated(_) => other.implies(level),
                Decision::Unknown(_) => *other == level,
            };
            let is_open = matches!(known, Decision::Unknown(_));
            if follows && is_open {
                known.clone_from(&decision);
            }
        }
    }

    /// Whether the history has a level.
    pub fn decision(&self, level: Level) -> Option<&Decision> {
        self.decisions.iter().find(|(other, _)| *other == level).map(|(_, decision)| decision)
    }

    /// All levels, a weaker one before a stronger one.
    pub fn all(&self) -> impl Iterator<Item = (Level, &Decision)> {
        self.decisions.iter().map(|(level, decision)| (*level, decision))
    }

    /// The names of the levels that the history has, without those that another one of them implies.
    pub fn strongest(&self) -> Vec<String> {
        let holds: Vec<Level> =
            self.all().filter(|(_, decision)| **decision == Decision::Holds).map(|(l, _)| l).collect();
        let is_implied = |level: &&Level| !holds.iter().any(|other| other != *level && other.implies(**level));
        holds.iter().filter(is_implied).map(Level::to_string).collect()
    }

    /// The violated levels that imply no other violated level.
    pub fn weakest_violated(&self) -> Vec<(Level, &Violation)> {
        let violated: Vec<(Level, &Violation)> = self
            .all()
            .filter_map(|(level, decision)| match decision {
                Decision::Violated(violation) => Some((level, violation)),
                _ => None,
            })
            .collect();
        let is_weakest = |(level, _): &&(Level, &Violation)| {
            !violated.iter().any(|(other, _)| other != level && level.implies(*other))
        };
        violated.iter().filter(is_weakest).copied().collect()
    }
}

fn decide(dependencies: &Dependencies<'_>, level: Level, budget: u64) -> Decision {
    let (history, observed) = (dependencies.history, dependencies.observed);
    let graph = match by_cycles(dependencies, level, budget) {
        (Decision::Unknown(why), Some(graph)) if why.is_empty() => graph,
        (decision, _) => return decision,
    };
    match commit_order::search(history, observed, &graph, level, budget) {
        CommitOrder::Order(_) => Decision::Holds,
        CommitOrder::None => {
            let has_no_order = |part: &Transactions| {
                let (observed, budget) = (Observed::of(part), SETS + 2 * u64::from(part.len()));
                match by_cycles(&Dependencies::of(part, &observed), level, budget) {
                    (Decision::Unknown(why), Some(graph)) if why.is_empty() => {
                        commit_order::search(part, &observed, &graph, level, budget) == CommitOrder::None
                    }
                    (decision, _) => matches!(decision, Decision::Violated(_)),
                }
            };
            Decision::Violated(Violation::NoOrder(NoOrder::of(history, has_no_order)))
        }
        CommitOrder::Spent => Decision::Unknown(format!("{budget} sets of transactions were tried")),
    }
}

/// Decides a level by cycles of dependencies. If only a search for an order of commits decides it, the decision is unknown without
/// a reason, and the graph is returned.
fn by_cycles(dependencies: &Dependencies<'_>, level: Level, budget: u64) -> (Decision, Option<Graph>) {
    let observed = dependencies.observed;
    if let Some(key) = observed.ambiguous {
        return (Decision::Unknown(format!("key {key} was given one value by several writes")), None);
    }
    let is_excluded = |flawed: &&Flawed| flawed.flaw.excluded_by() <= level.isolation;
    if let Some(flawed) = observed.flaws.iter().filter(is_excluded).min_by_key(|flawed| flawed.flaw) {
        return (Decision::Violated(Violation::Flaw(*flawed)), None);
    }
    let graph = match dependencies.graph(level) {
        Ok(graph) => graph,
        Err(why) => return (Decision::Unknown(why), None),
    };
    let search = |graph: &Graph| match level.isolation {
        Isolation::ParallelSnapshot => with_one_anti_dependency(graph, budget),
        Isolation::Prefix | Isolation::Snapshot => of_snapshots(graph, level.isolation, budget),
        _ => shortest(graph, budget),
    };
    let explained = |cycle: Cycle| {
        let reasons = Reasons::of(dependencies);
        let step = |step: &crate::order::graph::Step| Dependency {
            from: step.from,
            to: step.to,
            because: reasons.because((step.from, step.kind, step.to)),
        };
        Decision::Violated(Violation::Cycle(cycle.steps.iter().map(step).collect()))
    };
    match search(&graph) {
        Found::One(cycle) => return (explained(cycle), None),
        Found::Undecided => return (Decision::Unknown("the limit of visited edges was reached".to_owned()), None),
        Found::None => {}
    }
    // Without a cycle of all dependencies, any order of them is one of commits.
    if level.isolation <= Isolation::Causal || observed.has_orders && level.isolation == Isolation::Serializable {
        return (Decision::Holds, None);
    }
    if observed.has_orders {
        if observed.unseen.iter().all(|unseen| unseen.len() < 2) {
            return (Decision::Holds, None);
        }
        let order = Components::find(&graph, EdgeKinds::ALL);
        let decision = match search(&dependencies.with_unseen(&graph, |node| order.of(node))) {
            Found::None => Decision::Holds,
            _ => Decision::Unknown("the order of appends that no read shows is not known".to_owned()),
        };
        return (decision, None);
    }
    if level.isolation == Isolation::ParallelSnapshot {
        return (Decision::Unknown("the order of writes is not known".to_owned()), None);
    }
    (Decision::Unknown(String::new()), Some(graph))
}

fn shortest(graph: &Graph, budget: u64) -> Found<Cycle> {
    if Components::find(graph, EdgeKinds::ALL).cyclic().is_empty() {
        return Found::None;
    }
    CycleSearch::new(graph, budget).shortest(EdgeKinds::ALL).map_or(Found::None, Found::One)
}

const ANTI: EdgeKinds = EdgeKinds::of(&[EdgeKind::AntiDependency]);

fn all_but_anti() -> EdgeKinds {
    EdgeKind::ALL
        .into_iter()
        .filter(|kind| *kind != EdgeKind::AntiDependency)
        .fold(EdgeKinds::NONE, |all, kind| all.and(kind.into()))
}

fn with_one_anti_dependency(graph: &Graph, budget: u64) -> Found<Cycle> {
    if Components::find(graph, EdgeKinds::ALL).cyclic().is_empty() {
        return Found::None;
    }
    let mut search = CycleSearch::new(graph, budget);
    match search.shortest(all_but_anti()) {
        Some(cycle) => Found::One(cycle),
        None => search.with_one_anti_dependency(all_but_anti()),
    }
}

/// A cycle in which an anti-dependency follows only what a snapshot contains: dependencies for snapshot isolation, and reads and
/// orders of sessions and time for prefixes.
///
/// Each transaction has two nodes, so that a path by the allowed steps is a path of the doubled graph: the even one after a step
/// that no anti-dependency may follow.
fn of_snapshots(graph: &Graph, isolation: Isolation, budget: u64) -> Found<Cycle> {
    if Components::find(graph, EdgeKinds::ALL).cyclic().is_empty() {
        return Found::None;
    }
    let versions = EdgeKinds::of(&[EdgeKind::Version]);
    let mut edges = Edges::new(2 * graph.nodes(), usize::MAX);
    for node in 0..graph.nodes() {
        for (to, kinds) in graph.from(node) {
            let anti = kinds.within(ANTI);
            let rest = kinds.within(all_but_anti());
            // In both forms, an anti-dependency leaves an odd node, and leads to an even one.
            if !anti.is_empty() {
                edges.add(2 * node + 1, 2 * to, anti);
            }
            let opens = isolation == Isolation::Snapshot || rest.within(versions).is_empty();
            if !rest.is_empty() {
                edges.add(2 * node, 2 * to + u32::from(opens), rest);
                edges.add(2 * node + 1, 2 * to + u32::from(opens), rest);
            }
        }
    }
    match shortest(&Graph::build(edges), budget) {
        Found::One(mut cycle) => {
            for step in &mut cycle.steps {
                (step.from, step.to) = (step.from / 2, step.to / 2);
            }
            Found::One(cycle)
        }
        other => other,
    }
}

/// The name of a cycle after Adya and Elle, from its edges.
pub fn anomaly(level: Level, cycle: &[Dependency]) -> String {
    let count = |is_one: fn(&Because) -> bool| cycle.iter().filter(|step| is_one(&step.because)).count();
    let replaced = count(|because| matches!(because, Because::Replaced(_)));
    let is_update = count(|because| matches!(because, Because::Updated(_))) > 0;
    let is_inferred = count(|because| matches!(because, Because::Seen { .. })) > 0;
    let name = match (replaced, level.isolation) {
        _ if is_update && cycle.len() == 2 => "lost update",
        (0, Isolation::MonotonicAtomicView) if is_inferred => "observed transaction vanishes",
        (0, Isolation::ReadAtomic) if is_inferred => "fractured read",
        (0, _) if is_inferred => "causality violation",
        (0, _) if count(|because| matches!(because, Because::Read(_))) > 0 => "G1c",
        (0, _) => "G0",
        (1, _) => "G-single",
        (2, _) if cycle.len() == 2 => "G2-item (write skew)",
        _ if is_nonadjacent(cycle) && cycle.len() == 2 * replaced => "G-nonadjacent (long fork)",
        _ if is_nonadjacent(cycle) => "G-nonadjacent",
        _ => "G2-item",
    };
    let suffix = match (count(|because| *because == Because::Time), count(|because| *because == Because::Session)) {
        (0, 0) => "",
        (0, _) => "-session",
        _ => "-realtime",
    };
    format!("{name}{suffix}")
}

fn is_nonadjacent(cycle: &[Dependency]) -> bool {
    let is_replaced = |at: usize| matches!(cycle[at % cycle.len()].because, Because::Replaced(_));
    (0..cycle.len()).all(|at| !(is_replaced(at) && is_replaced(at + 1)))
}
