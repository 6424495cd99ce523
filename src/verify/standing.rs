//! Summarizes the check of a report: one sentence per claim, with its standing.

use super::report::{Proof, ReportedHistory};
use super::{FindingCheck, HistoryCheck, ProofCheck};

/// The degree of confirmation, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Confirmed by the evidence.
    Confirmed,
    /// Neither confirmed nor disproved.
    Open,
    /// Disproved by the evidence. A correct report never contains such a claim.
    Wrong,
}

/// One sentence for each claim of a history: its proofs, its findings, its verdict.
pub fn standings(history: &ReportedHistory, check: &HistoryCheck) -> Vec<(Standing, String)> {
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
            lines.push((Standing::Open, "the report has no claim that can be decided again".to_owned()));
        }
        "holds" | "violated" => {}
        other => lines.push((Standing::Wrong, format!("`{other}` is no verdict"))),
    }
    lines
}

/// The result of looking up the facts of a finding.
fn facts(check: &FindingCheck) -> String {
    let mut text = match check.standing {
        1 => "its fact is where the report says".to_owned(),
        count => format!("its {count} facts are where the report says"),
    };
    if check.confirmed > 0 {
        text += &format!("; the cited lines confirm {} of their values", check.confirmed);
    }
    if check.contradictions > 0 {
        text += "; they contradict each other by the definition of the rule";
    }
    if !check.derived.is_empty() {
        let claims: Vec<String> = check.derived.iter().map(|(claim, count)| format!("{claim} {count}")).collect();
        text += &format!("; values that rest on other records: {}", claims.join(", "));
    }
    text
}
