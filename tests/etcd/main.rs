//! Histories of a simulated etcd, as its robustness suite would have recorded them: without a fault everything holds, whatever
//! was asked, lost or left unanswered; with one, its rule says so.
//!
//! Which bugs this finds: false alarms and misses of the rules about etcd, and of the order behind them.

mod certificate;
#[path = "../../benches/generator/chance.rs"]
mod chance;
mod cluster;
mod damage;
mod differential;
mod epochs;
mod kubernetes;
mod oracle;
mod small;

use chance::Chance;
use cluster::{Etcd, Recorded, Response, run, watch};
use rayon::prelude::*;
use retrograde::check::Judgement;
use retrograde::history::{Domains, load_each};
use retrograde::ingest::{FileId, InputFile};
use serde_json::{Value, json};

/// Reports of each kind.
const REPORTS: u64 = 80;

/// A report before it is written.
struct Report {
    etcd: Etcd,
    operations: Vec<Recorded>,
    /// Prefix, first revision, what was delivered.
    watches: Vec<(&'static str, i64, Vec<Response>)>,
}

fn text<'v>(values: impl Iterator<Item = &'v Value>) -> String {
    values.map(|value| format!("{value}\n")).collect()
}

impl Report {
    fn draw(seed: u64, watched: bool) -> Report {
        let mut dice = Chance::new(seed);
        let clients = 1 + dice.below(6) as usize;
        let requests = 1 + dice.below(30) as usize;
        let (etcd, operations) = run(clients, requests, &mut dice);
        let mut watches = Vec::new();
        if watched {
            watches.push(("", 1));
            for prefix in ["b", "c", ""] {
                watches.push((prefix, 1 + dice.below(etcd.revision() as u64) as i64));
            }
        } else if dice.below(2) == 0 {
            watches.push(("b", 1));
        }
        let watches = watches.into_iter().map(|(prefix, from)| (prefix, from, watch(&etcd, prefix, from, &mut dice)));
        let watches = watches.collect();
        Report { etcd, operations, watches }
    }

    fn judge(&self) -> Judgement {
        self.judge_with(&[])
    }

    /// Its files: names and texts.
    fn files(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        let mut file = |name: String, text: String| files.push((name, text));
        let clients = self.operations.iter().map(|operation| operation.client).max().unwrap_or(0) + 1;
        for client in 0..clients {
            let of = self.operations.iter().filter(|operation| operation.client == client);
            let lines: Vec<Value> = of
                .map(|o| json!({"ClientId": client, "Input": o.input, "Call": o.call, "Output": o.output, "Return": o.ret}))
                .collect();
            if !lines.is_empty() {
                file(format!("report/client-{}/operations.json", client + 1), text(lines.iter()));
            }
        }
        for (at, (prefix, from, responses)) in self.watches.iter().enumerate() {
            let watch = cluster::recorded(prefix, *from, responses);
            file(format!("report/client-{}/watch.json", clients + at + 1), text([&watch].into_iter()));
        }
        files
    }

    /// With more files, by name.
    fn judge_with(&self, more: &[(&str, &str)]) -> Judgement {
        let mut files = self.files();
        files.extend(more.iter().map(|(name, content)| (format!("report/{name}"), (*content).to_owned())));
        let in_memory =
            |(id, (name, text)): (u32, (String, String))| InputFile::in_memory(FileId(id), &name, text.into_bytes());
        let files: Vec<InputFile> = (0..).zip(files).map(in_memory).collect();
        let options = retrograde::ingest::ReadOptions { threads: 1, ..retrograde::read_options() };
        let histories = load_each(files.clone(), &options, &Domains::default(), &());
        assert_eq!(histories.len(), 1);
        let mut judging = retrograde::Options::default();
        judging.check.proofs = true;
        let judgement = retrograde::judge(&histories[0], &judging);
        certificate::verify(&histories[0], &judgement, &files, &options);
        judgement
    }

    /// Events of the first watch: response and place in it.
    fn events(&self) -> Vec<(usize, usize)> {
        let responses = self.watches[0].2.iter().enumerate();
        responses.flat_map(|(at, response)| (0..response.events.len()).map(move |n| (at, n))).collect()
    }
}

fn shown(judgement: &Judgement) -> String {
    let findings: Vec<String> =
        judgement.findings.iter().map(|f| format!("{} {}: {}", f.kind_word(), f.rule, f.summary)).collect();
    format!("{:?}; {findings:#?}", judgement.verdict)
}

#[test]
fn a_healthy_report_with_a_watch_over_everything_holds() {
    (0..REPORTS).into_par_iter().for_each(|seed| {
        let judgement = Report::draw(seed, true).judge();
        assert_eq!(judgement.verdict.word(), "holds", "seed {seed}: {}", shown(&judgement));
    });
}

