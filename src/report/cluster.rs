//! The contents of an etcd cluster's history: the output of `retrograde show`.

use super::evidence::Question;
use super::overview::{left, problems, right};
use super::page::{Column, Page, Row, Tone};
use crate::explain::words::{bytes, count, duration, thousands, time_of_day};
use crate::history::History;
use crate::history::etcd::{Cluster, Operation, Outcome, Recording, Request, Watch};
use crate::ingest::Time;
use crate::order::etcd::timeline::is_over_all;
use crate::order::etcd::{Analysis, Change, Class, Version, Witness, Writer};
use std::collections::BTreeMap;
use std::io;

/// Clients, files and watches to list.
const LISTED: usize = 40;
/// Versions to list.
const VERSIONS: usize = 200;
/// Columns for the labels of single facts.
const LABEL: usize = 14;

/// Writes the overview.
pub fn overview(page: &mut Page<'_>, history: &History, cluster: &Cluster, analysis: &Analysis) -> io::Result<()> {
    let recording = &cluster.recording;
    inputs(page, history)?;
    problems(page, history)?;
    members(page, recording, analysis)?;
    clients(page, recording)?;
    operations(page, recording, analysis)?;
    revisions(page, recording, analysis)?;
    watches(page, recording)?;
    compactions(page, recording)?;
    leases(page, recording, analysis)
}

/// Writes the files by format, since a report has two files per client.
fn inputs(page: &mut Page<'_>, history: &History) -> io::Result<()> {
    let evidence = history.files.iter().filter(|file| file.format.is_some());
    let mut formats: BTreeMap<&str, [u64; 5]> = BTreeMap::new();
    for file in evidence {
        let sums = formats.entry(file.format.unwrap_or_default()).or_default();
        for (sum, n) in sums.iter_mut().zip([1, file.bytes, file.records, file.problems, file.unknown]) {
            *sum += n;
        }
    }
    let files: u64 = formats.values().map(|sums| sums[0]).sum();
    page.paragraph(0, Tone::Title, &format!("Inputs: {}", count(files, "file")))?;
    let rows: Vec<Row> = formats
        .iter()
        .map(|(format, [files, size, records, problems, unknown])| {
            let mut text = count(*records, "record");
            if *problems > 0 {
                text += &format!(", {}", count(*problems, "problem"));
            }
            if *unknown > 0 {
                text += &format!(", {} of unknown kind", thousands(*unknown));
            }
            Row::new(vec![(*format).to_owned(), count(*files, "file"), bytes(*size)], text)
        })
        .collect();
    page.table(2, &[left(18), right(12), right(12)], &rows)?;
    let ignored: Vec<_> = history.files.iter().filter(|file| file.format.is_none()).collect();
    if !ignored.is_empty() {
        page.title(&format!("Ignored: {}", count(ignored.len() as u64, "file")))?;
        let shown = if page.look().verbose { ignored.len() } else { 10 };
        let row = |file: &&crate::ingest::FileSummary| {
            let reason = file.ignored.clone().unwrap_or_else(|| "no format of evidence".to_owned());
            Row::new(vec![file.path.clone()], reason)
        };
        page.table(2, &[left(56)], &ignored.iter().take(shown).map(row).collect::<Vec<_>>())?;
        more(page, ignored.len(), shown)?;
    }
    Ok(())
}

fn more(page: &mut Page<'_>, all: usize, shown: usize) -> io::Result<()> {
    if all <= shown {
        return Ok(());
    }
    page.paragraph(2, Tone::Faint, &format!("and {} more (--verbose)", thousands((all - shown) as u64)))
}

