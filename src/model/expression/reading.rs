//! The names of an expression, and the fields of objects that it reads. Input: a parsed expression. Output: the paths to keep
//! when evidence is read, or the flaws of its names. A field that is missing from the paths is missing from every object, and the
//! expression then decides wrongly.

use super::metering::{below, collected, field_name};
use super::{Flaw, Places, Variables};
use crate::ingest::fields::{Path, Step};
use crate::model::declaration::nearest;
use cel::common::ast::{ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators};
use std::collections::BTreeSet;

/// Functions without a target.
const FUNCTIONS: [&str; 10] = ["size", "matches", "int", "uint", "double", "string", "bytes", "bool", "type", "dyn"];

/// Methods of a value.
const METHODS: [&str; 9] =
    ["size", "contains", "startsWith", "endsWith", "matches", "hasValue", "value", "orValue", "or"];

/// Methods of `optional`.
const OPTIONAL: [&str; 3] = ["of", "none", "ofNonZeroValue"];

/// Names of types.
const TYPES: [&str; 10] = ["int", "uint", "double", "string", "bytes", "bool", "type", "list", "map", "null_type"];

/// Macros, for users who mistype them.
const LOOPS: [&str; 7] = ["all", "exists", "exists_one", "map", "filter", "has", "existsOne"];

/// Steps of a path that are kept. Everything below is kept too.
const MAX_PATH_STEPS: usize = 24;

/// The origin of a value.
#[derive(Clone)]
enum Origin {
    /// A part of an object, by its path.
    Part(Vec<String>),
    /// A list of objects.
    Objects,
    /// Anything else.
    Made,
}

struct Reading<'p, 't> {
    places: &'p Places<'t>,
    variables: Variables,
    scopes: Vec<(String, Origin)>,
    paths: BTreeSet<Vec<String>>,
    flaws: Vec<Flaw>,
}

/// The paths of objects that an expression reads, and whether it reads their version; or what is wrong with its names.
pub fn paths(root: &IdedExpr, variables: Variables, places: &Places<'_>) -> Result<(Vec<Path>, bool), Vec<Flaw>> {
    let mut reading = Reading { places, variables, scopes: Vec::new(), paths: BTreeSet::new(), flaws: Vec::new() };
    reading.value(root);
    if !reading.flaws.is_empty() {
        return Err(reading.flaws);
    }
    let is_identity =
        |path: &[String]| matches!(path, [m, n] if m == "metadata" && super::subject::IDENTITY.contains(&n.as_str()));
    let path = |names: Vec<String>| Path { steps: names.into_iter().take(MAX_PATH_STEPS).map(Step::Member).collect() };
    let is_version =
        |path: &Vec<String>| matches!(path.as_slice(), [m, n, ..] if m == "metadata" && n == "resourceVersion");
    let version = reading.paths.iter().any(is_version);
    Ok((reading.paths.into_iter().filter(|names| !is_identity(names)).map(path).collect(), version))
}

impl Reading<'_, '_> {
    fn flaw(&mut self, part: &IdedExpr, message: impl Into<String>) {
        self.flaws.push(self.places.flaw(part, message));
    }

    /// A value that is used as a whole: all of it is kept.
    fn value(&mut self, part: &IdedExpr) {
        let origin = self.origin(part);
        self.keep(part, origin);
    }

    fn keep(&mut self, part: &IdedExpr, origin: Origin) {
        let Origin::Part(names) = origin else { return };
        match names.as_slice() {
            [] => self
                .flaw(part, "name a field of the object, such as self.spec: only fields that are named are kept of it"),
            [only] if only == "metadata" => {
                self.flaw(part, "name a field of metadata, such as self.metadata.labels: not all of it is kept");
            }
            _ => {
                self.paths.insert(names);
            }
        }
    }

