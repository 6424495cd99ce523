//! Archives of tar: which files they hold, and where.
//!
//! Source: POSIX.1-1988 ustar and POSIX.1-2001 pax (`pax` utility, "ustar Interchange Format"), and the GNU tar manual, "Basic
//! Tar Format" (long names, base-256 numbers).

use super::problem::{Fault, Found};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{self, Read};

const BLOCK: usize = 512;

/// Names and extended headers beyond this are refused.
const LONGEST_HEADER: u64 = 1 << 20;

/// Archives of more files are refused.
const MOST_MEMBERS: usize = 1 << 20;

/// One file of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its path, without `./` or `/` in front.
    pub name: String,
    /// Where its content begins in the decompressed archive.
    pub offset: u64,
    /// How long it is.
    pub length: u64,
}

/// Whether bytes begin like an archive: with a header whose sum is right.
pub(super) fn is_archive(sample: &[u8]) -> bool {
    sample.first_chunk().is_some_and(|block| block[0] != 0 && sum_is_right(block))
}

/// The files of an archive in their order, hidden ones left out. A file that is there twice counts as unpacking would leave it: the last one. What
/// was found before an archive breaks off is returned beside the fault.
pub(super) fn members(archive: &mut dyn Read) -> (Vec<Member>, Option<Fault>) {
    let mut reader = Reader { archive, at: 0, members: Vec::new(), by_name: HashMap::new(), sparse: None };
    let fault = reader.run().err().or(reader.sparse);
    let mut members = reader.members;
    let last = reader.by_name;
    let mut at = 0;
    members.retain(|member| {
        at += 1;
        last.get(&member.name) == Some(&(at - 1))
    });
    (members, fault)
}

struct Reader<'r> {
    archive: &'r mut dyn Read,
    at: u64,
    members: Vec<Member>,
    /// The last member of each name.
    by_name: HashMap<String, usize>,
    /// The first file that cannot be read.
    sparse: Option<Fault>,
}

/// What extended headers say about the member behind them.
#[derive(Default)]
struct Extension {
    name: Option<String>,
    link: Option<String>,
    length: Option<u64>,
    sparse: bool,
}

