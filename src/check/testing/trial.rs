//! Runs one rule over a sketch, for tests.

use crate::check::{Evidence, Facts, Finding, Kind, Options, Rule, RuleResult};
use crate::history::sketch::evidence;
use crate::history::{Domains, History, load};
use crate::ingest::{FileId, InputFile, ReadOptions, SourceRule};
use crate::model::declaration::{Declarations, Mistake};
use crate::order::{Order, OrderOptions};
use std::sync::Arc;

/// The result of a rule.
pub struct Trial {
    /// Its findings.
    pub findings: Vec<Finding>,
    /// Obligations checked.
    pub checked: u64,
    /// Obligations left open.
    pub undecided: u64,
    /// The reason why the rule as a whole is open.
    pub open: Option<String>,
}

impl Trial {
    /// The kinds of the findings.
    pub fn kinds(&self) -> Vec<Kind> {
        self.findings.iter().map(|f| f.kind).collect()
    }
}

/// Runs a rule over a sketch.
pub fn trial(rule: &Rule, sketch: &str) -> Trial {
    judged(rule, &drawn(sketch))
}

/// Runs a rule over a sketch, with options.
pub fn trial_with(rule: &Rule, sketch: &str, options: Options) -> Trial {
    judged_with(rule, &drawn(sketch), &options)
}

/// The kinds of a rule's findings in a sketch.
pub fn kinds(rule: &Rule, sketch: &str) -> Vec<Kind> {
    trial(rule, sketch).kinds()
}

/// Whether a rule checked something in a sketch and found nothing.
pub fn holds(rule: &Rule, sketch: &str) -> bool {
    let trial = trial(rule, sketch);
    if !trial.findings.is_empty() {
        let said = trial.findings.iter().map(|f| format!("{:?} {}: {}", f.kind, f.summary, f.certificate.reason));
        eprintln!("{}", said.collect::<Vec<_>>().join("\n"));
    }
    trial.findings.is_empty() && trial.checked > 0
}

/// Runs a rule over a sketch with a rules file in addition to the packs.
pub fn ruled(rule: &Rule, rules: &str, sketch: &str) -> Trial {
    let declarations = declared(rules);
    let history = drawn_for(sketch, &declarations);
    judged_with(rule, &history, &Options { declarations, ..Options::default() })
}

/// The packs and a rules file.
pub fn declared(rules: &str) -> Arc<Declarations> {
    let mut all = Declarations::shipped().clone();
    let mistakes = |mistakes: Vec<Mistake>| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    all.add(Declarations::read("rules.toml", rules).unwrap_or_else(|found| panic!("{}", mistakes(found))));
    Arc::new(all)
}

pub fn drawn(sketch: &str) -> History {
    drawn_for(sketch, Declarations::shipped())
}

/// Reads a sketch and removes the audit ids from its captures.
pub fn unlinked(sketch: &str) -> History {
    let made = evidence(sketch).unwrap_or_else(|error| panic!("{error}"));
    let sources: Vec<_> = made.sources.iter().filter_map(|s| SourceRule::parse(s).ok()).collect();
    let files: Vec<(String, String)> =
        made.files.iter().map(|(name, text)| (name.clone(), without_ids(text))).collect();
    read(files.iter().map(|(name, text)| (name.as_str(), text.as_str())), &sources)
}

fn without_ids(text: &str) -> String {
    let line = |line: &str| match line.split_once(",\"audit_id\":\"") {
        Some((before, after)) => format!("{before}{}\n", after.split_once('"').map_or("", |(_, rest)| rest)),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Reads a sketch with the fields that declarations name.
pub fn drawn_for(sketch: &str, declarations: &Declarations) -> History {
    let made = evidence(sketch).unwrap_or_else(|error| panic!("{error}"));
    let sources: Vec<_> = made.sources.iter().filter_map(|s| SourceRule::parse(s).ok()).collect();
    let files = made.files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    read_for(files, &sources, declarations)
}

/// Read options with the fields of the packs.
pub fn reading() -> ReadOptions {
    ReadOptions { fields: Declarations::shipped().fields(), ..ReadOptions::default() }
}

/// Reads files verbatim.
pub fn read<'f>(files: impl Iterator<Item = (&'f str, &'f str)>, sources: &[SourceRule]) -> History {
    read_for(files, sources, Declarations::shipped())
}

fn read_for<'f>(
    files: impl Iterator<Item = (&'f str, &'f str)>,
    sources: &[SourceRule],
    declarations: &Declarations,
) -> History {
    let mut inputs = Vec::new();
    for (index, (name, text)) in files.enumerate() {
        let mut input = InputFile::in_memory(FileId(index as u32), name, text.as_bytes());
        if let Some(source) = sources.iter().find(|s| s.glob == name) {
            input.source = source.clone();
        }
        inputs.push(input);
    }
    let options = ReadOptions { fields: declarations.fields(), ..ReadOptions::default() };
    let history = load(inputs, &options, &Domains::default(), &());
    assert!(history.problems.is_empty(), "{:?}", history.problems);
    history
}

/// Runs a rule over a history.
pub fn judged(rule: &Rule, history: &History) -> Trial {
    judged_with(rule, history, &Options::default())
}

fn judged_with(rule: &Rule, history: &History, options: &Options) -> Trial {
    let order = Order::derive(history, &OrderOptions::default());
    let evidence = Evidence { history, order: &order, options, facts: &Facts::of_small_sizes() };
    let mut result = RuleResult::new(rule.slug, &evidence);
    rule.check(&evidence, &mut result);
    for finding in &result.findings {
        assert!((1..=5).contains(&finding.certificate.facts.len()), "{finding:?}");
    }
    Trial {
        checked: result.checked,
        undecided: result.undecided.values().sum(),
        open: result.open,
        findings: result.findings,
    }
}
