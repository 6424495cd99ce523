//! Writes findings: one paragraph each, consequences below their causes, and hazards in short form at the end.

use crate::check::{Certificate, Effect, Finding, Kind};
use crate::explain::terminal_text::shorten;
use crate::explain::words::{count, exploration, moment, promise, thousands};
use crate::explain::{facts, names};
use crate::history::History;
use crate::report::Part;
use crate::report::cause_tree::{Forest, counts_by_rule};
use crate::report::hazards::HazardGroup;
use crate::report::page::{Column, Page, Row, Tone};
use rustc_hash::{FxHashMap, FxHashSet};
use std::io;

/// Findings of one rule and kind with a paragraph. The next ones are short, the others counted.
const MAX_IN_FULL: usize = 5;
/// Findings of one rule and kind to show.
const MAX_SHOWN: usize = 20;
/// Clients with hazards of one rule to show.
const MAX_HAZARDS: usize = 3;
/// Consequences of one finding to show.
const MAX_CONSEQUENCES: usize = 6;
/// Consequences to show even if they have one rule.
const MIN_CONSEQUENCES: usize = 3;
/// Columns for the labels of a paragraph.
const LABEL: usize = 16;
/// Indentation below a title.
const BODY: usize = 3;

/// Writes all findings of a history.
pub(super) fn write(page: &mut Page<'_>, part: &Part<'_>) -> io::Result<()> {
    let forest = Forest::of(&part.judgement.findings);
    for (kind, title) in
        [(Kind::Violation, "Violations"), (Kind::Suspect, "Suspects: a violation, or missing evidence")]
    {
        let roots: Vec<usize> = forest.roots.iter().copied().filter(|&at| forest.findings[at].kind == kind).collect();
        if roots.is_empty() {
            continue;
        }
        page.title(title)?;
        let mut met: FxHashMap<&str, usize> = FxHashMap::default();
        let mut left_out: Vec<&Finding> = Vec::new();
        for at in roots {
            let finding = &forest.findings[at];
            let seen = met.entry(finding.rule).or_default();
            *seen += 1;
            match *seen {
                n if n <= MAX_IN_FULL || page.look().verbose => {
                    page.gap()?;
                    paragraph(page, part.history, finding)?;
                    consequences(page, part.history, &forest, at, BODY)?;
                }
                n if n <= MAX_SHOWN => {
                    page.gap()?;
                    brief(page, part.history, finding, 0, "")?;
                    consequences(page, part.history, &forest, at, BODY)?;
                }
                _ => left_out.push(finding),
            }
        }
        counted(page, &left_out)?;
    }
    hazards(page, part.history, &forest)
}

fn label(kind: Kind) -> (Tone, &'static str) {
    match kind {
        Kind::Violation => (Tone::Bad, "VIOLATION"),
        Kind::Suspect => (Tone::Doubt, "SUSPECT"),
        Kind::Hazard => (Tone::Doubt, "HAZARD"),
    }
}

/// `monotonic-reads: system:node:node-1 (kubelet-1#2)`.
fn headline(history: &History, finding: &Finding) -> String {
    let client = names::client(history, finding.client);
    let life = names::incarnation(history, finding.incarnation);
    let life = shorten(&life, 60);
    let life = if life.is_empty() || life == client { String::new() } else { format!(" ({life})") };
    format!("{}: {client}{life}", finding.rule)
}

/// The paragraph of one finding.
pub(super) fn paragraph(page: &mut Page<'_>, history: &History, finding: &Finding) -> io::Result<()> {
    page.labelled(0, 11, label(finding.kind), &headline(history, finding))?;
    page.paragraph(BODY, Tone::Plain, &finding.summary)?;
    page.gap()?;
    timeline(page, history, &finding.certificate)?;
    page.gap()?;
    let whose = promise(finding);
    let why = match (finding.kind, finding.broken_by) {
        // A rules file states the condition, and the reason repeats it.
        _ if whose.is_empty() => "Rules file",
        (Kind::Suspect, _) => "Why suspect",
        (_, crate::check::BrokenBy::Client) => "Why unsafe",
        _ => "Why impossible",
    };
    entry(page, why, &finding.certificate.reason)?;
    entry(page, "Promise", whose)?;
    entry(page, "Leads to", &finding.consequence)?;
    prevention(page, finding)?;
    entry(page, "Incarnations", &told_apart(history, &finding.certificate))?;
    entry(page, "Refuted by", &finding.refuted_by)?;
    if let Some(bug) = finding.resembles {
        entry(page, "Resembles", &format!("{}: {} (a hint, no part of the proof)", bug.issue, bug.says))?;
    }
    entry(page, "Repeated", &repeats(finding))?;
    entry(page, "Follows from", finding.consequence_of.as_deref().unwrap_or_default())
}