fn members(page: &mut Page<'_>, recording: &Recording, analysis: &Analysis) -> io::Result<()> {
    let mut answered: BTreeMap<u64, u64> = BTreeMap::new();
    for operation in recording.operations.iter().filter(|operation| operation.member != 0) {
        *answered.entry(operation.member).or_default() += 1;
    }
    page.title("Members")?;
    if recording.members.is_empty() && answered.is_empty() {
        return page.paragraph(2, Tone::Plain, "no log, store or answer names a member");
    }
    for member in &recording.members {
        let mut says = Vec::new();
        if let Some(log) = &member.log {
            if log.node != 0 {
                says.push(format!("{:x} of cluster {:x}", log.node, log.cluster));
            }
            if let Some(answers) = answered.remove(&log.node).filter(|_| log.node != 0) {
                says.push(count(answers, "answer"));
            }
            let from = if log.after > 0 { format!(" after index {}", thousands(log.after)) } else { String::new() };
            let entries = log.entries.len() as u64;
            says.push(format!(
                "log of {}{from}, committed through {}",
                count(entries, "entry").replace("entrys", "entries"),
                thousands(log.commit)
            ));
            if log.torn {
                says.push("the last record is truncated".to_owned());
            }
            if log.broken {
                says.push("entries are missing".to_owned());
            }
            if !log.overwritten.is_empty() {
                says.push(format!(
                    "{} committed and then replaced",
                    count(log.overwritten.len() as u64, "entry").replace("entrys", "entries")
                ));
            }
        }
        if let Some(store) = &member.store {
            let through = store.revisions.iter().map(|revision| revision.main).max().unwrap_or(1);
            says.push(format!(
                "store at revision {}, applied through index {}",
                thousands(through.max(0) as u64),
                thousands(store.consistent_index)
            ));
            if store.compaction_done > 0 {
                says.push(format!("compacted through {}", thousands(store.compaction_done as u64)));
            }
        }
        page.labelled(2, 2, (Tone::Plain, "-"), &format!("{}: {}", member.name, says.join("; ")))?;
    }
    agreement(page, recording, analysis)?;
    for (number, answers) in answered {
        let text = format!("{number:x}: {}; neither log nor store is in the evidence", count(answers, "answer"));
        page.labelled(2, 2, (Tone::Plain, "-"), &text)?;
    }
    let silent = recording.operations.iter().filter(|o| o.member == 0 && o.outcome == Outcome::Answered).count();
    if silent > 0 {
        let text = format!("{} without the answering member", count(silent as u64, "answer"));
        page.paragraph(2, Tone::Faint, &text)?;
    }
    Ok(())
}

/// Says how far the members agree.
fn agreement(page: &mut Page<'_>, recording: &Recording, analysis: &Analysis) -> io::Result<()> {
    let (log, replicas) = (&analysis.log, &analysis.replicas);
    let entries = count(log.compared, "committed entry").replace("entrys", "entries");
    let revisions = format!("{} of stores", count(replicas.compared, "revision"));
    let differ: Vec<&str> = replicas
        .differences
        .iter()
        .map(|difference| recording.members[difference.row().member as usize].name.as_str())
        .collect();
    let says = match (log.splits.is_empty(), differ.is_empty()) {
        _ if log.compared + replicas.compared == 0 => return Ok(()),
        (true, true) => format!("The members agree, as far as they were compared: {entries}, {revisions}."),
        (false, _) => "The members differ, in committed entries of their logs. `check` names them.".to_owned(),
        (true, false) => {
            format!("The members differ, in the stores of {}. `check` names the revisions.", differ.join(", "))
        }
    };
    page.paragraph(2, Tone::Plain, &says)
}

/// The first and the last of some times.
fn span(times: impl Iterator<Item = Time>) -> Option<(Time, Time)> {
    times.filter(|time| time.is_known()).fold(None, |span: Option<(Time, Time)>, time| match span {
        Some((first, last)) => Some((first.min(time), last.max(time))),
        None => Some((time, time)),
    })
}

