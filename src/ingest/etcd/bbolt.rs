//! The B+ tree file of bbolt, read only.
//!
//! Pages 0 and 1 describe the file. The later transaction with a right checksum counts, so a file is
//! readable however its writer stopped. From its root, branch pages lead to leaf pages with keys and values in key
//! order. A value may be a bucket, which is a tree of its own, and a page may span several page sizes. Pages outside
//! of the tree are free and may hold any bytes, so the list of free pages is not needed. A page that two places claim
//! is a fault; it also ends loops.
//!
//! Source: go.etcd.io/bbolt `internal/common/{page,meta,bucket}.go`, `db.go`.

use super::super::limits::LONGEST_STORE_NODE;
use super::super::problem::{Fault, Found, size};
use crate::ingest::input::content::Opened;
use std::collections::BTreeMap;

const MAGIC: u32 = 0xed0c_daed;
const VERSION: u32 = 2;

/// Bytes of a page header, of an element, and of a bucket header in front of an inline page.
const HEADER: usize = 16;
const ELEMENT: usize = 16;
const BUCKET: usize = 16;

const BRANCH: u16 = 1;
const LEAF: u16 = 2;

/// Flag of a leaf element whose value is a bucket.
const IS_BUCKET: u32 = 1;

/// Deepest tree: each level at least doubles the pages.
const MAX_TREE_DEPTH: usize = 64;

/// Page sizes that bbolt tries, as powers of two.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 9..=16;

/// Whether the sample begins with a bbolt file: one of the first two pages is whole.
pub fn is_store(sample: &[u8]) -> bool {
    Meta::decode(sample).is_some()
        || PAGE_SIZES.filter_map(|bits| sample.get(1 << bits..)).any(|page| Meta::decode(page).is_some())
}

/// The content of a meta page.
#[derive(Clone, Copy, Debug)]
struct Meta {
    page_size: u64,
    root: u64,
    /// Number of pages in use; higher ones were never used.
    unused: u64,
    transaction: u64,
}

impl Meta {
    /// The meta page at the start of the bytes, if its checksum is right.
    fn decode(page: &[u8]) -> Option<Meta> {
        let body = page.get(HEADER..HEADER + 64)?;
        let word = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().unwrap_or_default());
        let half = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap_or_default());
        let page_size = u64::from(half(8));
        let whole = half(0) == MAGIC
            && half(4) == VERSION
            && PAGE_SIZES.map(|bits| 1 << bits).any(|known| page_size == known)
            && fnv(&body[..56]) == word(56);
        whole.then(|| Meta { page_size, root: word(16), unused: word(40), transaction: word(48) })
    }
}

/// FNV-1a, 64 bits: the checksum of a meta page.
pub(super) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// An open bbolt file.
#[derive(Debug)]
pub struct Store<'c, 'f> {
    content: &'c mut Opened<'f>,
    meta: Meta,
    /// Intervals of pages read so far, first to last. A page may be in one only.
    visited: BTreeMap<u64, u64>,
}

/// The root of a bucket.
#[derive(Clone, Debug)]
pub struct Bucket {
    root: u64,
    /// The page of a small bucket, which is inside its value.
    inline: Vec<u8>,
}

impl<'c, 'f> Store<'c, 'f> {
    /// Reads the meta pages.
    pub fn open(content: &'c mut Opened<'f>) -> Result<Store<'c, 'f>, Fault> {
        let mut page = [0; HEADER + 64];
        let mut metas: Vec<Meta> = Vec::new();
        let offsets = std::iter::once(0).chain(PAGE_SIZES.map(|bits| 1 << bits));
        for offset in offsets {
            let n = content.read_at(offset, &mut page).map_err(|error| unreadable(&error))?;
            // The second meta page follows one page of its own size.
            metas.extend(Meta::decode(&page[..n]).filter(|meta| offset == 0 || meta.page_size == offset));
        }
        let meta = metas.into_iter().max_by_key(|meta| meta.transaction);
        let meta = meta.ok_or_else(|| damaged("neither of the first two pages is whole"))?;
        Ok(Store { content, meta, visited: BTreeMap::from([(0, 1)]) })
    }

