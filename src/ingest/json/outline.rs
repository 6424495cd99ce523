//! The top-level keys of one JSON object that may be cut off, and a few of their texts.
//!
//! Detection sees only the first bytes of a file, and a list can be longer. The reader keeps no stack: it skips
//! nested values by counting brackets, and does not check them.

/// The top level of an object.
#[derive(Debug, Default)]
pub(in crate::ingest) struct Outline<'a> {
    /// Offset behind the object; `None` if it is cut off or malformed.
    pub end: Option<usize>,
    /// Whether a byte was found that JSON forbids there. The rest was not read.
    pub malformed: bool,
    kind: &'a [u8],
    api_version: &'a [u8],
    keys: u32,
}

/// Keys that distinguish formats, by their bit in `keys`. At most 32.
const KEYS: [&[u8]; 29] = [
    b"kind",
    b"apiVersion",
    b"auditID",
    b"stage",
    b"type",
    b"object",
    b"metadata",
    b"items",
    b"rows",
    b"Header",
    b"Events",
    b"Canceled",
    b"version",
    b"at",
    b"id",
    b"requestURI",
    b"client",
    b"process",
    b"op",
    b"f",
    b"invoke",
    b"model",
    b"Input",
    b"Output",
    b"Call",
    b"ClientId",
    b"Request",
    b"Responses",
    b"expectuniquerevision",
];

/// The kind of evidence that the top-level keys of a value show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ingest) enum Evidence {
    Audit,
    AuditList,
    Capture,
    Watch,
    List,
    Object,
    Etcd,
    EtcdOperation,
    EtcdWatch,
    EtcdTraffic,
    Policy,
    Operation,
    Unknown,
}

impl Evidence {
    /// The kind as a problem names it.
    pub fn words(self) -> &'static str {
        match self {
            Evidence::Audit => "an audit event",
            Evidence::AuditList => "a list of audit events",
            Evidence::Capture => "a capture line",
            Evidence::Watch => "a watch event",
            Evidence::List => "a list response",
            Evidence::Object => "a Kubernetes object",
            Evidence::Etcd => "an etcd watch response",
            Evidence::EtcdOperation => "an operation of an etcd client",
            Evidence::EtcdWatch => "a watch of an etcd client",
            Evidence::EtcdTraffic => "a description of etcd traffic",
            Evidence::Policy => "an audit policy",
            Evidence::Operation => "an operation",
            Evidence::Unknown => "JSON of an unknown kind",
        }
    }
}

