//! Files of evidence that a sketch is lowered to, and the text of their times, lines and URIs.

use super::body::{Bodies, token};
use super::syntax::*;
use crate::ingest::{Format, Time};
use serde::Serialize;

/// Begin of every sketch: 2026-03-02T09:00:00Z, in nanoseconds since 1970.
pub const BEGIN: i64 = 1_772_442_000_000_000_000;

/// One file of evidence.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// File name.
    pub name: String,
    /// Format.
    pub format: Format,
    /// The server that wrote it, and its clock (audit logs).
    pub server: Option<(String, String)>,
    /// Lines, each with its line in the sketch.
    pub lines: Vec<(u32, String)>,
}

/// A time as written in the evidence, on a clock.
pub fn written(settings: &Settings, clock: &str, time: i64) -> String {
    Time(BEGIN + time + settings.ahead(clock)).to_string()
}

/// The time at which a watch's headers arrived: before its first event.
pub fn started(settings: &Settings, act: &Timed, request: &Request) -> i64 {
    let latest = act.begin + settings.column;
    let first = request.events.first().map_or(latest, |e| e.time);
    act.begin + (first.min(latest) - act.begin).max(2) / 2
}

/// A value as one line of JSON.
pub fn text(line: &impl Serialize) -> String {
    // Structs of texts and numbers always serialize.
    serde_json::to_string(line).unwrap_or_default()
}

/// Path and query of a request.
pub fn uri(bodies: &Bodies<'_>, request: &Request) -> String {
    let kind = bodies.kind(request.kind);
    let mut uri = if kind.group.is_empty() {
        format!("/api/{}", kind.version)
    } else {
        format!("/apis/{}/{}", kind.group, kind.version)
    };
    let key = request.target.key.as_ref();
    let namespace = key.map_or(&request.namespace, |k| &k.namespace);
    if !namespace.is_empty() {
        uri += &format!("/namespaces/{namespace}");
    }
    uri += &format!("/{}", kind.plural);
    if let Some(key) = key.filter(|_| request.verb != Verb::Create || !request.subresource.is_empty()) {
        uri += &format!("/{}", key.name);
    }
    if !request.subresource.is_empty() {
        uri += &format!("/{}", request.subresource);
    }
    let query = query(request);
    if query.is_empty() { uri } else { format!("{uri}?{query}") }
}

fn query(request: &Request) -> String {
    let ask = &request.ask;
    let mut pairs: Vec<(&str, String)> = Vec::new();
    let watch = request.verb == Verb::Watch;
    if ask.bookmarks && watch {
        pairs.push(("allowWatchBookmarks", "true".to_owned()));
    }
    match ask.token {
        Some(Token::At(revision)) => pairs.push(("continue", token(Some(revision), &ask.after))),
        Some(Token::Inconsistent) => pairs.push(("continue", token(None, &ask.after))),
        None => {}
    }
    if request.dry_run {
        pairs.push(("dryRun", "All".to_owned()));
    }
    if request.apply {
        pairs.push(("fieldManager", "applier".to_owned()));
    }
    for (name, text) in [("fieldSelector", &ask.fields), ("labelSelector", &ask.labels)] {
        if !text.is_empty() {
            pairs.push((name, escaped(text)));
        }
    }
    if let Some(limit) = ask.limit {
        pairs.push(("limit", limit.to_string()));
    }
    if let Some(version) = ask.version {
        pairs.push(("resourceVersion", version.to_string()));
    }
    if let Some(matching) = ask.matching {
        pairs.push(("resourceVersionMatch", matching.to_owned()));
    }
    if let Some(initial) = ask.initial {
        pairs.push(("sendInitialEvents", initial.to_string()));
    }
    if !ask.shards.is_empty() {
        pairs.push(("shardSelector", escaped(&ask.shards)));
    }
    if watch {
        pairs.push(("watch", "true".to_owned()));
    }
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn escaped(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
    text.bytes().map(|b| if plain(b) { (b as char).to_string() } else { format!("%{b:02X}") }).collect()
}
