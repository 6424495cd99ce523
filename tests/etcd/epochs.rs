//! A server fault is reported once: its consequences are children of it, and other findings are separate.

use super::cluster::{Etcd, Load, Recorded, Response, Server, Turn, serve, watch};
use super::{REPORTS, Report, shown};
use crate::chance::Chance;
use rayon::prelude::*;
use retrograde::check::{Finding, Judgement};
use serde_json::{Value, json};

/// Violations that are no consequence of another.
fn roots(judgement: &Judgement) -> Vec<&Finding> {
    judgement.findings.iter().filter(|f| f.kind_word() == "violation" && f.consequence_of.is_none()).collect()
}

fn told(judgement: &Judgement) -> String {
    let lines: Vec<String> = judgement
        .findings
        .iter()
        .map(|f| format!("{} {} {} <- {:?}: {}", f.id, f.kind_word(), f.rule, f.consequence_of, f.summary))
        .collect();
    format!("{lines:#?}")
}

/// A store that loses its last revisions at some request.
struct Forgetful {
    etcd: Etcd,
    at: usize,
    depth: i64,
    old: Option<Etcd>,
}

impl Server for Forgetful {
    fn store(&self) -> &Etcd {
        &self.etcd
    }

    fn serve(&mut self, turn: &Turn<'_>) -> Value {
        let revision = self.etcd.revision();
        if turn.n >= self.at && self.old.is_none() && revision > self.depth + 1 {
            self.old = Some(self.etcd.clone());
            self.etcd.go_back(revision - self.depth);
        }
        self.etcd.serve(turn)
    }
}

/// A report of a store that loses its last revisions after half of the requests, and their number.
fn rewound(seed: u64) -> (Report, i64) {
    let mut dice = Chance::new(seed);
    let clients = 2 + dice.below(5) as usize;
    let requests = 10 + dice.below(20) as usize;
    let depth = 1 + dice.below(5) as i64;
    let mut forgetful = Forgetful { etcd: Etcd::new(), at: clients * requests / 2, depth, old: None };
    let operations = serve(&mut forgetful, &Load { clients, requests, stall: None }, &mut dice);
    let Forgetful { etcd, old, .. } = forgetful;
    let mut watches = vec![("", 1, watch(&etcd, "", 1, &mut dice))];
    if let Some(old) = &old {
        // A watch that received the lost revisions and continues above them.
        let mut responses = watch(old, "", 1, &mut dice);
        responses.extend(watch(&etcd, "", old.revision() + 1, &mut dice));
        watches.push(("", 1, responses));
    }
    let depth = if old.is_some() { depth } else { 0 };
    (Report { etcd, operations, watches }, depth)
}

#[test]
fn a_store_that_went_back_is_one_finding_with_everything_that_follows() {
    let counts: Vec<(usize, usize)> = (0..4 * REPORTS)
        .into_par_iter()
        .filter_map(|seed| {
            let (report, depth) = rewound(seed);
            let judgement = report.judge();
            if depth == 0 || judgement.verdict.word() != "violated" {
                return None;
            }
            let roots = roots(&judgement);
            if roots.len() > 1 {
                eprintln!("seed {seed}: {}", told(&judgement));
            }
            Some((usize::from(roots.len() == 1), judgement.findings.len()))
        })
        .collect();
    let (once, findings) = counts.iter().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    let reports = counts.len();
    assert!(reports > 2 * REPORTS as usize && findings > 3 * reports, "{reports} reports, {findings} findings");
    // If requests of unknown outcome made the new revisions, no evidence may attribute them.
    assert!(once * 100 >= reports * 95, "{once} of {reports} are reported once");
}

/// Drops an event from the first watch, in the first or second half of the report.
fn leave_out(report: &mut Report, late: bool) -> Option<i64> {
    let last = report.etcd.revision();
    let place = report.events().into_iter().find(|(response, n)| {
        let revision = report.watches[0].2[*response].events[*n]["Revision"].as_i64().unwrap_or(0);
        let alone = report.etcd.commits[revision as usize - 2].changes.len() == 1;
        alone && revision < last && (!late || revision > last / 2) && (late || revision < last / 2)
    })?;
    let event = report.watches[0].2[place.0].events.remove(place.1);
    event["Revision"].as_i64()
}

