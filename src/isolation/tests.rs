//! The levels, compared with their definitions over all orders of commits.

use super::commit_order;
use super::dependencies::Dependencies;
use super::observed::Observed;
use super::{
    Because, CommitOrder, Decision, Dependency, Isolation, Level, Levels, Node, Outcome, Respects, Step, Transactions,
    Violation,
};
use crate::model::list_append::Access;
use crate::model::{ListAppend, Spec};
use crate::order::graph::{Components, EdgeKinds};
use crate::search::{self, Call};
use fastrand::Rng;

/// A step: a key, and the value that it writes.
type Planned = (u32, Option<u32>);

/// A history that a careless store might make: each read shows the state at a random moment, or a random write.
fn history(seed: u64, is_list: bool) -> Transactions {
    let mut dice = Rng::with_seed(seed);
    let (count, keys, sessions) = (2 + dice.u32(..4), 1 + dice.u32(..3), 1 + dice.u32(..3));
    let care = dice.u32(..10);
    let mut history = Transactions::default();
    // By key, its versions in their final order.
    let mut versions: Vec<Vec<u32>> = vec![Vec::new(); keys as usize];
    let mut next = 0;
    let mut planned: Vec<(u32, Vec<Planned>)> = Vec::new();
    for _ in 0..count {
        let steps = (0..1 + dice.u32(..3)).map(|_| {
            let key = dice.u32(..keys);
            if dice.bool() {
                return (key, None);
            }
            next += 1;
            (key, Some(next))
        });
        let steps: Vec<_> = steps.collect();
        for (key, value) in &steps {
            if let Some(value) = value {
                let list = &mut versions[*key as usize];
                let at = if dice.u32(..10) < care { list.len() } else { dice.usize(..=list.len()) };
                list.insert(at, *value);
            }
        }
        planned.push((dice.u32(..sessions), steps));
    }
    let mut ends = vec![0i64; sessions as usize];
    let mut written: Vec<Vec<u32>> = vec![Vec::new(); keys as usize];
    for (session, steps) in planned {
        let begin = ends[session as usize] + 1 + dice.i64(0..4);
        let end = begin + 1 + dice.i64(0..6);
        ends[session as usize] = end;
        let step = |(key, value): (u32, Option<u32>)| {
            let all = &versions[key as usize];
            let Some(value) = value else {
                if is_list {
                    let known = all.iter().filter(|value| written[key as usize].contains(value)).count();
                    let length = if dice.u32(..10) < care { known } else { dice.usize(..=all.len()) };
                    return Step::List(key, all[..length].to_vec());
                }
                let seen = if dice.u32(..10) < care {
                    written[key as usize].last().copied()
                } else {
                    dice.choice(all).copied()
                };
                return Step::Read(key, seen);
            };
            written[key as usize].push(value);
            if is_list { Step::Append(key, value) } else { Step::Write(key, value) }
        };
        let steps: Vec<Step> = steps.into_iter().map(step).collect();
        history.push(session, Some((begin, end)), Outcome::Committed, steps);
    }
    history
}

/// A history with one order of all commits. It knows nothing of graphs.
struct Ordered<'h> {
    history: &'h Transactions,
    observed: &'h Observed,
    /// By node, its place in the order; the begin has 0.
    place: Vec<usize>,
}

