//! Explored protocols: a table of fixes and properties, and the shortest run that breaks one. This is the output of `retrograde
//! explore`.

use super::page::{Column, Page, Row, Tone};
use crate::explain::words::{count, thousands};
use crate::explore::{Counterexample, End, Limits, Variant};
use serde::Serialize;
use std::io;

/// The name of the JSON format.
pub const SCHEMA: &str = "retrograde/exploration/1";

/// Steps of a run that are listed without `--verbose`.
const MAX_STEPS: usize = 60;

/// Writes the table and the shortest counterexample of the first unsafe variant.
pub fn write(page: &mut Page<'_>, name: &str, about: &str, variants: &[Variant]) -> io::Result<()> {
    page.paragraph(0, Tone::Title, name)?;
    page.paragraph(2, Tone::Plain, &about.trim().replace('\n', " "))?;
    page.gap()?;
    let columns = [
        Column::left("fix", 29),
        Column::left("property", 20),
        Column::left("result", 13),
        Column::right("states", 10),
        Column::right("steps", 6),
        Column::right("quorum", 10),
        Column::right("refused", 8),
    ];
    let mut rows = Vec::new();
    for variant in variants {
        for (at, (property, counterexample)) in variant.properties.iter().enumerate() {
            let fix = variant.fix.as_ref().map_or("none", |fix| fix.name.as_str());
            let (states, depth) = (variant.exploration.states as u64, u64::from(variant.exploration.depth));
            let first = at == 0;
            let cells = vec![
                if first { fix.to_owned() } else { String::new() },
                property.clone(),
                result(variant, counterexample.as_ref()),
                if first { thousands(states) } else { String::new() },
                if first { depth.to_string() } else { String::new() },
                if first { thousands(variant.cost.quorum_reads) } else { String::new() },
                if first { thousands(variant.cost.refused_writes) } else { String::new() },
            ];
            rows.push(Row::new(cells, String::new()));
        }
    }
    page.table(2, &columns, &rows)?;
    page.gap()?;
    if let [first, ..] = variants {
        page.paragraph(2, Tone::Faint, &format!("Bounds: {}.", bounds(first.limits)))?;
        let costs = "broken in N: a shortest run that breaks it has N steps. steps: every run up to this length was visited. \
                     quorum, refused: transitions that read the most recent state, and writes that were refused.";
        page.paragraph(2, Tone::Faint, costs)?;
        if variants.iter().any(|variant| variant.has_more_writes) {
            let writes = count(u64::from(first.limits.writes), "write");
            let text = format!("Runs with more than {writes} were left out: --writes sets another bound.");
            page.paragraph(2, Tone::Faint, &text)?;
        }
    }
    for variant in variants {
        let shortest = variant.properties.iter().filter_map(|(property, found)| Some((property, found.as_ref()?)));
        let Some((property, found)) = shortest.min_by_key(|(_, found)| found.steps) else { continue };
        let fix = variant.fix.as_ref().map_or(String::new(), |fix| format!(" with the fix {}", fix.name));
        page.title(&format!("A shortest run that breaks {property}{fix}: {}", count(found.steps as u64, "step")))?;
        return run(page, found);
    }
    Ok(())
}

/// The result of a property in one variant.
fn result(variant: &Variant, counterexample: Option<&Counterexample>) -> String {
    match (counterexample, variant.exploration.end) {
        (Some(found), _) => format!("broken in {}", found.steps),
        (None, End::Exhausted) => "safe".to_owned(),
        (None, End::AllBroken) => "not decided".to_owned(),
        (None, End::Steps | End::States | End::Time) => format!("none to {}", variant.exploration.depth),
    }
}

