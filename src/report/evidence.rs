//! The evidence about one key, or around one revision: the output of `retrograde show --key` and `--around`.
//!
//! It shows the records before any rule. A reader who doubts a finding begins here.

use super::page::{Column, Page, Row, Tone};
use crate::explain::words::{count, time_of_day};
use crate::history::{
    Delivery, DeliveryKind, History, IncarnationId, KeyId, Marks, Operation, Outcome, Revision, ServerId, Symbol,
};
use crate::ingest::{Position, Time};
use crate::order::{Change, Order};
use std::io;

/// The records to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Those about a key, as `pods default/web-0`, `default/web-0` or `web-0`.
    Key(String),
    /// Those around a revision; the number is a count of distinct revisions on each side.
    Around(Revision, usize),
}

/// One record about one revision of one key.
#[derive(Clone, Debug)]
struct Record {
    revision: Revision,
    key: KeyId,
    uid: Symbol,
    time: Time,
    incarnation: IncarnationId,
    server: ServerId,
    says: &'static str,
    position: Position,
}

/// Writes the records, in order of revision, then of time.
///
/// For a key its versions come first, as all records together show them.
pub fn write(page: &mut Page<'_>, history: &History, order: &Order, question: &Question) -> io::Result<()> {
    let mut rows = rows(history);
    // A path without a resource leaves a key without one.
    rows.retain(|row| history.resource_of(row.key).is_some());
    rows.sort_by_key(|row| (row.revision, row.key, row.time, row.position));
    match question {
        Question::Key(wanted) => {
            let keys: Vec<bool> = (0..history.keys.len() as u32)
                .map(KeyId)
                .map(|key| history.resource_of(key).is_some() && matches(&history.key_name(key), wanted))
                .collect();
            rows.retain(|row| keys[row.key.index()]);
            for key in (0..keys.len() as u32).map(KeyId).filter(|key| keys[key.index()]) {
                versions(page, history, order, key)?;
            }
            page.paragraph(0, Tone::Title, &format!("Records about {wanted}: {}", rows.len()))?;
        }
        Question::Around(revision, margin) => {
            let mut known: Vec<Revision> = rows.iter().map(|row| row.revision).collect();
            known.dedup();
            let at = known.partition_point(|r| r < revision);
            let low = known.get(at.saturating_sub(*margin)).copied().unwrap_or_default();
            let high = known.get((at + margin).min(known.len().saturating_sub(1))).copied().unwrap_or_default();
            rows.retain(|row| row.revision >= low && row.revision <= high);
            page.paragraph(0, Tone::Title, &format!("Records around revision {revision}: {}", rows.len()))?;
        }
    }
    if rows.is_empty() {
        return page.paragraph(2, Tone::Plain, "none: no version of it is in the evidence");
    }
    let shown = if page.look().verbose { rows.len() } else { 200 };
    let mut table: Vec<_> = rows.iter().take(shown).map(|row| cells(history, row)).collect();
    // The key has a column only if it differs between rows; otherwise the uid has it.
    let one_key = rows.iter().all(|row| row.key == rows[0].key);
    let columns = [
        Column::right("revision", 20),
        Column::left("key", 22),
        Column::left("uid", 8),
        Column::left("time (UTC)", 15),
        Column::left("client", 16),
    ];
    for row in &mut table {
        row.cells[if one_key { 1 } else { 2 }].clear();
    }
    page.table(2, &columns, &table)?;
    if rows.len() > shown {
        page.paragraph(
            2,
            Tone::Faint,
            &format!("and {} (--verbose)", count((rows.len() - shown) as u64, "more record")),
        )?;
    }
    Ok(())
}

/// The versions of one key, each with its source.
fn versions(page: &mut Page<'_>, history: &History, order: &Order, key: KeyId) -> io::Result<()> {
    let timeline = &order.timeline;
    let versions = timeline.versions(key);
    page.paragraph(0, Tone::Title, &format!("{}: {}", history.key_name(key), count(versions.len() as u64, "version")))?;
    let rows: Vec<_> = versions
        .iter()
        .map(|version| {
            let change = match version.change {
                Change::Created => "created",
                Change::Updated => "updated",
                Change::Put => "created or updated",
                Change::Deleted => "deleted",
                Change::Left => "deleted, or left the selection",
            };
            let writer = match version.writer.is_some() {
                true => history.request_name(&history.operation(version.writer)),
                false => "writer not known".to_owned(),
            };
            let position = version.position(history);
            let place = format!("{}:{}", history.file_name(position.file), position.line);
            let uid: String = history.name(version.uid).chars().take(8).collect();
            let cells =
                vec![version.revision.to_string(), uid, change.to_owned(), version.provenance.word().to_owned()];
            Row { cells, text: writer, place }
        })
        .collect();
    let columns = [
        Column::right("revision", 20),
        Column::left("uid", 8),
        Column::left("change", 30),
        Column::left("known from", 15),
    ];
    page.table(2, &columns, &rows)?;
    let mut removals: Vec<_> = timeline.removals(key).iter().collect();
    removals.sort_by_key(|removal| removal.after);
    for removal in removals {
        let before = removal.before.map_or_else(String::new, |r| format!(" and below {r}"));
        let request = history.request_name(&history.operation(removal.operation));
        page.paragraph(2, Tone::Plain, &format!("deleted above revision {}{before} by {request}", removal.after))?;
    }
    for item in order.deleted_items.of_key(key) {
        let before = item.before.map_or_else(String::new, |r| format!(" and below {r}"));
        let request = history.request_name(&history.operation(item.operation));
        let says = format!("deleted or marked for deletion above revision {}{before} by {request}", item.listed);
        page.paragraph(2, Tone::Plain, &says)?;
    }
    page.gap()
}

