//! Segments of etcd's write-ahead log.
//!
//! A segment is a sequence of frames: eight bytes of length, little-endian, then a `walpb.Record` of that length,
//! then padding to a multiple of eight. If the highest bit of the length is set, the low three bits of its highest
//! byte are the number of padding bytes. A length of zero, or the end of the file, ends the segment, since files are
//! allocated before they are filled. Each record has a CRC-32C over the data of all records since the last CRC
//! record. Each segment begins with a CRC record, which holds the checksum of the segment before.
//!
//! Sources: etcd `server/storage/wal/{wal,decoder,encoder}.go` and `walpb/record.proto`; `raftpb/raft.proto`.

use super::super::limits::LONGEST_LOG_RECORD;
use super::super::problem::{Fault, Found, size};
use super::protobuf::{Fields, WireError};
use super::request::{self, Request};
use crate::ingest::input::content::Opened;
use std::io;

/// Bytes of one read.
const STEP: usize = 256 << 10;

/// Disks write whole sectors. If one sector of a record is zero, the machine stopped while the record was written.
const SECTOR: u64 = 512;

const ZEROS: [u8; 4096] = [0; 4096];

/// One record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The writer of the log.
    Metadata {
        /// Id of the member.
        node: u64,
        /// Id of its cluster.
        cluster: u64,
    },
    /// A log entry. It replaces an earlier entry of the same index and all behind that.
    Entry(Entry<'a>),
    /// Raft's hard state: what the member knew to be durable.
    HardState {
        /// Term.
        term: u64,
        /// Highest index known to be committed.
        commit: u64,
    },
    /// Checksum at the end of the segment before.
    Crc(u32),
    /// A snapshot was taken or received. Entries through its index may be missing from the log.
    Snapshot {
        /// Index of the last entry in it.
        index: u64,
        /// Term of that entry.
        term: u64,
    },
    /// The end of the segment.
    End {
        /// Checksum over its records.
        crc: u32,
        /// Whether the last record is incomplete because the member stopped, or later ones are missing. Only the last
        /// segment of a log may end so.
        torn: bool,
    },
}

/// A log entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Index.
    pub index: u64,
    /// Term.
    pub term: u64,
    /// The proposal; [`Request::Other`] also for the entry that begins a term.
    pub request: Result<Request<'a>, WireError>,
}

/// Whether the sample begins with a segment: an empty CRC record.
pub fn is_segment(sample: &[u8]) -> bool {
    first_records(sample).next().is_some_and(|record| record.kind == CRC && record.data.is_empty())
}

/// The cluster and the member of a segment, if its first records name them.
pub(in super::super) fn writer(sample: &[u8]) -> Option<(u64, u64)> {
    let metadata = first_records(sample).take(4).find(|record| record.kind == METADATA)?;
    match part(&metadata) {
        Ok(Some(Part::Metadata { node, cluster })) => Some((cluster, node)),
        _ => None,
    }
}

/// The records at the start of a segment, while they are whole and of at most 256 bytes.
fn first_records(sample: &[u8]) -> impl Iterator<Item = Record<'_>> {
    let mut rest = sample;
    std::iter::from_fn(move || {
        let (header, behind) = rest.split_first_chunk()?;
        let (length, padding) = frame(u64::from_le_bytes(*header));
        let length = usize::try_from(length).ok().filter(|length| (2..=256).contains(length))?;
        let record = Record::decode(behind.get(..length)?).ok();
        rest = behind.get(length + padding as usize..)?;
        record
    })
}

