//! Requests of etcd's gRPC interface, as operations of a robustness report.
//!
//! A request that a report cannot express is written as `other`, so that the revisions it makes are not attributed to
//! another writer.
//!
//! Source: etcd `api/etcdserverpb/rpc.proto`.

use super::answer::{self, Asked};
use super::client_record::ClientRecord;
use super::{key, value};
use crate::ingest::etcd::WireError;
use crate::ingest::etcd::request::{self, Compare, Range, Step, Txn};
use serde_json::{Value, json};

/// A call in progress. Dropped without an answer, its outcome is unknown.
#[derive(Debug)]
#[must_use = "a call that is dropped has an unknown outcome"]
pub struct EtcdCall {
    client: ClientRecord,
    /// `None`: a call that is not recorded.
    sent: Option<Sent>,
}

#[derive(Debug)]
struct Sent {
    id: u64,
    at: i64,
    input: Value,
    asked: Asked,
}

impl EtcdCall {
    /// `message` is `None` if it cannot be decoded, for example because it is compressed.
    pub(super) fn begin(client: ClientRecord, path: &str, message: Option<&[u8]>, at: i64) -> EtcdCall {
        let Some((input, asked)) = input(path, message) else { return EtcdCall { client, sent: None } };
        let id = client.next();
        client.operation(&json!({"ClientId": id, "Input": input, "Call": at}));
        EtcdCall { client, sent: Some(Sent { id, at, input, asked }) }
    }

    /// Records the answer, after its last byte was read. `message` is the protobuf message.
    pub fn answer(mut self, message: &[u8]) {
        let Some(mut sent) = self.sent.take() else { return };
        match answer::output(sent.asked, message) {
            Ok((output, lease)) => {
                if let Some(lease) = lease {
                    sent.input["LeaseGrant"] = json!({ "LeaseID": lease });
                }
                self.ended(sent, output);
            }
            // An answer that cannot be decoded leaves the outcome unknown.
            Err(error) => self.ended(sent, json!({"Error": format!("an answer that cannot be read: {error}")})),
        }
    }

    /// Records an error. `code` is the name of the gRPC code, such as `Unavailable`. The text decides whether the
    /// call is refused or its outcome unknown (`src/history/etcd/outcome.rs`).
    pub fn failed(mut self, code: &str, text: &str) {
        if let Some(sent) = self.sent.take() {
            self.ended(sent, json!({"Error": format!("rpc error: code = {code} desc = {text}")}));
        }
    }

    /// Records that no connection was established, so nothing was sent.
    pub fn never_sent(self, text: &str) {
        self.failed("Unavailable", &format!("error while dialing: {text}"));
    }

    fn ended(&self, sent: Sent, output: Value) {
        let returned = self.client.now();
        let Sent { id, at, input, .. } = sent;
        self.client
            .operation(&json!({"ClientId": id, "Input": input, "Call": at, "Output": output, "Return": returned}));
    }
}

/// Whether a call reads keys or may change them. A read that is not recorded is not judged.
pub(crate) fn is_recorded_call(path: &str) -> bool {
    let (service, method) = path.trim_start_matches('/').split_once('/').unwrap_or_default();
    match service {
        "etcdserverpb.KV" => method != "RangeStream",
        "etcdserverpb.Lease" => matches!(method, "LeaseGrant" | "LeaseRevoke"),
        "v3lockpb.Lock" => true,
        "v3electionpb.Election" => matches!(method, "Campaign" | "Proclaim" | "Resign"),
        _ => false,
    }
}