fn clients(page: &mut Page<'_>, recording: &Recording) -> io::Result<()> {
    page.title(&format!("Clients: {}", thousands(recording.clients.len() as u64)))?;
    let shown = if page.look().verbose { recording.clients.len() } else { LISTED };
    let rows: Vec<Row> = recording
        .clients
        .iter()
        .take(shown)
        .map(|client| {
            let asked = recording.operations_of(client);
            let unknown = asked.iter().filter(|operation| operation.outcome == Outcome::Unknown).count() as u64;
            let watches = &recording.watches[client.watches.start as usize..client.watches.end as usize];
            let events: u64 = watches.iter().map(|watch| events(recording, watch)).sum();
            let mut what = Vec::new();
            if !asked.is_empty() {
                what.push(count(asked.len() as u64, "operation"));
            }
            if unknown > 0 {
                what.push(format!("{} of unknown outcome", thousands(unknown)));
            }
            if !watches.is_empty() {
                what.push(format!(
                    "{} with {}",
                    count(watches.len() as u64, "watch").replace("watchs", "watches"),
                    count(events, "event")
                ));
            }
            let responses = watches.iter().flat_map(|watch| watch.responses.of(&recording.responses));
            let times = asked.iter().flat_map(|o| [o.call, o.returned]).chain(responses.map(|response| response.time));
            let when = span(times)
                .map_or_else(String::new, |(first, last)| format!("{} to {}", time_of_day(first), time_of_day(last)));
            Row::new(vec![client.name.clone(), when], what.join(", "))
        })
        .collect();
    page.table(2, &[left(24), left(40)], &rows)?;
    more(page, recording.clients.len(), shown)
}

fn events(recording: &Recording, watch: &Watch) -> u64 {
    watch.responses.of(&recording.responses).iter().map(|response| u64::from(response.events.len)).sum()
}

/// The kind of a request, in words.
fn kind(operation: &Operation, class: Class, recording: &Recording) -> &'static str {
    match operation.request {
        Request::Range(range) if range.revision > 0 => "read of a past revision",
        Request::Range(range) if range.serializable => "serializable read",
        Request::Range(_) => "read",
        Request::Txn(txn) if txn.conditions.len > 0 => "transaction with conditions",
        Request::Txn(txn) => match txn.success.of(&recording.requests.steps) {
            [crate::history::etcd::Step::Put { .. }] => "put",
            [crate::history::etcd::Step::Delete(_)] => "delete",
            _ if class == Class::Silent => "transaction that only reads",
            _ => "transaction",
        },
        Request::LeaseGrant { .. } => "lease granted",
        Request::LeaseRevoke { .. } => "lease revoked",
        Request::Compact { .. } => "compaction",
        Request::Defragment => "defragmentation",
        Request::Other => "other request",
    }
}

fn operations(page: &mut Page<'_>, recording: &Recording, analysis: &Analysis) -> io::Result<()> {
    page.title(&format!("Operations: {}", thousands(recording.operations.len() as u64)))?;
    let mut kinds: BTreeMap<&str, [u64; 5]> = BTreeMap::new();
    for (at, operation) in (0..).zip(&recording.operations) {
        let counts = kinds.entry(kind(operation, analysis.effects.class(at), recording)).or_default();
        counts[match operation.outcome {
            Outcome::Answered => 0,
            Outcome::Compacted | Outcome::Future => 1,
            Outcome::Refused => 2,
            Outcome::Unknown => 3,
        }] += 1;
        counts[4] += u64::from(analysis.effects.class(at) == Class::Write);
    }
    let rows: Vec<Row> = kinds
        .iter()
        .map(|(kind, [answered, outside, refused, unknown, wrote])| {
            let cells = vec![
                (*kind).to_owned(),
                format!("{} answered", thousands(*answered)),
                format!("{} refused", thousands(*refused)),
                format!("{} unknown", thousands(*unknown)),
            ];
            let mut text = Vec::new();
            if *wrote > 0 {
                text.push(format!("{} changed keys", thousands(*wrote)));
            }
            if *outside > 0 {
                text.push(format!("{} of compacted or future revisions", thousands(*outside)));
            }
            Row::new(cells, text.join(", "))
        })
        .collect();
    page.table(2, &[left(28), right(18), right(18), right(18)], &rows)?;
    let mut errors: BTreeMap<&str, u64> = BTreeMap::new();
    for operation in recording.operations.iter().filter(|operation| operation.error.is_some()) {
        *errors.entry(recording.texts.get(operation.error)).or_default() += 1;
    }
    let mut errors: Vec<(u64, &str)> =
        errors.into_iter().map(|(text, n)| (n, text)).filter(|(_, t)| !t.is_empty()).collect();
    if errors.is_empty() {
        return Ok(());
    }
    errors.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    page.title("Errors")?;
    let shown = if page.look().verbose { errors.len() } else { 10 };
    let rows: Vec<Row> =
        errors.iter().take(shown).map(|(n, text)| Row::new(vec![thousands(*n)], (*text).to_owned())).collect();
    page.table(2, &[right(10)], &rows)?;
    more(page, errors.len(), shown)
}

