//! Rules as data: slug, texts, possible causes, and one predicate for each nature of history. [`super::RULES`] has their
//! order.

use super::etcd::Recorded;
use super::facts::Evidence;
use super::finding::BrokenBy;
use super::rule_result::RuleResult;
use crate::history::{History, Nature};

/// The subject of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Answers of servers to reads.
    Reads,
    /// Events that servers deliver on watches.
    Watches,
    /// Commits of servers.
    Writes,
    /// Observations of one process over time.
    Sessions,
    /// Use of the protocol by a client.
    Protocol,
    /// Premises of writes.
    Premises,
    /// Properties of all revisions.
    Invariants,
    /// Operation logs without revisions.
    Operations,
}

impl Group {
    /// The heading in lists of rules.
    pub fn title(self) -> &'static str {
        match self {
            Group::Reads => "server: reads",
            Group::Watches => "server: watch",
            Group::Writes => "server: writes",
            Group::Sessions => "client sessions",
            Group::Protocol => "client protocol",
            Group::Premises => "premises",
            Group::Invariants => "invariants over all revisions",
            Group::Operations => "operation logs",
        }
    }

    /// Whether the group's findings concern a client's observations, and so count for that client's verdict.
    pub fn is_about_observations(self) -> bool {
        matches!(self, Group::Reads | Group::Watches | Group::Writes | Group::Sessions | Group::Operations)
    }
}

/// A predicate over the requests of Kubernetes clients, or over the calls of an operation log.
type Check = fn(&Evidence<'_>, &mut RuleResult<'_>);

/// A predicate over the recording of an etcd cluster.
type EtcdCheck = fn(&Recorded<'_>, &mut RuleResult<'_>);

/// The predicates of a rule, one for each nature of history that it judges.
#[derive(Clone, Copy)]
pub struct Checks {
    kubernetes: Option<Check>,
    etcd: Option<EtcdCheck>,
    operations: Option<Check>,
    /// Whether it is only about logs of transactions.
    needs_transactions: bool,
}

impl Checks {
    const NONE: Checks = Checks { kubernetes: None, etcd: None, operations: None, needs_transactions: false };

    /// Predicate over requests of Kubernetes clients.
    pub(super) const fn kubernetes(check: Check) -> Checks {
        Checks { kubernetes: Some(check), ..Checks::NONE }
    }

    /// Predicate over recordings of etcd.
    pub(super) const fn etcd(check: EtcdCheck) -> Checks {
        Checks { etcd: Some(check), ..Checks::NONE }
    }

    /// Predicate over operation logs.
    pub(super) const fn operations(check: Check) -> Checks {
        Checks { operations: Some(check), ..Checks::NONE }
    }

    /// Predicate over operation logs with transactions.
    pub(super) const fn transactions(check: Check) -> Checks {
        Checks { needs_transactions: true, ..Checks::operations(check) }
    }

    /// Whether it is about histories like this one. A function `txn` is a transaction.
    pub(super) fn are_about(&self, history: &History) -> bool {
        let functions = &history.calls().functions;
        !self.needs_transactions || functions.iter().any(|function| history.name(function.name) == "txn")
    }

    /// Adds a predicate over recordings of etcd.
    pub(super) const fn and_etcd(self, check: EtcdCheck) -> Checks {
        Checks { etcd: Some(check), ..self }
    }
}

/// One rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// The slug: the same everywhere.
    pub slug: &'static str,
    /// The promise in a few words.
    pub title: &'static str,
    /// Group.
    pub group: Group,
    /// The party whose promise a violation usually breaks.
    pub promise: BrokenBy,
    /// The evidence that it needs. It is the reason if the rule met no obligation.
    pub needs: &'static str,
    /// Slugs of rules whose findings can be the cause of this one's.
    pub causes: &'static [&'static str],
    /// The documentation page in Markdown: `docs/rules/SLUG.md`.
    pub page: &'static str,
    /// Its predicates.
    pub checks: Checks,
}

impl Rule {
    /// Runs the predicate for the nature of the history, if the rule has one. Without one it meets no obligation.
    pub(super) fn check(&self, evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
        let check = match evidence.history.nature() {
            Nature::Kubernetes => self.checks.kubernetes,
            Nature::Operations => self.checks.operations,
            Nature::Etcd => {
                if let (Some(check), Some(recorded)) = (self.checks.etcd, Recorded::of(evidence)) {
                    check(&recorded, result);
                }
                return;
            }
        };
        if let Some(check) = check {
            check(evidence, result);
        }
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.slug)
    }
}