impl Ordered<'_> {
    fn is_before(&self, first: Node, second: Node, respects: Respects) -> bool {
        let (a, b) = (self.history.times(first), self.history.times(second));
        respects >= Respects::Sessions && self.history.session(first) == self.history.session(second) && first < second
            || respects == Respects::RealTime && a.1 < b.0
    }

    fn reads_from(&self, reader: Node, writer: Node) -> bool {
        self.observed.reads(reader).iter().any(|read| read.from == writer)
    }

    /// The transactions that one sees at least: by these relations, closed if `is_closed`.
    fn seen(&self, node: Node, respects: Respects, is_closed: bool, with_versions: bool) -> Vec<Node> {
        let nodes: Vec<Node> = self.observed.nodes().collect();
        let shares = |a: Node, b: Node| self.observed.writes(a).iter().any(|key| self.observed.wrote(b, *key));
        let sees = |a: Node, b: Node| {
            self.reads_from(b, a)
                || self.is_before(a, b, respects)
                || with_versions && self.place[a as usize] < self.place[b as usize] && shares(a, b)
        };
        let mut seen: Vec<Node> = nodes.iter().copied().filter(|other| *other != node && sees(*other, node)).collect();
        let mut at = 0;
        while is_closed && at < seen.len() {
            let more: Vec<Node> = nodes.iter().copied().filter(|o| !seen.contains(o) && sees(*o, seen[at])).collect();
            seen.extend(more);
            at += 1;
        }
        seen
    }

    fn has(&self, level: Level) -> bool {
        let Level { isolation, respects } = level;
        let nodes: Vec<Node> = self.observed.nodes().collect();
        let place = |node: Node| self.place[node as usize];
        // The order contains that of sessions and time, the orders of lists, and, above read uncommitted, that of reads.
        let is_contained =
            nodes.iter().all(|a| nodes.iter().all(|b| !self.is_before(*a, *b, respects) || place(*a) < place(*b)));
        let in_chains = self.observed.chains.iter().zip(&self.observed.unseen).all(|(chain, unseen)| {
            chain.windows(2).all(|pair| place(pair[0]) < place(pair[1]))
                && unseen
                    .iter()
                    .all(|node| chain.iter().all(|earlier| earlier == node || place(*earlier) < place(*node)))
        });
        let reads = || nodes.iter().flat_map(|node| self.observed.reads(*node).iter().map(|read| (*node, *read)));
        if !is_contained || !in_chains {
            return false;
        }
        if isolation == Isolation::ReadUncommitted {
            return true;
        }
        if !reads().all(|(node, read)| place(read.from) < place(node)) {
            return false;
        }
        // A read shows the last write of its key in a set of transactions.
        let shows = |set: &dyn Fn(Node, u32, Node) -> bool| {
            reads().all(|(node, read)| {
                nodes.iter().all(|other| {
                    *other == read.from
                        || *other == node
                        || !self.observed.wrote(*other, read.key)
                        || !set(node, read.at, *other)
                        || place(*other) < place(read.from)
                })
            })
        };
        let prefix = |node: Node| {
            let seen = self.seen(node, respects, false, false);
            seen.into_iter().map(place).max().unwrap_or(0)
        };
        match isolation {
            Isolation::ReadUncommitted | Isolation::ReadCommitted => true,
            Isolation::MonotonicAtomicView => shows(&|node, at, other| {
                self.observed.reads(node).iter().any(|read| read.from == other && read.at < at)
            }),
            Isolation::ReadAtomic => shows(&|node, _, other| {
                self.seen(
                    node,
                    if respects > Respects::Dependencies { Respects::Sessions } else { respects },
                    false,
                    false,
                )
                .contains(&other)
            }),
            Isolation::Causal => shows(&|node, _, other| self.seen(node, respects, true, false).contains(&other)),
            Isolation::ParallelSnapshot => {
                shows(&|node, _, other| self.seen(node, respects, true, true).contains(&other))
            }
            Isolation::Prefix => shows(&|node, _, other| place(other) <= prefix(node)),
            Isolation::Snapshot => {
                // It sees everything up to the last commit that it must see, with all earlier writers of what it writes.
                let last = |node: Node| {
                    let rivals = nodes.iter().copied().filter(|other| {
                        *other != node
                            && place(*other) < place(node)
                            && self.observed.writes(node).iter().any(|key| self.observed.wrote(*other, *key))
                    });
                    rivals.map(place).chain([prefix(node)]).max().unwrap_or(0)
                };
                shows(&|node, _, other| place(other) <= last(node))
            }
            Isolation::Serializable => shows(&|node, _, other| place(other) < place(node)),
        }
    }
}

