//! The formats of evidence and their names in `--format`.

use serde::{Deserialize, Serialize};

/// A format of evidence. Every file has one, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Format {
    /// Audit events, one a line, or `EventList` batches.
    Audit,
    /// Text of `--audit-log-format=legacy`. It is recognised but cannot be read.
    LegacyAudit,
    /// The capture format, version 1.
    Capture,
    /// Watch events: one a line, or indented, one after the other.
    Watch,
    /// A list response or single objects, as JSON documents.
    List,
    /// `etcdctl watch -w json`.
    EtcdWatch,
    /// Operations as Jepsen writes them in EDN.
    Edn,
    /// Operations in Jepsen's text log.
    JepsenLog,
    /// Operations as JSON.
    Operations,
    /// Steps of transactions, one a line.
    Transactions,
    /// `operations.json` of an etcd robustness report.
    EtcdOperations,
    /// `watch.json` of an etcd robustness report.
    EtcdWatches,
    /// `traffic.json` of an etcd robustness report.
    EtcdTraffic,
    /// A segment of an etcd member's write-ahead log.
    EtcdLog,
    /// The store of an etcd member.
    EtcdStore,
}

impl Format {
    /// All formats, in the order of the documentation.
    pub const ALL: [Format; 15] = [
        Format::Audit,
        Format::LegacyAudit,
        Format::Capture,
        Format::Watch,
        Format::List,
        Format::EtcdWatch,
        Format::Edn,
        Format::JepsenLog,
        Format::Operations,
        Format::Transactions,
        Format::EtcdOperations,
        Format::EtcdWatches,
        Format::EtcdTraffic,
        Format::EtcdLog,
        Format::EtcdStore,
    ];

    /// The name in `--format` and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Format::Audit => "audit",
            Format::LegacyAudit => "audit-legacy",
            Format::Capture => "capture",
            Format::Watch => "watch",
            Format::List => "list",
            Format::EtcdWatch => "etcd-watch",
            Format::Edn => "edn",
            Format::JepsenLog => "jepsen-log",
            Format::Operations => "operations",
            Format::Transactions => "transactions",
            Format::EtcdOperations => "etcd-operations",
            Format::EtcdWatches => "etcd-watches",
            Format::EtcdTraffic => "etcd-traffic",
            Format::EtcdLog => "etcd-log",
            Format::EtcdStore => "etcd-store",
        }
    }

    /// Whether a file of this format is an operation log: a history of its own.
    #[doc(hidden)]
    pub fn is_operation_log(self) -> bool {
        matches!(self, Format::Edn | Format::JepsenLog | Format::Operations | Format::Transactions)
    }

    /// Whether it is evidence of an etcd cluster: a report of its robustness suite, or a file of a member.
    #[doc(hidden)]
    pub fn is_of_etcd(self) -> bool {
        self.is_of_member() || matches!(self, Format::EtcdOperations | Format::EtcdWatches | Format::EtcdTraffic)
    }

    /// Whether it is a binary file of an etcd member, which is read as a whole.
    pub(in crate::ingest) fn is_of_member(self) -> bool {
        matches!(self, Format::EtcdLog | Format::EtcdStore)
    }

    /// The format with this name in `--format`.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}
