//! Blocks to records: each line is parsed once, checked against the format of its file, and passed to the batch.
//!
//! A line that does not fit becomes a problem with its kind and place, and parsing continues. A body that does not
//! fit is reduced (`lenient_body`), since the rest of its line is evidence.

mod etcd;
mod exported;

pub(super) use etcd::parse_whole;

use super::block::reader::too_long;
use super::block::{Block, Layout};
use super::detection::format::Format;
use super::detection::trimmed_end;
use super::envelope::{self, Envelope, Origin, runtime_line};
use super::export::Export;
use super::json::outline::{Evidence, Outline};
use super::json::text::Loose;
use super::kubernetes::{audit, body, capture, lenient_body};
use super::limits::KEPT_PROBLEMS_PER_FILE;
use super::problem::{Fault, Found, size};
use super::{Batch, Record, Refused, call, etcd_watch};
use memchr::memmem;
use serde::Deserialize;

/// Counts and problems of one block.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub lines: u64,
    pub records: u64,
    pub problems: u64,
    pub unknown: u64,
    /// Records that a recorder dropped, as it says itself.
    pub dropped: u64,
    /// Line ends in the block.
    pub line_ends: u32,
    /// The first problems, with their line within the block.
    pub kept: Vec<(u32, Fault)>,
    /// What envelopes say.
    pub export: Export,
}

impl Tally {
    fn problem(&mut self, line: u32, fault: impl FnOnce() -> Fault) {
        self.problems += 1;
        if self.kept.len() < KEPT_PROBLEMS_PER_FILE {
            self.kept.push((line, fault()));
        }
    }
}

/// Parses a block into a batch.
pub(super) fn parse<B: Batch>(block: &Block, max_line_bytes: usize, batch: &mut B) -> Tally {
    let mut parser = Parser {
        format: block.format,
        max_line_bytes,
        batch,
        nuls: block.nuls,
        tally: Tally::default(),
        hint: None,
        origin: Origin::default(),
        noted: None,
    };
    if let Some(fault) = &block.fault {
        parser.tally.lines += 1;
        parser.tally.problem(0, || fault.clone());
    }
    let bytes = block.bytes();
    match &block.layout {
        Layout::Documents(spans) => {
            parser.tally.line_ends = count_line_ends(bytes);
            let mut seen = 0;
            for span in spans {
                parser.between(&bytes[seen..span.start], span.line);
                parser.value(span.line, block.offset + span.start as u64, &bytes[span.start..span.end]);
                seen = span.end;
            }
            if block.fault.is_none() {
                parser.between(&bytes[seen..], parser.tally.line_ends);
            }
        }
        Layout::Indented => {
            let (mut start, mut line) = (0, 0);
            for end in memmem::find_iter(bytes, b"\n{").map(|at| at + 1).chain([bytes.len()]) {
                parser.value(line, block.offset + start as u64, &bytes[start..end]);
                line += count_line_ends(&bytes[start..end]);
                start = end;
            }
            parser.tally.line_ends = line;
        }
        Layout::Skipped(line_ends) => parser.tally.line_ends = line_ends + count_line_ends(bytes),
        Layout::Lines => {
            let (mut start, mut line) = (0, 0);
            // No part in front of this offset has its last part.
            let mut searched = if block.format == Format::Audit { 0 } else { bytes.len() };
            loop {
                let (rest, offset) = (&bytes[start..], block.offset + start as u64);
                let parts = if start < searched { Err(0) } else { runtime_line::joined(rest, max_line_bytes) };
                start += match parts {
                    Ok(joined) => {
                        let length = joined.length;
                        parser.joined(line, offset, &rest[..length], joined);
                        line += count_line_ends(&rest[..length]);
                        length
                    }
                    Err(length) => {
                        searched = searched.max(start + length);
                        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                        parser.value(line, offset, &rest[..end]);
                        end
                    }
                } + 1;
                line += 1;
                if start >= bytes.len() {
                    break;
                }
            }
            parser.tally.line_ends = line;
        }
    }
    parser.tally
}

