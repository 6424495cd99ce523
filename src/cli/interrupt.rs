//! Ctrl-C: while evidence is read there is nothing to report; later what was decided is reported, and the rest is unknown.

use super::exit::Exit;
use std::sync::atomic::{AtomicBool, Ordering};

static CANCELLED: AtomicBool = AtomicBool::new(false);
static READING: AtomicBool = AtomicBool::new(true);

/// Watches for the signal; what it sets. A second signal ends the process at once.
pub fn watch() -> &'static AtomicBool {
    // Without a handler the signal ends the process, as it always did.
    let _ = ctrlc::set_handler(|| {
        if READING.load(Ordering::Relaxed) || CANCELLED.swap(true, Ordering::Relaxed) {
            eprintln!("interrupted: no report was made");
            std::process::exit(Exit::NoReport.code().into());
        }
    });
    &CANCELLED
}

/// From here on there is something to report.
pub fn reading_is_done() {
    READING.store(false, Ordering::Relaxed);
}
