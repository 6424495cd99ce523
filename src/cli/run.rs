//! Runs what was planned.

use super::exit::Exit;
use super::is_broken_pipe;
use super::plan::{Input, Plan, Showing};
use super::progress::Progress;
use crate::check::{self, Group, RULES};
use crate::explain::words::broken_by;
use crate::history::{self, History};
use crate::order::Order;
use crate::report::page::{Column, Look, Page, Row, Tone};
use crate::report::{Nature, Part, Report, evidence, overview};
use anyhow::Context;
use std::io::Write;
use std::time::Instant;

/// `retrograde check`.
pub fn check(mut plan: Plan) -> anyhow::Result<Exit> {
    plan.rules.deadline = plan.time_budget.and_then(|budget| Instant::now().checked_add(budget));
    let (history, progress) = read(&mut plan.input)?;
    let judgement = crate::judge(&history, &crate::Options { order: plan.input.order, check: plan.rules });
    progress.end();
    let part = Part { name: "kubernetes", nature: Nature::Kubernetes, history: &history, judgement: &judgement };
    let report = Report { histories: vec![part] };
    for output in plan.outputs {
        match output.write(&report) {
            // Who stops reading has read enough; the exit code still tells the verdict.
            Err(error) if is_broken_pipe(&error) => {}
            done => done?,
        }
    }
    let exit = Exit::of(&report, plan.fail_on);
    // The process ends here: giving millions of rows back one by one would only take time.
    std::mem::forget(judgement);
    std::mem::forget(history);
    Ok(exit)
}

/// Reads the files of the input, which are the history's from then on.
fn read(input: &mut Input) -> anyhow::Result<(History, Progress)> {
    if let Some(threads) = input.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("starting threads")?;
    }
    let files = std::mem::take(&mut input.files);
    let progress = Progress::over(&files);
    let history = history::load(files, &input.read, &input.domains, &progress);
    progress.judging();
    Ok((history, progress))
}

/// `retrograde show`.
pub fn show(mut showing: Showing, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (history, progress) = read(&mut showing.input)?;
    let order = Order::derive(&history, &showing.input.order);
    progress.end();
    let mut out = std::io::BufWriter::new(out);
    let page = &mut Page::new(&mut out, showing.look);
    match &showing.question {
        Some(question) => evidence::write(page, &history, &order.timeline, question)?,
        None => {
            // No rule runs: only what the judgement says about the evidence itself is wanted.
            let skip = RULES.iter().map(|rule| rule.slug.to_owned()).collect();
            let judgement = check::judge(&history, &order, &check::Options { skip, ..check::Options::default() });
            overview::write(page, &history, &judgement.coverage)?;
        }
    }
    out.flush()?;
    Ok(Exit::Holds)
}

/// `retrograde rules`.
pub fn rules(slug: Option<&str>, look: Look, out: &mut dyn Write) -> anyhow::Result<Exit> {
    if let Some(rule) = slug.and_then(check::rules::find) {
        writeln!(out, "{}", rule.page().trim_end())?;
        writeln!(out, "\nPromise: {}. Needs: {}.", broken_by(rule.promise), rule.needs)?;
        return Ok(Exit::Holds);
    }
    let page = &mut Page::new(out, look);
    let mut groups: Vec<Group> = Vec::new();
    for rule in RULES {
        if !groups.contains(&rule.group) {
            groups.push(rule.group);
        }
    }
    for (at, group) in groups.into_iter().enumerate() {
        if at > 0 {
            page.gap()?;
        }
        page.paragraph(0, Tone::Title, group.title())?;
        let rows: Vec<_> = RULES
            .iter()
            .filter(|rule| rule.group == group)
            .map(|rule| Row::new(vec![rule.slug.to_owned(), broken_by(rule.promise).to_owned()], rule.title.to_owned()))
            .collect();
        page.table(2, &[Column::left("rule", 24), Column::left("promise", 8)], &rows)?;
    }
    Ok(Exit::Holds)
}
