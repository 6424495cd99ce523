//! Parses request lines: method and URI to verb, resource and options.
//!
//! The path grammar is that of apiserver `pkg/endpoints/request/requestinfo.go`. The options are those of ListOptions in
//! apimachinery `pkg/apis/meta/v1`. Invalid options become [`Asked::Invalid`], not an error: the server answered them, perhaps
//! with 400.

use super::revision::Revision;
use base64::Engine as _;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads all objects of a scope.
    List,
    /// Streams the changes of a scope.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces a whole object.
    Update,
    /// Changes a part of an object.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes all objects of a scope.
    DeleteCollection,
    /// No verb of resources.
    Other,
}

impl Verb {
    /// From the verb in an audit log.
    pub fn from_audit(word: &str) -> Verb {
        match word {
            "get" => Verb::Get,
            "list" => Verb::List,
            "watch" => Verb::Watch,
            "create" => Verb::Create,
            "update" => Verb::Update,
            "patch" => Verb::Patch,
            "delete" => Verb::Delete,
            "deletecollection" => Verb::DeleteCollection,
            _ => Verb::Other,
        }
    }

    /// The verb in reports, in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::List => "LIST",
            Verb::Watch => "WATCH",
            Verb::Create => "CREATE",
            Verb::Update => "UPDATE",
            Verb::Patch => "PATCH",
            Verb::Delete => "DELETE",
            Verb::DeleteCollection => "DELETECOLLECTION",
            Verb::Other => "OTHER",
        }
    }

    /// The word with its article: `a DELETE`, `an UPDATE`.
    pub fn with_article(self) -> &'static str {
        match self {
            Verb::Get => "a GET",
            Verb::List => "a LIST",
            Verb::Watch => "a WATCH",
            Verb::Create => "a CREATE",
            Verb::Update => "an UPDATE",
            Verb::Patch => "a PATCH",
            Verb::Delete => "a DELETE",
            Verb::DeleteCollection => "a DELETECOLLECTION",
            Verb::Other => "a request",
        }
    }

    /// The verbs whose answer lists a state. A DELETECOLLECTION answers with the state that it deletes.
    pub const LISTS: [Verb; 2] = [Verb::List, Verb::DeleteCollection];

    /// The verbs that may change the store.
    pub const WRITES: [Verb; 5] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];

    /// Whether the options of the request may say which state it is about: those of reads, and of a DELETECOLLECTION.
    pub fn selects_state(self) -> bool {
        !self.is_write() || self == Verb::DeleteCollection
    }

    /// Whether the verb may change the store.
    pub fn is_write(self) -> bool {
        Verb::WRITES.contains(&self)
    }
}

/// The version that a read asks for, as written. The promise for it is defined in `model`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Asked {
    /// No resourceVersion.
    #[default]
    Unset,
    /// `resourceVersion=0`.
    Any,
    /// `resourceVersion=N` without match (for a watch: start after N), or with `NotOlderThan`.
    From,
    /// `resourceVersion=N&resourceVersionMatch=Exact`.
    Exact,
    /// `resourceVersion=N&limit=M` without match. Servers answer at exactly N, for compatibility.
    LegacyExact,
    /// A continue token that names a revision.
    Continue,
    /// The token out of a 410 answer (its revision is -1): continues at a newer revision.
    ContinueInconsistent,
    /// Parameters that no server accepts, or that cannot be parsed.
    Invalid,
    /// The evidence does not show the request (a saved list or stream).
    Unrecorded,
}

/// A parsed request line. Names are percent-decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestLine<'a> {
    /// API group, empty for the core group.
    pub group: Cow<'a, str>,
    /// Plural resource; empty for a path without one (discovery, health).
    pub plural: Cow<'a, str>,
    /// Namespace.
    pub namespace: Cow<'a, str>,
    /// Name.
    pub name: Cow<'a, str>,
    /// Subresource.
    pub subresource: Cow<'a, str>,
    /// The options of the query.
    pub options: Options<'a>,
}