fn cells(history: &History, row: &Record) -> Row {
    let uid: String = history.name(row.uid).chars().take(8).collect();
    let server = history.server_name(row.server);
    let by = if server.is_empty() { String::new() } else { format!(" by {server}") };
    let place = format!("{}:{}", history.file_name(row.position.file), row.position.line);
    Row {
        cells: vec![
            row.revision.to_string(),
            history.key_name(row.key),
            uid,
            if row.time.is_known() { time_of_day(row.time) } else { String::new() },
            crate::explain::names::short_user(history.client_name(row.incarnation)).to_owned(),
        ],
        text: format!("{}{by}", row.says),
        place,
    }
}

/// Whether a key is the wanted one: the full name, or an end of it at a boundary.
pub(super) fn matches(key: &str, wanted: &str) -> bool {
    key.strip_suffix(wanted).is_some_and(|front| front.is_empty() || front.ends_with([' ', '/']))
}

fn rows(history: &History) -> Vec<Record> {
    let mut rows = Vec::new();
    for (_, operation) in history.operations.but_shadows() {
        let row = |key, uid, revision, says| Record {
            revision,
            key,
            uid,
            time: if operation.ret.is_known() { operation.ret } else { operation.invoke },
            incarnation: operation.incarnation,
            server: operation.server,
            says,
            position: operation.position,
        };
        if operation.key.is_some() && operation.answered.is_some() {
            rows.push(row(operation.key, operation.answer_uid, operation.answered, answer(&operation)));
        }
        for item in history.items_of(&operation) {
            rows.push(row(item.key, item.uid, item.revision, "listed"));
        }
    }
    for stream in &history.streams {
        let operation = history.operation(stream.operation);
        for delivery in history.deliveries_of(stream).iter().filter(|d| d.key.is_some()) {
            rows.push(Record {
                revision: delivery.revision,
                key: delivery.key,
                uid: delivery.uid,
                time: delivery.at,
                incarnation: operation.incarnation,
                server: operation.server,
                says: delivered(delivery),
                position: delivery.position,
            });
        }
    }
    for event in history.witness.iter().filter(|e| e.key.is_some()) {
        rows.push(Record {
            revision: event.revision,
            key: event.key,
            uid: event.uid,
            time: Time::UNKNOWN,
            incarnation: IncarnationId::NONE,
            server: ServerId::NONE,
            says: if event.tombstone { "etcd: deleted" } else { "etcd: written" },
            position: event.position,
        });
    }
    for read in history.cache_reads.iter().filter(|r| r.revision.is_some() && r.key.is_some()) {
        rows.push(Record {
            revision: read.revision,
            key: read.key,
            uid: read.uid,
            time: read.at,
            incarnation: read.incarnation,
            server: ServerId::NONE,
            says: "read from the client's cache",
            position: read.position,
        });
    }
    rows
}

fn answer(operation: &Operation) -> &'static str {
    use crate::history::Verb;
    match (operation.verb, operation.outcome()) {
        (_, Outcome::Rejected) => "refused",
        (_, Outcome::Unknown) => "outcome unknown",
        (Verb::Get, _) => "read",
        (Verb::List, _) => "listed",
        (Verb::Create, _) => "created",
        (Verb::Delete | Verb::DeleteCollection, _) => "deletion answered",
        _ if operation.marks.has(Marks::REMOVES) => "written, which removed it,",
        _ => "written",
    }
}

fn delivered(delivery: &Delivery) -> &'static str {
    match delivery.kind {
        DeliveryKind::Added => "watched ADDED",
        DeliveryKind::Modified => "watched MODIFIED",
        DeliveryKind::Deleted => "watched DELETED",
        DeliveryKind::Bookmark | DeliveryKind::InitialEventsEnd => "watched BOOKMARK",
        _ => "received an unreadable event",
    }
}
