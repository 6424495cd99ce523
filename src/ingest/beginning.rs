//! What an input shows before it is read.

use super::detection::{Detected, SAMPLE, detect};
use super::etcd::wal;
use super::problem::Fault;
use super::stream::{self, Stream};
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
    sample: (usize, u32, bool),
}

impl Seen {
    /// Reads the beginning of a stream into a buffer, which then holds that and no more, and looks at it.
    pub fn at(stream: &mut Stream<'_>, buffer: &mut Vec<u8>) -> Seen {
        let room = stream.room(SAMPLE);
        buffer.resize(room, 0);
        let (length, _) = stream::fill(stream, buffer);
        buffer.truncate(length);
        let whole = length < room;
        Seen {
            detected: detect(buffer, whole, None),
            writer: wal::writer(buffer),
            #[cfg(feature = "container")]
            is_container: buffer.starts_with(&crate::container::MAGIC),
            sample: (length, crc32c::crc32c(buffer), whole),
        }
    }
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
