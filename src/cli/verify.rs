//! `retrograde verify`: a saved report held against the evidence, without the engine.

use super::exit::Exit;
use super::plan::Verifying;
use super::saved_report;
use crate::report::page::{Look, Page, Tone};
use crate::verify::{self, FindingCheck, HistoryCheck, Proof, ProofCheck, Report, ReportedHistory};
use std::io::{self, Write};
use std::path::Path;

/// Steps that each question takes at most which is decided by trying all orders.
const STEPS: u64 = 1_000_000;

/// Reads a report of `--json`.
pub fn read(path: &Path) -> anyhow::Result<Report> {
    saved_report("the report", path)
}

/// Runs it. Exit code 1 where something in the report is wrong, 3 where something could not be confirmed.
pub fn run(verifying: &Verifying, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let input = &verifying.input;
    let checks = verify::report(&verifying.report, &input.files, &input.read, input.model.as_deref(), STEPS);
    let mut out = io::BufWriter::new(out);
    let exit = write(&verifying.report, &checks, verifying.look, &mut out)?;
    out.flush()?;
    Ok(exit)
}

/// How much of a report was confirmed, from good to bad.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Confirmed,
    Open,
    Wrong,
}

impl Standing {
    fn label(self) -> (Tone, &'static str) {
        match self {
            Standing::Confirmed => (Tone::Good, "confirmed"),
            Standing::Open => (Tone::Doubt, "open"),
            Standing::Wrong => (Tone::Bad, "WRONG"),
        }
    }
}

fn write(report: &Report, checks: &[HistoryCheck], look: Look, out: &mut dyn Write) -> io::Result<Exit> {
    let page = &mut Page::new(out, look);
    let mut worst = Standing::Confirmed;
    for (at, (history, check)) in report.histories.iter().zip(checks).enumerate() {
        if at > 0 {
            page.gap()?;
        }
        page.paragraph(0, Tone::Title, &format!("{} ({}): {}", history.name, history.kind, history.verdict))?;
        for (standing, text) in lines(history, check) {
            page.labelled(2, 11, standing.label(), &text)?;
            worst = worst.max(standing);
        }
    }
    if report.histories.is_empty() {
        page.paragraph(0, Tone::Doubt, "The report is about nothing.")?;
        worst = Standing::Open;
    }
    Ok(match worst {
        Standing::Confirmed => Exit::Holds,
        Standing::Open => Exit::Unknown,
        Standing::Wrong => Exit::Violated,
    })
}

fn lines(history: &ReportedHistory, check: &HistoryCheck) -> Vec<(Standing, String)> {
    let mut lines = Vec::new();
    for (proof, check) in history.proofs.iter().zip(&check.proofs) {
        let (standing, text) = match check {
            ProofCheck::Confirmed(text) => (Standing::Confirmed, text.clone()),
            ProofCheck::Open(text) => (Standing::Open, text.clone()),
            ProofCheck::Flawed(flaw) => (Standing::Wrong, flaw.to_string()),
        };
        let of = match proof {
            Proof::Linearization { model, .. } => format!("linearization ({model}): "),
            Proof::Core { model, .. } => format!("core ({model}): "),
            Proof::Unknown => String::new(),
        };
        lines.push((standing, of + &text));
    }
    for (finding, check) in history.findings.iter().zip(&check.findings) {
        let name = format!("{} {}", finding.rule, finding.id);
        lines.extend(check.flaws.iter().map(|flaw| {
            let standing = if flaw.is_missing_evidence() { Standing::Open } else { Standing::Wrong };
            (standing, format!("{name}: {flaw}"))
        }));
        if check.flaws.is_empty() {
            lines.push((Standing::Confirmed, format!("{name}: {}", facts(check))));
        }
    }
    match history.verdict.as_str() {
        "unknown" => lines.push((Standing::Open, "the report leaves the verdict open".to_owned())),
        verdict @ ("holds" | "violated")
            if history.proofs.is_empty()
                && (history.kind == "operations" || (history.kind == "etcd" && verdict == "holds")) =>
        {
            lines.push((
                Standing::Open,
                format!(
                    "the report has no proof that it {verdict}{}",
                    if verdict == "holds" { " (check --proofs)" } else { "" }
                ),
            ))
        }
        "violated" if history.findings.is_empty() && history.proofs.is_empty() => {
            lines.push((Standing::Wrong, "the report has no finding".to_owned()));
        }
        "holds" if lines.is_empty() => {
            lines.push((Standing::Open, "the report has nothing that could be decided again".to_owned()));
        }
        "holds" | "violated" => {}
        other => lines.push((Standing::Wrong, format!("`{other}` is no verdict"))),
    }
    lines
}

/// What was found of the facts of a finding.
fn facts(check: &FindingCheck) -> String {
    let mut text = match check.standing {
        1 => "its fact stands where the report says".to_owned(),
        count => format!("its {count} facts stand where the report says"),
    };
    if check.confirmed > 0 {
        text += &format!("; their lines show {} of what is said of them", check.confirmed);
    }
    if check.contradictions > 0 {
        text += "; they contradict each other by the definition of the rule";
    }
    if !check.derived.is_empty() {
        let claims: Vec<String> = check.derived.iter().map(|(claim, count)| format!("{claim} {count}")).collect();
        text += &format!("; from other records come: {}", claims.join(", "));
    }
    text
}
