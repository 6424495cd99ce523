//! Inputs and programs that several tests share.

pub mod client_crate;
pub mod committed;
pub mod container;
pub mod dice;
pub mod draws;
pub mod etcd;
pub mod folder;
pub mod program;
pub mod reported;
