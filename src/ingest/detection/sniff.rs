//! Results of detection, kept with an input so that its beginning is read once.

use super::format::Format;
use crate::ingest::problem::Fault;
use std::sync::Arc;

/// Result of the first look at an input, kept so that reading does not repeat it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beginning(Known);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Known {
    #[default]
    Nothing,
    Seen(Seen),
    Unread(Arc<Unread>),
}

/// Reasons for not reading an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::ingest) struct Unread {
    /// Problems of the input.
    pub faults: Vec<Fault>,
    /// Reason for ignoring it, if it has no problem.
    pub ignored: Option<String>,
}

/// Result of detection on the first bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ingest) struct Seen {
    pub detected: Detected,
    /// Cluster and member id, if the file is an etcd log.
    pub writer: Option<(u64, u64)>,
    #[cfg(feature = "container")]
    pub is_container: bool,
    /// Length and CRC-32C of the sample, and whether it is the whole file.
    pub sample: (usize, u32, bool),
}

impl Beginning {
    pub(in crate::ingest) fn seen(&self) -> Option<Seen> {
        match &self.0 {
            Known::Seen(seen) => Some(*seen),
            _ => None,
        }
    }

    /// Reasons for not reading the input, if it is not read.
    pub(in crate::ingest) fn unread(&self) -> Option<&Unread> {
        match &self.0 {
            Known::Unread(unread) => Some(unread),
            _ => None,
        }
    }

    /// Whether the input is ignored without a problem.
    pub fn is_passed_over(&self) -> bool {
        self.unread().is_some_and(|unread| unread.faults.is_empty())
    }

    /// The earlier result, if the sample is the same one.
    pub(in crate::ingest) fn detected(&self, sample: &[u8], whole: bool) -> Option<Detected> {
        let seen = self.seen().filter(|seen| (seen.sample.0, seen.sample.2) == (sample.len(), whole))?;
        (seen.sample.1 == crc32c::crc32c(sample)).then_some(seen.detected)
    }
}

impl From<Seen> for Beginning {
    fn from(seen: Seen) -> Beginning {
        Beginning(Known::Seen(seen))
    }
}

impl From<Unread> for Beginning {
    fn from(unread: Unread) -> Beginning {
        Beginning(Known::Unread(Arc::new(unread)))
    }
}

/// Boundaries of the records of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ingest) enum Framing {
    /// One JSON value a line.
    Lines,
    /// JSON values that span lines.
    Documents,
    /// As `Documents`, each with `{` alone on its first line only. Boundaries are found without parsing.
    Indented,
    /// Values inside one long bracket, or one after the other: EDN, or arrays of JSON.
    Elements {
        /// Whether the values are JSON.
        json: bool,
    },
    /// The elements of a list inside one object that is longer than the sample.
    Entries {
        /// Offset behind the bracket that opens the list.
        from: usize,
    },
    /// The file is read as a whole.
    Whole,
}

/// Result of detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ingest) enum Detected {
    /// Evidence.
    Evidence(Format, Framing),
    /// No evidence, with the reason.
    Ignored(&'static str),
}