/// Reads a segment. `take` gets each record with its number in the segment, from 1, and its offset.
pub(in super::super) fn read(
    content: &mut Opened<'_>,
    mut take: impl FnMut(u32, u64, Part<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut window = Window { content, start: 0, bytes: Vec::new() };
    let length = window.content.length();
    let (mut at, mut number, mut crc) = (0, 0u32, 0);
    let torn = loop {
        let Some(header) = window.get(at, 8)?.first_chunk().copied() else { break length > at };
        let (record_length, padding) = frame(u64::from_le_bytes(header));
        if record_length == 0 {
            break !window.only_zeros(at)?;
        }
        let end = at.saturating_add(8).saturating_add(record_length).saturating_add(padding);
        if end > length {
            break true;
        }
        number = number.saturating_add(1);
        let place = |what: &str| {
            Fault::new("a whole write-ahead log", Found::described(format!("{what}, in record {number} at byte {at}")))
        };
        if record_length > LONGEST_LOG_RECORD {
            return Err(place(&format!("a record of {}", size(record_length))));
        }
        let bytes = window.get(at + 8, record_length as usize)?;
        let record = match Record::decode(bytes) {
            Ok(record) => record,
            Err(_) if has_empty_sector(bytes, at + 8) => break true,
            Err(error) => return Err(place(&error.to_string())),
        };
        // The checksum continues from the segment before, which is not read here. etcd's decoder does the same.
        if record.kind == CRC {
            if crc != 0 && crc != record.crc {
                return Err(place("a checksum that differs from the records before it"));
            }
            crc = record.crc;
        } else {
            crc = crc32c::crc32c_append(crc, record.data);
            if crc != record.crc {
                match has_empty_sector(bytes, at + 8) {
                    true => break true,
                    false => return Err(place("a checksum that differs from the record")),
                }
            }
        }
        match part(&record) {
            Ok(Some(part)) => take(number, at, part)?,
            Ok(None) => {}
            Err(error) => return Err(place(&error.to_string())),
        }
        at = end;
    };
    take(number, at, Part::End { crc, torn })
}

/// Length and padding of a frame.
fn frame(field: u64) -> (u64, u64) {
    let padding = if field >> 63 == 1 { (field >> 56) & 7 } else { 0 };
    (field & ((1 << 56) - 1), padding)
}

/// Whether a sector of bytes that begin at an offset is all zero.
fn has_empty_sector(bytes: &[u8], offset: u64) -> bool {
    let first = ((SECTOR - offset % SECTOR) as usize).min(bytes.len());
    let (head, rest) = bytes.split_at(first);
    std::iter::once(head).chain(rest.chunks(SECTOR as usize)).any(|sector| sector.iter().all(|byte| *byte == 0))
}

const METADATA: u64 = 1;
const ENTRY: u64 = 2;
const STATE: u64 = 3;
const CRC: u64 = 4;
const SNAPSHOT: u64 = 5;

#[derive(Default)]
struct Record<'a> {
    kind: u64,
    crc: u32,
    data: &'a [u8],
}

impl<'a> Record<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Record<'a>, WireError> {
        let mut record = Record::default();
        for field in Fields::of(bytes) {
            match field? {
                (1, kind) => record.kind = kind.number()?,
                (2, crc) => record.crc = u32::try_from(crc.number()?).map_err(|_| WireError::Overlong)?,
                (3, data) => record.data = data.bytes()?,
                _ => {}
            }
        }
        Ok(record)
    }
}

/// Decodes a record. `None`: its kind is unknown.
fn part<'a>(record: &Record<'a>) -> Result<Option<Part<'a>>, WireError> {
    let numbers = |wanted: [u64; 2]| {
        let mut found = [0; 2];
        for field in Fields::of(record.data) {
            let (number, field) = field?;
            if let Some(at) = wanted.iter().position(|w| *w == number) {
                found[at] = field.number()?;
            }
        }
        Ok(found)
    };
    Ok(Some(match record.kind {
        METADATA => {
            let [node, cluster] = numbers([1, 2])?;
            Part::Metadata { node, cluster }
        }
        STATE => {
            let [term, commit] = numbers([1, 3])?;
            Part::HardState { term, commit }
        }
        SNAPSHOT => {
            let [index, term] = numbers([1, 2])?;
            Part::Snapshot { index, term }
        }
        CRC => Part::Crc(record.crc),
        ENTRY => Part::Entry(entry(record.data)?),
        _ => return Ok(None),
    }))
}

fn entry(message: &[u8]) -> Result<Entry<'_>, WireError> {
    let (mut kind, mut data) = (0, &[][..]);
    let mut entry = Entry { index: 0, term: 0, request: Ok(Request::Other) };
    for field in Fields::of(message) {
        match field? {
            (1, number) => kind = number.number()?,
            (2, term) => entry.term = term.number()?,
            (3, index) => entry.index = index.number()?,
            (4, bytes) => data = bytes.bytes()?,
            _ => {}
        }
    }
    // Other kinds change the members; etcd proposes those of kind 1.
    entry.request = match kind {
        0 => request::decode(data),
        1 => Ok(request::membership(data)),
        _ => Ok(Request::Members(request::Membership::Unknown)),
    };
    Ok(entry)
}