fn permutations(nodes: &mut Vec<Node>, from: usize, visit: &mut dyn FnMut(&[Node]) -> bool) -> bool {
    if from == nodes.len() {
        return visit(nodes);
    }
    for at in from..nodes.len() {
        nodes.swap(from, at);
        if permutations(nodes, from + 1, visit) {
            return true;
        }
        nodes.swap(from, at);
    }
    false
}

/// Whether some order of commits has the level.
fn has(history: &Transactions, observed: &Observed, level: Level) -> bool {
    let mut nodes: Vec<Node> = observed.nodes().collect();
    permutations(&mut nodes, 0, &mut |order| {
        let mut place = vec![0; observed.begin as usize + 1];
        for (at, node) in order.iter().enumerate() {
            place[*node as usize] = at + 1;
        }
        Ordered { history, observed, place }.has(level)
    })
}

/// A line for each transaction.
fn text(history: &Transactions) -> String {
    let line = |node: Node| {
        let (begin, end) = history.times(node);
        format!("T{node} of session {} in {begin}..{end}: {:?}\n", history.session(node), history.steps(node))
    };
    (0..history.len()).map(line).collect()
}

/// Whether the reason of a dependency is a fact of the history.
fn is_true(history: &Transactions, observed: &Observed, step: &Dependency) -> bool {
    let Dependency { from, to, because } = *step;
    let reads = |node: Node, key: u32, writer: Node| {
        node < observed.begin && observed.reads(node).iter().any(|read| (read.key, read.from) == (key, writer))
    };
    let last = |key: u32| observed.chains[key as usize].last().copied().unwrap_or(observed.begin);
    match because {
        Because::Read(key) => reads(to, key, from),
        Because::Order(key) => observed.chains[key as usize].windows(2).any(|pair| pair == [from, to]),
        Because::Unseen(key) => last(key) == from && observed.unseen[key as usize].contains(&to),
        Because::Seen { reader, key, is_read } => {
            let sees = || (0..history.keys()).any(|other| reads(reader, other, from));
            reads(reader, key, to) && observed.wrote(from, key) && reader != from && (!is_read || sees())
        }
        Because::Updated(key) => {
            let sources = observed.reads(from).iter().filter(|read| read.key == key).map(|read| read.from);
            let both = observed.wrote(from, key) && observed.wrote(to, key);
            both && sources.into_iter().any(|source| reads(to, key, source))
        }
        Because::Replaced(key) => {
            let mut sources = observed.reads(from).iter().filter(|read| read.key == key && read.from != to);
            observed.wrote(to, key)
                && sources.any(|read| match observed.has_orders {
                    true => {
                        let chain = [observed.begin].into_iter().chain(observed.chains[key as usize].iter().copied());
                        let pairs = chain.clone().zip(chain.skip(1));
                        let is_last = || last(key) == read.from && observed.unseen[key as usize].contains(&to);
                        pairs.into_iter().any(|pair| pair == (read.from, to)) || is_last()
                    }
                    false => true,
                })
        }
        Because::First(key) => {
            let is_update = reads(from, key, last(key)) && observed.wrote(from, key);
            is_update && observed.unseen[key as usize].contains(&to)
        }
        Because::Begin => from == observed.begin,
        Because::Session => history.session(from) == history.session(to) && from < to,
        Because::Time => history.times(from).1 < history.times(to).0,
    }
}

