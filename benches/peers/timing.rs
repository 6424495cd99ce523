//! The other half of `benches/peers`: retrograde over one log in process, in the words of the Go program beside it.
//!
//! ```text
//! timing --model cas-register|kv [--runs 5] [--limit 30] [--threads N] FILE   one line, as `peers` prints it
//! timing --all --model MODEL FILE...                                          all logs, one after the other, cold
//! timing --generate FOLDER [--largest OPERATIONS]                             the generated families as Jepsen logs
//! ```

#[path = "../generator/mod.rs"]
mod generator;
#[path = "../measure/mod.rs"]
mod measure;

use generator::operations::{Access, Family, jepsen_log, ladder, read_back};
use retrograde::history::calls::Calls;
use retrograde::history::{Domains, History};
use retrograde::model::{Log, Model, Spec, TypedLog, Visitor};
use retrograde::search::{self, Budget, Call, Outcome, Verdict};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Short checks are repeated for so long, so that their median means something.
const AT_LEAST: Duration = Duration::from_millis(50);

/// At most so often.
const AT_MOST: usize = 500;

/// Bytes that a check may hold.
const MEMORY: usize = 4 << 30;

fn load(path: &Path) -> History {
    let inputs = retrograde::ingest::inputs(&[path.to_owned()], &[], &[]).expect("a log that is there");
    let history = retrograde::history::load(inputs, &retrograde::read_options(), &Domains::default(), &());
    assert!(history.problems.is_empty(), "{:?}", history.problems.first());
    history
}

/// Checks a log a few times.
struct Check<'c> {
    calls: &'c Calls,
    limit: Duration,
    runs: usize,
    /// How long making the calls ready may count: what porcupine's reading does, too.
    began: Instant,
}

/// What came of it: the verdict, milliseconds of each check, and of making ready.
struct Checked {
    verdict: &'static str,
    operations: usize,
    checks: Vec<f64>,
    ready: f64,
}

