//! The contents of an operation log: the output of `retrograde show`.

use super::evidence::Question;
use super::overview::{inputs, left, problems, right};
use super::page::{Page, Row, Tone};
use crate::explain::words::{count, thousands, time_of_day};
use crate::history::calls::Call;
use crate::history::{History, IncarnationId, KeyId};
use crate::ingest::call::Ending;
use crate::model::{Log, Model};
use rustc_hash::FxHashMap;
use std::io;

/// Processes and keys to list.
const LISTED: usize = 12;
/// Calls to list.
const CALLS: usize = 200;

/// The model of a log, in words.
pub(super) fn model(history: &History) -> String {
    let said = history.calls().model.is_some();
    match Model::of(Log { calls: history.calls(), names: &history.names }) {
        Ok(model) if said => model.name().to_owned(),
        Ok(model) => format!("{} (by its functions)", model.name()),
        // An assertion names a type of its program, and a log may name a model that is not provided.
        Err(_) if said => history.calls().model.clone().unwrap_or_default(),
        Err(why) => format!("not known: {why}"),
    }
}

/// The size of a log: `80 calls by 5 processes on 3 keys`.
pub(super) fn extent(history: &History) -> String {
    let calls = count(history.calls().calls.len() as u64, "call");
    let by = match history.incarnations.len() {
        1 => "1 process".to_owned(),
        many => format!("{} processes", thousands(many as u64)),
    };
    match history.keys.len() as u64 {
        0 => format!("{calls} by {by}"),
        keys => format!("{calls} by {by} on {}", count(keys, "key")),
    }
}

/// Writes the overview.
pub fn overview(page: &mut Page<'_>, history: &History) -> io::Result<()> {
    inputs(page, history)?;
    problems(page, history)?;
    page.title(&format!("Operations: {}", extent(history)))?;
    page.labelled(2, 10, (Tone::Title, "Model"), &model(history))?;
    let log = history.calls();
    if log.others > 0 {
        let text =
            format!("{} of a nemesis or another process that is no client: no operations", count(log.others, "record"));
        page.labelled(2, 10, (Tone::Title, "Besides"), &text)?;
    }
    if log.falls_back > 0 {
        let text = format!("times fall back by up to {:.3} ms from line to line", log.falls_back as f64 / 1e6);
        page.labelled(2, 10, (Tone::Title, "Order"), &text)?;
    }
    if let Some(lost) = &log.lost {
        page.labelled(2, 10, (Tone::Doubt, "Not whole"), &lost.why)?;
    }
    page.title("Functions")?;
    let rows: Vec<Row> = log
        .functions
        .iter()
        .map(|function| {
            let cells = vec![
                history.name(function.name).to_owned(),
                format!("{} answered", thousands(function.ok)),
                format!("{} refused", thousands(function.refused)),
                format!("{} failed", thousands(function.failed)),
                format!("{} unknown", thousands(function.unknown)),
            ];
            let nil =
                if function.nothing > 0 { format!("{} with nil", thousands(function.nothing)) } else { String::new() };
            Row::new(cells, nil)
        })
        .collect();
    page.table(2, &[left(20), right(18), right(18), right(18), right(18)], &rows)?;
    let mut processes: FxHashMap<IncarnationId, [u64; 2]> = FxHashMap::default();
    let mut keys: FxHashMap<KeyId, [u64; 2]> = FxHashMap::default();
    for call in log.calls.iter() {
        let unknown = u64::from(call.ending == Ending::Unknown);
        for counts in [
            Some(processes.entry(call.process).or_default()),
            log.keys.get(&call.key).map(|key| keys.entry(*key).or_default()),
        ]
        .into_iter()
        .flatten()
        {
            counts[0] += 1;
            counts[1] += unknown;
        }
    }
    let processes = processes.into_iter().map(|(id, counts)| (history.client_name(id).to_owned(), counts));
    tally(page, "Processes", processes.collect())?;
    if !keys.is_empty() {
        tally(page, "Keys", keys.into_iter().map(|(id, counts)| (history.key_name(id), counts)).collect())?;
    }
    Ok(())
}

/// Writes a table, those with most calls first.
fn tally(page: &mut Page<'_>, title: &str, mut rows: Vec<(String, [u64; 2])>) -> io::Result<()> {
    page.title(&format!("{title}: {}", thousands(rows.len() as u64)))?;
    rows.sort_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.cmp(b)));
    let shown = if page.look().verbose { rows.len() } else { LISTED };
    let row = |(name, [calls, unknown]): &(String, [u64; 2])| {
        let unknown = if *unknown > 0 { format!("{} of unknown outcome", thousands(*unknown)) } else { String::new() };
        Row::new(vec![name.clone(), count(*calls, "call")], unknown)
    };
    page.table(2, &[left(40), right(20)], &rows.iter().take(shown).map(row).collect::<Vec<_>>())?;
    if rows.len() > shown {
        page.paragraph(2, Tone::Faint, &format!("and {} more (--verbose)", thousands((rows.len() - shown) as u64)))?;
    }
    Ok(())
}

/// Writes the requested calls.
pub fn write(page: &mut Page<'_>, history: &History, question: &Question) -> io::Result<()> {
    let Question::Key(wanted) = question else {
        return page.paragraph(0, Tone::Plain, "An operation log has no revisions: use --key.");
    };
    let log = history.calls();
    let is_wanted = |call: &Call| match log.keys.get(&call.key) {
        Some(key) => {
            let name = history.key_name(*key);
            name == *wanted || name.strip_prefix("key ") == Some(wanted)
        }
        None => false,
    };
    let calls: Vec<Call> = log.calls.iter().filter(is_wanted).collect();
    page.paragraph(0, Tone::Title, &format!("Calls on {wanted}: {}", thousands(calls.len() as u64)))?;
    let shown = if page.look().verbose { calls.len() } else { CALLS };
    let rows: Vec<Row> = calls
        .iter()
        .take(shown)
        .map(|call| {
            let time = if call.invoke.time.is_known() { time_of_day(call.invoke.time) } else { String::new() };
            let place = |line| format!("{}:{line}", history.file_name(call.invoke.position.file));
            let (invoke, ret) = (call.invoke.position.line, call.ret.position.line);
            Row {
                cells: vec![time, history.client_name(call.process).to_owned()],
                text: log.words(call, history.name(call.function)),
                place: if ret > invoke { format!("{} to {ret}", place(invoke)) } else { place(invoke) },
            }
        })
        .collect();
    page.table(2, &[left(15), left(24)], &rows)?;
    if calls.len() > shown {
        let text = format!("and {} (--verbose)", count((calls.len() - shown) as u64, "more call"));
        page.paragraph(2, Tone::Faint, &text)?;
    }
    Ok(())
}
