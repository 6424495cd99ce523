//! The stored rows of the revision order, one column per field. There are as many versions as the evidence has writes, and most
//! questions read only revisions. Rows are sorted by key, then revision; `Table::push` relies on callers for that order.

use super::version::{Change, Origin, Provenance, Version, VersionId};
use crate::history::{AttributesId, KeyId, OperationId, Revision, Symbol};
use rustc_hash::FxHashMap;

/// Revisions as one word each. Wider ones are in a separate map.
#[derive(Clone, Debug, Default)]
struct Revisions {
    words: Vec<u64>,
    wide: FxHashMap<u32, Revision>,
}

impl Revisions {
    /// Marks a revision that does not fit.
    const WIDE: u64 = u64::MAX;

    fn word(revision: Revision) -> u64 {
        u64::try_from(revision.value()).unwrap_or(Revisions::WIDE)
    }

    fn get(&self, index: usize) -> Revision {
        match self.words[index] {
            Revisions::WIDE => self.wide[&(index as u32)],
            word => Revision::from(word),
        }
    }

    fn push(&mut self, revision: Revision) {
        let word = Revisions::word(revision);
        if word == Revisions::WIDE {
            self.wide.insert(self.words.len() as u32, revision);
        }
        self.words.push(word);
    }

    /// See [`Table::insert`].
    fn insert(&mut self, new: &[(usize, Version)]) {
        let moved = |index: u32| index + new.partition_point(|(at, _)| *at <= index as usize) as u32;
        self.wide = self.wide.drain().map(|(index, revision)| (moved(index), revision)).collect();
        let inserted = new.iter().enumerate().map(|(before, (at, version))| ((at + before) as u32, version.revision));
        self.wide.extend(inserted.filter(|(_, revision)| Revisions::word(*revision) == Revisions::WIDE));
        insert(&mut self.words, new, |version| Revisions::word(version.revision));
    }
}

/// Inserts one field of new versions, each before the row at its index, without a second column.
fn insert<T: Copy>(column: &mut Vec<T>, new: &[(usize, Version)], field: impl Fn(&Version) -> T) {
    let Some((_, first)) = new.first() else { return };
    let mut end = column.len();
    column.reserve_exact(new.len());
    column.resize(end + new.len(), field(first));
    for (before, (at, version)) in new.iter().enumerate().rev() {
        column.copy_within(*at..end, at + before + 1);
        column[at + before] = field(version);
        end = *at;
    }
}

/// A revision for some of the versions.
#[derive(Clone, Debug, Default)]
pub(super) struct Until {
    versions: Vec<VersionId>,
    revisions: Revisions,
}

impl Until {
    /// Input: versions in order, each with its revision.
    pub(super) fn new(known: impl Iterator<Item = (VersionId, Revision)>) -> Until {
        let mut until = Until::default();
        for (version, revision) in known {
            until.versions.push(version);
            until.revisions.push(revision);
        }
        until.versions.shrink_to_fit();
        until.revisions.words.shrink_to_fit();
        until
    }

    pub(super) fn get(&self, version: VersionId) -> Option<Revision> {
        self.versions.binary_search(&version).ok().map(|at| self.revisions.get(at))
    }
}

/// All versions, by key, then revision.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    revisions: Revisions,
    keys: Vec<KeyId>,
    uids: Vec<Symbol>,
    attributes: Vec<AttributesId>,
    writers: Vec<OperationId>,
    rows: Vec<u32>,
    kinds: Vec<(Change, Provenance)>,
    /// By witness row: other evidence of the version that has a time.
    dated: Vec<Option<Origin>>,
}

