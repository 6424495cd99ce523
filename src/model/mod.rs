//! What correct means: sequential specifications, and what each Kubernetes request promises, as data. Input: operations of a
//! [`crate::history::History`]. Invariant: does no input or output and knows no time.

pub mod contract;
pub mod declaration;
mod form;
mod spec;

pub use contract::{CONTRACT, Promise, Row, promise};
pub use form::{Action, Form, Value};
pub use spec::{Effect, Spec};
