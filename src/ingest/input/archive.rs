//! Lists the files of a tar archive with the offset and length of each. One pass; contents are skipped, not kept.
//!
//! Listed members never share bytes, so each byte is evidence once. Limits bound the number and the names of members.
//! A broken archive yields the members in front of the damage and a fault. Later code relies on both.
//!
//! Sources: POSIX.1-1988 ustar and POSIX.1-2001 pax (`pax` utility, "ustar Interchange Format"); the GNU tar manual,
//! "Basic Tar Format" (long names, base-256 numbers).

use super::Member;
use super::stream;
use crate::ingest::limits::{
    DEEPEST_DIRECTORY, LONGEST_EXTENDED_HEADER, LONGEST_MEMBER_NAME, MOST_MEMBER_NAMES, MOST_MEMBERS,
};
use crate::ingest::problem::{Fault, Found, count, size};
use std::collections::HashMap;
use std::io::{self, Read};

const BLOCK: usize = 512;

/// The members of an archive, and what could not be read.
#[derive(Debug, Default)]
pub(in crate::ingest) struct Listing {
    /// Visible files in archive order. No two share bytes.
    pub members: Vec<Member>,
    /// Hard links to these files beyond the name that each already has.
    pub copies: u64,
    /// Problems of the archive and of members that were left out.
    pub faults: Vec<Fault>,
}

/// Whether the sample begins with a tar header whose checksum is right.
pub(in crate::ingest) fn is_archive(sample: &[u8]) -> bool {
    sample.first_chunk().is_some_and(|block| block[0] != 0 && sum_is_right(block))
}

/// Lists the files of an archive in one pass. The last of two files with one name counts, as after unpacking. A
/// broken archive yields the files in front of the damage and a fault.
pub(in crate::ingest) fn list(archive: &mut dyn Read) -> Listing {
    list_within(archive, MOST_MEMBERS, MOST_MEMBER_NAMES)
}

/// [`list`] with limits: the number of files and hard links, and the bytes of their names.
fn list_within(archive: &mut dyn Read, most: usize, most_bytes: usize) -> Listing {
    let mut reader = Reader {
        archive,
        most,
        most_bytes,
        at: 0,
        members: Vec::new(),
        links: Vec::new(),
        by_name: HashMap::new(),
        name_bytes: 0,
        refused: Refused::default(),
    };
    let broken = reader.run().err();
    let mut listing = reader.listing();
    listing.faults.splice(0..0, broken);
    listing
}

struct Reader<'r> {
    archive: &'r mut dyn Read,
    most: usize,
    most_bytes: usize,
    at: u64,
    members: Vec<Member>,
    /// Hard links: index of the member, and the other name.
    links: Vec<(usize, String)>,
    /// Index of the last member with each name.
    by_name: HashMap<String, usize>,
    /// Bytes of all names so far, hard links included.
    name_bytes: usize,
    refused: Refused,
}

/// Members that cannot be read, counted.
#[derive(Default)]
struct Refused {
    /// Number of sparse files, and the name of the first.
    sparse: (u64, String),
    /// Number of files whose name is too long.
    long: u64,
    /// Number of hard links whose target does not precede them in the archive.
    lost: u64,
}

impl Refused {
    fn faults(self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let (sparse, first) = self.sparse;
        if sparse > 0 {
            let others = if sparse > 1 { format!(" and {} more", sparse - 1) } else { String::new() };
            let found = Found::described(format!("the sparse file {first}{others}"));
            faults.push(Fault::new("an archive packed without --sparse (pack it again without that option)", found));
        }
        if self.long > 0 {
            let most = size(LONGEST_MEMBER_NAME as u64);
            let expected = format!("file names of at most {most}, in at most {DEEPEST_DIRECTORY} directories");
            faults.push(Fault::new(
                expected,
                Found::described(format!("{} with a longer or deeper name", count(self.long, "file"))),
            ));
        }
        if self.lost > 0 {
            let found = format!("{} to a file that does not precede it", count(self.lost, "hard link"));
            faults.push(Fault::new("hard links to files that the archive holds before them", Found::described(found)));
        }
        faults
    }
}

/// A member name; `None` if it is too long.
type Name = Option<String>;

/// Fields of extended headers, which apply to the next member.
#[derive(Default)]
struct Extension {
    name: Option<Name>,
    link: Option<Name>,
    length: Option<u64>,
    sparse: bool,
}

