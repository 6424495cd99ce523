//! Compares a file with its state at the time it was read, by size, time and a digest of samples.
//!
//! A history that was packed names its inputs; later commands read lines from them only if they are unchanged.
//! Contents that agree in all samples count as equal.

use super::{Identity, InputFile};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Bytes of one sample.
const PIECE: usize = 16 << 10;

/// Number of samples, evenly spread from the beginning to the end. A file shorter than all samples together is read
/// whole.
const PIECES: u64 = 64;

impl Identity {
    /// The present state of an input; `None` if it cannot be read, or only once.
    pub fn of(input: &InputFile) -> Option<Identity> {
        if let Some(bytes) = &input.bytes {
            let size = bytes.len() as u64;
            return Some(Identity { size, modified: 0, digest: digest(&mut io::Cursor::new(&bytes[..]), size).ok()? });
        }
        Identity::of_file(&input.path)
    }

    pub(crate) fn of_file(path: &Path) -> Option<Identity> {
        let (size, modified) = Identity::outside(path)?;
        Some(Identity { size, modified, digest: digest(&mut File::open(path).ok()?, size).ok()? })
    }

    /// Size and modification time of a regular file. The time is 0 if it is unknown.
    pub(crate) fn outside(path: &Path) -> Option<(u64, i64)> {
        let data = std::fs::metadata(path).ok().filter(|data| data.is_file())?;
        let modified = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Some((data.len(), modified.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0)))
    }

    /// Whether the file at a path has this content: equal size, and equal time or digest.
    pub fn is_at(&self, path: &Path) -> bool {
        match Identity::outside(path) {
            Some((size, modified)) if size == self.size => {
                (modified == self.modified && modified != 0)
                    || Identity::of_file(path).is_some_and(|now| now.digest == self.digest)
            }
            _ => false,
        }
    }
}

/// Records the present state of inputs. Members of one archive share its state.
pub fn identify<'a>(inputs: impl IntoIterator<Item = &'a mut InputFile>) {
    let mut last: Option<(PathBuf, Option<Identity>)> = None;
    for input in inputs {
        let known = last.as_ref().filter(|(path, _)| input.member.is_some() && *path == input.path);
        input.identity = known.map_or_else(|| Identity::of(input), |(_, identity)| *identity);
        if input.member.is_some() && known.is_none() {
            last = Some((input.path.clone(), input.identity));
        }
    }
}

impl InputFile {
    /// Finds the file that an input was read from: at its path, or beside the container that names it. If none
    /// matches, the input is gone.
    #[doc(hidden)]
    pub fn look_for(&mut self, beside: Option<&Path>) {
        let Some(identity) = self.identity else {
            self.gone = true;
            return;
        };
        let near = beside.filter(|_| self.path.is_relative()).map(|folder| folder.join(&self.path));
        let name = beside.zip(self.path.file_name()).map(|(folder, name)| folder.join(name));
        let places = [Some(self.path.clone()), near, name];
        match places.into_iter().flatten().find(|place| identity.is_at(place)) {
            Some(place) => (self.path, self.gone) = (place, false),
            None => self.gone = true,
        }
    }
}

fn digest(content: &mut (impl Read + Seek), size: u64) -> io::Result<u32> {
    let mut buffer = vec![0; PIECE];
    let mut sum = 0;
    let spread = size > PIECES * PIECE as u64;
    let pieces = if spread { PIECES } else { size.div_ceil(PIECE as u64) };
    for piece in 0..pieces {
        if spread {
            // For large files the product exceeds 64 bits.
            let at = u128::from(size - PIECE as u64) * u128::from(piece) / u128::from(PIECES - 1);
            content.seek(SeekFrom::Start(at as u64))?;
        }
        let mut read = 0;
        while read < buffer.len() {
            match content.read(&mut buffer[read..])? {
                0 => break,
                n => read += n,
            }
        }
        sum = crc32c::crc32c_append(sum, &buffer[..read]);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::FileId;
    use std::fs;

    fn of(bytes: &[u8]) -> Identity {
        Identity::of(&InputFile::in_memory(FileId(0), "x", bytes)).expect("bytes can be read")
    }

    #[test]
    fn a_change_at_the_beginning_at_the_end_or_anywhere_in_a_short_file_is_another_content() {
        for length in [1, PIECE, PIECE * 64, PIECE * 64 + 1, 3 << 20] {
            let bytes = vec![b'a'; length];
            let changed = |at: usize| {
                let mut bytes = bytes.clone();
                bytes[at] = b'b';
                of(&bytes)
            };
            assert_eq!(of(&bytes), of(&bytes));
            assert_ne!(of(&bytes), changed(0));
            assert_ne!(of(&bytes), changed(length - 1));
            assert_ne!(of(&bytes), of(&bytes[1..]));
            if length <= PIECE * 64 {
                assert_ne!(of(&bytes), changed(length / 2));
            }
        }
        assert_eq!(of(b"").size, 0);
    }

    #[test]
    fn a_file_is_found_where_it_was_or_beside_the_container_and_only_as_it_was() {
        let folder = std::env::temp_dir().join(format!("retrograde-identity-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("there/logs")).unwrap();
        let path = folder.join("a.log");
        fs::write(&path, "one").unwrap();
        let mut input = InputFile { path: path.clone(), ..InputFile::default() };
        input.identity = Identity::of(&input);
        let look = |beside: Option<&Path>| {
            let mut input = input.clone();
            input.look_for(beside);
            (!input.gone).then_some(input.path)
        };
        assert_eq!(look(None), Some(path.clone()));
        // A copy has another time and the same content.
        fs::copy(&path, folder.join("there/a.log")).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!((look(None), look(Some(&folder.join("there")))), (None, Some(folder.join("there/a.log"))));
        fs::write(folder.join("there/a.log"), "two").unwrap();
        assert_eq!(look(Some(&folder.join("there"))), None);
        let mut piped = InputFile { path: "-".into(), ..InputFile::default() };
        assert_eq!(Identity::of(&piped), None);
        piped.look_for(None);
        assert!(piped.gone);
        fs::remove_dir_all(folder).unwrap();
    }
}
