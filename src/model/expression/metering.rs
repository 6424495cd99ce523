//! Bounds of an evaluation. The evaluator of `cel` cannot be interrupted, so expressions are rewritten first: every round of a
//! loop checks whether steps are left, and whatever can make a value longer pays for its length. If none are left, the loop and
//! all loops around it end.
//!
//! A step does bounded work: a round costs more if the expression is long or its values are. Comparing two values is paid for
//! too. Every new way of making or reading a large value must pay, or an expression may run for ever.

use super::pattern::{self, Refusal};
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, SelectExpr, operators,
};
use cel::common::types::{
    CelBool, CelBytes, CelList, CelMap, CelMapKey, CelOptional, CelString, DYN_TYPE, STRING_TYPE,
};
use cel::common::value::{CowVal, Val};
use cel::{Env, ExecutionError};
use std::cell::Cell;

/// The variable that is true while steps are left, followed by the cost of a round. No expression can name it.
const GO_ON: &str = "@go";
const STOP: &str = "@stop";
const RANGE: &str = "@range";
const SIZED: &str = "@sized";
const COMPARED: &str = "@compared";

/// Bytes of a value that cost one step.
const BYTES: u64 = 64;

/// Parts of an expression that cost one step.
const PARTS_PER_STEP: u64 = 24;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
    static ROUND: Cell<u64> = const { Cell::new(1) };
    static SPENT: Cell<bool> = const { Cell::new(false) };
}

/// The cost of evaluating a part, at least.
pub fn cost(part: &IdedExpr) -> u64 {
    let (mut parts, mut open) = (0, vec![part]);
    while let Some(part) = open.pop() {
        parts += 1;
        open.extend(below(part));
    }
    1 + parts / PARTS_PER_STEP
}

/// Evaluates something at a cost, with the steps that are left, over values whose longest text has `longest` bytes. Whether the
/// steps were spent.
pub fn during<R>(steps: &mut u64, cost: u64, longest: u64, act: impl FnOnce() -> R) -> (R, bool) {
    LEFT.set(*steps);
    ROUND.set(1 + longest / BYTES);
    SPENT.set(false);
    pay(ROUND.get().saturating_mul(cost));
    let result = act();
    *steps = LEFT.get();
    (result, SPENT.get())
}

fn pay(steps: u64) -> bool {
    match LEFT.get().checked_sub(steps) {
        Some(left) if !SPENT.get() => {
            LEFT.set(left);
            true
        }
        _ => {
            LEFT.set(0);
            SPENT.set(true);
            false
        }
    }
}

/// Whether a loop may continue, if the variable asks for that.
pub fn go_on(variable: &str) -> Option<CowVal<'static, 'static>> {
    static TRUE: CelBool = CelBool::TRUE;
    static FALSE: CelBool = CelBool::FALSE;
    let cost: u64 = variable.strip_prefix(GO_ON)?.parse().ok()?;
    Some(CowVal::Borrowed(if pay(ROUND.get().saturating_mul(cost)) { &TRUE } else { &FALSE }))
}

/// Declares the functions of metered expressions.
pub fn declare(env: &mut Env) {
    let matches = vec![STRING_TYPE.to_owned(), STRING_TYPE.to_owned()];
    let declared = [
        env.add_overload(RANGE, "range_of_loop", vec![DYN_TYPE.to_owned()], range),
        env.add_overload(SIZED, "sized_value", vec![DYN_TYPE.to_owned()], sized),
        env.add_overload(COMPARED, "compared_value", vec![DYN_TYPE.to_owned()], compared),
        env.add_overload("matches", "matches", matches, is_match),
        env.add_member_overload(
            "matches",
            "text_matches",
            STRING_TYPE.to_owned(),
            vec![STRING_TYPE.to_owned()],
            is_match,
        ),
    ];
    debug_assert!(declared.iter().all(Result::is_ok), "{declared:?}");
}

/// The range of a loop, which is paid for because every element is copied. The keys of a map are sorted, so that the result is
/// deterministic.
fn range<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = sized(args)?;
    if value.downcast_ref::<CelList<'_>>().is_none()
        && let Some(map) = value.downcast_ref::<CelMap<'_>>()
    {
        let mut keys: Vec<&CelMapKey<'v>> = map.inner().keys().collect();
        keys.sort();
        let keys: Vec<Box<dyn Val + 'v>> = keys.into_iter().map(|key| key.clone().inner().clone_as_boxed()).collect();
        return Ok(CowVal::owned(CelList::from(keys)));
    }
    Ok(value)
}

/// Pays for a value.
fn sized<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let Some(value) = args.pop() else { return Err(ExecutionError::MissingArgumentOrTarget) };
    let mut bytes = 0;
    let fits = weigh(&*value, &mut bytes);
    ROUND.set(ROUND.get().max(1 + bytes / BYTES));
    if fits && pay(bytes / BYTES) { Ok(value) } else { Err(stopped()) }
}

