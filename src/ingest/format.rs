//! The formats of evidence.

/// A format that ingest reads (or recognises as evidence that cannot be read).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Audit events, one a line, or `EventList` batches.
    Audit,
    /// The text that `--audit-log-format=legacy` writes: recognised, unreadable.
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
}

impl Format {
    /// All formats, in the order of the documentation.
    pub const ALL: [Format; 9] = [
        Format::Audit,
        Format::LegacyAudit,
        Format::Capture,
        Format::Watch,
        Format::List,
        Format::EtcdWatch,
        Format::Edn,
        Format::JepsenLog,
        Format::Operations,
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
        }
    }

    /// Whether its files are operation logs: each of them is a history of its own.
    pub fn is_operation_log(self) -> bool {
        matches!(self, Format::Edn | Format::JepsenLog | Format::Operations)
    }

    /// The format of a name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}
