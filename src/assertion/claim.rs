//! Assertions of tests about histories, and the report if one fails.

use super::claim_error::{Cause, ClaimError};
use super::outline;
use super::recorder::Recording;
use crate::check::{Finding, Judgement, Kind, Verdict};
use crate::history::{self, Domains, History};
use crate::ingest;
use crate::model::Spec;
use crate::model::declaration::Declarations;
use crate::report::{Format, Look, Part, Report};
use crate::search::{self, Budget};
use crate::{Options, verify};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The environment variable that names the folder for reports of failed claims.
const REPORT_DIR: &str = "RETROGRADE_REPORT_DIR";

/// Time for minimizing the core of a violation.
const MINIMISING: Duration = Duration::from_secs(2);

/// The meaning of an undecided history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Undecided {
    /// The assertion fails, because nothing was proved.
    #[default]
    Fails,
    /// The assertion passes.
    Passes,
}

/// An assertion. By default every violation fails, and so does an unknown verdict.
#[derive(Clone, Debug)]
pub struct Claim {
    options: Options,
    fail_on: Kind,
    allowed: Vec<String>,
    undecided: Undecided,
    time: Option<Duration>,
    folder: Option<PathBuf>,
    name: String,
    rules_files: Vec<PathBuf>,
}

impl Default for Claim {
    fn default() -> Self {
        Claim {
            options: Options::default(),
            fail_on: Kind::Violation,
            allowed: Vec::new(),
            undecided: Undecided::Fails,
            time: None,
            folder: std::env::var_os(REPORT_DIR).filter(|dir| !dir.is_empty()).map(PathBuf::from),
            name: String::new(),
            rules_files: Vec::new(),
        }
    }
}

/// A source of histories of evidence: a history, a recording, or the path of files.
pub trait Evidence {
    /// Loads the histories with these declarations and passes them to `judge`.
    ///
    /// # Errors
    /// If the evidence cannot be read.
    #[doc(hidden)]
    fn judged<R>(&self, declarations: &Declarations, judge: impl FnOnce(&[History]) -> R) -> Result<R, ClaimError>;
}

/// A history keeps the fields that it was read with. For a rules file, read it with [`crate::read_options_for`] its declarations.
impl Evidence for History {
    fn judged<R>(&self, _: &Declarations, judge: impl FnOnce(&[History]) -> R) -> Result<R, ClaimError> {
        Ok(judge(std::slice::from_ref(self)))
    }
}

/// A file, or all evidence in a folder.
impl Evidence for Path {
    fn judged<R>(&self, declarations: &Declarations, judge: impl FnOnce(&[History]) -> R) -> Result<R, ClaimError> {
        let inputs = ingest::inputs(&[self.to_owned()], &[], &[]).map_err(ClaimError::unusable)?;
        let options = crate::read_options_for(declarations);
        Ok(judge(&history::load_each(inputs, &options, &Domains::default(), &())))
    }
}

impl Evidence for PathBuf {
    fn judged<R>(&self, declarations: &Declarations, judge: impl FnOnce(&[History]) -> R) -> Result<R, ClaimError> {
        self.as_path().judged(declarations, judge)
    }
}

impl<E: Evidence + ?Sized> Evidence for &E {
    fn judged<R>(&self, declarations: &Declarations, judge: impl FnOnce(&[History]) -> R) -> Result<R, ClaimError> {
        (**self).judged(declarations, judge)
    }
}

impl Claim {
    /// Checks only these rules, by slug.
    pub fn only<S: Into<String>>(mut self, rules: impl IntoIterator<Item = S>) -> Self {
        self.options.check.only = rules.into_iter().map(Into::into).collect();
        self
    }

    /// Findings of this rule never fail; the report still shows them.
    pub fn allow(mut self, rule: impl Into<String>) -> Self {
        self.allowed.push(rule.into());
        self
    }

    /// The least serious kind of finding that fails; by default violations.
    pub fn fail_on(mut self, kind: Kind) -> Self {
        self.fail_on = kind;
        self
    }

    /// Sets the meaning of an undecided history.
    pub fn undecided(mut self, undecided: Undecided) -> Self {
        self.undecided = undecided;
        self
    }

    /// Limits the time of searches; what is open then is unknown.
    pub fn within(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// Limits the memory of a search, in bytes.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.options.check.memory = Some(bytes);
        self
    }

