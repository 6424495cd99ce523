//! JSON at speed: a reader, strings, boundaries of documents, and the top-level keys of objects that may be cut off.

pub(super) mod framing;
pub(crate) mod members;
pub(super) mod outline;
pub(super) mod reader;
pub(super) mod string;
pub(super) mod text;
