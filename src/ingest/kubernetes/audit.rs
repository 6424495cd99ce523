//! Audit events, `audit.k8s.io/v1` and the same fields of `v1beta1`, borrowed from their line.
//!
//! Every field may be absent, so any JSON object parses; the parser decides by kind and group whether it is an event.
//! A time that is no time refuses the event; times that contradict each other are only reported.
//!
//! Source of the fields: k8s.io/apiserver `pkg/apis/audit/v1/types.go`.

use super::body::AnyBody;
use super::object::Text;
use crate::ingest::json::text::{Loose, default_or_null, list_or_null};
use crate::ingest::limits::{LONGEST_ADDRESS, UNLIMITED};
use crate::ingest::position::Time;
use crate::ingest::problem::found::Found;
use crate::ingest::timestamp;
use serde::Deserialize;

/// Progress of the request when the server wrote the event, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum Stage {
    /// The request arrived; its outcome is unknown.
    RequestReceived,
    /// Headers of a long answer were sent.
    ResponseStarted,
    /// The answer is complete.
    ResponseComplete,
    /// The handler panicked; the outcome is unknown.
    Panic,
    /// No stage, or one that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A user as the server authenticated it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct User<'a> {
    /// Authenticated user name.
    #[serde(borrow)]
    pub username: Text<'a>,
    /// Pod, node and credential of a bound token.
    #[serde(borrow)]
    pub extra: Option<Extra<'a>>,
}

/// The `extra` values that separate processes of one user (apiserver `authentication/serviceaccount/util.go`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Extra<'a> {
    /// Uid of the pod whose token was used. Containers may restart within one uid.
    #[serde(borrow, rename = "authentication.kubernetes.io/pod-uid", deserialize_with = "list_or_null")]
    pub pod_uid: Vec<Text<'a>>,
    /// Name of that pod.
    #[serde(borrow, rename = "authentication.kubernetes.io/pod-name", deserialize_with = "list_or_null")]
    pub pod_name: Vec<Text<'a>>,
    /// Node of that pod.
    #[serde(borrow, rename = "authentication.kubernetes.io/node-name", deserialize_with = "list_or_null")]
    pub node_name: Vec<Text<'a>>,
}

/// The object that the request names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ObjectRef<'a> {
    /// Plural resource.
    #[serde(borrow)]
    pub resource: Text<'a>,
    /// Namespace.
    #[serde(borrow)]
    pub namespace: Text<'a>,
    /// Name; empty for lists and for `generateName`.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// From the request's body (PUT).
    #[serde(borrow)]
    pub uid: Text<'a>,
    /// API group, empty for the core group.
    #[serde(borrow, rename = "apiGroup")]
    pub api_group: Text<'a>,
    /// From the request's body (PUT): the version that the write is based on, never the committed one.
    #[serde(borrow, rename = "resourceVersion")]
    pub resource_version: Text<'a>,
    /// Subresource.
    #[serde(borrow)]
    pub subresource: Text<'a>,
}

/// The answer's status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResponseStatus<'a> {
    /// HTTP status code.
    pub code: u16,
    /// Error message of the server.
    #[serde(borrow)]
    pub message: Text<'a, UNLIMITED>,
    /// Machine-readable reason.
    #[serde(borrow)]
    pub reason: Text<'a>,
}

/// The annotations that ingest reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct EventAnnotations<'a> {
    /// `"true"` if the audit backend cut off both bodies.
    #[serde(borrow, rename = "audit.k8s.io/truncated")]
    pub truncated: Text<'a>,
}

/// What the log forwarder of OpenShift adds to events.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct OpenShift<'a> {
    /// Uid of the cluster.
    #[serde(borrow)]
    pub cluster_id: Text<'a>,
}

