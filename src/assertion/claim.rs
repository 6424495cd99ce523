//! What a test asserts of a history, and the report where it does not hold.

use super::outline;
use super::recorder::Recording;
use crate::check::{Finding, Judgement, Kind, Verdict};
use crate::history::History;
use crate::model::Spec;
use crate::report::page::Look;
use crate::report::{Format, Part, Report};
use crate::search::{self, Budget};
use crate::{Options, verify};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The variable that names the folder for reports of failed claims.
const REPORT_DIR: &str = "RETROGRADE_REPORT_DIR";

/// How long is spent on leaving calls out of a violation that are not needed for it.
const MINIMISING: Duration = Duration::from_secs(2);

/// What an undecided history means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Undecided {
    /// The assertion fails: what was not decided was not shown.
    #[default]
    Fails,
    /// The assertion passes.
    Passes,
}

/// What is asserted: every violation fails, and what is unknown, unless it says otherwise.
#[derive(Clone, Debug)]
pub struct Claim {
    options: Options,
    fail_on: Kind,
    allowed: Vec<String>,
    undecided: Undecided,
    time: Option<Duration>,
    folder: Option<PathBuf>,
    name: String,
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
        }
    }
}

/// Something that a history of evidence can be made of: a history, or what recorded it.
pub trait Evidence {
    /// Hands the history to somebody who judges it.
    fn judged<R>(&self, judge: impl FnOnce(&History) -> R) -> R;
}

impl Evidence for History {
    fn judged<R>(&self, judge: impl FnOnce(&History) -> R) -> R {
        judge(self)
    }
}

impl Claim {
    /// Only these rules, by slug.
    pub fn only<S: Into<String>>(mut self, rules: impl IntoIterator<Item = S>) -> Self {
        self.options.check.only = rules.into_iter().map(Into::into).collect();
        self
    }

    /// Findings of this rule never fail; they are still in the report.
    pub fn allow(mut self, rule: impl Into<String>) -> Self {
        self.allowed.push(rule.into());
        self
    }

    /// The least grave kind of finding that fails: by default violations.
    pub fn fail_on(mut self, kind: Kind) -> Self {
        self.fail_on = kind;
        self
    }

    /// What an undecided history means.
    pub fn undecided(mut self, undecided: Undecided) -> Self {
        self.undecided = undecided;
        self
    }

    /// Time for searching; what is open then is unknown.
    pub fn within(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// Bytes that a search may hold.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.options.check.memory = Some(bytes);
        self
    }

    /// What is known of clocks and processes.
    pub fn order(mut self, order: crate::order::OrderOptions) -> Self {
        self.options.order = order;
        self
    }

    /// A name for files of reports; by default that of the test.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Where reports of failures go, instead of what `RETROGRADE_REPORT_DIR` says.
    pub fn report_into(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Whether the evidence is consistent.
    ///
    /// # Errors
    /// The human report, where it is not.
    pub fn consistent(&self, evidence: &impl Evidence) -> Result<(), String> {
        for slug in self.options.check.only.iter().chain(&self.allowed) {
            if crate::check::rules::find(slug).is_none() {
                return Err(format!("no rule is called {slug:?}; `retrograde rules` lists them"));
            }
        }
        let mut options = self.options.clone();
        options.check.deadline = self.time.and_then(|time| Instant::now().checked_add(time));
        evidence.judged(|history| {
            let judgement = crate::judge(history, &options);
            self.settle(&Part::of(history, &judgement))
        })
    }

    /// Whether some order of the calls explains every answer. An order that is found is checked again by [`verify`].
    ///
    /// # Errors
    /// The human report, where there is none.
    pub fn linearizable<S: Spec>(
        &self,
        spec: &S,
        recording: &impl Recording<S::Operation, S::Answer>,
    ) -> Result<(), String> {
        let calls = recording.calls().map_err(|error| format!("what was recorded is no history: {error}"))?;
        let budget = Budget { time: self.time, memory: self.options.check.memory, cancel: None };
        let verdict = match search::check(spec, &calls, &budget) {
            search::Verdict::Violated(core) => {
                let time = self.time.map_or(MINIMISING, |time| time.min(MINIMISING));
                search::Verdict::Violated(search::minimal(spec, &calls, &core, &Budget { time: Some(time), ..budget }))
            }
            decided => decided,
        };
        if let search::Verdict::Linearizable(found) = &verdict {
            return match verify::linearization(spec, &calls, &found.order) {
                Ok(()) => Ok(()),
                Err(flaw) => {
                    Err(format!("the search found an order that is none, which is a fault of retrograde: {flaw}"))
                }
            };
        }
        let (history, judgement) = outline::outline::<S>(&calls, &verdict, &|process| recording.name(process));
        let part = Part { name: "recording", ..Part::of(&history, &judgement) };
        self.settle(&part)
    }

    fn settle(&self, part: &Part<'_>) -> Result<(), String> {
        let judgement = part.judgement;
        let fails =
            |finding: &&Finding| finding.kind <= self.fail_on && !self.allowed.iter().any(|r| r == finding.rule);
        let failed = judgement.findings.iter().any(|finding| fails(&finding));
        if !failed && (self.undecided == Undecided::Passes || !self.is_open(judgement)) {
            return Ok(());
        }
        let report = Report { histories: vec![*part] };
        let mut text = written(&report, Format::Human);
        match self.folder.as_deref().map(|folder| self.keep(folder, &report)) {
            Some(Ok(paths)) => paths.iter().for_each(|path| {
                let _ = write!(text, "\nreport: {}", path.display());
            }),
            Some(Err(error)) => {
                let _ = write!(text, "\nno report could be written: {error}");
            }
            None => {}
        }
        Err(text)
    }

    /// Whether something is undecided that is not allowed to be wrong anyway.
    fn is_open(&self, judgement: &Judgement) -> bool {
        let open = |verdict: &Verdict| matches!(verdict, Verdict::Unknown(_));
        let allowed = |slug: &str| self.allowed.iter().any(|rule| rule == slug);
        let rules = judgement.rules.iter().any(|report| open(&report.verdict) && !allowed(report.rule));
        // What no rule is to blame for: unreadable or missing evidence.
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
    format.sink(Look::default()).write(report, &mut out).expect("memory takes every byte");
    String::from_utf8_lossy(&out).into_owned()
}
