//! The contents of the evidence: the output of `retrograde show`.

use super::page::{Column, Page, Row, Tone};
use super::summary::Extent;
use crate::check::CoverageReport;
use crate::explain::words::{bytes, count, day, duration, thousands, time_of_day};
use crate::history::{History, IdentifiedBy, Outcome, Verb};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Incarnations to name per client.
const MAX_INCARNATIONS: usize = 6;

/// Exports to list.
const EXPORTS: usize = 20;

/// Clusters or servers to name per export.
const NAMES: usize = 8;

/// Writes the overview of one history.
pub fn write(page: &mut Page<'_>, history: &History, coverage: &[CoverageReport]) -> io::Result<()> {
    inputs(page, history)?;
    problems(page, history)?;
    domains(page, history, coverage)?;
    clocks(page, history)?;
    clients(page, history)?;
    requests(page, history)
}

pub(super) const fn left(at_most: usize) -> Column {
    Column::left("", at_most)
}

pub(super) const fn right(at_most: usize) -> Column {
    Column::right("", at_most)
}

pub(super) fn inputs(page: &mut Page<'_>, history: &History) -> io::Result<()> {
    let (evidence, ignored): (Vec<_>, Vec<_>) = history.files.iter().partition(|f| f.format.is_some());
    page.paragraph(0, Tone::Title, &format!("Inputs: {}", count(evidence.len() as u64, "file")))?;
    let rows: Vec<_> = evidence
        .iter()
        .map(|file| {
            let mut numbers = count(file.records, "record");
            if file.unit() == "line" {
                numbers = format!("{}, {numbers}", count(file.lines, "line"));
            }
            if file.problems > 0 {
                numbers += &format!(", {}", count(file.problems, "problem"));
            }
            if file.unknown > 0 {
                numbers += &format!(", {} of unknown kind", thousands(file.unknown));
            }
            Row::new(vec![file.path.clone(), file.format.unwrap_or_default().to_owned(), bytes(file.bytes)], numbers)
        })
        .collect();
    page.table(2, &[left(44), left(14), right(12)], &rows)?;
    exports(page, history)?;
    if ignored.is_empty() {
        return Ok(());
    }
    page.title(&format!("Ignored: {}", count(ignored.len() as u64, "file")))?;
    let rows: Vec<_> = ignored
        .iter()
        .map(|file| {
            let reason = file.ignored.clone().unwrap_or_else(|| "no format of evidence".to_owned());
            Row::new(vec![file.path.clone()], reason)
        })
        .collect();
    page.table(2, &[left(56)], &rows)
}

/// Writes what the envelopes of exports say, file by file.
fn exports(page: &mut Page<'_>, history: &History) -> io::Result<()> {
    let exports: Vec<_> = history.files.iter().filter(|file| !file.export.is_empty()).collect();
    if exports.is_empty() {
        return Ok(());
    }
    page.title(&format!("Exports: {}", count(exports.len() as u64, "file")))?;
    let shown = if page.look().verbose { exports.len() } else { EXPORTS };
    for file in exports.iter().take(shown) {
        let export = &file.export;
        let names = |names: &mut dyn Iterator<Item = &String>, none: &str| {
            let names: Vec<&str> = names.map(String::as_str).collect();
            match names.len() {
                0 => none.to_owned(),
                length if length > NAMES => format!("{} and {} more", names[..NAMES].join(", "), length - NAMES),
                _ => names.join(", "),
            }
        };
        page.paragraph(2, Tone::Plain, &file.path)?;
        let mut lines = vec![
            ("envelope", names(&mut export.envelopes.keys(), "none")),
            ("cluster", names(&mut export.clusters.iter(), "not named")),
            ("servers", names(&mut export.servers.iter(), "not named")),
        ];
        let lacks: BTreeSet<&str> = export.envelopes.values().map(String::as_str).filter(|l| !l.is_empty()).collect();
        if !lacks.is_empty() {
            lines.push(("cannot show", lacks.into_iter().collect::<Vec<_>>().join("; ")));
        }
        if !export.others.is_empty() {
            let others = export.others.iter().map(|(kind, number)| format!("{} {kind}", thousands(*number)));
            lines.push(("passed over", others.collect::<Vec<_>>().join(", ")));
        }
        if export.without_zone > 0 {
            let events = count(export.without_zone, "event");
            lines.push(("times", format!("{events} without a time zone: read as UTC")));
        }
        for (label, text) in lines {
            page.labelled(4, 12, (Tone::Faint, label), &text)?;
        }
    }
    if exports.len() > shown {
        page.paragraph(2, Tone::Faint, &format!("and {} more (--verbose)", thousands((exports.len() - shown) as u64)))?;
    }
    Ok(())
}

