//! Decides the format of a file from its first bytes, never from its name.
//!
//! Input: up to [`SAMPLE`] decompressed bytes. Output: a format with its framing, or the reason why the file is
//! ignored. Detection must be cheap and must not accept text that quotes JSON. It sees only a prefix, so a value may
//! be cut off anywhere.

pub(crate) mod format;
pub(super) mod sniff;

use self::format::Format;
use self::sniff::{Detected, Framing, Seen};
use super::call;
use super::envelope::{self, runtime_line};
use super::etcd::{is_store, wal};
use super::input::archive;
use super::input::stream::{self, Stream};
use super::json::outline::{Evidence, Outline};
use memchr::memmem;

/// Length of the sample, in decompressed bytes.
pub(super) const SAMPLE: usize = 64 * 1024;

impl Evidence {
    /// The format for values of this kind. Objects and lists need a resourceVersion in the sample: a manifest
    /// observed no server.
    fn format(self, versioned: bool) -> Option<Format> {
        match self {
            Evidence::Audit | Evidence::AuditList => Some(Format::Audit),
            Evidence::Capture => Some(Format::Capture),
            Evidence::Watch => Some(Format::Watch),
            Evidence::List | Evidence::Object if versioned => Some(Format::List),
            Evidence::Etcd => Some(Format::EtcdWatch),
            Evidence::Operation => Some(Format::Operations),
            Evidence::EtcdOperation => Some(Format::EtcdOperations),
            Evidence::EtcdWatch => Some(Format::EtcdWatches),
            Evidence::EtcdTraffic => Some(Format::EtcdTraffic),
            _ => None,
        }
    }
}

/// Detects the format. `whole`: the sample is the whole file.
pub(super) fn detect(sample: &[u8], whole: bool, forced: Option<Format>) -> Detected {
    let member =
        if wal::is_segment(sample) { Some(Format::EtcdLog) } else { is_store(sample).then_some(Format::EtcdStore) };
    match forced {
        Some(format) if format.is_of_member() => return Detected::Evidence(format, Framing::Whole),
        None if archive::is_archive(sample) => return Detected::Ignored("an archive inside another input"),
        None => {
            if let Some(format) = member {
                return Detected::Evidence(format, Framing::Whole);
            }
        }
        Some(_) => {}
    }
    let lines_of = || {
        let ends = memchr::memchr_iter(b'\n', sample).chain([sample.len()]);
        let lines = ends.scan(0, |start, end| Some(&sample[std::mem::replace(start, end + 1)..end]));
        lines.map(trimmed).filter(|line| !line.is_empty())
    };
    let Some(first) = lines_of().next() else {
        let nuls = sample.contains(&0);
        return Detected::Ignored(if nuls { "nothing but NUL bytes" } else { "empty" });
    };
    if forced == Some(Format::LegacyAudit) || (forced.is_none() && is_legacy(lines_of())) {
        return Detected::Evidence(Format::LegacyAudit, Framing::Lines);
    }
    match forced {
        Some(Format::Edn) => return Detected::Evidence(Format::Edn, Framing::Elements { json: false }),
        Some(format @ (Format::JepsenLog | Format::Transactions)) => return Detected::Evidence(format, Framing::Lines),
        Some(Format::Operations) if first.starts_with(b"[") => {
            return Detected::Evidence(Format::Operations, Framing::Elements { json: true });
        }
        _ => {}
    }
    if first.starts_with(b"[") && forced.is_none() && call::detect(sample) == Some(Format::Operations) {
        return Detected::Evidence(Format::Operations, Framing::Elements { json: true });
    }
    if first.starts_with(b"[") && matches!(forced, None | Some(Format::Audit)) && is_list_of_events(sample, first) {
        return Detected::Evidence(Format::Audit, Framing::Elements { json: true });
    }
    // An indented first value means documents, of which later ones may be compact.
    let indented = first == b"{";
    let versioned = memmem::find(sample, b"\"resourceVersion\"").is_some();
    let lines = || lines(&lines_of().collect::<Vec<_>>(), versioned, forced);
    let documents = || documents(sample, whole, versioned, forced);
    let found = match memchr::memchr(b'{', sample) {
        // No JSON object begins a line.
        None => None,
        Some(_) if indented => documents().or_else(lines),
        Some(_) => lines().or_else(documents),
    };
    match found {
        Some((format, framing)) => {
            let format = forced.unwrap_or(format);
            let of_a_report = matches!(format, Format::EtcdOperations | Format::EtcdWatches);
            let framing = if of_a_report && indented { Framing::Indented } else { framing };
            Detected::Evidence(format, framing)
        }
        None if forced.is_some() => Detected::Evidence(forced.unwrap_or(Format::Audit), Framing::Lines),
        #[cfg(feature = "container")]
        None if sample.starts_with(&crate::container::MAGIC) => {
            Detected::Ignored("a history container inside another file (unpack it first)")
        }
        None => match call::detect(sample) {
            Some(format @ (Format::JepsenLog | Format::Transactions)) => Detected::Evidence(format, Framing::Lines),
            Some(format) => Detected::Evidence(format, Framing::Elements { json: format == Format::Operations }),
            None => Detected::Ignored(reason(first, &lines_of().collect::<Vec<_>>())),
        },
    }
}