/// One audit event, borrowed from its line.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event<'a> {
    /// `Event`, absent inside an `EventList`.
    #[serde(borrow)]
    pub kind: Text<'a>,
    /// `audit.k8s.io/v1`, absent inside an `EventList`.
    #[serde(borrow, rename = "apiVersion")]
    pub api_version: Text<'a>,
    /// Metadata, Request or RequestResponse.
    #[serde(borrow)]
    pub level: Text<'a>,
    /// Neither unique nor trustworthy: a client may send it.
    #[serde(borrow, rename = "auditID")]
    pub audit_id: Text<'a>,
    /// Stage of this event; one request has several.
    pub stage: Stage,
    /// Path and query.
    #[serde(borrow, rename = "requestURI")]
    pub request_uri: Text<'a, LONGEST_ADDRESS>,
    /// API verb, or the HTTP verb of a non-resource request.
    #[serde(borrow)]
    pub verb: Text<'a>,
    /// The authenticated user.
    #[serde(borrow, deserialize_with = "default_or_null")]
    pub user: User<'a>,
    /// The user that the request acted as.
    #[serde(borrow, rename = "impersonatedUser")]
    pub impersonated_user: Option<User<'a>>,
    /// Addresses of the client. The last is the TCP peer; earlier ones can be forged.
    #[serde(borrow, rename = "sourceIPs", deserialize_with = "list_or_null")]
    pub source_ips: Vec<Text<'a>>,
    /// User agent, as the client sent it.
    #[serde(borrow, rename = "userAgent")]
    pub user_agent: Text<'a>,
    /// Object, absent for non-resource requests.
    #[serde(borrow, rename = "objectRef")]
    pub object_ref: Option<ObjectRef<'a>>,
    /// Status of the answer; absent before the answer.
    #[serde(borrow, rename = "responseStatus")]
    pub response_status: Option<ResponseStatus<'a>>,
    /// Body of the request (level Request and above).
    #[serde(borrow, rename = "requestObject")]
    pub request_object: AnyBody<'a>,
    /// Body of the answer (level RequestResponse).
    #[serde(borrow, rename = "responseObject")]
    pub response_object: AnyBody<'a>,
    /// Time at which the request arrived, on the server's clock. RFC 3339 with six digits.
    #[serde(borrow, rename = "requestReceivedTimestamp")]
    pub request_received: Text<'a>,
    /// Time at which the stage was reached, on the server's clock.
    #[serde(borrow, rename = "stageTimestamp")]
    pub stage_timestamp: Text<'a>,
    /// The only time in events of 2017 (before `v1beta1` had its present fields): the second of the request.
    #[serde(borrow)]
    pub timestamp: Loose<'a>,
    /// Whether [`Event::timestamp`] is the only time, set by [`Event::read_times`].
    #[serde(skip)]
    pub is_of_2017: bool,
    /// Whether a time names no zone, set by [`Event::read_times`].
    #[serde(skip)]
    pub without_zone: bool,
    /// [`Event::request_received`] as a time, set by [`Event::read_times`].
    #[serde(skip)]
    pub received: Time,
    /// [`Event::stage_timestamp`] as a time, set by [`Event::read_times`].
    #[serde(skip)]
    pub reached: Time,
    /// Annotations of the event.
    #[serde(borrow)]
    pub annotations: Option<EventAnnotations<'a>>,
    /// The cluster, if the log forwarder of OpenShift wrote the event.
    #[serde(borrow)]
    pub openshift: Option<OpenShift<'a>>,
    /// The node, if the log forwarder of OpenShift wrote the event.
    #[serde(borrow)]
    pub hostname: Loose<'a>,
    /// The server on the node, if the log forwarder of OpenShift wrote the event.
    #[serde(borrow)]
    pub log_source: Loose<'a>,
}

impl Event<'_> {
    /// Parses both times. The error is the text that is no time.
    pub fn read_times(&mut self) -> Result<(), &str> {
        if self.request_received.is_empty()
            && self.stage_timestamp.is_empty()
            && let Some(begin) = self.timestamp.0.as_deref()
        {
            // The audit events of 2017 have the second of their request, and no time of the answer.
            let printed = timestamp::printed(begin).ok_or(begin)?;
            (self.received, self.is_of_2017) = (printed.time, true);
            return Ok(());
        }
        for (text, time, is_end) in
            [(&self.request_received, &mut self.received, false), (&self.stage_timestamp, &mut self.reached, true)]
        {
            if !text.is_empty() {
                let printed = timestamp::printed(text).ok_or(&**text)?;
                // A request begins no later than the true time, and ends no earlier.
                let cut = if is_end { printed.cut } else { 0 };
                *time = Time(printed.time.0.saturating_add(cut));
                self.without_zone |= printed.without_zone;
            }
        }
        Ok(())
    }

    /// A missing or contradictory time, as expected and found. The event counts all the same. Call it after
    /// [`Event::read_times`].
    pub fn odd_times(&self) -> Option<(&'static str, Found)> {
        if self.is_of_2017 {
            return None;
        }
        let missing = |text: &str| text.is_empty();
        if missing(&self.request_received) || missing(&self.stage_timestamp) {
            let absent = if missing(&self.request_received) { "requestReceivedTimestamp" } else { "stageTimestamp" };
            let found = Found::described(format!("an event without {absent}"));
            return Some(("requestReceivedTimestamp and stageTimestamp", found));
        }
        let falls = self.reached < self.received;
        falls.then(|| {
            // Both times are known here.
            let found = Found::described(format!("{} after {}", &*self.stage_timestamp, &*self.request_received));
            ("a stageTimestamp not before its requestReceivedTimestamp", found)
        })
    }
}
