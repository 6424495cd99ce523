//! Maps texts and small values to dense ids, in the order in which they first appear.

use super::ids::Symbol;
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::hash::{BuildHasher, Hash};

/// Hash table of ids. Half of the hash is kept beside the id, so growing and most comparisons need no access to the values.
#[derive(Clone, Debug, Default)]
pub(super) struct Index(HashTable<(u32, u32)>);

impl Index {
    /// The table position for half a hash.
    fn place(half: u32) -> u64 {
        u64::from(half).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// Half of a hash, which is kept. Both halves are in it: an integer that ends in 32 zero bits varies few bits of the upper one.
    pub fn half(hash: u64) -> u32 {
        (hash ^ (hash >> 32)) as u32
    }

    /// The id of a value with this half hash for which `is` holds.
    pub fn find(&self, half: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.0.find(Index::place(half), |&(id, other)| other == half && is(id)).map(|&(id, _)| id)
    }

    /// Inserts an id. Its value must not be in the table yet.
    pub fn insert(&mut self, half: u32, id: u32) {
        self.0.insert_unique(Index::place(half), (id, half), |&(_, half)| Index::place(half));
    }

    /// Reserves room for `more` further ids.
    #[cfg(feature = "container")]
    pub fn reserve(&mut self, more: usize) {
        self.0.reserve(more, |&(_, half)| Index::place(half));
    }

    /// The half hashes of ids 0 to `count`, by id.
    fn halves(&self, count: usize) -> Vec<u32> {
        let mut halves = vec![0; count];
        self.0.iter().for_each(|&(id, half)| halves[id as usize] = half);
        halves
    }
}

/// Interned texts in one growing buffer: one allocation for all, plus 16 bytes per text.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    text: String,
    ends: Vec<usize>,
    index: Index,
    /// The id of the empty text, the most frequent one.
    empty: Symbol,
}

impl Interner {
    /// The id of a text; a new one for a new text.
    pub fn intern(&mut self, text: &str) -> Symbol {
        if text.is_empty() && self.empty.is_some() {
            return self.empty;
        }
        self.intern_hashed(text, half(text))
    }

    fn intern_hashed(&mut self, text: &str, half: u32) -> Symbol {
        if let Some(id) = self.index.find(half, |id| slice(&self.text, &self.ends, id) == text) {
            return Symbol(id);
        }
        let id = self.ends.len() as u32;
        if text.is_empty() {
            self.empty = Symbol(id);
        }
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.index.insert(half, id);
        Symbol(id)
    }

    /// Interns all texts of another interner; returns their new ids by old id.
    pub fn absorb(&mut self, other: &Interner) -> Vec<Symbol> {
        let halves = other.index.halves(other.len());
        other.iter().zip(halves).map(|(text, half)| self.intern_hashed(text, half)).collect()
    }

    /// As [`Interner::intern`], but first compares with the text of `last`, the likely repeat, and sets `last` to the result.
    pub fn again(&mut self, last: &mut Symbol, text: &str) -> Symbol {
        if text.is_empty() {
            return self.intern(text);
        }
        if self.get(*last) != text {
            *last = self.intern(text);
        }
        *last
    }

    /// The id of a text that was interned before.
    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.index.find(half(text), |id| slice(&self.text, &self.ends, id) == text).map(Symbol)
    }

    /// The text of an id; empty for [`Symbol::NONE`].
    pub fn get(&self, id: Symbol) -> &str {
        if id.is_some() { slice(&self.text, &self.ends, id.0) } else { "" }
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All texts concatenated, in id order.
    #[cfg(feature = "container")]
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Splits concatenated texts by their lengths in bytes. `None` if the lengths do not fit the text, or if a text is repeated.
    #[cfg(feature = "container")]
    pub(super) fn of_texts(text: String, lengths: &[u32]) -> Option<Interner> {
        let mut interner = Interner { text, ends: Vec::with_capacity(lengths.len()), ..Interner::default() };
        let mut end = 0usize;
        for length in lengths {
            end = end.checked_add(*length as usize)?;
            interner.text.is_char_boundary(end).then_some(())?;
            interner.ends.push(end);
        }
        (interner.text.len() == end).then_some(())?;
        let (buffer, ends) = (&interner.text, &interner.ends);
        interner.index.reserve(ends.len());
        for id in 0..ends.len() as u32 {
            let text = slice(buffer, ends, id);
            let half = half(text);
            if interner.index.find(half, |other| slice(buffer, ends, other) == text).is_some() {
                return None;
            }
            interner.index.insert(half, id);
            if text.is_empty() {
                interner.empty = Symbol(id);
            }
        }
        Some(interner)
    }

    /// All texts in id order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len() as u32).map(|id| slice(&self.text, &self.ends, id))
    }
}

