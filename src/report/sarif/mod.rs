//! SARIF 2.1.0 (OASIS, 2020): findings as results of static analysis, so that code scanning shows them beside the evidence.
//!
//! GitHub accepts 25,000 results per run and keeps 5,000, 10,000 locations per thread flow (1,000 kept), 1,000 locations per
//! result (100 kept), 20 tags per rule (10 kept) and 20 runs per file ("SARIF support for code scanning", limits). One run with
//! the gravest 5,000 findings stays within all limits. A notification of the run counts the others.

mod log;
#[cfg(test)]
mod tests;

use self::log::*;
use super::{Part, Report, Sink};
use crate::check::{BrokenBy, Fact, Finding, Kind, RULES, Rule, Verdict};
use crate::explain::markup::{Json, json, markdown_block};
use crate::explain::{facts, names, words};
use crate::history::History;
use crate::report::human;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io;

/// Results that code scanning keeps of a run.
const MAX_RESULTS: usize = 5_000;
/// Further occurrences of a result, as related locations.
const MAX_RELATED: usize = 90;
/// Problems of the input to report.
const MAX_PROBLEMS: usize = 100;
/// Name of the fingerprint. A changed computation needs a new number.
const FINGERPRINT: &str = "retrograde/v1";

/// Writes SARIF.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sarif;

impl Sink for Sarif {
    fn write(&self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        json(&log(report), Json::Visible, out)?;
        out.write_all(b"\n")
    }
}

