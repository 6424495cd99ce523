//! The wire format of protocol buffers, as far as etcd's messages use it.
//!
//! Source: the page "Encoding" of the protocol buffers documentation. Groups, which etcd never used, are refused.

use super::super::limits::LONGEST_NAME;
use thiserror::Error;

/// Errors of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// The bytes end inside a field.
    #[error("a message that ends inside a field")]
    CutOff,
    /// A number of more than 64 bits.
    #[error("a number of more than 64 bits")]
    Overlong,
    /// A field without a number, or of a wire type that is not in use.
    #[error("a field of an unknown wire type")]
    UnknownKind,
    /// A field whose wire type does not fit its number.
    #[error("a field of another wire type than its message has")]
    OtherKind,
    /// A key longer than `LONGEST_NAME`.
    #[error("a key of more than {LONGEST_NAME} bytes")]
    LongName,
    /// Messages nested more deeply than etcd nests them.
    #[error("messages nested more than 64 deep")]
    TooDeep,
}

/// The value of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// An integer, boolean or enumeration.
    Varint(u64),
    /// A text, bytes or a message.
    Bytes(&'a [u8]),
    /// A number of fixed size, eight or four bytes.
    Fixed,
}

impl<'a> Field<'a> {
    /// The value of a varint.
    pub fn number(self) -> Result<u64, WireError> {
        match self {
            Field::Varint(number) => Ok(number),
            _ => Err(WireError::OtherKind),
        }
    }

    /// The value of a signed field. Negative numbers are two's complement.
    pub fn signed(self) -> Result<i64, WireError> {
        self.number().map(u64::cast_signed)
    }

    /// The value of a boolean.
    pub fn flag(self) -> Result<bool, WireError> {
        self.number().map(|number| number != 0)
    }

    /// The content of a text, bytes or message.
    pub fn bytes(self) -> Result<&'a [u8], WireError> {
        match self {
            Field::Bytes(bytes) => Ok(bytes),
            _ => Err(WireError::OtherKind),
        }
    }
}

/// Iterates over the fields of a message, in the order of the bytes.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn of(bytes: &'a [u8]) -> Fields<'a> {
        Fields { rest: bytes }
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for (at, &byte) in self.rest.iter().enumerate() {
            let bits = u64::from(byte & 0x7f);
            // The tenth byte holds only the 64th bit.
            if at == 9 && byte > 1 {
                return Err(WireError::Overlong);
            }
            value |= bits << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        Err(WireError::CutOff)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(length).map_err(|_| WireError::CutOff)?;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(WireError::CutOff)?;
        self.rest = rest;
        Ok(taken)
    }

    fn field(&mut self) -> Result<(u64, Field<'a>), WireError> {
        let tag = self.varint()?;
        let field = match tag & 7 {
            0 => Field::Varint(self.varint()?),
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(length)?)
            }
            1 => self.take(8).map(|_| Field::Fixed)?,
            5 => self.take(4).map(|_| Field::Fixed)?,
            _ => return Err(WireError::UnknownKind),
        };
        match tag >> 3 {
            0 => Err(WireError::UnknownKind),
            number => Ok((number, field)),
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<(u64, Field<'_>)>, WireError> {
        Fields::of(bytes).collect()
    }

    #[test]
    fn fields_come_in_their_order_with_their_numbers() {
        let bytes =
            [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0xa2, 0x06, 0, 0x19, 1, 2, 3, 4, 5, 6, 7, 8, 0x25, 1, 2, 3, 4];
        let expected = [
            (1, Field::Varint(150)),
            (2, Field::Bytes(b"hi")),
            (100, Field::Bytes(b"")),
            (3, Field::Fixed),
            (4, Field::Fixed),
        ];
        assert_eq!(all(&bytes).unwrap(), expected);
        assert_eq!(all(&[]).unwrap(), []);
    }

    #[test]
    fn negative_numbers_take_ten_bytes() {
        let bytes = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(all(&bytes).unwrap()[0].1.signed(), Ok(-1));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for (bytes, error) in [
            (&[0x08][..], WireError::CutOff),
            (&[0x08, 0x80], WireError::CutOff),
            (&[0x12, 3, 1, 2], WireError::CutOff),
            (&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], WireError::CutOff),
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], WireError::Overlong),
            (&[0x0b], WireError::UnknownKind),
            (&[0x0f], WireError::UnknownKind),
            (&[0x00, 0], WireError::UnknownKind),
            (&[0x19, 1, 2, 3], WireError::CutOff),
        ] {
            assert_eq!(all(bytes), Err(error), "{bytes:?}");
        }
        assert_eq!(Field::Fixed.number(), Err(WireError::OtherKind));
        assert_eq!(Field::Varint(1).bytes(), Err(WireError::OtherKind));
    }
}
