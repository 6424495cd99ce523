//! Faults, injected: each row of the table of published bugs (etcd's `tests/robustness/README.md`, "Track record"), and each fault of a
//! watch that etcd's own validator is known to pass.
//!
//! A fault is *visible* where what was recorded contradicts a store without it, and the simulator says so, which knows what really
//! happened; the checker is not asked:
//! - of a watch: what it tells wrongly, or leaves out and goes past, was acknowledged, read, or delivered by another watch;
//! - of an answer: the simulated store had something else at the revision that the answer carries;
//! - of a store: two answers to clients, compared pair by pair, give one revision to two writes, or one that was sent later a lower
//!   revision.
//!
//! Of a visible fault, a rule of the row must say so as a violation that names the revision of the injection.

mod answers;
mod stores;
mod watches;

use super::cluster::Recorded;
use super::{Report, shown};
use crate::chance::Chance;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Reports of each row.
const SEEDS: u64 = 80;

/// What shows a fault: the rule that must name it, and a revision that it must name.
type Sign = (&'static str, i64);

/// A fault.
struct Row {
    /// What goes wrong, and the published bug, where there is one.
    name: &'static str,
    /// A report with it, and what shows it: nothing, where nobody can see it. `None`: there is no place for it.
    faulty: fn(u64) -> Option<(Report, BTreeSet<Sign>)>,
}

/// How many reports of a row were injected, visible, and found.
#[derive(Clone, Debug, Default)]
struct Count {
    injected: u64,
    visible: u64,
    found: u64,
    /// In how many the published bug of the row was named as one that leaves the same traces.
    resembling: u64,
    /// The first ones that were not found.
    missed: Vec<String>,
}

impl Count {
    fn of(row: &Row, seed: u64) -> Count {
        let Some((report, signs)) = (row.faulty)(seed) else { return Count::default() };
        let judgement = report.judge();
        let named = |sign: &Sign| {
            judgement.findings.iter().any(|finding| {
                let cites = finding.revisions.iter().any(|revision| revision.to_string() == sign.1.to_string());
                finding.rule == sign.0 && finding.kind_word() == "violation" && cites
            })
        };
        let visible = !signs.is_empty();
        let found = signs.iter().any(named);
        let missed = match visible && !found {
            true => vec![format!("{}, seed {seed}: one of {signs:?}: {}", row.name, shown(&judgement))],
            false => Vec::new(),
        };
        let issue = row.name.split(['(', ')', ',']).find(|part| part.starts_with("etcd#"));
        let resembles = |bug: &retrograde::check::Published| Some(bug.issue) == issue;
        let resembling = visible && judgement.findings.iter().any(|finding| finding.resembles.is_some_and(resembles));
        Count { injected: 1, visible: visible.into(), found: found.into(), resembling: resembling.into(), missed }
    }

    fn and(mut self, other: Count) -> Count {
        self.missed.extend(other.missed);
        self.missed.truncate(3);
        Count {
            injected: self.injected + other.injected,
            visible: self.visible + other.visible,
            found: self.found + other.found,
            resembling: self.resembling + other.resembling,
            missed: self.missed,
        }
    }
}

/// Each row is found where it is visible, and what it was made of holds without it.
fn each_is_found(rows: &[Row]) {
    let mut failures = Vec::new();
    for row in rows {
        let count = (0..SEEDS).into_par_iter().map(|seed| Count::of(row, seed)).reduce(Count::default, Count::and);
        let Count { injected, visible, found, resembling, .. } = count;
        println!("{}: {injected} injected, {visible} visible, {found} found, {resembling} resembling", row.name);
        if count.found * 100 < count.visible * 99 || count.visible * 4 < SEEDS {
            failures.push(format!("{count:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What reports are made of, without a fault.
fn each_holds(healthy: fn(u64) -> Report) {
    (0..SEEDS).into_par_iter().for_each(|seed| {
        let judgement = healthy(seed).judge();
        assert_eq!(judgement.verdict.word(), "holds", "seed {seed}: {}", shown(&judgement));
    });
}

/// Whether an operation was acknowledged as one that changed something.
fn wrote(operation: &Recorded) -> bool {
    let steps = &operation.input["Txn"]["OperationsOnSuccess"];
    let results = operation.output["Txn"]["Results"].as_array();
    let changed =
        |(n, result): (usize, &Value)| steps[n]["Type"] == "put-operation" || result["Deleted"].as_i64() > Some(0);
    operation.output["Txn"]["Failure"] == json!(false)
        && results.is_some_and(|results| results.iter().enumerate().any(changed))
}

/// The revision that an answer carries, where its place in the order is known.
fn placed(operation: &Recorded) -> Option<i64> {
    let of = ["txn", "range", "leaseGrant"].iter().any(|kind| operation.input["Type"] == *kind);
    operation.output["Revision"].as_i64().filter(|revision| of && *revision > 0)
}

/// The revision that a request was told is in the future.
fn refused_as_future(operation: &Recorded) -> Option<i64> {
    let told = operation.output["Error"].as_str().is_some_and(|error| error.contains("future revision"));
    operation.input["Range"]["Revision"].as_i64().filter(|_| told)
}

/// Answers that no store without a fault gives, pair by pair.
fn clashes(operations: &[Recorded]) -> BTreeSet<Sign> {
    let mut signs = BTreeSet::new();
    for later in operations {
        if let Some(asked) = refused_as_future(later) {
            let before = operations.iter().filter(|earlier| earlier.ret < later.call).filter_map(placed);
            signs.extend(before.filter(|seen| *seen >= asked).map(|seen| ("stale-consistent-read", seen)));
        }
        let Some(number) = placed(later) else { continue };
        for earlier in operations.iter().filter(|earlier| !std::ptr::eq(*earlier, later)) {
            let Some(seen) = placed(earlier) else { continue };
            if wrote(earlier) && wrote(later) && seen == number {
                signs.insert(("revision-reuse", number));
            }
            let above = seen > number || seen == number && wrote(later) && !wrote(earlier);
            if earlier.ret < later.call && above {
                signs.insert((if wrote(later) { "revision-rewind" } else { "stale-consistent-read" }, number));
            }
        }
    }
    signs
}

impl Report {
    /// Whether somebody else than one watch was shown or told that a key changed at a revision.
    fn is_known(&self, key: &str, revision: i64, except: usize) -> bool {
        let acknowledged = |operation: &Recorded| {
            let steps = operation.input["Txn"]["OperationsOnSuccess"].as_array();
            let about = |step: &Value| step["Put"]["Key"] == *key || step["Delete"]["Key"] == *key;
            let found = |pair: &Value| pair["Key"] == *key && pair["ModRevision"] == json!(revision);
            wrote(operation)
                && operation.output["Revision"] == json!(revision)
                && steps.is_some_and(|steps| steps.iter().any(about))
                || operation.output["Range"]["KVs"].as_array().is_some_and(|pairs| pairs.iter().any(found))
        };
        let told = |event: &Value| event["Key"] == *key && event["Revision"] == json!(revision);
        self.operations.iter().any(acknowledged)
            || self.watches.iter().enumerate().any(|(at, (_, _, responses))| {
                at != except && responses.iter().any(|response| response.events.iter().any(told))
            })
    }

    /// When the last of everything was over.
    fn end(&self) -> i64 {
        let told = self.watches.iter().flat_map(|(_, _, responses)| responses).map(|response| response.time);
        self.operations.iter().map(|operation| operation.ret).chain(told).max().unwrap_or(0)
    }

    /// Whether a client is recorded that compacts: else one that is not recorded may.
    fn compacts(&self) -> bool {
        let asked = self.operations.iter().filter(|operation| !operation.input["Compact"].is_null());
        asked.into_iter().any(|operation| operation.output["ClientError"].is_null())
    }

    /// The highest revision that anybody had asked to compact through by a time, and was not told that it cannot be.
    fn asked_to_compact(&self, by: i64) -> i64 {
        let asked = self.operations.iter().filter(|o| o.call <= by && o.output["ClientError"].is_null());
        asked.filter_map(|o| o.input["Compact"]["Revision"].as_i64()).max().unwrap_or(0)
    }
}

/// A report of a healthy store in which everything is watched.
fn watched(seed: u64) -> Report {
    Report::draw(seed, true)
}

/// Such a report, changed.
fn changed(
    seed: u64,
    change: impl Fn(&mut Report, &mut Chance) -> Option<BTreeSet<Sign>>,
) -> Option<(Report, BTreeSet<Sign>)> {
    let mut report = watched(seed);
    if report.etcd.commits.len() < 6 {
        return None;
    }
    let signs = change(&mut report, &mut Chance::new(seed ^ 0xfa17))?;
    Some((report, signs))
}

/// A report in which a watch over everything leaves something out that others show.
#[cfg(feature = "cli")]
pub fn starved(seed: u64) -> Option<Report> {
    let (report, signs) = (watches::ROWS[0].faulty)(seed)?;
    (!signs.is_empty()).then_some(report)
}

#[test]
fn what_faults_are_injected_into_holds_without_them() {
    each_holds(watched);
    each_holds(stores::healthy);
    each_holds(watches::resumed);
}

#[test]
fn faults_of_watches_are_found_and_named() {
    each_is_found(watches::ROWS);
}

#[test]
fn faults_of_answers_are_found_and_named() {
    each_is_found(answers::ROWS);
}

#[test]
fn faults_of_stores_are_found_and_named() {
    each_is_found(stores::ROWS);
}
