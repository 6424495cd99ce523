//! Values as etcd's robustness suite records them: short ones as text, long ones as a hash.

use crate::history::Symbol;
use crate::history::interner::Interner;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Length in bytes from which a value is recorded as its hash.
pub const HASHED: usize = 20;

/// A value: a short one as text, a long one as its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Value {
    /// The text. Also a long value whose bytes are not all text, since its hash is then unknown.
    Text(Symbol),
    /// The 32-bit FNV-1a hash of a long value.
    Hash(u32),
}

/// Id of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ValueId(pub u32);

/// Interned values. The first one is empty.
#[derive(Clone, Debug)]
pub struct Values {
    texts: Interner,
    rows: Vec<Value>,
    /// The value of each text.
    of_text: Vec<ValueId>,
    hashes: FxHashMap<u32, ValueId>,
}

impl Default for Values {
    fn default() -> Self {
        let mut values = Values::of_texts(Interner::default());
        values.text("");
        values
    }
}

/// Marks a text that is no value.
const NO_VALUE: ValueId = ValueId(u32::MAX);

impl Values {
    /// Without values, for these texts.
    fn of_texts(texts: Interner) -> Values {
        let of_text = vec![NO_VALUE; texts.len()];
        Values { texts, rows: Vec::new(), of_text, hashes: FxHashMap::default() }
    }

    /// Interns a value from a report, given by its text or, unless 0, by its hash.
    ///
    /// Clients record the values that they put in transactions as text, whatever their length. Reads, watches and logs have the
    /// hash (etcd `tests/robustness/model/history.go`, toEtcdOperation). Both must yield one id.
    pub fn recorded(&mut self, text: &str, hash: u32) -> ValueId {
        match hash {
            0 => self.text(text),
            hash => self.hash(hash),
        }
    }

    /// Whether a value certainly is the one in a report. `false` may also mean that a full comparison is needed.
    pub(super) fn is_recorded(&self, id: ValueId, text: &str, hash: u32) -> bool {
        match self.rows.get(id.0 as usize) {
            Some(Value::Text(symbol)) => hash == 0 && self.texts.get(*symbol) == text,
            Some(Value::Hash(known)) => hash == *known,
            None => false,
        }
    }

    /// Interns a value given by its bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> ValueId {
        if bytes.len() < HASHED {
            return self.text(&text(bytes));
        }
        self.hash(hash(bytes))
    }

    fn text(&mut self, text: &str) -> ValueId {
        if text.len() >= HASHED && !text.contains(char::REPLACEMENT_CHARACTER) {
            return self.hash(hash(text.as_bytes()));
        }
        let symbol = self.texts.intern(text);
        self.symbol(symbol)
    }

    fn hash(&mut self, hash: u32) -> ValueId {
        *self.hashes.entry(hash).or_insert_with(|| {
            self.rows.push(Value::Hash(hash));
            ValueId(self.rows.len() as u32 - 1)
        })
    }

    fn symbol(&mut self, symbol: Symbol) -> ValueId {
        let at = symbol.index();
        if at >= self.of_text.len() {
            self.of_text.resize(at + 1, NO_VALUE);
        }
        if self.of_text[at] == NO_VALUE {
            self.of_text[at] = ValueId(self.rows.len() as u32);
            self.rows.push(Value::Text(symbol));
        }
        self.of_text[at]
    }

    /// The storage, for a container.
    #[cfg(feature = "container")]
    pub(in super::super) fn rows(&self) -> (&Interner, &[Value]) {
        (&self.texts, &self.rows)
    }

    /// Values from the storage of a container. `None` if it is not valid: the first must be the empty text, and each must occur
    /// once.
    #[cfg(feature = "container")]
    pub(in super::super) fn of_rows(texts: Interner, rows: Vec<Value>) -> Option<Values> {
        let known = |value: &Value| !matches!(value, Value::Text(text) if text.index() >= texts.len());
        let empty = matches!(rows.first(), Some(Value::Text(text)) if texts.find("") == Some(*text));
        (empty && rows.iter().all(known)).then_some(())?;
        let mut values = Values::of_texts(texts);
        for (at, row) in rows.into_iter().enumerate() {
            let id = match row {
                Value::Text(symbol) => values.symbol(symbol),
                Value::Hash(hash) => values.hash(hash),
            };
            (id.0 as usize == at).then_some(())?;
        }
        Some(values)
    }

    /// Interns the values of another table; returns their new ids by old id.
    pub(super) fn absorb(&mut self, other: &Values) -> Vec<ValueId> {
        let symbols = self.texts.absorb(&other.texts);
        let taken = other.rows.iter().map(|value| match *value {
            Value::Text(symbol) => self.symbol(symbols[symbol.index()]),
            Value::Hash(hash) => self.hash(hash),
        });
        taken.collect()
    }

    /// Replaces every text that is no number by a name such as `text 3`, since programs may keep secrets in etcd. Equality of
    /// values is preserved. Call it after all values are interned.
    pub(super) fn name_texts(&mut self) {
        let mut named = Interner::default();
        for at in 0..self.texts.len() {
            let text = self.texts.get(Symbol(at as u32));
            if text.is_empty() || is_number(text) {
                named.intern(text);
            } else {
                // A text with unknown bytes keeps the length and the mark that make its comparison undecided.
                let unknown = if text.len() < HASHED { "" } else { UNREADABLE };
                named.intern(&format!("text {at}{unknown}"));
            }
        }
        self.texts = named;
    }

    /// The value of an id.
    pub fn get(&self, id: ValueId) -> Value {
        self.rows[id.0 as usize]
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Never true: the empty value is always there.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether two values are equal. `None` if one of them lost bytes in the recording, so that its hash is unknown.
    pub fn same(&self, a: ValueId, b: ValueId) -> Option<bool> {
        match (self.get(a), self.get(b)) {
            _ if a == b => Some(true),
            (Value::Text(_), Value::Hash(_)) => (!self.is_unhashed(a)).then_some(false),
            (Value::Hash(_), Value::Text(_)) => (!self.is_unhashed(b)).then_some(false),
            _ => Some(false),
        }
    }

    /// Whether the hash of a long value is unknown, so that it may equal any hash.
    pub fn is_unhashed(&self, id: ValueId) -> bool {
        matches!(self.get(id), Value::Text(text) if self.texts.get(text).len() >= HASHED)
    }

    /// A value in reports.
    pub fn shown(&self, id: ValueId) -> Cow<'_, str> {
        match self.get(id) {
            Value::Text(text) => Cow::Borrowed(self.texts.get(text)),
            Value::Hash(hash) => Cow::Owned(format!("#{hash:08x}")),
        }
    }
}

