//! Envelopes: the forms in which clouds, log stores and log agents export audit events.
//!
//! [`ENVELOPES`] is the table. An entry says how a value is recognised, and its function finds the events inside. An
//! event that is text in a string is unescaped. One that an export takes apart is written as an audit event again.
//! The one reader of audit events then reads all of them. The name of a file never decides.
//!
//! Envelopes nest: a line of Docker may stand in an answer of Loki. [`DEEPEST_ENVELOPE`] bounds the depth, and
//! [`packed`] the size of what is unpacked. A value that is cut off shows what is in front of the cut.

mod aks;
mod cloudwatch;
mod container;
mod csv;
mod cursor;
mod elastic;
mod gke;
mod line;
mod log_analytics;
mod loki;
mod ocsf;
mod otlp;
mod packed;
mod quoted;
mod records;
pub(super) mod runtime_line;

pub(super) use container::DOCKER;
pub(super) use csv::{ROW as CSV_ROW, is_header, row as csv_row};
pub(super) use line::{Found, OTHER_TEXT, PARTS, STAMPED, event_in, is_stamped};
pub(super) use quoted::Quoted;

use super::json::outline::{Evidence, Outline};
use super::limits::{DEEPEST_ENVELOPE, LONGEST_NAME};
use cursor::{Cursor, unquoted};
use std::borrow::Cow;

/// The type of logs that OpenShift's forwarder reads on the nodes of API servers.
const AUDIT: &str = "audit";

/// Beginning of the names that EKS and AKS give to an API server: its log stream, or its pod.
const API_SERVER: &str = "kube-apiserver-";

/// Entries that only exports of a cluster's control plane have, so audit events may follow.
const OF_A_CONTROL_PLANE: [&str; 4] = [OTHER_STREAMS, OTHER_CATEGORIES, OTHER_SERVICES, CONTROL_MESSAGES];

/// Entries of the scheduler, the controller manager and the like, in a log group of EKS.
const OTHER_STREAMS: &str = "entries of other log streams";

/// Records of the scheduler, the controller manager and the like, in the diagnostics of AKS.
const OTHER_CATEGORIES: &str = "records of other categories";

/// Entries about clusters and node pools, which their services audit.
const OTHER_SERVICES: &str = "audit entries of other services";

/// Entries of nodes and pods.
const OTHER_LOGS: &str = "entries of other logs";

/// Messages with which CloudWatch checks that a subscription can be reached.
const CONTROL_MESSAGES: &str = "control messages";

/// JSON of an entry that is neither an event nor an envelope.
const NO_EVENTS: &str = "entries that are no audit events";

/// One form of export.
#[derive(Debug)]
pub struct Envelope {
    /// Its name in `retrograde show`.
    pub name: &'static str,
    /// What the export cannot show, for people; empty: nothing is known to be lost.
    pub lacks: &'static str,
    /// Keys of the value, all of which it has.
    keys: &'static [&'static str],
    /// Hands over the events of a value. False: the value is of another form, and nothing was handed over.
    read: for<'t> fn(&mut Cursor<'t>, &mut Opening<'t, '_>) -> bool,
}

/// All envelopes. An earlier one is tried first.
static ENVELOPES: &[&Envelope] = &[
    &cloudwatch::SUBSCRIPTION,
    &cloudwatch::STREAM_ENTRY,
    &cloudwatch::ENTRIES,
    &cloudwatch::INSIGHTS,
    &cloudwatch::INSIGHTS_ROW,
    &cloudwatch::LAMBDA,
    &aks::DIAGNOSTICS,
    &log_analytics::ROW,
    &log_analytics::TEXT_ROW,
    &log_analytics::TABLES,
    &gke::ENTRY,
    &ocsf::EVENT,
    &records::LIST,
    &records::STREAM_RECORDS,
    &records::DATA,
    &otlp::LOGS,
    &otlp::BODY,
    &loki::LINE,
    &loki::ANSWER,
    &loki::PUSH,
    &elastic::HITS,
    &elastic::DOCUMENT,
    &container::DOCKER,
    &elastic::SHIPPED,
    &elastic::MESSAGE,
];

/// The writer of an event, as its envelope names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The cluster; empty if the envelope names none.
    pub cluster: Cow<'a, str>,
    /// The API server; empty if the envelope names none.
    pub server: Cow<'a, str>,
    /// The clock of its times; empty: the server's.
    pub clock: Cow<'a, str>,
}

