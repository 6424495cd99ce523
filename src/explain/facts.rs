//! The facts of a certificate as rows of a table. Every cell is safe for terminals (see `terminal_text`).

use super::terminal_text::visible;
use super::{names, words};
use crate::check::{Certificate, Fact};
use crate::history::History;
use crate::ingest::Time;

/// One fact as visible text. A cell without content is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Time of day, with the day if the table spans several days.
    pub time: String,
    /// The clock, if the table has several.
    pub clock: String,
    /// The revision of the fact.
    pub revision: String,
    /// The process, as short as the table allows.
    pub client: String,
    /// The server.
    pub server: String,
    /// The statement of the fact.
    pub says: String,
    /// The position of the evidence: file and line.
    pub place: String,
}

/// The certificate with its facts in order of time, if all times have one clock. Times of several clocks do not compare, so the
/// rule's order is kept then. A fact without a time stays after the fact before it.
pub fn in_order_of_time(certificate: &Certificate) -> Certificate {
    let mut ordered = certificate.clone();
    if differ(certificate.facts.iter().filter(|f| f.time.is_known()).map(|f| f.clock)) {
        return ordered;
    }
    let mut latest = None;
    let mut timed: Vec<(Option<Time>, Fact)> = Vec::with_capacity(certificate.facts.len());
    for fact in ordered.facts.drain(..) {
        latest = if fact.time.is_known() { Some(fact.time) } else { latest };
        timed.push((latest, fact));
    }
    timed.sort_by_key(|(time, _)| *time);
    ordered.facts.extend(timed.into_iter().map(|(_, fact)| fact));
    ordered
}

/// The rows of a certificate, one per fact, in the same order.
pub fn rows(history: &History, certificate: &Certificate) -> Vec<Row> {
    let facts = &certificate.facts;
    let processes = names::processes(history, &facts.iter().map(|f| f.incarnation).collect::<Vec<_>>());
    let clocks = differ(facts.iter().filter(|f| f.time.is_known()).map(|f| f.clock));
    let days = differ(facts.iter().filter(|f| f.time.is_known()).map(|f| words::day(f.time)));
    facts
        .iter()
        .map(|fact| Row {
            time: match (fact.time.is_known(), days) {
                (false, _) => String::new(),
                (true, false) => words::time_of_day(fact.time),
                (true, true) => format!("{} {}", words::day(fact.time), words::time_of_day(fact.time)),
            },
            clock: if clocks && fact.time.is_known() { names::clock(history, fact.clock) } else { String::new() },
            revision: fact.revision.known().map_or_else(String::new, |r| r.to_string()),
            client: processes.get(&fact.incarnation).cloned().unwrap_or_default(),
            server: names::server(history, fact.server),
            says: visible(&fact.says).into_owned(),
            place: fact.place(history),
        })
        .collect()
}

impl Fact {
    /// The place of the record in the evidence: `audit-a.log:17`, or the file alone without a line. `history` is the judged one.
    pub fn place(&self, history: &History) -> String {
        let file = visible(history.file_name(self.position.file));
        match (file.is_empty(), self.position.line) {
            (true, _) => String::new(),
            (false, 0) => file.into_owned(),
            (false, line) => format!("{file}:{line}"),
        }
    }
}

/// The first and last time of certificates. The time of a certificate is that of its last fact with a time.
pub fn span(certificates: &[Certificate]) -> Option<(Time, Time)> {
    let last = |certificate: &Certificate| certificate.facts.iter().rev().find(|f| f.time.is_known()).map(|f| f.time);
    let times = || certificates.iter().filter_map(last);
    times().min().zip(times().max())
}

fn differ<T: PartialEq>(mut values: impl Iterator<Item = T>) -> bool {
    let first = values.next();
    values.any(|value| Some(value) != first)
}