/// The part of the file in memory.
struct Window<'c, 'f> {
    content: &'c mut Opened<'f>,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_, '_> {
    /// The bytes at an offset; fewer only at the end of the file.
    fn get(&mut self, offset: u64, length: usize) -> Result<&[u8], Fault> {
        let held = self.start + self.bytes.len() as u64;
        if offset < self.start || offset + length as u64 > held {
            // A stated length is limited to the rest of the file.
            let left = usize::try_from(self.content.length().saturating_sub(offset)).unwrap_or(usize::MAX);
            self.bytes.resize(length.max(STEP).min(left), 0);
            let n = self.content.read_at(offset, &mut self.bytes).map_err(|error| unreadable(&error))?;
            self.bytes.truncate(n);
            self.start = offset;
        }
        let from = (offset - self.start) as usize;
        Ok(&self.bytes[from..self.bytes.len().min(from + length)])
    }

    fn only_zeros(&mut self, mut offset: u64) -> Result<bool, Fault> {
        loop {
            let bytes = self.get(offset, STEP)?;
            if bytes.is_empty() {
                return Ok(true);
            }
            // A comparison of slices is many times faster than one of bytes.
            if bytes.chunks(ZEROS.len()).any(|chunk| *chunk != ZEROS[..chunk.len()]) {
                return Ok(false);
            }
            offset += bytes.len() as u64;
        }
    }
}