/// Receives the events of an envelope.
pub(super) trait Sink {
    /// Takes the text of an event. `place` is the offset, in the outermost value, from which the text can be read
    /// again. False: the text is no audit event, and nothing happened.
    fn event(&mut self, place: usize, text: &str, envelope: &'static Envelope, origin: &Origin<'_>) -> bool;

    /// Counts an entry that is no audit event. `kind` is a noun phrase in the plural.
    fn other(&mut self, place: usize, kind: &'static str, envelope: &'static Envelope);

    /// Notes that a value is cut off or malformed behind what was handed over.
    fn broken(&mut self) {}
}

/// One value that is being opened.
pub(super) struct Opening<'t, 's> {
    /// The text that contains the value.
    text: &'t str,
    /// Place of the text in the outermost value, if it is a copy.
    copy_of: Option<usize>,
    depth: usize,
    envelope: &'static Envelope,
    /// The writer that outer envelopes name.
    outer: Origin<'s>,
    sink: &'s mut dyn Sink,
}

/// Opens a value. `hint` is the envelope of the value before. Returns the envelope; `None` if it is no envelope, and
/// then nothing was handed over.
pub(super) fn open(text: &str, hint: Option<&'static Envelope>, sink: &mut dyn Sink) -> Option<&'static Envelope> {
    open_within(text, hint, None, 0, &Origin::default(), sink)
}

fn open_within(
    text: &str,
    hint: Option<&'static Envelope>,
    copy_of: Option<usize>,
    depth: usize,
    outer: &Origin<'_>,
    sink: &mut dyn Sink,
) -> Option<&'static Envelope> {
    if depth == DEEPEST_ENVELOPE {
        return None;
    }
    let mut attempt = |envelope: &'static Envelope| {
        let outer = outer.clone();
        let mut opening = Opening { text, copy_of, depth, envelope, outer, sink: &mut *sink };
        let mut cursor = Cursor::new(text);
        let is_read = (envelope.read)(&mut cursor, &mut opening);
        if is_read && cursor.is_broken() {
            sink.broken();
        }
        is_read
    };
    if let Some(envelope) = hint.filter(|envelope| attempt(envelope)) {
        return Some(envelope);
    }
    let (keys, is_cut) = keys(text);
    // Behind a cut there may be the other keys.
    let fits = |envelope: &&&'static Envelope| {
        let mut wanted = envelope.keys.iter();
        if is_cut { wanted.any(|key| keys.contains(key)) } else { wanted.all(|key| keys.contains(key)) }
    };
    ENVELOPES.iter().filter(fits).copied().find(|envelope| attempt(envelope))
}

/// The first keys of an object, and whether it is cut off.
fn keys(text: &str) -> (Vec<&str>, bool) {
    const MOST: usize = 256;
    let mut keys = Vec::new();
    let mut cursor = Cursor::new(text);
    cursor.object(|_, key| {
        if keys.len() < MOST {
            keys.push(key);
        }
    });
    (keys, cursor.is_broken())
}

/// Lists in which one long answer or message holds its entries. Each entry is an envelope or an event by itself.
const LISTS: [&str; 3] = ["events", "records", "hits"];

/// The offset behind the bracket that opens the list of entries in an object that is cut off inside the list. Then the
/// entries can be read one by one, however long the object is.
pub(super) fn entries_begin(object: &str) -> Option<usize> {
    let mut begin = None;
    let open = |cursor: &mut Cursor<'_>| cursor.begin_of_list();
    let mut cursor = Cursor::new(object);
    cursor.object(|cursor, key| match key {
        "hits" => cursor.object(|cursor, key| begin = begin.or(open(cursor).filter(|_| key == "hits"))),
        _ if LISTS.contains(&key) => begin = open(cursor),
        _ => {}
    });
    begin.filter(|_| cursor.is_broken())
}

/// The first elements of a list. The last one may be cut off.
pub(super) fn elements(list: &str) -> Vec<&str> {
    const MOST: usize = 64;
    let mut elements = Vec::new();
    Cursor::new(list).list(|cursor| {
        if elements.len() < MOST {
            elements.push(cursor.value());
        }
    });
    elements
}

/// Whether bytes may begin a line with an event behind a prefix.
pub(super) fn may_stand_in_front(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first.is_ascii_digit() || matches!(first, b'<' | b'"' | b'@'))
}

