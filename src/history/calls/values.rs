//! The values of an operation log, hash-consed: equal values are stored once.

use super::super::ids::{Symbol, ValueId};
use super::super::interner::Interner;
use crate::ingest::call::{Datum, Node};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::hash::BuildHasher;

/// Characters of a value that are rendered before its middle is cut out.
const MAX_RENDERED_CHARACTERS: usize = 1 << 16;

/// A value. Equal values have one [`ValueId`] regardless of notation: a list equals a vector with equal elements, and sets and
/// maps have no order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Value {
    /// `nil`, `null`.
    Nil,
    /// `true`, `false`.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// Any other number, as text.
    Number(Symbol),
    /// A text.
    Text(Symbol),
    /// A character.
    Char(char),
    /// A keyword.
    Keyword(Symbol),
    /// A symbol of EDN.
    Word(Symbol),
    /// A list or vector.
    Sequence(Box<[ValueId]>),
    /// A set, each element once, ascending by id.
    Set(Box<[ValueId]>),
    /// A map: key and value in turn, ascending by the ids of the keys.
    Map(Box<[ValueId]>),
    /// A value under a tag.
    Tagged(Symbol, ValueId),
}

/// All values of a log.
#[derive(Clone, Debug, Default)]
pub struct Values {
    rows: Vec<Value>,
    table: HashTable<u32>,
    /// Texts, names and tags.
    pub texts: Interner,
}

impl Values {
    /// A value.
    pub fn get(&self, id: ValueId) -> &Value {
        const NIL: Value = Value::Nil;
        self.rows.get(id.index()).unwrap_or(&NIL)
    }

    /// The storage, for a container.
    #[cfg(feature = "container")]
    pub(in super::super) fn rows(&self) -> &[Value] {
        &self.rows
    }

    /// Values from the storage of a container. `None` if it is not valid: a value must consist of earlier ones and occur once.
    #[cfg(feature = "container")]
    pub(in super::super) fn of_rows(rows: Vec<Value>, texts: Interner) -> Option<Values> {
        let mut table = HashTable::with_capacity(rows.len());
        for (at, value) in rows.iter().enumerate() {
            let (is_text, is_part) = (|s: &Symbol| s.index() < texts.len(), |id: &ValueId| id.index() < at);
            let sound = match value {
                Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Char(_) => true,
                Value::Number(text) | Value::Text(text) | Value::Keyword(text) | Value::Word(text) => is_text(text),
                Value::Sequence(parts) => parts.iter().all(is_part),
                Value::Set(parts) => parts.iter().all(is_part) && parts.is_sorted_by(|a, b| a < b),
                Value::Map(parts) => {
                    let pairs = parts.chunks_exact(2);
                    let whole = pairs.remainder().is_empty() && parts.iter().all(is_part);
                    whole && pairs.map(|pair| (pair[0], pair[1])).is_sorted()
                }
                Value::Tagged(tag, inner) => is_text(tag) && is_part(inner),
            };
            let hash = |&at: &u32| FxBuildHasher.hash_one(&rows[at as usize]);
            let here = hash(&(at as u32));
            if !sound || table.find(here, |&other: &u32| rows[other as usize] == *value).is_some() {
                return None;
            }
            table.insert_unique(here, at as u32, hash);
        }
        Some(Values { rows, table, texts })
    }

    /// Number of distinct values.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text of a text, keyword or symbol.
    pub fn text(&self, id: ValueId) -> Option<&str> {
        match self.get(id) {
            Value::Text(text) | Value::Keyword(text) | Value::Word(text) if id.is_some() => Some(self.texts.get(*text)),
            _ => None,
        }
    }

    /// The elements of a sequence.
    pub fn sequence(&self, id: ValueId) -> Option<&[ValueId]> {
        match self.get(id) {
            Value::Sequence(elements) => Some(elements),
            _ => None,
        }
    }

    /// Whether it is `nil`. No value at all is not `nil`.
    pub fn is_nil(&self, id: ValueId) -> bool {
        id.is_some() && *self.get(id) == Value::Nil
    }

    /// The id of a value.
    pub fn intern(&mut self, value: Value) -> ValueId {
        let rows = &self.rows;
        let hash = FxBuildHasher.hash_one(&value);
        let entry =
            self.table.entry(hash, |&at| rows[at as usize] == value, |&at| FxBuildHasher.hash_one(&rows[at as usize]));
        match entry {
            hashbrown::hash_table::Entry::Occupied(known) => ValueId(*known.get()),
            hashbrown::hash_table::Entry::Vacant(vacant) => {
                let id = rows.len() as u32;
                vacant.insert(id);
                self.rows.push(value);
                ValueId(id)
            }
        }
    }