/// Pays for a value that is compared with another one.
fn compared<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let Some(value) = args.pop() else { return Err(ExecutionError::MissingArgumentOrTarget) };
    let mut bytes = 0;
    if weigh(&*value, &mut bytes) && pay(bytes / BYTES) { Ok(value) } else { Err(stopped()) }
}

fn stopped() -> ExecutionError {
    ExecutionError::UndeclaredReference(STOP.to_owned().into())
}

/// Adds the bytes of a value; `false` once there are too few steps for them.
fn weigh(value: &dyn Val, bytes: &mut u64) -> bool {
    *bytes += 16;
    if *bytes / BYTES > LEFT.get() {
        pay(u64::MAX);
        return false;
    }
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        *bytes += text.inner().len() as u64;
    } else if let Some(all) = value.downcast_ref::<CelBytes<'_>>() {
        *bytes += all.inner().len() as u64;
    } else if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        return list.inner().iter().all(|element| weigh(element.as_ref(), bytes));
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        return map.inner().iter().all(|(key, value)| weigh(key.inner(), bytes) && weigh(value.as_ref(), bytes));
    } else if let Some(optional) = value.downcast_ref::<CelOptional<'_>>() {
        return optional.option().is_none_or(|value| weigh(value, bytes));
    }
    true
}

fn is_match<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let texts: Vec<&str> =
        args.iter().filter_map(|arg| arg.downcast_ref::<CelString<'_>>()).map(|s| s.inner()).collect();
    let [text, pattern] = texts.as_slice() else { return Err(ExecutionError::MissingArgumentOrTarget) };
    match pattern::is_match(text, pattern, pay) {
        Ok(found) => Ok(CowVal::owned(CelBool::from(found))),
        Err(Refusal::Unpaid) => Err(stopped()),
        Err(Refusal::Unfit) => Err(ExecutionError::FunctionError {
            function: "matches".to_owned(),
            message: "its pattern is not a regular expression, or is too large".to_owned(),
        }),
    }
}

/// The direct parts of a part.
pub fn below(part: &IdedExpr) -> Vec<&IdedExpr> {
    match &part.expr {
        Expr::Call(call) => call.target.iter().map(|target| &**target).chain(&call.args).collect(),
        Expr::Comprehension(c) => vec![&c.iter_range, &c.accu_init, &c.loop_cond, &c.loop_step, &c.result],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Struct(made) => made.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn entry_parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

fn call(id: u64, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr { id, expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }) }
}

fn ident(id: u64, name: &str) -> IdedExpr {
    IdedExpr { id, expr: Expr::Ident(name.to_owned()) }
}

/// The name of a field whose name CEL cannot read, decoded from Kubernetes' escapes: `foo__dash__bar`, `__namespace__`.
pub fn field_name(written: &str) -> String {
    if !written.contains("__") {
        return written.to_owned();
    }
    let reserved = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    let inner = written.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(word) = inner.filter(|word| reserved.contains(word)) {
        return word.to_owned();
    }
    let parts =
        [("__underscores__", "\u{0}"), ("__dot__", "."), ("__dash__", "-"), ("__slash__", "/"), ("\u{0}", "__")];
    parts.iter().fold(written.to_owned(), |name, (escaped, plain)| name.replace(escaped, plain))
}

/// Rewrites an expression so that it pays for its evaluation. The result is the same as long as it can pay.
pub fn metered(part: IdedExpr) -> IdedExpr {
    let IdedExpr { id, expr } = part;
    let expr = match expr {
        // An index finds the member without looking first for names with dots.
        Expr::Select(select) if !select.test => {
            let field = LiteralValue::String(field_name(&select.field).into());
            let field = IdedExpr { id, expr: Expr::Literal(field) };
            return call(id, operators::INDEX, vec![metered(*select.operand), field]);
        }
        Expr::Select(select) => Expr::Select(SelectExpr {
            operand: Box::new(metered(*select.operand)),
            field: field_name(&select.field),
            test: true,
        }),
        Expr::Call(inner) => {
            let adds = inner.func_name == operators::ADD;
            let compares = compares(&inner);
            let mut args: Vec<IdedExpr> = inner.args.into_iter().map(metered).collect();
            if let Some(last) = args.pop_if(|_| compares) {
                args.push(call(last.id, COMPARED, vec![last]));
            }
            let target = inner.target.map(|target| Box::new(metered(*target)));
            let made = IdedExpr { id, expr: Expr::Call(CallExpr { func_name: inner.func_name, target, args }) };
            return if adds { call(id, SIZED, vec![made]) } else { made };
        }
        Expr::List(mut list) => {
            let is_plain = list.elements.iter().all(|element| matches!(element.expr, Expr::Literal(_)));
            list.elements = list.elements.into_iter().map(metered).collect();
            let made = IdedExpr { id, expr: Expr::List(list) };
            return if is_plain { made } else { call(id, SIZED, vec![made]) };
        }
        Expr::Map(mut map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    entry.key = metered(std::mem::take(&mut entry.key));
                    entry.value = metered(std::mem::take(&mut entry.value));
                }
            }
            return call(id, SIZED, vec![IdedExpr { id, expr: Expr::Map(map) }]);
        }
        Expr::Comprehension(c) => Expr::Comprehension(Box::new(metered_loop(id, *c))),
        other => other,
    };
    IdedExpr { id, expr }
}

