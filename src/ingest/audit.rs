//! Audit events, `audit.k8s.io/v1` and the same fields of `v1beta1`, borrowed from their line.
//!
//! Every field may be absent, so any JSON object parses; the parser decides by kind and group whether it is an event.
//! A time that is no time refuses the event; times that contradict each other are only reported.
//!
//! Source of the fields: k8s.io/apiserver `pkg/apis/audit/v1/types.go`.

use super::body::AnyBody;
use super::found::Found;
use super::limits::{LONGEST_ADDRESS, UNLIMITED};
use super::object::Text;
use super::position::Time;
use super::text::{default_or_null, list_or_null};
use super::timestamp;
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
    /// [`Event::request_received`] as a time, set by [`Event::read_times`].
    #[serde(skip)]
    pub received: Time,
    /// [`Event::stage_timestamp`] as a time, set by [`Event::read_times`].
    #[serde(skip)]
    pub reached: Time,
    /// Annotations of the event.
    #[serde(borrow)]
    pub annotations: Option<EventAnnotations<'a>>,
}

impl Event<'_> {
    /// Parses both times. The error is the text that is no RFC 3339 time.
    pub fn read_times(&mut self) -> Result<(), &str> {
        for (text, time) in [(&self.request_received, &mut self.received), (&self.stage_timestamp, &mut self.reached)] {
            if !text.is_empty() {
                *time = timestamp::parse(text).ok_or(&**text)?;
            }
        }
        Ok(())
    }

    /// A missing or contradictory time, as expected and found. The event counts all the same. Call it after
    /// [`Event::read_times`].
    pub fn odd_times(&self) -> Option<(&'static str, Found)> {
        let missing = |text: &str| text.is_empty();
        if missing(&self.request_received) || missing(&self.stage_timestamp) {
            let absent = if missing(&self.request_received) { "requestReceivedTimestamp" } else { "stageTimestamp" };
            let found = Found::told(format!("an event without {absent}"));
            return Some(("requestReceivedTimestamp and stageTimestamp", found));
        }
        let falls = self.reached < self.received;
        falls.then(|| {
            // Both times are known here.
            let found = Found::told(format!("{} after {}", &*self.stage_timestamp, &*self.request_received));
            ("a stageTimestamp not before its requestReceivedTimestamp", found)
        })
    }
}