impl Reader<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        let mut extension = Extension::default();
        loop {
            let Some(block) = self.block()? else { return Ok(()) };
            // Two empty blocks end an archive; bytes behind them are padding.
            if block.iter().all(|byte| *byte == 0) {
                return Ok(());
            }
            if !sum_is_right(&block) {
                return Err(damaged(&format!("a block at byte {} that is no header", self.at - BLOCK as u64)));
            }
            let length = number(&block[124..136]).ok_or_else(|| damaged("a header whose length is no number"))?;
            match block[156] {
                b'L' => extension.name = Some(self.long_name(length)?),
                b'K' => extension.link = Some(self.long_name(length)?),
                b'x' => self.extended(length, &mut extension)?,
                b'g' => self.pass(length)?,
                kind => {
                    let extension = std::mem::take(&mut extension);
                    self.member(&block, kind, length, extension)?;
                }
            }
        }
    }

    fn member(&mut self, block: &[u8; BLOCK], kind: u8, length: u64, extension: Extension) -> Result<(), Fault> {
        let length = extension.length.unwrap_or(length);
        // Links, directories and devices have no content, even if the header has a length.
        let has_content = !matches!(kind, b'1'..=b'6');
        if !matches!(kind, b'0' | 0 | b'1' | b'7' | b'S') {
            return if has_content { self.pass(length) } else { Ok(()) };
        }
        let name = extension.name.unwrap_or_else(|| Some(name(block))).map(|name| tidy(&name));
        let Some(name) = name.filter(|name| name.matches('/').count() < DEEPEST_DIRECTORY) else {
            self.refused.long += 1;
            return if has_content { self.pass(length) } else { Ok(()) };
        };
        match kind {
            b'1' => self.link(name, extension.link.unwrap_or_else(|| Some(text(&block[157..257])))),
            b'S' => {
                // More entries of the sparse map follow in blocks of their own.
                let mut more = block[482] != 0;
                while more {
                    more = self.block()?.ok_or_else(cut_off)?[504] != 0;
                }
                self.sparse(name, length)
            }
            _ if extension.sparse => self.sparse(name, length),
            _ if is_file(&name) => {
                self.note(&name)?;
                self.by_name.insert(name.clone(), self.members.len());
                self.members.push(Member { name, offset: self.at, length });
                self.pass(length)
            }
            _ => self.pass(length),
        }
    }

    /// Notes a hard link. Its bytes are read once: both names are the same evidence.
    fn link(&mut self, name: String, target: Name) -> Result<(), Fault> {
        if !is_visible(&name) {
            return Ok(());
        }
        let Some(&of) = target.and_then(|target| self.by_name.get(&tidy(&target))) else {
            self.refused.lost += 1;
            return Ok(());
        };
        self.note(&name)?;
        self.by_name.insert(name.clone(), of);
        self.links.push((of, name));
        Ok(())
    }

    /// Counts a sparse file and skips it: its holes are left out, so offsets do not match.
    fn sparse(&mut self, name: String, length: u64) -> Result<(), Fault> {
        let (count, first) = &mut self.refused.sparse;
        if *count == 0 {
            *first = name;
        }
        *count += 1;
        self.pass(length)
    }

    /// Counts a name against the limits.
    fn note(&mut self, name: &str) -> Result<(), Fault> {
        self.name_bytes += name.len();
        if self.members.len() + self.links.len() == self.most {
            let expected = format!("an archive of at most {} files and hard links (split it, or unpack it)", self.most);
            return Err(Fault::new(expected, "more"));
        }
        if self.name_bytes > self.most_bytes {
            let most = size(self.most_bytes as u64);
            return Err(Fault::new(
                format!("an archive whose file names have at most {most} in all (split it, or unpack it)"),
                "more",
            ));
        }
        Ok(())
    }

    fn listing(self) -> Listing {
        let Reader { mut members, links, by_name, refused, .. } = self;
        let keeps_name = |(at, member): (usize, &Member)| is_visible(&member.name) && by_name[&member.name] == at;
        let mut named: Vec<bool> = members.iter().enumerate().map(keeps_name).collect();
        let mut copies = 0;
        for (of, name) in links {
            if by_name[&name] != of {
                continue;
            }
            // If the file is hidden, or a later file took its name, its first link names it.
            if std::mem::replace(&mut named[of], true) {
                copies += 1;
            } else {
                members[of].name = name;
            }
        }
        let mut named = named.into_iter();
        members.retain(|_| named.next() == Some(true));
        Listing { members, copies, faults: refused.faults() }
    }

    /// Reads the records of a pax header: `LENGTH KEY=VALUE`, each with a line end.
    fn extended(&mut self, length: u64, extension: &mut Extension) -> Result<(), Fault> {
        if length > LONGEST_EXTENDED_HEADER {
            let expected = format!("an extended header of at most {}", size(LONGEST_EXTENDED_HEADER));
            return Err(Fault::new(expected, Found::described(size(length))));
        }
        let bytes = self.content(length as usize)?;
        self.pad()?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let record = rest.iter().position(|byte| *byte == b' ').and_then(|space| {
                let length: usize = std::str::from_utf8(&rest[..space]).ok()?.parse().ok()?;
                let record = rest.get(space + 1..length)?.strip_suffix(b"\n")?;
                rest = &rest[length..];
                Some(record)
            });
            let record = record.ok_or_else(|| damaged("an extended header without LENGTH KEY=VALUE records"))?;
            let Some(equals) = record.iter().position(|byte| *byte == b'=') else { continue };
            let value = &record[equals + 1..];
            let name = || (value.len() <= LONGEST_MEMBER_NAME).then(|| String::from_utf8_lossy(value).into_owned());
            match &record[..equals] {
                b"path" => extension.name = Some(name()),
                b"linkpath" => extension.link = Some(name()),
                b"size" => extension.length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()),
                key if key.starts_with(b"GNU.sparse") => extension.sparse = true,
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a GNU long-name header. The name ends at the first zero byte.
    fn long_name(&mut self, length: u64) -> Result<Name, Fault> {
        // One more byte for the zero behind the name.
        let most = LONGEST_MEMBER_NAME as u64 + 1;
        let bytes = self.content(length.min(most) as usize)?;
        self.pass(length.saturating_sub(most))?;
        let name = text(&bytes);
        Ok((name.len() <= LONGEST_MEMBER_NAME).then_some(name))
    }

    fn content(&mut self, length: usize) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; length];
        let n = fill(self.archive, &mut bytes)?;
        self.at += n as u64;
        if n < bytes.len() { Err(cut_off()) } else { Ok(bytes) }
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
        let passed =
            io::copy(&mut self.archive.take(length), &mut io::sink()).map_err(|error| stream::unreadable(&error))?;
        self.at += passed;
        if passed < length { Err(cut_off()) } else { self.pad() }
    }

    /// Skips the padding up to the next block. The last block may lack it.
    fn pad(&mut self) -> Result<(), Fault> {
        let rest = (BLOCK as u64 - self.at % BLOCK as u64) % BLOCK as u64;
        let passed =
            io::copy(&mut self.archive.take(rest), &mut io::sink()).map_err(|error| stream::unreadable(&error))?;
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
            Err(error) => return Err(stream::unreadable(&error)),
        }
    }
    Ok(filled)
}