    /// Interns a parsed value.
    pub fn take(&mut self, datum: &Datum<'_>) -> ValueId {
        let Some((whole, parts)) = datum.0.split_last() else { return ValueId::NONE };
        let mut open: Vec<ValueId> = Vec::new();
        for node in parts {
            let value = self.value(node, &mut open);
            open.push(self.intern(value));
        }
        let value = self.value(whole, &mut open);
        self.intern(value)
    }

    /// The value of a node in postfix order; `open` is the stack of values before it.
    fn value(&mut self, node: &Node<'_>, open: &mut Vec<ValueId>) -> Value {
        let parts = |open: &mut Vec<ValueId>, count: u32| -> Box<[ValueId]> {
            open.split_off(open.len().saturating_sub(count as usize)).into()
        };
        match node {
            Node::Nil => Value::Nil,
            Node::Bool(truth) => Value::Bool(*truth),
            Node::Int(number) => Value::Int(*number),
            Node::Number(number) => Value::Number(self.texts.intern(number)),
            Node::Text(text) => Value::Text(self.texts.intern(text)),
            Node::Char(c) => Value::Char(*c),
            Node::Keyword(name) => Value::Keyword(self.texts.intern(name)),
            Node::Symbol(name) => Value::Word(self.texts.intern(name)),
            Node::Sequence(count) => Value::Sequence(parts(open, *count)),
            Node::Set(count) => set(parts(open, *count)),
            Node::Map(count) => map(&parts(open, count * 2)),
            Node::Tagged(tag) => match open.pop() {
                Some(inner) => Value::Tagged(self.texts.intern(tag), inner),
                None => Value::Nil,
            },
        }
    }

    /// Interns the values of another log; returns their new ids by old id.
    pub fn absorb(&mut self, other: &Values) -> Vec<ValueId> {
        let texts: Vec<Symbol> = other.texts.iter().map(|text| self.texts.intern(text)).collect();
        let text = |symbol: Symbol| texts[symbol.index()];
        let mut moved: Vec<ValueId> = Vec::with_capacity(other.rows.len());
        for row in &other.rows {
            let parts = |ids: &[ValueId]| -> Box<[ValueId]> { ids.iter().map(|id| moved[id.index()]).collect() };
            let value = match row {
                Value::Number(symbol) => Value::Number(text(*symbol)),
                Value::Text(symbol) => Value::Text(text(*symbol)),
                Value::Keyword(symbol) => Value::Keyword(text(*symbol)),
                Value::Word(symbol) => Value::Word(text(*symbol)),
                Value::Sequence(ids) => Value::Sequence(parts(ids)),
                Value::Set(ids) => set(parts(ids)),
                Value::Map(ids) => map(&parts(ids)),
                Value::Tagged(tag, inner) => Value::Tagged(text(*tag), moved[inner.index()]),
                Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Char(_) => row.clone(),
            };
            moved.push(self.intern(value));
        }
        moved
    }

    /// The value as EDN. If it has more than `most` characters, its middle is cut out, since the end holds the latest elements.
    pub fn brief(&self, id: ValueId, most: usize) -> String {
        let whole = self.show(id, MAX_RENDERED_CHARACTERS);
        let length = whole.chars().count();
        if length <= most {
            return whole;
        }
        let head: String = whole.chars().take(most / 3).collect();
        let tail: String = whole.chars().skip(length - (most - most / 3)).collect();
        format!("{head}\u{2026}{tail}")
    }