impl Visitor for Check<'_> {
    type Output = Checked;

    fn visit<S: Spec>(self, log: TypedLog<S>) -> Checked {
        assert!(log.mismatches.is_empty(), "{:?}", log.mismatches.first());
        let typed = log.operations.into_iter();
        let given = typed.map(|typed| {
            let call = self.calls.calls.get(typed.call as usize);
            let outcome = match typed.answer {
                _ if typed.failed => Outcome::Failed,
                Some(answer) => Outcome::Completed { returned: call.ret.rank, answer },
                None => Outcome::Unknown,
            };
            Call { process: typed.call, operation: typed.operation, invoke: call.invoke.rank, outcome }
        });
        let history = search::History::new(given.collect()).expect("a log is a history");
        let ready = milliseconds(self.began.elapsed());
        let budget = Budget { time: Some(self.limit), memory: Some(MEMORY), cancel: None };
        let (mut checks, mut verdict, begin) = (Vec::new(), "", Instant::now());
        while checks.len() < self.runs || begin.elapsed() < AT_LEAST && checks.len() < AT_MOST && self.runs > 1 {
            let began = Instant::now();
            let found = search::check(&log.spec, &history, &budget);
            checks.push(milliseconds(began.elapsed()));
            verdict = match found {
                Verdict::Linearizable(_) => "holds",
                Verdict::Violated(_) => "violated",
                Verdict::Unknown(undecided) if undecided.limit == search::Limit::Memory => "memory",
                Verdict::Unknown(_) => "time",
            };
            if matches!(verdict, "time" | "memory") {
                break;
            }
        }
        Checked { verdict, operations: history.calls().len(), checks, ready }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn check(path: &Path, model: Model, runs: usize, limit: Duration) -> Checked {
    let began = Instant::now();
    let history = load(path);
    let log = Log { calls: history.calls(), names: &history.names };
    model.visit(log, Check { calls: history.calls(), limit, runs, began })
}

/// The families of the table, with the model of each. None has more operations than this.
fn families(largest: usize) -> Vec<(String, Vec<Access>)> {
    let mut families = Vec::new();
    for (clients, operations) in [
        (5, 1_000),
        (10, 1_000),
        (10, 10_000),
        (10, 100_000),
        (50, 1_000),
        (50, 10_000),
        (50, 100_000),
        (500, 1_000_000),
    ] {
        families.push(Family::unique(clients, operations, 0.0));
    }
    families.push(Family::unique(500, 1_000, 0.01));
    families.push(Family::unique(500, 1_000_000, 0.01));
    for clients in [5, 10, 20, 50, 100] {
        for operations in [1_000, 10_000, 100_000] {
            families.extend([0.0, 0.01, 0.05].map(|unknown| Family::five_values(clients, operations, unknown)));
        }
    }
    for (clients, unknown) in [(5, 0.0), (5, 0.01), (10, 0.0), (10, 0.01), (20, 0.0), (20, 0.01)] {
        families.push(Family::stale_among_twenty(clients, 1_000, unknown));
    }
    families.push(Family { stale: 60, ..Family::unique(50, 10_000, 0.0) });
    families.push(Family { stale: 600, ..Family::unique(500, 100_000, 0.0) });
    families.retain(|family| family.operations <= largest);
    let mut drawn: Vec<_> = families.iter().map(|family| (family.name(), family.draw())).collect();
    for writes in [8, 12, 16, 20, 1_000] {
        drawn.push((format!("ladder-{writes}"), ladder(writes)));
    }
    for writes in [100, 1_000, 5_000] {
        drawn.push((format!("read-back-{writes}"), read_back(writes, false)));
        drawn.push((format!("read-back-{writes}-wrong"), read_back(writes, true)));
    }
    drawn
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut model, mut runs, mut limit, mut threads) = (Model::CasRegister, 5, 30, 0);
    let (mut all, mut generate, mut largest, mut files) = (false, None, usize::MAX, Vec::<PathBuf>::new());
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} what?"));
        match argument.as_str() {
            "--model" => model = Model::named(&value()).expect("a model"),
            "--runs" => runs = value().parse().expect("a number"),
            "--limit" => limit = value().parse().expect("seconds"),
            "--threads" => threads = value().parse().expect("a number"),
            "--largest" => largest = value().parse().expect("a number"),
            "--generate" => generate = Some(PathBuf::from(value())),
            "--all" => all = true,
            "--bench" | "--test" => {}
            file => files.push(PathBuf::from(file)),
        }
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("no pool was built before");
    let limit = Duration::from_secs(limit);
    if let Some(folder) = generate {
        std::fs::create_dir_all(&folder).expect("a folder");
        for (name, history) in families(largest) {
            std::fs::write(folder.join(format!("{name}.log")), jepsen_log(&history)).expect("room");
        }
        return;
    }
    if all {
        let began = Instant::now();
        files.iter().for_each(|file| drop(check(file, model, 1, limit)));
        println!("{} logs, read and checked: {:.3} ms", files.len(), milliseconds(began.elapsed()));
        return;
    }
    for file in files {
        let mut totals = Vec::new();
        let first = check(&file, model, runs, limit);
        totals.push(first.ready + first.checks[0]);
        if !matches!(first.verdict, "time" | "memory") {
            let begin = Instant::now();
            while totals.len() < runs || begin.elapsed() < AT_LEAST && totals.len() < AT_MOST && runs > 1 {
                let again = check(&file, model, 1, limit);
                totals.push(again.ready + again.checks[0]);
            }
        }
        let (check, total) = (measure::median(&first.checks), measure::median(&totals));
        let peak = measure::peak_memory().map_or(0.0, |bytes| bytes as f64 / f64::from(1 << 20));
        println!("{}\t{}\t{check:.6}\t{total:.6}\t{peak:.1}", first.verdict, first.operations);
    }
}