impl Table {
    /// Reserves room for this number of versions.
    pub(super) fn with_capacity(versions: usize) -> Table {
        Table {
            revisions: Revisions { words: Vec::with_capacity(versions), wide: FxHashMap::default() },
            keys: Vec::with_capacity(versions),
            uids: Vec::with_capacity(versions),
            attributes: Vec::with_capacity(versions),
            writers: Vec::with_capacity(versions),
            rows: Vec::with_capacity(versions),
            kinds: Vec::with_capacity(versions),
            dated: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn get(&self, index: usize) -> Version {
        let (change, provenance) = self.kinds[index];
        Version {
            revision: self.revisions.get(index),
            key: self.keys[index],
            uid: self.uids[index],
            change,
            attributes: self.attributes[index],
            writer: self.writers[index],
            provenance,
            row: self.rows[index],
            dated: self.dated_by(Origin { provenance, row: self.rows[index] }),
        }
    }

    /// The evidence that dates a version of an origin.
    fn dated_by(&self, origin: Origin) -> Origin {
        match origin.provenance {
            Provenance::Witness => self.dated.get(origin.row as usize).copied().flatten().unwrap_or(origin),
            _ => origin,
        }
    }

    /// Keeps the dating evidence if it is not the origin.
    fn set_dated(&mut self, version: &Version) {
        if version.dated != version.origin() {
            let at = version.row as usize;
            self.dated.resize(self.dated.len().max(at + 1), None);
            self.dated[at] = Some(version.dated);
        }
    }

    /// The versions with one kind of change.
    pub(super) fn of_change(&self, change: Change) -> impl Iterator<Item = Version> {
        let found = self.kinds.iter().enumerate().filter(move |(_, kind)| kind.0 == change);
        found.map(|(index, _)| self.get(index))
    }

    pub(super) fn key(&self, index: usize) -> KeyId {
        self.keys[index]
    }

    pub(super) fn revision(&self, index: usize) -> Revision {
        self.revisions.get(index)
    }

    pub(super) fn writer(&self, index: usize) -> OperationId {
        self.writers[index]
    }

    pub(super) fn set_writer(&mut self, index: usize, writer: OperationId) {
        self.writers[index] = writer;
    }

    pub(super) fn push(&mut self, version: Version) {
        self.set_dated(&version);
        self.revisions.push(version.revision);
        self.keys.push(version.key);
        self.uids.push(version.uid);
        self.attributes.push(version.attributes);
        self.writers.push(version.writer);
        self.rows.push(version.row);
        self.kinds.push((version.change, version.provenance));
    }

    /// Replaces a version by one with the same key and revision.
    pub(super) fn set(&mut self, index: usize, version: Version) {
        self.set_dated(&version);
        self.uids[index] = version.uid;
        self.attributes[index] = version.attributes;
        self.writers[index] = version.writer;
        self.rows[index] = version.row;
        self.kinds[index] = (version.change, version.provenance);
    }

    /// Inserts versions, each before the row at its index; indices ascend and refer to the table before the call.
    pub(super) fn insert(&mut self, new: &[(usize, Version)]) {
        new.iter().for_each(|(_, version)| self.set_dated(version));
        self.revisions.insert(new);
        insert(&mut self.keys, new, |version| version.key);
        insert(&mut self.uids, new, |version| version.uid);
        insert(&mut self.attributes, new, |version| version.attributes);
        insert(&mut self.writers, new, |version| version.writer);
        insert(&mut self.rows, new, |version| version.row);
        insert(&mut self.kinds, new, |version| (version.change, version.provenance));
    }

    /// The index of a version, or the index at which it would be inserted.
    pub(super) fn find(&self, key: KeyId, revision: Revision) -> Result<usize, usize> {
        let from = self.keys.partition_point(|k| *k < key);
        let to = from + self.keys[from..].partition_point(|k| *k == key);
        let at = self.part(from..to).through(revision) + from;
        match at.checked_sub(1).filter(|&at| at >= from && self.revision(at) == revision) {
            Some(at) => Ok(at),
            None => Err(at),
        }
    }

    /// The versions in a range of rows.
    pub(super) fn part(&self, range: std::ops::Range<usize>) -> Versions<'_> {
        Versions { table: self, start: range.start, end: range.end }
    }
}

/// Consecutive versions, by key, then revision.
#[derive(Clone, Copy, Debug)]
pub struct Versions<'t> {
    table: &'t Table,
    start: usize,
    end: usize,
}

