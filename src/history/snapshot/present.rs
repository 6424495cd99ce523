//! Finds files with the content of packed inputs. The size is compared first. A digest is computed only if the modification time
//! does not decide, and once per file.

use crate::ingest::{Identity, InputFile, Member};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::{Path, PathBuf};

/// Present state of files, cached.
#[derive(Default)]
pub(super) struct Now {
    outside: FxHashMap<PathBuf, Option<(u64, i64)>>,
    digests: FxHashMap<PathBuf, Option<u32>>,
}

impl Now {
    /// Size and modification time of a regular file. All files of an archive share those of the archive.
    fn outside(&mut self, path: &Path) -> Option<(u64, i64)> {
        if let Some(known) = self.outside.get(path) {
            return *known;
        }
        let outside = Identity::outside(path);
        self.outside.insert(path.to_owned(), outside);
        outside
    }

    fn digest(&mut self, path: &Path) -> Option<u32> {
        if let Some(known) = self.digests.get(path) {
            return *known;
        }
        let digest = Identity::of_file(path).map(|identity| identity.digest);
        self.digests.insert(path.to_owned(), digest);
        digest
    }
}

/// Position in an archive, if any, and size.
type Shape = (Option<Member>, u64);

/// Files, indexed for look-up by packed inputs.
#[derive(Default)]
pub(super) struct Files {
    by_shape: FxHashMap<Shape, Alike>,
}

/// Files of one shape.
#[derive(Default)]
struct Alike {
    /// Each with its rank among all files, in order.
    files: Vec<(usize, PathBuf)>,
    /// The first file for each time.
    by_time: FxHashMap<i64, usize>,
    /// The first file for each digest, computed on demand.
    by_digest: Option<FxHashMap<u32, usize>>,
}

impl Files {
    /// Indexes files, in order.
    pub fn of<'f>(files: impl Iterator<Item = &'f InputFile>, now: &mut Now) -> Files {
        let mut found = Files::default();
        for (at, file) in files.enumerate().filter(|(_, file)| file.bytes.is_none()) {
            let Some((size, modified)) = now.outside(&file.path) else { continue };
            let alike = found.by_shape.entry((file.member.clone(), size)).or_default();
            alike.files.push((at, file.path.clone()));
            alike.by_time.entry(modified).or_insert(at);
        }
        found
    }

    /// The rank of the first file with the content of a packed input.
    pub fn find(&mut self, packed: &InputFile, now: &mut Now) -> Option<usize> {
        let identity = packed.identity?;
        let alike = self.by_shape.get_mut(&(packed.member.clone(), identity.size))?;
        let by_time = alike.by_time.get(&identity.modified).copied().filter(|_| identity.modified != 0);
        if by_time.is_some() && by_time == alike.files.first().map(|(at, _)| *at) {
            return by_time;
        }
        let files = &alike.files;
        let by_digest = alike.by_digest.get_or_insert_with(|| {
            let mut by_digest = FxHashMap::default();
            for (at, path) in files {
                if let Some(digest) = now.digest(path) {
                    by_digest.entry(digest).or_insert(*at);
                }
            }
            by_digest
        });
        by_time.into_iter().chain(by_digest.get(&identity.digest).copied()).min()
    }
}

/// Contents of packed inputs, indexed for look-up by present files.
pub(super) struct Packed<'p> {
    times: FxHashSet<(Option<&'p Member>, u64, i64)>,
    digests: FxHashMap<(Option<&'p Member>, u64), FxHashSet<u32>>,
}

impl<'p> Packed<'p> {
    /// Indexes the inputs of histories.
    pub fn of(inputs: impl Iterator<Item = &'p InputFile>) -> Packed<'p> {
        let (mut times, mut digests) = (FxHashSet::default(), FxHashMap::default());
        for input in inputs {
            let Some(identity) = input.identity else { continue };
            let member = input.member.as_ref();
            times.extend((identity.modified != 0).then_some((member, identity.size, identity.modified)));
            let alike: &mut FxHashSet<u32> = digests.entry((member, identity.size)).or_default();
            alike.insert(identity.digest);
        }
        Packed { times, digests }
    }

    /// Whether the file has the content of a packed input.
    pub fn has(&self, file: &InputFile, now: &mut Now) -> bool {
        let Some((size, modified)) = now.outside(&file.path).filter(|_| file.bytes.is_none()) else { return false };
        let member = file.member.as_ref();
        self.digests.get(&(member, size)).is_some_and(|digests| {
            self.times.contains(&(member, size, modified))
                || now.digest(&file.path).is_some_and(|digest| digests.contains(&digest))
        })
    }
}
