//! CloudWatch Logs, to which EKS writes its audit log: subscriptions, `filter-log-events`, `get-log-events`, and
//! Logs Insights. One log stream is one API server.
//!
//! Sources: the CloudWatch Logs user guide ("Real-time processing of log data with subscriptions") and API reference
//! (`FilterLogEvents`, `GetQueryResults`); the EKS user guide ("Send control plane logs to CloudWatch Logs").

use super::cursor::{Cursor, unquoted};
use super::quoted::unescaped;
use super::{CONTROL_MESSAGES, Envelope, OTHER_STREAMS, Opening, Origin};
use std::borrow::Cow;

pub(super) const LACKS: &str = "entries of more than 256 KiB, and bodies that the policy of EKS does not record";

/// The message of a subscription, in Firehose one behind the other.
pub static SUBSCRIPTION: Envelope = Envelope {
    name: "cloudwatch-subscription",
    lacks: LACKS,
    keys: &["messageType", "logGroup", "logStream", "logEvents"],
    read: subscription,
};

/// One event of `filter-log-events`.
pub static STREAM_ENTRY: Envelope =
    Envelope { name: "cloudwatch-event", lacks: LACKS, keys: &["logStreamName", "message"], read: entry };

/// The answer of `filter-log-events` or `get-log-events`.
pub static ENTRIES: Envelope = Envelope { name: "cloudwatch-events", lacks: LACKS, keys: &["events"], read: entries };

/// The answer of `get-query-results`.
pub static INSIGHTS: Envelope =
    Envelope { name: "cloudwatch-insights", lacks: LACKS, keys: &["results"], read: results };

/// A row that the console of Logs Insights exports.
pub static INSIGHTS_ROW: Envelope =
    Envelope { name: "cloudwatch-insights", lacks: LACKS, keys: &["@message"], read: row };

/// The event of a Lambda function that subscribes to a log group.
pub static LAMBDA: Envelope = Envelope { name: "cloudwatch-lambda", lacks: LACKS, keys: &["awslogs"], read: lambda };

/// `ACCOUNT/CLUSTER` for the log group of a cluster, `/aws/eks/CLUSTER/cluster`.
pub(super) fn cluster<'g>(account: &str, group: &'g str) -> Cow<'g, str> {
    let name = group.strip_prefix("/aws/eks/").and_then(|rest| rest.strip_suffix("/cluster")).unwrap_or(group);
    if account.is_empty() || name.is_empty() { Cow::Borrowed(name) } else { Cow::Owned(format!("{account}/{name}")) }
}

/// Beginning of the names of streams with audit logs; each is of one API server.
const AUDIT_STREAM: &str = "kube-apiserver-audit-";

/// Hands over a message, unless its stream is one of another component of the control plane. A stream of another name may be
/// that of an agent, and names no server.
fn hand(message: &str, cluster: &str, stream: &str, out: &mut Opening<'_, '_>) {
    const OTHERS: [&str; 5] = [
        "authenticator-",
        "cloud-controller-manager-",
        "kube-apiserver-",
        "kube-controller-manager-",
        "kube-scheduler-",
    ];
    let stream = unescaped(stream);
    let is_audit = stream.starts_with(AUDIT_STREAM);
    if !is_audit && OTHERS.iter().any(|begin| stream.starts_with(begin)) {
        return out.other(message, OTHER_STREAMS);
    }
    let server = if is_audit { stream } else { Cow::Borrowed("") };
    out.payload(message, &Origin { cluster: cluster.into(), server, ..Origin::default() });
}

fn subscription<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let (mut kind, mut account, mut group, mut stream, mut events) = ("", "", "", "", None);
    cursor.object(|cursor, key| match key {
        "messageType" => kind = cursor.text(),
        "owner" => account = cursor.text(),
        "logGroup" => group = cursor.text(),
        "logStream" => stream = cursor.text(),
        "logEvents" => events = Some(cursor.value()),
        _ => {}
    });
    let Some(events) = events else { return false };
    if kind == "CONTROL_MESSAGE" {
        out.other(events, CONTROL_MESSAGES);
        return true;
    }
    // The members of a message that is cut off may be behind the cut.
    if kind != "DATA_MESSAGE" && !(kind.is_empty() && cursor.is_broken()) {
        return false;
    }
    // The account may be behind a cut, and a part of a name is another name.
    let cluster = if cursor.is_broken() { Cow::Borrowed("") } else { cluster(account, group) };
    Cursor::new(events).list(|cursor| {
        cursor.object(|cursor, key| {
            if key == "message" {
                hand(cursor.value(), &cluster, stream, out);
            }
        });
    });
    true
}

fn entry<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let (mut message, mut stream) = (None, "");
    cursor.object(|cursor, key| match key {
        "message" => message = Some(cursor.value()),
        "logStreamName" => stream = cursor.text(),
        _ => {}
    });
    let Some(message) = message else { return false };
    hand(message, "", stream, out);
    true
}

fn entries<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let mut found = false;
    cursor.object(|cursor, key| {
        if key == "events" {
            cursor.list(|cursor| found |= entry(cursor, out));
        }
    });
    found
}

fn results<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let mut found = false;
    cursor.object(|cursor, key| {
        if key == "results" {
            cursor.list(|cursor| {
                let mut columns = Columns::default();
                cursor.list(|cursor| {
                    let (mut field, mut value) = ("", "");
                    cursor.object(|cursor, key| match key {
                        "field" => field = cursor.text(),
                        "value" => value = cursor.value(),
                        _ => {}
                    });
                    // A part of a name is another name.
                    if !cursor.is_broken() || field == "@message" {
                        columns.put(field, value);
                    }
                });
                found |= columns.hand(out);
            });
        }
    });
    found
}

fn row<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let mut columns = Columns::default();
    cursor.object(|cursor, key| {
        let value = cursor.value();
        if !cursor.is_broken() || key == "@message" {
            columns.put(key, value);
        }
    });
    columns.hand(out)
}

fn lambda<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let mut data = None;
    cursor.object(|cursor, key| {
        if key == "awslogs" {
            cursor.object(|cursor, key| {
                if key == "data" {
                    data = Some(cursor.value());
                }
            });
        }
    });
    let Some(data) = data else { return false };
    out.payload(data, &Origin::default());
    true
}

/// The columns of one result of a query.
#[derive(Default)]
struct Columns<'t> {
    message: Option<&'t str>,
    stream: &'t str,
    log: &'t str,
}

impl<'t> Columns<'t> {
    fn put(&mut self, column: &str, value: &'t str) {
        match column {
            "@message" => self.message = Some(value),
            "@logStream" => self.stream = unquoted(value),
            "@log" => self.log = unquoted(value),
            _ => {}
        }
    }

    fn hand(self, out: &mut Opening<'t, '_>) -> bool {
        let Some(message) = self.message else { return false };
        let (account, group) = self.log.split_once(':').unwrap_or(("", self.log));
        hand(message, &cluster(account, group), self.stream, out);
        true
    }
}