#[test]
fn a_healthy_report_of_which_little_was_watched_is_never_violated() {
    let decided: usize = (0..REPORTS)
        .into_par_iter()
        .map(|seed| {
            let judgement = Report::draw(seed, false).judge();
            assert_ne!(judgement.verdict.word(), "violated", "seed {seed}: {}", shown(&judgement));
            usize::from(judgement.verdict.word() == "holds")
        })
        .sum();
    assert!(decided * 10 > REPORTS as usize, "only {decided} of {REPORTS} were decided");
}

/// Injects a fault where there is a place for it, and counts the reports in which it was named.
fn faults(name: &str, rules: &[&str], inject: impl Fn(&mut Report, &mut Chance) -> bool + Sync) {
    let counts = (0..REPORTS).into_par_iter().map(|seed| {
        let mut report = Report::draw(seed, true);
        if report.etcd.commits.len() < 4 || !inject(&mut report, &mut Chance::new(seed)) {
            return (0, 0);
        }
        let judgement = report.judge();
        let named = judgement.findings.iter().any(|f| f.kind_word() == "violation" && rules.contains(&f.rule));
        assert!(named, "{name}, seed {seed}: {}", shown(&judgement));
        (1, usize::from(named))
    });
    let (injected, _) = counts.reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    assert!(injected * 6 > REPORTS as usize, "{name}: only {injected} injected");
}

#[test]
fn an_event_that_a_watch_leaves_out_is_found() {
    faults("gap", &["watch-gap", "watch-split"], |report, dice| {
        let events = report.events();
        // The last revision may be one that nobody else can have seen.
        let last = report.etcd.revision();
        let (response, n) = *dice.one(&events);
        let event = report.watches[0].2[response].events.remove(n);
        let seen = report.watches.iter().skip(1).any(|(prefix, from, _)| {
            event["Key"].as_str().is_some_and(|key| key.starts_with(prefix))
                && event["Revision"].as_i64() >= Some(*from)
        });
        seen && event["Revision"].as_i64() < Some(last)
    });
}

#[test]
fn an_event_that_comes_twice_is_found() {
    faults("duplicate", &["watch-duplicate"], |report, dice| {
        let (response, n) = *dice.one(&report.events());
        let event = report.watches[0].2[response].events[n].clone();
        report.watches[0].2[response].events.insert(n, event);
        true
    });
}

#[test]
fn events_in_a_wrong_order_are_found() {
    faults("reorder", &["watch-reorder"], |report, dice| {
        let events = report.events();
        let at = dice.below(events.len() as u64 - 1) as usize;
        let (a, b) = (events[at], events[at + 1]);
        let revision = |place: (usize, usize)| report.watches[0].2[place.0].events[place.1]["Revision"].clone();
        if revision(a) == revision(b) {
            return false;
        }
        let first = report.watches[0].2[a.0].events[a.1].clone();
        let second = std::mem::replace(&mut report.watches[0].2[b.0].events[b.1], first);
        report.watches[0].2[a.0].events[a.1] = second;
        true
    });
}

#[test]
fn events_of_another_key_and_from_before_the_start_are_found() {
    faults("filter", &["watch-filter"], |report, _| {
        let delivered = report.watches[0].2.clone();
        report.watches[1].2 = delivered;
        report.watches[1].1 = 1;
        let mut events = report.watches[1].2.iter().flat_map(|response| &response.events);
        events.any(|event| event["Key"].as_str().is_some_and(|key| !key.starts_with("b")))
    });
    faults("prehistory", &["watch-prehistory"], |report, _| {
        report.watches[0].1 = 3;
        true
    });
}

#[test]
fn a_wrong_value_from_before_and_a_wrong_mark_of_creation_are_found() {
    faults("previous", &["watch-prev-value"], |report, dice| {
        let (response, n) = *dice.one(&report.events());
        let event = &mut report.watches[0].2[response].events[n];
        let changed = event["PrevValue"]["ModRevision"].as_i64();
        let Some(changed) = changed.filter(|changed| *changed > 2) else { return false };
        event["PrevValue"]["ModRevision"] = json!(changed - 1);
        true
    });
    faults("creation", &["watch-type"], |report, dice| {
        let (response, n) = *dice.one(&report.events());
        let event = &mut report.watches[0].2[response].events[n];
        if event["Type"] != "put-operation" {
            return false;
        }
        event["IsCreate"] = json!(event["IsCreate"] != json!(true));
        true
    });
}

