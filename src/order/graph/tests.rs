//! The graph, compared with petgraph and with an enumeration of all orders.

use super::*;
use crate::history::sketch::sketch;
use crate::history::{
    ClientId, ClockId, History, IdentifiedBy, Incarnation, IncarnationId, Key, KeyId, OperationId, ResourceId,
    Revision, Symbol,
};
use crate::ingest::Time;
use crate::order::{Clocks, Counter, Order, OrderOptions, Sessions, Watermarks};
use petgraph::algo::{has_path_connecting, kosaraju_scc};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeSet;

/// The same cases in every run.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

/// By all sources.
fn by_all<'h>(history: &'h History, order: &'h Order, units: &'h Units) -> HappensBefore<'h> {
    let sources: Vec<Box<dyn EdgeSource + 'h>> = vec![
        Box::new(DataFlow::of(history, units)),
        Box::new(Messages::of(history, order, units)),
        Box::new(ProcessOrder::of(history, order, units)),
        Box::new(RealTime::of(history, order, units)),
    ];
    HappensBefore::by(units, sources)
}

type Listed = Vec<(Node, Node, EdgeKinds)>;

fn graph(nodes: u32, listed: &Listed) -> Graph {
    let mut edges = Edges::new(nodes, usize::MAX);
    listed.iter().for_each(|&(from, to, kinds)| edges.add(from, to, kinds));
    Graph::build(edges)
}

fn kinds() -> impl Strategy<Value = EdgeKinds> {
    proptest::sample::subsequence(EdgeKind::ALL.to_vec(), 1..3).prop_map(|kinds| EdgeKinds::of(&kinds))
}

fn listed(nodes: u32, most: usize) -> impl Strategy<Value = Listed> {
    proptest::collection::vec((0..nodes, 0..nodes, kinds()), 0..most)
}

/// The closure of a relation over a few nodes.
fn closure(nodes: u32, pairs: impl Iterator<Item = (Node, Node)>) -> Vec<Vec<bool>> {
    let n = nodes as usize;
    let mut reaches = vec![vec![false; n]; n];
    pairs.for_each(|(a, b)| reaches[a as usize][b as usize] = true);
    for k in 0..n {
        for a in 0..n {
            for b in 0..n {
                reaches[a][b] |= reaches[a][k] && reaches[k][b];
            }
        }
    }
    reaches
}

/// The classes with a cycle, by definition, without those that another one implies.
fn worst_classes(nodes: u32, listed: &Listed) -> BTreeSet<String> {
    let session = EdgeKinds::of(&[EdgeKind::Message, EdgeKind::Program, EdgeKind::Session]);
    let assumed =
        [("", EdgeKinds::NONE), ("-session", session), ("-realtime", session.and(EdgeKinds::from(EdgeKind::RealTime)))];
    let data = EdgeKinds::of(&[EdgeKind::Version, EdgeKind::ReadsFrom]);
    let proper = || listed.iter().filter(|e| e.0 != e.1);
    let mut found: Vec<(usize, usize, String)> = Vec::new();
    for (strength, (suffix, order)) in assumed.into_iter().enumerate() {
        let reach = |kinds: EdgeKinds| {
            closure(nodes, proper().filter(|e| !e.2.within(kinds.and(order)).is_empty()).map(|e| (e.0, e.1)))
        };
        let cyclic = |kinds| (0..nodes as usize).any(|n| reach(kinds)[n][n]);
        let single = || {
            let reaches = reach(data);
            proper().any(|e| e.2.has(EdgeKind::AntiDependency) && reaches[e.1 as usize][e.0 as usize])
        };
        let classes = [
            ("contradiction", cyclic(EdgeKinds::NONE)),
            ("G0", cyclic(EdgeKind::Version.into())),
            ("G1c", cyclic(data)),
            ("G-single", single()),
            ("G2", cyclic(data.and(EdgeKind::AntiDependency.into()))),
        ];
        for (rank, (name, exists)) in classes.into_iter().enumerate() {
            if exists && !found.iter().any(|(r, s, _)| *r <= rank && *s <= strength) {
                found.push((rank, strength, format!("{name}{suffix}")));
            }
        }
    }
    found.into_iter().map(|(.., name)| name).collect()
}

