//! The expected result of a history: kind, rule, whose promise, client; and the verdict.

use libtest_mimic::Failed;
use retrograde::check::{BrokenBy, Finding, Judgement};
use retrograde::history::History;
use std::collections::BTreeSet;

/// Whether `UPDATE=1` asks to rewrite expectations.
pub fn updating() -> bool {
    std::env::var_os("UPDATE").is_some_and(|v| v == "1")
}

/// The word for the party that broke its promise.
pub fn whom(finding: &Finding) -> &'static str {
    match finding.broken_by {
        BrokenBy::Server => "server",
        BrokenBy::Client => "client",
        BrokenBy::Nobody => "nobody",
    }
}

/// Findings as lines `KIND RULE by WHOM: CLIENT`, in order, without repeats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    findings: BTreeSet<String>,
    verdict: String,
    /// The `--source` values for reading the history, if the expectation names them.
    sources: Vec<String>,
}

impl Expectation {
    /// The result of a judgement.
    pub fn of(history: &History, judgement: &Judgement) -> Expectation {
        let findings = judgement.findings.iter().map(|f| {
            let whom = whom(f);
            // Without a known client the line ends with the colon.
            let client = history.client_name(f.incarnation);
            format!("{} {} by {whom}: {client}", f.kind_word(), f.rule).trim_end().to_owned()
        });
        Expectation { findings: findings.collect(), verdict: judgement.verdict.word().to_owned(), sources: Vec::new() }
    }

    /// The expectations in a sketch.
    pub fn in_sketch(text: &str) -> Expectation {
        let lines = || text.lines().filter_map(|line| line.strip_prefix("#= ")).map(str::trim);
        let verdict = lines().find_map(|line| line.strip_prefix("verdict ")).unwrap_or_default().to_owned();
        let findings = lines().filter(|line| !line.starts_with("verdict ")).map(str::to_owned).collect();
        Expectation { findings, verdict, sources: Vec::new() }
    }

    /// The sketch with these expectations instead of its own.
    pub fn write_into(&self, text: &str) -> String {
        let story: Vec<&str> = text.lines().filter(|line| !line.starts_with("#= ")).collect();
        let mut written = story.join("\n").trim_end().to_owned() + "\n\n";
        for finding in &self.findings {
            written += &format!("#= {finding}\n");
        }
        written + &format!("#= verdict {}\n", self.verdict)
    }

    /// The expectations of an incident.
    #[allow(dead_code)] // not every test that shares this file reads incidents
    pub fn from_json(text: &str) -> Result<Expectation, Failed> {
        let json: serde_json::Value = serde_json::from_str(text).map_err(|e| Failed::from(e.to_string()))?;
        let findings = json["findings"].as_array().into_iter().flatten();
        let sources = json["arguments"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
        Ok(Expectation {
            findings: findings.filter_map(|f| f.as_str().map(str::to_owned)).collect(),
            verdict: json["verdict"].as_str().unwrap_or("").to_owned(),
            sources: sources.filter(|text| *text != "--source").map(str::to_owned).collect(),
        })
    }

    /// The expectations of an incident as JSON.
    #[allow(dead_code)]
    pub fn to_json(&self, sources: &[String]) -> String {
        let list = |lines: Vec<String>| match lines.is_empty() {
            true => "[]".to_owned(),
            false => format!("[\n    {}\n  ]", lines.join(",\n    ")),
        };
        let quoted = |text: &String| serde_json::Value::from(text.as_str()).to_string();
        let arguments = list(sources.iter().map(|s| format!("\"--source\", {}", quoted(s))).collect());
        let findings = list(self.findings.iter().map(quoted).collect());
        format!(
            "{{\n  \"arguments\": {arguments},\n  \"verdict\": \"{}\",\n  \"findings\": {findings}\n}}\n",
            self.verdict
        )
    }

    /// The `--source` values for reading the history.
    #[allow(dead_code)]
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// The findings.
    #[allow(dead_code)]
    pub fn findings(&self) -> impl Iterator<Item = &str> {
        self.findings.iter().map(String::as_str)
    }

    fn rule(line: &str) -> &str {
        line.split(' ').nth(1).unwrap_or("")
    }

    /// Whether a rule has a finding.
    #[allow(dead_code)]
    pub fn names(&self, slug: &str) -> bool {
        self.findings.iter().any(|line| Self::rule(line) == slug)
    }

    /// Fails on a finding other than a hazard.
    #[allow(dead_code)]
    pub fn is_harmless(&self) -> Result<(), Failed> {
        match self.findings.iter().find(|line| !line.starts_with("hazard ")) {
            Some(line) => Err(format!("found {line}").into()),
            None => Ok(()),
        }
    }

    /// Compares findings and verdict with those of `found`.
    pub fn compare(&self, found: &Expectation) -> Result<(), Failed> {
        let mut report = String::new();
        for line in self.findings.difference(&found.findings) {
            report += &format!("  not found: {line}\n");
        }
        for line in found.findings.difference(&self.findings) {
            report += &format!("  not expected: {line}\n");
        }
        if self.verdict != found.verdict {
            report += &format!("  verdict {}, expected \"{}\"\n", found.verdict, self.verdict);
        }
        if report.is_empty() { Ok(()) } else { Err(report.into()) }
    }
}
