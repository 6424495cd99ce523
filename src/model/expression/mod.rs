//! Expressions in CEL, as in Kubernetes' validation rules: read, checked, and evaluated within bounds. Input: a text and what it
//! sees. Output: an [`Expression`], or its flaws with their places.
//!
//! The crate `cel` parses and evaluates. The modules here do what it leaves open. `reading` finds names and the fields of objects
//! that must be kept. `growth` decides whether more objects can make a false expression true again. `metering` ends every
//! expression. Reading and evaluating need a stack of [`STACK`] bytes: see [`deep`].

mod growth;
mod metering;
mod pattern;
mod reading;
mod subject;
#[cfg(test)]
mod tests;
mod typing;

pub use growth::Growth;
pub use subject::{Bindings, Subject};

use crate::ingest::fields::Path;
use cel::common::ast::{IdedExpr, SourceInfo};
use cel::common::types::{CelBool, CelString};
use cel::{Env, ExecutionError, Value};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Bytes of an expression, at most. Those of Kubernetes are much shorter.
pub const MAX_BYTES: usize = 8 << 10;

/// Nesting of an expression, at most: evaluation recurses as deep.
const MAX_NESTING: usize = 120;

/// Bytes of stack that reading and evaluating need, at most.
pub const STACK: usize = 64 << 20;

/// The variables of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variables {
    /// One object: `self`, also called `object`.
    Object,
    /// An object before and after a change: `oldSelf` and `self`, also called `oldObject` and `object`.
    Change,
    /// Objects that live at one time: `objects`.
    Objects,
}

impl Variables {
    /// The names of the variables.
    fn names(self) -> &'static [&'static str] {
        match self {
            Variables::Object => &["self", "object"],
            Variables::Change => &["self", "oldSelf", "object", "oldObject"],
            Variables::Objects => &["objects"],
        }
    }
}

/// The type of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// A truth value.
    Truth,
    /// A text for people.
    Text,
}

/// A flaw of an expression, and its place: bytes of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The bytes.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
}

/// An expression without flaws.
#[derive(Clone)]
pub struct Expression {
    text: Arc<str>,
    program: Arc<Program>,
}

struct Program {
    root: Metered,
    /// The parts to evaluate when only new objects can have changed the result.
    news: Vec<Metered>,
    paths: Vec<Path>,
    /// Whether it reads `metadata.resourceVersion`.
    version: bool,
    growth: Growth,
}

/// A part that pays for its evaluation.
struct Metered {
    part: IdedExpr,
    /// Steps of each evaluation, at least.
    cost: u64,
}

impl Metered {
    fn of(part: IdedExpr) -> Metered {
        let cost = metering::cost(&part);
        Metered { part: metering::metered(part), cost }
    }
}

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// True or false.
    Truth(bool),
    /// A text.
    Text(String),
    /// It failed, with the reason.
    Failed(String),
    /// It needed more steps than one evaluation may take.
    Endless,
}

impl Expression {
    /// Reads an expression.
    pub fn read(text: &str, variables: Variables, result_type: ResultType) -> Result<Expression, Vec<Flaw>> {
        if text.len() > MAX_BYTES {
            let message = format!("an expression of {MAX_BYTES} bytes at most is expected, found {}", text.len());
            return Err(vec![Flaw { at: 0..text.len(), message }]);
        }
        deep(|| Expression::read_here(text, variables, result_type))
    }

    fn read_here(text: &str, variables: Variables, result_type: ResultType) -> Result<Expression, Vec<Flaw>> {
        if text.trim().is_empty() {
            let message = "an expression in CEL is expected, such as self.spec.replicas >= 0".to_owned();
            return Err(vec![Flaw { at: 0..text.len(), message }]);
        }
        let (root, info) = environment().parser().parse_with_source_info(text).map_err(|errors| {
            let flaw = |error: &cel::ParseError| Flaw { at: place(text, error.pos), message: plain(&error.msg) };
            errors.errors.iter().take(5).map(flaw).collect::<Vec<_>>()
        })?;
        let places = Places { text, info: &info };
        if depth(&root) > MAX_NESTING {
            let message = format!("an expression of {MAX_NESTING} nested parts at most is expected");
            return Err(vec![Flaw { at: 0..text.len(), message }]);
        }
        let (paths, version) = reading::paths(&root, variables, &places)?;
        typing::check(&root, result_type, &places)?;
        let growth = growth::of(&root);
        let news = growth::news(&root).into_iter().map(Metered::of).collect();
        Ok(Expression {
            text: text.into(),
            program: Arc::new(Program { root: Metered::of(root), news, paths, version, growth }),
        })
    }

    /// The text that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The fields of objects that it reads.
    pub fn paths(&self) -> &[Path] {
        &self.program.paths
    }

    /// Whether it reads the version of an object, which differs in every version.
    pub fn reads_version(&self) -> bool {
        self.program.version
    }

    /// How more objects can change its result.
    pub fn growth(&self) -> Growth {
        self.program.growth
    }

    /// Evaluates it. Needs a stack of [`STACK`] bytes: see [`deep`]. `steps` is what it may take, and is reduced by what it
    /// takes.
    pub fn evaluate(&self, bindings: &Bindings<'_>, steps: &mut u64) -> Outcome {
        evaluate(&self.program.root, bindings, steps)
    }

    /// Whether only new objects need to be looked at if it was true before.
    pub fn asks_only_news(&self) -> bool {
        !self.program.news.is_empty()
    }

