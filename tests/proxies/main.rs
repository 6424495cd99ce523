//! The proxies of `retrograde record` between real clients and real servers (docs/record-any-language.md).
//! `cargo test --features proxy --test proxies` runs these tests.
//!
//! Without `etcd`, `etcdctl` or `openssl` on the PATH, or without `KUBEBUILDER_ASSETS`, a test is skipped and says so.
//! If `CI` is set it fails. `kubectl`, and Python with the package `kubernetes`, are used if they are there.
#![cfg(unix)]

mod etcd;
#[path = "../support/etcd.rs"]
mod etcd_server;
#[path = "../support/folder.rs"]
mod folder;
mod http;
mod kube;
mod kube_server;
#[path = "../support/program.rs"]
mod program;
mod proxy;