/// The line without NUL bytes and carriage returns at its start, and without spaces and NUL bytes at its end. A
/// truncated log begins and ends with NUL bytes.
fn trimmed(line: &[u8]) -> &[u8] {
    let start = line.iter().take_while(|b| matches!(b, 0 | b'\r')).count();
    trimmed_end(&line[start..])
}

/// The line without spaces and NUL bytes at its end.
pub(super) fn trimmed_end(mut line: &[u8]) -> &[u8] {
    while let Some((b' ' | b'\r' | b'\t' | b'\n' | b'\0', rest)) = line.split_last() {
        line = rest;
    }
    line
}

/// `2026-11-20T20:26:45.607755314Z AUDIT: id="..."` (k8s.io/apiserver `plugin/pkg/audit/log`).
fn is_legacy<'a>(text: impl Iterator<Item = &'a [u8]>) -> bool {
    text.take(4).any(|line| line[0] != b'{' && memmem::find(line, b" AUDIT: id=\"").is_some())
}

/// Finds the first line that is one whole value of a known format. At least half of the lines must begin an object,
/// since text may quote JSON.
fn lines(text: &[&[u8]], versioned: bool, forced: Option<Format>) -> Option<(Format, Framing)> {
    let objects = text.iter().filter(|line| line[0] == b'{').count();
    if objects * 2 < text.len() && forced.is_none() {
        return text.iter().any(|line| is_stamped_event(line)).then_some((Format::Audit, Framing::Lines));
    }
    text.iter().filter(|line| line[0] == b'{').find_map(|line| {
        let outline = Outline::of(line);
        if outline.end != Some(line.len()) {
            return None;
        }
        let of_parts = || runtime_line::begins_event(line).then_some(Format::Audit);
        let format = forced.or_else(|| format_of(&outline, line, versioned)).or_else(of_parts)?;
        Some((format, Framing::Lines))
    })
}

/// The format of a value, which is evidence or holds some in an envelope.
fn format_of(outline: &Outline<'_>, value: &[u8], versioned: bool) -> Option<Format> {
    let evidence = outline.evidence();
    if evidence != Evidence::Unknown {
        return evidence.format(versioned);
    }
    envelope::is_envelope(text_of(value)).then_some(Format::Audit)
}

/// Whether a line has an audit event behind a prefix. The line may be cut off.
fn is_stamped_event(line: &[u8]) -> bool {
    let line = text_of(line);
    if let Some(row) = envelope::csv_row(line) {
        return format_of(&Outline::of(row.event.as_bytes()), row.event.as_bytes(), false) == Some(Format::Audit);
    }
    match envelope::event_in(line) {
        envelope::Found::Part => runtime_line::begins_event(line.as_bytes()),
        envelope::Found::Event(at) if at > 0 => {
            let value = &line.as_bytes()[at..];
            format_of(&Outline::of(value), value, false) == Some(Format::Audit)
        }
        _ => false,
    }
}

/// Whether a list, which begins in a line, has an audit event or an envelope among its first elements.
fn is_list_of_events(sample: &[u8], first: &[u8]) -> bool {
    let start = memmem::find(sample, first).unwrap_or(0);
    envelope::elements(text_of(&sample[start..])).iter().any(|element| {
        let outline = Outline::of(element.as_bytes());
        !outline.malformed && format_of(&outline, element.as_bytes(), false) == Some(Format::Audit)
    })
}

/// The beginning that is UTF-8; a sample may end inside a character.
fn text_of(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
    }
}

