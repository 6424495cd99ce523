//! Writes the first lines: the verdict in words, and its basis.

use crate::check::{Finding, Kind, Verdict};
use crate::explain::words::{bytes, count, day, duration, stopped, thousands, time_of_day};
use crate::history::Nature;
use crate::report::cause_tree::Forest;
use crate::report::hazards::HazardGroup;
use crate::report::page::{Page, Tone};
use crate::report::summary::Extent;
use crate::report::{Part, Report, calls};
use std::collections::BTreeMap;
use std::io;

/// Columns for the labels of the heading.
const LABEL: usize = 11;

/// Histories that hold to list.
const HISTORIES: usize = 12;

/// Writes the overall verdict, and what was read for each history.
pub(super) fn write(page: &mut Page<'_>, report: &Report<'_>) -> io::Result<()> {
    let (tone, word) = match report.verdict() {
        Verdict::Violated => (Tone::Bad, "VIOLATED"),
        Verdict::Holds => (Tone::Good, "HOLDS"),
        Verdict::Unknown(_) | Verdict::NotChecked(_) => (Tone::Doubt, "UNKNOWN"),
    };
    page.labelled(0, LABEL, (tone, word), &sentence(report))?;
    match report.histories.as_slice() {
        [only] => {
            open(page, only, "")?;
            basis(page, only)
        }
        many => {
            let text = format!("{} histories, each decided on its own", many.len());
            page.labelled(0, LABEL, (Tone::Title, "Read"), &text)?;
            histories(page, many)?;
            many.iter().try_for_each(|part| open(page, part, &format!("{}: ", part.name)))
        }
    }
}

/// Undecided obligations, beside the verdict. `of` names the history if there are several.
fn open(page: &mut Page<'_>, part: &Part<'_>, of: &str) -> io::Result<()> {
    match part.undecided() {
        Some(text) => page.labelled(0, LABEL, (Tone::Doubt, "Undecided"), &format!("{of}{text}")),
        None => Ok(()),
    }
}

/// One line per history, worst first.
fn histories(page: &mut Page<'_>, parts: &[Part<'_>]) -> io::Result<()> {
    page.title("Histories")?;
    let rank = |part: &Part<'_>| match part.judgement.verdict {
        Verdict::Violated => 0,
        Verdict::Unknown(_) | Verdict::NotChecked(_) => 1,
        Verdict::Holds => 2,
    };
    for wanted in 0..3 {
        let of_rank: Vec<&Part<'_>> = parts.iter().filter(|part| rank(part) == wanted).collect();
        let listed = if wanted < 2 || page.look().verbose { of_rank.len() } else { HISTORIES };
        for part in of_rank.iter().take(listed) {
            let verdict = &part.judgement.verdict;
            let (tone, word) = match wanted {
                0 => (Tone::Bad, "violated"),
                1 => (Tone::Doubt, "unknown"),
                _ => (Tone::Good, "holds"),
            };
            let what = match part.nature {
                Nature::Operations => format!("{}; {}", calls::extent(part.history), calls::model(part.history)),
                nature => nature.name().to_owned(),
            };
            let reason = verdict.reason();
            let reason = if reason.is_empty() { String::new() } else { format!("; {reason}") };
            page.labelled(2, LABEL, (tone, word), &format!("{}: {what}{reason}", part.name))?;
        }
        if of_rank.len() > listed {
            let text =
                format!("and {} more that hold (--verbose lists them)", thousands((of_rank.len() - listed) as u64));
            page.labelled(2, LABEL, (Tone::Faint, ""), &text)?;
        }
    }
    Ok(())
}

/// Number of findings of a kind. Hazards count once per rule and client.
fn count_of(findings: &[Finding], kind: Kind) -> u64 {
    match kind {
        Kind::Hazard => HazardGroup::all(findings.iter()).len() as u64,
        kind => findings.iter().filter(|f| f.kind == kind).count() as u64,
    }
}

