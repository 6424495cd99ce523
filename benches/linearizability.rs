//! Operation logs to verdicts: reading, deciding, and explaining a violation.
//!
//! Every pass asserts the verdict. `benches/peers` compares with porcupine.

mod generator;
mod measure;

use criterion::{BenchmarkId, Throughput};
use generator::operations::{Access, Ask, End, Family, ladder, read_back};
use retrograde::check::{Options, Verdict as Judged, judge};
use retrograde::history::{Domains, History as Evidence};
use retrograde::ingest::{FileId, InputFile, ReadOptions};
use retrograde::model::cas_register::{Answer, Operation};
use retrograde::model::{CasRegister, Spec};
use retrograde::order::{Order, OrderOptions};
use retrograde::search::{self, Budget, Call, History, Outcome, SpecHistory, Verdict};
use std::hint::black_box;
use std::path::Path;

fn main() {
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build_global()
        .expect("no pool was built before");
    let mut criterion = measure::criterion();
    committed(&mut criterion);
    families(&mut criterion);
    criterion.final_summary();
}

/// The committed logs of every model, from bytes to findings with a minimal core and its reasons.
fn committed(criterion: &mut criterion::Criterion<measure::ThreadTime>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("histories/models");
    let mut group = criterion.benchmark_group("log-to-findings");
    for (model, name) in
        [("cas-register", "violation.log"), ("cas-register", "fixed-keys.edn"), ("kv", "violation-delete.jsonl")]
    {
        let text: std::sync::Arc<[u8]> = std::fs::read(root.join(model).join(name)).expect("a committed log").into();
        let expected = name.starts_with("violation");
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(BenchmarkId::new(model, name), |b| {
            b.iter(|| {
                let input = InputFile::in_memory(FileId(0), name, text.clone());
                let evidence: Evidence =
                    retrograde::history::load(vec![input], &ReadOptions::default(), &Domains::default(), &());
                let order = Order::derive(&evidence, &OrderOptions::default());
                let judgement = judge(&evidence, &order, &Options::default());
                assert_eq!(judgement.verdict == Judged::Violated, expected);
                assert!(expected || judgement.verdict == Judged::Holds);
            });
        });
    }
    group.finish();
}

type Register = CasRegister<u64>;

fn history(drawn: &[Access]) -> SpecHistory<Register> {
    let call = |access: &Access| Call {
        process: access.client,
        operation: match access.ask {
            Ask::Read => Operation::Read,
            Ask::Write(value) => Operation::Write(value),
            Ask::Cas(from, to) => Operation::Cas(Some(from), to),
        },
        invoke: access.invoke as i64,
        outcome: match access.end {
            End::Unknown => Outcome::Unknown,
            end => Outcome::Completed {
                returned: access.returned as i64,
                answer: match end {
                    End::Value(value) => Answer::Value(value),
                    End::Set(set) => Answer::Swapped(set),
                    End::Written | End::Unknown => Answer::Done,
                },
            },
        },
    };
    // A read of unknown outcome has no effect and no answer, so it is left out.
    let told = drawn.iter().filter(|access| access.end != End::Unknown || access.ask != Ask::Read);
    History::new(told.map(call).collect()).expect("drawn histories are histories")
}

/// Generated families (`generator/operations.rs`): the search alone.
fn families(criterion: &mut criterion::Criterion<measure::ThreadTime>) {
    let scale: usize = if measure::is_trial() { 10 } else { 1 };
    let unique = |clients, operations: usize, unknown| Family::unique(clients, operations / scale, unknown);
    let five = |clients, operations: usize, unknown| Family::five_values(clients, operations / scale, unknown);
    let mut drawn: Vec<(String, Vec<Access>, bool)> = Vec::new();
    for family in [
        unique(10, 10_000, 0.0),
        unique(50, 100_000, 0.0),
        unique(500, 100_000, 0.01),
        five(5, 10_000, 0.05),
        five(20, 10_000, 0.0),
        five(20, 10_000, 0.01),
        five(50, 10_000, 0.05),
        five(100, 10_000, 0.0),
    ] {
        drawn.push((family.name(), family.draw(), true));
    }
    for family in [Family::stale_among_twenty(10, 1_000, 0.01), Family::stale_among_twenty(20, 1_000, 0.01)] {
        drawn.push((family.name(), family.draw(), false));
    }
    drawn.push(("ladder-1000".to_owned(), ladder(1_000), false));
    drawn.push(("read-back-1000".to_owned(), read_back(1_000, false), true));
    drawn.push(("read-back-1000-wrong".to_owned(), read_back(1_000, true), false));
    let mut group = criterion.benchmark_group("check");
    for (name, drawn, holds) in &drawn {
        let calls = history(drawn);
        group.throughput(Throughput::Elements(drawn.len() as u64));
        group.bench_function(name.as_str(), |b| b.iter(|| decide(&Register::default(), black_box(&calls), *holds)));
    }
    group.finish();
}

fn decide<S: Spec>(spec: &S, calls: &SpecHistory<S>, holds: bool) {
    match search::check(spec, calls, &Budget::default()) {
        Verdict::Linearizable(_) if holds => {}
        Verdict::Violated(_) if !holds => {}
        other => panic!("{other:?}"),
    }
}
