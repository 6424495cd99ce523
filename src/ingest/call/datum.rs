//! Values as logs have them: EDN or JSON, flat.

use std::borrow::Cow;

/// One value, its parts before the whole: `[1 #{:a}]` is `1`, `:a`, a set of one, a sequence of two. Flat, so that no depth of
/// nesting needs a stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Datum<'a>(pub Vec<Node<'a>>);

/// One node of a value. Those with a count hold that many values of what stands before.
#[derive(Clone, Debug, PartialEq)]
pub enum Node<'a> {
    /// `nil`, `null`.
    Nil,
    /// `true`, `false`.
    Bool(bool),
    /// An integer of 64 bits, however it was written (`3`, `+3`, `3N`).
    Int(i64),
    /// Any other number, in one way of writing it.
    Number(Cow<'a, str>),
    /// A text.
    Text(Cow<'a, str>),
    /// A character.
    Char(char),
    /// A keyword, without its colon.
    Keyword(&'a str),
    /// A symbol.
    Symbol(&'a str),
    /// A list or a vector, which are equal if their elements are.
    Sequence(u32),
    /// A set.
    Set(u32),
    /// A map of so many keys, each followed by its value.
    Map(u32),
    /// The value before it, under a tag.
    Tagged(&'a str),
}

impl Datum<'_> {
    /// About how many bytes its text has.
    pub fn length(&self) -> usize {
        let one = |node: &Node<'_>| match node {
            Node::Number(text) | Node::Text(text) => text.len() + 1,
            Node::Keyword(text) | Node::Symbol(text) | Node::Tagged(text) => text.len() + 1,
            _ => 1,
        };
        self.0.iter().map(one).sum()
    }

    /// Whether it is `nil`.
    pub fn is_nil(&self) -> bool {
        matches!(self.0.as_slice(), [Node::Nil])
    }
}