fn sentence(report: &Report<'_>) -> String {
    let of = |kind: Kind| report.histories.iter().map(|part| count_of(&part.judgement.findings, kind)).sum::<u64>();
    let explained = |kind: Kind| {
        // Hazards are counted by rule and client, not one by one.
        if kind == Kind::Hazard {
            return 0;
        }
        let of_part = |part: &Part<'_>| {
            let forest = Forest::of(&part.judgement.findings);
            let roots = forest.roots.iter().filter(|at| forest.findings[**at].kind == kind).count();
            part.judgement.findings.iter().filter(|f| f.kind == kind).count() - roots
        };
        report.histories.iter().map(of_part).sum::<usize>() as u64
    };
    let mut found: Vec<String> = Vec::new();
    for (kind, noun) in [(Kind::Violation, "violation"), (Kind::Suspect, "suspect"), (Kind::Hazard, "hazard")] {
        if of(kind) > 0 {
            let of_others = match explained(kind) {
                0 => String::new(),
                1 => " (1 of them follows from another one)".to_owned(),
                n => format!(" ({} of them follow from others)", thousands(n)),
            };
            found.push(format!("{}{of_others}", count(of(kind), noun)));
        }
    }
    let found = found.join(", ");
    let clients = || report.histories.iter().flat_map(|p| &p.judgement.clients);
    let total = clients().count() as u64;
    // With a focus, the report may have no client of evidence that has some.
    let has_clients = report.histories.iter().any(|part| !part.history.clients.is_empty());
    match report.verdict() {
        Verdict::Violated => {
            let misled = clients().filter(|c| c.verdict == Verdict::Violated).count() as u64;
            format!(
                "{found}. {}",
                match (misled, total) {
                    _ if !has_clients =>
                        "No client is recorded: the records of servers contradict each other.".to_owned(),
                    (0, _) => "What the clients saw is consistent, but what they did with it is not.".to_owned(),
                    (m, t) => format!(
                        "{} of {} saw what no single order of writes explains.",
                        thousands(m),
                        count(t, "client")
                    ),
                }
            )
        }
        Verdict::Holds => {
            let rules =
                || report.histories.iter().flat_map(|p| &p.judgement.rules).filter(|r| r.verdict == Verdict::Holds);
            let checked = rules().map(|r| r.checked).sum();
            let besides = if found.is_empty() { String::new() } else { format!(" Besides: {found}.") };
            let held = clients().filter(|c| c.verdict == Verdict::Holds).count() as u64;
            let who = match (held, total - held) {
                _ if !has_clients => "The evidence has no clients".to_owned(),
                (0, _) => "No client's view was checked".to_owned(),
                (1, 0) => "What the one client saw is consistent with one order of writes".to_owned(),
                (held, 0) => format!("What all {held} clients saw is consistent with one order of writes"),
                (held, open) => format!(
                    "What {} of {} saw is consistent with one order of writes; {} could not be checked",
                    thousands(held),
                    count(total, "client"),
                    thousands(open)
                ),
            };
            let checks = count(checked, "check");
            format!("no violation in {checks} by {}. {who}.{besides}", count(rules().count() as u64, "rule"))
        }
        Verdict::Unknown(reason) | Verdict::NotChecked(reason) => {
            let found = if found.is_empty() { String::new() } else { format!(" Found: {found}.") };
            let reason = if reason.is_empty() { "not everything could be decided".to_owned() } else { reason };
            let reason = stopped(reason);
            format!("no violation is proved, and that is not success: {reason}{found}")
        }
    }
}

/// The basis of one history: inputs, times, revisions.
pub(super) fn basis(page: &mut Page<'_>, part: &Part<'_>) -> io::Result<()> {
    let files = &part.history.files;
    let mut formats: BTreeMap<&str, u64> = BTreeMap::new();
    let mut evidence = 0;
    for format in files.iter().filter_map(|f| f.format) {
        *formats.entry(format).or_default() += 1;
        evidence += 1;
    }
    let ignored = files.len() as u64 - evidence;
    let sum = |of: fn(&crate::ingest::FileSummary) -> u64| files.iter().filter(|f| f.format.is_some()).map(of).sum();
    let of_unit = |unit: &str| {
        let files = files.iter().filter(|f| f.format.is_some() && f.unit() == unit);
        let lines: u64 = files.map(|f| f.lines).sum();
        (lines > 0).then(|| count(lines, unit))
    };
    let units = ["line", "record"].into_iter().filter_map(of_unit);
    let parts: Vec<String> =
        [count(evidence, "file")].into_iter().chain(units).chain([bytes(sum(|f| f.bytes))]).collect();
    let mut read = parts.join(", ");
    let kinds: Vec<String> = formats.iter().map(|(name, n)| format!("{n} {name}")).collect();
    if !kinds.is_empty() {
        read += &format!(" ({})", kinds.join(", "));
    }
    if ignored > 0 {
        read += &format!("; {} ignored", count(ignored, "file"));
    }
    match sum(|f| f.problems) {
        0 => {}
        problems => read += &format!("; {} could not be used", count(problems, "line")),
    }
    // A test that records in memory has no files.
    if !files.is_empty() || part.nature != Nature::Operations {
        page.labelled(0, LABEL, (Tone::Title, "Read"), &read)?;
    }
    if part.nature == Nature::Operations {
        page.labelled(0, LABEL, (Tone::Title, "Calls"), &calls::extent(part.history))?;
        page.labelled(0, LABEL, (Tone::Title, "Model"), &calls::model(part.history))?;
    }
    let extent = Extent::of(part.history);
    if let Some((first, last)) = extent.span() {
        let until =
            if day(first) == day(last) { time_of_day(last) } else { format!("{} {}", day(last), time_of_day(last)) };
        let clocks = match extent.clocks.as_slice() {
            [(clock, ..)] => match part.history.clock_name(*clock) {
                "" => String::new(),
                name => format!(", clock {name}"),
            },
            many => format!(", {}", count(many.len() as u64, "clock")),
        };
        let text =
            format!("{} {} to {until} UTC, {}{clocks}", day(first), time_of_day(first), duration(last.since(first)));
        page.labelled(0, LABEL, (Tone::Title, "Time"), &text)?;
    }
    let mut domains: Vec<String> = extent
        .domains
        .iter()
        .filter(|d| d.last.is_some())
        .map(|d| format!("{} to {} ({})", d.first, d.last, part.history.domains[d.domain.index()]))
        .collect();
    domains.sort_unstable();
    if !domains.is_empty() {
        page.labelled(0, LABEL, (Tone::Title, "Revisions"), &domains.join(", "))?;
    }
    Ok(())
}
