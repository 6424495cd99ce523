//! A trace for Perfetto (ui.perfetto.dev opens it in the browser). Clients are processes, their incarnations and watches are
//! tracks, operations are slices, watch events are instants, and arrows connect the facts of a finding.
//!
//! Field numbers are those of `protos/perfetto/trace/track_event/*.proto` and `trace_packet.proto`. The older JSON format draws
//! overlapping slices of one track wrongly, so this writes protobuf, with one track per concurrent operation.

mod protobuf;

use self::protobuf::Message;
use super::nearby::{Neighbourhood, span};
use super::{Part, Report, Sink};
use crate::check::Finding;
use crate::explain::{facts, names};
use crate::history::{DeliveryKind, History, IncarnationId, Marks, Verb};
use crate::ingest::Time;
use rustc_hash::FxHashMap;
use std::io;

/// Limit on operations and watch events. A larger history is cut to the surroundings of its findings.
const EVENTS: usize = 1_000_000;
/// Findings to draw.
const FINDINGS: usize = 1_000;
/// Tracks per incarnation for concurrent operations; further ones share the last track.
const TRACKS: usize = 64;

/// `TracePacket`.
const TIMESTAMP: u32 = 8;
const SEQUENCE: u32 = 10;
const TRACK_EVENT: u32 = 11;
const SEQUENCE_FLAGS: u32 = 13;
const TRACK_DESCRIPTOR: u32 = 60;
/// `TrackDescriptor`.
const UUID: u32 = 1;
const NAME: u32 = 2;
const PARENT: u32 = 5;
/// `TrackEvent`.
const ANNOTATION: u32 = 4;
const TYPE: u32 = 9;
const TRACK: u32 = 11;
const CATEGORY: u32 = 22;
const EVENT_NAME: u32 = 23;
const FLOW: u32 = 47;
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
/// `DebugAnnotation`.
const STRING_VALUE: u32 = 6;
const ANNOTATION_NAME: u32 = 10;

/// Writes the trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Perfetto;

impl Sink for Perfetto {
    fn write(&self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let mut trace = Trace { out, tracks: 0, flows: 0, begun: false };
        report.histories.iter().try_for_each(|part| trace.history(part))
    }
}

/// A slice or an instant, before it has a track.
struct Event {
    begin: Time,
    end: Time,
    name: String,
    notes: Vec<(&'static str, String)>,
}

struct Trace<'w> {
    out: &'w mut dyn io::Write,
    tracks: u64,
    flows: u64,
    begun: bool,
}