/// Finds the first value that begins a line and spans lines, or is longer than the sample.
fn documents(sample: &[u8], whole: bool, versioned: bool, forced: Option<Format>) -> Option<(Format, Framing)> {
    let starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', sample).map(|at| at + 1));
    let mut foreign = 0;
    for start in starts {
        let rest = &sample[start..];
        let skipped = rest.iter().take_while(|b| **b == b'\0').count();
        let rest = &rest[skipped..];
        match rest.first() {
            Some(b'{') => {}
            // The rest of a value whose beginning was rotated away.
            None | Some(b' ' | b'\t' | b'\r' | b'\n' | b'}' | b']' | b'"') => continue,
            // Two foreign lines may come from a terminal; with more, the text quotes JSON.
            Some(_) if foreign == 2 && forced.is_none() => return None,
            Some(_) => {
                foreign += 1;
                continue;
            }
        }
        let outline = Outline::of(rest);
        if outline.malformed {
            continue;
        }
        let value = &rest[..outline.end.unwrap_or(rest.len())];
        // A list that the sample cuts off may have its resourceVersion behind the sample.
        let versioned = versioned || (outline.end.is_none() && !whole);
        let Some(format) = forced.or_else(|| format_of(&outline, value, versioned)) else { continue };
        // A subscription is one long line, with the next one behind it.
        let is_envelope = format == Format::Audit && outline.evidence() == Evidence::Unknown;
        if is_envelope
            && outline.end.is_none()
            && let Some(from) = envelope::entries_begin(text_of(value))
        {
            return Some((format, Framing::Entries { from: start + skipped + from }));
        }
        let one_line = memchr::memchr(b'\n', trimmed_end(value)).is_none() && !is_envelope;
        return Some((format, if one_line && outline.end.is_none() { Framing::Lines } else { Framing::Documents }));
    }
    None
}

fn reason(first: &[u8], text: &[&[u8]]) -> &'static str {
    if text.iter().any(|line| line.contains(&0)) {
        return "binary data";
    }
    let has = |names: [&str; 2]| names.iter().all(|name| memmem::find(first, name.as_bytes()).is_some());
    if has([":type", ":value"]) || has(["\"type\"", "\"value\""]) {
        return "operations without a process or a function";
    }
    if first.starts_with(b"{") {
        let outline = text.iter().map(|line| Outline::of(line)).find(|outline| outline.end.is_some());
        return match outline.map(|outline| outline.evidence()) {
            Some(Evidence::Policy) => "an audit policy",
            Some(Evidence::Object | Evidence::List) => "Kubernetes objects without resource versions",
            _ if text == [b"{}"] => "an empty object",
            _ => "JSON of an unknown kind",
        };
    }
    if first.starts_with(b"[") {
        return "a JSON array";
    }
    let begins = |word: &[u8]| text.iter().any(|line| line.strip_prefix(b"- ").unwrap_or(line).starts_with(word));
    if begins(b"insertId: ") {
        return "log entries as YAML (export them with --format=json)";
    }
    if begins(b"apiVersion: audit.k8s.io/") {
        return if begins(b"auditID: ") { "audit events as YAML (export them as JSON)" } else { "an audit policy" };
    }
    if first.starts_with(b"OCSF_") {
        return "events as ILF (export them as JSON)";
    }
    if first.contains(&b',') && has(["AuditId", "Stage"]) {
        return "rows of AKSAudit as CSV (export them as JSON)";
    }
    "text of an unknown kind"
}

