//! The values of an operation log, hash-consed: equal values are stored once.

use super::super::ids::{Symbol, ValueId};
use super::super::interner::{Index, Interner};
use crate::ingest::call::{Datum, Node};
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

/// The kinds of values that consist of any number of others.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Shape {
    Sequence,
    Set,
    Map,
}

impl Shape {
    fn of(self, parts: Box<[ValueId]>) -> Value {
        match self {
            Shape::Sequence => Value::Sequence(parts),
            Shape::Set => Value::Set(parts),
            Shape::Map => Value::Map(parts),
        }
    }
}

impl Value {
    fn parts(&self) -> Option<(Shape, &[ValueId])> {
        match self {
            Value::Sequence(parts) => Some((Shape::Sequence, parts)),
            Value::Set(parts) => Some((Shape::Set, parts)),
            Value::Map(parts) => Some((Shape::Map, parts)),
            _ => None,
        }
    }
}

/// Values of `naturals` beyond twice as many as there are values. It bounds the memory that one high number takes.
const SPARE_NATURALS: usize = 4_096;

/// Rows after the latest value in which a list or map is looked for first. An answer repeats the lists of its request in
/// their order, and between two of them stand the new elements of the second one.
const REPEATED_WITHIN: usize = 4;

/// All values of a log.
#[derive(Clone, Debug, Default)]
pub struct Values {
    rows: Vec<Value>,
    /// The ids of the natural numbers below `limit`, by number.
    naturals: Vec<ValueId>,
    /// Lowest natural number that was too high for `naturals` when it came.
    limit: Option<usize>,
    /// All values but those in `naturals`.
    index: Index,
    /// The latest value with parts.
    latest: usize,
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
        let mut values = Values { texts, ..Values::default() };
        values.rows.reserve(rows.len());
        values.index.reserve(rows.len());
        for (at, value) in rows.into_iter().enumerate() {
            let (is_text, is_part) = (|s: &Symbol| s.index() < values.texts.len(), |id: &ValueId| id.index() < at);
            let sound = match &value {
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
            if !sound || values.intern(value).index() != at {
                return None;
            }
        }
        Some(values)
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
        match value {
            Value::Int(number) => self.intern_int(number),
            Value::Sequence(parts) => self.intern_parts(Shape::Sequence, parts),
            Value::Set(parts) => self.intern_parts(Shape::Set, parts),
            Value::Map(parts) => self.intern_parts(Shape::Map, parts),
            _ => self.intern_hashed(value),
        }
    }

    /// The id of the value with these parts. Only a new value is copied.
    fn intern_parts<P: AsRef<[ValueId]> + Into<Box<[ValueId]>>>(&mut self, shape: Shape, parts: P) -> ValueId {
        let wanted = Some((shape, parts.as_ref()));
        let next = self.latest + 1;
        let repeated = self.rows.iter().skip(next).take(REPEATED_WITHIN).position(|row| row.parts() == wanted);
        let id = match repeated {
            Some(ahead) => ValueId((next + ahead) as u32),
            None => {
                let half = Index::half(FxBuildHasher.hash_one(wanted));
                let known = self.index.find(half, |id| self.rows[id as usize].parts() == wanted);
                known.map_or_else(|| self.push_hashed(half, shape.of(parts.into())), ValueId)
            }
        };
        self.latest = id.index();
        id
    }

    /// The id of an integer. Most logs count up from zero, so a table by number needs no hash and stays in the cache.
    fn intern_int(&mut self, number: i64) -> ValueId {
        let below = |&at: &usize| self.limit.is_none_or(|limit| at < limit);
        let Some(at) = usize::try_from(number).ok().filter(below) else {
            return self.intern_hashed(Value::Int(number));
        };
        if at >= self.naturals.len() {
            if at > 2 * self.rows.len() + SPARE_NATURALS {
                self.limit = Some(at);
                return self.intern_hashed(Value::Int(number));
            }
            self.naturals.resize(at + 1, ValueId::NONE);
        }
        if !self.naturals[at].is_some() {
            self.naturals[at] = ValueId(self.rows.len() as u32);
            self.rows.push(Value::Int(number));
        }
        self.naturals[at]
    }

    fn intern_hashed(&mut self, value: Value) -> ValueId {
        let half = Index::half(FxBuildHasher.hash_one(&value));
        let known = self.index.find(half, |id| self.rows[id as usize] == value);
        known.map_or_else(|| self.push_hashed(half, value), ValueId)
    }

    fn push_hashed(&mut self, half: u32, value: Value) -> ValueId {
        let id = self.rows.len() as u32;
        self.rows.push(value);
        self.index.insert(half, id);
        ValueId(id)
    }