fn revisions(page: &mut Page<'_>, recording: &Recording, analysis: &Analysis) -> io::Result<()> {
    let timeline = &analysis.timeline;
    let last = analysis.proofs.last().max(timeline.last());
    let through =
        if last > 1 { format!("2 to {}", thousands(last as u64)) } else { "none after the empty store's".to_owned() };
    page.title(&format!("Revisions: {through}"))?;
    let complete = timeline.revisions.iter().filter(|revision| revision.complete).count() as u64;
    let acknowledged = timeline.revisions.iter().filter(|revision| revision.writer.is_some()).count() as u64;
    let expiries = analysis.attribution.writers.iter().filter(|(_, f)| matches!(f, Writer::Expiry(_))).count() as u64;
    let others = analysis.attribution.writers.len() as u64 - expiries;
    let rows = [
        (acknowledged, "were acknowledged to their writers"),
        (others, "were made by unanswered requests, or by requested ends of leases"),
        (expiries, "were made by expired leases"),
        (analysis.attribution.unattributed.len() as u64, "have no writer in these records"),
        (u64::try_from(last - 1).unwrap_or(0).saturating_sub(complete), "are not completely known"),
    ];
    let rows: Vec<Row> = rows
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| Row::new(vec![thousands(n)], what.to_owned()))
        .collect();
    page.table(2, &[right(14)], &rows)?;
    let whole = timeline.first_unknown(1, last);
    let text = match whole {
        None if last > 1 => format!("complete through {}", thousands(last as u64)),
        Some(hole) => {
            format!("complete below revision {}, which is not completely known", thousands(hole as u64))
        }
        None => "nothing was written".to_owned(),
    };
    page.labelled(2, LABEL, (Tone::Title, "Coverage"), &text)?;
    page.labelled(2, LABEL, (Tone::Title, "Keys"), &thousands(timeline.keys().count() as u64))?;
    let logged = analysis.log.steps.len() as u64;
    if logged > 0 {
        let text = format!("has {}; it counts as far as answers to clients agree", count(logged, "revision"));
        page.labelled(2, LABEL, (Tone::Title, "Members' log"), &text)?;
    }
    let times = recording.operations.iter().flat_map(|o| [o.call, o.returned]);
    let times = times.chain(recording.responses.iter().map(|response| response.time));
    if let Some((first, last)) = span(times) {
        let text = format!("{} on one clock, that of the recorder", duration(last.since(first)));
        page.labelled(2, LABEL, (Tone::Title, "Time"), &text)?;
    }
    Ok(())
}