/// The classes that the search finds, without those that another one implies.
fn found_classes(graph: &Graph) -> BTreeSet<String> {
    let found = Anomalies::find(graph, u64::MAX);
    assert!(!found.is_cut);
    for (anomaly, cycle) in &found.cycles {
        assert_eq!(*anomaly, Anomaly::of(cycle));
        check_cycle(graph, cycle);
    }
    let all: Vec<Anomaly> = found.cycles.iter().map(|(anomaly, _)| *anomaly).collect();
    let worse = |a: &Anomaly| all.iter().any(|b| b != a && b.implies(*a));
    all.iter().filter(|a| !worse(a)).map(Anomaly::to_string).collect()
}

/// Steps connect, are edges of the graph, and visit no node twice.
fn check_cycle(graph: &Graph, cycle: &Cycle) {
    for (at, step) in cycle.steps.iter().enumerate() {
        assert!(graph.between(step.from, step.to).has(step.kind), "{step:?}");
        assert_eq!(step.to, cycle.steps[(at + 1) % cycle.steps.len()].from);
    }
    assert_eq!(cycle.nodes().collect::<BTreeSet<_>>().len(), cycle.steps.len());
}

/// The length of the shortest cycle, by breadth-first search over petgraph's graph.
fn shortest(nodes: u32, listed: &Listed) -> Option<usize> {
    let reaches = |steps: usize| {
        let mut reached = vec![vec![false; nodes as usize]; nodes as usize];
        (0..nodes as usize).for_each(|n| reached[n][n] = true);
        for _ in 0..steps {
            let mut next = vec![vec![false; nodes as usize]; nodes as usize];
            for (from, row) in reached.iter().enumerate() {
                for e in listed.iter().filter(|e| e.0 != e.1 && row[e.0 as usize]) {
                    next[from][e.1 as usize] = true;
                }
            }
            reached = next;
        }
        (0..nodes as usize).any(|n| reached[n][n])
    };
    (2..=nodes as usize).find(|&steps| reaches(steps))
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn components_are_petgraph_s_in_topological_order(listed in listed(12, 30), within in kinds()) {
        let graph = graph(12, &listed);
        let components = Components::find(&graph, within);
        let mut reference = petgraph::graph::DiGraph::<(), ()>::new();
        let nodes: Vec<_> = (0..12).map(|_| reference.add_node(())).collect();
        for (from, to, kinds) in listed.iter().filter(|e| e.0 != e.1) {
            if !kinds.within(within).is_empty() {
                prop_assert!(components.of(*from) <= components.of(*to));
                reference.add_edge(nodes[*from as usize], nodes[*to as usize], ());
            }
        }
        let theirs: BTreeSet<BTreeSet<u32>> =
            kosaraju_scc(&reference).into_iter().map(|c| c.into_iter().map(|n| n.index() as u32).collect()).collect();
        let mut ours = vec![BTreeSet::new(); components.count() as usize];
        (0..12).for_each(|node| { ours[components.of(node) as usize].insert(node); });
        let cyclic: Vec<Vec<Node>> = ours.iter().filter(|c| c.len() > 1).map(|c| c.iter().copied().collect()).collect();
        prop_assert_eq!(components.cyclic(), cyclic);
        prop_assert_eq!(ours.into_iter().collect::<BTreeSet<_>>(), theirs);
    }

    #[test]
    fn the_worst_classes_are_those_of_the_definitions(listed in listed(6, 14)) {
        prop_assert_eq!(found_classes(&graph(6, &listed)), worst_classes(6, &listed));
    }

    #[test]
    fn the_shortest_cycle_is_found(listed in listed(7, 16)) {
        let all: Listed = listed.iter().map(|e| (e.0, e.1, EdgeKind::Version.into())).collect();
        let found = Anomalies::find(&graph(7, &all), u64::MAX);
        prop_assert_eq!(found.cycles.iter().map(|(_, cycle)| cycle.steps.len()).min(), shortest(7, &all));
    }

    #[test]
    fn a_spent_budget_misses_no_cycle(listed in listed(7, 18)) {
        let graph = graph(7, &listed);
        let (whole, cut) = (Anomalies::find(&graph, u64::MAX), Anomalies::find(&graph, 0));
        prop_assert_eq!(whole.cycles.is_empty(), cut.cycles.is_empty());
        cut.cycles.iter().for_each(|(_, cycle)| check_cycle(&graph, cycle));
        prop_assert!(cut.cycles.is_empty() || cut.is_cut);
    }

    #[test]
    fn a_picture_keeps_what_reaches_what(listed in listed(8, 16)) {
        let graph = graph(8, &listed);
        let picture = graph.picture(&(0..8).collect::<Vec<_>>());
        let reduced = picture::reduced(&picture);
        prop_assert!(reduced.edge_count() <= picture.edge_count());
        for a in picture.node_indices() {
            for b in picture.node_indices() {
                prop_assert_eq!(has_path_connecting(&picture, a, b, None), has_path_connecting(&reduced, a, b, None));
            }
        }
    }
}