pub(super) fn problems(page: &mut Page<'_>, history: &History) -> io::Result<()> {
    if history.problems.is_empty() {
        return Ok(());
    }
    let total = history.files.iter().map(|f| f.problems).sum::<u64>().max(history.problems.len() as u64);
    page.title(&format!("Problems: {}", thousands(total)))?;
    let shown = if page.look().verbose { history.problems.len() } else { 10 };
    for problem in history.problems.iter().take(shown) {
        let place = if problem.line > 0 { format!("{}:{}", problem.path, problem.line) } else { problem.path.clone() };
        page.labelled(
            2,
            2,
            (Tone::Doubt, "-"),
            &format!("{place} expected {}, found {}", problem.expected, problem.found),
        )?;
    }
    if history.problems.len() > shown {
        page.paragraph(2, Tone::Faint, &format!("and {} more", thousands((history.problems.len() - shown) as u64)))?;
    }
    Ok(())
}

fn domains(page: &mut Page<'_>, history: &History, coverage: &[CoverageReport]) -> io::Result<()> {
    page.title("Domains: revisions compare only inside one")?;
    for extent in Extent::of(history).domains {
        let mut resources: Vec<String> = extent.resources.iter().map(|&r| history.resource_name(r)).collect();
        resources.sort_unstable();
        let range = match extent.last.known() {
            Some(last) => format!("revisions {} to {last}", extent.first),
            None => "no revisions".to_owned(),
        };
        let text = format!("{range}: {}", resources.join(", "));
        page.labelled(2, 18, (Tone::Plain, &history.domains[extent.domain.index()]), &text)?;
    }
    page.title("Coverage: where the revision order is known without a gap")?;
    if coverage.is_empty() {
        page.paragraph(2, Tone::Plain, "nowhere for certain, so an absent record proves nothing")?;
    }
    let rows: Vec<_> = coverage
        .iter()
        .map(|c| {
            let what = if c.scope.is_empty() { "everything" } else { &c.scope };
            Row::new(
                vec![c.domain.clone(), format!("({}, {}]", c.after, c.through)],
                format!("{what}, by {}", c.shown_by),
            )
        })
        .collect();
    page.table(2, &[left(24), left(30)], &rows)
}

fn clocks(page: &mut Page<'_>, history: &History) -> io::Result<()> {
    page.title("Clocks")?;
    let rows: Vec<_> = Extent::of(history)
        .clocks
        .iter()
        .map(|&(clock, first, last)| {
            let name = history.clock_name(clock);
            let text = format!(
                "{} {} to {} {}, {}",
                day(first),
                time_of_day(first),
                day(last),
                time_of_day(last),
                duration(last.since(first))
            );
            Row::new(vec![if name.is_empty() { "unnamed".to_owned() } else { name.to_owned() }], text)
        })
        .collect();
    page.table(2, &[left(30)], &rows)?;
    let several = history.unknown_writers();
    let names = history.clocks.iter().zip(several).filter(|(_, writers)| writers.is_some());
    for (clock, _) in names {
        let note = format!(
            "{}: perhaps written by several servers. Its times prove an order only if they are further apart than the clocks of \
             several servers may, by the renewals of their identity leases. If it is of one, say so: --source 'FILE:server=NAME'",
            history.name(*clock)
        );
        page.paragraph(2, Tone::Faint, &note)?;
    }
    Ok(())
}