/// Whether a call compares two values that may both be large.
fn compares(call: &CallExpr) -> bool {
    let is_small = |part: &IdedExpr| match &part.expr {
        Expr::Literal(_) => true,
        Expr::List(list) => list.elements.iter().all(|element| matches!(element.expr, Expr::Literal(_))),
        _ => false,
    };
    match (call.func_name.as_str(), call.args.as_slice()) {
        (operators::IN, [_, all]) => !is_small(all),
        (operators::EQUALS | operators::NOT_EQUALS, [a, b])
        | (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, [a, b]) => {
            !is_small(a) && !is_small(b)
        }
        _ => false,
    }
}

fn metered_loop(id: u64, c: ComprehensionExpr) -> ComprehensionExpr {
    let go_on = format!("{GO_ON}{}", cost(&c.loop_step));
    let (loop_cond, loop_step) = match collected(&c).is_some() {
        // The evaluator recognises a collecting loop by its condition.
        true => (c.loop_cond, metered_collection(id, &go_on, c.loop_step)),
        false => {
            (call(id, operators::LOGICAL_AND, vec![ident(id, &go_on), metered(c.loop_cond)]), metered(c.loop_step))
        }
    };
    ComprehensionExpr {
        iter_range: call(id, RANGE, vec![metered(c.iter_range)]),
        accu_init: metered(c.accu_init),
        result: metered(c.result),
        loop_cond,
        loop_step,
        ..c
    }
}

/// `guard ? @result + [element] : @result`, or without the guard: checks before each round, pays for each element.
fn metered_collection(id: u64, go_on: &str, step: IdedExpr) -> IdedExpr {
    let asked = |part: IdedExpr| call(id, operators::CONDITIONAL, vec![ident(id, go_on), part, ident(id, STOP)]);
    let Expr::Call(CallExpr { func_name, target, args }) = step.expr else { return step };
    let args = match func_name.as_str() {
        operators::CONDITIONAL => {
            let parts = args.into_iter().enumerate();
            parts
                .map(|(nth, part)| match nth {
                    0 => asked(metered(part)),
                    1 => metered_collection(id, go_on, part),
                    _ => part,
                })
                .collect()
        }
        _ => {
            let element = |part| asked(call(id, SIZED, vec![metered(part)]));
            let list = |part: IdedExpr| match part.expr {
                Expr::List(list) => {
                    let elements = list.elements.into_iter().map(element).collect();
                    IdedExpr { id: part.id, expr: Expr::List(ListExpr::new(elements)) }
                }
                _ => part,
            };
            args.into_iter().map(list).collect()
        }
    };
    IdedExpr { id: step.id, expr: Expr::Call(CallExpr { func_name, target, args }) }
}

/// What a loop of `map` or `filter` collects: its guard and its element.
pub fn collected(c: &ComprehensionExpr) -> Option<(Option<&IdedExpr>, &IdedExpr)> {
    let is_result = |part: &IdedExpr| matches!(&part.expr, Expr::Ident(name) if *name == c.accu_var);
    let starts_empty = matches!(&c.accu_init.expr, Expr::List(list) if list.elements.is_empty());
    if !starts_empty || !is_result(&c.result) || !matches!(c.loop_cond.expr, Expr::Literal(_)) {
        return None;
    }
    if let Some(element) = appended(&c.loop_step, &c.accu_var) {
        return Some((None, element));
    }
    match &c.loop_step.expr {
        Expr::Call(call) if call.func_name == operators::CONDITIONAL => match call.args.as_slice() {
            [guard, step, otherwise] if is_result(otherwise) => Some((Some(guard), appended(step, &c.accu_var)?)),
            _ => None,
        },
        _ => None,
    }
}

/// The element of `@result + [element]`.
fn appended<'c>(step: &'c IdedExpr, result: &str) -> Option<&'c IdedExpr> {
    let Expr::Call(add) = &step.expr else { return None };
    match add.args.as_slice() {
        [IdedExpr { expr: Expr::Ident(name), .. }, IdedExpr { expr: Expr::List(list), .. }]
            if add.func_name == operators::ADD && name == result =>
        {
            list.elements.first().filter(|_| list.elements.len() == 1)
        }
        _ => None,
    }
}