#[test]
fn a_million_nodes_in_a_row_need_no_stack() {
    let count = 1_000_000;
    let mut listed: Listed = (1..count).map(|n| (n - 1, n, EdgeKind::Version.into())).collect();
    assert_eq!(Components::find(&graph(count, &listed), EdgeKinds::ALL).count(), count);
    assert!(found_classes(&graph(count, &listed)).is_empty());
    listed.push((count - 1, 0, EdgeKind::ReadsFrom.into()));
    let ring = Anomalies::find(&graph(count, &listed), 0);
    assert_eq!(ring.cycles[0].0.to_string(), "G1c");
    assert_eq!(ring.cycles[0].1.steps.len(), count as usize);
}

#[test]
fn a_graph_at_its_limit_says_so() {
    let mut edges = Edges::new(3, 1);
    edges.add(0, 0, EdgeKind::Version);
    edges.add(0, 1, EdgeKind::Version);
    assert!(!Graph::build(edges.clone()).is_partial());
    edges.add(1, 2, EdgeKind::Version);
    assert_eq!((Graph::build(edges.clone()).is_partial(), edges.len()), (true, 1));
}

// Histories of a few transactions.

/// One transaction: process, begin and length, reads (key, version) and writes (key, version).
#[derive(Clone, Debug)]
struct Transaction {
    process: u32,
    begin: i64,
    length: i64,
    reads: Vec<(u32, u64)>,
    writes: Vec<(u32, u64)>,
}

fn transactions() -> impl Strategy<Value = Vec<Transaction>> {
    let touches = || proptest::collection::vec((0..2u32, 1..8u64), 0..3);
    let one = (0..2u32, 0..6i64, 0..4i64, touches(), touches());
    let all = proptest::collection::vec(one, 1..6);
    all.prop_map(|all| {
        let mut taken = BTreeSet::new();
        all.into_iter()
            .map(|(process, begin, length, reads, writes)| {
                let mut own = BTreeSet::new();
                let writes: Vec<_> = writes.into_iter().filter(|w| own.insert(w.0) && taken.insert(*w)).collect();
                // A transaction reads before it writes.
                let before = |read: &(u32, u64)| writes.iter().all(|w| w.0 != read.0 || w.1 > read.1);
                let reads = reads.into_iter().filter(before).collect();
                Transaction { process, begin, length, reads, writes }
            })
            .collect()
    })
}

/// Incarnations 0 and 1, each a session of its own, on one clock.
fn stage(clock_count: usize) -> (History, Order) {
    let life = |client| Incarnation {
        client: ClientId(client),
        label: client.to_string(),
        identified_by: IdentifiedBy::CaptureLabel,
        place: Some(client.to_string()),
        program: String::new(),
        span: (Time(0), Time(100)),
        clock: ClockId(0),
        served: Vec::new(),
    };
    let mut history = History { incarnations: vec![life(0), life(1)], ..History::default() };
    let name = history.names.intern("somebody");
    (history.clients, history.clocks) = (vec![name; 2], vec![Symbol::NONE; clock_count]);
    history.keys = vec![Key { resource: ResourceId::NONE, namespace: name, name }; 2];
    let clocks = Clocks::bound(&history, &[], &mut Counter::default(), &Watermarks::default(), None);
    let sessions = Sessions::build(&history, &clocks, &[]);
    (history, Order { clocks, sessions, ..Order::default() })
}

fn units(all: &[Transaction]) -> Units {
    let mut units = Units::default();
    for t in all {
        let unit = units.add(Unit {
            what: What::Decision(Symbol::NONE),
            incarnation: IncarnationId(t.process),
            begin: Time(t.begin),
            end: Time(t.begin + t.length),
            clock: ClockId(0),
        });
        let access = |&(key, revision): &(u32, u64), touch| Access {
            key: KeyId(key),
            revision: Revision::from(revision),
            touch,
            unit,
            at: Record::Cache(unit),
        };
        units.accesses.extend(t.reads.iter().map(|read| access(read, Touch::Saw)));
        units.accesses.extend(t.writes.iter().map(|write| access(write, Touch::Wrote)));
    }
    units
}