impl Trace<'_> {
    fn history(&mut self, part: &Part<'_>) -> io::Result<()> {
        let history = part.history;
        let near = Neighbourhood::of(part, EVENTS, FINDINGS);
        let mut lives: FxHashMap<IncarnationId, (Vec<Event>, Vec<Event>)> = FxHashMap::default();
        let mut left = EVENTS;
        for (life, event) in operations(history).chain(calls(history)) {
            if left > 0 && near.covers(event.begin, event.end) {
                left -= 1;
                lives.entry(life).or_default().0.push(event);
            }
        }
        for (life, event) in deliveries(history) {
            if left > 0 && near.covers(event.begin, event.end) {
                left -= 1;
                lives.entry(life).or_default().1.push(event);
            }
        }
        let process = self.track(&format!("{} {}", part.nature.name(), part.name), 0)?;
        let mut track_of: FxHashMap<IncarnationId, u64> = FxHashMap::default();
        let mut order: Vec<usize> = (0..history.incarnations.len()).collect();
        order.sort_by_key(|&at| {
            let life = &history.incarnations[at];
            (history.name(history.clients[life.client.index()]), life.span.0, at)
        });
        let end = Time(span(part).1);
        for at in order {
            let id = IncarnationId(at as u32);
            let facts = part.judgement.findings.iter().take(FINDINGS).flat_map(|f| &f.certificate.facts);
            let named = facts.into_iter().any(|fact| fact.incarnation == id);
            let events = lives.remove(&id);
            if events.is_none() && !named {
                continue;
            }
            let name = format!(
                "{} {}",
                names::client(history, history.incarnations[at].client),
                names::incarnation(history, id)
            );
            let life = self.track(name.trim_end(), process)?;
            track_of.insert(id, life);
            let (slices, instants) = events.unwrap_or_default();
            self.slices(life, slices, end)?;
            if !instants.is_empty() {
                let track = self.track("watch events", life)?;
                for event in &instants {
                    self.event(track, INSTANT, event.begin, Some(event), &[])?;
                }
            }
        }
        if part.judgement.findings.is_empty() {
            return Ok(());
        }
        let findings = self.track("findings", process)?;
        let drawn = part.judgement.findings.iter().take(FINDINGS);
        drawn.into_iter().try_for_each(|finding| self.finding(history, finding, findings, &track_of))
    }

    /// Operations of one incarnation; concurrent ones have a track each.
    fn slices(&mut self, life: u64, mut slices: Vec<Event>, end: Time) -> io::Result<()> {
        slices.sort_by_key(|event| event.begin);
        let mut free: Vec<(Time, u64)> = Vec::new();
        for event in &slices {
            // An operation without a return lasts to the end of the picture.
            let until = if event.end.is_known() { event.end.max(event.begin) } else { end.max(event.begin) };
            let at = match free.iter().position(|(ended, _)| *ended <= event.begin) {
                Some(at) => at,
                None if free.len() == TRACKS => TRACKS - 1,
                None => {
                    let name = if free.is_empty() { "operations" } else { "concurrent operations" };
                    free.push((Time(i64::MIN), self.track(name, life)?));
                    free.len() - 1
                }
            };
            let track = &mut free[at];
            // Slices of one track nest: one that began inside another must end inside it.
            let until = if track.0 > event.begin { until.min(track.0) } else { until };
            track.0 = track.0.max(until);
            let track = track.1;
            self.event(track, SLICE_BEGIN, event.begin, Some(event), &[])?;
            self.event(track, SLICE_END, until, None, &[])?;
        }
        Ok(())
    }

    fn finding(
        &mut self,
        history: &History,
        finding: &Finding,
        findings: u64,
        track_of: &FxHashMap<IncarnationId, u64>,
    ) -> io::Result<()> {
        self.flows += 1;
        let flow = [self.flows];
        let rows = facts::rows(history, &finding.certificate);
        let mut timed: Vec<_> = finding.certificate.facts.iter().zip(rows).filter(|(f, _)| f.time.is_known()).collect();
        timed.sort_by_key(|(fact, _)| fact.time);
        let last = timed.last().map(|(fact, _)| fact.time);
        for (fact, row) in timed {
            let track = track_of.get(&fact.incarnation).copied().unwrap_or(findings);
            let notes = vec![("place", row.place), ("revision", row.revision), ("server", row.server)];
            let event = Event { begin: fact.time, end: fact.time, name: row.says, notes };
            self.event(track, INSTANT, fact.time, Some(&event), &flow)?;
        }
        let Some(at) = last else { return Ok(()) };
        let notes = vec![
            ("summary", finding.summary.clone()),
            ("why", finding.certificate.reason.clone()),
            ("id", finding.id.clone()),
        ];
        let name = format!("{} {}", finding.kind_word(), finding.rule);
        self.event(findings, INSTANT, at, Some(&Event { begin: at, end: at, name, notes }), &flow)
    }

    /// A new track below `parent`, or on top for 0.
    fn track(&mut self, name: &str, parent: u64) -> io::Result<u64> {
        self.tracks += 1;
        let uuid = self.tracks;
        let track = Message::default().number(UUID, uuid).text(NAME, name);
        let track = if parent > 0 { track.number(PARENT, parent) } else { track };
        self.packet(Message::default().message(TRACK_DESCRIPTOR, track))?;
        Ok(uuid)
    }

    fn event(&mut self, track: u64, kind: u64, at: Time, event: Option<&Event>, flows: &[u64]) -> io::Result<()> {
        let mut message = Message::default();
        if let Some(event) = event {
            for (name, value) in event.notes.iter().filter(|(_, value)| !value.is_empty()) {
                let note = Message::default().text(STRING_VALUE, value).text(ANNOTATION_NAME, name);
                message = message.message(ANNOTATION, note);
            }
        }
        message = message.number(TYPE, kind).number(TRACK, track);
        if let Some(event) = event {
            message = message
                .text(CATEGORY, if flows.is_empty() { "recorded" } else { "finding" })
                .text(EVENT_NAME, &event.name);
        }
        for flow in flows {
            message = message.fixed(FLOW, *flow);
        }
        let time = u64::try_from(at.0).unwrap_or(0);
        self.packet(Message::default().number(TIMESTAMP, time).message(TRACK_EVENT, message))
    }

    /// Writes one packet. The first one declares that it depends on no earlier packet.
    fn packet(&mut self, packet: Message) -> io::Result<()> {
        let packet = packet.number(SEQUENCE, 1).number(SEQUENCE_FLAGS, if self.begun { 2 } else { 1 });
        self.begun = true;
        self.out.write_all(Message::default().message(1, packet).bytes())
    }
}

