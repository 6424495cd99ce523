//! Payloads in Base64, often of gzip: data of CloudWatch subscriptions in Lambda events, Kinesis and Firehose records.

use super::cursor::Cursor;
use crate::ingest::limits::{FREE_RECORD, LONGEST_LINE, MOST_INFLATION};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The JSON texts in a payload; `None` if it is no Base64 of JSON or of gzip.
pub fn unpacked(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    // The first characters of gzip's magic, and of `{`.
    if !["H4sI", "ey", "ewo", "ewk", "eyA"].iter().any(|begin| text.starts_with(begin)) {
        return None;
    }
    // Four characters are three bytes; a text that is cut off may end between.
    let bytes = STANDARD.decode(&text.as_bytes()[..text.len() - text.len() % 4]).ok()?;
    let bytes = if bytes.starts_with(b"\x1f\x8b") { inflated(&bytes)? } else { bytes };
    let json = String::from_utf8_lossy(&bytes);
    let mut cursor = Cursor::new(&json);
    let mut found = Vec::new();
    loop {
        let value = cursor.value();
        if value.starts_with('{') {
            found.push(value.to_owned());
        }
        if value.is_empty() || cursor.is_broken() {
            return Some(found);
        }
    }
}

/// The content of gzip, up to damage or the limit.
#[cfg(feature = "compress")]
fn inflated(bytes: &[u8]) -> Option<Vec<u8>> {
    use std::io::Read;
    let times = usize::try_from(MOST_INFLATION).unwrap_or(usize::MAX);
    let most = bytes.len().saturating_mul(times).clamp(FREE_RECORD, LONGEST_LINE) as u64;
    let mut content = Vec::new();
    // What is in front of damage counts.
    flate2::bufread::MultiGzDecoder::new(bytes).take(most).read_to_end(&mut content).ok();
    Some(content)
}

#[cfg(not(feature = "compress"))]
fn inflated(_: &[u8]) -> Option<Vec<u8>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_unpacked_up_to_damage_and_limits() {
        let base64 = |bytes: &[u8]| STANDARD.encode(bytes);
        let texts = |text: &str| unpacked(text).unwrap_or_default();
        assert_eq!(texts(&base64(b"{\"a\":1}{\"b\":2}\n")), ["{\"a\":1}", "{\"b\":2}"]);
        assert_eq!(texts(&base64(b"{\"a\":1}{\"b\"")), ["{\"a\":1}", "{\"b\""]);
        let whole = base64(b"{\"a\":1}{\"b\":2}");
        assert_eq!(texts(&whole[..whole.len() - 3])[0], "{\"a\":1}");
        for text in ["", "x", "H4sI*=H4", "text", "[1]"] {
            assert_eq!(unpacked(text), None, "{text}");
        }
    }

    #[cfg(feature = "compress")]
    #[test]
    fn gzip_is_inflated_within_its_limit() {
        use std::io::Write;
        let gzip = |bytes: &[u8]| {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        };
        let packed = gzip(b"{\"a\":1}");
        assert_eq!(unpacked(&STANDARD.encode(&packed)).unwrap(), ["{\"a\":1}"]);
        let bomb = gzip(&vec![b'{'; 64 << 20]);
        let lengths: Vec<usize> = unpacked(&STANDARD.encode(&bomb)).unwrap().iter().map(String::len).collect();
        let most = bomb.len() * MOST_INFLATION as usize;
        assert_eq!(lengths, [most]);
        assert!(most < 64 << 20);
    }
}
