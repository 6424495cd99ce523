//! `retrograde explore`: explores a protocol and its fixes.

use super::args::{Declared, Evidence, Explore};
use super::console::tell;
use super::exit::Exit;
use super::output::Destination;
use super::plan::Input;
use super::reading::read_whole;
use crate::check;
use crate::explain::terminal_text::visible;
use crate::explore::{
    self, Bounds, Counterexample, Limits, PROTOCOLS, ProtocolError, Variant, fixes, minimise, read, shipped, variant,
};
use crate::history::{Nature, sketch};
use crate::ingest::limits::LONGEST_RULES_FILE;
use crate::order::Order;
use crate::report::page::{Column, Look, Page, Row, Tone};
use crate::report::{boundaries, exploration};
use anyhow::{Context, anyhow, bail};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

/// Said if the protocol of a finding does not break its property.
const UNSHOWN: &str = "No run of this protocol shows the finding. A protocol does not express everything that a client can do \
                       wrong, such as a watch that begins below what the client has seen, or a write to an object that it saw \
                       end. Nothing above says that an alternative is safe. --print gives the protocol, to be completed.";

/// Explores a protocol, and writes the table of its fixes with a shortest counterexample.
pub fn run(typed: Explore, look: Look, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let look = Look { verbose: typed.verbose, ..look };
    if typed.boundaries {
        return list_boundaries(typed.json.as_deref(), look, out);
    }
    let Some(protocol) = &typed.protocol else { return list(look, out) };
    let text = match &typed.from {
        Some(finding) => recorded(finding, &typed)?,
        None if typed.declared != Declared::default() => bail!("declarations about evidence need --from"),
        None => text(protocol)?,
    };
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
        // Alternatives count only if the protocol without any shows the finding.
        Some(name) if typed.from.is_some() => vec![None, Some(name)],
        Some(name) => vec![Some(name)],
        None => std::iter::once(None).chain(declared.iter().map(|fix| Some(fix.name.as_str()))).collect(),
    };
    let output = typed.output.as_deref().map(new_folder).transpose()?;
    let json = typed.json.as_deref().map(|path| Destination::of(path, |_| None)).transpose()?;
    let bounds = Bounds { steps: typed.steps, states: typed.states, time: typed.time_budget };
    // Reading the evidence has started them already.
    if let Some(threads) = typed.threads.filter(|_| typed.from.is_none()) {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global().context("starting threads")?;
    }
    let mut variants = Vec::new();
    for fix in &wanted {
        let limits = limits(&typed, read.limits());
        variants.push(variant(&text, *fix, Some(limits), bounds).map_err(mistakes)?);
    }
    let is_unshown = typed.from.is_some() && variants.first().is_some_and(|variant| variant.is_safe() == Some(true));
    let is_json_alone = json.as_ref().is_some_and(Destination::is_stdout);
    if !is_json_alone {
        let mut page = Page::new(out, look);
        exploration::write(&mut page, &read.name, &read.about, &variants)?;
        if is_unshown {
            page.paragraph(2, Tone::Doubt, UNSHOWN)?;
        }
        if typed.minimise {
            smallest(&mut page, &text, &wanted, &variants, bounds)?;
        }
    }
    if let Some(json) = json {
        let is_shown = typed.from.is_some().then_some(!is_unshown);
        json.write(|out| exploration::json(out, &read.name, is_shown, &variants))?;
    }
    if let Some(folder) = output {
        match shortest(&variants) {
            Some(found) => {
                let mut silent = std::io::sink();
                write_evidence(folder, found, if is_json_alone { &mut silent } else { out })?;
            }
            None => tell(format_args!("no run breaks a property, so nothing is written into {}", folder.display())),
        }
    }
    Ok(if is_unshown { Exit::Unknown } else { exit(&variants) })
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

/// The boundaries of the contract, for people or as JSON.
fn list_boundaries(json: Option<&Path>, look: Look, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let found = explore::boundaries().map_err(|error| anyhow!("{error}"))?;
    let to = json.map(|path| Destination::of(path, |_| None)).transpose()?;
    if !to.as_ref().is_some_and(Destination::is_stdout) {
        boundaries::write(&mut Page::new(out, look), &found)?;
    }
    if let Some(to) = to {
        to.write(|out| boundaries::json(out, &found))?;
    }
    Ok(Exit::Holds)
}

/// The protocol of a finding.
fn recorded(wanted: &str, typed: &Explore) -> anyhow::Result<String> {
    let report = Path::new(typed.protocol.as_deref().unwrap_or_default());
    let report: crate::verify::Report = super::saved_report("the report", report)?;
    let findings: Vec<_> = report.histories.iter().flat_map(|history| &history.findings).collect();
    let is_wanted = |id: &str, rule: &str| !wanted.is_empty() && id.starts_with(wanted) || rule == wanted;
    let named: Vec<_> = findings.iter().filter(|finding| is_wanted(&finding.id, &finding.rule)).collect();
    let listed = |findings: &mut dyn Iterator<Item = String>| findings.take(20).collect::<Vec<_>>().join("\n");
    let words = |id: &str, rule: &str| format!("  {} {}", visible(id), visible(rule));
    let [finding] = named[..] else {
        let all = listed(&mut findings.iter().map(|finding| words(&finding.id, &finding.rule)));
        bail!("{} findings of the report are `{}`; they are:\n{all}", named.len(), visible(wanted));
    };
    let evidence = Evidence {
        paths: typed.evidence.clone(),
        declared: typed.declared.clone(),
        threads: typed.threads,
        ..Evidence::default()
    };
    let mut input = Input::of(evidence)?;
    for history in read_whole(&mut input)?.iter().filter(|history| history.nature() == Nature::Kubernetes) {
        let order = Order::derive(history, &input.order);
        let options = check::Options { declarations: input.declarations.clone(), ..check::Options::default() };
        let judgement = check::judge(history, &order, &options);
        if let Some(found) = judgement.findings.iter().find(|found| found.id == finding.id) {
            return explore::recorded(history, &order, found).map_err(|why| anyhow!("finding {}: {why}", found.id));
        }
    }
    bail!("this evidence, with these declarations, has no finding {}", visible(&finding.id))
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

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
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
        command += &format!(" --rules {}", quoted(&folder.join("rules.toml")));
    }
    for source in &evidence.sources {
        command += &format!(" --source '{source}'");
    }
    for (name, _) in &evidence.files {
        command += &format!(" {}", quoted(&folder.join(name)));
    }
    writeln!(
        out,
        "\nThe evidence of this run is in {}. Check it:\n  {}",
        visible(&folder.display().to_string()),
        visible(&command)
    )?;
    Ok(())
}
