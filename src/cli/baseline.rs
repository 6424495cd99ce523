//! Known findings, so that only new ones fail a build.

use super::saved_report;
use crate::check::Finding;
use crate::history::History;
use crate::report::Report;
use serde::Deserialize;
use std::collections::HashSet;
use std::path::Path;

/// The findings of an earlier report. Revisions, times and lines differ in every recording, so a finding is identified by its
/// rule, client and object.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    known: HashSet<Known>,
}

type Known = (String, String, String);

#[derive(Deserialize)]
struct Document {
    histories: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    findings: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    rule: String,
    client: Option<String>,
    key: Option<String>,
}

impl Baseline {
    /// Reads a report of `check --json`.
    pub fn read(path: &Path) -> anyhow::Result<Baseline> {
        let document: Document = saved_report("the baseline", path)?;
        let entries = document.histories.into_iter().flat_map(|part| part.findings);
        let known = entries.map(|e| (e.rule, e.client.unwrap_or_default(), e.key.unwrap_or_default()));
        Ok(Baseline { known: known.collect() })
    }

    /// Whether a finding is known.
    pub fn has(&self, history: &History, finding: &Finding) -> bool {
        let client = if finding.client.is_some() { history.name(history.clients[finding.client.index()]) } else { "" };
        let key = if finding.key.is_some() { history.key_name(finding.key) } else { String::new() };
        self.known.contains(&(finding.rule.to_owned(), client.to_owned(), key))
    }

    /// Numbers of known and of new findings in a report.
    pub fn count(&self, report: &Report<'_>) -> (usize, usize) {
        let all =
            report.histories.iter().flat_map(|part| part.judgement.findings.iter().map(move |f| (part.history, f)));
        let (known, new): (Vec<_>, Vec<_>) = all.partition(|(history, finding)| self.has(history, finding));
        (known.len(), new.len())
    }
}
