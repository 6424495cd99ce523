//! A hash table that grows in small steps: one large table would move all items at once, while many small ones grow one after the
//! other. Callers count [`IncrementalTable::growth`] before they insert, to keep within a memory limit.

use hashbrown::HashTable;

/// Items by hash.
#[derive(Debug)]
pub(super) struct IncrementalTable<T> {
    /// One table until it holds [`MAX_MOVED`] items, then [`SHARDS`].
    tables: Vec<HashTable<T>>,
    /// The capacity of all tables.
    room: usize,
}

/// Items that are moved at once, at most.
const MAX_MOVED: usize = 1 << 15;

/// A power of two.
const SHARDS: usize = 64;

impl<T> IncrementalTable<T> {
    pub(super) fn new() -> Self {
        IncrementalTable { tables: vec![HashTable::new()], room: 0 }
    }

    /// The index of the table for a hash. Its first and last bits choose the place within the table.
    fn table(&self, hash: u64) -> usize {
        (hash >> 40) as usize & (self.tables.len() - 1)
    }

    pub(super) fn find(&self, hash: u64, is_it: impl FnMut(&T) -> bool) -> Option<&T> {
        self.tables[self.table(hash)].find(hash, is_it)
    }

    /// Adds an item that is not there.
    pub(super) fn insert(&mut self, hash: u64, item: T, hash_of: impl Fn(&T) -> u64) {
        if self.divides() {
            let all = std::mem::take(&mut self.tables[0]);
            self.room = 0;
            self.tables.resize_with(SHARDS, || HashTable::with_capacity(MAX_MOVED / SHARDS));
            self.tables[0] = HashTable::with_capacity(MAX_MOVED / SHARDS);
            all.into_iter().for_each(|item| {
                let at = self.table(hash_of(&item));
                self.tables[at].insert_unique(hash_of(&item), item, &hash_of);
            });
            self.room = self.tables.iter().map(HashTable::capacity).sum();
        }
        let at = self.table(hash);
        let table = &mut self.tables[at];
        let before = table.capacity();
        table.insert_unique(hash, item, hash_of);
        self.room += table.capacity() - before;
    }

    fn divides(&self) -> bool {
        self.tables.len() == 1 && self.tables[0].len() == MAX_MOVED
    }

    /// Bytes held.
    pub(super) const fn bytes(&self) -> usize {
        bytes_of::<T>(self.room)
    }

    /// Additional bytes held while an item is added.
    pub(super) fn growth(&self, hash: u64) -> usize {
        let table = &self.tables[self.table(hash)];
        match table.capacity() {
            _ if self.divides() => bytes_of::<T>(2 * MAX_MOVED),
            room if room == table.len() => bytes_of::<T>(2 * room.max(4)),
            _ => 0,
        }
    }
}

/// Bytes of tables with this capacity.
const fn bytes_of<T>(room: usize) -> usize {
    room / 7 * 8 * (size_of::<T>() + 1)
}

/// A hash from half of one. Items that take long to hash keep only that half.
pub(super) const fn spread(half: u32) -> u64 {
    (half as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_found_and_no_table_grows_large_at_once() {
        let hash = |item: &u32| spread(item.wrapping_mul(0x85eb_ca6b));
        let mut shards = IncrementalTable::new();
        let mut most = 0;
        for item in 0..400_000 {
            assert!(shards.find(hash(&item), |other| *other == item).is_none());
            let (before, growth) = (shards.bytes(), shards.growth(hash(&item)));
            shards.insert(hash(&item), item, hash);
            assert!(shards.bytes() <= before + growth, "{item}: {before} and {growth} bytes, then {}", shards.bytes());
            most = most.max(growth);
        }
        assert!((0..400_000).all(|item| shards.find(hash(&item), |other| *other == item) == Some(&item)));
        assert!(most <= bytes_of::<u32>(2 * MAX_MOVED), "{most} bytes at once");
        assert!(shards.tables.iter().all(|table| table.len() > 400_000 / SHARDS / 2), "the hashes are not spread");
    }
}
