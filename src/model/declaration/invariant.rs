//! Invariants: expressions in CEL that must be true of every version, change or revision in the revision order.

use super::condition::{self, Condition};
use super::reader::Reader;
use super::unchecked::{Name, Unchecked, Words};
use crate::ingest::fields::{Path, ResourceName};
use crate::model::expression::{Expression, ResultType, Variables};
use serde::Deserialize;
use toml::Spanned;

/// An expression that must be true in the revision order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// Its name.
    pub name: String,
    /// What it requires, in a few words.
    pub title: String,
    /// The resource of its objects.
    pub resource: ResourceName,
    /// What it is evaluated on.
    pub scope: Scope,
    /// The expression.
    pub expression: Expression,
    /// The message of a failure; without it, the title.
    pub message: Option<String>,
    /// The message of a failure, as an expression.
    pub message_expression: Option<Expression>,
    /// Patterns of namespaces in which it holds; empty: all. `*` fits any text.
    pub namespaces: Vec<String>,
    /// It holds for objects that fulfil all of these.
    pub when: Vec<Condition>,
    /// It does not hold for objects that fulfil one of these.
    pub unless: Vec<Condition>,
    /// With `live`: objects that agree in these fields are evaluated together, apart from others. An object with several values
    /// is in several groups.
    pub per: Vec<Path>,
    /// With `transition`: what holds for each change holds for any two versions of one incarnation of an object, the earlier
    /// first.
    pub transitive: bool,
    /// The kind of a failure.
    pub severity: Severity,
    /// Its place: `FILE:LINE`.
    pub place: String,
}

impl Invariant {
    /// The fields that select and group objects.
    pub fn choosing(&self) -> impl Iterator<Item = &Path> {
        self.when.iter().chain(&self.unless).map(|condition| &condition.path).chain(&self.per)
    }

    /// The fields that its expressions read.
    pub fn read(&self) -> impl Iterator<Item = &Path> {
        self.expression.paths().iter().chain(self.message_expression.iter().flat_map(Expression::paths))
    }

    /// Whether it holds in a namespace.
    pub fn speaks_of(&self, namespace: &str) -> bool {
        self.namespaces.is_empty()
            || self.namespaces.iter().any(|pattern| super::presumption::matches(pattern, namespace))
    }
}

/// What an invariant is evaluated on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "scope"))]
pub enum Scope {
    /// Every version of every object: `self`.
    #[default]
    Object,
    /// Every change of an object: `oldSelf` and `self`.
    Transition,
    /// All objects that live at a revision, for every revision: `objects`.
    Live,
}

impl Scope {
    fn variables(self) -> Variables {
        match self {
            Scope::Object => Variables::Object,
            Scope::Transition => Variables::Change,
            Scope::Live => Variables::Objects,
        }
    }
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "severity"))]
pub enum Severity {
    /// Forbidden.
    #[default]
    Violation,
    /// Allowed, but unsafe as a pattern.
    Hazard,
}

/// An expression in CEL that must be true.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "invariant"))]
pub(super) struct Written {
    /// Its name, unique among its kind in the file. A declaration replaces one of the same kind and name in an earlier file or a
    /// pack.
    name: Unchecked<Name>,
    /// The meaning of the expression, in a few words.
    title: Option<Unchecked<Words>>,
    /// The resource of the objects.
    resource: Unchecked<ResourceName>,
    /// What the expression is evaluated on. Without it, on `object`.
    #[serde(default)]
    scope: Scope,
    /// Must be true. It reads `self`; `self` and `oldSelf`; or `objects`.
    expression: Unchecked<Expression>,
    /// The message if the expression is false. Without it, the title is the message.
    message: Option<Unchecked<Words>>,
    /// An expression that results in the message.
    message_expression: Option<Unchecked<Expression>>,
    /// The namespaces of the objects; `*` stands for any text.
    #[serde(default)]
    namespaces: Vec<String>,
    /// An object counts only while all of these hold.
    #[serde(default)]
    when: condition::Written,
    /// An object does not count while one of these holds.
    #[serde(default)]
    unless: condition::Written,
    /// For `live`: objects with equal values in these fields are evaluated together, apart from others.
    #[serde(default)]
    per: Vec<Unchecked<Path>>,
    /// For `transition`: the expression must also be true of any two versions of one object, not only of neighbours.
    #[cfg_attr(test, schemars(with = "Option<bool>"))]
    transitive: Option<Spanned<bool>>,
    /// The kind of finding if the expression is false. Without it, `violation`.
    #[serde(default)]
    severity: Severity,
}

impl Written {
    pub fn checked(self, reader: &mut Reader<'_>) -> Option<Invariant> {
        let name = reader.name("invariant", &self.name);
        let resource = reader.resource(&self.resource);
        let when = condition::checked(self.when, reader);
        let unless = condition::checked(self.unless, reader);
        let variables = self.scope.variables();
        let expression = reader.expression(&self.expression, variables, ResultType::Truth);
        let said = self.message_expression.as_ref().map(|text| reader.expression(text, variables, ResultType::Text));
        let per: Vec<Option<Path>> = self.per.iter().map(|path| reader.path(path)).collect();
        if let (Some(first), true) = (self.per.first(), self.scope != Scope::Live) {
            reader.mistake(first.span(), "`per` is for scope = \"live\": it groups the objects of an evaluation");
            return None;
        }
        if let (Some(word), true) = (&self.transitive, self.scope != Scope::Transition) {
            reader.mistake(word.span(), "`transitive` is for scope = \"transition\": it concerns two versions");
            return None;
        }
        let place = reader.place(&self.expression);
        let (title, message) = (reader.words(self.title), reader.words(self.message));
        let name = name?;
        Some(Invariant {
            title: title.unwrap_or_else(|| name.replace('-', " ")),
            resource: resource?,
            scope: self.scope,
            expression: expression?,
            message,
            message_expression: match said {
                None => None,
                Some(said) => Some(said?),
            },
            namespaces: self.namespaces,
            when: when?,
            unless: unless?,
            per: per.into_iter().collect::<Option<_>>()?,
            transitive: self.transitive.is_some_and(Spanned::into_inner),
            severity: self.severity,
            place,
            name,
        })
    }
}
