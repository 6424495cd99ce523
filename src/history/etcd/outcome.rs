//! Derives the outcome of an operation from its error.

use crate::ingest::etcd::operation::Answer;
use serde::{Deserialize, Serialize};

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// A regular answer.
    Answered,
    /// The answer that the requested revision is compacted.
    Compacted,
    /// The answer that the requested revision is in the future.
    Future,
    /// Refused: no effect, now or later.
    Refused,
    /// Open: it may have had its effect, may still have it, or never will. A read has no effect.
    Unknown,
}

const COMPACTED: &str = "required revision has been compacted";
const FUTURE: &str = "required revision is a future revision";

/// Substrings, in lower case, of errors that are returned before a request is proposed, or instead of applying it.
///
/// Source: etcd `api/v3rpc/rpctypes/error.go` and the places that return them: `server/etcdserver/api/v3rpc/key.go` (checks of
/// requests), `server/etcdserver/v3_server.go` (size, quota, users), `server/etcdserver/txn` (checks when applied, which leave
/// the store alone), gRPC's "Unimplemented", and a connection that was never established.
const REFUSALS: [&str; 32] = [
    "key is not provided",
    "value is provided",
    "lease is provided",
    "too many operations in txn request",
    "duplicate key given in txn request",
    "key not found",
    "ttl is 0",
    "invalid sort option",
    "invalid range_end",
    "invalid client api version",
    "requested lease not found",
    "lease already exists",
    "too large lease ttl",
    "request is too large",
    "too many requests",
    "database space exceeded",
    "permission denied",
    "authentication failed",
    "authentication is not enabled",
    "invalid auth management",
    "invalid auth token",
    "revision of auth store is old",
    "user name is empty",
    "user name not found",
    "role name not found",
    "root user does not have root role",
    "not capable",
    "not supported for learner",
    "code = unimplemented",
    "code = permissiondenied",
    "code = invalidargument",
    "error while dialing",
];

/// Substrings of other errors, kept to distinguish them.
const OTHERS: [&str; 14] = [
    "context deadline exceeded",
    "context canceled",
    "request timed out",
    "leader changed",
    "no leader",
    "server stopped",
    "connection refused",
    "connection reset",
    "error reading from server",
    "transport is closing",
    "eof",
    "code = unavailable",
    "code = unknown",
    "code = internal",
];

/// The known substrings of an error. The rest of its text is dropped, since a proxy or a test may have written it.
pub(super) fn known(error: &str) -> String {
    let error = error.to_ascii_lowercase();
    let texts = [COMPACTED, FUTURE].into_iter().chain(REFUSALS).chain(OTHERS);
    let met: Vec<&str> = texts.filter(|text| error.contains(text)).collect();
    if met.is_empty() { "another error".to_owned() } else { met.join(", ") }
}

impl Outcome {
    /// The outcome that an answer states.
    pub(super) fn of(answer: &Answer<'_>) -> Outcome {
        match (&*answer.client_error, &*answer.error) {
            ("", "") => Outcome::Answered,
            ("", error) | (error, _) => Outcome::of_error(error),
        }
    }

    fn of_error(error: &str) -> Outcome {
        let error = error.to_ascii_lowercase();
        if error.contains(COMPACTED) {
            Outcome::Compacted
        } else if error.contains(FUTURE) {
            Outcome::Future
        } else if REFUSALS.iter().any(|text| error.contains(text)) {
            Outcome::Refused
        } else {
            Outcome::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(client_error: &str, error: &str) -> Outcome {
        let text = format!(r#"{{"ClientError":"{client_error}","Error":"{error}"}}"#);
        Outcome::of(&serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn only_what_certainly_had_no_effect_is_refused() {
        for (error, expected) in [
            ("", Outcome::Answered),
            ("etcdserver: mvcc: required revision has been compacted", Outcome::Compacted),
            ("etcdserver: mvcc: required revision is a future revision", Outcome::Future),
            ("etcdserver: requested lease not found", Outcome::Refused),
            ("etcdserver: too large lease TTL", Outcome::Refused),
            (
                "rpc error: code = Unimplemented desc = unknown method RangeStream for service etcdserverpb.KV",
                Outcome::Refused,
            ),
            (
                "rpc error: code = Unavailable desc = connection error: desc = transport: Error while dialing: dial tcp \
                 127.0.0.1:20000: connect: connection refused",
                Outcome::Refused,
            ),
            ("context deadline exceeded", Outcome::Unknown),
            ("context canceled", Outcome::Unknown),
            ("etcdserver: request timed out", Outcome::Unknown),
            ("etcdserver: request timed out, possibly due to connection lost", Outcome::Unknown),
            ("etcdserver: leader changed", Outcome::Unknown),
            ("etcdserver: server stopped", Outcome::Unknown),
            ("etcdserver: no leader", Outcome::Unknown),
            ("rpc error: code = Unavailable desc = error reading from server: EOF", Outcome::Unknown),
            (
                "rpc error: code = Unavailable desc = error reading from server: connection reset by peer",
                Outcome::Unknown,
            ),
            ("rpc error: code = Unknown desc = raft: stopped", Outcome::Unknown),
            ("rpc error: code = Unknown desc = context deadline exceeded", Outcome::Unknown),
            ("something that nobody has seen yet", Outcome::Unknown),
        ] {
            assert_eq!(outcome("", error), expected, "{error}");
        }
        assert_eq!(outcome("mvcc: required revision has been compacted", ""), Outcome::Compacted);
        assert_eq!(outcome("mvcc: required revision is a future revision", ""), Outcome::Future);
    }
}