fn entry(page: &mut Page<'_>, label: &str, text: &str) -> io::Result<()> {
    if text.is_empty() { Ok(()) } else { page.labelled(BODY, LABEL, (Tone::Title, label), text) }
}

/// The facts, one row each.
fn timeline(page: &mut Page<'_>, history: &History, certificate: &Certificate) -> io::Result<()> {
    let columns = [
        Column::left("time (UTC)", 29),
        Column::left("clock", 12),
        Column::right("revision", 20),
        Column::left("client", 24),
        Column::left("server", 14),
    ];
    let rows: Vec<Row> = facts::rows(history, &facts::in_order_of_time(certificate))
        .into_iter()
        .map(|row| Row {
            cells: vec![row.time, row.clock, row.revision, row.client, row.server],
            // A place is copied into an editor, so it is never shortened as a column would be.
            text: if row.place.is_empty() { row.says } else { format!("{} [{}]", row.says, row.place) },
            place: String::new(),
        })
        .collect();
    page.table(BODY + 2, &columns, &rows)
}

/// The other requests, each with its effect.
fn prevention(page: &mut Page<'_>, finding: &Finding) -> io::Result<()> {
    if !finding.prevention.is_empty() {
        page.paragraph(BODY, Tone::Title, "Instead, this would have made it")?;
    }
    for way in &finding.prevention {
        let effect = effect_label(way.effect);
        let smallest = match way.smallest_revision.known() {
            Some(revision) => format!(" (answer at revision {revision} or later)"),
            None => String::new(),
        };
        let because = if way.because.is_empty() { String::new() } else { format!(": {}", way.because) };
        page.labelled(BODY + 2, LABEL - 2, effect, &format!("{}{smallest}{because}", way.request))?;
    }
    match exploration(finding) {
        none if none.is_empty() => Ok(()),
        text => page.paragraph(BODY + 2, Tone::Faint, &text),
    }
}

/// The label of an effect for people.
pub(crate) fn effect_label(effect: Effect) -> (Tone, &'static str) {
    match effect {
        Effect::Impossible => (Tone::Good, "impossible"),
        Effect::Narrowed => (Tone::Doubt, "less likely"),
        Effect::None => (Tone::Faint, "no better"),
    }
}

/// The evidence that separates the incarnations in the facts, if one client has several.
fn told_apart(history: &History, certificate: &Certificate) -> String {
    let mut lives: Vec<_> = certificate.facts.iter().map(|f| f.incarnation).filter(|id| id.is_some()).collect();
    lives.sort_unstable();
    lives.dedup();
    let mut sentences: Vec<&str> = lives
        .iter()
        .filter(|a| lives.iter().any(|b| *a != b && history.client_name(**a) == history.client_name(*b)))
        .map(|id| history.incarnations[id.index()].identified_by.sentence())
        // The reason already contains this sentence.
        .filter(|sentence| !certificate.reason.contains(sentence))
        .collect();
    sentences.dedup();
    sentences.join("; ")
}

fn repeats(finding: &Finding) -> String {
    let more = finding.occurrences.len().saturating_sub(1) as u64;
    if more == 0 {
        return String::new();
    }
    let span = facts::span(&finding.occurrences)
        .map_or_else(String::new, |(first, last)| format!(" (first {}, last {})", moment(first), moment(last)));
    format!("and {} more like this{span}", thousands(more))
}

/// Title, sentence and place, for consequences and for later findings of a long list.
fn brief(page: &mut Page<'_>, history: &History, finding: &Finding, indent: usize, arrow: &str) -> io::Result<()> {
    let (tone, word) = label(finding.kind);
    let word = format!("{arrow}{word}");
    page.labelled(indent, word.chars().count() + 2, (tone, &word), &headline(history, finding))?;
    let more = repeats(finding);
    let more = if more.is_empty() { more } else { format!(" {more}") };
    page.paragraph(indent + BODY, Tone::Plain, &format!("{}{more}", placed_summary(history, finding)))
}