/// The options of a query that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// The way in which the request chose a version.
    pub asked: Asked,
    /// The version that belongs to `asked`.
    pub revision: Revision,
    /// The key after which a continue token continues ([`ContinueToken::after`]).
    pub after: String,
    /// Whether a positive limit was set.
    pub limited: bool,
    /// `labelSelector`.
    pub label_selector: Cow<'a, str>,
    /// `fieldSelector`, without the parts on `metadata.name` and `metadata.namespace`.
    pub field_selector: Cow<'a, str>,
    /// The name that `metadata.name=` selects.
    pub selected_name: Cow<'a, str>,
    /// `shardSelector` (KEP-5866).
    pub shard_selector: Cow<'a, str>,
    /// `watch=true`.
    pub watch: bool,
    /// `allowWatchBookmarks=true`.
    pub bookmarks: bool,
    /// `sendInitialEvents`, if given.
    pub send_initial_events: Option<bool>,
    /// `dryRun=` with any value.
    pub dry_run: bool,
}

/// Parses a path with query. `None` for a path outside `/api` and `/apis`.
pub fn parse(uri: &str) -> Option<RequestLine<'_>> {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let mut parts = path.trim_start_matches('/').split('/').filter(|p| !p.is_empty());
    let mut line = RequestLine { options: options(query), ..RequestLine::default() };
    match parts.next()? {
        "api" => {
            parts.next()?;
        }
        "apis" => {
            line.group = decode(parts.next()?);
            parts.next()?;
        }
        _ => return None,
    }
    let mut rest: Vec<&str> = parts.collect();
    // The deprecated /watch/ prefix.
    if rest.first() == Some(&"watch") {
        line.options.watch = true;
        rest.remove(0);
    }
    if rest.is_empty() {
        return Some(line);
    }
    if rest[0] == "namespaces" && rest.len() > 2 && !matches!(rest[2], "status" | "finalize") {
        line.namespace = decode(rest[1]);
        rest.drain(..2);
    }
    line.plural = decode(rest[0]);
    if let Some(name) = rest.get(1) {
        line.name = decode(name);
    }
    if let Some(subresource) = rest.get(2) {
        line.subresource = decode(subresource);
    }
    Some(line)
}

/// The verb for an HTTP method and path, as the API server derives it.
pub fn verb_of(method: &str, line: &RequestLine<'_>) -> Verb {
    let one = !line.name.is_empty();
    match method.to_ascii_uppercase().as_str() {
        "GET" | "HEAD" if line.options.watch => Verb::Watch,
        "GET" | "HEAD" if one => Verb::Get,
        "GET" | "HEAD" => Verb::List,
        "POST" => Verb::Create,
        "PUT" => Verb::Update,
        "PATCH" => Verb::Patch,
        "DELETE" if one => Verb::Delete,
        "DELETE" => Verb::DeleteCollection,
        _ => Verb::Other,
    }
}

/// Parses a query. The meaning of each combination follows apimachinery `pkg/apis/meta/internalversion/validation` and the list
/// table of the Kubernetes API concepts page.
pub fn options(query: &str) -> Options<'_> {
    let mut o = Options::default();
    let (mut version, mut matching, mut token) = (Cow::Borrowed(""), Cow::Borrowed(""), Cow::Borrowed(""));
    for pair in query.split('&').filter(|p| !p.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "resourceVersion" => version = decode(value),
            "resourceVersionMatch" => matching = decode(value),
            "continue" => token = decode(value),
            "limit" => o.limited = value.parse::<i64>().is_ok_and(|n| n > 0),
            "labelSelector" => o.label_selector = decode(value),
            "fieldSelector" => split_field_selector(decode(value), &mut o),
            "shardSelector" => o.shard_selector = decode(value),
            "watch" => o.watch = is_true(value),
            "allowWatchBookmarks" => o.bookmarks = is_true(value),
            "sendInitialEvents" => o.send_initial_events = Some(is_true(value)),
            "dryRun" => o.dry_run = !value.is_empty(),
            _ => {}
        }
    }
    if token.is_empty() {
        (o.asked, o.revision) = asked(&version, &matching, &o);
        return o;
    }
    let token = ContinueToken::read(&token);
    (o.asked, o.revision) = match &token {
        _ if !(version.is_empty() || version == "0") || !matching.is_empty() => (Asked::Invalid, Revision::NONE),
        Some(ContinueToken { revision: Some(revision), .. }) => (Asked::Continue, *revision),
        Some(_) => (Asked::ContinueInconsistent, Revision::NONE),
        None => (Asked::Invalid, Revision::NONE),
    };
    o.after = token.unwrap_or_default().after;
    o
}

