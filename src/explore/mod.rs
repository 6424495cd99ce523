//! The explorer: every run that Kubernetes' contract allows for a small protocol of clients, within bounds.
//!
//! A recording is one run. [`explore`] visits all runs of a [`TransitionSystem`], breadth first, so that the counterexample of a
//! broken property is a shortest one. [`Machine`] is the system of a declared [`Protocol`] (`docs/explorer.md`).
//!
//! ```
//! use retrograde::explore::{explore, read, sketch, Bounds, Machine};
//!
//! let text = r#"
//! name = "restart"
//! properties = ["monotonic-reads"]
//! [[client]]
//! name = "user"
//! steps = [{ create = "pods/web-0" }, { delete = "pods/web-0" }]
//! [[client]]
//! name = "kubelet"
//! crashes = true
//! steps = [{ list = "pods", resource-version = "0", into = "pods" }]
//! "#;
//! let machine = Machine::new(read(text, None)?)?;
//! let found = explore(&machine, Bounds::default());
//! let path = found.counterexamples[0].as_ref().ok_or("no run goes back in time")?;
//! let history = retrograde::history::sketch::sketch(&sketch(&machine, path).ok_or("no such run")?)?;
//! let judgement = retrograde::judge(&history, &retrograde::Options::default());
//! assert!(judgement.findings.iter().any(|finding| finding.rule == "monotonic-reads"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod boundary;
mod catalogue;
#[cfg(test)]
mod conformance_tests;
mod content;
mod error;
mod expression;
mod field_managers;
mod file;
mod knowledge;
mod machine;
mod protocol;
mod recording;
mod run;
mod search;
mod state;
mod system;
mod variant;

pub use boundary::{Action, Boundary, boundaries};
pub use catalogue::{PROTOCOLS, shipped};
pub use error::ProtocolError;
pub use file::{Fix, fixes, read};
pub use machine::{Cost, Machine};
pub use protocol::{Limits, Protocol, Server};
pub use recording::{is_recordable, recorded};
pub use run::sketch;
pub use search::{Bounds, End, Exploration, explore};
pub use state::State;
pub use system::{Broken, TransitionSystem};
pub use variant::{Counterexample, Variant, minimise, variant};