impl Reader<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        let mut extension = Extension::default();
        loop {
            let Some(block) = self.block()? else { return Ok(()) };
            // Two empty blocks end an archive; whatever follows is padding.
            if block.iter().all(|byte| *byte == 0) {
                return Ok(());
            }
            if !sum_is_right(&block) {
                return Err(damaged(&format!("no header at byte {}", self.at - BLOCK as u64)));
            }
            let length = number(&block[124..136]).ok_or_else(|| damaged("a length that is no number"))?;
            match block[156] {
                b'L' => extension.name = Some(self.text(length)?),
                b'K' => extension.link = Some(self.text(length)?),
                b'x' => self.extended(length, &mut extension)?,
                b'g' => {
                    self.text(length)?;
                }
                kind => {
                    let extension = std::mem::take(&mut extension);
                    self.member(&block, kind, length, extension)?;
                }
            }
        }
    }

    fn member(&mut self, block: &[u8; BLOCK], kind: u8, length: u64, extension: Extension) -> Result<(), Fault> {
        let length = extension.length.unwrap_or(length);
        let name = tidy(&extension.name.unwrap_or_else(|| name(block)));
        if self.members.len() == MOST_MEMBERS {
            return Err(damaged(&format!("more than {MOST_MEMBERS} files")));
        }
        match kind {
            b'0' | 0 | b'7' if extension.sparse => self.sparse(&name, length),
            b'S' => {
                // The list of its parts goes on in blocks of their own.
                let mut more = block[482] != 0;
                while more {
                    more = self.block()?.ok_or_else(cut_off)?[504] != 0;
                }
                self.sparse(&name, length)
            }
            b'0' | 0 | b'7' if is_visible_file(&name) => {
                self.add(Member { name, offset: self.at, length });
                self.pass(length)
            }
            b'1' => {
                let target = tidy(&extension.link.unwrap_or_else(|| text(&block[157..257])));
                if let Some(&of) = self.by_name.get(&target) {
                    let Member { offset, length, .. } = self.members[of];
                    self.add(Member { name, offset, length });
                }
                Ok(())
            }
            // Links, directories and devices have no content, whatever length they state.
            b'2'..=b'6' => Ok(()),
            _ => self.pass(length),
        }
    }

    /// A file whose holes were left out cannot be read in place.
    fn sparse(&mut self, name: &str, length: u64) -> Result<(), Fault> {
        self.sparse.get_or_insert_with(|| {
            Fault::new("an archive that was packed without --sparse", Found::told(format!("the sparse file {name}")))
        });
        self.pass(length)
    }

    fn add(&mut self, member: Member) {
        self.by_name.insert(member.name.clone(), self.members.len());
        self.members.push(member);
    }

    /// Records of `LENGTH KEY=VALUE` with a line end each.
    fn extended(&mut self, length: u64, extension: &mut Extension) -> Result<(), Fault> {
        let bytes = self.content(length)?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let record = rest.iter().position(|byte| *byte == b' ').and_then(|space| {
                let length: usize = std::str::from_utf8(&rest[..space]).ok()?.parse().ok()?;
                let record = rest.get(space + 1..length)?.strip_suffix(b"\n")?;
                rest = &rest[length..];
                Some(record)
            });
            let record = record.ok_or_else(|| damaged("an extended header that is none"))?;
            let Some(equals) = record.iter().position(|byte| *byte == b'=') else { continue };
            let value = String::from_utf8_lossy(&record[equals + 1..]).into_owned();
            match &record[..equals] {
                b"path" => extension.name = Some(value),
                b"linkpath" => extension.link = Some(value),
                b"size" => extension.length = value.parse().ok(),
                key if key.starts_with(b"GNU.sparse") => extension.sparse = true,
                _ => {}
            }
        }
        Ok(())
    }

    /// A header's text, which ends at its first zero byte.
    fn text(&mut self, length: u64) -> Result<String, Fault> {
        self.content(length).map(|bytes| text(&bytes))
    }

    fn content(&mut self, length: u64) -> Result<Vec<u8>, Fault> {
        if length > LONGEST_HEADER {
            return Err(damaged(&format!("a header of {length} bytes")));
        }
        let mut bytes = vec![0; length as usize];
        let n = fill(self.archive, &mut bytes)?;
        self.at += n as u64;
        if n < bytes.len() {
            return Err(cut_off());
        }
        self.pad()?;
        Ok(bytes)
    }

    fn block(&mut self) -> Result<Option<[u8; BLOCK]>, Fault> {
        let mut block = [0; BLOCK];
        let n = fill(self.archive, &mut block)?;
        self.at += n as u64;
        match n {
            BLOCK => Ok(Some(block)),
            0 => Ok(None),
            _ => Err(cut_off()),
        }
    }

    fn pass(&mut self, length: u64) -> Result<(), Fault> {
        let passed = io::copy(&mut self.archive.take(length), &mut io::sink()).map_err(|error| unreadable(&error))?;
        self.at += passed;
        if passed < length { Err(cut_off()) } else { self.pad() }
    }

    /// Goes on to the next block. The last one may lack its padding.
    fn pad(&mut self) -> Result<(), Fault> {
        let rest = (BLOCK as u64 - self.at % BLOCK as u64) % BLOCK as u64;
        let passed = io::copy(&mut self.archive.take(rest), &mut io::sink()).map_err(|error| unreadable(&error))?;
        self.at += passed;
        Ok(())
    }
}

fn fill(archive: &mut dyn Read, buffer: &mut [u8]) -> Result<usize, Fault> {
    let mut filled = 0;
    while filled < buffer.len() {
        match archive.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(&error)),
        }
    }
    Ok(filled)
}