    /// Interns a parsed value.
    pub fn take(&mut self, datum: &Datum<'_>) -> ValueId {
        let mut open: Vec<ValueId> = Vec::new();
        for node in &datum.0 {
            let id = self.take_node(node, &mut open);
            open.push(id);
        }
        open.pop().unwrap_or(ValueId::NONE)
    }

    /// The id of a node in postfix order; `open` is the stack of values before it.
    fn take_node(&mut self, node: &Node<'_>, open: &mut Vec<ValueId>) -> ValueId {
        let first = |count: u32| open.len().saturating_sub(count as usize);
        let value = match node {
            Node::Sequence(count) => {
                let first = first(*count);
                let id = self.intern_parts(Shape::Sequence, &open[first..]);
                open.truncate(first);
                return id;
            }
            Node::Set(count) => Value::Set(set(open.split_off(first(*count)))),
            Node::Map(count) => Value::Map(map(&open.split_off(first(count * 2)))),
            Node::Nil => Value::Nil,
            Node::Bool(truth) => Value::Bool(*truth),
            Node::Int(number) => Value::Int(*number),
            Node::Number(number) => Value::Number(self.texts.intern(number)),
            Node::Text(text) => Value::Text(self.texts.intern(text)),
            Node::Char(c) => Value::Char(*c),
            Node::Keyword(name) => Value::Keyword(self.texts.intern(name)),
            Node::Symbol(name) => Value::Word(self.texts.intern(name)),
            Node::Tagged(tag) => match open.pop() {
                Some(inner) => Value::Tagged(self.texts.intern(tag), inner),
                None => Value::Nil,
            },
        };
        self.intern(value)
    }

    /// Interns the values of another log; returns their new ids by old id.
    pub fn absorb(&mut self, other: &Values) -> Vec<ValueId> {
        let texts: Vec<Symbol> = other.texts.iter().map(|text| self.texts.intern(text)).collect();
        let text = |symbol: Symbol| texts[symbol.index()];
        let mut moved: Vec<ValueId> = Vec::with_capacity(other.rows.len());
        let mut parts: Vec<ValueId> = Vec::new();
        for row in &other.rows {
            parts.clear();
            parts.extend(row.parts().into_iter().flat_map(|(_, ids)| ids.iter().map(|id| moved[id.index()])));
            let value = match row {
                Value::Sequence(_) => {
                    moved.push(self.intern_parts(Shape::Sequence, &parts[..]));
                    continue;
                }
                Value::Set(_) => Value::Set(set(parts.clone())),
                Value::Map(_) => Value::Map(map(&parts)),
                Value::Number(symbol) => Value::Number(text(*symbol)),
                Value::Text(symbol) => Value::Text(text(*symbol)),
                Value::Keyword(symbol) => Value::Keyword(text(*symbol)),
                Value::Word(symbol) => Value::Word(text(*symbol)),
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

/// The elements of a set: each once, ascending by id.
fn set(mut parts: Vec<ValueId>) -> Box<[ValueId]> {
    parts.sort_unstable();
    parts.dedup();
    parts.into()
}

/// The pairs of a map, ascending by the ids of the keys.
fn map(parts: &[ValueId]) -> Box<[ValueId]> {
    let mut pairs: Vec<(ValueId, ValueId)> = parts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    pairs.sort_unstable();
    pairs.into_iter().flat_map(|(key, value)| [key, value]).collect()
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
    fn an_integer_keeps_its_id_wherever_it_is_looked_up() {
        let mut values = Values::default();
        let high = 3 * SPARE_NATURALS as i64;
        // The table by number grows past `high` after `high` was hashed.
        let numbers = [7, high, -1, i64::MAX, i64::MIN].into_iter().chain(0..2 * high);
        let ids: Vec<(i64, ValueId)> = numbers.map(|number| (number, values.intern(Value::Int(number)))).collect();
        assert_eq!(values.len() as i64, 2 * high + 3);
        for (number, id) in ids {
            assert_eq!((values.intern(Value::Int(number)), values.get(id)), (id, &Value::Int(number)));
        }
        assert_eq!(values.naturals.len() as i64, high);
    }

    #[test]
    fn lists_that_repeat_in_their_order_keep_their_ids() {
        let mut values = Values::default();
        let texts = ["[:w 1 2]", "#{[1] [2]}", "{:a [:w 1 2]}", "#t []", "[:r 9]"];
        let mut take = |texts: &[&str]| texts.iter().map(|text| value(&mut values, text)).collect::<Vec<_>>();
        let ids = take(&texts);
        assert_eq!(take(&texts), ids);
        let between = take(&[texts[0], "[:r 10]", texts[1], texts[2], "[[:w 1 2]]", texts[3], texts[4]]);
        assert_eq!([between[0], between[2], between[3], between[5], between[6]], *ids);
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
