//! The allow-lists: for each format, the members of a line to show, with the type of each.
//!
//! The lists have what ingest reads: identity, versions, times, status. A listed member with another type is shown as `…`; all
//! other members are left out. Only listed values are parsed, so no nesting, number or escape in a value can make a line show
//! more.

use crate::history::request;
use crate::ingest::json::members::Members;
use crate::ingest::{Format, timestamp};
use serde::Deserialize;
use serde_json::value::{RawValue, Value};
use std::borrow::Cow;

/// The visible form of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// A name or an identifier, of any characters.
    Name,
    /// An integer, also as text.
    Number,
    /// A truth value, also as text.
    Truth,
    /// A time: RFC 3339, or nanoseconds.
    Time,
    /// One of these words.
    Word(&'static [&'static str]),
    /// The path and the query of a request.
    Uri,
    /// An IP address.
    Address,
    /// These members of an object.
    Object(&'static [(&'static str, Shape)]),
    /// Each element of a list.
    Each(&'static Shape),
    /// Only its presence.
    Presence,
}

use Shape::*;

/// Replaces a value that is present but not shown.
const HIDDEN: &str = "…";

/// The longest name to show. Kubernetes has names of up to 253 characters.
const LONGEST_NAME: usize = 512;

const OWNER: Shape = Object(&[
    ("apiVersion", Name),
    ("kind", Name),
    ("name", Name),
    ("uid", Name),
    ("controller", Truth),
    ("blockOwnerDeletion", Truth),
]);

const METADATA: Shape = Object(&[
    ("name", Name),
    ("namespace", Name),
    ("uid", Name),
    ("resourceVersion", Number),
    ("generation", Number),
    ("creationTimestamp", Time),
    ("deletionTimestamp", Time),
    ("deletionGracePeriodSeconds", Number),
    ("ownerReferences", Each(&OWNER)),
    ("remainingItemCount", Number),
    // The token is base64 of a key and a revision, but the recorder may have written anything there.
    ("continue", Presence),
]);

const OBJECT: Shape = Object(&[("kind", Name), ("apiVersion", Name), ("metadata", METADATA)]);

/// Reasons of a `Status` (apimachinery `pkg/apis/meta/v1`, StatusReason).
const REASONS: Shape = Word(&[
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Gone",
    "Invalid",
    "ServerTimeout",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "BadRequest",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "InternalError",
    "Expired",
    "ServiceUnavailable",
]);

const PRECONDITIONS: Shape = Object(&[("uid", Name), ("resourceVersion", Number)]);

/// The body of a request or an answer: an object, a list, a table, a `Status`, options of a deletion.
const BODY: Shape = Object(&[
    ("kind", Name),
    ("apiVersion", Name),
    ("metadata", METADATA),
    ("items", Each(&OBJECT)),
    ("rows", Each(&Object(&[("object", OBJECT)]))),
    ("code", Number),
    ("reason", REASONS),
    ("status", Word(&["Success", "Failure"])),
    ("details", Object(&[("name", Name), ("group", Name), ("kind", Name), ("uid", Name)])),
    ("preconditions", PRECONDITIONS),
]);

/// Extra fields of a bound token.
const EXTRA: Shape = Object(&[
    ("authentication.kubernetes.io/pod-uid", Each(&Name)),
    ("authentication.kubernetes.io/pod-name", Each(&Name)),
    ("authentication.kubernetes.io/node-name", Each(&Name)),
]);

const USER: Shape = Object(&[("username", Name), ("extra", EXTRA)]);

