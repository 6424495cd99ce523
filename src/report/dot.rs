//! DOT for Graphviz: the facts of each finding as nodes, and their order as edges with reasons.

use super::{Part, Report, Sink};
use crate::check::{Finding, Kind};
use crate::explain::markup;
use crate::explain::terminal_text::{visible, wrap};
use crate::explain::{before, facts, names, words};
use std::io;

/// Findings to draw. Hazards are drawn only if there is nothing graver.
const FINDINGS: usize = 100;
/// Columns of a label.
const COLUMNS: usize = 44;

/// Writes DOT.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dot;

impl Sink for Dot {
    fn write(&self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let all = || report.histories.iter().flat_map(|part| part.judgement.findings.iter().map(move |f| (part, f)));
        let grave = all().any(|(_, finding)| finding.kind != Kind::Hazard);
        let chosen: Vec<_> = all().filter(|(_, finding)| !grave || finding.kind != Kind::Hazard).collect();
        writeln!(out, "digraph retrograde {{")?;
        writeln!(out, "  graph [rankdir=TB, fontname=\"sans-serif\", compound=true];")?;
        writeln!(out, "  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=10];")?;
        writeln!(out, "  edge [fontname=\"sans-serif\", fontsize=9];")?;
        for (at, (part, finding)) in chosen.iter().take(FINDINGS).enumerate() {
            cluster(out, at, part, finding)?;
        }
        if chosen.len() > FINDINGS {
            let more = words::thousands((chosen.len() - FINDINGS) as u64);
            writeln!(out, "  more [shape=plaintext, label={}];", quoted(&format!("and {more} more findings")))?;
        }
        writeln!(out, "}}")
    }
}

fn cluster(out: &mut dyn io::Write, at: usize, part: &Part<'_>, finding: &Finding) -> io::Result<()> {
    let colour = match finding.kind {
        Kind::Violation => "#b3261e",
        Kind::Suspect => "#9a6700",
        Kind::Hazard => "#57606a",
    };
    let title = format!("{}: {}", finding.rule, names::client(part.history, finding.client));
    writeln!(out, "  subgraph cluster_{at} {{")?;
    writeln!(out, "    color={}; fontcolor={};", quoted(colour), quoted(colour))?;
    writeln!(out, "    label={};", lines(&[title.as_str(), finding.certificate.reason.as_str()]))?;
    let certificate = facts::in_order_of_time(&finding.certificate);
    for (n, row) in facts::rows(part.history, &certificate).iter().enumerate() {
        let revision = if row.revision.is_empty() { String::new() } else { format!("revision {}", row.revision) };
        let head = [row.time.as_str(), row.clock.as_str(), row.client.as_str(), revision.as_str()];
        let head = head.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("  ");
        writeln!(out, "    f{at}_{n} [label={}];", lines(&[head.as_str(), row.says.as_str(), row.place.as_str()]))?;
    }
    for (from, to, reason) in before::edges(&certificate.facts) {
        writeln!(out, "    f{at}_{from} -> f{at}_{to} [label={}];", quoted(reason))?;
    }
    writeln!(out, "  }}")
}

/// Texts as one label, each wrapped and left-aligned.
fn lines(texts: &[&str]) -> String {
    let wrapped = texts.iter().filter(|text| !text.is_empty()).flat_map(|text| wrap(&visible(text), COLUMNS));
    let label: String = wrapped.map(|line| markup::dot(&line) + "\\l").collect();
    format!("\"{label}\"")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", markup::dot(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn facts_are_nodes_and_what_is_known_of_their_order_is_an_edge() {
        let sample = sample::restart(str::to_owned);
        let mut out = Vec::new();
        Dot.write(&sample.report(), &mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap());
    }

    #[test]
    fn a_name_cannot_end_its_label() {
        let sample = sample::restart(|name| format!("\"]; x -> y [a=\"\\{name}\n"));
        let mut out = Vec::new();
        Dot.write(&sample.report(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for line in text.lines() {
            let bare = line.replace("\\\\", "").replace("\\\"", "");
            assert_eq!(bare.matches('"').count() % 2, 0, "{line}");
        }
    }
}