fn compare(seeds: std::ops::Range<u64>, is_list: bool) -> (u32, u32, u32) {
    let (mut holds, mut violated, mut unknown) = (0, 0, 0);
    for seed in seeds {
        let history = history(seed, is_list);
        let observed = Observed::of(&history);
        let levels = Levels::of(&history, 100_000);
        for (level, decision) in levels.all() {
            // Flaws of single answers have tests of their own.
            let is_flawed = observed.flaws.iter().any(|flawed| flawed.flaw.excluded_by() <= level.isolation);
            let expected = !is_flawed && has(&history, &observed, level);
            match decision {
                Decision::Holds => holds += 1,
                Decision::Violated(_) => violated += 1,
                Decision::Unknown(_) => {
                    unknown += 1;
                    continue;
                }
            }
            if let Decision::Violated(Violation::Cycle(cycle)) = decision {
                for step in cycle {
                    assert!(is_true(&history, &observed, step), "seed {seed}, {level}: {step:?}\n{}", text(&history));
                }
                let ends = cycle.iter().zip(cycle.iter().cycle().skip(1));
                assert!(ends.clone().all(|(step, next)| step.to == next.from), "seed {seed}, {level}: {cycle:?}");
            }
            let says = *decision == Decision::Holds;
            assert_eq!(
                says,
                expected,
                "seed {seed}, {level}: {decision:?}
{}
{:?} {:?}",
                text(&history),
                observed.chains,
                observed.unseen
            );
        }
    }
    (holds, violated, unknown)
}

#[test]
fn levels_of_lists_are_those_of_the_definitions() {
    let seeds = crate_seeds();
    let (holds, violated, unknown) = compare(seeds, true);
    println!("{holds} hold, {violated} are violated, {unknown} are not decided");
    assert!(unknown * 1000 < holds && holds > 1000 && violated > 1000);
}

#[test]
fn levels_of_registers_are_those_of_the_definitions() {
    let (holds, violated, unknown) = compare(crate_seeds(), false);
    println!("{holds} hold, {violated} are violated, {unknown} are not decided");
    assert!(holds > 1000 && violated > 1000);
}

/// The seeds of random histories: `RETROGRADE_SEEDS=from..to`, or a few.
fn crate_seeds() -> std::ops::Range<u64> {
    let given = std::env::var("RETROGRADE_SEEDS").ok();
    let given = given.and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    given.unwrap_or(0..2_000)
}

type ListCall = Call<Vec<Access<u32, u32>>, Vec<Vec<u32>>>;

/// A history of lists as calls of the model `list-append`.
fn calls(history: &Transactions) -> Vec<ListCall> {
    let call = |node: Node| {
        let steps = history.steps(node);
        let operation = steps.iter().map(|step| match step {
            Step::Append(key, value) => Access::Append(*key, *value),
            other => Access::Read(other.key()),
        });
        let answer = steps.iter().filter_map(|step| match step {
            Step::List(_, values) => Some(values.clone()),
            _ => None,
        });
        let (invoke, returned) = history.times(node);
        let outcome = match history.outcome(node) {
            Outcome::Committed => search::Outcome::Completed { returned, answer: answer.collect() },
            Outcome::Aborted => search::Outcome::Failed,
            Outcome::Unknown => search::Outcome::Unknown,
        };
        Call { process: node, operation: operation.collect(), invoke, outcome }
    };
    (0..history.len()).map(call).collect()
}

/// A history of lists in which answers are altered, and transactions are aborted or left without an answer.
fn altered(seed: u64) -> Transactions {
    let (mut dice, honest) = (Rng::with_seed(seed ^ 0x5eed), history(seed, true));
    let mut altered = Transactions::default();
    for node in 0..honest.len() {
        let (begin, end) = honest.times(node);
        let outcome = match dice.u32(..12) {
            0 => Outcome::Aborted,
            1 | 2 => Outcome::Unknown,
            _ => Outcome::Committed,
        };
        let mut own: Vec<(u32, u32)> = Vec::new();
        let steps = honest.steps(node).iter().map(|step| match step {
            Step::List(key, values) => {
                let mut values = values.clone();
                // Most reads show what their own transaction appended.
                if dice.u32(..4) > 0 {
                    let mine = own.iter().filter(|(of, _)| of == key).map(|(_, value)| *value);
                    values.retain(|value| !own.contains(&(*key, *value)));
                    values.extend(mine);
                }
                if dice.u32(..20) == 0 && !values.is_empty() {
                    let (a, b) = (dice.usize(..values.len()), dice.usize(..values.len()));
                    values.swap(a, b);
                }
                Step::List(*key, values)
            }
            other => {
                if let Step::Append(key, value) = other {
                    own.push((*key, *value));
                }
                other.clone()
            }
        });
        let steps: Vec<Step> = steps.collect();
        let end = if outcome == Outcome::Unknown { i64::MAX } else { end };
        altered.push(honest.session(node), Some((begin, end)), outcome, steps);
    }
    altered
}