fn log(report: &Report<'_>) -> Log {
    let mut all: Vec<(&Part<'_>, &Finding)> =
        report.histories.iter().flat_map(|part| part.judgement.findings.iter().map(move |f| (part, f))).collect();
    // Gravest first; the sort is stable.
    all.sort_by_key(|(_, finding)| finding.kind);
    let left_out = all.len().saturating_sub(MAX_RESULTS);
    all.truncate(MAX_RESULTS);
    let mut met: FxHashMap<String, usize> = FxHashMap::default();
    let results = all
        .into_iter()
        .map(|(part, finding)| {
            let fingerprint = fingerprint(part, finding);
            let nth = met.entry(fingerprint.clone()).or_default();
            *nth += 1;
            outcome(part.history, finding, format!("{fingerprint}:{nth}"))
        })
        .collect();
    Log {
        schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        version: "2.1.0",
        runs: vec![Run {
            tool: Tool {
                driver: Driver {
                    name: "retrograde",
                    version: env!("CARGO_PKG_VERSION"),
                    semantic_version: env!("CARGO_PKG_VERSION"),
                    rules: RULES.iter().map(descriptor).collect(),
                },
            },
            invocations: vec![Invocation {
                execution_successful: true,
                tool_execution_notifications: notifications(report, left_out),
            }],
            results,
            column_kind: "unicodeCodePoints",
        }],
    }
}

fn descriptor(rule: &Rule) -> Descriptor {
    let page = rule.page;
    let proves = page.split("\n\n").nth(1).unwrap_or(rule.title).replace('\n', " ");
    Descriptor {
        id: rule.slug,
        short_description: Message::text(sentence(rule.title)),
        full_description: Message::text(sentence(&proves)),
        help: Message { text: page.to_owned(), markdown: Some(page.to_owned()) },
        default_configuration: Configuration { level: "error" },
        properties: Properties {
            tags: vec![
                "consistency",
                match rule.promise {
                    BrokenBy::Server => "server",
                    BrokenBy::Client => "client",
                    BrokenBy::Nobody => "session",
                },
            ],
        },
    }
}

/// Text with a final period, as viewers expect of a description.
fn sentence(text: &str) -> String {
    if text.ends_with('.') { text.to_owned() } else { format!("{text}.") }
}

fn notifications(report: &Report<'_>, left_out: usize) -> Vec<Notification> {
    let note = |level, text: String| Notification { level, message: Message::text(text), locations: Vec::new() };
    let mut notes = Vec::new();
    if left_out > 0 {
        let text = format!(
            "{} more findings are left out: code scanning keeps {MAX_RESULTS}.",
            words::thousands(left_out as u64)
        );
        notes.push(note("warning", text));
    }
    for part in &report.histories {
        if let Verdict::Unknown(reason) | Verdict::NotChecked(reason) = &part.judgement.verdict {
            notes.push(note("warning", format!("{}: unknown: {reason}", part.name)));
        }
        notes.extend(part.judgement.unchecked.iter().map(|text| note("note", text.clone())));
        let problems = part.history.problems.iter().chain(&part.judgement.problems);
        notes.extend(problems.take(MAX_PROBLEMS).map(|problem| {
            let text = format!("Expected {}, found {}.", problem.expected, problem.found);
            let place = Place { artifact_location: Artifact { uri: uri(&problem.path) }, region: region(problem.line) };
            let location = Location { id: None, physical_location: place, message: None };
            Notification { level: "warning", message: Message::text(text), locations: vec![location] }
        }));
    }
    notes
}

fn outcome(history: &History, finding: &Finding, fingerprint: String) -> Outcome {
    let certificate = &facts::in_order_of_time(&finding.certificate);
    let flow: Vec<FlowLocation> = certificate
        .facts
        .iter()
        .zip(facts::rows(history, certificate))
        .enumerate()
        .filter_map(|(at, (fact, row))| {
            let who = [row.time.as_str(), row.client.as_str()].into_iter().filter(|text| !text.is_empty());
            let who = who.collect::<Vec<_>>().join(" ");
            let revision =
                if row.revision.is_empty() { String::new() } else { format!(" (revision {})", row.revision) };
            let text = if who.is_empty() { row.says } else { format!("{who}: {}", row.says) };
            let location = location(history, fact, None, Some(format!("{text}{revision}")))?;
            Some(FlowLocation { execution_order: at + 1, location })
        })
        .collect();
    // The location of a result is the last fact, which completes the contradiction.
    let last = certificate.facts.iter().rev().find_map(|fact| location(history, fact, None, None));
    let others = finding.occurrences.iter().skip(1).take(MAX_RELATED).enumerate().filter_map(|(at, occurrence)| {
        let fact = occurrence.facts.last()?;
        location(history, fact, Some(at + 1), Some("another occurrence".to_owned()))
    });
    Outcome {
        rule_id: finding.rule,
        rule_index: RULES.iter().position(|rule| rule.slug == finding.rule),
        // The standard (3.27.9) gives every other kind the level `none`, which code scanning hides.
        kind: "fail",
        level: match finding.kind {
            Kind::Violation => "error",
            Kind::Suspect => "warning",
            Kind::Hazard => "note",
        },
        message: Message {
            text: finding.summary.clone(),
            markdown: Some(markdown_block(&human::passage(history, finding))),
        },
        locations: last.into_iter().collect(),
        code_flows: if flow.is_empty() {
            Vec::new()
        } else {
            vec![CodeFlow { thread_flows: vec![ThreadFlow { locations: flow }] }]
        },
        related_locations: others.collect(),
        partial_fingerprints: BTreeMap::from([(FINGERPRINT, fingerprint)]),
        occurrence_count: finding.occurrences.len().max(1),
    }
}

fn location(history: &History, fact: &Fact, id: Option<usize>, message: Option<String>) -> Option<Location> {
    let file = history.file_name(fact.position.file);
    (!file.is_empty()).then(|| Location {
        id,
        physical_location: Place { artifact_location: Artifact { uri: uri(file) }, region: region(fact.position.line) },
        message: message.map(Message::text),
    })
}

fn region(line: u32) -> Option<Region> {
    (line > 0).then_some(Region { start_line: line })
}

/// The identity of a finding across recordings: rule, client, key and revisions, but no lines or times.
fn fingerprint(part: &Part<'_>, finding: &Finding) -> String {
    let history = part.history;
    let revisions: Vec<String> = finding.revisions.iter().map(|revision| revision.to_string()).collect();
    let key = if finding.key.is_some() { history.key_name(finding.key) } else { String::new() };
    format!("{}/{}/{key}/{}", finding.rule, names::client(history, finding.client), revisions.join("-"))
}

/// A path as a URI reference (RFC 3986). Relative paths stay relative, absolute ones become `file:` URIs, and every byte with a
/// meaning in URIs is escaped.
fn uri(path: &str) -> String {
    let path = path.replace('\\', "/");
    let drive = path.as_bytes().get(1) == Some(&b':') && path.as_bytes()[0].is_ascii_alphabetic();
    let mut uri = match (drive, path.starts_with('/')) {
        (true, _) => "file:///".to_owned(),
        (false, true) => "file://".to_owned(),
        (false, false) => String::new(),
    };
    for (at, byte) in path.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(byte as char),
            b':' if drive && at == 1 => uri.push(':'),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}