impl<'a> Outline<'a> {
    /// Reads the object that begins at the first byte.
    pub fn of(bytes: &'a [u8]) -> Outline<'a> {
        let mut outline = Outline::default();
        outline.end = outline.read(bytes);
        outline
    }

    fn has(&self, key: &str) -> bool {
        KEYS.iter().position(|k| *k == key.as_bytes()).is_some_and(|n| self.keys & (1 << n) != 0)
    }

    /// The kind of the value; of a value that is cut off, the keys so far decide.
    pub fn evidence(&self) -> Evidence {
        let kind = self.kind;
        let cut = self.end.is_none();
        if self.api_version.starts_with(b"audit.k8s.io/") {
            return match kind {
                b"Policy" => Evidence::Policy,
                b"EventList" => Evidence::AuditList,
                b"Event" => Evidence::Audit,
                _ if self.has("auditID") => Evidence::Audit,
                _ if self.has("items") => Evidence::AuditList,
                _ => Evidence::Unknown,
            };
        }
        if self.has("auditID") && (self.has("stage") || (cut && self.has("requestURI"))) {
            return Evidence::Audit;
        }
        if (self.has("type") && self.has("object")) || (cut && self.keys == self.bit("object")) {
            return Evidence::Watch;
        }
        let of_process = self.has("process") || self.has("client");
        if of_process && (self.has("op") || self.has("f")) && (self.has("type") || self.has("invoke"))
            || (kind == b"operations" && (self.has("version") || self.has("model")))
        {
            return Evidence::Operation;
        }
        if self.has("Header") && (self.has("Events") || self.has("Canceled")) {
            return Evidence::Etcd;
        }
        if self.has("Input") && (self.has("Output") || cut) && (self.has("Call") || self.has("ClientId")) {
            return Evidence::EtcdOperation;
        }
        // A watch that delivered nothing has no responses.
        if self.keys & !self.bit("Responses") == self.bit("Request") {
            return Evidence::EtcdWatch;
        }
        if self.keys == self.bit("expectuniquerevision") {
            return Evidence::EtcdTraffic;
        }
        if self.api_version.is_empty() && !self.has("metadata") {
            match kind {
                b"capture" if self.has("version") || self.has("client") => return Evidence::Capture,
                b"request" | b"response" | b"event" | b"end" if self.has("id") => return Evidence::Capture,
                b"mark" | b"decision" | b"read" | b"dropped" if self.has("at") => return Evidence::Capture,
                _ => {}
            }
        }
        let api = !self.api_version.is_empty();
        if self.has("metadata") && (self.has("items") || self.has("rows") || (api && kind.ends_with(b"List")))
            || (cut && api && (self.has("items") || self.has("rows")))
        {
            return Evidence::List;
        }
        if api && self.has("metadata") && (!kind.is_empty() || cut) {
            return Evidence::Object;
        }
        Evidence::Unknown
    }

    fn bit(&self, key: &str) -> u32 {
        KEYS.iter().position(|k| *k == key.as_bytes()).map_or(0, |n| 1 << n)
    }

    /// Offset behind the object; `None` if it is cut off or malformed.
    fn read(&mut self, bytes: &'a [u8]) -> Option<usize> {
        let mut at = space(bytes, 0);
        if *bytes.get(at)? != b'{' {
            self.malformed = true;
            return None;
        }
        at = space(bytes, at + 1);
        if *bytes.get(at)? == b'}' {
            return Some(at + 1);
        }
        loop {
            if *bytes.get(at)? != b'"' {
                self.malformed = true;
                return None;
            }
            let end = self.string(bytes, at)?;
            let key = &bytes[at + 1..end - 1];
            at = space(bytes, end);
            if *bytes.get(at)? != b':' {
                self.malformed = true;
                return None;
            }
            at = space(bytes, at + 1);
            if let Some(n) = KEYS.iter().position(|k| *k == key) {
                self.keys |= 1 << n;
            }
            let start = at;
            at = self.value(bytes, at)?;
            if bytes[start] == b'"' {
                match key {
                    b"kind" => self.kind = &bytes[start + 1..at - 1],
                    b"apiVersion" => self.api_version = &bytes[start + 1..at - 1],
                    _ => {}
                }
            }
            at = space(bytes, at);
            match *bytes.get(at)? {
                b',' => at = space(bytes, at + 1),
                b'}' => return Some(at + 1),
                _ => {
                    self.malformed = true;
                    return None;
                }
            }
        }
    }

    /// Offset behind the string that begins at `at`.
    fn string(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        let mut at = at + 1;
        loop {
            at += memchr::memchr3(b'"', b'\\', b'\n', bytes.get(at..)?)?;
            match bytes[at] {
                b'"' => return Some(at + 1),
                b'\\' => at += 2,
                _ => {
                    self.malformed = true;
                    return None;
                }
            }
        }
    }

    /// Offset behind the value that begins at `at`.
    fn value(&mut self, bytes: &[u8], mut at: usize) -> Option<usize> {
        let mut depth = 0usize;
        loop {
            match *bytes.get(at)? {
                b'"' => at = self.string(bytes, at)?,
                b'{' | b'[' => {
                    depth += 1;
                    at += 1;
                }
                b'}' | b']' if depth == 0 => {
                    self.malformed = true;
                    return None;
                }
                b'}' | b']' => {
                    depth -= 1;
                    at += 1;
                }
                _ if depth > 0 => at += 1,
                _ => {
                    let length =
                        bytes[at..].iter().position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r'));
                    self.malformed |= length == Some(0);
                    return length.filter(|n| *n > 0).map(|n| at + n);
                }
            }
            if depth == 0 {
                return Some(at);
            }
        }
    }
}

fn space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart_by_their_top_level_keys() {
        for (text, evidence) in [
            (r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata"}"#, Evidence::Audit),
            (r#"{"level":"Metadata","auditID":"x","stage":"Panic"}"#, Evidence::Audit),
            (r#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[]}"#, Evidence::AuditList),
            (r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[]}"#, Evidence::Policy),
            (r#"{"kind":"Event","apiVersion":"v1","metadata":{}}"#, Evidence::Object),
            (r#"{"kind": "capture", "version": 1}"#, Evidence::Capture),
            (r#"{"kind":"event","id":1,"event":{}}"#, Evidence::Capture),
            (r#"{"kind":"request"}"#, Evidence::Unknown),
            (r#"{"type":"ADDED","object":{}}"#, Evidence::Watch),
            (r#"{"object":{"a":"}{"},"type":"ADDED"}"#, Evidence::Watch),
            (r#"{"apiVersion":"v1","items":[],"kind":"List","metadata":{}}"#, Evidence::List),
            (r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"rows":[]}"#, Evidence::List),
            (r#"{"Header":{"revision":2},"Events":null,"Canceled":false}"#, Evidence::Etcd),
            (r#"{"process":0,"type":"invoke","f":"read"}"#, Evidence::Operation),
            (r#"{"op":"read","process":"a","invoke":1,"return":2}"#, Evidence::Operation),
            (r#"{"client":3,"type":"ok","op":"read"}"#, Evidence::Operation),
            (r#"{"kind":"operations","version":1}"#, Evidence::Operation),
            (r#"{"process":0,"op":"read"}"#, Evidence::Unknown),
            (r#"{"time":"x","msg":"y"}"#, Evidence::Unknown),
            ("{}", Evidence::Unknown),
        ] {
            let outline = Outline::of(text.as_bytes());
            assert_eq!(outline.end, Some(text.len()), "{text}");
            assert_eq!(outline.evidence(), evidence, "{text}");
        }
    }

    #[test]
    fn a_value_that_is_cut_off_still_tells_its_format() {
        for (text, evidence) in [
            (r#"{"apiVersion":"v1","items":[{"a":{"#, Evidence::List),
            (r#"{"object":{"kind":"Pod"#, Evidence::Watch),
            (r#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[{"#, Evidence::AuditList),
        ] {
            let outline = Outline::of(text.as_bytes());
            assert_eq!(outline.end, None, "{text}");
            assert!(!outline.malformed, "{text}");
            assert_eq!(outline.evidence(), evidence, "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_malformed() {
        for text in ["x", r#"{"a" 1}"#, r#"{"a":1 2}"#, r#"{a:1}"#, "{\"a\":\"x\ny\"}", r#"{"a":]}"#, r#"{"a":,}"#] {
            let outline = Outline::of(text.as_bytes());
            assert!(outline.malformed && outline.end.is_none(), "{text}");
        }
    }
}