    /// Evaluates an expression that was true before there were new objects.
    pub fn evaluate_news(&self, bindings: &Bindings<'_>, steps: &mut u64) -> Outcome {
        let mut outcome = Outcome::Truth(true);
        for part in &self.program.news {
            match evaluate(part, bindings, steps) {
                Outcome::Truth(true) => {}
                Outcome::Truth(false) => return Outcome::Truth(false),
                other => outcome = other,
            }
        }
        outcome
    }
}

fn evaluate(Metered { part, cost }: &Metered, bindings: &Bindings<'_>, steps: &mut u64) -> Outcome {
    let mut context = cel::Context::with_env(environment().clone());
    context.set_variable_resolver(bindings);
    let (value, is_spent) = metering::during(steps, *cost, bindings.longest(), || {
        Value::resolve_val(part, &context).map(|value| match value.downcast_ref::<CelBool>() {
            Some(truth) => Ok(*truth.inner()),
            None => Err((
                value.downcast_ref::<CelString<'_>>().map(|text| text.inner().to_owned()),
                value.get_type().name().to_owned(),
            )),
        })
    });
    match value {
        _ if is_spent => Outcome::Endless,
        Ok(Ok(truth)) => Outcome::Truth(truth),
        Ok(Err((Some(text), _))) => Outcome::Text(text),
        Ok(Err((None, kind))) => Outcome::Failed(format!("a truth value is expected, found a {kind}")),
        Err(error) => Outcome::Failed(words(&error)),
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

thread_local! {
    /// Whether this thread has such a stack already.
    static IS_DEEP: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs something on a stack that is large enough for any expression. If no such thread can be started, it runs on this one.
pub fn deep<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    if IS_DEEP.get() {
        return act();
    }
    let act = std::sync::Mutex::new(Some(act));
    let run = || {
        let act = act.lock().ok().and_then(|mut act| act.take());
        IS_DEEP.set(true);
        let result = act.map(|act| act());
        IS_DEEP.set(false);
        result
    };
    let there = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).ok()?;
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    match there.or_else(run) {
        Some(result) => result,
        None => unreachable!("it runs there or here"),
    }
}

/// The functions that expressions may call.
fn environment() -> &'static Arc<Env> {
    static ENVIRONMENT: OnceLock<Arc<Env>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut env = Env::stdlib();
        metering::declare(&mut env);
        Arc::new(env)
    })
}

/// The places of the parts of an expression in its text.
struct Places<'t> {
    text: &'t str,
    info: &'t SourceInfo,
}

impl Places<'_> {
    /// A flaw at a part.
    fn flaw(&self, part: &IdedExpr, message: impl Into<String>) -> Flaw {
        let (start, stop) = self.info.offset_for(part.id).unwrap_or((0, self.text.len() as u32));
        let byte = |nth: u32| self.text.char_indices().nth(nth as usize).map_or(self.text.len(), |(at, _)| at);
        let (start, stop) = (byte(start), byte(stop.saturating_add(1)));
        Flaw { at: start..stop.max(start), message: message.into() }
    }
}

/// The byte of a line (from 1) and column (from 1, in characters) up to the end of the word that begins there.
fn place(text: &str, (line, column): (isize, isize)) -> Range<usize> {
    let line = usize::try_from(line).unwrap_or(0).saturating_sub(1);
    let column = usize::try_from(column).unwrap_or(0).saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = &text[start..];
    let at = start + rest.char_indices().nth(column).map_or(rest.trim_end().len(), |(at, _)| at);
    let word = text[at..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len() - at);
    let word = word.max(text[at..].chars().next().map_or(0, char::len_utf8));
    at..at + word
}

/// A parser's message without its list of token names.
fn plain(message: &str) -> String {
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let message =
        message.split(", expecting {").next().unwrap_or(message).split(" expecting {").next().unwrap_or(message);
    let message: String = message.replace("<EOF>", "the end").chars().take(160).collect();
    format!("not an expression in CEL: {message}")
}

/// Why an evaluation failed, without values: they can be long, and maps have no order.
fn words(error: &ExecutionError) -> String {
    let short = |text: &str| text.chars().take(120).collect::<String>();
    match error {
        ExecutionError::NoSuchKey(name) => format!("a value has no field `{}`", short(name)),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "it divides by zero".to_owned(),
        ExecutionError::Overflow(..) => "a number is too large".to_owned(),
        ExecutionError::IndexOutOfBounds(_) => "a list has no element at that place".to_owned(),
        ExecutionError::NoSuchOverload(overload) => short(&overload.to_string()),
        ExecutionError::UnexpectedType { got, want } => format!("a {want} is expected, found a {got}"),
        ExecutionError::UnsupportedBinaryOperator(operator, ..) => {
            format!("two values cannot be used together: {}", short(operator))
        }
        ExecutionError::UndeclaredReference(name) => format!("there is no `{}`", short(name)),
        ExecutionError::FunctionError { function, message } => format!("{}: {}", short(function), short(message)),
        _ => "its values cannot be used together".to_owned(),
    }
}

/// The nesting of a tree of parts.
fn depth(root: &IdedExpr) -> usize {
    let mut deepest = 0;
    let mut open = vec![(root, 1)];
    while let Some((part, depth)) = open.pop() {
        deepest = deepest.max(depth);
        open.extend(metering::below(part).into_iter().map(|part| (part, depth + 1)));
    }
    deepest
}
