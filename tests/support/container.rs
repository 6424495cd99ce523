//! The framing of a history container, implemented a second time (`docs/formats.md`). It splits containers, and joins
//! chunks with right lengths and checksums, whatever they hold.

/// Bytes of the header.
pub const HEADER: usize = 16;

const HEAD: usize = 20;
const END: u16 = 0xffff;

/// One uncompressed chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub kind: u16,
    pub last: u8,
    pub bytes: Vec<u8>,
}

/// The chunks of a container without its end chunk; `None` if it is invalid or compressed.
pub fn chunks(container: &[u8]) -> Option<Vec<Chunk>> {
    let mut rest = container.get(HEADER..)?;
    let mut chunks = Vec::new();
    loop {
        let head = rest.get(..HEAD)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let bytes = rest.get(HEAD..HEAD.checked_add(word(12) as usize)?)?;
        let chunk = Chunk { kind: u16::from_le_bytes([head[0], head[1]]), last: head[3], bytes: bytes.to_vec() };
        if chunk.kind == END {
            return Some(chunks);
        }
        if head[2] != 0 {
            return None;
        }
        chunks.push(chunk);
        rest = &rest[HEAD + bytes.len()..];
    }
}

/// The container of these chunks, for a content version.
pub fn sealed(chunks: &[Chunk], content: u16) -> Vec<u8> {
    let mut all = b"\x89RGH\r\n\x1a\n\x01\x01".to_vec();
    all.extend(content.to_le_bytes());
    all.extend(crc32c::crc32c(&all).to_le_bytes());
    for (number, chunk) in chunks.iter().enumerate() {
        put(&mut all, number, chunk);
    }
    let end = Chunk { kind: END, last: 1, bytes: (all.len() as u64).to_le_bytes().to_vec() };
    put(&mut all, chunks.len(), &end);
    all
}

fn put(all: &mut Vec<u8>, number: usize, chunk: &Chunk) {
    let length = (chunk.bytes.len() as u32).to_le_bytes();
    let mut head = chunk.kind.to_le_bytes().to_vec();
    head.extend([0, chunk.last]);
    head.extend((number as u32).to_le_bytes());
    head.extend(length);
    head.extend(length);
    let sum = crc32c::crc32c_append(crc32c::crc32c(&head), &chunk.bytes);
    all.extend(head);
    all.extend(sum.to_le_bytes());
    all.extend(&chunk.bytes);
}