fn asked(version: &str, matching: &str, o: &Options<'_>) -> (Asked, Revision) {
    let none = Revision::NONE;
    if version.is_empty() {
        // With sendInitialEvents a match is required, and no version means the most recent one.
        let plain = matching.is_empty() || (o.send_initial_events.is_some() && matching == "NotOlderThan");
        return (if plain { Asked::Unset } else { Asked::Invalid }, none);
    }
    let Ok(revision) = Revision::parameter(version) else { return (Asked::Invalid, none) };
    match (matching, revision.is_some()) {
        ("" | "NotOlderThan", false) => (Asked::Any, none),
        ("Exact", true) if !o.watch => (Asked::Exact, revision),
        ("NotOlderThan", true) => (Asked::From, revision),
        ("", true) if o.limited && !o.watch => (Asked::LegacyExact, revision),
        ("", true) => (Asked::From, revision),
        _ => (Asked::Invalid, none),
    }
}

/// The content of a continue token: base64url of `{"v":"meta.k8s.io/v1","rv":N,"start":KEY}` (apiserver
/// `pkg/storage/continue.go`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContinueToken {
    /// The revision of all pages; none for the token in a 410 answer, whose `rv` is -1.
    pub revision: Option<Revision>,
    /// The last key of the earlier pages, below the path of the request; empty if the token has none.
    pub after: String,
}

impl ContinueToken {
    /// Parses a token; `None` for another form.
    pub fn read(token: &str) -> Option<ContinueToken> {
        #[derive(serde::Deserialize)]
        struct Token<'a> {
            rv: i64,
            #[serde(borrow, default)]
            start: Cow<'a, str>,
        }
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).ok()?;
        let token: Token<'_> = serde_json::from_slice(&bytes).ok()?;
        // Servers write the last key that they read, then a zero byte (storage/etcd3/store.go, getList).
        let after = token.start.strip_suffix('\0').unwrap_or_default();
        let after = after.strip_prefix('/').unwrap_or(after).to_owned();
        match token.rv {
            -1 => Some(ContinueToken { revision: None, after }),
            rv if rv > 0 => Some(ContinueToken { revision: Some(Revision::from(rv as u64)), after }),
            _ => None,
        }
    }
}

/// Moves `metadata.name=` and `metadata.namespace=` out of a field selector, since they narrow the scope exactly.
fn split_field_selector<'a>(selector: Cow<'a, str>, o: &mut Options<'a>) {
    if !selector.contains("metadata.name") {
        o.field_selector = selector;
        return;
    }
    let mut rest = Vec::new();
    for part in selector.split(',') {
        match part.split_once('=') {
            Some(("metadata.name", value)) => o.selected_name = value.trim_start_matches('=').to_owned().into(),
            _ => rest.push(part),
        }
    }
    o.field_selector = rest.join(",").into();
}

fn is_true(value: &str) -> bool {
    matches!(value, "1" | "true" | "True" | "TRUE" | "t" | "T")
}