#[test]
fn strict_orders_are_those_of_the_search_for_a_linearization() {
    let (mut found, mut none) = (0, 0);
    for seed in crate_seeds() {
        let history = altered(seed);
        // The model has real time only, so each transaction is a session of its own.
        let mut alone = Transactions::default();
        for node in 0..history.len() {
            alone.push(node, Some(history.times(node)), history.outcome(node), history.steps(node).to_vec());
        }
        let spec = ListAppend::default();
        let calls = search::History::new(calls(&alone)).unwrap();
        let verdict = search::check(&spec, &calls, &search::Budget::default());
        let is_linearizable = matches!(verdict, search::Verdict::Linearizable(_));
        match Levels::strict_order(&alone, 100_000) {
            CommitOrder::Order(order) => {
                found += 1;
                assert!(is_linearizable, "seed {seed}\n{}", text(&alone));
                let mut state = spec.initial();
                for node in order {
                    let Call { operation, outcome, .. } = &calls.calls()[node as usize];
                    let answer = match outcome {
                        search::Outcome::Completed { answer, .. } => Some(answer),
                        _ => None,
                    };
                    state =
                        spec.step(&state, operation, answer).unwrap_or_else(|| panic!("seed {seed}\n{}", text(&alone)));
                }
            }
            CommitOrder::None => {
                none += 1;
                assert!(!is_linearizable, "seed {seed}\n{}", text(&alone));
            }
            CommitOrder::Spent => panic!("seed {seed}"),
        }
    }
    println!("{found} have an order, {none} have none");
    assert!(found > 100 && none > 100);
}

#[test]
fn transactions_without_an_order_are_few_and_none_of_them_can_be_left_out() {
    let level = Level { isolation: Isolation::Serializable, respects: Respects::Dependencies };
    let mut found = 0;
    for seed in crate_seeds() {
        let history = history(seed, false);
        let levels = Levels::of(&history, 100_000);
        let Some(Decision::Violated(Violation::NoOrder(core))) = levels.decision(level) else { continue };
        found += 1;
        let nodes = &core.transactions;
        let has_order = |nodes: &[Node]| {
            let part = super::core::part(&history, nodes);
            has(&part, &Observed::of(&part), level)
        };
        assert!(!has_order(nodes), "seed {seed}, {core:?}\n{}", text(&history));
        for left_out in 0..nodes.len() {
            let mut fewer = nodes.clone();
            fewer.remove(left_out);
            assert!(has_order(&fewer), "seed {seed}, {core:?}\n{}", text(&history));
        }
    }
    println!("{found} without an order");
    assert!(found > 0);
}

