//! Clocks that stepped or drift; their times prove no order. Input: the times of each file in order of lines. Audit logs are not
//! in order of time, so only lines that a client recorded count.

use super::super::shown::EvidenceRef;
use crate::history::{ClockId, History, IncarnationId, Marks, OperationId, Verb};
use crate::ingest::{FileId, Position, Time};
use rustc_hash::FxHashMap;

/// Tolerance in nanoseconds for the order of appended lines. Recording threads wait for each other, so small disorder is normal.
/// More is a step: ntpd steps a clock only if it is wrong by more than 128 ms (`tinker step`).
const APPENDED: i64 = 100_000_000;

/// Evidence that a clock stepped or that two clocks drift. It is an answer before its own request, or falling times of an
/// append-only recorder. On a clock with falling times in some file, an answer before the write that it shows counts too.
#[derive(Clone, Copy, Debug)]
pub struct ClockStep {
    /// The clock.
    pub clock: ClockId,
    /// The size of the step, at least, in nanoseconds.
    pub by: i64,
    /// The line of the answer or event that shows it; `None` if it follows from the offsets of several clocks.
    pub at: Option<Position>,
}

/// The position of an answer or event.
pub(super) fn place(history: &History, showing: EvidenceRef) -> Position {
    match showing {
        EvidenceRef::Answer(id) => history.operations.position(id.index()),
        EvidenceRef::Delivery(index, _) => history.deliveries[index as usize].position,
    }
}

/// The steps that each clock shows by itself: an answer with an earlier time than its request, or falling times in lines that a
/// recorder appended. Lines of audit logs come in any order (batches, rotated files, exports) and show no step.
pub(super) fn own(history: &History) -> Vec<Option<ClockStep>> {
    let mut stepped: Vec<Option<ClockStep>> = vec![None; history.clocks.len()];
    let mut fell = |clock: ClockId, by: i64, at: Position| {
        let known = &mut stepped[clock.index()];
        if known.is_none_or(|known| known.by < by) {
            *known = Some(ClockStep { clock, by, at: Some(at) });
        }
    };
    for o in history.operations.answered_before_sent() {
        fell(o.clock, o.invoke.since(o.ret), o.position);
    }
    let mut latest: FxHashMap<(FileId, IncarnationId), Time> = FxHashMap::default();
    for (at, time, clock, incarnation) in appended(history) {
        let latest = latest.entry((at.file, incarnation)).or_insert(time);
        let by = latest.since(time);
        if by > APPENDED {
            fell(clock, by, at);
        }
        *latest = time.max(*latest);
    }
    stepped
}

/// Answers and events that recorders appended when they were complete, in order of the lines of each file.
fn appended(history: &History) -> Vec<(Position, Time, ClockId, IncarnationId)> {
    let mut lines = Vec::new();
    for (_, o) in history.operations.of_marks(Marks::CLIENT_SIDE) {
        if o.verb != Verb::Watch {
            lines.push((o.position, o.ret, o.clock, o.incarnation));
        }
    }
    for stream in &history.streams {
        let watch = history.operation(stream.operation);
        let events = history.deliveries_of(stream).iter();
        lines.extend(events.map(|delivery| (delivery.position, delivery.at, watch.clock, watch.incarnation)));
    }
    lines.retain(|(_, time, clock, _)| time.is_known() && clock.is_some());
    // The lines are mostly runs in order already.
    lines.sort_by_key(|(at, ..)| (at.file, at.line));
    lines
}

/// Whether the record of an answer is before that of a write in one file. Records are written as requests complete, whatever the
/// clock says. An answer that comes first by line and by time is evidence that the store went back, not the clock.
pub(super) fn recorded_before(history: &History, showing: EvidenceRef, write: OperationId) -> bool {
    let shown = place(history, showing);
    let written = history.operations.position(write.index());
    shown.file == written.file && (shown.line, shown.offset) < (written.line, written.offset)
}

/// For each clock, the largest fall in nanoseconds from a line of a file to a later line.
pub(super) fn falls(history: &History) -> Vec<i64> {
    let operations = &history.operations;
    let requests = operations.len() as u32;
    let line = |row: u32| -> (Position, Time, ClockId) {
        match row.checked_sub(requests) {
            Some(delivery) => {
                let d = &history.deliveries[delivery as usize];
                (d.position, d.at, operations.clock(history.watch_of(delivery as usize).index()))
            }
            None => {
                let index = row as usize;
                let (ret, is_watch) = (operations.ret(index), operations.verb(index) == Verb::Watch);
                let time = if ret.is_known() && !is_watch { ret } else { operations.invoke(index) };
                // A server logs a watch when it begins or ends, with other lines in between.
                let logged = is_watch && !operations.get(index).marks.has(Marks::CLIENT_SIDE);
                let time = if logged { Time::UNKNOWN } else { time };
                (operations.position(index), time, operations.clock(index))
            }
        }
    };
    let rows = 0..requests + history.deliveries.len() as u32;
    let mut rows: Vec<(FileId, u32, u32)> = rows
        .filter_map(|row| {
            let (position, time, clock) = line(row);
            (time.is_known() && clock.is_some()).then_some((position.file, position.line, row))
        })
        .collect();
    rows.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| line(a.2).cmp(&line(b.2))));
    let mut falls = vec![0; history.clocks.len()];
    let mut last: FxHashMap<(FileId, ClockId), Time> = FxHashMap::default();
    for (file, _, row) in rows {
        let (_, time, clock) = line(row);
        let latest = last.entry((file, clock)).or_insert(time);
        falls[clock.index()] = latest.since(time).max(falls[clock.index()]);
        *latest = time.max(*latest);
    }
    falls
}