/// Percent-decodes a path segment or a query value. A broken escape stays as it is.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
        match bytes[at] {
            b'%' if at + 2 < bytes.len() && hex(bytes[at + 1]).is_some() && hex(bytes[at + 2]).is_some() => {
                out.push(hex(bytes[at + 1]).unwrap_or(0) << 4 | hex(bytes[at + 2]).unwrap_or(0));
                at += 3;
                continue;
            }
            b'+' => out.push(b' '),
            b => out.push(b),
        }
        at += 1;
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(query: &str) -> (Asked, u128) {
        let o = options(query);
        (o.asked, o.revision.value())
    }

    #[test]
    fn takes_paths_apart_as_the_server_does() {
        let line = parse("/apis/apps/v1/namespaces/prod/deployments/web/scale?dryRun=All").unwrap();
        assert_eq!(
            (&*line.group, &*line.plural, &*line.namespace, &*line.name, &*line.subresource),
            ("apps", "deployments", "prod", "web", "scale")
        );
        assert!(line.options.dry_run);
        let line = parse("/api/v1/namespaces/prod").unwrap();
        assert_eq!((&*line.plural, &*line.name, &*line.namespace), ("namespaces", "prod", ""));
        let line = parse("/api/v1/namespaces/prod/finalize").unwrap();
        assert_eq!((&*line.plural, &*line.name, &*line.subresource), ("namespaces", "prod", "finalize"));
        let line = parse("/api/v1/watch/namespaces/prod/pods").unwrap();
        assert!(line.options.watch && line.plural == "pods");
        assert_eq!(parse("/healthz"), None);
        assert_eq!(parse("/api/v1").unwrap().plural, "");
    }

    #[test]
    fn reads_what_a_list_asks_for() {
        assert_eq!(ask(""), (Asked::Unset, 0));
        assert_eq!(ask("limit=500&resourceVersion=0"), (Asked::Any, 0));
        assert_eq!(ask("resourceVersion=007"), (Asked::From, 7));
        assert_eq!(ask("resourceVersion=9&limit=2"), (Asked::LegacyExact, 9));
        assert_eq!(ask("resourceVersion=9&resourceVersionMatch=Exact"), (Asked::Exact, 9));
        assert_eq!(ask("resourceVersion=9&resourceVersionMatch=NotOlderThan&limit=2"), (Asked::From, 9));
        assert_eq!(ask("resourceVersionMatch=NotOlderThan"), (Asked::Invalid, 0));
        assert_eq!(ask("resourceVersion=0&resourceVersionMatch=Exact"), (Asked::Invalid, 0));
        assert_eq!(ask("resourceVersion=abc"), (Asked::Invalid, 0));
        assert_eq!(ask("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"), (Asked::Unset, 0));
    }

    #[test]
    fn reads_the_revision_out_of_a_continue_token() {
        let token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAwMiwic3RhcnQiOiIvd2ViLTM5XHUwMDAwIn0";
        assert_eq!(ask(&format!("limit=5&continue={token}")), (Asked::Continue, 1002));
        let fresh = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0Ijoid2ViLTM4XHUwMDAwIn0";
        assert_eq!(ask(&format!("limit=5&continue={fresh}")), (Asked::ContinueInconsistent, 0));
        assert_eq!(ask("limit=1&continue=bogus"), (Asked::Invalid, 0));
        for (token, after) in [(token, "web-39"), (fresh, "web-38")] {
            assert_eq!(options(&format!("continue={token}")).after, after);
        }
        // `{"v":"meta.k8s.io/v1","rv":7,"start":"web"}`: a token without the zero byte has another meaning.
        let other = ContinueToken::read("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Nywic3RhcnQiOiJ3ZWIifQ").unwrap();
        assert_eq!((other.revision, other.after.as_str()), (Some(Revision::from(7)), ""));
    }

    #[test]
    fn a_selected_name_narrows_the_scope() {
        let o = options("fieldSelector=metadata.name%3Dnode-1,spec.x%3Dy&labelSelector=a%20in%20(b,c)");
        assert_eq!((&*o.selected_name, &*o.field_selector, &*o.label_selector), ("node-1", "spec.x=y", "a in (b,c)"));
    }
}
