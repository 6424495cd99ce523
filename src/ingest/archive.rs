//! Archives of tar: which files they hold, and where.
//!
//! Source: POSIX.1-1988 ustar and POSIX.1-2001 pax (`pax` utility, "ustar Interchange Format"), and the GNU tar manual, "Basic
//! Tar Format" (long names, base-256 numbers).

use super::input::Member;
use super::limits::{DEEPEST, LONGEST_EXTENDED_HEADER, LONGEST_MEMBER_NAME, MOST_MEMBER_NAMES, MOST_MEMBERS};
use super::problem::{Fault, Found, count, size};
use super::stream;
use std::collections::HashMap;
use std::io::{self, Read};

const BLOCK: usize = 512;

/// What an archive holds.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// The files in their order, hidden ones left out. No two of them share bytes.
    pub members: Vec<Member>,
    /// How many hard links are other names of these files.
    pub copies: u64,
    /// What cannot be read.
    pub faults: Vec<Fault>,
}

/// Whether bytes begin like an archive: with a header whose sum is right.
pub(super) fn is_archive(sample: &[u8]) -> bool {
    sample.first_chunk().is_some_and(|block| block[0] != 0 && sum_is_right(block))
}

/// Lists the files of an archive in one pass. A file that is there twice counts as unpacking would leave it: the last one. What
/// was found before an archive breaks off is returned beside the fault.
pub(super) fn list(archive: &mut dyn Read) -> Listing {
    list_within(archive, MOST_MEMBERS, MOST_MEMBER_NAMES)
}

/// The same, with no more files and hard links, and no more bytes of their names, than these.
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
    /// Other names of members, by their index.
    links: Vec<(usize, String)>,
    /// The last member of each name.
    by_name: HashMap<String, usize>,
    /// Bytes of all names.
    name_bytes: usize,
    refused: Refused,
}

/// Files that cannot be read.
#[derive(Default)]
struct Refused {
    /// How many are sparse, and the name of the first one.
    sparse: (u64, String),
    /// How many have names that are too long.
    long: u64,
    /// How many hard links name no file that stands before them.
    lost: u64,
}

impl Refused {
    fn faults(self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let (sparse, first) = self.sparse;
        if sparse > 0 {
            let others = if sparse > 1 { format!(" and {} more", sparse - 1) } else { String::new() };
            let found = Found::told(format!("the sparse file {first}{others}"));
            faults.push(Fault::new("an archive that was packed without --sparse", found));
        }
        if self.long > 0 {
            let most = size(LONGEST_MEMBER_NAME as u64);
            let expected = format!("file names of at most {most}, in at most {DEEPEST} directories");
            faults.push(Fault::new(expected, Found::told(format!("{} with a longer name", count(self.long, "file")))));
        }
        if self.lost > 0 {
            let found = format!("{} to something else", count(self.lost, "hard link"));
            faults.push(Fault::new("hard links to files that the archive holds before them", Found::told(found)));
        }
        faults
    }
}

/// A name, or none where it is too long.
type Name = Option<String>;

/// What extended headers say about the member behind them.
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
            // Two empty blocks end an archive; whatever follows is padding.
            if block.iter().all(|byte| *byte == 0) {
                return Ok(());
            }
            if !sum_is_right(&block) {
                return Err(damaged(&format!("no header at byte {}", self.at - BLOCK as u64)));
            }
            let length = number(&block[124..136]).ok_or_else(|| damaged("a length that is no number"))?;
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
        // Links, directories and devices have no content, whatever length they state.
        let has_content = !matches!(kind, b'1'..=b'6');
        if !matches!(kind, b'0' | 0 | b'1' | b'7' | b'S') {
            return if has_content { self.pass(length) } else { Ok(()) };
        }
        let name = extension.name.unwrap_or_else(|| Some(name(block))).map(|name| tidy(&name));
        let Some(name) = name.filter(|name| name.matches('/').count() < DEEPEST) else {
            self.refused.long += 1;
            return if has_content { self.pass(length) } else { Ok(()) };
        };
        match kind {
            b'1' => self.link(name, extension.link.unwrap_or_else(|| Some(text(&block[157..257])))),
            b'S' => {
                // The list of its parts goes on in blocks of their own.
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

    /// Another name of a file. Its bytes are read once: they are the same evidence.
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

    /// A file whose holes were left out cannot be read in place.
    fn sparse(&mut self, name: String, length: u64) -> Result<(), Fault> {
        let (count, first) = &mut self.refused.sparse;
        if *count == 0 {
            *first = name;
        }
        *count += 1;
        self.pass(length)
    }

    /// Counts a name that is kept.
    fn note(&mut self, name: &str) -> Result<(), Fault> {
        self.name_bytes += name.len();
        if self.members.len() + self.links.len() == self.most {
            let expected = format!("an archive of at most {} files and hard links", self.most);
            return Err(Fault::new(expected, "more of them"));
        }
        if self.name_bytes > self.most_bytes {
            let most = size(self.most_bytes as u64);
            return Err(Fault::new(format!("an archive whose file names have at most {most}"), "longer ones"));
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
            // A file that is hidden, or whose name another one took later, is there under its first link.
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

    /// Records of `LENGTH KEY=VALUE` with a line end each.
    fn extended(&mut self, length: u64, extension: &mut Extension) -> Result<(), Fault> {
        if length > LONGEST_EXTENDED_HEADER {
            let expected = format!("an extended header of at most {}", size(LONGEST_EXTENDED_HEADER));
            return Err(Fault::new(expected, Found::told(size(length))));
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
            let record = record.ok_or_else(|| damaged("an extended header that is none"))?;
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

    /// The name in a header of its own, which ends at its first zero byte.
    fn long_name(&mut self, length: u64) -> Result<Name, Fault> {
        // A zero byte stands behind it.
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

    /// Goes on to the next block. The last one may lack its padding.
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

/// Old archives mark directories by their name only.
fn is_file(name: &str) -> bool {
    !name.is_empty() && !name.ends_with('/')
}

fn is_visible(name: &str) -> bool {
    is_file(name) && !name.split('/').any(|part| part.starts_with('.') && part != "..")
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

#[cfg(test)]
mod tests;