/// The bounds, in words.
fn bounds(limits: Limits) -> String {
    let Limits { servers, writes, crashes, breaks, expirations, timeouts } = limits;
    let parts = [
        (servers, "API server"),
        (writes, "write"),
        (crashes, "crash"),
        (breaks, "broken stream"),
        (expirations, "expired version"),
        (timeouts, "write without an answer"),
    ];
    let word = |(number, name): &(u8, &str)| match *name {
        "crash" if *number != 1 => format!("{number} crashes"),
        "write without an answer" if *number != 1 => format!("{number} writes without an answer"),
        name => count(u64::from(*number), name),
    };
    let parts: Vec<String> = parts.iter().filter(|(number, _)| *number > 0).map(word).collect();
    parts.join(", ")
}

/// Writes the fewest servers, writes and faults with which a property is broken.
pub fn smallest(
    page: &mut Page<'_>,
    property: &str,
    fix: Option<&str>,
    limits: Limits,
    found: &Counterexample,
) -> io::Result<()> {
    let fix = fix.map_or(String::new(), |fix| format!(" with the fix {fix}"));
    let text = format!("{property}{fix}: {} in {}", bounds(limits), count(found.steps as u64, "step"));
    page.labelled(2, 12, (Tone::Faint, "smallest"), &text)
}

/// The steps of a run, and what `check` says of them.
pub fn run(page: &mut Page<'_>, found: &Counterexample) -> io::Result<()> {
    let steps = found.sketch.split("\n\n").nth(1).unwrap_or_default();
    let most = if page.look().verbose { usize::MAX } else { MAX_STEPS };
    for line in steps.lines().filter(|line| !line.starts_with("auditor")).take(most) {
        match line.split_once("  ") {
            Some((who, act)) => page.labelled(2, 18, (Tone::Faint, who), act.trim_start())?,
            None => page.paragraph(2, Tone::Faint, line)?,
        }
    }
    page.gap()?;
    if found.violated.is_empty() {
        let text = "`check` finds no violation in the evidence of this run: what recorders see of it leaves it open.";
        return page.paragraph(2, Tone::Doubt, text);
    }
    page.paragraph(2, Tone::Bad, &format!("`check` finds in the evidence of this run: {}", found.violated.join(", ")))
}

#[derive(Serialize)]
struct Document<'v> {
    schema: &'static str,
    protocol: &'v str,
    /// For a protocol from a finding: whether a run without any fix shows it. If not, no variant counts as safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    shows_finding: Option<bool>,
    variants: Vec<WrittenVariant<'v>>,
}

#[derive(Serialize)]
struct WrittenVariant<'v> {
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'v str>,
    limits: Limits,
    states: usize,
    transitions: u64,
    depth: u32,
    exhausted: bool,
    quorum_reads: u64,
    refused_writes: u64,
    has_more_writes: bool,
    properties: Vec<WrittenProperty<'v>>,
}

#[derive(Serialize)]
struct WrittenProperty<'v> {
    property: &'v str,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'v str>,
    violated: &'v [&'static str],
}

/// Writes the same as JSON.
pub fn json(out: &mut dyn io::Write, name: &str, shows_finding: Option<bool>, variants: &[Variant]) -> io::Result<()> {
    let variants = variants
        .iter()
        .map(|variant| WrittenVariant {
            fix: variant.fix.as_ref().map(|fix| fix.name.as_str()),
            limits: variant.limits,
            states: variant.exploration.states,
            transitions: variant.exploration.transitions,
            depth: variant.exploration.depth,
            exhausted: variant.exploration.end == End::Exhausted,
            quorum_reads: variant.cost.quorum_reads,
            refused_writes: variant.cost.refused_writes,
            has_more_writes: variant.has_more_writes,
            properties: variant
                .properties
                .iter()
                .map(|(property, found)| WrittenProperty {
                    property,
                    steps: found.as_ref().map(|found| found.steps),
                    run: found.as_ref().map(|found| found.sketch.as_str()),
                    violated: found.as_ref().map_or(&[], |found| &found.violated),
                })
                .collect(),
        })
        .collect();
    serde_json::to_writer_pretty(&mut *out, &Document { schema: SCHEMA, protocol: name, shows_finding, variants })?;
    writeln!(out)
}
