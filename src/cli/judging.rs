//! Runs a check in one thread while another waits for it. A halt at any point yields a report of what is known by then.

use super::exit::Exit;
use super::halting;
use super::plan::Input;
use super::progress::Progress;
use super::reading;
use crate::Options;
use crate::check::{Facts, Judgement, RuleRun, judgement};
use crate::counterfactual::Preventions;
use crate::history::History;
use crate::order::Order;
use anyhow::Context;
use rayon::prelude::*;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Most histories that run concurrently, since they share a memory limit.
const AT_A_TIME: usize = 64;

/// Stack size of a thread: that of the main thread on most systems.
const STACK: usize = 8 << 20;

/// Interval at which the waiting thread checks for a halt.
const TICK: Duration = Duration::from_millis(10);

/// Time for the rules to notice a halt and report what they know themselves.
const TO_NOTICE: Duration = Duration::from_millis(150);

/// Findings, and occurrences of each, that a halted run lists, since it has no time to write more.
const LISTED: usize = 500;

/// A running check. It lives until the process ends, so it is never freed.
#[derive(Debug)]
struct Judging {
    begun: Instant,
    options: OnceLock<Options>,
    histories: OnceLock<Vec<Case>>,
    read: OnceLock<Duration>,
}

/// One history in work.
#[derive(Debug)]
struct Case {
    history: History,
    rules: OnceLock<RuleRun<'static>>,
    judged: Mutex<Judged>,
}

/// The results for a history so far.
#[derive(Debug, Default)]
struct Judged {
    judgement: Option<Arc<Judgement>>,
    /// Whether the report has taken the judgement, so that it is not drawn again.
    is_reported: bool,
    preventions: Preventions,
}

