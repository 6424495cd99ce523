use super::chunk::Chunk;
use super::*;

fn packed(rows: &[u64], compress: bool) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), 7, compress).unwrap();
    writer.rows(1, rows).unwrap();
    writer.text(2, "né").unwrap();
    writer.rows::<String>(3, &[]).unwrap();
    writer.finish().unwrap()
}

fn unpacked(bytes: &[u8]) -> Result<(Vec<u64>, String, Vec<String>), Refusal> {
    let mut container = Container::read(&mut &*bytes, 7)?;
    let tables = (container.rows(1)?, container.text(2)?, container.rows(3)?);
    container.end()?;
    Ok(tables)
}

#[test]
fn tables_come_back_in_their_order_however_many_chunks_they_have() {
    for count in [0, 1, 3, 1 << 14, (1 << 14) + 1, 70_000] {
        let rows: Vec<u64> = (0..count).map(|n| n * n).collect();
        for compress in [false, true] {
            let (again, text, nothing) = unpacked(&packed(&rows, compress)).unwrap();
            assert!(again == rows && text == "né" && nothing.is_empty(), "{count} {compress}");
        }
    }
}

#[test]
fn rows_and_text_that_are_long_are_cut_into_chunks() {
    let rows: Vec<String> = (0..40).map(|n| n.to_string().repeat(200_000)).collect();
    let text = "é".repeat(3 << 20);
    let mut writer = Writer::new(Vec::new(), 7, false).unwrap();
    writer.rows(1, &rows).unwrap();
    writer.text(2, &text).unwrap();
    let bytes = writer.finish().unwrap();
    let mut container = Container::read(&mut &bytes[..], 7).unwrap();
    assert!(container.rows::<String>(1).unwrap() == rows);
    assert!(container.text(2).unwrap() == text);
}

#[test]
fn tables_are_taken_as_they_were_written_or_not_at_all() {
    let bytes = packed(&[1, 2], false);
    let open = || Container::read(&mut &bytes[..], 7).unwrap();
    assert!(open().rows::<u64>(2).is_err(), "another kind");
    assert!(open().rows::<String>(1).is_err(), "another type");
    assert!(open().row::<u64>(1).is_err(), "two rows where one is meant");
    assert!(open().end().is_err(), "tables that nobody took");
    assert!(matches!(Container::read(&mut &bytes[..], 8), Err(Refusal::Version(_))));
    assert!(matches!(Container::read(&mut &b"{\"kind\":\"capture\"}"[..], 7), Err(Refusal::Foreign)));
}

/// A container with one chunk, whose header states arbitrary lengths.
fn forged(coding: u8, raw_length: u32, bytes: &[u8]) -> Vec<u8> {
    let mut all = Writer::new(Vec::new(), 7, false).unwrap().finish().unwrap()[..16].to_vec();
    let mut head = vec![1, 0, coding, 1, 0, 0, 0, 0];
    head.extend(raw_length.to_le_bytes());
    head.extend((bytes.len() as u32).to_le_bytes());
    let sum = crc32c::crc32c_append(crc32c::crc32c(&head), bytes);
    all.extend(head);
    all.extend(sum.to_le_bytes());
    all.extend(bytes);
    let end = Chunk::pack(u16::MAX, true, (all.len() as u64).to_le_bytes().to_vec(), false).unwrap();
    let (head, bytes) = end.stored(1);
    all.extend(head);
    all.extend(bytes);
    all
}

fn rows_of(bytes: &[u8]) -> Result<Vec<u64>, Refusal> {
    Container::read(&mut &*bytes, 7)?.rows(1)
}

#[test]
fn lengths_that_lie_allocate_nothing() {
    // A vector of 2^40 numbers, one of 2^62, and text of 2^40 bytes.
    for count in [1u64 << 40, 1 << 62, u64::MAX] {
        let mut bytes = vec![253];
        bytes.extend(count.to_le_bytes());
        assert!(matches!(rows_of(&forged(0, 9, &bytes)), Err(Refusal::Damaged(_))));
        let mut text = vec![1];
        text.extend(bytes);
        let container = forged(0, 10, &text);
        assert!(Container::read(&mut &container[..], 7).unwrap().rows::<String>(1).is_err());
    }
    // More than there is, and less than is stored.
    assert_eq!(rows_of(&forged(0, 3, &[2, 5, 6])).unwrap(), [5, 6]);
    assert!(matches!(rows_of(&forged(0, 3, &[1, 5, 6])), Err(Refusal::Damaged(_))));
    assert!(matches!(rows_of(&forged(0, 4, &[2, 5, 6])), Err(Refusal::Damaged(_))));
    assert!(matches!(rows_of(&forged(9, 3, &[2, 5, 6])), Err(Refusal::Version(_))));
}

#[cfg(feature = "compress")]
#[test]
fn a_chunk_that_unpacks_to_far_more_than_it_stores_is_refused() {
    let zeros = vec![0u8; 64 << 20];
    let bomb = zstd::bulk::compress(&zeros, 3).unwrap();
    assert!(bomb.len() * MOST_DENSE < zeros.len());
    let length = |n: usize| u32::try_from(n).unwrap();
    // Stated lengths: the true one, a smaller one, or the most that the stored length allows.
    for stated in [zeros.len(), 100, bomb.len() * MOST_DENSE - 1, LARGEST, u32::MAX as usize] {
        assert!(matches!(rows_of(&forged(1, length(stated), &bomb)), Err(Refusal::Damaged(_))), "{stated}");
    }
    // A valid table of this density is stored uncompressed.
    let rows = vec![0u64; 100_000];
    assert!(unpacked(&packed(&rows, true)).unwrap().0 == rows);
    assert!(matches!(rows_of(&forged(1, 100, b"no zstd")), Err(Refusal::Damaged(_))));
}
