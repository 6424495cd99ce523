//! Values as etcd's robustness suite records them.

use crate::history::Symbol;
use crate::history::interner::Interner;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Values of this length and more are recorded as their hash.
pub const HASHED: usize = 20;

/// A value: short ones whole, long ones as their hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Value {
    /// The value. A long one stands here where its bytes are no text, so that its hash is not known.
    Text(Symbol),
    /// FNV-1a of 32 bits of a long one.
    Hash(u32),
}

/// Identifier of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ValueId(pub u32);

/// Interned values; the first one is empty.
#[derive(Clone, Debug)]
pub struct Values {
    texts: Interner,
    rows: Vec<Value>,
    /// By text its value.
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

/// Stands for the value of a text that has none.
const NO_VALUE: ValueId = ValueId(u32::MAX);

impl Values {
    /// None yet, of texts.
    fn of_texts(texts: Interner) -> Values {
        let of_text = vec![NO_VALUE; texts.len()];
        Values { texts, rows: Vec::new(), of_text, hashes: FxHashMap::default() }
    }

    /// The id of a value in a report: its text, or its hash where there is one.
    ///
    /// Clients recorded what they put in transactions without hashing it, whatever its length, while reads, watches and logs
    /// have the hash (etcd `tests/robustness/model/history.go`, toEtcdOperation). Both must be one value.
    pub fn recorded(&mut self, text: &str, hash: u32) -> ValueId {
        match hash {
            0 => self.text(text),
            hash => self.hash(hash),
        }
    }

    /// Whether a value is what a report has so; false may also be that it takes more to tell.
    pub(super) fn is_recorded(&self, id: ValueId, text: &str, hash: u32) -> bool {
        match self.rows.get(id.0 as usize) {
            Some(Value::Text(symbol)) => hash == 0 && self.texts.get(*symbol) == text,
            Some(Value::Hash(known)) => hash == *known,
            None => false,
        }
    }

    /// The id of a value's bytes.
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

    /// How they are kept.
    #[cfg(feature = "container")]
    pub(in super::super) fn rows(&self) -> (&Interner, &[Value]) {
        (&self.texts, &self.rows)
    }

    /// Values that were kept so; `None` where they cannot have been: the first one is the empty text, and each is there once.
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

    /// Takes in the values of another table; returns where they went.
    pub(super) fn absorb(&mut self, other: &Values) -> Vec<ValueId> {
        let symbols = self.texts.absorb(&other.texts);
        let taken = other.rows.iter().map(|value| match *value {
            Value::Text(symbol) => self.symbol(symbols[symbol.index()]),
            Value::Hash(hash) => self.hash(hash),
        });
        taken.collect()
    }

    /// Gives every text that is no number a name in its place, `text 3`: what programs keep in etcd may be secret. Which values are
    /// equal stays as it is. To be done when all values are known.
    pub(super) fn name_texts(&mut self) {
        let mut named = Interner::default();
        for at in 0..self.texts.len() {
            let text = self.texts.get(Symbol(at as u32));
            if text.is_empty() || is_number(text) {
                named.intern(text);
            } else {
                // What its length and its characters leave open about a text of which only the hash is known stays open.
                let unknown = if text.len() < HASHED { "" } else { UNREADABLE };
                named.intern(&format!("text {at}{unknown}"));
            }
        }
        self.texts = named;
    }

    /// A value.
    pub fn get(&self, id: ValueId) -> Value {
        self.rows[id.0 as usize]
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none. There always is: the empty one.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether two values are the same; `None`: one of them lost its bytes when it was recorded.
    pub fn same(&self, a: ValueId, b: ValueId) -> Option<bool> {
        match (self.get(a), self.get(b)) {
            _ if a == b => Some(true),
            (Value::Text(_), Value::Hash(_)) => (!self.is_unhashed(a)).then_some(false),
            (Value::Hash(_), Value::Text(_)) => (!self.is_unhashed(b)).then_some(false),
            _ => Some(false),
        }
    }

    /// Whether a value is a long one of which the hash is not known: it may be the same as any of which only that is.
    pub fn is_unhashed(&self, id: ValueId) -> bool {
        matches!(self.get(id), Value::Text(text) if self.texts.get(text).len() >= HASHED)
    }

    /// A value as people read it.
    pub fn shown(&self, id: ValueId) -> Cow<'_, str> {
        match self.get(id) {
            Value::Text(text) => Cow::Borrowed(self.texts.get(text)),
            Value::Hash(hash) => Cow::Owned(format!("#{hash:08x}")),
        }
    }
}

/// Behind the name of a text that has as many bytes as a hash stands for, and has none, because some of its bytes are no text.
const UNREADABLE: &str = " with bytes that are no text \u{fffd}";

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// FNV-1a of 32 bits: what stands for a long value.
pub fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Bytes as Go writes them into JSON: each byte that is no UTF-8 becomes U+FFFD.
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
