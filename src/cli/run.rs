//! Runs plans.

use super::console::tell;
use super::exit::Exit;
use super::halting;
use super::judging::{self, Known};
use super::plan::{Explaining, Input, Plan, Showing};
use super::reading::read_whole;
use crate::check::{self, Group, RULES};
use crate::explain::words::broken_by;
use crate::history::History;
use crate::history::Nature;
use crate::order::Order;
use crate::report::page::{Column, Look, Page, Row, Tone};
use crate::report::{Part, Report, calls, cluster, contract, decisions, evidence, overview, reading};
use std::io::Write;
use std::time::{Duration, Instant};

/// `retrograde check`.
pub fn check(plan: Plan) -> anyhow::Result<Exit> {
    let begin = Instant::now();
    halting::keep(plan.input.limits);
    let Plan { input, rules, focus, outputs, baseline, timings, fail_on } = plan;
    judging::judge(begin, input, rules, move |known| {
        let Known { mut judged, times: (read, all) } = known;
        judged.iter_mut().for_each(|(history, judgement)| judgement.narrow(history, &focus));
        let parts = judged.iter().map(|(history, judgement)| Part::of(history, judgement));
        let report = Report { histories: parts.collect() };
        halting::decided(report.verdict().word());
        // An output that cannot be written does not prevent the others.
        let written: Vec<_> = outputs.into_iter().map(|output| output.write(&report)).collect();
        written.into_iter().collect::<anyhow::Result<()>>()?;
        if let Some(baseline) = &baseline {
            let (known, new) = baseline.count(&report);
            tell(format_args!("baseline: {known} findings are known, {new} are not"));
        }
        if timings {
            let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
            let steps = [("reading", read), ("judging", all - read), ("writing", begin.elapsed() - all)];
            for (step, time) in steps {
                tell(format_args!("{step}  {:>10.1} ms", milliseconds(time)));
            }
        }
        let exit = Exit::of(&report, fail_on, baseline.as_ref());
        // The process ends here; freeing millions of rows would only take time.
        std::mem::forget(judged);
        Ok(exit)
    })
}

/// `retrograde show`.
pub fn show(mut showing: Showing, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let histories = read_whole(&mut showing.input)?;
    let mut out = std::io::BufWriter::new(out);
    let page = &mut Page::new(&mut out, showing.look);
    for (at, history) in histories.iter().enumerate() {
        if at > 0 {
            page.gap()?;
        }
        match (&showing.question, history.nature()) {
            (_, nature) if showing.contract => match nature {
                Nature::Kubernetes => show_contract(page, history, &showing.input)?,
                Nature::Etcd | Nature::Operations => {
                    let name = history.inputs.first().map_or("the evidence", |input| &input.shown);
                    page.paragraph(0, Tone::Plain, &format!("{name} has no reads of Kubernetes"))?;
                }
            },
            (None, Nature::Operations) => calls::overview(page, history)?,
            (Some(question), Nature::Operations) => calls::write(page, history, question)?,
            (question, Nature::Kubernetes | Nature::Etcd) => {
                show_cluster(page, history, &showing.input, question.as_ref())?
            }
        }
    }
    out.flush()?;
    Ok(Exit::Holds)
}

/// `retrograde explain`. Exit code 3 if no request matches.
pub fn explain(mut plan: Explaining, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let histories = read_whole(&mut plan.input)?;
    let mut out = std::io::BufWriter::new(out);
    let page = &mut Page::new(&mut out, plan.look);
    let options = check::Options { declarations: plan.input.declarations.clone(), ..check::Options::default() };
    let mut met = false;
    for history in histories.iter().filter(|history| history.nature() != Nature::Operations) {
        let order = Order::derive(history, &plan.input.order);
        let evidence = check::Evidence { history, order: &order, options: &options, facts: &check::Facts::default() };
        met |= if plan.wanted.is_of_a_client() {
            decisions::write(page, &evidence, &plan.wanted)?
        } else {
            reading::write(page, &evidence, &check::judge(history, &order, &options), &plan.wanted)?
        };
    }
    out.flush()?;
    Ok(if met { Exit::Holds } else { Exit::Unknown })
}

/// Every rule runs: their findings say which answers broke a promise.
fn show_contract(page: &mut Page<'_>, history: &History, input: &Input) -> anyhow::Result<()> {
    let order = Order::derive(history, &input.order);
    let options = check::Options { declarations: input.declarations.clone(), ..check::Options::default() };
    contract::write(page, history, &check::judge(history, &order, &options))?;
    Ok(())
}

fn show_cluster(
    page: &mut Page<'_>,
    history: &History,
    input: &Input,
    question: Option<&evidence::Question>,
) -> anyhow::Result<()> {
    let order = Order::derive(history, &input.order);
    if let (Some(recorded), Some(analysis)) = (history.cluster(), &order.etcd) {
        match question {
            Some(question) => cluster::write(page, history, recorded, analysis, question)?,
            None => cluster::overview(page, history, recorded, analysis)?,
        }
        return Ok(());
    }
    match question {
        Some(question) => evidence::write(page, history, &order, question)?,
        None => {
            // No rule runs: only the parts of the judgement about the evidence itself are needed.
            let skip = RULES.iter().map(|rule| rule.slug.to_owned()).collect();
            let judgement = check::judge(history, &order, &check::Options { skip, ..check::Options::default() });
            overview::write(page, history, &judgement.coverage)?;
        }
    }
    Ok(())
}

/// `retrograde rules`.
pub fn rules(slug: Option<&str>, look: Look, out: &mut dyn Write) -> anyhow::Result<Exit> {
    if let Some(rule) = slug.and_then(check::registry::find) {
        writeln!(out, "{}", rule.page.trim_end())?;
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