/// Whether some serial order of the transactions, with each key's versions in order, explains all reads.
fn is_serial(all: &[Transaction], allowed: impl Fn(&[usize], usize) -> bool) -> bool {
    fn place(all: &[Transaction], done: &mut Vec<usize>, allowed: &dyn Fn(&[usize], usize) -> bool) -> bool {
        if done.len() == all.len() {
            return true;
        }
        for next in 0..all.len() {
            let state = |key: u32| done.iter().flat_map(|&d| &all[d].writes).filter(|w| w.0 == key).map(|w| w.1).max();
            let others = |key: u32| {
                all.iter()
                    .enumerate()
                    .filter(move |(i, _)| *i != next)
                    .flat_map(|(_, t)| &t.writes)
                    .filter(move |w| w.0 == key)
            };
            let reads = all[next].reads.iter().all(|&(key, version)| {
                let expected = others(key).map(|w| w.1).filter(|w| *w <= version).max();
                state(key) == expected
            });
            let writes = all[next].writes.iter().all(|&(key, version)| state(key).is_none_or(|last| last < version));
            if done.contains(&next) || !reads || !writes || !allowed(done, next) {
                continue;
            }
            done.push(next);
            if place(all, done, allowed) {
                return true;
            }
            done.pop();
        }
        false
    }
    place(all, &mut Vec::new(), &allowed)
}

proptest! {
    #![proptest_config(cases(4_000))]

    /// A history has a serial order exactly if its graph has no cycle: by data alone, with the order of each process, in real
    /// time.
    #[test]
    fn no_cycle_means_a_serial_order_and_the_other_way_round(all in transactions()) {
        let (history, order) = stage(1);
        let units = units(&all);
        let before = |a: usize, b: usize| all[a].begin + all[a].length < all[b].begin;
        let together = |a: usize, b: usize| all[a].process == all[b].process;
        // No predecessor is missing.
        let first = |done: &[usize], next: usize, counts: &dyn Fn(usize, usize) -> bool| {
            (0..all.len()).all(|other| done.contains(&other) || !counts(other, next))
        };
        let serial = [
            is_serial(&all, |_, _| true),
            is_serial(&all, |done, next| first(done, next, &|a, b| together(a, b) && before(a, b))),
            is_serial(&all, |done, next| first(done, next, &before)),
        ];
        let graphs = [
            HappensBefore::by_data(&history, &units),
            HappensBefore::by_sessions(&history, &order, &units),
            by_all(&history, &order, &units),
        ];
        for (serial, before) in serial.into_iter().zip(&graphs) {
            let anomalies = before.anomalies(u64::MAX);
            prop_assert_eq!(anomalies.cycles.is_empty(), serial);
            for (_, cycle) in &anomalies.cycles {
                check_cycle(&before.graph, cycle);
                for step in &cycle.steps {
                    let reason = before.explain(*step);
                    prop_assert!(reason.as_ref().is_some_and(|r| r.kind == step.kind), "{step:?}: {reason:?}");
                }
            }
        }
    }

    #[test]
    fn the_order_in_time_is_reduced_to_what_nothing_lies_between(spans in proptest::collection::vec((0..20i64, 0..8i64), 0..12)) {
        let (_, order) = stage(1);
        let interval = |(node, &(begin, length)): (usize, &(i64, i64))| Interval {
            node: node as Node, begin: Time(begin), end: Time(begin + length), clock: ClockId(0),
        };
        let all: Vec<Interval> = spans.iter().enumerate().map(interval).collect();
        let before = |a: &Interval, b: &Interval| a.end < b.begin;
        let mut expected = BTreeSet::new();
        for a in &all {
            for b in all.iter().filter(|b| before(a, b)) {
                if !all.iter().any(|c| before(a, c) && before(c, b)) {
                    expected.insert((a.node, b.node));
                }
            }
        }
        let mut found = Vec::new();
        reduction(&all, &order.clocks, |from, to| found.push((from, to)));
        prop_assert_eq!(found.len(), expected.len());
        prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
    }

    #[test]
    fn across_clocks_the_edges_say_what_the_bounds_prove(
        spans in proptest::collection::vec((0..60i64, 0..8i64, 0..3u32), 0..10), skew in 0..12i64
    ) {
        let (history, _) = stage(3);
        let clocks = Clocks::bound(&history, &[], &mut Counter::default(), &Watermarks::default(), Some(skew));
        let interval = |(node, &(begin, length, clock)): (usize, &(i64, i64, u32))| Interval {
            node: node as Node, begin: Time(begin), end: Time(begin + length), clock: ClockId(clock),
        };
        let all: Vec<Interval> = spans.iter().enumerate().map(interval).collect();
        let before = |a: &Interval, b: &Interval| clocks.before((a.end, a.clock), (b.begin, b.clock));
        let pairs = all.iter().flat_map(|a| all.iter().map(move |b| (a, b)));
        let proved: BTreeSet<(Node, Node)> = pairs.filter(|(a, b)| before(a, b)).map(|(a, b)| (a.node, b.node)).collect();
        let mut found = Vec::new();
        reduction(&all, &clocks, |from, to| found.push((from, to)));
        for pair in &found {
            prop_assert!(proved.contains(pair));
        }
        let nodes = all.len() as u32;
        prop_assert_eq!(closure(nodes, found.into_iter()), closure(nodes, proved.into_iter()));
    }
}