/// Requests, each with key or scope, options and answer.
fn operations(history: &History) -> impl Iterator<Item = (IncarnationId, Event)> + '_ {
    let drawn = history.operations.iter().filter(|o| o.invoke.is_known() && !o.marks.has(Marks::SHADOW));
    drawn.map(|operation| {
        let object = match (operation.key.is_some(), operation.scope.is_some()) {
            (true, _) => history.key_name(operation.key),
            (false, true) => history.scope_name(operation.scope),
            (false, false) => String::new(),
        };
        let revision = |revision: crate::history::Revision| revision.known().map_or(String::new(), |r| r.to_string());
        let status = if operation.status > 0 { operation.status.to_string() } else { "no answer".to_owned() };
        let notes = vec![
            ("status", if operation.verb == Verb::Watch { String::new() } else { status }),
            ("asked", revision(operation.asked_revision)),
            ("answered", revision(operation.answered)),
            ("server", history.server_name(operation.server).to_owned()),
            ("audit id", history.audit_id(operation.audit_id)),
            ("place", format!("{}:{}", history.file_name(operation.position.file), operation.position.line)),
        ];
        let name = format!("{} {}", operation.verb.name(), object);
        let name = name.trim_end().to_owned();
        (operation.incarnation, Event { begin: operation.invoke, end: operation.ret, name, notes })
    })
}

/// Calls of an operation log.
fn calls(history: &History) -> impl Iterator<Item = (IncarnationId, Event)> + '_ {
    let log = history.calls();
    log.calls.iter().filter(|call| call.invoke.time.is_known()).map(move |call| {
        let key = log.keys.get(&call.key).map_or(String::new(), |key| history.key_name(*key));
        let place = format!("{}:{}", history.file_name(call.invoke.position.file), call.invoke.position.line);
        let name = log.words(&call, history.name(call.function));
        let notes = vec![("key", key), ("place", place)];
        (call.process, Event { begin: call.invoke.time, end: call.ret.time, name, notes })
    })
}

/// Watch events.
fn deliveries(history: &History) -> impl Iterator<Item = (IncarnationId, Event)> + '_ {
    history.streams.iter().flat_map(move |stream| {
        let life = history.operation(stream.operation).incarnation;
        history.deliveries_of(stream).iter().filter(|d| d.at.is_known()).map(move |delivery| {
            let kind = match delivery.kind {
                DeliveryKind::Added => "ADDED",
                DeliveryKind::Modified => "MODIFIED",
                DeliveryKind::Deleted => "DELETED",
                DeliveryKind::Bookmark => "BOOKMARK",
                DeliveryKind::InitialEventsEnd => "end of initial events",
                DeliveryKind::Error => "ERROR",
                DeliveryKind::Unidentified => "unreadable event",
            };
            let key = if delivery.key.is_some() { history.key_name(delivery.key) } else { String::new() };
            let revision = delivery.revision.known().map_or(String::new(), |r| r.to_string());
            let place = format!("{}:{}", history.file_name(delivery.position.file), delivery.position.line);
            let name = format!("{kind} {}", key).trim_end().to_owned();
            let notes = vec![("revision", revision), ("place", place)];
            (life, Event { begin: delivery.at, end: delivery.at, name, notes })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn lives_are_tracks_and_the_facts_of_a_finding_share_a_flow() {
        let sample = sample::restart(str::to_owned);
        let mut out = Vec::new();
        Perfetto.write(&sample.report(), &mut out).unwrap();
        let has = |text: &str| out.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(has("kubelet-1#1") && has("kubelet-1#2") && has("violation monotonic-reads"));
        assert!(has("saw pods default/pod-0 deleted") && has("captures/kubelet-1.jsonl:36"));
        // Field 47, eight bytes: the two facts of the first finding and the finding itself.
        let flow = [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(out.windows(flow.len()).filter(|window| *window == flow).count(), 3);
    }
}