fn watches(page: &mut Page<'_>, recording: &Recording) -> io::Result<()> {
    page.title(&format!(
        "Watches: {} with {}",
        thousands(recording.watches.len() as u64),
        count(recording.events.len() as u64, "event")
    ))?;
    let mut kinds: BTreeMap<String, [u64; 6]> = BTreeMap::new();
    for watch in &recording.watches {
        let key = recording.texts.get(watch.key);
        let what = match (watch.prefix, watch.end.is_some()) {
            (true, _) if is_over_all(recording, watch) => "every key".to_owned(),
            (true, _) => format!("{key}*"),
            (false, true) => format!("{key} to {}", recording.texts.get(watch.end)),
            (false, false) => key.to_owned(),
        };
        let counts = kinds.entry(what).or_default();
        let responses = watch.responses.of(&recording.responses);
        counts[0] += 1;
        counts[1] += events(recording, watch);
        counts[2] += responses.iter().filter(|response| response.progress).count() as u64;
        counts[3] += u64::from(watch.revision == 0);
        counts[4] += u64::from(watch.revision < 0);
        counts[5] += responses.iter().filter(|r| !recording.texts.get(r.error).is_empty()).count() as u64;
    }
    let shown = if page.look().verbose { kinds.len() } else { LISTED };
    let rows: Vec<Row> = kinds
        .iter()
        .take(shown)
        .map(|(what, [watches, events, progress, now, senseless, errors])| {
            let mut text = vec![count(*events, "event")];
            for (n, says) in [
                (progress, "progress notifications"),
                (now, "without a first revision"),
                (senseless, "with a first revision below 0"),
                (errors, "ended by an error"),
            ] {
                if *n > 0 {
                    text.push(format!("{} {says}", thousands(*n)));
                }
            }
            Row::new(vec![what.clone(), thousands(*watches)], text.join(", "))
        })
        .collect();
    page.table(2, &[left(36), right(10)], &rows)?;
    more(page, kinds.len(), shown)
}

fn compactions(page: &mut Page<'_>, recording: &Recording) -> io::Result<()> {
    let mut through: Vec<(i64, Outcome)> = recording
        .operations
        .iter()
        .filter_map(|operation| match operation.request {
            Request::Compact { revision } => Some((revision, operation.outcome)),
            _ => None,
        })
        .collect();
    if through.is_empty() {
        return Ok(());
    }
    through.sort_by_key(|(revision, _)| *revision);
    let done = |wanted: Outcome| through.iter().filter(move |(_, outcome)| *outcome == wanted);
    page.title(&format!("Requested compactions: {}", thousands(through.len() as u64)))?;
    let revisions: Vec<String> = done(Outcome::Answered).map(|(revision, _)| revision.to_string()).collect();
    let shown = if revisions.len() > 16 && !page.look().verbose {
        format!("{} and {} more", revisions[..16].join(", "), revisions.len() - 16)
    } else {
        revisions.join(", ")
    };
    let shown = if shown.is_empty() { "none".to_owned() } else { format!("through {shown}") };
    page.labelled(2, LABEL, (Tone::Title, "Done"), &shown)?;
    let unknown = done(Outcome::Unknown).count() as u64;
    if unknown > 0 {
        page.labelled(2, LABEL, (Tone::Title, "Unknown"), &thousands(unknown))?;
    }
    Ok(())
}

fn leases(page: &mut Page<'_>, recording: &Recording, analysis: &Analysis) -> io::Result<()> {
    let of = |wanted: fn(&Request) -> bool| {
        recording.operations.iter().filter(|o| wanted(&o.request) && o.outcome == Outcome::Answered).count() as u64
    };
    let granted = of(|request| matches!(request, Request::LeaseGrant { .. }));
    let revoked = of(|request| matches!(request, Request::LeaseRevoke { .. }));
    if granted + revoked == 0 {
        return Ok(());
    }
    let ended =
        analysis.attribution.writers.iter().filter(|(_, filler)| matches!(filler, Writer::Expiry(_))).count() as u64;
    page.title("Leases")?;
    let text = format!(
        "{} granted, {} revoked, {} expired with keys",
        thousands(granted),
        thousands(revoked),
        thousands(ended)
    );
    page.paragraph(2, Tone::Plain, &text)
}