fn unreadable(error: &io::Error) -> Fault {
    Fault::new("a file that can be read", Found::described(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Message, Segment, delete, put};
    use super::super::request::{Interval, Put};
    use super::*;
    use crate::ingest::input::content::Content;

    /// Everything in a segment, and the result of reading it.
    fn parts(bytes: &[u8]) -> (Vec<String>, Result<(), Fault>) {
        let content = Content::Shared(bytes.into());
        let mut found = Vec::new();
        let result = read(&mut content.open().unwrap(), |number, offset, part| {
            assert!(offset <= bytes.len() as u64);
            found.push(format!("{number} {part:?}"));
            Ok(())
        });
        (found, result)
    }

    fn small() -> Segment {
        Segment::after(5).snapshot(0).entry(1, 2, &put("a", b"1")).commit(1).entry(2, 2, &delete("a")).commit(2)
    }

    fn shown(number: u32, part: Part<'_>) -> String {
        format!("{number} {part:?}")
    }

    fn entry(index: u64, request: Request<'_>) -> Part<'_> {
        Part::Entry(Entry { index, term: 2, request: Ok(request) })
    }

    #[test]
    fn records_come_in_their_order_and_zeros_behind_them_end_the_log() {
        let expected = |crc| {
            vec![
                shown(1, Part::Crc(5)),
                shown(2, Part::Metadata { node: 7, cluster: 9 }),
                shown(3, Part::Snapshot { index: 0, term: 2 }),
                shown(4, entry(1, Request::Put(Put { key: b"a", value: b"1", ..Put::default() }))),
                shown(5, Part::HardState { term: 2, commit: 1 }),
                shown(6, entry(2, Request::Delete(Interval { key: b"a", end: b"" }))),
                shown(7, Part::HardState { term: 2, commit: 2 }),
                shown(7, Part::End { crc, torn: false }),
            ]
        };
        for zeros in [0, 8, 100_000] {
            let segment = small().allocated(zeros);
            assert!(is_segment(&segment.bytes));
            assert_eq!(writer(&segment.bytes), Some((9, 7)));
            assert_eq!(parts(&segment.bytes), (expected(segment.crc), Ok(())), "{zeros} zeros");
        }
    }

    #[test]
    fn members_changed_and_old_proposals_leave_the_keys_alone() {
        let old = Message::default().number(1, 8).bytes(2, b"PUT").bytes(3, b"/0/members/7");
        let change = Message::default().number(1, 1).number(2, 2).number(3, 2).bytes(4, b"\x10\x02");
        let segment = Segment::after(0).entry(1, 2, &old).record(2, change).entry(3, 2, &Message::default());
        let (found, result) = parts(&segment.bytes);
        assert_eq!(result, Ok(()));
        assert_eq!(found[2..5], [1, 2, 3].map(|index| shown(index + 2, entry(u64::from(index), Request::Other))));
    }

    #[test]
    fn a_proposal_that_cannot_be_read_costs_itself_only() {
        let segment = Segment::after(0).entry(1, 2, &Message::default().bytes(4, &[0x0a])).entry(2, 2, &put("b", b"2"));
        let (found, result) = parts(&segment.bytes);
        assert_eq!(result, Ok(()));
        let unreadable = Part::Entry(Entry { index: 1, term: 2, request: Err(WireError::CutOff) });
        assert_eq!(found[2], shown(3, unreadable));
        assert_eq!(found[3], shown(4, entry(2, Request::Put(Put { key: b"b", value: b"2", ..Put::default() }))));
    }

    #[test]
    fn a_log_cut_off_anywhere_is_torn_and_keeps_what_stands_in_front() {
        let whole = small();
        let (all, _) = parts(&whole.bytes);
        for length in 0..whole.bytes.len() {
            let (found, result) = parts(&whole.bytes[..length]);
            assert_eq!(result, Ok(()), "cut off at {length}");
            let (end, front) = found.split_last().unwrap();
            assert_eq!(front, &all[..front.len()], "cut off at {length}");
            let between = [0].into_iter().chain(ends(&whole.bytes)).any(|end| end == length);
            assert_eq!(end.contains("torn: true"), !between, "cut off at {length}: {end}");
        }
    }

    /// Offsets at which frames end.
    fn ends(bytes: &[u8]) -> Vec<usize> {
        let mut ends = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let (length, padding) = frame(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()));
            at += 8 + (length + padding) as usize;
            ends.push(at);
        }
        ends
    }

    #[test]
    fn a_sector_that_was_never_written_is_a_torn_record_and_another_change_is_damage() {
        let segment = Segment::after(0).entry(1, 2, &put("a", &[b'x'; 3000]));
        let mut torn = segment.bytes.clone();
        torn[1024..1536].fill(0);
        let (found, result) = parts(&torn);
        assert_eq!((found.len(), result), (3, Ok(())));
        assert!(found[2].contains("torn: true"), "{}", found[2]);
        let mut damaged = segment.bytes;
        damaged[1024] ^= 1;
        let (found, result) = parts(&damaged);
        assert_eq!(found.len(), 2);
        assert_eq!(&*result.unwrap_err().found, "a checksum that differs from the record, in record 3 at byte 40");
    }

    #[test]
    fn records_behind_zeros_show_that_some_are_missing() {
        let mut bytes = small().allocated(1000).bytes;
        bytes.extend(small().bytes);
        let (found, result) = parts(&bytes);
        assert_eq!(result, Ok(()));
        assert!(found.last().unwrap().contains("torn: true"));
    }

    #[test]
    fn no_bit_passes_unseen_where_it_could_change_what_was_logged() {
        let bytes = small().bytes;
        let (all, _) = parts(&bytes);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let (found, result) = parts(&flipped);
                let end = found.last().map_or("", String::as_str);
                // Neither the padding nor the kind of a record is part of the checksum.
                let seen = result.is_err() || end.contains("torn: true") || found == all;
                let kind = found.len() + 1 == all.len() || found.len() == all.len();
                assert!(seen || kind, "byte {at}, bit {bit}: {found:?}");
            }
        }
    }

    #[test]
    fn lengths_are_believed_only_as_far_as_the_file_goes() {
        let mut bytes = small().bytes;
        let huge = (1u64 << 55).to_le_bytes();
        bytes.extend(huge);
        let (found, result) = parts(&bytes);
        assert_eq!(result, Ok(()));
        assert!(found.last().unwrap().contains("torn: true"));
    }

    #[test]
    fn text_is_no_segment() {
        for sample in [&b""[..], b"{\"a\":1}", &[0; 100], &small().bytes[..20], b"\x04\0\0\0\0\0\0\x84\x08\x05\x10\0"] {
            assert!(!is_segment(sample) || sample.len() == 20, "{sample:?}");
        }
    }
}