/// Makes an answer contain a value that never existed.
fn invent(report: &mut Report) -> Option<i64> {
    let found = |o: &&mut Recorded| o.output["Range"]["KVs"].as_array().is_some_and(|pairs| !pairs.is_empty());
    let answer = report.operations.iter_mut().find(found)?;
    answer.output["Range"]["KVs"][0]["Value"] = json!({"Value": "never"});
    answer.output["Range"]["KVs"][0]["ModRevision"].as_i64()
}

#[test]
fn independent_faults_are_told_once_each() {
    let injected: usize = (0..4 * REPORTS)
        .into_par_iter()
        .map(|seed| {
            let mut report = Report::draw(seed, true);
            if report.etcd.commits.len() < 8 {
                return 0;
            }
            // A second watch on everything, so that it delivers the event that the first one lacks.
            let other = report.watches[0].clone();
            report.watches.push(other);
            let Some(left_out) = leave_out(&mut report, seed % 2 == 0) else { return 0 };
            let Some(invented) = invent(&mut report) else { return 0 };
            if left_out == invented {
                return 0;
            }
            let judgement = report.judge();
            let roots = roots(&judgement);
            let rules: Vec<&str> = roots.iter().map(|f| f.rule).collect();
            let about = |f: &Finding, number: i64| f.revisions.iter().any(|r| r.to_string() == number.to_string());
            assert_eq!(roots.len(), 2, "seed {seed}, {left_out} and {invented}: {}", told(&judgement));
            assert!(rules.contains(&"watch-gap"), "seed {seed}: {rules:?}");
            let gap = roots.iter().find(|f| f.rule == "watch-gap");
            assert!(gap.is_some_and(|f| about(f, left_out)), "seed {seed}: {}", shown(&judgement));
            1
        })
        .sum();
    assert!(injected * 2 > REPORTS as usize, "only {injected} injected");
}

#[test]
fn what_happens_to_many_watches_is_one_fault() {
    let counts: usize = (0..REPORTS)
        .into_par_iter()
        .map(|seed| {
            let mut report = Report::draw(seed, true);
            let whole = report.watches[0].clone();
            let Some(_) = leave_out(&mut report, true) else { return 0 };
            let short = report.watches[0].clone();
            report.watches = vec![whole.clone(), whole, short.clone(), short.clone(), short];
            let judgement = report.judge();
            let gaps = judgement.findings.iter().filter(|f| f.rule == "watch-gap").count();
            assert_eq!((gaps, roots(&judgement).len()), (3, 1), "seed {seed}: {}", told(&judgement));
            1
        })
        .sum();
    assert!(counts > REPORTS as usize / 4, "{counts}");
}

/// Hints of a report with a fault.
fn hints(report: &Report) -> Vec<&'static str> {
    let judgement = report.judge();
    judgement.findings.iter().filter_map(|f| f.resembles).map(|bug| bug.issue).collect()
}

/// A report of one client that writes many keys, with two watches on everything.
pub fn long() -> Report {
    let mut etcd = Etcd::new();
    let mut operations = Vec::new();
    for n in 0..60_i64 {
        let put = (format!("k{}", n % 7), format!("v{n}"), 0);
        let ask = match n % 10 {
            9 => super::cluster::Ask::Txn { conditions: vec![], puts: vec![], deletes: vec![put.0], reads: false },
            _ => super::cluster::Ask::Txn { conditions: vec![], puts: vec![put], deletes: vec![], reads: false },
        };
        let at = 10 * n + 5;
        let output = etcd.apply(at, &ask);
        operations.push(Recorded { client: 0, call: at - 2, input: ask.input(), output, ret: at + 2 });
    }
    let one_by_one: Vec<Response> = (2..=etcd.revision())
        .map(|number| {
            let whole = watch(&etcd, "", number, &mut Chance::new(1));
            let events: Vec<Value> = whole.iter().flat_map(|r| &r.events).cloned().collect();
            let events = events.into_iter().filter(|event| event["Revision"] == json!(number)).collect();
            Response { time: 10 * number, revision: number, events, ..Response::default() }
        })
        .collect();
    Report { etcd, operations, watches: vec![("", 1, one_by_one.clone()), ("", 1, one_by_one)] }
}

