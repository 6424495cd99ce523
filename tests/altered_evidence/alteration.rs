//! Alterations of evidence: cut, mixed, half compressed, edited by hand.

use crate::altered_evidence::folder::{File, Folder};
use crate::support::dice::Dice;
use std::io::Write;

/// Draws an altered folder from those of the repository.
pub fn folder(all: &[Folder], seed: u64) -> Folder {
    let mut dice = Dice::new(seed + 1);
    let mut folder = one(all, &mut dice).clone();
    if dice.one_in(6) {
        merge(&mut folder, one(all, &mut dice), &mut dice);
    }
    if dice.one_in(4) {
        folder.sources.clear();
    }
    for _ in 0..1 + dice.roll(3) {
        if folder.files.is_empty() {
            break;
        }
        let at = below(&mut dice, folder.files.len());
        if dice.one_in(4) {
            alter_folder(&mut folder, at, all, &mut dice);
        } else {
            alter(&mut folder.files[at].bytes, &mut dice);
        }
    }
    if dice.one_in(5) && !folder.files.is_empty() {
        let at = below(&mut dice, folder.files.len());
        compress(&mut folder.files[at], &mut dice);
    }
    folder
}

fn below(dice: &mut Dice, n: usize) -> usize {
    dice.roll(n.max(1) as u64) as usize
}

fn one<'a>(all: &'a [Folder], dice: &mut Dice) -> &'a Folder {
    &all[below(dice, all.len())]
}

/// Merges the files of two folders. Files of one name go into a folder of their own, or replace each other.
fn merge(folder: &mut Folder, other: &Folder, dice: &mut Dice) {
    let apart = dice.one_in(2);
    for file in &other.files {
        let name = if apart { format!("other/{}", file.name) } else { file.name.clone() };
        folder.files.retain(|file| !overlap(&file.name, &name));
        folder.files.push(File { name, bytes: file.bytes.clone() });
    }
    folder.sources.extend(other.sources.iter().cloned());
}

/// Whether two paths conflict: they are equal, or one would be the folder of the other.
fn overlap(a: &str, b: &str) -> bool {
    let inside = |folder: &str, file: &str| file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    a == b || inside(a, b) || inside(b, a)
}

fn alter_folder(folder: &mut Folder, at: usize, all: &[Folder], dice: &mut Dice) {
    match dice.roll(4) {
        0 => drop(folder.files.remove(at)),
        1 => {
            let name = format!("again/{}", folder.files[at].name);
            let copy = File { name, bytes: folder.files[at].bytes.clone() };
            folder.files.retain(|file| !overlap(&file.name, &copy.name));
            folder.files.push(copy);
        }
        // A file of the same folder, or of any.
        2 => {
            let next = folder.files[below(dice, folder.files.len())].bytes.clone();
            folder.files[at].bytes.extend(next);
        }
        _ => {
            let other = one(all, dice);
            let next = other.files[below(dice, other.files.len())].bytes.clone();
            folder.files[at].bytes.extend(next);
        }
    }
}

fn alter(bytes: &mut Vec<u8>, dice: &mut Dice) {
    if bytes.is_empty() {
        return;
    }
    let at = below(dice, bytes.len());
    match dice.roll(12) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(..at)),
        2 => bytes[at] ^= 1 << dice.roll(8),
        3 => bytes[at] = dice.roll(256) as u8,
        4 => lines(bytes, |lines| {
            let count = lines.len();
            lines.swap(at % count, (at / 7) % count);
        }),
        5 => lines(bytes, |lines| lines.insert((at / 7) % lines.len(), lines[at % lines.len()])),
        6 => lines(bytes, |lines| {
            lines.remove(at % lines.len());
        }),
        7 => drop(bytes.drain(at..(at + below(dice, 200)).min(bytes.len()))),
        8 => lines(bytes, |lines| lines.reverse()),
        // A repeated text is a reference: the audit id of another event, or another object's uid.
        9 => words(bytes, dice),
        _ => numbers(bytes, dice),
    }
}

fn lines(bytes: &mut Vec<u8>, change: impl FnOnce(&mut Vec<&[u8]>)) {
    let copy = bytes.clone();
    let mut lines: Vec<&[u8]> = copy.split_inclusive(|b| *b == b'\n').collect();
    if !lines.is_empty() {
        change(&mut lines);
        *bytes = lines.concat();
    }
}

/// Runs of bytes of one kind.
fn runs(bytes: &[u8], of: impl Fn(u8) -> bool) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|b| of(**b)).count();
        if length > 0 {
            runs.push((at, at + length));
        }
        at += length + 1;
    }
    runs
}

/// Replaces a revision, a time or a status: by one of the same file, the next number, none, or the largest.
fn numbers(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let runs = runs(bytes, |b| b.is_ascii_digit());
    if runs.is_empty() {
        return;
    }
    for _ in 0..1 + dice.roll(2) {
        let (start, end) = runs[below(dice, runs.len())];
        if end > bytes.len() {
            return;
        }
        let number = std::str::from_utf8(&bytes[start..end]).ok().and_then(|text| text.parse::<u64>().ok());
        let width = end - start;
        let padded = |n: u64| format!("{n:0width$}").into_bytes();
        let new = match (dice.roll(6), number) {
            (0, Some(n)) => padded(n.wrapping_add(1)),
            (1, Some(n)) => padded(n.saturating_sub(1)),
            (2, _) => b"0".to_vec(),
            (3, _) if dice.one_in(3) => b"340282366920938463463374607431768211456".to_vec(),
            _ => {
                let (from, to) = runs[below(dice, runs.len())];
                bytes.get(from..to).unwrap_or_default().to_vec()
            }
        };
        bytes.splice(start..end, new);
    }
}

fn words(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let runs = runs(bytes, |b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if runs.is_empty() {
        return;
    }
    let ((start, end), (from, to)) = (runs[below(dice, runs.len())], runs[below(dice, runs.len())]);
    let new = if dice.one_in(8) { "\u{fc}\\u00e4\u{fffd}".as_bytes().to_vec() } else { bytes[from..to].to_vec() };
    bytes.splice(start..end, new);
}

/// Suffixes of compressed rotated files.
pub const PACKED: [&str; 2] = [".gz", ".zst"];

/// Compresses bytes.
pub fn packed(bytes: &[u8], packing: &str) -> Vec<u8> {
    if packing == ".zst" {
        return zstd::encode_all(bytes, 1).unwrap();
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compresses a file as a rotation does, whole, cut off or with a flipped bit; or joins two compressed files.
fn compress(file: &mut File, dice: &mut Dice) {
    let packing = PACKED[below(dice, PACKED.len())];
    let whole = |bytes: &[u8]| packed(bytes, packing);
    let halves = file.bytes.split_at(below(dice, file.bytes.len()));
    let mut bytes = match dice.one_in(4) {
        true => [whole(halves.0), whole(halves.1)].concat(),
        false => whole(&file.bytes),
    };
    let at = below(dice, bytes.len());
    match dice.roll(3) {
        0 => bytes.truncate(at),
        1 => bytes[at] ^= 1 << dice.roll(8),
        _ => {}
    }
    file.bytes = bytes;
    if dice.one_in(2) {
        file.name += packing;
    }
}