// Drawn histories.

fn drawn(text: &str) -> (History, Order) {
    let history = sketch(text).unwrap_or_else(|error| panic!("{error}"));
    let order = Order::derive(&history, &OrderOptions::default());
    (history, order)
}

/// The anomalies of a sketch, in which every request is a unit, each with the sentences of its cycle.
fn anomalies(text: &str) -> Vec<String> {
    let (history, order) = drawn(text);
    let mut units = Units::default();
    for index in 0..history.operations.len() as u32 {
        units.add_record(&history, &order, Record::Operation(OperationId(index)));
        let stream = history.stream_of(OperationId(index));
        for delivery in stream.into_iter().flat_map(|stream| stream.deliveries()) {
            units.add_record(&history, &order, Record::Delivery(delivery as u32, OperationId(index)));
        }
    }
    let before = by_all(&history, &order, &units);
    let mut anomalies = Vec::new();
    for (anomaly, cycle) in before.anomalies(u64::MAX).cycles {
        let reasons = cycle.steps.iter().map(|step| before.explain(*step).expect("a reason").says);
        anomalies.push(format!("{anomaly}: {}", reasons.collect::<Vec<_>>().join("; ")));
    }
    anomalies
}

#[test]
fn going_back_in_ones_own_reads_is_a_cycle_with_the_session() {
    let text =
        "web@A CREATE x => x:u1@10\nweb@A PUT x:u1@10 => x:u1@12\nc@A GET x => x:u1@12\nc@B GET x rv=0 => x:u1@10\n";
    insta::assert_snapshot!(anomalies(text).join("\n"), @"G-single-session: c saw pods default/x at version 12, which web had written; c did GET pods default/x resourceVersion=0 after GET pods default/x; web wrote pods default/x at revision 12, after version 10 that c had seen");
    assert!(anomalies(&text.replace("rv=0 => x:u1@10", "rv=0 => x:u1@12")).is_empty());
}

#[test]
fn a_stale_answer_to_a_stranger_is_a_cycle_in_real_time_only() {
    let text = "clock A +0ms\nweb@A CREATE x => x:u1@10\nweb@A PUT x:u1@10 => x:u1@12\nc@A GET x => x:u1@10\n";
    insta::assert_snapshot!(anomalies(text).join("\n"), @"G-single-realtime: GET pods default/x of c began after the end of UPDATE pods default/x based on 10 of web; web wrote pods default/x at revision 12, after version 10 that c had seen");
}

#[test]
fn a_watch_comes_after_the_list_that_it_starts_from() {
    let text = "web@A CREATE x => x:u1@10\nc@A LIST => 12 {x:u1@10}\nc@A WATCH from 12 ~x:u1@14\n";
    let (history, order) = drawn(text);
    let mut units = Units::default();
    for index in 0..history.operations.len() as u32 {
        units.add_record(&history, &order, Record::Operation(OperationId(index)));
    }
    let before = HappensBefore::by_sessions(&history, &order, &units);
    let step = Step { from: 1, kind: EdgeKind::Message, to: 2 };
    assert!(before.graph.between(1, 2).has(EdgeKind::Message));
    insta::assert_snapshot!(before.explain(step).expect("a reason").says, @"c sent WATCH pods resourceVersion=12, with the revision that it had from LIST pods");
}

#[test]
fn of_a_chain_only_the_links_are_drawn_and_of_a_cycle_everything() {
    let chain =
        vec![(0, 1, EdgeKind::Version.into()), (1, 2, EdgeKind::Version.into()), (0, 2, EdgeKind::RealTime.into())];
    assert_eq!(picture::reduced(&graph(3, &chain).picture(&[0, 1, 2])).edge_count(), 2);
    let mut cycle = chain;
    cycle.push((2, 0, EdgeKind::Message.into()));
    assert_eq!(picture::reduced(&graph(3, &cycle).picture(&[0, 1, 2])).edge_count(), 4);
}