const AUDIT: &[(&str, Shape)] = &[
    ("kind", Name),
    ("apiVersion", Name),
    ("level", Word(&["None", "Metadata", "Request", "RequestResponse"])),
    ("auditID", Name),
    ("stage", Word(&["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"])),
    ("requestURI", Uri),
    (
        "verb",
        Word(&[
            "get",
            "list",
            "watch",
            "create",
            "update",
            "patch",
            "delete",
            "deletecollection",
            "connect",
            "head",
            "post",
            "put",
            "options",
        ]),
    ),
    ("user", USER),
    ("impersonatedUser", USER),
    ("sourceIPs", Each(&Address)),
    ("userAgent", Name),
    (
        "objectRef",
        Object(&[
            ("resource", Name),
            ("namespace", Name),
            ("name", Name),
            ("uid", Name),
            ("apiGroup", Name),
            ("apiVersion", Name),
            ("resourceVersion", Number),
            ("subresource", Name),
        ]),
    ),
    ("responseStatus", Object(&[("status", Word(&["Success", "Failure"])), ("code", Number), ("reason", REASONS)])),
    ("requestObject", BODY),
    ("responseObject", BODY),
    ("requestReceivedTimestamp", Time),
    ("stageTimestamp", Time),
    ("annotations", Object(&[("audit.k8s.io/truncated", Truth)])),
];

/// An event, or a list of events on one line.
const AUDIT_LINE: Shape = Object(&AUDIT_MEMBERS);

const AUDIT_MEMBERS: [(&str, Shape); AUDIT.len() + 1] = {
    let mut members = [("items", Each(&Object(AUDIT))); AUDIT.len() + 1];
    let mut at = 0;
    while at < AUDIT.len() {
        members[at] = AUDIT[at];
        at += 1;
    }
    members
};

const WATCH_EVENT: Shape =
    Object(&[("type", Word(&["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"])), ("object", BODY)]);

const CAPTURE: Shape = Object(&[
    ("kind", Word(&["capture", "request", "response", "event", "end", "mark", "decision", "read"])),
    ("version", Number),
    ("client", Name),
    ("incarnation", Name),
    ("server", Name),
    ("clock", Name),
    ("id", Name),
    ("at", Time),
    ("until", Time),
    ("method", Word(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])),
    ("uri", Uri),
    ("user_agent", Name),
    ("body", BODY),
    ("status", Number),
    ("audit_id", Name),
    ("event", WATCH_EVENT),
    ("reason", Word(&["eof", "closed", "timeout", "error"])),
    ("decision", Name),
    ("phase", Word(&["begin", "end"])),
    ("name", Name),
    ("resource", Name),
    ("group", Name),
    ("namespace", Name),
    ("uid", Name),
    ("resourceVersion", Number),
]);

/// A watch response as etcdctl prints it. Values may hold objects, so they are not shown.
const ETCD_WATCH: Shape = Object(&[
    ("Header", Object(&[("cluster_id", Number), ("member_id", Number), ("revision", Number), ("raft_term", Number)])),
    (
        "Events",
        Each(&Object(&[
            ("type", Word(&["0", "1", "PUT", "DELETE"])),
            (
                "kv",
                Object(&[
                    ("key", Name),
                    ("create_revision", Number),
                    ("mod_revision", Number),
                    ("version", Number),
                    ("lease", Number),
                ]),
            ),
        ])),
    ),
    ("CompactRevision", Number),
    ("Canceled", Truth),
    ("Created", Truth),
]);

/// Values of etcd's robustness suite are numbers, or hashes of longer values.
const VALUE: Shape = Object(&[("Value", Number), ("Hash", Number)]);

const RANGE: Shape = Object(&[
    ("Start", Name),
    ("End", Name),
    ("Limit", Number),
    ("Revision", Number),
    ("KeysOnly", Truth),
    ("CountOnly", Truth),
    ("Sorted", Truth),
    ("Serializable", Truth),
]);

const STEP: Shape = Object(&[
    ("Type", Word(&["range-operation", "put-operation", "delete-operation"])),
    ("Range", RANGE),
    ("Put", Object(&[("Key", Name), ("Value", VALUE), ("LeaseID", Number)])),
    ("Delete", Object(&[("Key", Name), ("End", Name)])),
]);

const LEASE: Shape = Object(&[("LeaseID", Number)]);

const FOUND: Shape = Object(&[
    ("KVs", Each(&Object(&[("Key", Name), ("Value", VALUE), ("ModRevision", Number), ("Version", Number)]))),
    ("Count", Number),
    ("Deleted", Number),
]);