/// The request for the report; `None`: it is not recorded.
fn input(path: &str, message: Option<&[u8]>) -> Option<(Value, Asked)> {
    if !is_recorded_call(path) {
        return None;
    }
    let method = path.rsplit('/').next().unwrap_or_default();
    let Some(message) = message else { return Some(other(method)) };
    let read = match method {
        "Range" => range(message),
        "Put" => request::put(message).map(|put| match put.ignore_value || put.ignore_lease {
            true => other(method),
            false => (one(&Step::Put(put)), Asked::Put),
        }),
        "DeleteRange" => request::interval(message, 1, 2).map(|keys| (one(&Step::Delete(keys)), Asked::Delete)),
        "Txn" => request::txn(message, 0).map(|message| match is_expressible(&message) {
            true => (json!({"Type": "txn", "Txn": txn(&message)}), Asked::Txn),
            false => other(method),
        }),
        "Compact" => request::first_number(message, 1).map(|revision| {
            (json!({"Type": "compact", "Compact": {"Revision": revision.cast_signed()}}), Asked::Compact)
        }),
        "LeaseGrant" => Ok((json!({"Type": "leaseGrant", "LeaseGrant": {"LeaseID": 0}}), Asked::Grant)),
        "LeaseRevoke" => request::first_number(message, 1).map(|lease| {
            (json!({"Type": "leaseRevoke", "LeaseRevoke": {"LeaseID": lease.cast_signed()}}), Asked::Revoke)
        }),
        _ => Ok(other(method)),
    };
    Some(read.unwrap_or_else(|_: WireError| other(method)))
}

/// A request that may change keys in a way that reports do not have. Its revisions have no writer.
fn other(method: &str) -> (Value, Asked) {
    (json!({"Type": "other", "Other": method}), Asked::Other)
}

fn range(message: &[u8]) -> Result<(Value, Asked), WireError> {
    let range = request::range(message)?;
    Ok(match range.selective {
        true => other("Range"),
        false => (json!({"Type": "range", "Range": read(&range)}), Asked::Range),
    })
}

fn one(only: &Step<'_>) -> Value {
    json!({"Type": "txn", "Txn": {"OperationsOnSuccess": [step(only)]}})
}

/// Whether a report can express the whole transaction.
fn is_expressible(txn: &Txn<'_>) -> bool {
    let steps = || txn.success.iter().chain(&txn.failure);
    let expressible = |step: &Step<'_>| match step {
        Step::Range(range) => !range.selective,
        Step::Put(put) => !put.ignore_value && !put.ignore_lease,
        Step::Delete(_) => true,
        Step::Txn(_) | Step::Nothing => false,
    };
    // A member answers a transaction of serializable reads alone from its own state.
    let local = |step: &Step<'_>| matches!(step, Step::Range(range) if range.serializable);
    steps().all(expressible) && (steps().next().is_none() || !steps().all(local))
}

fn read(range: &Range<'_>) -> Value {
    json!({
        "Start": key(range.keys.key),
        "End": key(range.keys.end),
        "Limit": range.limit,
        "KeysOnly": range.keys_only,
        "Revision": range.revision,
        "CountOnly": range.count_only,
        "Serializable": range.serializable,
        "Sorted": range.sorted,
    })
}

fn step(step: &Step<'_>) -> Value {
    match step {
        Step::Range(range) => json!({"Type": "range-operation", "Range": read(range)}),
        Step::Put(put) => json!({
            "Type": "put-operation",
            "Put": {"Key": key(put.key), "Value": value(put.value), "LeaseID": put.lease},
        }),
        Step::Delete(keys) => {
            json!({"Type": "delete-operation", "Delete": {"Key": key(keys.key), "End": key(keys.end)}})
        }
        Step::Txn(_) | Step::Nothing => Value::Null,
    }
}

fn txn(txn: &Txn<'_>) -> Value {
    json!({
        "Conditions": txn.compares.iter().map(condition).collect::<Vec<_>>(),
        "OperationsOnSuccess": txn.success.iter().map(step).collect::<Vec<_>>(),
        "OperationsOnFailure": txn.failure.iter().map(step).collect::<Vec<_>>(),
    })
}

fn condition(compare: &Compare<'_>) -> Value {
    // Numbers that a later etcd may add are written as they are; the checker does not judge them.
    let name = |names: &[&str], at: u64| {
        usize::try_from(at).ok().and_then(|at| names.get(at)).map_or_else(|| at.to_string(), |name| (*name).to_owned())
    };
    json!({
        "Key": key(compare.keys.key),
        "End": key(compare.keys.end),
        "Target": name(&["version", "create", "mod", "value", "lease"], compare.target),
        "Relation": name(&["=", ">", "<", "!="], compare.relation),
        "Number": compare.number,
        "Value": value(compare.value),
    })
}