impl<'t> Versions<'t> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// One of them.
    pub fn get(&self, index: usize) -> Option<Version> {
        (index < self.len()).then(|| self.table.get(self.start + index))
    }

    /// The first one.
    pub fn first(&self) -> Option<Version> {
        self.get(0)
    }

    /// The last one.
    pub fn last(&self) -> Option<Version> {
        self.get(self.len().checked_sub(1)?)
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Version> + ExactSizeIterator + use<'t> {
        let table = self.table;
        (self.start..self.end).map(|index| table.get(index))
    }

    /// Each of them with the one after it.
    pub fn pairs(&self) -> impl Iterator<Item = (Version, Version)> + use<'t> {
        self.iter().zip(self.iter().skip(1))
    }

    /// The number of versions at or below a revision. Only for versions of one key.
    pub fn through(&self, revision: Revision) -> usize {
        let (mut from, mut to) = (self.start, self.end);
        while from < to {
            let middle = from + (to - from) / 2;
            if self.table.revision(middle) <= revision { from = middle + 1 } else { to = middle }
        }
        from - self.start
    }

    /// The versions in (after, through]. Only for versions of one key.
    pub(super) fn between(&self, after: Revision, through: Revision) -> Versions<'t> {
        let (from, to) = (self.through(after), self.through(through));
        Versions { table: self.table, start: self.start + from, end: self.start + to.max(from) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(key: u32, revision: u128) -> Version {
        Version {
            revision: Revision::new(revision),
            key: KeyId(key),
            uid: Symbol(revision as u32 ^ key),
            change: Change::Put,
            attributes: AttributesId(key + 1),
            writer: OperationId(key + 2),
            provenance: Provenance::Event,
            row: revision as u32,
            dated: Origin { provenance: Provenance::Event, row: revision as u32 },
        }
    }

    fn all(table: &Table) -> Vec<String> {
        table.part(0..table.len()).iter().map(|version| format!("{version:?}")).collect()
    }

    #[test]
    fn versions_put_between_others_leave_all_as_they_are() {
        let wide = 1 << 64;
        let known = [(1, 5), (1, wide), (1, wide + 5), (2, 1), (4, u128::from(u64::MAX)), (4, wide)];
        let new = [(0, wide + 9), (1, 4), (1, wide + 1), (1, wide + 2), (3, 7), (4, wide + 1), (9, 1)];
        for mask in 0..1 << new.len() {
            let mut table = Table::with_capacity(known.len());
            known.iter().for_each(|&(key, revision)| table.push(version(key, revision)));
            let chosen = new.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
            let chosen: Vec<Version> = chosen.map(|(_, &(key, revision))| version(key, revision)).collect();
            let place = |v: &Version| table.find(v.key, v.revision).expect_err("it is new");
            let placed: Vec<(usize, Version)> = chosen.iter().map(|v| (place(v), *v)).collect();
            table.insert(&placed);
            let mut expected: Vec<Version> = known.iter().map(|&(key, revision)| version(key, revision)).collect();
            expected.extend(&chosen);
            expected.sort_by_key(|v| (v.key, v.revision));
            assert_eq!(all(&table), expected.iter().map(|version| format!("{version:?}")).collect::<Vec<_>>());
            for (at, v) in expected.iter().enumerate() {
                assert_eq!(table.find(v.key, v.revision), Ok(at));
            }
        }
    }

    #[test]
    fn versions_of_a_key_are_counted_through_a_revision() {
        let mut table = Table::default();
        for (key, revision) in [(1, 5), (1, 8), (1, 1 << 64), (2, 3)] {
            table.push(version(key, revision));
        }
        let of_key = table.part(0..3);
        let through = |revision| of_key.through(Revision::new(revision));
        assert_eq!([4, 5, 7, 8, u128::MAX].map(through), [0, 1, 1, 2, 3]);
        let between = |after, to| of_key.between(Revision::new(after), Revision::new(to)).len();
        assert_eq!((between(5, 8), between(0, u128::MAX), between(8, 5)), (1, 3, 0));
    }
}
