//! Builders of small etcd logs and stores for tests, in etcd's own format.

use std::collections::BTreeMap;

/// A protocol buffers message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(pub Vec<u8>);

impl Message {
    pub fn number(self, field: u64, value: u64) -> Message {
        self.varint(field << 3).varint(value)
    }

    pub fn bytes(self, field: u64, bytes: &[u8]) -> Message {
        let mut message = self.varint(field << 3 | 2).varint(bytes.len() as u64);
        message.0.extend_from_slice(bytes);
        message
    }

    pub fn message(self, field: u64, message: Message) -> Message {
        self.bytes(field, &message.0)
    }

    fn varint(mut self, mut value: u64) -> Message {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }
}

pub(crate) fn put(key: &str, value: &[u8]) -> Message {
    Message::default().message(4, Message::default().bytes(1, key.as_bytes()).bytes(2, value))
}

pub(crate) fn delete(key: &str) -> Message {
    Message::default().message(5, Message::default().bytes(1, key.as_bytes()))
}

#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub bytes: Vec<u8>,
    pub crc: u32,
}

impl Segment {
    /// A segment by member 7 of cluster 9 that continues from a checksum.
    pub fn after(crc: u32) -> Segment {
        Segment::by(crc, 7, 9)
    }

    /// A segment that continues from a checksum.
    pub fn by(crc: u32, node: u64, cluster: u64) -> Segment {
        let mut segment = Segment { bytes: Vec::new(), crc };
        segment.frame(Message::default().number(1, 4).number(2, u64::from(crc)));
        segment.record(1, Message::default().number(1, node).number(2, cluster))
    }

    pub fn entry(self, index: u64, term: u64, proposal: &Message) -> Segment {
        self.record(2, Message::default().number(1, 0).number(2, term).number(3, index).bytes(4, &proposal.0))
    }

    /// Adds a change of members. Kind 0 adds a voter, 1 removes a member, 3 adds a learner.
    pub fn membership(self, index: u64, kind: u64, node: u64) -> Segment {
        let change = Message::default().number(1, 0).number(2, kind).number(3, node);
        self.record(2, Message::default().number(1, 1).number(2, 1).number(3, index).bytes(4, &change.0))
    }

    /// Adds a hard state with this commit index.
    pub fn commit(self, index: u64) -> Segment {
        self.record(3, Message::default().number(1, 2).number(2, 7).number(3, index))
    }

    pub fn snapshot(self, index: u64) -> Segment {
        self.record(5, Message::default().number(1, index).number(2, 2))
    }

    pub fn record(mut self, kind: u64, data: Message) -> Segment {
        self.crc = crc32c::crc32c_append(self.crc, &data.0);
        self.frame(Message::default().number(1, kind).number(2, u64::from(self.crc)).message(3, data));
        self
    }

    fn frame(&mut self, record: Message) {
        let length = record.0.len();
        let padding = (8 - length % 8) % 8;
        let mut field = length as u64;
        if padding > 0 {
            field |= (0x80 | padding as u64) << 56;
        }
        self.bytes.extend(field.to_le_bytes());
        self.bytes.extend(record.0);
        self.bytes.resize(self.bytes.len() + padding, 0);
    }

    /// Appends zeros, as in a file that is allocated but not filled.
    pub fn allocated(mut self, bytes: usize) -> Segment {
        self.bytes.resize(self.bytes.len() + bytes, 0);
        self
    }
}

/// Buckets by name, with their keys and values.
pub(crate) type Buckets = BTreeMap<&'static str, BTreeMap<Vec<u8>, Vec<u8>>>;

const PAGE: usize = 512;

