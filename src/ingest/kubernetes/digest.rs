//! Digests of text maps such as `data` of a ConfigMap. The texts themselves are not kept.

use crate::ingest::json::members::Members;
use crate::ingest::json::text::Text;
use crate::ingest::limits::UNLIMITED;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Digest of a text map. 0: the map is missing, empty, or not a map of texts.
///
/// Different digests prove different maps. Equal digests may belong to different maps (CRC-32C, 32 bits). The order
/// of members and the escapes in their texts do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(pub u32);

impl<'de> Deserialize<'de> for Digest {
    /// Never fails for a value inside the map. A number too large or half a surrogate pair gives digest 0, and the
    /// line stays usable.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value: &'de RawValue = Deserialize::deserialize(deserializer)?;
        Ok(serde_json::from_str(value.get()).map_or(Digest::default(), |texts| Digest::of(&texts)))
    }
}

impl Digest {
    fn of(texts: &Members<Text<'_, UNLIMITED>, Text<'_, UNLIMITED>>) -> Digest {
        let member = |(key, text): &(Text<'_, UNLIMITED>, Text<'_, UNLIMITED>)| {
            // No UTF-8 text has the byte 0xff, so ("a", "bc") and ("ab", "c") differ.
            let name = crc32c::crc32c_append(crc32c::crc32c(key.as_bytes()), &[0xff]);
            mixed(crc32c::crc32c_append(name, text.as_bytes()))
        };
        Digest(texts.0.iter().map(member).fold(0, u32::wrapping_add))
    }
}

/// The finalizer of MurmurHash3. CRCs of similar texts differ in the same bits, which the sum of the digests would
/// cancel.
fn mixed(checksum: u32) -> u32 {
    let once = (checksum ^ checksum >> 16).wrapping_mul(0x85eb_ca6b);
    let twice = (once ^ once >> 13).wrapping_mul(0xc2b2_ae35);
    twice ^ twice >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> u32 {
        serde_json::from_str::<Digest>(text).map(|digest| digest.0).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn the_same_texts_have_one_digest_however_they_are_written() {
        let plain = digest(r#"{"a":"x<y","b":"z"}"#);
        assert_eq!(plain, digest(r#" { "b": "z", "a": "x\u003cy" } "#));
        assert_ne!(plain, 0);
    }

    #[test]
    fn other_texts_have_another_digest() {
        let all =
            [r#"{"a":"1"}"#, r#"{"a":"2"}"#, r#"{"b":"1"}"#, r#"{"a":""}"#, r#"{"a":"1","b":"2"}"#, r#"{"a1":""}"#];
        let mut digests: Vec<u32> = all.iter().map(|text| digest(text)).collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), all.len());
    }

    #[test]
    fn anything_but_a_map_of_texts_has_none() {
        for text in ["null", "{}", "1", "true", "\"x\"", "[{\"a\":\"b\"}]", r#"{"a":1}"#, r#"{"a":"b","c":{"d":"e"}}"#]
        {
            assert_eq!(digest(text), 0, "{text}");
        }
        for text in
            [r#"{"a":1e999}"#, r#"{"a":"\ud83d"}"#, &format!(r#"{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200))]
        {
            assert_eq!(digest(text), 0, "the line stays usable: {text}");
        }
    }
}
