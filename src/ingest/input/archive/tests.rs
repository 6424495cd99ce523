//! Tar archives, byte by byte.

use super::*;
use crate::ingest::{Format, ReadOptions, inputs};
use std::fs;

fn header(name: &str, kind: u8, length: &str) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..124 + length.len()].copy_from_slice(length.as_bytes());
    block[156] = kind;
    block[257..263].copy_from_slice(b"ustar\0");
    block[148..156].fill(b' ');
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block
}

/// A member with padded content.
fn entry(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = header(name, kind, &format!("{:o}", content.len())).to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

fn names(archive: &[u8]) -> (Vec<(String, String)>, Option<Fault>) {
    let Listing { members, mut faults, .. } = list(&mut &archive[..]);
    let content = |member: &Member| {
        let start = member.offset as usize;
        String::from_utf8_lossy(archive.get(start..start + member.length as usize).unwrap_or(b"?")).into_owned()
    };
    (members.iter().map(|member| (member.name.clone(), content(member))).collect(), faults.pop())
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
}

#[test]
fn files_are_found_with_their_content_and_everything_else_is_passed() {
    let archive = [
        entry("./", b'5', b""),
        entry("./a/b", b'0', b"first"),
        entry("old", 0, b"second"),
        entry("folder/", 0, b""),
        entry("link", b'2', b""),
        entry("hard", b'1', b""),
        entry(".hidden", b'0', b"no"),
        entry("a/.hidden/x", b'0', b"no"),
        entry("comment", b'g', b"20 comment=whatever\n"),
        entry("a/b", b'0', b"second time"),
        vec![0; 2 * BLOCK],
        entry("behind", b'0', b"the end"),
    ];
    assert!(is_archive(&archive[1]));
    let (found, fault) = names(&archive.concat());
    assert_eq!(found, pairs(&[("old", "second"), ("a/b", "second time")]));
    assert_eq!(&*fault.unwrap().found, "1 hard link to a file that does not precede it");
}

#[test]
fn names_longer_than_a_header_and_large_lengths_are_read() {
    let long = "x/".repeat(80) + "end";
    let pax = |key: &str, value: &str| {
        let rest = format!(" {key}={value}\n");
        let length = (rest.len()..).find(|n| *n == rest.len() + n.to_string().len()).unwrap();
        format!("{length}{rest}")
    };
    let mut binary = header("binary", b'0', "");
    binary[124] = 0x80;
    binary[135] = 4;
    binary[148..156].fill(b' ');
    let sum: u64 = binary.iter().map(|byte| u64::from(*byte)).sum();
    binary[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut prefixed = header("name", b'0', "0");
    prefixed[345..351].copy_from_slice(b"prefix");
    prefixed[148..156].fill(b' ');
    let sum: u64 = prefixed.iter().map(|byte| u64::from(*byte)).sum();
    prefixed[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut four = b"four".to_vec();
    four.resize(BLOCK, 0);
    let archive = [
        entry("././@LongLink", b'L', format!("{long}\0").as_bytes()),
        entry("short", b'0', b"gnu"),
        entry("PaxHeaders/x", b'x', (pax("path", "pax/name") + &pax("mtime", "1.5")).as_bytes()),
        entry("short", b'0', b"pax"),
        binary.to_vec(),
        four,
        prefixed.to_vec(),
        entry("first", b'0', b"once"),
        entry("././@LongLink", b'K', b"first\0"),
        entry("second", b'1', b""),
    ];
    let expected = [(&*long, "gnu"), ("pax/name", "pax"), ("binary", "four"), ("prefix/name", ""), ("first", "once")];
    assert_eq!(names(&archive.concat()), (pairs(&expected), None));
}

#[test]
fn an_archive_cut_off_or_damaged_keeps_what_stands_in_front() {
    let archive = [entry("a", b'0', b"first"), entry("b", b'0', &[b'x'; 600]), vec![0; 2 * BLOCK]].concat();
    for length in 0..archive.len() {
        let (found, fault) = names(&archive[..length]);
        assert!(found.len() <= 2, "cut off at {length}");
        let ends_in_order = [0, 2 * BLOCK].contains(&length)
            || length >= 3 * BLOCK + 600 && (length <= 5 * BLOCK || length >= 6 * BLOCK);
        let padding = (BLOCK + 5..2 * BLOCK).contains(&length);
        assert_eq!(fault.is_none(), ends_in_order || padding, "cut off at {length}: {fault:?}");
    }
    for at in 0..archive.len() {
        let mut flipped = archive.clone();
        flipped[at] ^= 0x10;
        let _ = names(&flipped);
    }
    let sparse = [entry("a", b'0', b"1"), entry("s", b'S', b"2"), entry("b", b'0', b"3")].concat();
    let (found, fault) = names(&sparse);
    assert_eq!(found, pairs(&[("a", "1"), ("b", "3")]));
    assert!(fault.unwrap().found.contains("sparse file s"));
    let huge = [header("PaxHeaders/x", b'x', "77777777777").to_vec(), vec![0; 4 * BLOCK]].concat();
    assert!(names(&huge).1.unwrap().expected.contains("an extended header of at most 1.0 MiB"));
}

#[test]
fn two_names_of_one_file_are_the_same_evidence_and_its_bytes_are_there_once() {
    let link = |name: &str, target: &str| {
        let target = [target.as_bytes(), b"\0"].concat();
        [entry("././@LongLink", b'K', &target), entry(name, b'1', b"")].concat()
    };
    let archive = [
        entry("a", b'0', b"1"),
        link("b", "a"),
        link("c", "./b"),
        link(".d", "a"),
        entry("e", b'0', b"22"),
        link("f", "e"),
        link("f", "e"),
        // Unpacking leaves the first content of `g` under the name `h` only.
        entry("g", b'0', b"333"),
        link("h", "g"),
        link("i", "h"),
        entry("g", b'0', b"4444"),
        entry(".j", b'0', b"55555"),
        link("k", ".j"),
        entry("l", b'0', b"666666"),
        link("m", "l"),
        entry("m", b'0', b"7777777"),
        link("n", "nothing"),
        link("o", "n"),
    ];
    let archive = archive.concat();
    let expected =
        [("a", "1"), ("e", "22"), ("h", "333"), ("g", "4444"), ("k", "55555"), ("l", "666666"), ("m", "7777777")];
    let Listing { members, copies, faults } = list(&mut &archive[..]);
    assert_eq!(names(&archive).0, pairs(&expected));
    assert_eq!(copies, 5, "b, c, f twice, i");
    assert!(members.is_sorted_by(|one, next| one.offset + one.length <= next.offset), "{members:?}");
    assert_eq!(
        faults.iter().map(|fault| &*fault.found).collect::<Vec<_>>(),
        ["2 hard links to a file that does not precede it"]
    );
}

#[test]
fn a_name_that_is_too_long_costs_its_file_and_no_other() {
    let long = |length: usize| "x".repeat(length) + "\0";
    let deep = |parts: usize| "d/".repeat(parts - 1) + "x\0";
    let pax = |length: usize| format!("{} path={}\n", length + 11, "y".repeat(length));
    let with = |header: u8, name: &str| {
        [entry("././@LongLink", header, name.as_bytes()), entry("short", b'0', b"content")].concat()
    };
    let archive = [
        with(b'L', &long(LONGEST_MEMBER_NAME)),
        with(b'L', &long(LONGEST_MEMBER_NAME + 1)),
        with(b'L', &long(3 << 20)),
        with(b'L', &deep(DEEPEST_DIRECTORY)),
        with(b'L', &deep(DEEPEST_DIRECTORY + 1)),
        with(b'x', &pax(4000)),
        with(b'x', &pax(5000)),
        entry("last", b'0', b"content"),
    ];
    let archive = archive.concat();
    let (found, fault) = names(&archive);
    let lengths: Vec<usize> = found.iter().map(|(name, _)| name.len()).collect();
    assert_eq!(lengths, [LONGEST_MEMBER_NAME, 2 * DEEPEST_DIRECTORY - 1, 4000, 4]);
    assert!(found.iter().all(|(_, content)| content == "content"), "{found:?}");
    assert_eq!(&*fault.unwrap().found, "4 files with a longer or deeper name");
}

#[test]
fn an_archive_of_any_number_of_files_or_links_ends_at_a_limit() {
    let file = |n: usize| entry(&format!("{n}"), b'0', b"");
    let link = |n: usize| [entry("././@LongLink", b'K', b"0\0"), entry(&format!("{n}"), b'1', b"")].concat();
    let archive = |entry: &dyn Fn(usize) -> Vec<u8>| [file(0), (1..200).flat_map(entry).collect()].concat();
    let listed = |archive: Vec<u8>, most, bytes| list_within(&mut &archive[..], most, bytes);
    let Listing { members, faults, .. } = listed(archive(&file), 100, 1000);
    assert_eq!(
        (members.len(), &*faults[0].expected),
        (100, "an archive of at most 100 files and hard links (split it, or unpack it)")
    );
    let Listing { members, copies, faults } = listed(archive(&link), 100, 1000);
    assert_eq!((members.len(), copies, faults.len()), (1, 99, 1));
    // 10 names of one byte, 45 of two bytes.
    for entry in [&file as &dyn Fn(usize) -> Vec<u8>, &link] {
        let Listing { members, copies, faults } = listed(archive(entry), 1000, 100);
        assert_eq!(members.len() + copies as usize, 55);
        assert_eq!(
            &*faults[0].expected,
            "an archive whose file names have at most 100 bytes in all (split it, or unpack it)"
        );
    }
    let Listing { faults, .. } = listed(archive(&file), 200, 1000);
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn text_is_no_archive() {
    assert!(!is_archive(&[0; BLOCK]) && !is_archive(&[b'{'; BLOCK]) && !is_archive(b"short"));
}

#[test]
fn the_files_of_an_archive_are_inputs_wherever_they_lie() {
    let folder = std::env::temp_dir().join(format!("retrograde-archive-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let event = |n: u32| {
        format!("{{\"type\":\"ADDED\",\"object\":{{\"kind\":\"Pod\",\"metadata\":{{\"resourceVersion\":\"{n}\"}}}}}}\n")
    };
    let archive =
        [entry("b", b'0', event(1).as_bytes()), entry("x/a", b'0', event(2).as_bytes()), entry("text", b'0', b"text")]
            .concat();
    fs::write(folder.join("1.tar"), &archive).unwrap();
    fs::write(folder.join("2.tar.cut"), &archive[..2 * BLOCK + 100]).unwrap();
    #[cfg(feature = "compress")]
    fs::write(folder.join("3.tar.zst"), zstd::encode_all(&archive[..], 0).unwrap()).unwrap();
    let files = inputs(std::slice::from_ref(&folder), &[], &[]).unwrap();
    let base = folder.to_string_lossy().into_owned();
    let shown: Vec<&str> = files.iter().map(|file| file.shown.trim_start_matches(&base)).collect();
    let mut expected = vec!["/1.tar/b", "/1.tar/x/a", "/1.tar/text", "/2.tar.cut/b", "/2.tar.cut"];
    if cfg!(feature = "compress") {
        expected.extend(["/3.tar.zst/b", "/3.tar.zst/x/a", "/3.tar.zst/text"]);
    }
    assert_eq!(shown, expected);
    let mut read = Vec::new();
    let reading = crate::ingest::read(
        &files,
        &ReadOptions { threads: 1, ..ReadOptions::default() },
        &(),
        |_, format| {
            assert_eq!(format, Format::Watch);
            Count(0)
        },
        |file, _, batch: Count| read.push((file.0, batch.0)),
    );
    let whole: Vec<u32> = (0..files.len() as u32)
        .filter(|n| shown[*n as usize].ends_with('b') || shown[*n as usize].ends_with('a'))
        .collect();
    assert_eq!(read, whole.into_iter().map(|file| (file, 1)).collect::<Vec<_>>());
    assert_eq!(reading.problems.len(), 1, "{:?}", reading.problems);
    assert_eq!((reading.problems[0].path.ends_with("2.tar.cut"), &*reading.problems[0].found), (true, "cut off"));
    fs::remove_dir_all(folder).unwrap();
}

struct Count(u32);

impl crate::ingest::Batch for Count {
    fn record(&mut self, _: u32, _: u64, _: crate::ingest::Record<'_>) -> Result<(), crate::ingest::Refused> {
        self.0 += 1;
        Ok(())
    }
}
