//! Audit events inside envelopes: lines and documents of exports.

use super::{Outcome, Parser};
use crate::ingest::Batch;
use crate::ingest::envelope::runtime_line::Joined;
use crate::ingest::envelope::{self, Envelope, Found as Held, Origin, Sink};
use crate::ingest::json::outline::{Evidence, Outline};
use crate::ingest::problem::{Fault, Found};

impl<B: Batch> Parser<'_, B> {
    /// Parses one line or document that holds an audit event, a list of them, or an envelope. `None`: each event has an
    /// outcome of its own.
    pub(super) fn audit_value(&mut self, line: u32, offset: u64, text: &str) -> Option<Outcome> {
        if !text.starts_with('{') {
            return self.stamped(line, offset, text);
        }
        if self.hint.is_some() && self.opened(line, offset, text) {
            return None;
        }
        self.written_by_none();
        let outcome = self.audit(line, offset, text)?;
        if is_of_another_kind(&outcome, text) && self.opened(line, offset, text) {
            return None;
        }
        Some(outcome)
    }

    /// Parses a line with a prefix.
    fn stamped(&mut self, line: u32, offset: u64, text: &str) -> Option<Outcome> {
        if let Some(row) = envelope::csv_row(text) {
            self.written_by(&envelope::CSV_ROW, &row.origin);
            let outcome = self.audit(line, offset + row.at as u64, &row.event)?;
            if !is_of_another_kind(&outcome, &row.event) {
                return Some(outcome);
            }
            self.tally.export.other(envelope::OTHER_TEXT);
            return Some(Outcome::Unknown);
        }
        let kind = match envelope::event_in(text) {
            _ if envelope::is_header(text) => "headers of tables",
            Held::Event(at) => {
                let (json, offset) = (&text[at..], offset + at as u64);
                self.written_by(&envelope::STAMPED, &Origin::default());
                let outcome = self.audit(line, offset, json)?;
                if !is_of_another_kind(&outcome, json) {
                    return Some(outcome);
                }
                if self.opened(line, offset, json) {
                    return None;
                }
                envelope::OTHER_TEXT
            }
            Held::Part => envelope::PARTS,
            Held::Nothing if envelope::is_stamped(text) => envelope::OTHER_TEXT,
            Held::Nothing => {
                let found =
                    Found::described(format!("text that is no JSON object: {}", Found::byte(text.as_bytes(), 0)));
                return Some(Fault::new(self.expected(), found).into());
            }
        };
        self.tally.export.other(kind);
        Some(passed_over(kind))
    }

    /// Parses a line that was joined from the parts into which a container runtime cut it.
    pub(super) fn joined(&mut self, line: u32, offset: u64, bytes: &[u8], joined: Joined) {
        let text = joined.text.trim_end();
        if text.starts_with('{') {
            let envelope = if joined.by_docker { &envelope::DOCKER } else { &envelope::STAMPED };
            self.written_by(envelope, &Origin::default());
            match self.audit(line, offset, text) {
                None => {}
                Some(outcome) if is_of_another_kind(&outcome, text) => {
                    let mut start = 0;
                    for (nth, part) in (0..).zip(bytes.split(|byte| *byte == b'\n')) {
                        self.value(line + nth, offset + start as u64, part);
                        start += part.len() + 1;
                    }
                    return;
                }
                Some(outcome) => self.settle(line, outcome),
            }
        } else {
            // It may be the rest of an event.
            self.tally.export.other(envelope::PARTS);
            self.settle(line, passed_over(envelope::PARTS));
        }
        for (nth, place) in joined.others {
            self.value(line + nth, offset + place.start as u64, &bytes[place]);
        }
    }

    /// Opens an envelope; false if the text is none.
    fn opened(&mut self, line: u32, offset: u64, text: &str) -> bool {
        let (hint, before) = (self.hint, self.tally.problems);
        let mut entries = Entries { parser: self, text, line, offset, passed: 0, is_broken: false };
        let opened = envelope::open(text, hint, &mut entries);
        let is_broken = entries.is_broken;
        self.hint = opened;
        if is_broken && self.tally.problems == before {
            let found = Found::cut_off("a line", text.len());
            self.settle(line, Fault::new("an export of audit events", found).into());
        }
        opened.is_some()
    }

    /// Tells the batch and the tally the writer of the events that follow.
    pub(super) fn written_by(&mut self, envelope: &'static Envelope, origin: &Origin<'_>) {
        let is_same = self.origin == *origin;
        if is_same && self.noted.is_some_and(|noted| std::ptr::eq(noted, envelope)) {
            return;
        }
        self.noted = Some(envelope);
        self.tally.export.note(envelope, origin);
        if !is_same {
            self.batch.origin(origin);
            self.origin = Origin {
                cluster: origin.cluster.clone().into_owned().into(),
                server: origin.server.clone().into_owned().into(),
                clock: origin.clock.clone().into_owned().into(),
            };
        }
    }

    /// The event that follows is in no envelope.
    fn written_by_none(&mut self) {
        if self.noted.take().is_some() && self.origin != Origin::default() {
            self.origin = Origin::default();
            self.batch.origin(&self.origin);
        }
    }
}

/// Whether text that could not be read as an audit event is something else.
fn is_of_another_kind(outcome: &Outcome, text: &str) -> bool {
    matches!(outcome, Outcome::Fault(_))
        && !matches!(Outline::of(text.as_bytes()).evidence(), Evidence::Audit | Evidence::AuditList)
}

/// The outcome of an entry that is no event. Parts of a line may be those of an event, which is then lost.
fn passed_over(kind: &'static str) -> Outcome {
    match kind == envelope::PARTS {
        true => Fault::new("an event on one line", "a part of a line that a container runtime cut").into(),
        false => Outcome::Unknown,
    }
}

/// The events of one value.
struct Entries<'p, 'a, 't, B> {
    parser: &'p mut Parser<'a, B>,
    text: &'t str,
    /// Line of `passed`.
    line: u32,
    offset: u64,
    /// Offset up to which lines are counted.
    passed: usize,
    is_broken: bool,
}

impl<B> Entries<'_, '_, '_, B> {
    /// The line of a place. Places rise, except where the members of an object are in an unusual order.
    fn line(&mut self, place: usize) -> u32 {
        let count = |from: usize, to: usize| {
            let bytes = self.text.as_bytes().get(from..to).unwrap_or_default();
            u32::try_from(memchr::memchr_iter(b'\n', bytes).count()).unwrap_or(u32::MAX)
        };
        self.line = match place >= self.passed {
            true => self.line.saturating_add(count(self.passed, place)),
            false => self.line.saturating_sub(count(place, self.passed)),
        };
        self.passed = place;
        self.line
    }
}

impl<B: Batch> Sink for Entries<'_, '_, '_, B> {
    fn event(&mut self, place: usize, text: &str, envelope: &'static Envelope, origin: &Origin<'_>) -> bool {
        let line = self.line(place);
        self.parser.written_by(envelope, origin);
        let Some(outcome) = self.parser.audit(line, self.offset + place as u64, text.trim_end()) else { return true };
        if is_of_another_kind(&outcome, text) {
            return false;
        }
        self.parser.settle(line, outcome);
        true
    }

    fn other(&mut self, place: usize, kind: &'static str, envelope: &'static Envelope) {
        let line = self.line(place);
        self.parser.tally.export.note(envelope, &Origin::default());
        self.parser.tally.export.other(kind);
        self.parser.settle(line, passed_over(kind));
    }

    fn broken(&mut self) {
        self.is_broken = true;
    }
}
