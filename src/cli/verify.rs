//! `retrograde verify`: verifies a saved report against the evidence, without the engine.

use super::exit::Exit;
use super::halting;
use super::plan::Verifying;
use crate::report::page::{Look, Page, Tone};
use crate::verify::{self, HistoryCheck, Report, Standing};
use std::io::{self, Write};

/// Limit on each question that is decided by trying all orders, in steps of the specification.
const MAX_STEPS: u64 = 1_000_000;

/// Runs it. Exit code 1 if a claim of the report is wrong, 3 if one could not be confirmed.
pub fn run(verifying: &Verifying, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let input = &verifying.input;
    halting::keep(input.limits);
    let checks = verify::report(&verifying.report, &input.files, &input.read, input.model.as_deref(), MAX_STEPS);
    let mut out = io::BufWriter::new(out);
    let exit = write(&verifying.report, &checks, verifying.look, &mut out)?;
    out.flush()?;
    Ok(exit)
}

fn label(standing: Standing) -> (Tone, &'static str) {
    match standing {
        Standing::Confirmed => (Tone::Good, "confirmed"),
        Standing::Open => (Tone::Doubt, "open"),
        Standing::Wrong => (Tone::Bad, "WRONG"),
    }
}

fn write(report: &Report, checks: &[HistoryCheck], look: Look, out: &mut dyn Write) -> io::Result<Exit> {
    let page = &mut Page::new(out, look);
    let mut worst = Standing::Confirmed;
    for (at, (history, check)) in report.histories.iter().zip(checks).enumerate() {
        if at > 0 {
            page.gap()?;
        }
        page.paragraph(0, Tone::Title, &format!("{} ({}): {}", history.name, history.kind, history.verdict))?;
        for (standing, text) in verify::standings(history, check) {
            page.labelled(2, 11, label(standing), &text)?;
            worst = worst.max(standing);
        }
    }
    if report.histories.is_empty() {
        page.paragraph(0, Tone::Doubt, "The report has no claims.")?;
        worst = Standing::Open;
    }
    Ok(match worst {
        Standing::Confirmed => Exit::Holds,
        Standing::Open => Exit::Unknown,
        Standing::Wrong => Exit::Violated,
    })
}