/// Counts the lines of a legacy audit log, which is not parsed.
pub(super) fn count_lines(block: &Block) -> Tally {
    let lines = block.bytes().split(|b| *b == b'\n').filter(|line| !trimmed_end(line).is_empty()).count() as u64;
    Tally { lines, line_ends: count_line_ends(block.bytes()), ..Tally::default() }
}

fn count_line_ends(bytes: &[u8]) -> u32 {
    u32::try_from(memchr::memchr_iter(b'\n', bytes).count()).unwrap_or(u32::MAX)
}

/// Result of one value.
enum Outcome {
    Handed,
    Unknown,
    /// A recorder dropped records.
    Dropped(u64),
    Fault(Fault),
}

impl From<Result<(), Refused>> for Outcome {
    fn from(result: Result<(), Refused>) -> Self {
        match result {
            Ok(()) => Outcome::Handed,
            Err(refused) => Outcome::Fault(Fault::new(refused.expected, refused.found)),
        }
    }
}

impl From<Fault> for Outcome {
    fn from(fault: Fault) -> Self {
        Outcome::Fault(fault)
    }
}

struct Parser<'a, B> {
    format: Format,
    max_line_bytes: usize,
    batch: &'a mut B,
    /// NUL bytes dropped in front of the first value.
    nuls: u64,
    tally: Tally,
    /// The envelope of the value before.
    hint: Option<&'static Envelope>,
    /// The writer that the batch was told last.
    origin: Origin<'static>,
    /// The envelope that the tally was told last, with this writer.
    noted: Option<&'static Envelope>,
}

/// A list of audit events. Its items are parsed one by one, so that a malformed one does not cost the others.
#[derive(Deserialize)]
struct AuditList<'a> {
    #[serde(borrow, default)]
    items: Option<Vec<&'a serde_json::value::RawValue>>,
}

