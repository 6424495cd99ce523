//! The record that a fact cites, and the words and keys that it names. Thousands of facts may cite one record of megabytes, such
//! as a transaction of an etcd watch or a list: after a few questions the record is indexed by its words.

use std::cell::{Cell, OnceCell};
use std::hash::{BuildHasher, BuildHasherDefault};

/// The record at a cited place.
#[derive(Debug)]
pub(super) struct CitedRecord {
    /// The line, from 1.
    pub line: u32,
    /// Audit ids of the audit events there. A packed batch holds several at one place.
    pub audit_ids: Vec<String>,
    /// The record's text, if it can be read again.
    text: String,
    /// Decoded etcd keys, which the record has as base64: each backwards, in order.
    etcd_keys: Vec<Vec<u8>>,
    /// How many bytes of text were searched.
    searched: Cell<usize>,
    index: OnceCell<Vec<Word>>,
}

/// A run of letters and digits: a hash of it, and where it begins.
type Word = (u32, u32);

/// After as many searches of the whole text, an index costs less.
const SEARCHES: usize = 32;

/// Limit on the places that are compared with one word. A word whose rarest part occurs more often may count as not found: its
/// value then rests on other records.
const PLACES: usize = 4096;

/// A shorter text is never indexed.
const MIN_INDEXED_BYTES: usize = 4096;

impl CitedRecord {
    pub(super) fn new(line: u32, audit_ids: Vec<String>, text: String, etcd_keys: Vec<String>) -> CitedRecord {
        let backwards = |key: String| key.bytes().rev().collect();
        let mut etcd_keys: Vec<Vec<u8>> = etcd_keys.into_iter().map(backwards).collect();
        etcd_keys.sort_unstable();
        CitedRecord { line, audit_ids, text, etcd_keys, searched: Cell::new(0), index: OnceCell::new() }
    }

    /// Whether the text contains a word, not as part of a longer number or name.
    pub(super) fn names(&self, word: &str) -> bool {
        let searched = self.searched.get();
        let few = self.text.len() <= MIN_INDEXED_BYTES || searched <= self.text.len().saturating_mul(SEARCHES);
        if few || u32::try_from(self.text.len()).is_err() {
            let found = self.text.match_indices(word).find(|(at, _)| is_alone(&self.text, *at, word));
            self.searched.set(searched.saturating_add(found.map_or(self.text.len(), |(at, _)| at)));
            return !word.is_empty() && found.is_some();
        }
        let index = self.index.get_or_init(|| {
            let mut index: Vec<Word> = words(&self.text).map(|(at, word)| (hash(word), at as u32)).collect();
            index.sort_unstable();
            index
        });
        let places = |part: &str| {
            let hash = hash(part);
            &index[index.partition_point(|word| word.0 < hash)..index.partition_point(|word| word.0 <= hash)]
        };
        // The part of the word that is rarest in the text.
        let rarest = words(word).map(|(at, part)| (at, places(part))).min_by_key(|(_, places)| places.len());
        // Every key, uid and revision has a letter or a digit.
        let Some((offset, places)) = rarest else { return false };
        places.iter().take(PLACES).any(|(_, at)| {
            let begin = (*at as usize).checked_sub(offset);
            let holds = |at: &usize| self.text.as_bytes()[*at..].starts_with(word.as_bytes());
            begin.filter(holds).is_some_and(|at| is_alone(&self.text, at, word))
        })
    }

    /// Whether an etcd key of the record ends with an object, such as `default/web-0`, as whole parts of the key.
    pub(super) fn has_etcd_key(&self, object: &str) -> bool {
        let end: Vec<u8> = object.bytes().rev().chain([b'/']).collect();
        let at = self.etcd_keys.partition_point(|key| *key < end);
        self.etcd_keys.get(at).is_some_and(|key| key.starts_with(&end))
    }
}

/// The runs of letters and digits of a text, with their offsets in bytes.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let runs = text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    runs.map(|run| (run.as_ptr() as usize - text.as_ptr() as usize, run))
}

fn hash(word: &str) -> u32 {
    BuildHasherDefault::<rustc_hash::FxHasher>::default().hash_one(word) as u32
}

/// Whether a word at an offset is no part of a longer number or name.
fn is_alone(text: &str, at: usize, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    !part(text[..at].chars().next_back()) && !part(text[at + word.len()..].chars().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record whose text is long enough for an index.
    fn record(text: &str, keys: &[&str]) -> CitedRecord {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        CitedRecord::new(1, Vec::new(), format!("{text}\n{}", ". ".repeat(MIN_INDEXED_BYTES)), keys)
    }

    #[test]
    fn an_index_finds_the_words_that_a_search_finds() {
        let text = r#"{"uid":"a1-b2-c3","rv":"1042","n":"größe-7","of":"web-0.web"} -x- 42.5"#;
        let words = [
            "a1-b2-c3",
            "b2",
            "b2-c",
            "1042",
            "042",
            "104",
            "größe-7",
            "größe",
            "gr",
            "ße-7",
            "web-0.web",
            "web-0",
            "0.web",
            "-x-",
            "x",
            "-",
            "",
            "none",
            "42",
            "42.5",
            "5",
            "\"rv\"",
            "rv\":\"1042",
        ];
        let (searched, indexed) = (record(text, &[]), record(text, &[]));
        indexed.searched.set(usize::MAX);
        for word in words {
            searched.searched.set(0);
            assert_eq!(searched.names(word), indexed.names(word), "{word}");
        }
        assert!(searched.index.get().is_none() && indexed.index.get().is_some());
        assert!(indexed.names("web-0.web") && !indexed.names("web-0.we") && !indexed.names(""));
    }

    #[test]
    fn parts_that_are_frequent_and_never_together_cost_a_limited_time() {
        let record = record(&"a b ".repeat(100_000), &[]);
        record.searched.set(usize::MAX);
        assert!((0..20_000).all(|_| !record.names("a-b")));
        assert!(record.names("a b") && record.names("b"));
    }

    #[test]
    fn a_key_ends_with_whole_parts() {
        let record = record("", &["/registry/pods/default/web-0", "/registry/nodes/web-0"]);
        assert!(record.has_etcd_key("default/web-0") && record.has_etcd_key("web-0"));
        assert!(!record.has_etcd_key("eb-0") && !record.has_etcd_key("default") && !record.has_etcd_key("other/web-0"));
    }

    #[test]
    fn many_questions_about_a_long_record_read_it_a_few_times() {
        let text: String = (0..50_000).map(|n| format!("uid-{n} ")).collect();
        let record = record(&text, &[]);
        assert!((0..50_000).rev().all(|n| record.names(&format!("uid-{n}"))));
        assert!(record.searched.get() <= (SEARCHES + 2) * record.text.len());
    }
}