/// Writes the revision order of a key, or around a revision, with the evidence for each version.
pub fn write(
    page: &mut Page<'_>,
    history: &History,
    cluster: &Cluster,
    analysis: &Analysis,
    question: &Question,
) -> io::Result<()> {
    let recording = &cluster.recording;
    let timeline = &analysis.timeline;
    let versions: Vec<&Version> = match question {
        Question::Key(wanted) => {
            let named = |version: &&Version| {
                let key = recording.texts.get(version.change.key);
                key == wanted || key.strip_suffix(wanted.as_str()).is_some_and(|front| front.ends_with('/'))
            };
            timeline.versions.iter().filter(named).collect()
        }
        Question::Around(revision, margin) => {
            let wanted = revision.to_string().parse::<i64>().unwrap_or(i64::MAX);
            let (low, high) = {
                let all = &timeline.revisions;
                let at = all.partition_point(|revision| revision.number < wanted);
                let number = |at: usize| all.get(at).map_or(wanted, |revision| revision.number);
                (number(at.saturating_sub(*margin)), number((at + margin).min(all.len().saturating_sub(1))))
            };
            let range = timeline.range(low.min(wanted) - 1, high.max(wanted));
            range.iter().flat_map(|revision| timeline.versions_of(revision)).collect()
        }
    };
    let title = match question {
        Question::Key(wanted) => format!("Versions of {wanted}: {}", versions.len()),
        Question::Around(revision, _) => format!("Versions around revision {revision}: {}", versions.len()),
    };
    page.paragraph(0, Tone::Title, &title)?;
    if versions.is_empty() {
        return page.paragraph(2, Tone::Plain, "none in the evidence");
    }
    let shown = if page.look().verbose { versions.len() } else { VERSIONS };
    let rows: Vec<Row> = versions.iter().take(shown).map(|version| row(history, cluster, analysis, version)).collect();
    let columns = [Column::right("revision", 14), Column::left("time", 15), Column::left("known from", 22)];
    page.table(2, &columns, &rows)?;
    more(page, versions.len(), shown)
}

fn row(history: &History, cluster: &Cluster, analysis: &Analysis, version: &Version) -> Row {
    let recording = &cluster.recording;
    let name = |client: u32| recording.clients.get(client as usize).map_or("", |client| client.name.as_str());
    let operation = |at: u32| &recording.operations[at as usize];
    let (from, time, position) = match version.shown_by {
        Witness::Write(at) => {
            (format!("write of {}", name(operation(at).client)), operation(at).returned, operation(at).position)
        }
        Witness::Pair(at, _) => {
            (format!("read of {}", name(operation(at).client)), operation(at).returned, operation(at).position)
        }
        Witness::Event(watch, n, e) => {
            let watch = &recording.watches[watch as usize];
            let event = &recording.events[e as usize];
            let position = crate::ingest::Position { line: event.line, offset: event.offset, ..watch.position };
            (format!("watch of {}", name(watch.client)), recording.responses[n as usize].time, position)
        }
        Witness::Log(logged) => {
            let member = &recording.members[logged.member as usize];
            let entry = member.log.as_ref().and_then(|log| log.entries.get(logged.entry as usize));
            (
                format!("log of {}", member.name),
                Time::UNKNOWN,
                entry.map_or_else(Default::default, |entry| entry.position),
            )
        }
        Witness::Supposed(_) => ("inferred: it fits".to_owned(), Time::UNKNOWN, Default::default()),
        Witness::Store(member, n) => {
            let member = &recording.members[member as usize];
            let stored = member.store.as_ref().and_then(|store| store.revisions.get(n as usize));
            (
                format!("store of {}", member.name),
                Time::UNKNOWN,
                stored.map_or_else(Default::default, |row| row.position),
            )
        }
    };
    let Change { key, value } = version.change;
    let what = match value {
        Some(value) => format!("put {}={}", recording.texts.get(key), recording.values.shown(value)),
        None => format!("deleted {}", recording.texts.get(key)),
    };
    let made = analysis.attribution.writers.iter().find(|(number, _)| *number == version.revision);
    let by = match made {
        Some((_, Writer::Operation(at))) => {
            format!("; written by an unanswered request of {}", name(operation(*at).client))
        }
        Some((_, Writer::Expiry(lease))) => format!("; lease {lease} expired"),
        None => String::new(),
    };
    let life = if version.version > 0 { format!(", change {} of its life", version.version) } else { String::new() };
    Row {
        cells: vec![
            version.revision.to_string(),
            if time.is_known() { time_of_day(time) } else { String::new() },
            from,
        ],
        text: format!("{what}{life}{by}"),
        place: format!("{}:{}", history.file_name(position.file), position.line),
    }
}
