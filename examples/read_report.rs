//! Reads a JSON report and prints the verdict of each history, and how many findings each rule has.
//!
//! ```console
//! $ retrograde check --json=report.json EVIDENCE
//! $ cargo run --example read_report -- report.json
//! ```
//!
//! Without a path it makes a report in memory. The format is docs/report.schema.json. Needs serde and serde_json.

use retrograde::history::sketch::sketch;
use retrograde::report::{self, Format, Look, Part};
use retrograde::{Options, judge};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;

/// The fields that this program needs. serde skips the others.
#[derive(Deserialize)]
struct Report {
    schema: String,
    verdict: String,
    histories: Vec<History>,
}

#[derive(Deserialize)]
struct History {
    name: String,
    verdict: String,
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Finding {
    rule: String,
    /// `violation`, `suspect` or `hazard`.
    kind: String,
}

/// The verdicts and counts of a report, as text.
pub fn summary(json: &[u8]) -> Result<String, Box<dyn Error>> {
    let report: Report = serde_json::from_slice(json)?;
    if report.schema != "retrograde/report/1" {
        return Err(format!("expected retrograde/report/1, found {}", report.schema).into());
    }
    let mut text = format!("verdict: {}\n", report.verdict);
    for history in &report.histories {
        writeln!(text, "{}: {}", history.name, history.verdict)?;
        let mut counts = BTreeMap::new();
        for finding in &history.findings {
            *counts.entry((&finding.rule, &finding.kind)).or_insert(0) += 1;
        }
        for ((rule, kind), count) in counts {
            writeln!(text, "  {count} {kind} of {rule}")?;
        }
    }
    Ok(text)
}

/// The report of a small history: a client lists revision 15, then gets an older state from another server.
pub fn sample() -> Result<Vec<u8>, Box<dyn Error>> {
    let history = sketch(
        "
etcd     +a:u1@10  ~a@12  -a@15
ctrl@A   |-LIST => 15 {}-|
ctrl@B                      |-LIST rv=0 => 12 {a:u1@12}-|
",
    )?;
    let judgement = judge(&history, &Options::default());
    let report = report::Report { histories: vec![Part::of(&history, &judgement)] };
    let mut json = Vec::new();
    report.write(Format::Json, Look::default(), &mut json)?;
    Ok(json)
}

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args_os().nth(1).map_or_else(sample, |path| Ok(std::fs::read(path)?))?;
    print!("{}", summary(&json)?);
    Ok(())
}