fn half(text: &str) -> u32 {
    Index::half(FxBuildHasher.hash_one(text))
}

fn slice<'t>(text: &'t str, ends: &[usize], id: u32) -> &'t str {
    let start = if id == 0 { 0 } else { ends[id as usize - 1] };
    &text[start..ends[id as usize]]
}

/// Interned values of a small type.
#[derive(Clone, Debug)]
pub struct Table<T> {
    values: Vec<T>,
    index: Index,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { values: Vec::new(), index: Index::default() }
    }
}

impl<T: Eq + Hash> Table<T> {
    /// The id of a value.
    pub fn intern(&mut self, value: T) -> u32 {
        let half = Index::half(FxBuildHasher.hash_one(&value));
        if let Some(id) = self.index.find(half, |id| self.values[id as usize] == value) {
            return id;
        }
        let id = self.values.len() as u32;
        self.values.push(value);
        self.index.insert(half, id);
        id
    }

    /// The id of a value, if it was interned.
    pub fn find(&self, value: &T) -> Option<u32> {
        self.index.find(Index::half(FxBuildHasher.hash_one(value)), |id| self.values[id as usize] == *value)
    }

    /// All values in id order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// All values in id order, without the lookup table and spare capacity.
    pub fn into_values(mut self) -> Vec<T> {
        self.values.shrink_to_fit();
        self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_an_id_and_the_empty_text_is_a_text() {
        let mut interner = Interner::default();
        let ids: Vec<_> = ["pods", "", "nodes", "pods", ""].iter().map(|t| interner.intern(t).0).collect();
        assert_eq!(ids, [0, 1, 2, 0, 1]);
        assert_eq!(interner.get(Symbol(2)), "nodes");
        assert_eq!(interner.get(Symbol::NONE), "");
        assert_eq!(interner.iter().collect::<Vec<_>>(), ["pods", "", "nodes"]);
        for n in 0..5_000 {
            interner.intern(&format!("pod-{n}"));
        }
        assert_eq!(interner.find("pod-4999").map(|s| interner.get(s)), Some("pod-4999"));
        assert_eq!(interner.find("absent"), None);
    }

    #[cfg(feature = "container")]
    #[test]
    fn texts_in_a_row_are_names_again_unless_one_is_there_twice() {
        let mut interner = Interner::default();
        ["pods", "", "é", "nodes"].iter().for_each(|text| _ = interner.intern(text));
        let again = Interner::of_texts(interner.text().to_owned(), &[4, 0, 2, 5]).expect("the same names");
        assert_eq!(again.iter().collect::<Vec<_>>(), ["pods", "", "é", "nodes"]);
        assert_eq!((again.find("é"), again.find(""), again.find("x")), (Some(Symbol(2)), Some(Symbol(1)), None));
        for lengths in [&[4, 0, 2, 4][..], &[4, 0, 2, 6], &[4, 0, 1, 6], &[4, 0, 0, 7], &[u32::MAX, 12]] {
            assert!(Interner::of_texts(interner.text().to_owned(), lengths).is_none(), "{lengths:?}");
        }
        assert!(Interner::of_texts("xx".to_owned(), &[1, 1]).is_none());
    }
}
