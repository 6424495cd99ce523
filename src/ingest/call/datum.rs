//! Values of operation logs, from EDN or JSON, as flat lists of nodes.

use std::borrow::Cow;

/// One value in postfix order: `[1 #{:a}]` is `1`, `:a`, a set of one, a sequence of two. No depth of nesting needs a
/// stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Datum<'a>(pub Vec<Node<'a>>);

/// One node of a value. A node with a count holds as many values in front of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Node<'a> {
    /// `nil`, `null`.
    Nil,
    /// `true`, `false`.
    Bool(bool),
    /// An integer of 64 bits, however it is written (`3`, `+3`, `3N`).
    Int(i64),
    /// Any other number, in canonical text.
    Number(Cow<'a, str>),
    /// A text.
    Text(Cow<'a, str>),
    /// A character.
    Char(char),
    /// A keyword, without its colon.
    Keyword(&'a str),
    /// A symbol.
    Symbol(&'a str),
    /// A list or a vector; they are equal if their elements are.
    Sequence(u32),
    /// A set.
    Set(u32),
    /// A map with this number of keys, each followed by its value.
    Map(u32),
    /// The value in front of it, under a tag.
    Tagged(&'a str),
}

impl Datum<'_> {
    /// Approximate bytes of its text.
    pub fn length(&self) -> usize {
        let one = |node: &Node<'_>| match node {
            Node::Number(text) | Node::Text(text) => text.len() + 1,
            Node::Keyword(text) | Node::Symbol(text) | Node::Tagged(text) => text.len() + 1,
            _ => 1,
        };
        self.0.iter().map(one).sum()
    }

    /// Whether it is a list of steps, such as `[[:append x 1] [:r y nil]]`. Elle's histories may leave out the name `txn`.
    pub fn is_transaction(&self) -> bool {
        let is_word = |word: &str| matches!(word, "r" | "w" | "append" | "read" | "write");
        let begins = match self.0.first() {
            Some(Node::Keyword(word) | Node::Symbol(word)) => is_word(word),
            Some(Node::Text(word)) => is_word(word),
            _ => false,
        };
        begins && matches!(self.0.as_slice(), [.., Node::Sequence(2 | 3), Node::Sequence(_)])
    }

    /// Whether it is `nil` or `null`.
    pub fn is_nil(&self) -> bool {
        matches!(self.0.as_slice(), [Node::Nil])
    }
}
