//! The happens-before graph: edges to compressed rows, to components, to the one injected cycle; the order in time
//! and the data flow to edges.
//!
//! `RETROGRADE_BENCH_EDGES` is the number of edges (10,000,000), `RETROGRADE_BENCH_ROUNDS` the number of rounds (5).

mod generator;
mod measure;

use criterion::BenchmarkId;
use generator::Dice;
use measure::{figure, in_turn, median};
use retrograde::history::{ClockId, History, IncarnationId, KeyId, Revision, Symbol};
use retrograde::ingest::Time;
use retrograde::order::graph::{
    Access, Anomalies, Components, DataFlow, EdgeKind, EdgeKinds, EdgeSource, Edges, Graph, Interval, Record, Touch,
    Unit, Units, What, reduction,
};
use retrograde::order::{Clocks, Counter, Watermarks};

/// Concurrent processes.
const PROCESSES: u32 = 50;

/// Edges of a history in revision order, four at each unit: the process's unit before, the version before, the writer
/// it read from, the writer it replaced. Every edge leads forward, except one that closes a cycle of three.
fn edges(count: usize) -> (u32, Edges) {
    let nodes = (count / 4).max(1_000) as u32;
    let mut dice = Dice::new(1);
    let mut edges = Edges::new(nodes, usize::MAX);
    for node in PROCESSES..nodes {
        let mut before = |kind: EdgeKind, reach: u32| {
            let back = 1 + dice.roll(u64::from(reach.min(node))) as u32;
            edges.add(node - back, node, kind);
        };
        before(EdgeKind::Version, 100_000);
        before(EdgeKind::ReadsFrom, 500);
        before(EdgeKind::AntiDependency, 500);
        edges.add(node - PROCESSES, node, EdgeKind::Program);
    }
    let middle = nodes / 2;
    edges.add(middle, middle + 1, EdgeKind::ReadsFrom);
    edges.add(middle + 1, middle + 2, EdgeKind::Version);
    edges.add(middle + 2, middle, EdgeKind::AntiDependency);
    (nodes, edges)
}

/// Units of sequential processes; each reads two of 10,000 keys and writes one.
fn units(count: u32) -> Units {
    let mut dice = Dice::new(2);
    let mut units = Units::default();
    for node in 0..count {
        let begin = i64::from(node) * 1_000;
        units.add(Unit {
            what: What::Decision(Symbol::NONE),
            incarnation: IncarnationId(node % PROCESSES),
            begin: Time(begin),
            end: Time(begin + 1 + dice.roll(20_000) as i64),
            clock: ClockId(0),
        });
        for touch in [Touch::Saw, Touch::Saw, Touch::Wrote] {
            let (key, revision) = (KeyId(dice.roll(10_000) as u32), Revision::from(1 + u64::from(node)));
            units.accesses.push(Access { key, revision, touch, unit: node, at: Record::Cache(node) });
        }
    }
    units
}

fn find(graph: &Graph) {
    let found = Anomalies::find(graph, 1_000_000);
    let classes: Vec<String> = found.cycles.iter().map(|(anomaly, _)| anomaly.to_string()).collect();
    assert_eq!(classes, ["G-single"]);
    assert!(found.cycles[0].1.steps.len() <= 3);
}

fn main() {
    let count = if measure::is_trial() { 40_000 } else { generator::size("RETROGRADE_BENCH_EDGES", 10_000_000) };
    let (nodes, edges) = edges(count);
    let graph = Graph::build(edges.clone());
    assert_eq!((graph.nodes(), graph.edges()), (nodes, edges.len()));
    let components = |graph: &Graph| {
        let found = Components::find(graph, EdgeKinds::ALL);
        assert!(found.count() < nodes && found.cyclic().len() == 1);
    };
    let units = units(nodes);
    let mut history = History::default();
    history.clocks.push(Symbol::NONE);
    let clocks = Clocks::bound(&history, &[], &mut Counter::default(), &Watermarks::default(), None);
    let unit = |(node, unit): (usize, &Unit)| Interval {
        node: node as u32,
        begin: unit.begin,
        end: unit.end,
        clock: unit.clock,
    };
    let intervals: Vec<Interval> = units.units.iter().enumerate().map(unit).collect();
    let in_time = || {
        let mut edges = 0u64;
        reduction(&intervals, &clocks, |_, _| edges += 1);
        assert!(edges >= u64::from(nodes) - 1 && edges < u64::from(nodes) * 30);
    };
    let by_data = || {
        let mut edges = Edges::new(nodes, usize::MAX);
        DataFlow::of(&history, &units).add_to(&mut edges);
        assert!(edges.len() > 2 * nodes as usize);
    };
    let mut criterion = measure::criterion();
    let mut group = criterion.benchmark_group("graph");
    group.throughput(criterion::Throughput::Elements(edges.len() as u64));
    let name = "history-4-edges-a-unit";
    group.bench_function(BenchmarkId::new(name, "build"), |b| b.iter_with_large_drop(|| Graph::build(edges.clone())));
    group.bench_function(BenchmarkId::new(name, "components"), |b| b.iter(|| components(&graph)));
    group.bench_function(BenchmarkId::new(name, "anomalies"), |b| b.iter(|| find(&graph)));
    group.throughput(criterion::Throughput::Elements(u64::from(nodes)));
    group.bench_function(BenchmarkId::new("units-of-50-processes", "in-time"), |b| b.iter(in_time));
    group.bench_function(BenchmarkId::new("units-of-50-processes", "data-flow"), |b| b.iter(by_data));
    group.finish();
    criterion.final_summary();
    if measure::is_trial() {
        return;
    }
    let rounds = generator::size("RETROGRADE_BENCH_ROUNDS", 5);
    let mut whole = || {
        let graph = Graph::build(edges.clone());
        find(&graph);
    };
    let (mut in_time, mut by_data) = (in_time, by_data);
    let times = in_turn(rounds, &mut [&mut whole, &mut in_time, &mut by_data]);
    let [whole, in_time, by_data] = times.as_slice() else { unreachable!("three variants") };
    println!("\n{} edges, {nodes} units, {rounds} rounds", edges.len());
    let rate = edges.len() as f64 / median(&whole.thread) / 1e6;
    figure("edges to rows, components and the cycle", rate, "M edges/s", "5", rate >= 5.0);
    println!("{:<52} {:>10.2} M units/s", "order in time", f64::from(nodes) / median(&in_time.thread) / 1e6);
    println!("{:<52} {:>10.2} M units/s", "flow of data", f64::from(nodes) / median(&by_data.thread) / 1e6);
}