    /// The value as EDN, cut after `most` characters. It may contain control characters, so escape it for a terminal.
    pub fn show(&self, id: ValueId, most: usize) -> String {
        enum Task {
            Value(ValueId),
            Text(&'static str),
        }
        let mut shown = String::new();
        let mut tasks = vec![Task::Value(id)];
        while let Some(task) = tasks.pop() {
            // A character has at most four bytes, so this many bytes suffice.
            if shown.len() / 4 > most {
                break;
            }
            let id = match task {
                Task::Value(id) => id,
                Task::Text(text) => {
                    shown.push_str(text);
                    continue;
                }
            };
            let (parts, open, close) = match self.get(id) {
                Value::Sequence(parts) => (parts, "[", "]"),
                Value::Set(parts) => (parts, "#{", "}"),
                Value::Map(parts) => (parts, "{", "}"),
                Value::Tagged(tag, inner) => {
                    let _ = write!(shown, "#{} ", self.texts.get(*tag));
                    tasks.push(Task::Value(*inner));
                    continue;
                }
                Value::Nil => {
                    shown.push_str("nil");
                    continue;
                }
                Value::Bool(truth) => {
                    let _ = write!(shown, "{truth}");
                    continue;
                }
                Value::Int(number) => {
                    let _ = write!(shown, "{number}");
                    continue;
                }
                Value::Number(text) | Value::Word(text) => {
                    shown.push_str(self.texts.get(*text));
                    continue;
                }
                Value::Text(text) => {
                    let _ = write!(shown, "{:?}", self.texts.get(*text));
                    continue;
                }
                Value::Char(c) => {
                    let _ = write!(shown, "\\{c}");
                    continue;
                }
                Value::Keyword(name) => {
                    let _ = write!(shown, ":{}", self.texts.get(*name));
                    continue;
                }
            };
            shown.push_str(open);
            tasks.push(Task::Text(close));
            // Elements beyond `most` would be cut anyway.
            for (at, part) in parts.iter().enumerate().take(most).rev() {
                tasks.push(Task::Value(*part));
                if at > 0 {
                    tasks.push(Task::Text(" "));
                }
            }
        }
        if let Some((end, _)) = shown.char_indices().nth(most) {
            shown.truncate(end);
            shown.push('\u{2026}');
        }
        shown
    }
}

fn set(parts: Box<[ValueId]>) -> Value {
    let mut parts = parts.into_vec();
    parts.sort_unstable();
    parts.dedup();
    Value::Set(parts.into())
}

fn map(parts: &[ValueId]) -> Value {
    let mut pairs: Vec<(ValueId, ValueId)> = parts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    pairs.sort_unstable();
    Value::Map(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::call::parse;

    fn value(values: &mut Values, text: &str) -> ValueId {
        values.take(&parse(text).unwrap())
    }

    #[test]
    fn equal_values_are_one_however_they_are_written() {
        let mut values = Values::default();
        for (a, b) in [
            ("[1 2]", "(1, 2)"),
            ("#{1 2}", "#{2 1 1}"),
            ("{:a 1 :b [2]}", "{:b (2N) :a 1}"),
            ("1N", "+1"),
            ("#x [1]", "#x (1)"),
            ("nil", "null"),
        ] {
            assert_eq!(value(&mut values, a), value(&mut values, b), "{a} {b}");
        }
        for (a, b) in [
            ("1", "1.0"),
            ("1", "\"1\""),
            (":a", "\"a\""),
            ("a", "\"a\""),
            ("[1]", "#{1}"),
            ("[]", "nil"),
            ("[1 2]", "[2 1]"),
        ] {
            assert_ne!(value(&mut values, a), value(&mut values, b), "{a} {b}");
        }
    }

    #[test]
    fn a_value_is_shown_as_edn_and_cut_off_where_it_is_long() {
        let mut values = Values::default();
        let text = "{:a [1 \"x\\ny\" nil true], :b #{}, :c #t (), :d \\z}";
        let id = value(&mut values, text);
        let shown = values.show(id, 200);
        assert_eq!(value(&mut values, &shown), id, "{shown}");
        assert_eq!(values.show(id, 5).chars().count(), 6);
        let text = value(&mut values, "\"abcdefghijklmnopq\"");
        assert_eq!(
            (values.brief(text, 19), values.brief(text, 9)),
            ("\"abcdefghijklmnopq\"".to_owned(), "\"ab…mnopq\"".to_owned())
        );
        let deep = value(&mut values, &format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)));
        assert_eq!(values.show(deep, 10), "[[[[[[[[[[…");
    }

    #[test]
    fn values_of_another_log_keep_their_meaning() {
        let (mut a, mut b) = (Values::default(), Values::default());
        value(&mut a, "[3 :x]");
        let texts = ["#{\"p\" :x}", "{1 [2 #t 3]}", "[3 :x]"];
        let ids: Vec<ValueId> = texts.iter().map(|text| value(&mut b, text)).collect();
        let moved = a.absorb(&b);
        for (text, id) in texts.iter().zip(ids) {
            assert_eq!(moved[id.index()], value(&mut a, text));
        }
    }
}
