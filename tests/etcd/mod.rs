//! Histories of a simulated etcd, as its robustness suite records them. Without a fault everything holds, whatever
//! requests are lost or unanswered; with one, its rule reports it.
//!
//! It finds false alarms and misses of the rules on etcd, and errors of the revision order.

#[cfg(feature = "cli")]
mod archives;
mod certificate;
mod cluster;
mod damage;
mod differential;
mod epochs;
mod injection;
mod kubernetes;
mod logged;
mod oracle;
mod small;
mod verdicts;

use crate::chance::Chance;
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
    /// Prefix, first revision, responses.
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

    /// Judges it with more files.
    fn judge_with(&self, more: &[(&str, &str)]) -> Judgement {
        let mut files = self.files();
        files.extend(more.iter().map(|(name, content)| (format!("report/{name}"), (*content).to_owned())));
        judge(files)
    }

    /// Events of the first watch: response and index in it.
    fn events(&self) -> Vec<(usize, usize)> {
        let responses = self.watches[0].2.iter().enumerate();
        responses.flat_map(|(at, response)| (0..response.events.len()).map(move |n| (at, n))).collect()
    }
}

/// Judges files and verifies the report.
fn judge(files: Vec<(String, String)>) -> Judgement {
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
