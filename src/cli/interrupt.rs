//! Ctrl-C, and the signal that ends a process (SIGTERM): while evidence is read there is nothing to report; later what was decided is
//! reported, and the rest is unknown. No signal leaves half a file.

use super::console::tell;
use super::exit::Exit;
use super::output;
use std::sync::atomic::{AtomicBool, Ordering};

static CANCELLED: AtomicBool = AtomicBool::new(false);
static REPORTS: AtomicBool = AtomicBool::new(false);

/// Takes the signals from here on. Without a handler they end the process, as they always did.
pub fn watch() {
    handle(|| {
        if !REPORTS.load(Ordering::Relaxed) || CANCELLED.swap(true, Ordering::Relaxed) {
            output::abandon();
            tell("interrupted: no report was made");
            std::process::exit(Exit::NoReport.code().into());
        }
    });
}

/// From here on there is something to report: the first signal sets this, and a second one ends the process at once.
pub fn report_from_here() {
    REPORTS.store(true, Ordering::Relaxed);
}

/// What the first signal sets.
pub fn cancelled() -> &'static AtomicBool {
    &CANCELLED
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