/// The sum over the header with the sum itself as spaces. Some old programs added signed bytes.
fn sum_is_right(block: &[u8; BLOCK]) -> bool {
    let Some(stated) = number(&block[148..156]) else { return false };
    let bytes = || block.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { b' ' } else { *byte });
    let unsigned: u64 = bytes().map(u64::from).sum();
    let signed: i64 = bytes().map(|byte| i64::from(byte.cast_signed())).sum();
    stated == unsigned || i64::try_from(stated) == Ok(signed)
}

/// Octal digits between spaces, up to a space or zero byte; or, where the highest bit is set, bytes of a number.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let first = u64::from(field[0] & 0x7f);
        return field[1..]
            .iter()
            .try_fold(first, |value, byte| value.checked_mul(256).map(|value| value | u64::from(*byte)));
    }
    let digits = field.iter().skip_while(|byte| **byte == b' ').take_while(|byte| !matches!(byte, 0 | b' '));
    digits.clone().try_fold(0u64, |value, byte| match byte {
        b'0'..=b'7' => value.checked_mul(8).map(|value| value | u64::from(byte - b'0')),
        _ => None,
    })
}

/// Name, with the prefix that ustar keeps apart. GNU's old format has times in that place, and says so.
fn name(block: &[u8; BLOCK]) -> String {
    let (name, prefix) = (text(&block[..100]), text(&block[345..500]));
    if &block[257..263] == b"ustar\0" && !prefix.is_empty() { format!("{prefix}/{name}") } else { name }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// No directory (old archives mark them by their name only), and not hidden.
fn is_visible_file(name: &str) -> bool {
    !name.is_empty() && !name.ends_with('/') && !name.split('/').any(|part| part.starts_with('.') && part != "..")
}

/// The path without what says nothing about where the file is.
fn tidy(name: &str) -> String {
    let mut parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if name.ends_with('/') {
        parts.push("");
    }
    parts.join("/")
}

fn damaged(what: &str) -> Fault {
    Fault::new("a tar archive", Found::told(what))
}

fn cut_off() -> Fault {
    Fault::new("a whole tar archive", "cut off")
}

fn unreadable(error: &io::Error) -> Fault {
    Fault::new("a file that can be read", Found::told(error.to_string()))
}

#[cfg(test)]
mod tests {
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

    /// A member with its content, padded.
    fn entry(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = header(name, kind, &format!("{:o}", content.len())).to_vec();
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }

    fn names(archive: &[u8]) -> (Vec<(String, String)>, Option<Fault>) {
        let (members, fault) = members(&mut &archive[..]);
        let content = |member: &Member| {
            let start = member.offset as usize;
            String::from_utf8_lossy(archive.get(start..start + member.length as usize).unwrap_or(b"?")).into_owned()
        };
        (members.iter().map(|member| (member.name.clone(), content(member))).collect(), fault)
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
        assert_eq!(names(&archive.concat()), (pairs(&[("old", "second"), ("a/b", "second time")]), None));
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
        let expected = [
            (&*long, "gnu"),
            ("pax/name", "pax"),
            ("binary", "four"),
            ("prefix/name", ""),
            ("first", "once"),
            ("second", "once"),
        ];
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
        let huge = [header("././@LongLink", b'L', "77777777777").to_vec(), vec![0; 4 * BLOCK]].concat();
        assert!(names(&huge).1.unwrap().found.contains("a header of"));
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
            format!(
                "{{\"type\":\"ADDED\",\"object\":{{\"kind\":\"Pod\",\"metadata\":{{\"resourceVersion\":\"{n}\"}}}}}}\n"
            )
        };
        let archive = [
            entry("b", b'0', event(1).as_bytes()),
            entry("x/a", b'0', event(2).as_bytes()),
            entry("text", b'0', b"text"),
        ]
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
}
