//! Growth: how more objects can change the result of an expression over objects.
//!
//! Evidence seldom shows every object. If `objects.all(a, objects.all(b, ...))` is false for the known objects, it is false with
//! any others; `objects.exists(o, ...)` is not. So a failure over a part of the objects counts only if the form of the expression
//! excludes that more objects make it true again. An expression of any other form fails only if all objects are known.

use super::metering::{below, collected};
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators};

/// How more objects can change a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Not at all: it does not depend on the objects.
    Free,
    /// False stays false.
    False,
    /// True stays true.
    True,
    /// In any way.
    Open,
}

impl Growth {
    fn and(self, other: Growth) -> Growth {
        match (self, other) {
            (Growth::Free, one) | (one, Growth::Free) => one,
            (a, b) if a == b => a,
            _ => Growth::Open,
        }
    }

    fn reversed(self) -> Growth {
        match self {
            Growth::True => Growth::False,
            Growth::False => Growth::True,
            same => same,
        }
    }
}

const OBJECTS: &str = "objects";

/// How more objects can change the result of a part.
pub fn of(part: &IdedExpr) -> Growth {
    if is_free(part) {
        return Growth::Free;
    }
    match &part.expr {
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [a, b]) => of(a).and(of(b)),
            (operators::LOGICAL_NOT, [a]) => of(a).reversed(),
            (operators::CONDITIONAL, [condition, a, b]) if is_free(condition) => of(a).and(of(b)),
            (operators::LESS | operators::LESS_EQUALS, [a, b]) => compared(a, b),
            (operators::GREATER | operators::GREATER_EQUALS, [a, b]) => compared(b, a),
            (operators::IN, [element, list]) if is_free(element) && grows(list) => Growth::True,
            _ => Growth::Open,
        },
        Expr::Comprehension(c) => quantified(c),
        _ => Growth::Open,
    }
}

/// The variable of the new objects. No expression can name it.
pub const NEW: &str = "@new";

/// The parts to evaluate for an expression that was true before there were new objects: it is still true if all of them are.
/// Empty unless it consists of nested `objects.all(a, ...)` and `&&`.
pub fn news(part: &IdedExpr) -> Vec<IdedExpr> {
    asked_anew(part).unwrap_or_default()
}

fn asked_anew(part: &IdedExpr) -> Option<Vec<IdedExpr>> {
    if is_free(part) {
        return Some(Vec::new());
    }
    match &part.expr {
        Expr::Call(call) if call.func_name == operators::LOGICAL_AND => {
            let parts: Option<Vec<_>> = call.args.iter().map(asked_anew).collect();
            Some(parts?.concat())
        }
        Expr::Comprehension(c) if quantified(c) == Growth::False && c.iter_var != OBJECTS => {
            let Expr::Call(step) = &c.loop_step.expr else { return None };
            let body = step.args.get(1)?;
            let with = |range: IdedExpr, body: IdedExpr| {
                let args = vec![step.args[0].clone(), body];
                let loop_step = IdedExpr {
                    id: c.loop_step.id,
                    expr: Expr::Call(CallExpr { func_name: step.func_name.clone(), target: None, args }),
                };
                let changed = ComprehensionExpr { iter_range: range, loop_step, ..(**c).clone() };
                IdedExpr { id: part.id, expr: Expr::Comprehension(Box::new(changed)) }
            };
            let mut all: Vec<IdedExpr> =
                asked_anew(body)?.into_iter().map(|body| with(c.iter_range.clone(), body)).collect();
            if !is_free(&c.iter_range) {
                all.push(with(of_new(&c.iter_range), body.clone()));
            }
            Some(all)
        }
        _ => None,
    }
}

/// A list that grows with the objects, reduced to the new ones.
fn of_new(part: &IdedExpr) -> IdedExpr {
    let expr = match &part.expr {
        Expr::Ident(name) if name == OBJECTS => Expr::Ident(NEW.to_owned()),
        Expr::Comprehension(c) => {
            Expr::Comprehension(Box::new(ComprehensionExpr { iter_range: of_new(&c.iter_range), ..(**c).clone() }))
        }
        other => other.clone(),
    };
    IdedExpr { id: part.id, expr }
}

/// `a < b`, if one side counts objects.
fn compared(a: &IdedExpr, b: &IdedExpr) -> Growth {
    match (counts(a), counts(b)) {
        (true, false) if is_free(b) => Growth::False,
        (false, true) if is_free(a) => Growth::True,
        _ => Growth::Open,
    }
}

/// `all` and `exists`, over objects or other lists.
fn quantified(c: &ComprehensionExpr) -> Growth {
    let Expr::Call(step) = &c.loop_step.expr else { return Growth::Open };
    let [IdedExpr { expr: Expr::Ident(result), .. }, inner] = step.args.as_slice() else { return Growth::Open };
    let is_result = matches!(&c.result.expr, Expr::Ident(name) if *name == c.accu_var) && *result == c.accu_var;
    let starts =
        |wanted: bool| matches!(&c.accu_init.expr, Expr::Literal(LiteralValue::Boolean(b)) if *b.inner() == wanted);
    let more = match step.func_name.as_str() {
        operators::LOGICAL_AND if is_result && starts(true) => Growth::False,
        operators::LOGICAL_OR if is_result && starts(false) => Growth::True,
        _ => return Growth::Open,
    };
    let range = match () {
        () if is_free(&c.iter_range) => Growth::Free,
        () if grows(&c.iter_range) => more,
        () => Growth::Open,
    };
    // A loop variable of this name hides the objects.
    if c.iter_var == OBJECTS { Growth::Open } else { range.and(of(inner)) }
}

/// Whether more objects can only add elements to a list.
fn grows(part: &IdedExpr) -> bool {
    match &part.expr {
        Expr::Ident(name) => name == OBJECTS,
        Expr::Comprehension(c) => {
            let free = |(guard, element): (Option<&IdedExpr>, &IdedExpr)| guard.is_none_or(is_free) && is_free(element);
            grows(&c.iter_range) && c.iter_var != OBJECTS && collected(c).is_some_and(free)
        }
        _ => false,
    }
}

/// Whether a part is the size of such a list.
fn counts(part: &IdedExpr) -> bool {
    match &part.expr {
        Expr::Call(call) if call.func_name == "size" => call.target.as_deref().into_iter().chain(&call.args).all(grows),
        _ => false,
    }
}

/// Whether a part does not depend on the objects.
fn is_free(part: &IdedExpr) -> bool {
    !matches!(&part.expr, Expr::Ident(name) if name == OBJECTS) && below(part).into_iter().all(is_free)
}
