//! A decided history of calls in the form that reports need: a [`History`] with calls, and a [`Judgement`] of one rule.

use crate::check::{BrokenBy, Certificate, ClientReport, Fact, Finding, Judgement, Kind, RULES, RuleReport, Verdict};
use crate::history::calls::{Call as Recorded, Calls, Moment};
use crate::history::{
    ClientId, ClockId, History, IdentifiedBy, Incarnation, IncarnationId, KeyId, OperationId, Revision, ServerId,
    Subject, Symbol, ValueId,
};
use crate::ingest::call::Ending;
use crate::ingest::{Position, Time};
use crate::model::Spec;
use crate::search::{self, Call, Core, Limit, Outcome, SpecHistory};
use rustc_hash::FxHashMap;

/// The decided rule.
const SLUG: &str = "linearizability";
/// Limit on the calls of a core in a report.
const MAX_CORE_CALLS: usize = 64;
/// Times below this, in nanoseconds, are no times of day; the recorder counts events.
const MIN_TIME_OF_DAY: i64 = 100_000_000_000_000_000;

/// The history and its judgement.
pub(super) fn outline<S: Spec>(
    calls: &SpecHistory<S>,
    verdict: &search::Verdict,
    name: &dyn Fn(u32) -> String,
) -> (History, Judgement) {
    let lives = Lives::of::<S>(calls);
    let history = history::<S>(calls, &lives, name);
    let (verdict, findings) = match verdict {
        search::Verdict::Linearizable(_) => (Verdict::Holds, Vec::new()),
        search::Verdict::Violated(core) => (Verdict::Violated, vec![finding::<S>(calls, core, &history, &lives)]),
        search::Verdict::Unknown(open) => {
            let limit = match open.limit {
                Limit::Time => "the time limit",
                Limit::Memory => "the memory limit",
                Limit::Cancelled => "the caller",
            };
            let (seconds, count) = (open.spent.as_secs_f64(), open.calls.len());
            let all = calls.calls().len();
            let why = format!("{limit} ended the search after {seconds:.1} s: {count} of {all} calls are not decided");
            (Verdict::Unknown(why), Vec::new())
        }
    };
    let rules = RULES.iter().map(|rule| match rule.slug == SLUG {
        true => RuleReport {
            rule: SLUG,
            verdict: verdict.clone(),
            checked: calls.calls().len() as u64,
            open: None,
            undecided: Vec::new(),
        },
        false => RuleReport {
            rule: rule.slug,
            verdict: Verdict::NotChecked(crate::check::options::OTHER_NATURE.to_owned()),
            checked: 0,
            open: None,
            undecided: Vec::new(),
        },
    });
    let clients = (0..history.clients.len()).map(|at| {
        let client = ClientId(at as u32);
        let lives = (0..history.incarnations.len()).map(|at| IncarnationId(at as u32));
        let incarnations = lives.filter(|life| history.incarnations[life.index()].client == client).collect();
        let blamed = findings.iter().any(|finding| finding.client == client);
        let verdict = match &verdict {
            Verdict::Violated if !blamed => Verdict::Holds,
            verdict => verdict.clone(),
        };
        ClientReport { client, incarnations, processes: 1, verdict: verdict.clone(), guarantees: vec![(SLUG, verdict)] }
    });
    let judgement = Judgement {
        clients: clients.collect(),
        rules: rules.collect(),
        verdict,
        findings,
        coverage: Vec::new(),
        unchecked: Vec::new(),
        problems: Vec::new(),
        proofs: Vec::new(),
    };
    (history, judgement)
}

/// The process numbers of a history, sorted; an index is an incarnation.
struct Lives(Vec<u32>);

impl Lives {
    fn of<S: Spec>(calls: &SpecHistory<S>) -> Lives {
        let mut processes: Vec<u32> = calls.calls().iter().map(|call| call.process).collect();
        processes.sort_unstable();
        processes.dedup();
        Lives(processes)
    }

    fn of_process(&self, process: u32) -> IncarnationId {
        self.0.binary_search(&process).map_or(IncarnationId::NONE, |at| IncarnationId(at as u32))
    }
}

