//! Progress of reading on standard error, only on a terminal.

use super::halting;
use crate::ingest::{self, InputFile};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A progress bar in bytes.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar over these inputs; hidden if standard error is no terminal.
    pub fn over(inputs: &[InputFile]) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress { bar: ProgressBar::hidden() };
        }
        // The files of an archive share its size.
        let first = |at: &usize| *at == 0 || inputs[*at].member.is_none() || inputs[*at - 1].path != inputs[*at].path;
        let sizes: Option<u64> = (0..inputs.len())
            .filter(first)
            .map(|at| &inputs[at])
            .map(|input| std::fs::metadata(&input.path).ok().filter(|data| data.is_file()).map(|data| data.len()))
            .sum();
        let (bar, template) = match sizes {
            Some(total) => {
                (ProgressBar::new(total), "reading {bar:32} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left")
            }
            // The length of a pipe is unknown.
            None => (ProgressBar::no_length(), "reading {spinner} {bytes}, {bytes_per_sec}"),
        };
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(ProgressStyle::with_template(template).expect("a fixed template"));
        Progress { bar }
    }

    /// Switches to the text for judging.
    pub fn judging(&self) {
        self.bar.set_style(ProgressStyle::with_template("judging {bytes} of evidence").expect("a fixed template"));
        self.bar.tick();
    }

    /// Removes the bar from the screen.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl ingest::Progress for Progress {
    fn bytes(&self, n: u64) {
        halting::pause_if_halted();
        self.bar.inc(n);
    }
}