/// A bbolt file with these buckets and at most `keys_in_a_leaf` keys in a leaf.
pub(crate) fn store(buckets: &Buckets, keys_in_a_leaf: usize) -> Vec<u8> {
    let mut pages: Vec<Vec<u8>> = vec![Vec::new(); 3];
    let mut roots = BTreeMap::new();
    for (name, pairs) in buckets {
        let pairs: Vec<(Vec<u8>, Vec<u8>)> = pairs.clone().into_iter().collect();
        let value = if pairs.len() <= 1 {
            // A small bucket is inline in its value.
            [&[0; 16][..], &leaf(0, &pairs, 0)].concat()
        } else {
            let root = tree(&mut pages, &pairs, keys_in_a_leaf);
            [&root.to_le_bytes()[..], &[0; 8]].concat()
        };
        roots.insert(name.as_bytes().to_vec(), value);
    }
    let root = pages.len() as u64;
    let names: Vec<(Vec<u8>, Vec<u8>)> = roots.into_iter().collect();
    add(&mut pages, |id| leaf(id, &names, 1));
    pages[2] = [&2u64.to_le_bytes()[..], &0x10u16.to_le_bytes(), &[0; PAGE - 10]].concat();
    let unused = pages.len() as u64;
    for at in [0, 1] {
        pages[at as usize] = meta(at, root, unused);
    }
    pages.concat()
}

/// Adds a page, which may span several page sizes; returns its number.
fn add(pages: &mut Vec<Vec<u8>>, page: impl FnOnce(u64) -> Vec<u8>) -> u64 {
    let id = pages.len() as u64;
    let mut bytes = page(id);
    let count = bytes.len().div_ceil(PAGE);
    bytes[12..16].copy_from_slice(&(count as u32 - 1).to_le_bytes());
    bytes.resize(count * PAGE, 0);
    pages.extend(bytes.chunks(PAGE).map(<[u8]>::to_vec));
    id
}

fn tree(pages: &mut Vec<Vec<u8>>, pairs: &[(Vec<u8>, Vec<u8>)], keys_in_a_leaf: usize) -> u64 {
    let mut level: Vec<(Vec<u8>, u64)> =
        pairs.chunks(keys_in_a_leaf).map(|pairs| (pairs[0].0.clone(), add(pages, |id| leaf(id, pairs, 0)))).collect();
    while level.len() > 1 {
        let above = level.chunks(3);
        let above: Vec<(Vec<u8>, u64)> =
            above.map(|children| (children[0].0.clone(), add(pages, |id| branch(id, children)))).collect();
        level = above;
    }
    level[0].1
}

fn header(id: u64, flags: u16, count: usize) -> Vec<u8> {
    [&id.to_le_bytes()[..], &flags.to_le_bytes(), &(count as u16).to_le_bytes(), &[0; 4]].concat()
}

fn leaf(id: u64, pairs: &[(Vec<u8>, Vec<u8>)], flags: u32) -> Vec<u8> {
    let mut page = header(id, 2, pairs.len());
    let mut content = Vec::new();
    for (at, (key, value)) in pairs.iter().enumerate() {
        let position = (pairs.len() - at) * 16 + content.len();
        for word in [flags, position as u32, key.len() as u32, value.len() as u32] {
            page.extend(word.to_le_bytes());
        }
        content.extend_from_slice(key);
        content.extend_from_slice(value);
    }
    page.extend(content);
    page
}

fn branch(id: u64, children: &[(Vec<u8>, u64)]) -> Vec<u8> {
    let mut page = header(id, 1, children.len());
    let mut content = Vec::new();
    for (at, (key, child)) in children.iter().enumerate() {
        let position = (children.len() - at) * 16 + content.len();
        page.extend((position as u32).to_le_bytes());
        page.extend((key.len() as u32).to_le_bytes());
        page.extend(child.to_le_bytes());
        content.extend_from_slice(key);
    }
    page.extend(content);
    page
}

fn meta(id: u64, root: u64, unused: u64) -> Vec<u8> {
    let mut page = header(id, 4, 0);
    let mut body = Vec::new();
    for word in [0xed0c_daed, 2, PAGE as u32, 0] {
        body.extend(u32::to_le_bytes(word));
    }
    // Root page, its sequence, free list, end, transaction.
    for word in [root, 0, 2, unused, 10 + id] {
        body.extend(word.to_le_bytes());
    }
    body.extend(super::bbolt::fnv(&body).to_le_bytes());
    page.extend(body);
    page.resize(PAGE, 0);
    page
}

/// A key of the bucket `key`.
pub(crate) fn revision(main: u64, sub: u64, tombstone: bool) -> Vec<u8> {
    let mark: &[u8] = if tombstone { b"t" } else { b"" };
    [&main.to_be_bytes()[..], b"_", &sub.to_be_bytes(), mark].concat()
}
