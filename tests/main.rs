//! All tests of whole evidence, reports and the program, as one binary: each test file links the library once less. The
//! histories (`tests/histories.rs`) and the control plane are binaries of their own, since they name their cases themselves.

mod altered_evidence;
mod architecture;
mod assertion;
#[path = "../benches/generator/chance.rs"]
mod chance;
mod command;
mod controllers;
mod documents;
mod edn;
mod etcd;
mod etcd_member;
mod etcd_traffic;
mod examples;
mod explore;
mod exports;
mod growth;
mod guide;
mod halting;
mod kube_layer;
mod linearizability;
mod mutation;
mod output;
mod packing;
mod public_api;
mod release;
mod reports;
mod same_version;
mod secrets;
mod simulation;
mod snapshot;
mod support;
mod two_records;
mod unnamed_processes;
mod verify;
