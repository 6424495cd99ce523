//! Encodes protobuf messages, as far as a trace needs (protobuf.dev, "Encoding").

use crate::explain::terminal_text::visible;

/// A message in progress. Fields keep the order in which they are added.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// An unsigned number.
    pub(super) fn number(mut self, field: u32, value: u64) -> Message {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// Eight bytes, little endian.
    pub(super) fn fixed(mut self, field: u32, value: u64) -> Message {
        self.varint(u64::from(field) << 3 | 1);
        self.bytes.extend(value.to_le_bytes());
        self
    }

    /// Text, escaped for display.
    pub(super) fn text(mut self, field: u32, text: &str) -> Message {
        self.delimited(field, visible(text).as_bytes());
        self
    }

    /// A nested message.
    pub(super) fn message(mut self, field: u32, message: Message) -> Message {
        self.delimited(field, &message.bytes);
        self
    }

    /// The encoded bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn delimited(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_encoded_as_in_the_specification() {
        // The two examples of the specification: 150 in field 1, "testing" in field 2.
        assert_eq!(Message::default().number(1, 150).bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").bytes(), b"\x12\x07testing");
        assert_eq!(Message::default().text(2, "\u{9b}").bytes(), b"\x12\x06\\u{9b}");
        let inner = Message::default().number(1, 150);
        assert_eq!(Message::default().message(3, inner).bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(Message::default().number(1, u64::MAX).bytes().len(), 11);
    }
}
