//! What the first bytes of an input show.

use super::detection::{Detected, SAMPLE, detect};
use super::etcd::wal;
use super::stream::{self, Stream};

/// What the first bytes of a file showed when it was found, so that nobody has to find it out again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beginning(Option<Seen>);

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
    pub(super) fn seen(self) -> Option<Seen> {
        self.0
    }

    /// What a sample is found to be without looking at it, where it is the one that was looked at.
    pub(super) fn detected(self, sample: &[u8], whole: bool) -> Option<Detected> {
        let seen = self.0.filter(|seen| (seen.sample.0, seen.sample.2) == (sample.len(), whole))?;
        (seen.sample.1 == crc32c::crc32c(sample)).then_some(seen.detected)
    }
}

impl From<Seen> for Beginning {
    fn from(seen: Seen) -> Beginning {
        Beginning(Some(seen))
    }
}