    fn origin(&mut self, part: &IdedExpr) -> Origin {
        match &part.expr {
            Expr::Literal(_) => Origin::Made,
            Expr::Ident(name) => self.name(part, name),
            Expr::Select(select) => {
                let origin = self.origin(&select.operand);
                let origin = self.member(part, origin, &field_name(&select.field));
                if !select.test {
                    return origin;
                }
                self.keep(part, origin);
                Origin::Made
            }
            Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
                (operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT, [of, index]) => {
                    let origin = self.origin(of);
                    if let Expr::Literal(LiteralValue::String(name)) = &index.expr {
                        return self.member(part, origin, &field_name(name.inner()));
                    }
                    self.value(index);
                    if let Origin::Objects = origin {
                        return Origin::Part(Vec::new());
                    }
                    self.keep(of, origin);
                    Origin::Made
                }
                (name, args) => {
                    self.function(part, name, call.target.as_deref());
                    let target = call.target.as_deref().filter(|target| !is_optional(target));
                    for value in target.into_iter().chain(args) {
                        self.value(value);
                    }
                    Origin::Made
                }
            },
            Expr::Comprehension(c) => self.looped(c),
            Expr::Struct(_) | Expr::Unspecified => {
                self.flaw(part, "a message of a named type is not supported: objects are maps");
                Origin::Made
            }
            Expr::List(_) | Expr::Map(_) => {
                for value in below(part) {
                    self.value(value);
                }
                Origin::Made
            }
        }
    }

    fn member(&mut self, part: &IdedExpr, origin: Origin, name: &str) -> Origin {
        match origin {
            Origin::Part(mut names) => {
                names.push(name.to_owned());
                Origin::Part(names)
            }
            Origin::Objects => {
                self.flaw(part, "objects is a list: go through it, as in objects.all(o, o.spec.replicas > 0)");
                Origin::Made
            }
            Origin::Made => Origin::Made,
        }
    }

    fn name(&mut self, part: &IdedExpr, name: &str) -> Origin {
        if let Some((_, origin)) = self.scopes.iter().rev().find(|(known, _)| known == name) {
            return origin.clone();
        }
        if self.variables.names().contains(&name) {
            return if self.variables == Variables::Objects { Origin::Objects } else { Origin::Part(Vec::new()) };
        }
        if !TYPES.contains(&name) {
            let names = self.variables.names();
            let scopes = self.scopes.iter().map(|(known, _)| known.as_str()).filter(|known| !known.starts_with('@'));
            let near = nearest(name, names.iter().copied().chain(scopes)).map(str::to_owned);
            let there = names.join(", ");
            let hint = near.map_or(format!("known: {there}"), |near| format!("did you mean {near}?"));
            self.flaw(part, format!("there is no `{name}` here; {hint}"));
        }
        Origin::Made
    }

    fn function(&mut self, part: &IdedExpr, name: &str, target: Option<&IdedExpr>) {
        // Users cannot write the names of operators.
        if !name.chars().all(|c| c.is_alphanumeric() || c == '_') || !name.contains(char::is_alphabetic) {
            return;
        }
        let known: &[&str] = match target {
            None => &FUNCTIONS,
            Some(target) if is_optional(target) => &OPTIONAL,
            Some(_) => &METHODS,
        };
        if known.contains(&name) {
            return;
        }
        let hint = if LOOPS.contains(&name) {
            "it is written as in self.spec.items.all(i, i > 0), has(self.spec.x)".to_owned()
        } else {
            match nearest(name, known.iter().chain(&LOOPS).copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("known: {}", known.join(", ")),
            }
        };
        self.flaw(part, format!("there is no function `{name}` like this; {hint}"));
    }

    fn looped(&mut self, c: &ComprehensionExpr) -> Origin {
        let range = self.origin(&c.iter_range);
        let element = match &range {
            Origin::Objects => Origin::Part(Vec::new()),
            Origin::Part(_) | Origin::Made => Origin::Made,
        };
        let over_objects = matches!(range, Origin::Objects);
        self.keep(&c.iter_range, range);
        self.value(&c.accu_init);
        self.scopes.push((c.iter_var.clone(), element));
        self.scopes.push((c.accu_var.clone(), Origin::Made));
        let is_element = |part: &IdedExpr| matches!(&part.expr, Expr::Ident(name) if *name == c.iter_var);
        let origin = match collected(c) {
            // A subset of the objects.
            Some((guard, element)) if over_objects && is_element(element) => {
                guard.into_iter().for_each(|guard| self.value(guard));
                Origin::Objects
            }
            _ => {
                self.value(&c.loop_cond);
                self.value(&c.loop_step);
                self.value(&c.result);
                Origin::Made
            }
        };
        self.scopes.truncate(self.scopes.len() - 2);
        origin
    }
}

fn is_optional(target: &IdedExpr) -> bool {
    matches!(&target.expr, Expr::Ident(name) if name == "optional")
}