#[test]
fn a_watch_that_lost_its_place_resembles_a_published_bug_and_one_event_does_not() {
    let mut report = long();
    assert_eq!(hints(&report), Vec::<&str>::new());
    report.watches[0].2.remove(20);
    assert_eq!(hints(&report), Vec::<&str>::new());
    report.watches[0].2.drain(20..35);
    assert_eq!(hints(&report), ["etcd#17529"]);
    report.watches.push(("", -1, Vec::new()));
    assert_eq!(hints(&report), ["etcd#20709"]);
}

#[test]
fn events_that_come_again_resemble_published_bugs_by_how_far_the_watch_jumped() {
    let mut report = long();
    let again = report.watches[0].2[20].clone();
    report.watches[0].2.insert(21, again);
    assert_eq!(hints(&report), ["etcd#17247"]);
    let mut report = long();
    let again = report.watches[0].2[10..20].to_vec();
    report.watches[0].2.splice(20..20, again);
    assert_eq!(hints(&report), ["etcd#15271"]);
}

#[test]
fn a_delete_that_a_compaction_took_away_resembles_a_published_bug_and_a_put_does_not() {
    let mut report = long();
    let number = report.etcd.commits.iter().position(|commit| commit.changes[0].1.is_none()).expect("a delete") + 2;
    let compact = super::cluster::Ask::Compact(number as i64);
    report.operations.push(Recorded {
        client: 1,
        call: 600,
        input: compact.input(),
        output: json!({"Compact": {}, "Revision": -1}),
        ret: 610,
    });
    let mut other = long();
    other.operations.push(Recorded {
        client: 1,
        call: 600,
        input: super::cluster::Ask::Compact(number as i64 - 1).input(),
        output: json!({"Compact": {}, "Revision": -1}),
        ret: 610,
    });
    for report in [&mut report, &mut other] {
        report.watches[0].2.remove(number - 2);
    }
    assert_eq!(hints(&report), ["etcd#18089"]);
    assert_eq!(hints(&other), Vec::<&str>::new());
}

#[test]
fn progress_ahead_of_events_and_below_the_start_resembles_published_bugs() {
    let mut report = long();
    report.watches[0].2.insert(20, Response { time: 201, revision: 24, progress: true, ..Response::default() });
    assert_eq!(hints(&report), ["etcd#15220"]);
    let mut report = long();
    report.watches[0].1 = 30;
    report.watches[0].2.drain(..28);
    report.watches[0].2.insert(0, Response { time: 201, revision: 20, progress: true, ..Response::default() });
    assert_eq!(hints(&report), ["etcd#20221"]);
}

/// A report of a store that loses writes; several members may answer.
fn gone_back(members: &[&str], delete: bool) -> Report {
    let mut report = long();
    report.watches.clear();
    for (at, operation) in report.operations.iter_mut().enumerate() {
        operation.output["member-id"] = json!(members[at % members.len()]);
        let number = operation.output["Revision"].as_i64().unwrap_or(0);
        if number > 40 {
            operation.output["Revision"] = json!(number - 1);
        }
    }
    // The lost write was acknowledged at 40, and so was the next one.
    if delete {
        let lost = report.operations.iter().position(|o| o.output["Revision"] == json!(40)).expect("a write");
        let ask =
            super::cluster::Ask::Txn { conditions: vec![], puts: vec![], deletes: vec!["k1".into()], reads: false };
        report.operations[lost].input = ask.input();
        report.operations[lost].output["Txn"]["Results"] = json!([{"KVs": null, "Count": 0, "Deleted": 1}]);
        let compact = super::cluster::Ask::Compact(40);
        let call = report.operations[lost].ret;
        let output = json!({"Compact": {}, "Revision": -1});
        report.operations.push(Recorded { client: 1, call, input: compact.input(), output, ret: call + 1 });
    }
    report
}

#[test]
fn revisions_given_twice_resemble_published_bugs_by_members_and_by_what_was_lost() {
    assert_eq!(hints(&gone_back(&["8e9e05c52164694d"], false)), ["etcd#14370"]);
    assert_eq!(hints(&gone_back(&["8e9e05c52164694d"], true)), ["etcd#17780"]);
    assert_eq!(hints(&gone_back(&["8e9e05c52164694d", "1"], false)), ["etcd#13766"]);
}
