//! Recorders between a client and its server: clients of etcd and Kubernetes are recorded without a change to their
//! code.
//!
//! - [`EtcdRecorder`] takes the messages of etcd's gRPC interface and writes them as a report of etcd's robustness
//!   suite, in memory or into a folder.
//! - `EtcdLayer` (feature `tower`) wraps the channel of a gRPC client, such as that of the crate `etcd-client`.
//! - `KubeLayer` (feature `tower`) wraps the connection of a Kubernetes client, such as kube-rs, and writes a
//!   [`Capture`](crate::assertion::Capture).
//!
//! Input: messages in transit. Output: evidence. Invariant: messages are neither changed, delayed nor failed. A
//! message that cannot be recorded makes evidence incomplete, never wrong.
//!
//! ```
//! use retrograde::record::{EtcdRecorder, replay};
//!
//! # let folder = std::env::temp_dir().join(format!("retrograde-record-{}", std::process::id()));
//! let recorder = EtcdRecorder::in_folder(&folder)?;
//! // put k=7, as gRPC messages
//! let call = recorder.client("ann").call("/etcdserverpb.KV/Put", b"\x0a\x01k\x12\x017");
//! call.answer(b"\x0a\x02\x18\x02"); // at revision 2
//! retrograde::assert_consistent!(replay(&folder)?);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "tower")]
mod body;
#[cfg(feature = "tower")]
mod content;
#[cfg(test)]
mod dropped_tests;
mod etcd;
#[cfg(all(test, feature = "tower", feature = "compress"))]
mod go_recorder_tests;
#[cfg(feature = "tower")]
mod grpc;
#[cfg(all(test, feature = "tower"))]
mod grpc_tests;
#[cfg(feature = "tower")]
mod kube;
#[cfg(all(test, feature = "tower"))]
mod kube_tests;
#[cfg(feature = "tower")]
mod media;
#[cfg(feature = "tower")]
mod reduction;
#[cfg(all(test, feature = "tower"))]
mod specimen;

#[cfg(feature = "tower")]
pub use body::Tapped;
pub use etcd::{EtcdCall, EtcdClient, EtcdRecorder, EtcdWatches, replay};
#[cfg(feature = "proxy")]
pub(crate) use grpc::is_recorded;
#[cfg(feature = "tower")]
pub use grpc::{EtcdLayer, EtcdService};
#[cfg(feature = "proxy")]
pub(crate) use kube::is_recorded_request;
#[cfg(feature = "tower")]
pub use kube::{KubeLayer, KubeService};
