//! Register forms: what an operation does to a register, known without a step of the specification. Output of
//! [`super::Spec::form`], input of the register search.

/// What an operation does to one register, if it does nothing else.
///
/// If all operations of a part of an object (see [`super::Spec::keys`]) have forms on one register, the forms alone decide the
/// part, by a faster algorithm. A wrong form makes wrong verdicts, and no build checks it: compare forms with `step` in a test,
/// as `model/tests.rs` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegisterForm<'a> {
    /// The register: two equal names are one register.
    pub register: Value<'a>,
    /// What the operation does to it.
    pub action: Action<'a>,
}

/// What an operation does to a register.
///
/// If the answer is not known, this is what the operation does if it takes effect. A compare-and-set that may have failed is
/// [`Action::Cas`], a read is [`Action::Nothing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action<'a> {
    /// Possible in any state; changes nothing.
    Nothing,
    /// Possible only if the register holds this; changes nothing.
    Read(Value<'a>),
    /// Possible only if the register does *not* hold this; changes nothing.
    FailedCas(Value<'a>),
    /// Always possible; the register then holds this.
    Write(Value<'a>),
    /// Possible only if the register holds `from`; it then holds `to`.
    Cas {
        /// The value that it must hold.
        from: Value<'a>,
        /// The value that it then holds.
        to: Value<'a>,
    },
    /// Always possible; adds this at the end: text to a text, a list to a list. A register that holds [`Value::Absent`] then
    /// holds only this. If the register may hold a number or another type of value, the operation has no form.
    Append(Value<'a>),
}

/// What an operation does to a queue, first in, first out, if it does nothing else. The answer is part of it.
///
/// If all operations of a part of an object have such forms, and no element repeats, a linearization is found without a
/// search ([`super::Spec::queue_form`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueForm<'a> {
    /// Always possible; puts this element at the end.
    Enqueue(Value<'a>),
    /// Possible only if this is the first element, which it takes; `None`: only if the queue is empty.
    Dequeue(Option<Value<'a>>),
    /// Without an answer it takes any first element, or finds the queue empty.
    Unknown,
}

/// The value, or the name, of a register, or an element. Values of different types differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value<'a> {
    /// No value yet.
    Absent,
    /// A number.
    Number(i64),
    /// A text.
    Text(&'a str),
    /// A list of numbers.
    List(&'a [i64]),
}