impl Seen {
    /// Reads the sample of a stream into the buffer, which then holds nothing else, and detects its format.
    pub fn at(stream: &mut Stream<'_>, buffer: &mut Vec<u8>) -> Seen {
        let room = stream.sample_size(SAMPLE);
        buffer.resize(room, 0);
        let (length, _) = stream::fill(stream, buffer);
        buffer.truncate(length);
        let whole = length < room;
        Seen {
            detected: detect(buffer, whole, None),
            writer: wal::writer(buffer),
            #[cfg(feature = "container")]
            is_container: buffer.starts_with(&crate::container::MAGIC),
            sample: (length, crc32c::crc32c(buffer), whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(sample: &str) -> Detected {
        detect(sample.as_bytes(), true, None)
    }

    const EVENT: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"a","stage":"Panic"}"#;

    #[test]
    fn one_value_a_line_is_read_by_lines_and_anything_else_by_documents() {
        assert_eq!(look(EVENT), Detected::Evidence(Format::Audit, Framing::Lines));
        let indented = "{\n  \"type\": \"ADDED\",\n  \"object\": {}\n}\n{\n";
        assert_eq!(look(indented), Detected::Evidence(Format::Watch, Framing::Documents));
        let object =
            "{\n \"apiVersion\": \"v1\",\n \"kind\": \"Pod\",\n \"metadata\": {\"resourceVersion\": \"1\"}\n}\n";
        assert_eq!(look(object), Detected::Evidence(Format::List, Framing::Documents));
        assert_eq!(
            look("{\"type\":\"A\",\"object\":{}}{\"type\":"),
            Detected::Evidence(Format::Watch, Framing::Documents)
        );
    }

    #[test]
    fn a_file_whose_first_line_is_broken_is_still_recognised() {
        assert_eq!(look(&format!("\":\"x\"}}\n{EVENT}\n")), Detected::Evidence(Format::Audit, Framing::Lines));
        assert_eq!(look(&format!("\0\0\0{EVENT}\r\n")), Detected::Evidence(Format::Audit, Framing::Lines));
        assert_eq!(look(&EVENT[..70]), Detected::Evidence(Format::Audit, Framing::Lines));
    }

    #[test]
    fn a_list_longer_than_the_sample_is_recognised() {
        let item = r#"{"metadata":{"name":"x"}},"#.repeat(4000);
        let line = format!(r#"{{"apiVersion":"v1","items":[{item}"#);
        let sample = &line.as_bytes()[..SAMPLE];
        assert_eq!(detect(sample, false, None), Detected::Evidence(Format::List, Framing::Lines));
        let indented = line.replace(',', ",\n  ").replacen('{', "{\n  ", 1);
        let sample = &indented.as_bytes()[..SAMPLE];
        assert_eq!(detect(sample, false, None), Detected::Evidence(Format::List, Framing::Documents));
    }

    #[test]
    fn operations_are_recognised_behind_a_nemesis_and_in_an_array_of_lines() {
        let nemesis = "{:process :nemesis, :type :info, :f :start, :value nil}\n".repeat(100);
        let edn = Detected::Evidence(Format::Edn, Framing::Elements { json: false });
        assert_eq!(look(&nemesis), edn);
        let long = format!("{{:process :nemesis, :type :info, :f :start, :value \"{}", "x".repeat(SAMPLE));
        assert_eq!(detect(&long.as_bytes()[..SAMPLE], false, None), edn);
        let line = r#"{"process":0,"type":"invoke","op":"read"}"#;
        for text in [format!("[\n{line},\n{line}\n]\n"), format!("[{line},\n{line}]"), format!("[{line}]")] {
            let array = Detected::Evidence(Format::Operations, Framing::Elements { json: true });
            assert_eq!(look(&text), array, "{text}");
        }
        assert_eq!(look(line), Detected::Evidence(Format::Operations, Framing::Lines));
        let events = format!("[{EVENT},\n{EVENT}\n]\n");
        assert!(!matches!(look(&events), Detected::Evidence(Format::Operations, _)));
    }

    #[test]
    fn what_is_no_evidence_says_why() {
        for (sample, reason) in [
            ("", "empty"),
            ("\0\0\n\0", "nothing but NUL bytes"),
            (" \r\n\n", "empty"),
            ("NAME AGE\npre-0 1s\n", "text of an unknown kind"),
            ("object:\n  kind: Pod\n", "text of an unknown kind"),
            ("digraph { a -> b }\n", "text of an unknown kind"),
            ("{\"time\":1,\"msg\":\"x\"}\n", "JSON of an unknown kind"),
            ("[1,\n2]\n", "a JSON array"),
            ("{:type :invoke :value 2}\n", "operations without a process or a function"),
            ("{\"type\":\"ok\",\"process\":0,\"value\":[]}\n", "operations without a process or a function"),
            (r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[]}"#, "an audit policy"),
            ("---\ninsertId: x\nlogName: y\n", "log entries as YAML (export them with --format=json)"),
            ("kind: Event\napiVersion: audit.k8s.io/v1\nauditID: x\n", "audit events as YAML (export them as JSON)"),
            ("apiVersion: audit.k8s.io/v1\nkind: Policy\n", "an audit policy"),
            ("OCSF_600301[*,*,(a=\"b\")]\n", "events as ILF (export them as JSON)"),
            ("TimeGenerated,AuditId,Stage,User\n", "rows of AKSAudit as CSV (export them as JSON)"),
            (r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#, "Kubernetes objects without resource versions"),
            ("PK\u{3}\u{4}\0\0x\0", "binary data"),
            ("a\nb\nc\n{\"type\":\"ADDED\",\"object\":{}}\n", "text of an unknown kind"),
        ] {
            assert_eq!(look(sample), Detected::Ignored(reason), "{sample:?}");
        }
    }

    #[cfg(feature = "container")]
    #[test]
    fn a_container_from_a_pipe_is_told() {
        let found = detect(&crate::container::MAGIC, false, None);
        assert_eq!(found, Detected::Ignored("a history container inside another file (unpack it first)"));
    }

    #[test]
    fn legacy_audit_text_is_recognised_and_a_forced_format_wins() {
        let line = "2026-11-20T20:26:45.607755314Z AUDIT: id=\"e8\" stage=\"RequestReceived\" ip=\"127.0.0.1\"\n";
        assert_eq!(look(line), Detected::Evidence(Format::LegacyAudit, Framing::Lines));
        let forced = detect(b"x\n", true, Some(Format::Watch));
        assert_eq!(forced, Detected::Evidence(Format::Watch, Framing::Lines));
        let forced = detect(b"{\n \"a\": 1\n}\n", true, Some(Format::List));
        assert_eq!(forced, Detected::Evidence(Format::List, Framing::Documents));
    }
}
