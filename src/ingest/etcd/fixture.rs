//! Builders of small etcd logs for tests, in etcd's own format.

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
