//! The error of a claim that does not hold.

use std::fmt;

/// A failed [`Claim`](super::Claim). Its text is the human report, or the reason why there is none.
#[derive(Clone, thiserror::Error)]
#[error("{text}")]
pub struct ClaimError {
    pub(super) cause: Cause,
    pub(super) text: String,
}

/// The cause of a failure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Refuted,
    Undecided,
    Unusable,
}

impl ClaimError {
    pub(super) fn unusable(text: impl fmt::Display) -> ClaimError {
        ClaimError { cause: Cause::Unusable, text: text.to_string() }
    }

    /// Whether the evidence refutes the claim: it has a finding that the claim does not allow.
    pub fn is_refuted(&self) -> bool {
        self.cause == Cause::Refuted
    }

    /// Whether the evidence neither refutes nor proves the claim. See [`Undecided`](super::Undecided).
    pub fn is_undecided(&self) -> bool {
        self.cause == Cause::Undecided
    }

    /// Whether nothing was checked, because a rule of the claim, a file or a recording cannot be used.
    pub fn is_unusable(&self) -> bool {
        self.cause == Cause::Unusable
    }
}

/// The same text as `Display`, so that `expect` in a test prints a report that people can read.
impl fmt::Debug for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