/// Appended to the name of a text of at least [`HASHED`] bytes without a known hash, since some of its bytes are no text.
const UNREADABLE: &str = " with bytes that are no text \u{fffd}";

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// 32-bit FNV-1a, which the suite records instead of a long value.
pub fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Bytes as Go writes them in JSON: each invalid byte becomes U+FFFD.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_its_hash_however_it_was_recorded() {
        let mut values = Values::default();
        let letters = "abcdefghijklmnopqrstuvwxyz";
        let hash = values.recorded("", 2_965_113_986);
        assert_eq!(values.recorded(letters, 0), hash);
        assert_eq!(values.bytes(letters.as_bytes()), hash);
        assert_eq!(values.get(hash), Value::Hash(2_965_113_986));
        let short = values.recorded("nineteen bytes long", 0);
        assert_eq!((values.bytes(b"nineteen bytes long"), &*values.shown(short)), (short, "nineteen bytes long"));
        assert_eq!((values.recorded("", 0), values.bytes(b"")), (ValueId(0), ValueId(0)));
    }

    #[test]
    fn texts_get_names_and_stay_equal_and_different_as_they_were() {
        let mut values = Values::default();
        let odd = "hidden\u{fffd} hidden\u{fffd} hidden";
        let ids = ["", "12", "-7", "hidden", "other", odd].map(|text| values.recorded(text, 0));
        let hash = values.bytes(&[0xff; 40]);
        let same = |values: &Values| ids.map(|a| ids.map(|b| values.same(a, b)));
        let (before, open) = (same(&values), values.same(ids[5], hash));
        values.name_texts();
        assert_eq!((same(&values), values.same(ids[5], hash)), (before, open));
        let shown = ids.map(|id| values.shown(id).into_owned());
        assert_eq!(shown[..5], ["", "12", "-7", "text 3", "text 4"]);
        assert!(shown[5].starts_with("text 5 with bytes"), "{}", shown[5]);
    }

    #[test]
    fn bytes_that_are_no_text_compare_as_far_as_they_were_recorded() {
        let mut values = Values::default();
        let (a, b) = (values.bytes(b"a\xff\xfe"), values.recorded("a\u{fffd}\u{fffd}", 0));
        assert_eq!(a, b);
        let long = values.recorded(&"\u{fffd}".repeat(20), 0);
        let hash = values.bytes(&[0xff; 20]);
        assert_eq!(
            (values.same(long, hash), values.same(a, hash), values.same(hash, hash)),
            (None, Some(false), Some(true))
        );
    }
}
