//! Answers of the proxy itself, in the form that clients of Kubernetes show to their users.

use super::upstream::{BoxError, Passing};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use serde_json::json;

/// Why the proxy does not pass a request or has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It comes from a browser, or names another host.
    Stranger,
    /// It upgrades the connection.
    Upgrade,
    /// It has credentials of its own.
    Credentials,
    /// The client's name in its path is none.
    Name,
    /// Its body is too long or broke off.
    Body,
    /// The server gave no answer.
    Server(String),
}

impl Refusal {
    fn parts(&self) -> (StatusCode, &'static str, String) {
        let (status, reason, text) = match self {
            Refusal::Stranger => (
                StatusCode::FORBIDDEN,
                "Forbidden",
                "expected a program that asks localhost, found a browser or another host in the request",
            ),
            Refusal::Upgrade => (
                StatusCode::NOT_IMPLEMENTED,
                "NotImplemented",
                "this proxy passes no upgraded connections (exec, attach, port-forward); ask the API server itself",
            ),
            Refusal::Credentials => (
                StatusCode::BAD_REQUEST,
                "BadRequest",
                "expected no credentials, found the header Authorization; the proxy uses those of its kubeconfig, so give the \
                 client a configuration without token and user",
            ),
            Refusal::Name => (
                StatusCode::BAD_REQUEST,
                "BadRequest",
                "expected /client/NAME/ with a name of at most 64 letters, digits, '-', '_' and '.', found another name",
            ),
            Refusal::Body => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestEntityTooLarge",
                "expected a body of at most 64 MiB, found a longer one or one that broke off",
            ),
            Refusal::Server(why) => {
                return (
                    StatusCode::BAD_GATEWAY,
                    "ServiceUnavailable",
                    format!("the API server gave no answer: {why}"),
                );
            }
        };
        (status, reason, text.to_owned())
    }
}

/// The answer to a request that did not pass: a `Status`.
pub(super) fn refused(refusal: &Refusal) -> Response<Passing> {
    let (code, reason, text) = refusal.parts();
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("retrograde record: {text}"), "reason": reason, "code": code.as_u16(),
    });
    let body = Full::new(Bytes::from(status.to_string()));
    let mut response = Response::new(body.map_err(BoxError::from).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
