//! Types as far as the expression alone determines them. A field of an object may have any type; only what is wrong for every
//! type is reported, before evidence is read.

use super::metering::{below, collected};
use super::{Flaw, Places, ResultType};
use cel::common::ast::{Expr, IdedExpr, LiteralValue, operators};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Any,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Null,
    List,
    Map,
}

impl Type {
    fn word(self) -> &'static str {
        match self {
            Type::Any => "a value",
            Type::Bool => "a truth value",
            Type::Int => "a whole number",
            Type::Uint => "an unsigned number",
            Type::Double => "a decimal number",
            Type::Text => "a text",
            Type::Bytes => "bytes",
            Type::Null => "null",
            Type::List => "a list",
            Type::Map => "a map",
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Type::Int | Type::Uint | Type::Double)
    }

    fn may_be(self, other: Type) -> bool {
        self == Type::Any || other == Type::Any || self == other
    }
}

struct Typing<'p, 't> {
    places: &'p Places<'t>,
    flaws: Vec<Flaw>,
}

/// Checks whether an expression can have the expected type.
pub fn check(root: &IdedExpr, result_type: ResultType, places: &Places<'_>) -> Result<(), Vec<Flaw>> {
    let mut typing = Typing { places, flaws: Vec::new() };
    let found = typing.of(root);
    let wanted = match result_type {
        ResultType::Truth => Type::Bool,
        ResultType::Text => Type::Text,
    };
    if typing.flaws.is_empty() && !found.may_be(wanted) {
        let at = 0..places.text.len();
        typing.flaws.push(Flaw { at, message: format!("{} is expected, found {}", wanted.word(), found.word()) });
    }
    if typing.flaws.is_empty() { Ok(()) } else { Err(typing.flaws) }
}

impl Typing<'_, '_> {
    fn wants(&mut self, part: &IdedExpr, found: Type, wanted: Type) {
        if !found.may_be(wanted) {
            let message = format!("{} is expected here, found {}", wanted.word(), found.word());
            self.flaws.push(self.places.flaw(part, message));
        }
    }

    fn unlike(&mut self, part: &IdedExpr, a: Type, b: Type) {
        let message = format!("{} and {} cannot be used together", a.word(), b.word());
        self.flaws.push(self.places.flaw(part, message));
    }

    fn of(&mut self, part: &IdedExpr) -> Type {
        match &part.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Type::Bool,
                LiteralValue::Bytes(_) => Type::Bytes,
                LiteralValue::Double(_) => Type::Double,
                LiteralValue::Int(_) => Type::Int,
                LiteralValue::Null => Type::Null,
                LiteralValue::String(_) => Type::Text,
                LiteralValue::UInt(_) => Type::Uint,
            },
            Expr::Select(select) => {
                self.of(&select.operand);
                if select.test { Type::Bool } else { Type::Any }
            }
            Expr::Comprehension(c) => {
                for inner in below(part) {
                    self.of(inner);
                }
                let start = self.of(&c.accu_init);
                match () {
                    () if collected(c).is_some() => Type::List,
                    // `all`, `exists`, `exists_one`.
                    () if matches!(start, Type::Bool | Type::Int) => Type::Bool,
                    () => Type::Any,
                }
            }
            Expr::List(_) | Expr::Map(_) => {
                for inner in below(part) {
                    self.of(inner);
                }
                if matches!(part.expr, Expr::List(_)) { Type::List } else { Type::Map }
            }
            Expr::Call(call) => {
                let target = call.target.as_ref().map(|target| self.of(target));
                let types: Vec<Type> = call.args.iter().map(|arg| self.of(arg)).collect();
                self.call(part, &call.func_name, target, &call.args, &types)
            }
            Expr::Ident(_) | Expr::Struct(_) | Expr::Unspecified => Type::Any,
        }
    }

    fn call(&mut self, part: &IdedExpr, name: &str, target: Option<Type>, args: &[IdedExpr], types: &[Type]) -> Type {
        match (name, types) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, &[a, b]) => {
                self.wants(&args[0], a, Type::Bool);
                self.wants(&args[1], b, Type::Bool);
                Type::Bool
            }
            (operators::LOGICAL_NOT, &[a]) => {
                self.wants(&args[0], a, Type::Bool);
                Type::Bool
            }
            (operators::CONDITIONAL, &[condition, a, b]) => {
                self.wants(&args[0], condition, Type::Bool);
                if a == b { a } else { Type::Any }
            }
            (operators::EQUALS | operators::NOT_EQUALS, &[a, b]) => {
                let alike = a.may_be(b) || (a.is_number() && b.is_number()) || a == Type::Null || b == Type::Null;
                if !alike {
                    self.unlike(part, a, b);
                }
                Type::Bool
            }
            (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, &[a, b]) => {
                let ordered = |kind| !matches!(kind, Type::List | Type::Map | Type::Null);
                let alike = a.may_be(b) || (a.is_number() && b.is_number());
                if !alike || !ordered(a) || !ordered(b) {
                    self.unlike(part, a, b);
                }
                Type::Bool
            }
            (operators::ADD, &[a, b]) => {
                let adds = |kind| !matches!(kind, Type::Bool | Type::Null | Type::Map);
                self.arithmetic(part, a, b, adds)
            }
            (operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO, &[a, b]) => {
                self.arithmetic(part, a, b, |kind| kind == Type::Any || kind.is_number())
            }
            (operators::IN, &[_, b]) => {
                if !matches!(b, Type::Any | Type::List | Type::Map) {
                    self.wants(&args[1], b, Type::List);
                }
                Type::Bool
            }
            (operators::NOT_STRICTLY_FALSE, _) => Type::Bool,
            ("size", _) => {
                let of = target.or(types.first().copied()).unwrap_or(Type::Any);
                if !matches!(of, Type::Any | Type::Text | Type::Bytes | Type::List | Type::Map) {
                    self.wants(part, of, Type::List);
                }
                Type::Int
            }
            ("contains" | "startsWith" | "endsWith" | "matches", _) => {
                let all = target.into_iter().chain(types.iter().copied());
                if let Some(other) = all.into_iter().find(|kind| !kind.may_be(Type::Text)) {
                    self.wants(part, other, Type::Text);
                }
                Type::Bool
            }
            ("string", _) => Type::Text,
            ("int", _) => Type::Int,
            ("uint", _) => Type::Uint,
            ("double", _) => Type::Double,
            ("bytes", _) => Type::Bytes,
            ("bool" | "hasValue", _) => Type::Bool,
            _ => Type::Any,
        }
    }

    fn arithmetic(&mut self, part: &IdedExpr, a: Type, b: Type, fits: impl Fn(Type) -> bool) -> Type {
        if !a.may_be(b) || !fits(a) || !fits(b) {
            self.unlike(part, a, b);
        }
        if a == Type::Any { b } else { a }
    }
}
