//! Expressions in CEL over what a client knows, or over objects in etcd.

use crate::model::expression::deep;
use cel::objects::{Key, Map};
use cel::{Context, Program, Value};
use serde_json::Value as Json;
use std::fmt;
use std::sync::Arc;

/// Bytes of an expression, at most.
const MAX_BYTES: usize = 512;

/// Brackets inside brackets of an expression, at most. Evaluation recurses as deep.
const MAX_NESTING: usize = 32;

/// Macros over elements in one expression, at most. With the objects of a protocol, they bound each evaluation.
const MAX_MACROS: usize = 4;

/// An expression, with the variables that it reads.
pub struct Expression {
    text: String,
    program: Program,
    /// The variables that it reads, ascending.
    pub variables: Vec<String>,
}

impl Expression {
    /// Reads an expression.
    pub fn read(text: &str) -> Result<Expression, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("an expression of at most {MAX_BYTES} bytes is expected, found {}", text.len()));
        }
        let macros = ["all(", "exists(", "exists_one(", "filter(", "map("];
        if macros.iter().map(|name| text.matches(name).count()).sum::<usize>() > MAX_MACROS {
            return Err(format!("an expression with at most {MAX_MACROS} macros over elements is expected"));
        }
        if nesting(text) > MAX_NESTING {
            return Err(format!("an expression with at most {MAX_NESTING} nested brackets is expected"));
        }
        let program = deep(|| Program::compile(text)).map_err(|errors| {
            let first = errors.errors.first().map(|error| error.msg.clone()).unwrap_or_default();
            format!("this is not an expression in CEL: {}", first.lines().next().unwrap_or_default())
        })?;
        let mut variables: Vec<String> =
            program.references().variables().iter().map(|name| (*name).to_owned()).collect();
        variables.sort_unstable();
        Ok(Expression { text: text.to_owned(), program, variables })
    }

    /// Evaluates it.
    pub fn evaluate(&self, bindings: &[(&str, Json)]) -> Result<Json, String> {
        let mut context = Context::default();
        for (name, value) in bindings {
            context.add_variable_from_value(*name, cel_value(value));
        }
        let value = self.program.execute(&context).map_err(|error| error.to_string())?;
        json(&value).ok_or_else(|| format!("`{}` gives a value that no object can have", self.text))
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How deep brackets are nested, at most.
fn nesting(text: &str) -> usize {
    let (mut open, mut most) = (0usize, 0);
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// A value of an object in CEL. Whole numbers are `int`, as in Kubernetes.
fn cel_value(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::String(text.clone().into()),
        Json::Array(list) => Value::List(Arc::new(list.iter().map(cel_value).collect())),
        Json::Object(fields) => {
            let member = |(name, value): (&String, &Json)| (Key::String(name.clone().into()), cel_value(value));
            Value::Map(Map { map: Arc::new(fields.iter().map(member).collect()) })
        }
    }
}

fn json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => Json::Bool(*truth),
        Value::Int(number) => Json::from(*number),
        Value::UInt(number) => Json::from(*number),
        Value::String(text) => Json::String(text.to_string()),
        Value::List(list) => Json::Array(list.iter().map(json).collect::<Option<_>>()?),
        Value::Map(map) => {
            let member = |(key, value): (&Key, &Value)| Some((key.to_string(), json(value)?));
            Json::Object(map.map.iter().map(member).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