impl<B: Batch> Parser<'_, B> {
    /// Parses one line or document.
    fn value(&mut self, line: u32, offset: u64, bytes: &[u8]) {
        let start = bytes.iter().take_while(|b| matches!(**b, 0 | b' ' | b'\t' | b'\r')).count();
        let (before, mut inner) = bytes.split_at(start);
        let mut offset = offset + start as u64;
        // Files that were written on Windows and concatenated have byte order marks in the middle.
        if let Some(rest) = inner.strip_prefix(b"\xef\xbb\xbf") {
            inner = rest;
            offset += 3;
        }
        let text = trimmed_end(inner);
        self.between(before, line);
        self.between(&inner[text.len()..], line);
        if text.is_empty() {
            return;
        }
        let outcome = match self.text(text) {
            Ok(text) if self.is_recorded() && text.starts_with(DROPPED) => dropped(text),
            Ok(text) => match self.format {
                Format::Audit => match self.audit_value(line, offset, text) {
                    Some(outcome) => outcome,
                    None => return,
                },
                Format::Capture => self.capture(line, offset, text),
                Format::Watch => self.watch(line, offset, text),
                Format::List => self.list(line, offset, text),
                Format::EtcdWatch => self.etcd(line, offset, text),
                Format::EtcdOperations | Format::EtcdWatches => return self.report(line, offset, text),
                Format::EtcdTraffic => self.traffic(line, offset, text),
                Format::EtcdLog | Format::EtcdStore => Outcome::Unknown,
                Format::LegacyAudit => Outcome::Unknown,
                Format::Edn | Format::JepsenLog | Format::Operations | Format::Transactions => {
                    match self.call(line, offset, text) {
                        Some(outcome) => outcome,
                        None => return,
                    }
                }
            },
            Err(fault) => Outcome::Fault(fault),
        };
        self.settle(line, outcome);
    }

    fn settle(&mut self, line: u32, outcome: Outcome) {
        self.tally.lines += 1;
        match outcome {
            Outcome::Handed => self.tally.records += 1,
            Outcome::Unknown => self.tally.unknown += 1,
            Outcome::Dropped(count) => {
                self.tally.records += 1;
                self.tally.dropped = self.tally.dropped.saturating_add(count);
            }
            Outcome::Fault(fault) => self.tally.problem(line, || fault),
        }
    }

    /// Reports NUL bytes between values. A crash or truncation leaves them, and lines may be lost there.
    fn between(&mut self, bytes: &[u8], line: u32) {
        if self.nuls == 0 && !bytes.contains(&0) {
            return;
        }
        let nuls = std::mem::take(&mut self.nuls) + bytes.iter().filter(|b| **b == 0).count() as u64;
        let expected = self.expected();
        self.settle(line, Fault::new(expected, Found::described(format!("{} of NUL", size(nuls)))).into());
    }

    fn text<'b>(&self, bytes: &'b [u8]) -> Result<&'b str, Fault> {
        if bytes.len() > self.max_line_bytes {
            return Err(too_long(bytes.len() as u64, self.max_line_bytes));
        }
        // A derived struct would read an array as its fields in order.
        let is_other = self.format == Format::Audit && envelope::may_stand_in_front(bytes);
        if bytes[0] != b'{'
            && !is_other
            && !matches!(self.format, Format::Edn | Format::JepsenLog | Format::Transactions)
        {
            return Err(Fault::new(
                self.expected(),
                Found::described(format!("text that is no JSON object: {}", Found::byte(bytes, 0))),
            ));
        }
        simdutf8::compat::from_utf8(bytes)
            .map_err(|error| Fault::new("UTF-8 text", Found::byte(bytes, error.valid_up_to())))
    }

    fn expected(&self) -> &'static str {
        match self.format {
            Format::Audit => "an audit event",
            Format::LegacyAudit => "a line of text",
            Format::Capture => "a capture line",
            Format::Watch => "a watch event",
            Format::List => "a list response or an object",
            Format::EtcdWatch => "an etcd watch response",
            Format::Edn | Format::JepsenLog | Format::Operations => "an operation",
            Format::Transactions => "a step of a transaction",
            Format::EtcdOperations => "an operation of an etcd client",
            Format::EtcdWatches => "a watch of an etcd client",
            Format::EtcdTraffic => "a description of etcd traffic",
            Format::EtcdLog => "a write-ahead log of etcd",
            Format::EtcdStore => "a store of etcd",
        }
    }

    /// Parses one line. `None`: it was a list of events, each of which has its own outcome.
    fn audit(&mut self, line: u32, offset: u64, text: &str) -> Option<Outcome> {
        if text.starts_with("{\"kind\":\"EventList\"")
            || text.starts_with("{\"apiVersion\":\"audit.k8s.io/v1\",\"items\"")
        {
            return self.audit_list(line, offset, text);
        }
        Some(match serde_json::from_str::<Box<audit::Event<'_>>>(text) {
            Ok(event) if is_audit(&event) => self.audit_event(line, offset, event),
            Ok(_) | Err(_) if Outline::of(text.as_bytes()).evidence() == Evidence::AuditList => {
                return self.audit_list(line, offset, text);
            }
            Ok(_) => self.other_kind(text),
            Err(error) => match lenient_body::without_odd_bodies(text, &error, &["requestObject", "responseObject"]) {
                Some(reduced) => match serde_json::from_str::<Box<audit::Event<'_>>>(&reduced) {
                    Ok(event) if is_audit(&event) => self.audit_event(line, offset, event),
                    _ => self.no_json(text, &error),
                },
                None => self.no_json(text, &error),
            },
        })
    }

    fn audit_event(&mut self, line: u32, offset: u64, mut event: Box<audit::Event<'_>>) -> Outcome {
        if let Err(text) = event.read_times() {
            return no_time(text);
        }
        self.tally.export.without_zone += u64::from(event.without_zone);
        if event.is_of_2017 {
            self.tally.export.note(&envelope::OF_2017, &Origin::default());
        }
        if let Some(of) = &event.openshift {
            let said = |name: &Loose<'_>| name.0.as_ref().map(|name| name.to_string()).unwrap_or_default();
            let own = envelope::of_node(of.cluster_id.to_string(), said(&event.hostname), said(&event.log_source));
            self.written_by(&envelope::VIAQ, &own);
        }
        // The event counts, but its line counts as a problem.
        let odd = event.odd_times().map(|(expected, found)| Fault::new(expected, found));
        match (self.batch.record(line, offset, Record::Audit(event)), odd) {
            (Ok(()), Some(fault)) => fault.into(),
            (result, _) => result.into(),
        }
    }

    fn audit_list(&mut self, line: u32, offset: u64, text: &str) -> Option<Outcome> {
        let list = match serde_json::from_str::<AuditList<'_>>(text) {
            Ok(list) => list,
            Err(error) => return Some(self.no_json(text, &error)),
        };
        for item in list.items.unwrap_or_default() {
            let outcome = match serde_json::from_str::<Box<audit::Event<'_>>>(item.get()) {
                Ok(event) if is_audit(&event) => self.audit_event(line, offset, event),
                _ => match Outline::of(item.get().as_bytes()).evidence() {
                    Evidence::AuditList => self.other_kind(item.get()),
                    _ => self.audit(line, offset, item.get()).unwrap_or(Outcome::Unknown),
                },
            };
            self.settle(line, outcome);
        }
        None
    }

    fn capture(&mut self, line: u32, offset: u64, text: &str) -> Outcome {
        match serde_json::from_str::<Box<capture::Line<'_>>>(text) {
            Ok(read) => self.capture_line(line, offset, text, read),
            Err(error) => match lenient_body::without_odd_bodies(text, &error, &["body", "event"]) {
                Some(reduced) => match serde_json::from_str::<Box<capture::Line<'_>>>(&reduced) {
                    Ok(read) => self.capture_line(line, offset, &reduced, read),
                    Err(_) => self.no_json(text, &error),
                },
                None => self.no_json(text, &error),
            },
        }
    }

    fn capture_line(&mut self, line: u32, offset: u64, text: &str, read: Box<capture::Line<'_>>) -> Outcome {
        match &*read.kind {
            "capture" | "request" | "response" | "event" | "end" | "mark" | "decision" | "read" => {}
            // Its kind is not its first member.
            "dropped" => return dropped(text),
            "" => return self.other_kind(text),
            _ if Outline::of(text.as_bytes()).evidence() == Evidence::Unknown => return Outcome::Unknown,
            _ => return self.other_kind(text),
        }
        if let Err(stamp) = read.at.time() {
            return no_time(&stamp);
        }
        self.batch.record(line, offset, Record::Capture(read)).into()
    }

    fn watch(&mut self, line: u32, offset: u64, text: &str) -> Outcome {
        match serde_json::from_str::<Box<capture::WatchEvent<'_>>>(text) {
            Ok(event) => self.watch_event(line, offset, text, event),
            Err(error) => match lenient_body::without_odd_bodies(text, &error, &["object"]) {
                Some(reduced) => match serde_json::from_str::<Box<capture::WatchEvent<'_>>>(&reduced) {
                    Ok(event) => self.watch_event(line, offset, &reduced, event),
                    Err(_) => self.no_json(text, &error),
                },
                None => self.no_json(text, &error),
            },
        }
    }

    fn watch_event(&mut self, line: u32, offset: u64, text: &str, event: Box<capture::WatchEvent<'_>>) -> Outcome {
        match &*event.kind {
            "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR" => {}
            _ if Outline::of(text.as_bytes()).evidence() != Evidence::Watch => return self.other_kind(text),
            _ => return Outcome::Unknown,
        }
        let object = &event.object;
        if object.kind.is_empty() && object.metadata.resource_version.is_empty() && object.items.is_none() {
            return Fault::new("a watch event with an object", "an event without one").into();
        }
        self.batch.record(line, offset, Record::Watch(event)).into()
    }

    fn list(&mut self, line: u32, offset: u64, text: &str) -> Outcome {
        let (body, reduced);
        match serde_json::from_str::<body::Body<'_>>(text) {
            Ok(read) => body = read,
            Err(error) => {
                let Some(text) = lenient_body::reduced_body(text, &error) else { return self.no_json(text, &error) };
                reduced = text;
                match serde_json::from_str::<body::Body<'_>>(&reduced) {
                    Ok(read) => body = read,
                    Err(error) => return self.no_json(&reduced, &error),
                }
            }
        }
        let evidence = Outline::of(text.as_bytes()).evidence();
        if !matches!(evidence, Evidence::List | Evidence::Object) {
            return self.other_kind(text);
        }
        if body.items.is_none() && body.rows.is_none() && body.metadata.resource_version.is_empty() {
            return Fault::new("an object with a resourceVersion", "an object without one").into();
        }
        self.batch.record(line, offset, Record::List(Box::new(body))).into()
    }

    fn etcd(&mut self, line: u32, offset: u64, text: &str) -> Outcome {
        match serde_json::from_str::<etcd_watch::Response<'_>>(text) {
            Ok(response) if response.header.revision != 0 || response.events.is_some() => {
                self.batch.record(line, offset, Record::Etcd(Box::new(response))).into()
            }
            Ok(_) => self.other_kind(text),
            Err(error) => self.no_json(text, &error),
        }
    }

    /// `None`: the element is to be ignored.
    fn call(&mut self, line: u32, offset: u64, text: &str) -> Option<Outcome> {
        match call::line(self.format, text) {
            Ok(Some(read)) => Some(self.batch.record(line, offset, Record::Call(Box::new(read))).into()),
            Ok(None) if self.format == Format::JepsenLog => Some(Outcome::Unknown),
            Ok(None) => None,
            Err(fault) => Some(fault.into()),
        }
    }

    /// The problem of JSON that is of another kind than its file.
    fn other_kind(&self, text: &str) -> Outcome {
        Fault::new(self.expected(), Outline::of(text.as_bytes()).evidence().words()).into()
    }

    /// The problem of a value that the JSON parser refused.
    fn no_json(&self, text: &str, error: &serde_json::Error) -> Outcome {
        if error.is_eof() {
            return Fault::new(self.expected(), Found::cut_off("a line", text.len())).into();
        }
        if error.to_string().starts_with("duplicate field") {
            return Fault::new("each key once in an object", Found::json(error)).into();
        }
        let evidence = Outline::of(text.as_bytes()).evidence();
        if error.is_data() && evidence != Evidence::Unknown && !self.reads(evidence) {
            return self.other_kind(text);
        }
        Fault::new(self.expected(), Found::json(error)).into()
    }

    /// Whether recorders with a queue write the format.
    fn is_recorded(&self) -> bool {
        matches!(self.format, Format::Capture | Format::Operations | Format::EtcdOperations | Format::EtcdWatches)
    }

    fn reads(&self, evidence: Evidence) -> bool {
        match self.format {
            Format::Audit => matches!(evidence, Evidence::Audit | Evidence::AuditList),
            Format::Capture => evidence == Evidence::Capture,
            Format::Watch => evidence == Evidence::Watch,
            Format::List => matches!(evidence, Evidence::List | Evidence::Object),
            Format::EtcdWatch => evidence == Evidence::Etcd,
            Format::EtcdOperations => evidence == Evidence::EtcdOperation,
            Format::EtcdWatches => evidence == Evidence::EtcdWatch,
            Format::EtcdTraffic => evidence == Evidence::EtcdTraffic,
            Format::LegacyAudit | Format::Edn | Format::JepsenLog | Format::Operations | Format::Transactions => false,
            Format::EtcdLog | Format::EtcdStore => false,
        }
    }
}

/// The beginning of a line that counts dropped records. Its kind is its first member, so that other lines are not
/// parsed twice.
const DROPPED: &str = r#"{"kind":"dropped","#;

/// Reads the line of a recorder that dropped records.
fn dropped(text: &str) -> Outcome {
    #[derive(Deserialize)]
    struct Dropped {
        count: u64,
    }
    match serde_json::from_str::<Dropped>(text) {
        Ok(Dropped { count }) if count > 0 => Outcome::Dropped(count),
        _ => Fault::new("a positive number of dropped records", "another count").into(),
    }
}

/// Whether parsed JSON is an audit event. Every field may be absent, so any object parses.
fn is_audit(event: &audit::Event<'_>) -> bool {
    let kind = event.kind.is_empty() || &*event.kind == "Event";
    let group = event.api_version.starts_with("audit.k8s.io/");
    kind && (group
        || (event.api_version.is_empty() && (!event.audit_id.is_empty() || event.stage != audit::Stage::Unknown)))
}

fn no_time(stamp: &str) -> Outcome {
    Fault::new("a time (RFC 3339)", Found::text("a text", stamp)).into()
}