    /// The top-level buckets by name.
    pub fn buckets(&mut self) -> Result<Vec<(Vec<u8>, Bucket)>, Fault> {
        let mut found = Vec::new();
        let root = Bucket { root: self.meta.root, inline: Vec::new() };
        self.walk(&root, |_, key, value| {
            if let Value::Bucket(bucket) = value {
                found.push((key.to_vec(), bucket));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Passes each key and value to `take` in key order, with the offset of the page.
    pub fn each(
        &mut self,
        bucket: &Bucket,
        mut take: impl FnMut(u64, &[u8], &[u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.walk(bucket, |offset, key, value| match value {
            Value::Bytes(bytes) => take(offset, key, bytes),
            Value::Bucket(_) => Ok(()),
        })
    }

    fn walk(
        &mut self,
        bucket: &Bucket,
        mut take: impl FnMut(u64, &[u8], Value<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut last: Option<Vec<u8>> = None;
        let mut leaf = |offset: u64, page: &Page<'_>| {
            for at in 0..page.count {
                let (flags, key, value) = page.leaf_element(at)?;
                if last.as_deref().is_some_and(|last| last >= key) {
                    return Err(damaged(&format!("keys out of order in page {}", page.id)));
                }
                last.get_or_insert_default().clear();
                last.get_or_insert_default().extend_from_slice(key);
                take(
                    offset,
                    key,
                    if flags & IS_BUCKET == 0 { Value::Bytes(value) } else { Value::Bucket(bucket_of(value)?) },
                )?;
            }
            Ok(())
        };
        if bucket.root == 0 {
            return match Page::decode(&bucket.inline, 0)? {
                page if page.flags == LEAF => leaf(0, &page),
                page => Err(damaged(&format!("an inline page of kind {}", page.flags))),
            };
        }
        // Pages to read with their depth; the next one is last.
        let mut open = vec![(bucket.root, 0)];
        let mut buffer = Vec::new();
        while let Some((id, depth)) = open.pop() {
            if depth == MAX_TREE_DEPTH {
                return Err(damaged(&format!("a tree deeper than {MAX_TREE_DEPTH} pages")));
            }
            let page = self.page(id, &mut buffer)?;
            match page.flags {
                LEAF => leaf(id * self.meta.page_size, &page)?,
                BRANCH => {
                    for at in (0..page.count).rev() {
                        open.push((page.child(at)?, depth + 1));
                    }
                }
                other => return Err(damaged(&format!("page {id} of kind {other} inside a tree"))),
            }
        }
        Ok(())
    }

    /// Reads a page that was not read before, with its overflow pages.
    fn page<'b>(&mut self, id: u64, buffer: &'b mut Vec<u8>) -> Result<Page<'b>, Fault> {
        let page_size = self.meta.page_size;
        let offset =
            id.checked_mul(page_size).filter(|offset| *offset < self.content.length() && id < self.meta.unused);
        let offset = offset.ok_or_else(|| damaged(&format!("a pointer to page {id}, beyond the end of the file")))?;
        buffer.resize(page_size as usize, 0);
        self.fill(id, offset, buffer)?;
        let page = Page::decode(buffer, id)?;
        if page.id != id {
            return Err(damaged(&format!("page {id} with the number {}", page.id)));
        }
        let overflow = u64::from(page.overflow);
        let length = (overflow + 1) * page_size;
        if length > LONGEST_STORE_NODE || length > self.content.length() - offset {
            return Err(damaged(&format!("page {id} of {}, longer than the file or the limit", size(length))));
        }
        let last = id + overflow;
        let before = self.visited.range(..=last).next_back();
        if before.is_some_and(|(_, end)| *end >= id) {
            return Err(damaged(&format!("page {id} used twice")));
        }
        self.visited.insert(id, last);
        if overflow > 0 {
            buffer.resize(length as usize, 0);
            self.fill(id, offset, buffer)?;
        }
        Page::decode(buffer, id)
    }

    fn fill(&mut self, id: u64, offset: u64, buffer: &mut [u8]) -> Result<(), Fault> {
        let n = self.content.read_at(offset, buffer).map_err(|error| unreadable(&error))?;
        if n < buffer.len() { Err(damaged(&format!("the file ends inside page {id}"))) } else { Ok(()) }
    }
}

enum Value<'a> {
    Bytes(&'a [u8]),
    Bucket(Bucket),
}

fn bucket_of(value: &[u8]) -> Result<Bucket, Fault> {
    let (root, rest) = value.split_first_chunk().ok_or_else(|| damaged("a bucket without a root"))?;
    let inline = rest.get(BUCKET - 8..).unwrap_or_default().to_vec();
    Ok(Bucket { root: u64::from_le_bytes(*root), inline })
}

struct Page<'b> {
    id: u64,
    flags: u16,
    count: usize,
    overflow: u32,
    bytes: &'b [u8],
}

impl<'b> Page<'b> {
    fn decode(bytes: &'b [u8], id: u64) -> Result<Page<'b>, Fault> {
        let cut = || damaged(&format!("page {id} is cut off"));
        let (header, _) = bytes.split_first_chunk::<HEADER>().ok_or_else(cut)?;
        let [i0, i1, i2, i3, i4, i5, i6, i7, f0, f1, c0, c1, o0, o1, o2, o3] = *header;
        Ok(Page {
            id: u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
            flags: u16::from_le_bytes([f0, f1]),
            count: usize::from(u16::from_le_bytes([c0, c1])),
            overflow: u32::from_le_bytes([o0, o1, o2, o3]),
            bytes,
        })
    }

    /// The four words of an element, and its offset.
    fn element(&self, at: usize) -> Result<([u32; 4], usize), Fault> {
        let start = HEADER + at * ELEMENT;
        let bytes = self.bytes.get(start..start + ELEMENT).ok_or_else(|| self.overfull(at))?;
        let word = |n: usize| u32::from_le_bytes(bytes[n * 4..n * 4 + 4].try_into().unwrap_or_default());
        Ok(([word(0), word(1), word(2), word(3)], start))
    }

    /// Flags, key and value of a leaf element.
    fn leaf_element(&self, at: usize) -> Result<(u32, &'b [u8], &'b [u8]), Fault> {
        let ([flags, position, key_size, value_size], start) = self.element(at)?;
        let key = start.saturating_add(position as usize);
        let value = key.saturating_add(key_size as usize);
        let end = value.saturating_add(value_size as usize);
        let slice = |from: usize, to: usize| self.bytes.get(from..to).ok_or_else(|| self.overfull(at));
        Ok((flags, slice(key, value)?, slice(value, end)?))
    }

    /// The page to which a branch element points.
    fn child(&self, at: usize) -> Result<u64, Fault> {
        let ([_, _, low, high], _) = self.element(at)?;
        Ok(u64::from(high) << 32 | u64::from(low))
    }

    fn overfull(&self, at: usize) -> Fault {
        damaged(&format!("element {at} of page {} reaches beyond the page", self.id))
    }
}

/// The problem of a damaged file.
fn damaged(what: &str) -> Fault {
    Fault::new("a whole bbolt file", Found::described(what))
}

fn unreadable(error: &std::io::Error) -> Fault {
    Fault::new("a file that can be read", Found::described(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::store_fixture::{Buckets, store};
    use super::*;
    use crate::ingest::input::content::Content;

    fn buckets() -> Buckets {
        let pair = |n: u32| (format!("key-{n:03}").into_bytes(), vec![n as u8; (n * 7) as usize]);
        Buckets::from([("one", [pair(1)].into()), ("none", [].into()), ("many", (0..100).map(pair).collect())])
    }

    fn read(bytes: &[u8]) -> Result<Buckets, Fault> {
        let content = Content::Shared(bytes.into());
        let mut opened = content.open().unwrap();
        let mut store = Store::open(&mut opened)?;
        let mut found = Buckets::new();
        for (name, bucket) in store.buckets()? {
            let name = match &name[..] {
                b"one" => "one",
                b"none" => "none",
                b"many" => "many",
                _ => "other",
            };
            let pairs = found.entry(name).or_default();
            store.each(&bucket, |_, key, value| {
                pairs.insert(key.to_vec(), value.to_vec());
                Ok(())
            })?;
        }
        Ok(found)
    }

    #[test]
    fn every_key_of_every_bucket_is_read() {
        for keys_in_a_leaf in [1, 3, 1000] {
            let bytes = store(&buckets(), keys_in_a_leaf);
            assert!(is_store(&bytes));
            assert_eq!(read(&bytes), Ok(buckets()), "{keys_in_a_leaf} keys in a leaf");
        }
    }

    #[test]
    fn either_of_the_two_first_pages_is_enough() {
        let bytes = store(&buckets(), 3);
        for page in [0, 512] {
            let mut bytes = bytes.clone();
            bytes[page + 40] ^= 1;
            assert!(is_store(&bytes));
            assert_eq!(read(&bytes), Ok(buckets()));
        }
        let mut neither = bytes.clone();
        neither[40] ^= 1;
        neither[512 + 40] ^= 1;
        assert!(!is_store(&neither));
        assert!(read(&neither).unwrap_err().found.contains("neither"));
    }

    /// A file with one page changed.
    fn changed(at: usize, bytes: &[u8]) -> Fault {
        let mut file = store(&buckets(), 3);
        file[at..at + bytes.len()].copy_from_slice(bytes);
        read(&file).unwrap_err()
    }

    #[test]
    fn trees_that_are_none_are_told_and_never_followed_for_ever() {
        let file = store(&buckets(), 3);
        let find = |flags: u16| (3..).find(|page| file[page * 512 + 8..][..2] == flags.to_le_bytes()).unwrap();
        let (leaf, branch) = (find(LEAF), find(BRANCH));
        let child = branch * 512 + HEADER + 8;
        for (at, bytes, found) in [
            (child, (branch as u64).to_le_bytes().to_vec(), "used twice"),
            (child, 0u64.to_le_bytes().to_vec(), "used twice"),
            (child, u64::MAX.to_le_bytes().to_vec(), "beyond the end of the file"),
            (child, ((file.len() / 512) as u64).to_le_bytes().to_vec(), "beyond the end of the file"),
            (leaf * 512, 99u64.to_le_bytes().to_vec(), "with the number 99"),
            (leaf * 512 + 8, 16u16.to_le_bytes().to_vec(), "of kind 16 inside a tree"),
            (leaf * 512 + 10, u16::MAX.to_le_bytes().to_vec(), "reaches beyond the page"),
            (leaf * 512 + 12, u32::MAX.to_le_bytes().to_vec(), "of 2097152.0 MiB"),
            (leaf * 512 + 12, 2u32.to_le_bytes().to_vec(), "used twice"),
            (leaf * 512 + HEADER + 4, u32::MAX.to_le_bytes().to_vec(), "reaches beyond the page"),
            (leaf * 512 + HEADER + 12, u32::MAX.to_le_bytes().to_vec(), "reaches beyond the page"),
        ] {
            let fault = changed(at, &bytes);
            assert!(fault.found.contains(found), "{fault:?} instead of {found}");
        }
    }

    #[test]
    fn a_file_that_is_cut_off_anywhere_is_a_fault_or_whole() {
        let bytes = store(&buckets(), 3);
        for length in 0..bytes.len() {
            if let Ok(found) = read(&bytes[..length]) {
                assert_eq!(found, buckets(), "cut off at {length}");
            }
        }
    }

    #[test]
    fn no_bit_makes_it_hang_or_panic() {
        let bytes = store(&Buckets::from([("many", buckets()["many"].clone().into_iter().take(12).collect())]), 3);
        for at in 0..bytes.len() {
            for bit in [0, 3, 7] {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let _ = read(&flipped);
            }
        }
    }
}
