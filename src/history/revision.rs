//! Revisions: positions in the total order of one domain.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A revision of up to 128 bits; [`Revision::NONE`] (zero) for none.
///
/// Kubernetes writes revisions as decimal text (`resourceVersion`) of up to 128 unsigned bits (KEP-5504). Two revisions compare
/// only inside one domain. `0` and the empty text occur in requests only, never as versions, so zero is free to mean "none".
/// Stored as two words, since a `u128` would align every row that holds one to 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Revision {
    high: u64,
    low: u64,
}

/// The reason why a text is no revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevisionError {
    /// Not decimal digits.
    #[error("not a decimal number")]
    NotDecimal,
    /// Above 128 bits.
    #[error("more than 128 bits")]
    TooLarge,
    /// Zero or a leading zero, which no object's version has.
    #[error("zero or a leading zero")]
    Zero,
}

impl Revision {
    /// No revision.
    pub const NONE: Revision = Revision { high: 0, low: 0 };

    /// From a number.
    pub const fn new(value: u128) -> Revision {
        Revision { high: (value >> 64) as u64, low: value as u64 }
    }

    /// As a number.
    pub const fn value(self) -> u128 {
        ((self.high as u128) << 64) | self.low as u128
    }

    /// The next higher revision; the highest is its own successor.
    pub const fn next(self) -> Revision {
        Revision::new(self.value().saturating_add(1))
    }

    /// The next lower revision; [`Revision::NONE`] below the first.
    pub const fn previous(self) -> Revision {
        Revision::new(self.value().saturating_sub(1))
    }

    /// Whether it is not [`Revision::NONE`].
    pub fn is_some(self) -> bool {
        self != Revision::NONE
    }

    /// `None` for [`Revision::NONE`].
    pub fn known(self) -> Option<Revision> {
        self.is_some().then_some(self)
    }

    /// Parses the version of an object or a list: decimal, above zero, no leading zero (apimachinery `pkg/util/resourceversion`).
    pub fn version(text: &str) -> Result<Revision, RevisionError> {
        let revision = Revision::parameter(text)?;
        if text.starts_with('0') { Err(RevisionError::Zero) } else { Ok(revision) }
    }

    /// Parses a request parameter: decimal. Zero and leading zeros are accepted, as a server accepts `007` for 7.
    pub fn parameter(text: &str) -> Result<Revision, RevisionError> {
        if text.is_empty() {
            return Err(RevisionError::NotDecimal);
        }
        let mut value: u128 = 0;
        for byte in text.bytes() {
            if !byte.is_ascii_digit() {
                return Err(RevisionError::NotDecimal);
            }
            value = value
                .checked_mul(10)
                .and_then(|v| v.checked_add(u128::from(byte - b'0')))
                .ok_or(RevisionError::TooLarge)?;
        }
        Ok(Revision::new(value))
    }
}

impl From<u64> for Revision {
    fn from(value: u64) -> Self {
        Revision { high: 0, low: value }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.high == 0 { self.low.fmt(f) } else { self.value().fmt(f) }
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_up_to_128_bits_and_no_more() {
        assert_eq!(Revision::version("340282366920938463463374607431768211455").unwrap().value(), u128::MAX);
        assert_eq!(Revision::version("340282366920938463463374607431768211456"), Err(RevisionError::TooLarge));
        assert_eq!(Revision::version("1759127820246769000").unwrap(), Revision::from(1_759_127_820_246_769_000));
    }

    #[test]
    fn a_version_is_never_zero_but_a_parameter_may_be() {
        assert_eq!(Revision::version("0"), Err(RevisionError::Zero));
        assert_eq!(Revision::version("007"), Err(RevisionError::Zero));
        assert_eq!(Revision::parameter("007"), Ok(Revision::from(7)));
        assert_eq!(Revision::parameter("0"), Ok(Revision::NONE));
        for text in ["", "abc", "-1", "1.5", "+3"] {
            assert_eq!(Revision::parameter(text), Err(RevisionError::NotDecimal), "{text}");
        }
    }

    #[test]
    fn orders_across_the_word_boundary() {
        assert!(Revision::new(1 << 64) > Revision::from(u64::MAX));
        assert_eq!(Revision::new(1 << 100).to_string(), (1u128 << 100).to_string());
    }
}
