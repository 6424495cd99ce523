//! Recorders that sit where requests pass: clients of etcd and of Kubernetes are recorded without a change to the code that asks.
//!
//! - [`EtcdRecorder`] takes the messages of etcd's gRPC interface and writes them as a report that the etcd decision judges like one
//!   of etcd's robustness suite: in memory, or into a folder that outlives the process.
//! - `EtcdLayer` (feature `tower`) stands between a gRPC client, such as that of the crate `etcd-client`, and its channel.
//! - `KubeLayer` (feature `tower`) stands between a client of Kubernetes, such as kube-rs, and its connection, and writes a
//!   [`Capture`](crate::assertion::Capture).
//!
//! Input: what passes. Output: evidence. Invariant: what passes is not changed, held back or kept from failing; what cannot be
//! recorded leaves less known, never something else.

#[cfg(feature = "tower")]
mod body;
#[cfg(feature = "tower")]
mod content;
mod etcd;
#[cfg(feature = "tower")]
mod grpc;
#[cfg(all(test, feature = "tower"))]
mod grpc_tests;
#[cfg(feature = "tower")]
mod kube;
#[cfg(all(test, feature = "tower"))]
mod kube_tests;
#[cfg(feature = "tower")]
mod reduction;
#[cfg(all(test, feature = "tower"))]
mod specimen;

#[cfg(feature = "tower")]
pub use body::Tapped;
pub use etcd::{EtcdCall, EtcdClient, EtcdRecorder, EtcdWatches, replay};
#[cfg(feature = "tower")]
pub use grpc::{EtcdLayer, EtcdService};
#[cfg(feature = "tower")]
pub use kube::{KubeLayer, KubeService};