/// The summary of a finding, with the place of its last fact.
fn placed_summary(history: &History, finding: &Finding) -> String {
    let place = finding.certificate.facts.last().map(|f| f.place(history)).unwrap_or_default();
    let place = if place.is_empty() { place } else { format!(" [{place}]") };
    format!("{}{place}", finding.summary)
}

fn consequences(
    page: &mut Page<'_>,
    history: &History,
    forest: &Forest<'_>,
    at: usize,
    indent: usize,
) -> io::Result<()> {
    let Some(children) = forest.children.get(&at) else { return Ok(()) };
    let mut rules = FxHashSet::default();
    let mut shown = 0;
    // The first finding of each rule represents the others.
    let is_shown = |child: &&usize| {
        let first = rules.insert(forest.findings[**child].rule);
        let is_shown = page.look().verbose || children.len() <= MIN_CONSEQUENCES || (first && shown < MAX_CONSEQUENCES);
        shown += usize::from(is_shown);
        is_shown
    };
    let (listed, others): (Vec<&usize>, Vec<&usize>) = children.iter().partition(is_shown);
    for &child in listed {
        page.gap()?;
        brief(page, history, &forest.findings[child], indent, "└ ")?;
        // Deeper levels keep the third indentation, since columns are limited.
        consequences(page, history, forest, child, (indent + BODY).min(4 * BODY))?;
    }
    if !others.is_empty() {
        let counts = counts_by_rule(history, others.iter().map(|at| &forest.findings[**at]));
        page.gap()?;
        let text = format!("and {}: {counts}", count(others.len() as u64, "more consequence"));
        page.paragraph(indent, Tone::Faint, &text)?;
    }
    Ok(())
}

fn hazards(page: &mut Page<'_>, history: &History, forest: &Forest<'_>) -> io::Result<()> {
    let groups = HazardGroup::all(forest.roots.iter().map(|&at| &forest.findings[at]));
    if groups.is_empty() {
        return Ok(());
    }
    page.title("Hazards: allowed and harmless here, unsafe as a pattern")?;
    let mut met: FxHashMap<&str, usize> = FxHashMap::default();
    let mut left_out: Vec<&Finding> = Vec::new();
    for group in &groups {
        let finding = group.first();
        let seen = met.entry(finding.rule).or_default();
        *seen += 1;
        if page.look().verbose {
            for finding in &group.findings {
                page.gap()?;
                brief(page, history, finding, 0, "")?;
            }
        } else if *seen <= MAX_HAZARDS {
            page.gap()?;
            folded(page, history, group)?;
        } else {
            left_out.push(finding);
            continue;
        }
        // The advice is the same for all findings of a rule.
        if let Some(way) = finding.prevention.first().filter(|_| *seen == 1) {
            let because = if way.because.is_empty() { String::new() } else { format!(": {}", way.because) };
            page.labelled(BODY, 9, (Tone::Title, "Instead"), &format!("{}{because}", way.request))?;
        }
    }
    counted(page, &left_out)
}

/// The hazards of one rule and client: their number, and the first one.
fn folded(page: &mut Page<'_>, history: &History, group: &HazardGroup<'_>) -> io::Result<()> {
    let finding = group.first();
    if group.times() == 1 {
        return brief(page, history, finding, 0, "");
    }
    let (tone, word) = label(finding.kind);
    let title = if group.is_of_one_life() {
        headline(history, finding)
    } else {
        format!("{}: {}", finding.rule, names::client(history, finding.client))
    };
    page.labelled(0, word.len() + 2, (tone, word), &format!("{title}, {} times", thousands(group.times())))?;
    page.paragraph(BODY, Tone::Plain, &format!("First: {}", placed_summary(history, finding)))
}

/// The number of findings left out, by rule.
fn counted(page: &mut Page<'_>, left_out: &[&Finding]) -> io::Result<()> {
    if left_out.is_empty() {
        return Ok(());
    }
    let mut rules: Vec<(&str, u64)> = Vec::new();
    for finding in left_out {
        match rules.iter_mut().find(|(rule, _)| *rule == finding.rule) {
            Some((_, n)) => *n += 1,
            None => rules.push((finding.rule, 1)),
        }
    }
    let rules: Vec<String> = rules.iter().map(|(rule, n)| format!("{} more of {rule}", thousands(*n))).collect();
    page.gap()?;
    page.paragraph(0, Tone::Faint, &format!("and {} (--verbose lists them, --json has all)", rules.join(", ")))
}
