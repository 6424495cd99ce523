//! What an input shows before it is read.

use super::format::Format;
use super::problem::Fault;
use std::sync::Arc;

/// What was found out about an input when it was found, so that nobody has to find it out again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beginning(Known);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Known {
    #[default]
    Nothing,
    Seen(Seen),
    Unread(Arc<Unread>),
}

/// Why an input is not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Unread {
    /// What is wrong with it.
    pub faults: Vec<Fault>,
    /// Why it is passed over, where nothing is wrong with it.
    pub ignored: Option<String>,
}

/// What the first bytes of a file showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub detected: Detected,
    /// Of a log of etcd, cluster and member that write it.
    pub writer: Option<(u64, u64)>,
    #[cfg(feature = "container")]
    pub is_container: bool,
    /// How many bytes, their digest, and whether they are all.
    pub sample: (usize, u32, bool),
}

impl Beginning {
    /// What was seen, if anything was.
    pub(super) fn seen(&self) -> Option<Seen> {
        match &self.0 {
            Known::Seen(seen) => Some(*seen),
            _ => None,
        }
    }

    /// Why it is not read, if it is not.
    pub(super) fn unread(&self) -> Option<&Unread> {
        match &self.0 {
            Known::Unread(unread) => Some(unread),
            _ => None,
        }
    }

    /// Whether nothing of it is read although nothing is wrong with it.
    pub fn is_passed_over(&self) -> bool {
        self.unread().is_some_and(|unread| unread.faults.is_empty())
    }

    /// What a sample is found to be without looking at it, where it is the one that was looked at.
    pub(super) fn detected(&self, sample: &[u8], whole: bool) -> Option<Detected> {
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

/// How the records of a file are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// One JSON value a line.
    Lines,
    /// Values that span lines, one after the other.
    Documents,
    /// The same, each beginning with a line that is `{`, and none of their other lines is: told apart without reading them.
    Indented,
    /// Values inside one long bracket, or one after the other: EDN, or arrays of JSON.
    Elements {
        /// Which of the two.
        json: bool,
    },
    /// No part can be read without the others.
    Whole,
}

/// What a sample says about its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detected {
    /// Evidence.
    Evidence(Format, Framing),
    /// Not evidence, and why.
    Ignored(&'static str),
}
