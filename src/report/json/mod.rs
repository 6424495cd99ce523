//! JSON for programs.

#[cfg(test)]
#[cfg(test)]
mod tests;

use super::cause_tree::{Forest, by_rule};
use super::document::{
    Certificate, Claim, Client, Consequences, Coverage, Document, Domain, Fact, Finding, History, Incarnation, Input,
    Prevention, Problem, Proof, Published, Removed, Rule, SCHEMA, Source, Undecided,
};
use super::summary::Extent;
use super::{Part, Report, Sink};
use crate::check;
use crate::explain::{markup, words};
use crate::history::{self, KeyId, Revision};
use crate::order::etcd::Writer;
use std::fmt::Write as _;
use std::io;

/// Writes the document of [`super::document`], indented, with a final newline.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl Sink for Json {
    fn write(&self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        markup::json(&document(report), markup::Json::Exact, out)?;
        out.write_all(b"\n")
    }
}

/// The document of a report.
pub fn document<'a>(report: &'a Report<'a>) -> Document<'a> {
    Document {
        schema: SCHEMA,
        verdict: report.verdict().word(),
        histories: report.histories.iter().map(part).collect(),
        problems: report
            .histories
            .iter()
            .flat_map(|part| part.history.problems.iter().chain(&part.judgement.problems))
            .map(|p| Problem { file: &p.path, line: p.line, expected: &p.expected, found: &p.found })
            .collect(),
    }
}

fn part<'a>(part: &Part<'a>) -> History<'a> {
    let (history, judgement) = (part.history, part.judgement);
    History {
        name: part.name,
        kind: part.nature.name(),
        inputs: history.files.iter().map(input).collect(),
        // A history without any check is not known to hold (`rules.md`: only rules are not-checked).
        verdict: match &judgement.verdict {
            check::Verdict::NotChecked(_) => "unknown",
            decided => decided.word(),
        },
        domains: domains(history),
        clients: judgement.clients.iter().map(|c| client(history, c)).collect(),
        rules: judgement.rules.iter().map(rule).collect(),
        findings: {
            let forest = Forest::of(&judgement.findings);
            judgement.findings.iter().enumerate().map(|(at, f)| finding(history, f, &forest, at)).collect()
        },
        coverage: judgement
            .coverage
            .iter()
            .map(|c| Coverage {
                domain: &c.domain,
                scope: &c.scope,
                after: c.after.to_string(),
                through: c.through.to_string(),
                shown_by: &c.shown_by,
            })
            .collect(),
        reason: judgement.verdict.reason(),
        undecided: judgement.rules.iter().map(check::RuleReport::open_obligations).sum(),
        unchecked: &judgement.unchecked,
        proofs: judgement.proofs.iter().map(proof).collect(),
    }
}

fn rule(report: &check::RuleReport) -> Rule<'_> {
    let undecided = report.undecided.iter().map(|open| Undecided { reason: &open.reason, count: open.count });
    Rule {
        rule: report.rule,
        verdict: report.verdict.word(),
        reason: report.verdict.reason(),
        checked: report.checked,
        undecided: undecided.collect(),
    }
}

fn proof(proof: &check::Proof) -> Proof<'_> {
    match proof {
        check::Proof::Linearization { model, order } => {
            let mut text = String::with_capacity(order.len() * 7);
            for operation in order {
                if !text.is_empty() {
                    text.push(' ');
                }
                let _ = write!(text, "{operation}");
            }
            Proof { kind: "linearization", model, order: Some(text), ..Proof::default() }
        }
        check::Proof::Etcd { order, removed } => {
            let mut text = String::with_capacity(order.len() * 7);
            for step in order {
                let blank = if text.is_empty() { "" } else { " " };
                let _ = match step {
                    Writer::Operation(operation) => write!(text, "{blank}{operation}"),
                    Writer::Expiry(lease) => write!(text, "{blank}expired:{lease}"),
                };
            }
            let removed = removed.iter().map(|(revision, keys)| Removed { revision: revision.to_string(), keys });
            let removed = removed.collect();
            Proof { kind: "linearization", model: "etcd", order: Some(text), removed, ..Proof::default() }
        }
        check::Proof::Core { model, claims, minimal } => {
            let claims = claims.iter().map(|claim| Claim {
                operation: claim.call,
                answer: claim.answer,
                invoked: claim.invoked,
                returned: claim.returned,
            });
            Proof { kind: "core", model, claims: claims.collect(), minimal: *minimal, ..Proof::default() }
        }
    }
}