const ETCD_OPERATION: Shape = Object(&[
    ("ClientId", Number),
    ("ClientID", Number),
    (
        "Input",
        Object(&[
            ("Type", Word(&["range", "txn", "leaseGrant", "leaseRevoke", "compact", "defragment"])),
            ("Range", RANGE),
            (
                "Txn",
                Object(&[
                    (
                        "Conditions",
                        Each(&Object(&[
                            ("Key", Name),
                            ("End", Name),
                            ("ExpectedRevision", Number),
                            ("ExpectedVersion", Number),
                            ("Number", Number),
                            ("Value", VALUE),
                        ])),
                    ),
                    ("OperationsOnSuccess", Each(&STEP)),
                    ("OperationsOnFailure", Each(&STEP)),
                ]),
            ),
            ("LeaseGrant", LEASE),
            ("LeaseRevoke", LEASE),
            ("Compact", Object(&[("Revision", Number)])),
        ]),
    ),
    ("Call", Number),
    (
        "Output",
        Object(&[
            ("Range", FOUND),
            ("Txn", Object(&[("Failure", Truth), ("Results", Each(&FOUND))])),
            ("Revision", Number),
            ("member-id", Name),
            ("MemberID", Number),
            ("Error", Presence),
            ("ClientError", Presence),
        ]),
    ),
    ("Return", Number),
]);

/// A watch of a report, or one response of it, since facts cite either.
const ETCD_CLIENT_WATCH: Shape = {
    const EVENT: Shape = Object(&[
        ("Type", Word(&["put-operation", "delete-operation"])),
        ("Key", Name),
        ("Value", VALUE),
        ("Revision", Number),
        ("IsCreate", Truth),
        ("PrevValue", Object(&[("Value", VALUE), ("ModRevision", Number), ("Version", Number)])),
    ]);
    Object(&[
        (
            "Request",
            Object(&[
                ("Key", Name),
                ("End", Name),
                ("Revision", Number),
                ("WithPrefix", Truth),
                ("WithProgressNotify", Truth),
                ("WithPrevKV", Truth),
            ]),
        ),
        (
            "Responses",
            Each(&Object(&[
                ("Events", Each(&EVENT)),
                ("Revision", Number),
                ("Time", Number),
                ("IsProgressNotify", Truth),
                ("Error", Presence),
            ])),
        ),
        ("Events", Each(&EVENT)),
        ("Type", Word(&["put-operation", "delete-operation"])),
        ("Key", Name),
        ("Value", VALUE),
        ("Revision", Number),
        ("IsCreate", Truth),
        ("Time", Number),
        ("IsProgressNotify", Truth),
        ("Error", Presence),
    ])
};

/// The allow-list of a format; `None` for operation logs and for formats without lines of JSON.
pub(super) fn of(format: Format) -> Option<Shape> {
    Some(match format {
        Format::Audit => AUDIT_LINE,
        Format::Capture => CAPTURE,
        Format::Watch => WATCH_EVENT,
        Format::List => BODY,
        Format::EtcdWatch => ETCD_WATCH,
        Format::EtcdOperations => ETCD_OPERATION,
        Format::EtcdWatches => ETCD_CLIENT_WATCH,
        Format::EtcdTraffic => Object(&[]),
        Format::LegacyAudit | Format::EtcdLog | Format::EtcdStore => Object(&[]),
        Format::Edn | Format::JepsenLog | Format::Operations | Format::Transactions => return None,
    })
}

impl Shape {
    /// The visible members of an object; `None` for another value, or without any.
    pub(super) fn members(self, text: &str) -> Option<Value> {
        match self.shown(text) {
            Value::Object(members) if !members.is_empty() => Some(Value::Object(members)),
            _ => None,
        }
    }

    /// The visible form of a value.
    fn shown(self, text: &str) -> Value {
        let shown = match self {
            Object(members) => serde_json::from_str::<Members<String, &RawValue>>(text).ok().map(|fields| {
                let shape = |name: &str| members.iter().find(|(known, _)| *known == name).map(|(_, shape)| *shape);
                let fields = fields.0.iter().filter_map(|(name, raw)| Some((&**name, shape(name)?, raw)));
                // A Go program treats null as absent.
                let fields = fields.filter(|(_, _, raw)| raw.get() != "null");
                Value::Object(fields.map(|(name, shape, raw)| (name.to_owned(), shape.shown(raw.get()))).collect())
            }),
            Each(shape) => {
                let elements = serde_json::from_str::<Vec<&RawValue>>(text).ok();
                elements.map(|all| Value::Array(all.iter().map(|raw| shape.shown(raw.get())).collect()))
            }
            Presence => None,
            scalar => serde_json::from_str::<Scalar>(text).ok().and_then(|value| scalar.scalar(&value)),
        };
        shown.unwrap_or_else(|| Value::from(HIDDEN))
    }