/// Whether a value that may be cut off is one of an envelope, or may hold one.
pub(super) fn is_envelope(text: &str) -> bool {
    struct Seen(bool);
    impl Sink for Seen {
        fn event(&mut self, _: usize, text: &str, _: &'static Envelope, _: &Origin<'_>) -> bool {
            let is_audit = is_audit_text(text);
            self.0 |= is_audit;
            is_audit
        }
        fn other(&mut self, _: usize, kind: &'static str, _: &'static Envelope) {
            self.0 |= OF_A_CONTROL_PLANE.contains(&kind);
        }
    }
    let mut seen = Seen(false);
    let opened = open(text, None, &mut seen);
    opened.is_some() && seen.0
}

/// Whether text seems to be an audit event, by its beginning.
fn is_audit_text(text: &str) -> bool {
    let mut end = text.len().min(64 << 10);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let begin = &text.as_bytes()[..end];
    ["\"audit.k8s.io/", "\"auditID\""].iter().any(|word| memchr::memmem::find(begin, word.as_bytes()).is_some())
}

/// The writer that an entry names, and for what it does not name that of the envelope around it.
fn within<'o>(entry: &'o Origin<'_>, outer: &'o Origin<'_>) -> Origin<'o> {
    // A name that is too long is none.
    let is_name = |name: &str| !name.is_empty() && name.len() <= LONGEST_NAME;
    let named =
        |inner: &'o str, outer: &'o str| -> Cow<'o, str> { Cow::Borrowed(if is_name(inner) { inner } else { outer }) };
    Origin {
        cluster: named(&entry.cluster, &outer.cluster),
        server: named(&entry.server, &outer.server),
        clock: named(&entry.clock, &outer.clock),
    }
}

impl<'t> Opening<'t, '_> {
    /// The offset of a part of the text in the outermost value.
    fn place(&self, part: &str) -> usize {
        let inside = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        self.copy_of.unwrap_or(inside.min(self.text.len()))
    }

    /// Counts an entry that is no audit event.
    fn other(&mut self, part: &str, kind: &'static str) {
        self.sink.other(self.place(part), kind, self.envelope);
    }

    /// Hands over an event that this program wrote from the parts of an entry.
    fn written(&mut self, entry: &str, event: &str, origin: &Origin<'_>) {
        let place = self.place(entry);
        if !self.sink.event(place, event, self.envelope, &within(origin, &self.outer)) {
            self.other(entry, NO_EVENTS);
        }
    }

    /// Hands over the value that holds an event: an object, or a string with its text, or another envelope.
    fn payload(&mut self, value: &str, origin: &Origin<'_>) {
        if value.starts_with('{') {
            return self.json(value, self.copy_of, origin, value);
        }
        if !value.starts_with('"') {
            return self.other(value, "entries without text");
        }
        let place = Some(self.place(value));
        let text = quoted::unescaped(unquoted(value));
        match line::event_in(&text) {
            line::Found::Event(at) => self.json(&text[at..], place, origin, value),
            line::Found::Part => self.other(value, line::PARTS),
            line::Found::Nothing => match packed::unpacked(&text) {
                Some(texts) => texts.iter().for_each(|text| self.json(text, place, origin, value)),
                None => self.other(value, line::OTHER_TEXT),
            },
        }
    }

    /// Hands over an element of a list, which is an event or an envelope. `hint` is the envelope of the element before.
    fn element(&mut self, value: &str, hint: &mut Option<&'static Envelope>) {
        let origin = Origin::default();
        match *hint {
            Some(known) if self.inner(value, self.copy_of, Some(known), &origin, value).is_some() => {}
            _ => *hint = self.json_or_envelope(value, self.copy_of, &origin, value),
        }
    }

    fn json(&mut self, json: &str, copy_of: Option<usize>, origin: &Origin<'_>, entry: &str) {
        self.json_or_envelope(json, copy_of, origin, entry);
    }

    /// Hands over JSON: an event, or another envelope, which it returns. `entry` is the part of this text that holds it.
    fn json_or_envelope(
        &mut self,
        json: &str,
        copy_of: Option<usize>,
        origin: &Origin<'_>,
        entry: &str,
    ) -> Option<&'static Envelope> {
        let place = self.place(entry);
        if self.sink.event(place, json, self.envelope, &within(origin, &self.outer)) {
            return None;
        }
        let inner = self.inner(json, copy_of, None, origin, entry);
        if inner.is_none() {
            self.other(entry, NO_EVENTS);
        }
        inner
    }

    /// Opens an envelope inside this one.
    fn inner(
        &mut self,
        json: &str,
        copy_of: Option<usize>,
        hint: Option<&'static Envelope>,
        origin: &Origin<'_>,
        entry: &str,
    ) -> Option<&'static Envelope> {
        let place = self.place(entry);
        let origin = within(origin, &self.outer);
        match copy_of {
            Some(_) => open_within(json, hint, Some(place), self.depth + 1, &origin, self.sink),
            // Inside the same text, the place of an inner value counts from the value that holds it.
            None => open_within(json, hint, None, self.depth + 1, &origin, &mut Shifted(place, self.sink)),
        }
    }
}

