//! Mistakes in protocols.

/// A protocol that cannot be explored: mistakes in its file, or an expression that cannot be evaluated in one of its states.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ProtocolError {
    text: String,
}

impl ProtocolError {
    /// Each mistake, as a sentence with its place.
    pub fn mistakes(&self) -> impl Iterator<Item = &str> {
        self.text.lines()
    }
}

impl From<String> for ProtocolError {
    fn from(text: String) -> ProtocolError {
        ProtocolError { text }
    }
}
