//! The nature of a history: Kubernetes, etcd, or an operation log.

use super::calls::Calls;
use super::etcd::Cluster;

/// The nature of a history, which decides the rules that apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// Requests to Kubernetes API servers.
    Kubernetes,
    /// Requests to etcd.
    Etcd,
    /// Operations without revisions.
    Operations,
}

impl Nature {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Nature::Kubernetes => "kubernetes",
            Nature::Etcd => "etcd",
            Nature::Operations => "operations",
        }
    }
}

/// The facts that only histories of one nature have.
#[derive(Debug, Default)]
pub enum Subject {
    /// Requests to Kubernetes API servers: they are the rows of [`super::History`].
    #[default]
    Kubernetes,
    /// A recorded etcd cluster.
    Etcd(Box<Cluster>),
    /// The calls of an operation log.
    Operations(Box<Calls>),
}