    /// The visible form of a text, a number or a truth value; `None` for a value of another type.
    fn scalar(self, value: &Scalar) -> Option<Value> {
        let text = value.text();
        let is_number = || {
            let digits = text.strip_prefix('-').unwrap_or(&text);
            (1..=40).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let fits = match self {
            Name => text.chars().nth(LONGEST_NAME).is_none(),
            Number => text.is_empty() || is_number(),
            Truth => matches!(&*text, "true" | "false" | ""),
            Time => text.is_empty() || is_number() || timestamp::parse(&text).is_some(),
            Word(words) => text.is_empty() || words.iter().any(|word| *word == text),
            Address => text.parse::<std::net::IpAddr>().is_ok(),
            Uri => return Some(Value::from(uri(&text))),
            Object(_) | Each(_) | Presence => false,
        };
        fits.then(|| match value {
            Scalar::Number(number) => Value::from(*number),
            Scalar::Large(number) => Value::from(*number),
            Scalar::Truth(truth) => Value::from(*truth),
            Scalar::Text(text) => Value::from(&**text),
        })
    }
}

/// The query options to show.
const QUERY: [(&str, Shape); 11] = [
    ("resourceVersion", Number),
    ("resourceVersionMatch", Word(&["Exact", "NotOlderThan"])),
    ("continue", Presence),
    ("limit", Number),
    ("timeoutSeconds", Number),
    ("labelSelector", Name),
    ("fieldSelector", Name),
    ("shardSelector", Name),
    ("watch", Word(&["true", "false", "1", "0"])),
    ("allowWatchBookmarks", Word(&["true", "false", "1", "0"])),
    ("sendInitialEvents", Word(&["true", "false", "1", "0"])),
];

/// A resource path with the known query options. The rest of a path after a subresource belongs to a proxied program, and other
/// options may belong to anything, so both are left out.
fn uri(text: &str) -> String {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let resource = request::parse(path).is_some_and(|line| !line.plural.is_empty());
    let mut shown = match path.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>() {
        _ if !resource => HIDDEN.to_owned(),
        parts => {
            let most = longest_path(&parts);
            let more = if parts.len() > most { "/…" } else { "" };
            format!("/{}{more}", parts[..parts.len().min(most)].join("/"))
        }
    };
    for (at, option) in query.split('&').filter(|option| !option.is_empty()).enumerate() {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let shape = QUERY.iter().find(|(known, _)| *known == name).map(|(_, shape)| *shape);
        let fits = |shape: Shape| shape.scalar(&Scalar::Text(value.to_owned())).is_some();
        shown.push(if at == 0 { '?' } else { '&' });
        match shape {
            Some(shape) if fits(shape) => shown.push_str(option),
            Some(_) => {
                shown.push_str(name);
                shown.push_str("=…");
            }
            None => shown.push('…'),
        }
    }
    shown
}

/// Length of a path up to the subresource: `api/v1/namespaces/N/pods/NAME/log`.
fn longest_path(parts: &[&str]) -> usize {
    let mut most = if parts[0] == "apis" { 3 } else { 2 };
    most += usize::from(parts.get(most) == Some(&"watch"));
    let namespaced = parts.get(most) == Some(&"namespaces") && parts.len() > most + 2;
    most + if namespaced { 5 } else { 3 }
}

/// A value without parts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Truth(bool),
    Number(i64),
    Large(u64),
    Text(String),
}

impl Scalar {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Scalar::Truth(truth) => Cow::Owned(truth.to_string()),
            Scalar::Number(number) => Cow::Owned(number.to_string()),
            Scalar::Large(number) => Cow::Owned(number.to_string()),
            Scalar::Text(text) => Cow::Borrowed(text),
        }
    }
}
