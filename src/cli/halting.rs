//! Runs that end early: a signal (Ctrl-C, SIGTERM), the time budget, the memory limit. A check then says what it knows, and the rest is
//! unknown; other commands have nothing to say. Either way the process ends within a second, whatever its threads are at.

use super::console::tell;
use super::exit::Exit;
use super::output;
use crate::check::Halt;
use crate::check::options::SPENT;
use crate::explain::words::bytes;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sysinfo::{MemoryRefreshKind, Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// How long a run that is halted may go on to write what it knows. With what ends before it, that is less than the second which
/// `--time-budget` promises.
const TO_WRITE: Duration = Duration::from_millis(750);

/// How often the limits are looked at. In this time a thread fills about 50 MB.
const TICK: Duration = Duration::from_millis(10);

static HALT: Halt = Halt::new();
static REPORTS: AtomicBool = AtomicBool::new(false);
static VERDICT: OnceLock<String> = OnceLock::new();

/// What ends a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// When it ends.
    pub deadline: Option<Instant>,
    /// Bytes that the process may hold.
    pub memory: u64,
}

/// Takes the signals from here on. Without a handler they end the process, as they always did.
pub fn take_signals() {
    handle(|| {
        if !REPORTS.load(Ordering::Relaxed) || !HALT.set("interrupted") {
            end("interrupted");
        }
    });
}

/// From here on whoever halts the run has a report of what is known by then; a second signal ends the process at once.
pub fn report_from_here() {
    REPORTS.store(true, Ordering::Relaxed);
}

/// Notes the verdict, which is told where there is no time left to write a report.
pub fn decided(verdict: &str) {
    let _ = VERDICT.set(verdict.to_owned());
}

/// What is set when the run is halted.
pub fn halt() -> &'static Halt {
    &HALT
}

/// Keeps a thread from going on when the run is halted: what it reads and holds would be of no use.
pub fn pause_if_halted() {
    while HALT.why().is_some() {
        std::thread::park();
    }
}

/// Watches over the limits until the process ends.
pub fn keep(limits: Limits) {
    std::thread::spawn(move || {
        let mut held = Held::default();
        let mut since = None;
        loop {
            std::thread::sleep(TICK);
            let held = held.now();
            if held > limits.memory {
                let why = format!("the memory limit of {} was reached", bytes(limits.memory));
                match REPORTS.load(Ordering::Relaxed) {
                    true => HALT.set(why),
                    false => end(&why),
                };
            }
            if limits.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                HALT.set(SPENT);
            }
            let Some(why) = HALT.why() else { continue };
            let since = since.get_or_insert_with(Instant::now);
            // A tenth more than the limit is too much, however short the time was.
            if since.elapsed() > TO_WRITE || held > limits.memory + limits.memory / 12 {
                end(why);
            }
        }
    });
}

/// Ends the process without a report, or before all of them are written.
fn end(why: &str) -> ! {
    output::abandon();
    match VERDICT.get() {
        None => tell(format_args!("{why}: no report was made")),
        Some(verdict) => tell(format_args!("{why} before every report was written; the verdict is {verdict}")),
    }
    std::process::exit(Exit::NoReport.code().into());
}

/// Ends the process of a run that was halted, with its reports written: other threads may still be at work.
pub fn end_with(exit: anyhow::Result<Exit>) -> ! {
    // They may be writing the cache.
    output::abandon();
    std::process::exit(super::told(exit).code().into());
}

/// What a run may hold that names no limit: three quarters of the memory that the system has, or the control group of the process, if
/// that is less.
pub fn default_memory() -> u64 {
    let mut system = System::new();
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    let own = own_groups().into_iter().chain(system.cgroup_limits().map(|limits| limits.total_memory));
    own.fold(system.total_memory(), u64::min) / 4 * 3
}

/// The limits of the control group that the process is in and of those around it (Linux, version 2). `sysinfo` looks at the outermost.
fn own_groups() -> Vec<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(own) = groups.lines().find_map(|line| line.strip_prefix("0::/")) else { return Vec::new() };
    let limit = |group: &std::path::Path| {
        let text = std::fs::read_to_string(std::path::Path::new("/sys/fs/cgroup").join(group).join("memory.max"));
        text.ok()?.trim().parse().ok()
    };
    std::path::Path::new(own).ancestors().filter_map(limit).collect()
}

/// Bytes of memory that the process holds.
struct Held {
    system: System,
    process: Option<Pid>,
}

impl Default for Held {
    fn default() -> Held {
        Held { system: System::new(), process: sysinfo::get_current_pid().ok() }
    }
}

impl Held {
    /// As of now; zero where the system does not tell.
    fn now(&mut self) -> u64 {
        let Some(id) = self.process else { return 0 };
        let only = ProcessRefreshKind::nothing().with_memory().without_tasks();
        self.system.refresh_processes_specifics(ProcessesToUpdate::Some(&[id]), false, only);
        self.system.process(id).map_or(0, sysinfo::Process::memory)
    }
}

/// Bytes that the process holds now.
pub fn held() -> u64 {
    Held::default().now()
}

/// SIGHUP is left alone: `nohup` has it ignored.
#[cfg(unix)]
fn handle(act: impl Fn() + Send + 'static) {
    use signal_hook::consts::{SIGINT, SIGTERM};
    if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
        std::thread::spawn(move || signals.forever().for_each(|_| act()));
    }
}

#[cfg(not(unix))]
fn handle(act: impl Fn() + Send + 'static) {
    let _ = ctrlc::set_handler(act);
}
