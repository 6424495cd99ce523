//! Decodes the content of an answer piece by piece, whatever its encoding.

#[cfg(feature = "compress")]
use flate2::write::GzDecoder;
#[cfg(feature = "compress")]
use std::io::Write;

/// An encoding that this build decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    #[cfg(feature = "compress")]
    Gzip,
}

impl Encoding {
    /// The encoding in the header `Content-Encoding`.
    pub(super) fn of(header: &str) -> Option<Encoding> {
        match header.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Encoding::Plain),
            #[cfg(feature = "compress")]
            "gzip" | "x-gzip" => Some(Encoding::Gzip),
            _ => None,
        }
    }
}

/// The decoder of one answer.
pub(super) enum Content {
    Plain,
    #[cfg(feature = "compress")]
    Gzip(Box<GzDecoder<Vec<u8>>>),
}

impl Content {
    pub(super) fn new(encoding: Encoding) -> Content {
        match encoding {
            Encoding::Plain => Content::Plain,
            #[cfg(feature = "compress")]
            Encoding::Gzip => Content::Gzip(Box::new(GzDecoder::new(Vec::new()))),
        }
    }

    /// Appends the decoded bytes to `rest`. False if the content is damaged.
    pub(super) fn decode(&mut self, bytes: &[u8], rest: &mut Vec<u8>) -> bool {
        match self {
            Content::Plain => {
                rest.extend_from_slice(bytes);
                true
            }
            #[cfg(feature = "compress")]
            Content::Gzip(decoder) => {
                // A piece that was compressed and flushed by itself must become visible at once.
                let done = decoder.write_all(bytes).and_then(|()| decoder.flush());
                rest.append(decoder.get_mut());
                done.is_ok()
            }
        }
    }

    /// The rest at the end; `None` if the content is cut off.
    pub(super) fn finish(self) -> Option<Vec<u8>> {
        match self {
            Content::Plain => Some(Vec::new()),
            #[cfg(feature = "compress")]
            Content::Gzip(decoder) => decoder.finish().ok(),
        }
    }
}
