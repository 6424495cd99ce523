//! The human report, ordered for a person on call: what is wrong, why, what to do, then what was in order and what was not
//! checked.

mod clients;
mod findings;
mod heading;
#[cfg(test)]
mod tests;
mod unchecked;

pub(super) use findings::effect_label;

use super::page::{Look, Page};
use super::{Part, Report, Sink};
use crate::check::{Finding, Verdict};
use crate::history::History;
use crate::history::Nature;
use std::io;

/// The human report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Human {
    look: Look,
}

impl Human {
    /// A report with this look.
    pub fn new(look: Look) -> Self {
        Human { look }
    }
}

impl Sink for Human {
    fn write(&self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let page = &mut Page::new(out, self.look);
        heading::write(page, report)?;
        for part in &report.histories {
            if report.histories.len() > 1 {
                if is_quiet(part) && !self.look.verbose {
                    continue;
                }
                page.title(&format!("== {} ({})", part.name, part.nature.name()))?;
                heading::basis(page, part)?;
            }
            write_part(page, part)?;
        }
        unchecked::more(page, report)
    }
}

/// The paragraph of one finding as text without colour, for other formats.
pub fn passage(history: &History, finding: &Finding) -> String {
    let mut text = Vec::new();
    let look = Look { columns: 100, colour: false, verbose: false };
    findings::paragraph(&mut Page::new(&mut text, look), history, finding).expect("memory takes every byte");
    String::from_utf8(text).expect("a page is text")
}

/// Whether a history needs no section: it is an operation log among several, it holds, and it is complete.
fn is_quiet(part: &Part<'_>) -> bool {
    let holds = part.judgement.verdict == Verdict::Holds && part.judgement.findings.is_empty();
    part.nature == Nature::Operations && holds && part.history.problems.is_empty()
}

fn write_part(page: &mut Page<'_>, part: &Part<'_>) -> io::Result<()> {
    clients::write(page, part)?;
    findings::write(page, part)?;
    unchecked::rules(page, part)?;
    unchecked::inputs(page, part)
}
