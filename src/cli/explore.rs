//! `retrograde explore`: explores a protocol and its fixes.

use super::args::Explore;
use super::exit::Exit;
use super::output::Destination;
use crate::explain::terminal_text::visible;
use crate::explore::{
    Bounds, Counterexample, Limits, PROTOCOLS, ProtocolError, Variant, fixes, minimise, read, shipped, variant,
};
use crate::history::sketch;
use crate::ingest::limits::LONGEST_RULES_FILE;
use crate::report::exploration;
use crate::report::page::{Column, Look, Page, Row};
use anyhow::{Context, anyhow, bail};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

/// Explores a protocol, and writes the table of its fixes with a shortest counterexample.
pub fn run(typed: Explore, look: Look, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let look = Look { verbose: typed.verbose, ..look };
    let Some(protocol) = &typed.protocol else { return list(look, out) };
    let text = text(protocol)?;
    if typed.print {
        out.write_all(text.as_bytes())?;
        return Ok(Exit::Holds);
    }
    let mistakes = |error: ProtocolError| {
        let found: Vec<String> = error.mistakes().map(|line| visible(line).into_owned()).collect();
        anyhow!("{}: {}", visible(protocol), found.join("\n"))
    };
    let read = read(&text, None).map_err(mistakes)?;
    let declared = fixes(&text).map_err(mistakes)?;
    let wanted: Vec<Option<&str>> = match typed.fix.as_deref() {
        Some("none") => vec![None],
        Some(name) => vec![Some(name)],
        None => std::iter::once(None).chain(declared.iter().map(|fix| Some(fix.name.as_str()))).collect(),
    };
    let output = typed.output.as_deref().map(new_folder).transpose()?;
    let json = typed.json.as_deref().map(|path| Destination::of(path, |_| None)).transpose()?;
    let bounds = Bounds { steps: typed.steps, states: typed.states, time: typed.time_budget };
    if let Some(threads) = typed.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global().context("starting threads")?;
    }
    let mut variants = Vec::new();
    for fix in &wanted {
        let limits = limits(&typed, read.limits());
        variants.push(variant(&text, *fix, Some(limits), bounds).map_err(mistakes)?);
    }
    let is_json_alone = json.as_ref().is_some_and(Destination::is_stdout);
    if !is_json_alone {
        let mut page = Page::new(out, look);
        exploration::write(&mut page, &read.name, &read.about, &variants)?;
        if typed.minimise {
            smallest(&mut page, &text, &wanted, &variants, bounds)?;
        }
    }
    if let Some(json) = json {
        json.write(|out| exploration::json(out, &read.name, &variants))?;
    }
    if let Some(folder) = output {
        match shortest(&variants) {
            Some(found) => {
                let mut silent = std::io::sink();
                write_evidence(folder, found, if is_json_alone { &mut silent } else { out })?;
            }
            None => bail!("no run breaks a property, so there is nothing to write into {}", folder.display()),
        }
    }
    Ok(exit(&variants))
}

fn exit(variants: &[Variant]) -> Exit {
    let safe: Vec<Option<bool>> = variants.iter().map(Variant::is_safe).collect();
    match safe {
        safe if safe.contains(&Some(false)) => Exit::Violated,
        safe if safe.contains(&None) => Exit::Unknown,
        _ => Exit::Holds,
    }
}

fn list(look: Look, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let mut page = Page::new(out, look);
    let mut rows = Vec::new();
    for &(name, text) in PROTOCOLS {
        let about = read(text, None).map(|protocol| protocol.about).map_err(|error| anyhow!("{name}: {error}"))?;
        rows.push(Row::new(vec![name.to_owned()], about.trim().replace('\n', " ")));
    }
    page.table(2, &[Column::left("protocol", 24)], &rows)?;
    Ok(Exit::Holds)
}

/// The text of a shipped protocol or of a file.
fn text(protocol: &str) -> anyhow::Result<String> {
    if let Some(text) = shipped(protocol) {
        return Ok(text.to_owned());
    }
    let names = PROTOCOLS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let file =
        File::open(protocol).with_context(|| format!("{} is neither a file nor one of {names}", visible(protocol)))?;
    let mut text = String::new();
    let reading = || format!("reading {}", visible(protocol));
    file.take(LONGEST_RULES_FILE + 1).read_to_string(&mut text).with_context(reading)?;
    if text.len() as u64 > LONGEST_RULES_FILE {
        bail!("{}: expected at most {LONGEST_RULES_FILE} bytes, found more", visible(protocol));
    }
    Ok(text)
}

fn limits(typed: &Explore, of_file: Limits) -> Limits {
    Limits {
        servers: typed.servers.unwrap_or(of_file.servers),
        writes: typed.writes.unwrap_or(of_file.writes),
        crashes: typed.crashes.unwrap_or(of_file.crashes),
        breaks: typed.breaks.unwrap_or(of_file.breaks),
        expirations: typed.expirations.unwrap_or(of_file.expirations),
        timeouts: typed.timeouts.unwrap_or(of_file.timeouts),
    }
}

/// The shortest counterexample of the first unsafe variant.
fn shortest(variants: &[Variant]) -> Option<&Counterexample> {
    let found = |variant: &'_ Variant| -> Option<usize> {
        let steps = variant.properties.iter().enumerate();
        let found = steps.filter_map(|(at, (_, found))| Some((found.as_ref()?.steps, at)));
        found.min().map(|(_, at)| at)
    };
    variants.iter().find_map(|variant| variant.properties[found(variant)?].1.as_ref())
}

/// Writes the smallest counterexample of each broken property of the first unsafe variant.
fn smallest(
    page: &mut Page<'_>,
    text: &str,
    wanted: &[Option<&str>],
    variants: &[Variant],
    bounds: Bounds,
) -> anyhow::Result<()> {
    for (fix, variant) in wanted.iter().zip(variants) {
        for (at, (property, found)) in variant.properties.iter().enumerate() {
            if found.is_none() {
                continue;
            }
            let (limits, found) = minimise(text, *fix, at, bounds)?;
            exploration::smallest(page, property, *fix, limits, &found)?;
        }
    }
    Ok(())
}

/// A folder that does not exist or is empty, so that nothing is overwritten.
fn new_folder(path: &Path) -> anyhow::Result<&Path> {
    match fs::read_dir(path).map(Iterator::count) {
        Ok(1..) => bail!("{} has files already; name a new folder", path.display()),
        _ => Ok(path),
    }
}

/// Writes a run as evidence, and how `check` is called on it.
fn write_evidence(folder: &Path, found: &Counterexample, out: &mut dyn Write) -> anyhow::Result<()> {
    let evidence = sketch::evidence(&found.sketch).map_err(|error| anyhow!("{error}"))?;
    fs::create_dir_all(folder).with_context(|| format!("cannot write into {}", folder.display()))?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    };
    for (name, text) in &evidence.files {
        write(name, text)?;
    }
    write("story.sketch", &found.sketch)?;
    let mut command = "retrograde check".to_owned();
    if !found.rules.is_empty() {
        write("rules.toml", &found.rules)?;
        command += &format!(" --rules {}", folder.join("rules.toml").display());
    }
    for source in &evidence.sources {
        command += &format!(" --source '{source}'");
    }
    for (name, _) in &evidence.files {
        command += &format!(" {}", folder.join(name).display());
    }
    writeln!(
        out,
        "\nThe evidence of this run is in {}. Check it:\n  {}",
        visible(&folder.display().to_string()),
        visible(&command)
    )?;
    Ok(())
}