#[test]
fn progress_ahead_of_events_and_behind_them_is_found() {
    faults("ahead", &["false-progress"], |report, dice| {
        let (response, _) = *dice.one(&report.events());
        let (time, revision) = (report.watches[0].2[response].time, report.watches[0].2[response].revision);
        let told = Response { time, revision, progress: true, events: Vec::new() };
        report.watches[0].2.insert(response, told);
        true
    });
    faults("behind", &["false-progress"], |report, dice| {
        let (response, _) = *dice.one(&report.events());
        let (time, revision) = (report.watches[0].2[response].time, report.watches[0].2[response].revision);
        let told = Response { time, revision: revision - 1, progress: true, events: Vec::new() };
        report.watches[0].2.insert(response + 1, told);
        true
    });
}

#[test]
fn an_event_before_its_write_is_found() {
    faults("foreseen", &["watch-before-write", "false-progress"], |report, dice| {
        let written =
            |o: &&Recorded| o.output["Txn"]["Failure"] == json!(false) && o.output["Revision"].as_i64() > Some(1);
        let writes: Vec<&Recorded> = report.operations.iter().filter(written).collect();
        if writes.is_empty() {
            return false;
        }
        let write = dice.one(&writes);
        let (number, call) = (write.output["Revision"].as_i64().unwrap_or(0), write.call);
        let response = report.watches[0].2.iter_mut().find(|r| r.events.iter().any(|e| e["Revision"] == json!(number)));
        let changed = write.output["Txn"]["Results"].as_array().is_some_and(|results| {
            let input = &write.input["Txn"]["OperationsOnSuccess"];
            results.iter().enumerate().any(|(n, r)| r["Deleted"] == json!(1) || input[n]["Type"] == "put-operation")
        });
        match response.filter(|_| changed) {
            Some(response) => response.time = call - 1,
            None => return false,
        }
        true
    });
}

#[test]
fn reads_of_the_past_and_of_what_never_was_are_found() {
    let is_latest = |o: &Recorded| {
        o.input["Type"] == "range" && o.output["Range"].is_object() && o.input["Range"]["Revision"] == json!(0)
    };
    faults("stale", &["stale-consistent-read"], |report, _| {
        let calls: Vec<(i64, i64)> =
            report.operations.iter().filter_map(|o| Some((o.ret, o.output["Revision"].as_i64()?))).collect();
        let Report { etcd, operations, .. } = report;
        for o in operations.iter_mut().filter(|o| is_latest(o)) {
            let before =
                calls.iter().filter(|(ret, _)| *ret < o.call).map(|(_, revision)| *revision).max().unwrap_or(1);
            if before < 2 || !o.input["Range"]["End"].as_str().is_some_and(str::is_empty) {
                continue;
            }
            let key = o.input["Range"]["Start"].as_str().unwrap_or("").to_owned();
            let old = etcd.state(before - 1).get(&key);
            let pairs: Vec<Value> = old
                .iter()
                .map(|live| json!({"Key": key, "Value": {"Value": live.value}, "ModRevision": live.changed, "Version": live.version}))
                .collect();
            o.output["Range"] = json!({"Count": pairs.len(), "KVs": pairs});
            o.output["Revision"] = json!(before - 1);
            return true;
        }
        false
    });
    faults("content", &["linearizability", "lost-write", "split-timeline"], |report, dice| {
        let answered: Vec<usize> = (0..report.operations.len())
            .filter(|at| {
                let o = &report.operations[*at];
                is_latest(o) && o.output["Range"]["KVs"].as_array().is_some_and(|pairs| !pairs.is_empty())
            })
            .collect();
        if answered.is_empty() {
            return false;
        }
        let range = &mut report.operations[*dice.one(&answered)].output["Range"];
        match dice.below(3) {
            0 => range["KVs"][0]["Value"] = json!({"Value": "never"}),
            1 => range["KVs"][0]["Version"] = json!(range["KVs"][0]["Version"].as_i64().unwrap_or(0) + 1),
            _ => {
                range["KVs"].as_array_mut().map(|pairs| pairs.remove(0));
            }
        }
        true
    });
}

#[test]
fn a_revision_for_two_writes_and_one_that_nobody_may_have_made_are_found() {
    faults("reuse", &["revision-reuse", "revision-rewind", "linearizability"], |report, _| {
        let plain = |o: &Recorded| {
            let steps = o.input["Txn"]["OperationsOnSuccess"].as_array();
            let puts = steps.is_some_and(|steps| steps.len() == 1 && steps[0]["Type"] == "put-operation");
            puts && o.output["Txn"]["Failure"] == json!(false)
        };
        let writes: Vec<usize> = (0..report.operations.len()).filter(|at| plain(&report.operations[*at])).collect();
        let [first, second, ..] = writes[..] else { return false };
        let number = report.operations[first].output["Revision"].clone();
        report.operations[second].output["Revision"] = number;
        true
    });
}