/// The results of a check.
#[derive(Debug)]
pub struct Known {
    /// The judgements with their histories, which live until the process ends.
    pub judged: Vec<(&'static History, Judgement)>,
    /// Duration of reading, and of reading and judging together.
    pub times: (Duration, Duration),
}

/// Reads and judges. Another thread waits for the end or a halt, then calls `report`. `begun` is the start of the run.
///
/// The work stays on the main thread, where the system's allocator returns memory sooner.
///
/// # Errors
/// If the check cannot begin, and the errors of `report`.
pub fn judge(
    begun: Instant,
    mut input: Input,
    mut options: crate::check::Options,
    report: impl FnOnce(Known) -> anyhow::Result<Exit> + Send + 'static,
) -> anyhow::Result<Exit> {
    let progress: &'static Progress = Box::leak(Box::new(Progress::over(&input.files)));
    let work: &'static Judging = Box::leak(Box::new(Judging {
        begun,
        options: OnceLock::new(),
        histories: OnceLock::new(),
        read: OnceLock::new(),
    }));
    options.halt = Some(halting::halt());
    options.deadline = input.limits.deadline;
    halting::report_from_here();
    let (done, ended) = mpsc::channel();
    let reporting = move || {
        let is_halted = !work.wait(&ended);
        progress.end();
        let exit = report(work.known());
        if is_halted {
            halting::end_with(exit);
        }
        exit
    };
    let reporter = thread::Builder::new().stack_size(STACK).spawn(reporting).context("starting a thread")?;
    work.judge(reading::read(&mut input, progress)?, &input, options);
    // After a halt the receiver no longer waits.
    let _ = done.send(());
    reporter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Judging {
    /// Waits for the end of the work or a halt. Returns whether the work ended.
    fn wait(&self, ended: &Receiver<()>) -> bool {
        let mut halted: Option<Instant> = None;
        loop {
            match ended.recv_timeout(TICK) {
                Ok(()) => return true,
                // The work failed, and its thread ends the process.
                Err(RecvTimeoutError::Disconnected) => thread::park(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if halting::halt().why().is_some() {
                let since = *halted.get_or_insert_with(Instant::now);
                if !self.has_begun() || since.elapsed() >= TO_NOTICE {
                    return false;
                }
            }
        }
    }

    fn judge(&'static self, histories: Vec<History>, input: &Input, mut options: crate::check::Options) {
        let _ = self.read.set(self.begun.elapsed());
        let share = histories.len().clamp(1, AT_A_TIME) as u64;
        // The evidence in memory counts against the limit.
        let left = input.limits.memory.saturating_sub(halting::held());
        options.memory = Some(usize::try_from(left / share).unwrap_or(usize::MAX));
        let options = self.options.get_or_init(|| Options { order: input.order.clone(), check: options });
        let case = |history| Case { history, rules: OnceLock::new(), judged: Mutex::default() };
        let cases = self.histories.get_or_init(|| histories.into_iter().map(case).collect());
        cases.par_iter().for_each(|case| case.judge(options));
    }

    fn has_begun(&self) -> bool {
        self.histories.get().is_some_and(|cases| cases.iter().any(|case| case.rules.get().is_some()))
    }

    /// The results so far.
    fn known(&'static self) -> Known {
        let judged = match (self.histories.get(), self.options.get()) {
            (Some(cases), Some(options)) => cases.iter().map(|case| (&case.history, case.known(options))).collect(),
            _ => vec![self.unread()],
        };
        let all = self.begun.elapsed();
        Known { judged, times: (self.read.get().copied().unwrap_or(all), all) }
    }

    /// A placeholder for evidence that was not read to its end, with an unknown verdict.
    fn unread(&self) -> (&'static History, Judgement) {
        let why = format!("{} while the evidence was read", halting::halt().why().unwrap_or("the run was ended"));
        (Box::leak(Box::default()), judgement::undecided(&why))
    }
}

impl Case {
    fn judge(&'static self, options: &'static Options) {
        if options.check.halted().is_some() {
            return;
        }
        let order: &'static Order = Box::leak(Box::new(Order::derive(&self.history, &options.order)));
        let derived: &'static Facts = Box::leak(Box::default());
        let rules = self.rules.get_or_init(|| RuleRun::new(&self.history, order, &options.check, derived));
        rules.run();
        let Some(judgement) = self.draw(rules) else { return };
        let preventions = Preventions::of(&self.history, order, &options.check, &judgement.findings);
        self.judged().preventions = preventions;
    }

    /// Draws the judgement once. `None` if it was reported already.
    fn draw(&self, rules: &RuleRun<'_>) -> Option<Arc<Judgement>> {
        let mut judged = self.judged();
        if judged.judgement.is_none() && !judged.is_reported {
            judged.judgement = Some(Arc::new(rules.judgement()));
        }
        judged.judgement.clone()
    }

    /// Takes the judgement for the report. It is copied only if the rules' thread still reads it.
    fn take(&self, rules: &RuleRun<'_>) -> Option<Judgement> {
        let drawn = self.draw(rules)?;
        let mut judged = self.judged();
        (judged.judgement, judged.is_reported) = (None, true);
        Some(Arc::unwrap_or_clone(drawn))
    }

    fn known(&self, options: &Options) -> Judgement {
        let Some(mut judgement) = self.rules.get().and_then(|rules| self.take(rules)) else {
            let why = options.check.halted().unwrap_or("the run was ended");
            return judgement::undecided(&format!("{why} before the revision order was derived"));
        };
        std::mem::take(&mut self.judged().preventions).fill(&mut judgement, &options.check);
        if let Some(why) = options.check.halted() {
            shorten(&mut judgement, why);
        }
        judgement
    }

    fn judged(&self) -> MutexGuard<'_, Judged> {
        self.judged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the gravest findings, and the first occurrences of each.
fn shorten(judgement: &mut Judgement, why: &str) {
    let left = judgement.findings.len().saturating_sub(LISTED);
    if left > 0 {
        judgement.findings.truncate(LISTED);
        judgement.unchecked.push(format!("{why}: {left} more findings are not listed"));
    }
    for finding in &mut judgement.findings {
        let left = finding.occurrences.len().saturating_sub(LISTED);
        if left > 0 {
            finding.occurrences.truncate(LISTED);
            judgement
                .unchecked
                .push(format!("{why}: {left} more occurrences of {} {} are not listed", finding.rule, finding.id));
        }
    }
}