/// Whether the checksum is right. It counts its own field as spaces. Some old programs added signed bytes.
fn sum_is_right(block: &[u8; BLOCK]) -> bool {
    let Some(stated) = number(&block[148..156]) else { return false };
    let bytes = || block.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { b' ' } else { *byte });
    let unsigned: u64 = bytes().map(u64::from).sum();
    let signed: i64 = bytes().map(|byte| i64::from(byte.cast_signed())).sum();
    stated == unsigned || i64::try_from(stated) == Ok(signed)
}

/// A number: octal digits between spaces, up to a space or zero byte. With the highest bit set it is base-256.
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

/// The name with its ustar prefix. GNU's old format keeps times in the place of the prefix, and has another magic.
fn name(block: &[u8; BLOCK]) -> String {
    let (name, prefix) = (text(&block[..100]), text(&block[345..500]));
    if &block[257..263] == b"ustar\0" && !prefix.is_empty() { format!("{prefix}/{name}") } else { name }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Old archives mark a directory only by the slash at the end of its name.
fn is_file(name: &str) -> bool {
    !name.is_empty() && !name.ends_with('/')
}

fn is_visible(name: &str) -> bool {
    is_file(name) && !name.split('/').any(|part| part.starts_with('.') && part != "..")
}

/// The path without `.` and empty parts.
fn tidy(name: &str) -> String {
    let mut parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if name.ends_with('/') {
        parts.push("");
    }
    parts.join("/")
}

fn damaged(what: &str) -> Fault {
    Fault::new("a tar archive", Found::described(what))
}

fn cut_off() -> Fault {
    Fault::new("a whole tar archive", "cut off")
}

#[cfg(test)]
mod tests;
