//! Places of facts in the evidence, and times.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Index of an input file, in the order of the inputs. Directories are walked in name order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct FileId(pub u32);

/// The place of one line or document. It suffices to read the line again, so no text is kept.
///
/// `offset` counts bytes from the start of the decompressed content. All events of an audit `EventList` share the
/// position of their line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Position {
    /// The input file.
    pub file: FileId,
    /// Number of the line, from 1.
    pub line: u32,
    /// Byte offset of the line in the decompressed content.
    pub offset: u64,
}

/// Nanoseconds since 1970-01-01T00:00:00Z on some clock; [`Time::UNKNOWN`] if the evidence has none.
///
/// Two times compare only on one clock, or through the offsets that the evidence proves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(pub i64);

impl Time {
    /// No time was recorded. It sorts after every known time, as an open interval needs.
    pub const UNKNOWN: Time = Time(i64::MAX);

    /// Whether a time was recorded.
    pub fn is_known(self) -> bool {
        self != Time::UNKNOWN
    }

    /// Nanoseconds from another time to this one, saturating.
    pub fn since(self, other: Time) -> i64 {
        self.0.saturating_sub(other.0)
    }
}

impl Default for Time {
    fn default() -> Self {
        Time::UNKNOWN
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// RFC 3339 in UTC with six digits of a second, nine if needed; `-` if unknown.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_known() {
            return f.write_str("-");
        }
        match jiff::Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(t) if self.0 % 1_000 == 0 => write!(f, "{t:.6}"),
            Ok(t) => write!(f, "{t:.9}"),
            Err(_) => write!(f, "{}ns", self.0),
        }
    }
}
