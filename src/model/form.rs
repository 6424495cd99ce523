//! Registers: the normal form in which the search knows what an operation does without trying it.

/// What an operation does to one register, if that is all it does.
///
/// A part of an object (see [`super::Spec::keys`]) whose operations all have forms that name one and the same register is
/// decided from the forms alone, by an algorithm that knows registers. A wrong form makes wrong verdicts; debug builds compare
/// forms with `step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegisterForm<'a> {
    /// Which register, exactly: two that compare equal are one.
    pub register: Value<'a>,
    /// What happens to it.
    pub action: Action<'a>,
}

/// What happens to a register.
///
/// For an operation whose answer nobody saw, this is what it does if it takes effect: a compare-and-set that may have failed
/// is [`Action::Cas`], a read is [`Action::Nothing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action<'a> {
    /// It can happen whatever the register holds, and changes nothing.
    Nothing,
    /// It can happen only where the register holds this, and changes nothing.
    Read(Value<'a>),
    /// It can happen only where the register does *not* hold this, and changes nothing.
    FailedCas(Value<'a>),
    /// It can happen always, and the register then holds this.
    Write(Value<'a>),
    /// It can happen only where the register holds `from`, and it then holds `to`.
    Cas {
        /// What it must hold.
        from: Value<'a>,
        /// What it then holds.
        to: Value<'a>,
    },
    /// It can happen always, and this then stands after what the register holds: text after text, a list after a list, and
    /// alone where it held [`Value::Absent`]. Where the register holds a number, or another sort of value, there is no form.
    Append(Value<'a>),
}

/// What a register holds, or is called. Values of different sorts differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value<'a> {
    /// Nothing yet.
    Absent,
    /// A number.
    Number(i64),
    /// A text.
    Text(&'a str),
    /// A list of numbers.
    List(&'a [i64]),
}