fn input(file: &crate::ingest::FileSummary) -> Input<'_> {
    Input {
        file: &file.path,
        format: file.format,
        ignored: file.ignored.as_deref(),
        lines: file.lines,
        records: file.records,
        problems: file.problems,
        unknown: file.unknown,
        bytes: file.bytes,
    }
}

fn domains(history: &history::History) -> Vec<Domain<'_>> {
    let mut domains: Vec<Domain<'_>> = Extent::of(history)
        .domains
        .iter()
        .map(|extent| {
            let mut resources: Vec<String> = extent.resources.iter().map(|&r| history.resource_name(r)).collect();
            resources.sort_unstable();
            Domain {
                domain: &history.domains[extent.domain.index()],
                resources,
                first_revision: revision(extent.first),
                last_revision: revision(extent.last),
            }
        })
        .collect();
    domains.sort_by(|a, b| a.domain.cmp(b.domain));
    domains
}

fn client<'a>(history: &'a history::History, report: &'a check::ClientReport) -> Client<'a> {
    Client {
        client: history.name(history.clients[report.client.index()]),
        incarnations: report
            .incarnations
            .iter()
            .map(|id| &history.incarnations[id.index()])
            .map(|life| Incarnation {
                incarnation: &life.label,
                told_by: life.identified_by.sentence(),
                place: life.place.as_deref(),
                program: &life.program,
            })
            .collect(),
        processes: report.processes,
        verdict: report.verdict.word(),
        guarantees: report.guarantees.iter().map(|(rule, verdict)| (*rule, verdict.word())).collect(),
        reason: report.verdict.reason(),
    }
}

fn finding<'a>(
    history: &'a history::History,
    finding: &'a check::Finding,
    forest: &Forest<'a>,
    at: usize,
) -> Finding<'a> {
    let below = forest.below(at);
    Finding {
        id: &finding.id,
        rule: finding.rule,
        kind: words::kind(finding.kind),
        broken_by: words::broken_by(finding.broken_by),
        client: text(if finding.client.is_some() { history.name(history.clients[finding.client.index()]) } else { "" }),
        incarnation: finding
            .incarnation
            .is_some()
            .then(|| history.incarnations[finding.incarnation.index()].label.as_str())
            .and_then(text),
        key: key(history, finding.key),
        revisions: finding.revisions.iter().map(Revision::to_string).collect(),
        summary: &finding.summary,
        certificate: certificate(history, &finding.certificate),
        occurrences: finding.occurrences.iter().map(|c| certificate(history, c)).collect(),
        consequence_of: finding.consequence_of.as_deref(),
        consequences: by_rule(below.iter().map(|at| &forest.findings[*at]))
            .into_iter()
            .map(|(rule, findings, clients)| Consequences {
                rule,
                findings,
                clients: clients.iter().map(|client| history.name(history.clients[client.index()])).collect(),
            })
            .collect(),
        resembles: finding.resembles.map(|bug| Published { issue: bug.issue, says: bug.says, address: bug.address() }),
        prevention: finding
            .prevention
            .iter()
            .map(|p| Prevention {
                request: &p.request,
                effect: words::effect(p.effect),
                smallest_revision: revision(p.smallest_revision),
                because: &p.because,
            })
            .collect(),
        refuted_by: &finding.refuted_by,
        consequence: &finding.consequence,
    }
}

fn certificate<'a>(history: &'a history::History, certificate: &'a check::Certificate) -> Certificate<'a> {
    Certificate { facts: certificate.facts.iter().map(|f| fact(history, f)).collect(), reason: &certificate.reason }
}

fn fact<'a>(history: &'a history::History, fact: &'a check::Fact) -> Fact<'a> {
    Fact {
        source: Source {
            file: history.file_name(fact.position.file),
            line: fact.position.line,
            offset: fact.position.offset,
        },
        revision: revision(fact.revision),
        key: key(history, fact.key),
        uid: text(history.name(fact.uid)),
        time: fact.time.is_known().then(|| fact.time.to_string()),
        clock: text(history.clock_name(fact.clock)),
        client: text(history.client_name(fact.incarnation)),
        server: text(history.server_name(fact.server)),
        audit_id: Some(history.audit_id(fact.audit_id)).filter(|id| !id.is_empty()),
        says: &fact.says,
    }
}

fn revision(revision: Revision) -> Option<String> {
    revision.known().map(|r| r.to_string())
}

fn key(history: &history::History, key: KeyId) -> Option<String> {
    key.is_some().then(|| history.key_name(key))
}

fn text(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