fn clients(page: &mut Page<'_>, history: &History) -> io::Result<()> {
    page.title("Clients and their incarnations")?;
    let mut order: Vec<usize> = (0..history.clients.len()).collect();
    order.sort_by_key(|&at| history.name(history.clients[at]));
    let mut lives_of = vec![Vec::new(); history.clients.len()];
    for life in history.incarnations.iter() {
        lives_of[life.client.index()].push(life);
    }
    for at in order {
        let lives = &lives_of[at];
        let mut identified_by: Vec<IdentifiedBy> = lives.iter().map(|life| life.identified_by).collect();
        identified_by.sort_unstable();
        identified_by.dedup();
        let why: Vec<&str> = identified_by.iter().map(|t| t.sentence()).collect();
        let name = history.name(history.clients[at]);
        let name = if name.is_empty() { "unnamed client" } else { name };
        let lives_text = if lives.len() == 1 { "1 life".to_owned() } else { format!("{} lives", lives.len()) };
        page.labelled(2, 2, (Tone::Plain, "-"), &format!("{name}: {lives_text} ({})", why.join("; ")))?;
        let shown = if page.look().verbose { lives.len() } else { MAX_INCARNATIONS };
        let rows: Vec<_> = lives
            .iter()
            .take(shown)
            .map(|life| {
                let place = life.place.as_deref().unwrap_or("no place that survives a restart");
                let (first, last) = life.span;
                let span = match (first.is_known(), last.is_known()) {
                    (false, _) => String::new(),
                    (true, false) => format!(", from {}", time_of_day(first)),
                    (true, true) => format!(", {} to {}", time_of_day(first), time_of_day(last)),
                };
                Row::new(vec![life.label.clone(), life.program.clone()], format!("{place}{span}"))
            })
            .collect();
        page.table(6, &[left(38), left(24)], &rows)?;
        if lives.len() > shown {
            page.paragraph(6, Tone::Faint, &format!("and {} more", lives.len() - shown))?;
        }
    }
    Ok(())
}

/// Requests by verb and outcome, and the number of recorded bodies.
fn requests(page: &mut Page<'_>, history: &History) -> io::Result<()> {
    use crate::history::Marks;
    // A request in two records counts once.
    page.title(&format!("Requests: {}", thousands(history.operations.but_shadows().count() as u64)))?;
    let mut by_verb: BTreeMap<Verb, [u64; 5]> = BTreeMap::new();
    for (_, operation) in history.operations.but_shadows() {
        let counts = by_verb.entry(operation.verb).or_default();
        counts[match operation.outcome() {
            Outcome::Answered => 0,
            Outcome::Rejected => 1,
            Outcome::Unknown => 2,
        }] += 1;
        counts[3] += u64::from(operation.marks.has(Marks::ANSWER_BODY));
        counts[4] += u64::from(operation.marks.has(Marks::REQUEST_BODY));
    }
    let rows: Vec<_> = by_verb
        .iter()
        .map(|(verb, [answered, rejected, unknown, answers, requests])| {
            let level = match (answers, requests) {
                (0, 0) => "no bodies (metadata level)".to_owned(),
                (0, requests) => format!("{} request bodies", thousands(*requests)),
                (answers, requests) => {
                    format!("{} answer bodies, {} request bodies", thousands(*answers), thousands(*requests))
                }
            };
            let cells = vec![
                verb.name().to_owned(),
                format!("{} answered", thousands(*answered)),
                format!("{} rejected", thousands(*rejected)),
                format!("{} unknown", thousands(*unknown)),
            ];
            Row::new(cells, level)
        })
        .collect();
    page.table(2, &[left(16), right(20), right(20), right(20)], &rows)?;
    let rows: Vec<_> = [
        ("watch streams with their events", history.streams.len()),
        ("watch events", history.deliveries.len()),
        ("listed items", history.items.len()),
        ("events of etcd witnesses", history.witness.len()),
        ("reads from client-side caches", history.cache_reads.len()),
    ]
    .into_iter()
    .filter(|(_, n)| *n > 0)
    .map(|(what, n)| Row::new(vec![thousands(n as u64)], what.to_owned()))
    .collect();
    page.table(2, &[right(14)], &rows)
}