    /// Adds a rules file: the meaning of fields of your own resources, and rules about them (`docs/rules-file.md`). May be called
    /// several times. Files of evidence are then read with the fields that it names.
    pub fn rules_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.rules_files.push(path.into());
        self
    }

    /// Declares facts about clocks and processes.
    pub fn order(mut self, order: crate::order::OrderOptions) -> Self {
        self.options.order = order;
        self
    }

    /// The name of report files; by default that of the test.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The folder for reports of failures, instead of `RETROGRADE_REPORT_DIR`.
    pub fn report_into(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Checks every rule against the evidence.
    ///
    /// # Errors
    /// If the evidence refutes the claim or leaves it open, or if a rule or a file cannot be used.
    pub fn consistent(&self, evidence: &impl Evidence) -> Result<(), ClaimError> {
        for slug in self.options.check.only.iter().chain(&self.allowed) {
            if crate::check::registry::find(slug).is_none() {
                let expected = "expected the slug of a rule";
                return Err(ClaimError::unusable(format_args!(
                    "{expected}, found {slug:?}; `retrograde rules` lists all slugs"
                )));
            }
        }
        let mut options = self.options.clone();
        if !self.rules_files.is_empty() {
            options.check.declarations = crate::rules_files(&self.rules_files).map_err(ClaimError::unusable)?;
        }
        options.check.deadline = self.time.and_then(|time| Instant::now().checked_add(time));
        let declarations = options.check.declarations.clone();
        evidence.judged(&declarations, |histories| {
            let judgements: Vec<Judgement> = histories.iter().map(|history| crate::judge(history, &options)).collect();
            let parts = histories.iter().zip(&judgements).map(|(history, judgement)| Part::of(history, judgement));
            self.settle(parts.collect())
        })?
    }

    /// Checks that some order of the calls explains every answer. A found order is checked again by [`verify`].
    ///
    /// # Errors
    /// If no order explains the answers, if the budget does not suffice, or if the recorded calls are not a history.
    pub fn linearizable<S: Spec>(
        &self,
        spec: &S,
        recording: &impl Recording<S::Operation, S::Answer>,
    ) -> Result<(), ClaimError> {
        let calls = recording
            .calls()
            .map_err(|error| ClaimError::unusable(format_args!("the recorded calls are not a history: {error}")))?;
        let budget = Budget { time: self.time, memory: self.options.check.memory, cancel: None };
        let verdict = match search::check(spec, &calls, &budget) {
            search::Verdict::Violated(core) => {
                let time = self.time.map_or(MINIMISING, |time| time.min(MINIMISING));
                search::Verdict::Violated(search::minimal(spec, &calls, &core, &Budget { time: Some(time), ..budget }))
            }
            decided => decided,
        };
        if let search::Verdict::Linearizable(found) = &verdict {
            return verify::linearization(spec, &calls, &found.order).map_err(|flaw| {
                let text = format!("the search found an order that `verify` rejects, a bug of retrograde: {flaw}");
                ClaimError { cause: Cause::Undecided, text }
            });
        }
        let (history, judgement) = outline::outline::<S>(&calls, &verdict, &|process| recording.name(process));
        let part = Part { name: "recording", ..Part::of(&history, &judgement) };
        self.settle(vec![part])
    }

    fn settle(&self, parts: Vec<Part<'_>>) -> Result<(), ClaimError> {
        let fails = |finding: &Finding| finding.kind <= self.fail_on && !self.allowed.iter().any(|r| r == finding.rule);
        let failed = parts.iter().any(|part| part.judgement.findings.iter().any(fails));
        let open = parts.is_empty() || parts.iter().any(|part| self.is_open(part.judgement));
        if !failed && (self.undecided == Undecided::Passes || !open) {
            return Ok(());
        }
        let report = Report { histories: parts };
        let mut text = written(&report, Format::Human);
        match self.folder.as_deref().map(|folder| self.keep(folder, &report)) {
            Some(Ok(paths)) => paths.iter().for_each(|path| {
                let _ = write!(text, "\nreport: {}", path.display());
            }),
            Some(Err(error)) => {
                let _ = write!(text, "\ncannot write the report: {error}");
            }
            None => {}
        }
        Err(ClaimError { cause: if failed { Cause::Refuted } else { Cause::Undecided }, text })
    }

    /// Whether some undecided rule or problem counts, because it is not allowed to fail.
    fn is_open(&self, judgement: &Judgement) -> bool {
        let open = |verdict: &Verdict| matches!(verdict, Verdict::Unknown(_));
        let allowed = |slug: &str| self.allowed.iter().any(|rule| rule == slug);
        let rules = judgement.rules.iter().any(|report| open(&report.verdict) && !allowed(report.rule));
        // Problems outside all rules: unreadable or missing evidence.
        let blamed = judgement.rules.iter().any(|report| open(&report.verdict) || report.verdict == Verdict::Violated);
        rules || (open(&judgement.verdict) && !blamed)
    }

    fn keep(&self, folder: &Path, report: &Report<'_>) -> std::io::Result<Vec<PathBuf>> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        std::fs::create_dir_all(folder)?;
        let test = std::thread::current().name().unwrap_or("test").to_owned();
        let name = if self.name.is_empty() { test } else { self.name.clone() };
        let name: String =
            name.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).take(100).collect();
        let name = format!("{name}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut paths = Vec::new();
        for (format, extension) in [(Format::Html, "html"), (Format::Json, "json")] {
            let path = folder.join(format!("{name}.{extension}"));
            std::fs::write(&path, written(report, format))?;
            paths.push(path);
        }
        Ok(paths)
    }
}

fn written(report: &Report<'_>, format: Format) -> String {
    let mut out = Vec::new();
    report.write(format, Look::default(), &mut out).expect("memory takes every byte");
    String::from_utf8_lossy(&out).into_owned()
}