/// The calls in the form that a report counts and draws.
fn history<S: Spec>(calls: &SpecHistory<S>, lives: &Lives, name: &dyn Fn(u32) -> String) -> History {
    let mut history = History::default();
    let clock = history.names.intern("recorder");
    history.clocks = vec![clock];
    let mut recorded = Calls { model: Some(std::any::type_name::<S>().to_owned()), ..Calls::default() };
    let mut clients: FxHashMap<Symbol, u32> = FxHashMap::default();
    for &process in &lives.0 {
        let symbol = history.names.intern(&name(process));
        let client = *clients.entry(symbol).or_insert_with(|| {
            history.clients.push(symbol);
            history.clients.len() as u32 - 1
        });
        history.incarnations.push(Incarnation {
            client: ClientId(client),
            label: process.to_string(),
            identified_by: IdentifiedBy::Process,
            place: None,
            program: String::new(),
            span: (Time::UNKNOWN, Time::UNKNOWN),
            clock: ClockId(0),
            served: Vec::new(),
        });
    }
    for (number, call) in (0..).zip(calls.calls()) {
        let (ending, ret) = match &call.outcome {
            Outcome::Completed { returned, .. } => (Ending::Ok, Some(*returned)),
            Outcome::Failed => (Ending::Fail, None),
            Outcome::Unknown => (Ending::Unknown, None),
        };
        let function = history.names.intern(&words(call));
        let moment = |at: Option<i64>| Moment {
            rank: at.unwrap_or(i64::MAX),
            time: at.map_or(Time::UNKNOWN, time),
            position: position(number),
        };
        recorded.calls.push(Recorded {
            process: lives.of_process(call.process),
            function,
            key: ValueId::NONE,
            argument: ValueId::NONE,
            answer: ValueId::NONE,
            ending,
            invoke: moment(Some(call.invoke)),
            ret: moment(ret),
        });
    }
    history.subject = Subject::Operations(Box::new(recorded));
    history
}

fn finding<S: Spec>(calls: &SpecHistory<S>, core: &Core, history: &History, lives: &Lives) -> Finding {
    let of = |at: &u32| &calls.calls()[*at as usize];
    let facts: Vec<Fact> = core.calls.iter().take(MAX_CORE_CALLS).map(|at| fact(*at, of(at), history, lives)).collect();
    let count = core.calls.len();
    let last = core.calls.iter().map(of).max_by_key(|call| match call.outcome {
        Outcome::Completed { returned, .. } => returned,
        Outcome::Failed | Outcome::Unknown => i64::MIN,
    });
    let incarnation = last.map_or(IncarnationId::NONE, |call| lives.of_process(call.process));
    let client = history.incarnations.get(incarnation.index()).map_or(ClientId::NONE, |life| life.client);
    let more =
        if count > MAX_CORE_CALLS { format!(" The first {MAX_CORE_CALLS} of them are shown.") } else { String::new() };
    let minimal = if core.minimal { "; if any one of them is left out, there is such an order" } else { "" };
    let certificate = Certificate {
        facts,
        reason: format!("No order of these {count} calls that respects real time gives these answers{minimal}.{more}"),
    };
    Finding {
        id: format!("{SLUG}-{}", core.calls.iter().map(u32::to_string).take(8).collect::<Vec<_>>().join("-")),
        rule: SLUG,
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        client,
        incarnation,
        key: KeyId::NONE,
        revisions: Vec::new(),
        summary: format!("no order explains {count} of {} calls", calls.calls().len()),
        occurrences: vec![certificate.clone()],
        certificate,
        consequence_of: None,
        faults: Vec::new(),
        resembles: None,
        prevention: Vec::new(),
        refuted_by: "unrecorded calls, or an incomplete specification".to_owned(),
        consequence: String::new(),
    }
}

/// Recorded calls have no file, so their index distinguishes them.
fn position(call: u32) -> Position {
    Position { offset: call.into(), ..Position::default() }
}

fn fact<O: std::fmt::Debug, A: std::fmt::Debug>(at: u32, call: &Call<O, A>, history: &History, lives: &Lives) -> Fact {
    let lasted = match call.outcome {
        Outcome::Completed { returned, .. } if call.invoke >= MIN_TIME_OF_DAY => {
            format!(", within {}", crate::explain::words::duration(returned - call.invoke))
        }
        Outcome::Completed { returned, .. } => format!(", from {} to {returned}", call.invoke),
        Outcome::Failed | Outcome::Unknown if call.invoke >= MIN_TIME_OF_DAY => String::new(),
        Outcome::Failed | Outcome::Unknown => format!(", from {} on", call.invoke),
    };
    Fact {
        position: position(at),
        says: words(call) + &lasted,
        revision: Revision::NONE,
        key: KeyId::NONE,
        uid: Symbol::default(),
        time: time(call.invoke),
        clock: if history.clocks.is_empty() { ClockId::NONE } else { ClockId(0) },
        incarnation: lives.of_process(call.process),
        server: ServerId::NONE,
        audit_id: crate::history::AuditId::default(),
        operation: OperationId::NONE,
    }
}

fn time(at: i64) -> Time {
    if at >= MIN_TIME_OF_DAY { Time(at) } else { Time::UNKNOWN }
}

fn words<O: std::fmt::Debug, A: std::fmt::Debug>(call: &Call<O, A>) -> String {
    match &call.outcome {
        Outcome::Completed { answer, .. } => format!("`{:?}` answered `{answer:?}`", call.operation),
        Outcome::Failed => format!("`{:?}` failed", call.operation),
        Outcome::Unknown => format!("`{:?}` was never answered", call.operation),
    }
}