/// The audit event in a value that was read again by its place: the value itself, or what an envelope holds. Several
/// events are returned as an `EventList`. `None`: a text without an event.
pub(super) fn without_envelope(value: String) -> Option<String> {
    struct Collected(Vec<String>);
    impl Sink for Collected {
        fn event(&mut self, _: usize, text: &str, _: &'static Envelope, _: &Origin<'_>) -> bool {
            let is_audit = matches!(Outline::of(text.as_bytes()).evidence(), Evidence::Audit | Evidence::AuditList);
            if is_audit {
                self.0.push(text.trim_end().to_owned());
            }
            is_audit
        }
        fn other(&mut self, _: usize, _: &'static str, _: &'static Envelope) {}
    }
    let mut found = Collected(Vec::new());
    let is_text = value.starts_with('"');
    if is_text {
        let (text, envelope, outer) = (&*value, &line::STAMPED, Origin::default());
        let mut opening = Opening { text, copy_of: Some(0), depth: 0, envelope, outer, sink: &mut found };
        match quoted::field(text).filter(|_| text.starts_with("\"{\"\"")) {
            Some((event, _)) => opening.json(&event, Some(0), &Origin::default(), text),
            None => opening.payload(text, &Origin::default()),
        }
    } else if Outline::of(value.as_bytes()).evidence() == Evidence::Unknown {
        open(&value, None, &mut found);
    }
    match found.0.len() {
        0 => (!is_text).then_some(value),
        1 => found.0.pop(),
        _ => Some(format!(r#"{{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[{}]}}"#, found.0.join(","))),
    }
}

/// Adds the place of an inner value to the places inside it.
struct Shifted<'s>(usize, &'s mut dyn Sink);

impl Sink for Shifted<'_> {
    fn event(&mut self, place: usize, text: &str, envelope: &'static Envelope, origin: &Origin<'_>) -> bool {
        self.1.event(self.0 + place, text, envelope, origin)
    }
    fn other(&mut self, place: usize, kind: &'static str, envelope: &'static Envelope) {
        self.1.other(self.0 + place, kind, envelope);
    }
    fn broken(&mut self) {
        self.1.broken();
    }
}

/// An event of OpenShift's own log format, which names its writer beside its own members.
pub(super) static VIAQ: Envelope = Envelope {
    name: "viaq",
    lacks: "bodies, if the profile of the audit policy is Default",
    keys: &[],
    read: |_: &mut Cursor<'_>, _| false,
};

/// Events as API servers wrote them in 2017, without an envelope.
pub(super) static OF_2017: Envelope = Envelope {
    name: "audit-2017",
    lacks: "the times of answers, and parts of a second",
    keys: &[],
    read: |_: &mut Cursor<'_>, _| false,
};

/// The name of an API server, if it is one. A stream or a pod of another name may hold lines of several servers.
fn api_server(name: &str) -> Cow<'_, str> {
    let name = quoted::unescaped(name);
    if name.starts_with(API_SERVER) { name } else { Cow::Borrowed("") }
}

/// The writer of events on a node. `source` names the API server where a node has several, which share its clock.
pub(super) fn of_node<'o>(cluster: String, node: String, source: String) -> Origin<'o> {
    let server = if node.is_empty() || source.is_empty() { node.clone() } else { format!("{node} {source}") };
    Origin { cluster: cluster.into(), server: server.into(), clock: node.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_page_has_a_row_for_each_envelope_with_what_it_cannot_show() {
        let page = include_str!("../../../docs/exports.md");
        let rows: BTreeMap<&str, &str> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
            .map(|row| (row[1].trim_matches('`'), row[4]))
            .collect();
        let others = [&line::STAMPED, &csv::ROW, &VIAQ, &OF_2017];
        let names: BTreeMap<&str, &str> =
            ENVELOPES.iter().chain(&others).map(|envelope| (envelope.name, envelope.lacks)).collect();
        assert_eq!(rows.keys().collect::<Vec<_>>(), names.keys().collect::<Vec<_>>());
        for (name, lacks) in names {
            assert!(rows[name] == lacks || rows[name] == "the same" || lacks.is_empty(), "{name}: {lacks}");
        }
    }
}
