//! Ends runs early: by signal (Ctrl-C, SIGTERM), time budget or memory limit. A check then reports what it knows and counts the
//! rest as unknown; other commands report nothing. In both cases the process ends within a second, whatever its threads are
//! doing.

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

/// Time for a halted run to write what it knows. With the steps before, it stays below the second that `--time-budget` promises.
const TO_WRITE: Duration = Duration::from_millis(750);

/// Interval between checks of the limits. In this time a thread allocates about 50 MB.
const TICK: Duration = Duration::from_millis(10);

static HALT: Halt = Halt::new();
static REPORTS: AtomicBool = AtomicBool::new(false);
static VERDICT: OnceLock<String> = OnceLock::new();

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// End of the time budget.
    pub deadline: Option<Instant>,
    /// Memory limit in bytes.
    pub memory: u64,
}

/// Handles signals from here on. Without a handler they end the process at once.
pub fn take_signals() {
    handle(|| {
        if !REPORTS.load(Ordering::Relaxed) || !HALT.set("interrupted") {
            end("interrupted");
        }
    });
}

/// Declares that a halt from here on yields a report of what is known. A second signal ends the process at once.
pub fn report_from_here() {
    REPORTS.store(true, Ordering::Relaxed);
}

/// Stores the verdict, for a message if no time is left to write a report.
pub fn decided(verdict: &str) {
    let _ = VERDICT.set(verdict.to_owned());
}

/// The flag that is set when the run is halted.
pub fn halt() -> &'static Halt {
    &HALT
}

/// Blocks the calling thread forever after a halt, since its further work would be wasted.
pub fn pause_if_halted() {
    while HALT.why().is_some() {
        std::thread::park();
    }
}

/// Enforces the limits in a thread until the process ends.
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
            // A margin above the limit is tolerated while reports are written, but not more.
            if since.elapsed() > TO_WRITE || held > limits.memory + limits.memory / 12 {
                end(why);
            }
        }
    });
}

/// Ends the process without a report, or before all reports are written.
fn end(why: &str) -> ! {
    output::abandon();
    match VERDICT.get() {
        None => tell(format_args!("{why}: no report was made")),
        Some(verdict) => tell(format_args!("{why} before every report was written; the verdict is {verdict}")),
    }
    std::process::exit(Exit::NoReport.code().into());
}

/// Ends the process of a halted run after its reports were written, while other threads may still run.
pub fn end_with(exit: anyhow::Result<Exit>) -> ! {
    // Other threads may be writing the cache.
    output::abandon();
    std::process::exit(super::exit_of(exit).code().into());
}

/// The default memory limit: three quarters of the memory of the system, or of the process's control group if that is less.
pub fn default_memory() -> u64 {
    let mut system = System::new();
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    let own = own_groups().into_iter().chain(system.cgroup_limits().map(|limits| limits.total_memory));
    own.fold(system.total_memory(), u64::min) / 4 * 3
}

/// The limits of the process's control group and its ancestors (Linux, version 2). `sysinfo` reads the outermost one only.
fn own_groups() -> Vec<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(own) = groups.lines().find_map(|line| line.strip_prefix("0::/")) else { return Vec::new() };
    let limit = |group: &std::path::Path| {
        let text = std::fs::read_to_string(std::path::Path::new("/sys/fs/cgroup").join(group).join("memory.max"));
        text.ok()?.trim().parse().ok()
    };
    std::path::Path::new(own).ancestors().filter_map(limit).collect()
}

/// Measures the memory of the process.
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
    /// Bytes held now; zero if the system does not report it.
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

/// Handles SIGINT and SIGTERM. SIGHUP is left alone, since `nohup` ignores it.
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
