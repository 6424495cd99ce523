//! Injected faults: each row of the table of published bugs (etcd's `tests/robustness/README.md`, "Track record"),
//! and each watch fault that etcd's own validator is known to miss.
//!
//! A fault is *visible* if the recording contradicts a store without it. The simulator, which knows the execution,
//! decides that; the checker does not:
//! - in a watch: an event that it delivers wrongly or omits was acknowledged, read, or delivered by another watch;
//! - in an answer: the simulated store differs from it at the answer's revision;
//! - in a store: two answers, compared in pairs, give one revision to two writes, or a later request a lower
//!   revision.
//!
//! For a visible fault, a rule of the row must report a violation that names the injected revision.

mod answers;
mod stores;
mod watches;

use super::cluster::Recorded;
use super::{Report, shown};
use crate::chance::Chance;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Reports for each row.
const SEEDS: u64 = 80;

/// A visible sign: the rule that must report it, and the revision that it must name.
type Sign = (&'static str, i64);

/// A fault with its injection.
struct Row {
    /// The fault, with its published bug if there is one.
    name: &'static str,
    /// Draws a report with the fault, and its signs; no signs if it is invisible. `None`: the report has no place for
    /// it.
    faulty: fn(u64) -> Option<(Report, BTreeSet<Sign>)>,
}

/// Counts of a row's reports: injected, visible and found.
#[derive(Clone, Debug, Default)]
struct Count {
    injected: u64,
    visible: u64,
    found: u64,
    /// Reports whose finding names the row's published bug among those with the same symptoms.
    resembling: u64,
    /// The first missed ones.
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

/// Each row is found when it is visible, and its reports hold without the fault.
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

/// The reports hold without a fault.
fn each_holds(healthy: fn(u64) -> Report) {
    (0..SEEDS).into_par_iter().for_each(|seed| {
        let judgement = healthy(seed).judge();
        assert_eq!(judgement.verdict.word(), "holds", "seed {seed}: {}", shown(&judgement));
    });
}

/// Whether an operation is an acknowledged write.
fn wrote(operation: &Recorded) -> bool {
    let steps = &operation.input["Txn"]["OperationsOnSuccess"];
    let results = operation.output["Txn"]["Results"].as_array();
    let changed =
        |(n, result): (usize, &Value)| steps[n]["Type"] == "put-operation" || result["Deleted"].as_i64() > Some(0);
    operation.output["Txn"]["Failure"] == json!(false)
        && results.is_some_and(|results| results.iter().enumerate().any(changed))
}

/// The revision of an answer whose place in the order is known.
fn placed(operation: &Recorded) -> Option<i64> {
    let of = ["txn", "range", "leaseGrant"].iter().any(|kind| operation.input["Type"] == *kind);
    operation.output["Revision"].as_i64().filter(|revision| of && *revision > 0)
}

/// The revision that a request was refused as a future one.
fn refused_as_future(operation: &Recorded) -> Option<i64> {
    let told = operation.output["Error"].as_str().is_some_and(|error| error.contains("future revision"));
    operation.input["Range"]["Revision"].as_i64().filter(|_| told)
}

/// Pairs of answers that no correct store gives.
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
    /// Whether another operation or watch than `except` observed a change of a key at a revision.
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

    /// Time of the last answer or response.
    fn end(&self) -> i64 {
        let told = self.watches.iter().flat_map(|(_, _, responses)| responses).map(|response| response.time);
        self.operations.iter().map(|operation| operation.ret).chain(told).max().unwrap_or(0)
    }

    /// Whether a compacting client is recorded. Otherwise one without a record may exist.
    fn compacts(&self) -> bool {
        let asked = self.operations.iter().filter(|operation| !operation.input["Compact"].is_null());
        asked.into_iter().any(|operation| operation.output["ClientError"].is_null())
    }

    /// Highest revision of compactions requested by a time and not refused.
    fn asked_to_compact(&self, by: i64) -> i64 {
        let asked = self.operations.iter().filter(|o| o.call <= by && o.output["ClientError"].is_null());
        asked.filter_map(|o| o.input["Compact"]["Revision"].as_i64()).max().unwrap_or(0)
    }
}

/// A report of a correct store in which everything is watched.
fn watched(seed: u64) -> Report {
    Report::draw(seed, true)
}

/// A watched report with a change.
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

/// A report in which a watch on everything lacks an event that other evidence has.
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