/// Writes small histories of lists with their levels, for a comparison with Elle: `RETROGRADE_ELLE` names the folder.
#[test]
#[ignore = "writes files"]
fn histories_for_elle() {
    let folder = std::path::PathBuf::from(std::env::var_os("RETROGRADE_ELLE").expect("a folder"));
    let mut verdicts = String::new();
    for seed in crate_seeds() {
        let history = altered(seed);
        let mut moments: Vec<(i64, bool, Node)> = Vec::new();
        for node in 0..history.len() {
            let (begin, end) = history.times(node);
            moments.push((begin, false, node));
            moments.push((if end == i64::MAX { 1_000 + begin } else { end }, true, node));
        }
        moments.sort_unstable();
        let mut lines = String::new();
        // Equal times leave the order open, so both begin first.
        for (index, (_, is_end, node)) in moments.iter().enumerate() {
            let is_shown = *is_end && history.outcome(*node) == Outcome::Committed;
            let step = |step: &Step| match step {
                Step::List(key, values) if is_shown => {
                    let values: Vec<String> = values.iter().map(u32::to_string).collect();
                    format!("[:r {key} [{}]]", values.join(" "))
                }
                Step::List(key, _) => format!("[:r {key} nil]"),
                Step::Append(key, value) => format!("[:append {key} {value}]"),
                Step::Read(..) | Step::Write(..) => unreachable!("lists only"),
            };
            let steps: Vec<String> = history.steps(*node).iter().map(step).collect();
            let word = match (is_end, history.outcome(*node)) {
                (false, _) => "invoke",
                (_, Outcome::Committed) => "ok",
                (_, Outcome::Aborted) => "fail",
                (_, Outcome::Unknown) => "info",
            };
            // A process ends with a transaction of unknown outcome.
            let process = match history.outcome(*node) {
                Outcome::Unknown => 100 + node,
                _ => history.session(*node),
            };
            lines += &format!(
                "{{:index {index}, :type :{word}, :process {process}, :f :txn, :value [{}], :time {index}}}\n",
                steps.join(" ")
            );
        }
        std::fs::write(folder.join(format!("{seed}.edn")), lines).unwrap();
        let levels = Levels::of(&history, 100_000);
        let violated = levels.weakest_violated().into_iter().map(|(level, violation)| match violation {
            Violation::Flaw(flawed) => format!("{level}: {}", flawed.flaw.name()),
            Violation::Cycle(cycle) => format!("{level}: {}", super::anomaly(level, cycle)),
            Violation::NoOrder(_) => format!("{level}: no order"),
        });
        let violated: Vec<String> = violated.collect();
        verdicts += &format!("{seed}.edn\t{}\t{}\n", levels.strongest().join(","), violated.join("; "));
    }
    std::fs::write(folder.join("retrograde.tsv"), verdicts).unwrap();
}

#[test]
fn a_search_with_few_dependencies_finds_an_order_if_there_is_one() {
    let (mut found, mut none) = (0, 0);
    for seed in crate_seeds() {
        let history = history(seed, false);
        let observed = Observed::of(&history);
        if !observed.flaws.is_empty() {
            continue;
        }
        for level in Level::all().filter(|level| level.isolation >= Isolation::Prefix) {
            // The reads alone, so that the search itself has to find what contradicts them.
            let weak = Level { isolation: Isolation::ReadCommitted, ..level };
            let graph = Dependencies::of(&history, &observed).graph(weak).unwrap();
            if !Components::find(&graph, EdgeKinds::ALL).cyclic().is_empty() {
                continue;
            }
            let expected = has(&history, &observed, level);
            match commit_order::search(&history, &observed, &graph, level, 100_000) {
                CommitOrder::Order(order) => {
                    let mut place = vec![0; observed.begin as usize + 1];
                    order.iter().zip(1..).for_each(|(node, at)| place[*node as usize] = at);
                    let is_one = Ordered { history: &history, observed: &observed, place }.has(level);
                    assert!(expected && is_one, "seed {seed}, {level}: {order:?}\n{}", text(&history));
                    found += 1;
                }
                CommitOrder::None => {
                    assert!(!expected, "seed {seed}, {level}\n{}", text(&history));
                    none += 1;
                }
                CommitOrder::Spent => panic!("seed {seed}, {level}"),
            }
        }
    }
    println!("{found} have an order, {none} have none");
    assert!(found > 1_000 && none > 100);
}

#[test]
fn every_level_has_its_name_and_elles_names_are_known() {
    for level in Level::all() {
        assert_eq!(Level::named(&level.to_string()), Some(level));
    }
    assert_eq!(Level::named("strong-serializable"), Some(Level::STRICT));
    assert_eq!(Level::named("repeatable-read"), Level::named("serializable"));
    assert_eq!(Level::named("consistent-view"), Level::named("parallel-snapshot"));
    assert_eq!(Level::named("serialisable"), None);
    // A stronger level comes behind each weaker one, so that the last one is the strongest.
    let all: Vec<Level> = Level::all().collect();
    assert!((0..all.len()).all(|at| all[..at].iter().all(|weaker| !weaker.implies(all[at]))));
    assert_eq!(all.last(), Some(&Level::STRICT));
}
