//! Invariants: expressions in CEL that must be true.

use super::reader::Reader;
use crate::ingest::fields::ResourceName;
use serde::Deserialize;
use toml::Spanned;

/// An expression that must be true over T.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// Its name: the rule is `user/NAME`.
    pub name: String,
    /// What it says, in a few words.
    pub title: String,
    /// Objects of this resource.
    pub resource: ResourceName,
    /// What it looks at.
    pub over: Over,
    /// The expression.
    pub expression: String,
    /// What a failure is.
    pub severity: Severity,
    /// The file that it stands in.
    pub file: String,
    /// Where the expression stands there.
    pub span: std::ops::Range<usize>,
}

/// What an invariant looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Every version of every object: `object`.
    #[default]
    Object,
    /// Every change of an object: `old` and `object`.
    Change,
    /// All living objects of a namespace at every revision: `objects`.
    Namespace,
    /// All living objects of the cluster at every revision: `objects`.
    Cluster,
}

/// What a failure is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Broken.
    #[default]
    Violation,
    /// Allowed, unsafe as a pattern.
    Hazard,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Written {
    name: Spanned<String>,
    title: Option<String>,
    resource: Spanned<String>,
    #[serde(default)]
    over: Over,
    expression: Spanned<String>,
    #[serde(default)]
    severity: Severity,
}

impl Written {
    pub fn checked(self, reader: &mut Reader<'_>) -> Option<Invariant> {
        let name = reader.name("invariant", &self.name);
        let resource = reader.resource(&self.resource);
        let span = self.expression.span();
        let name = name?;
        Some(Invariant {
            title: self.title.unwrap_or_else(|| name.replace('-', " ")),
            resource: resource?,
            over: self.over,
            expression: self.expression.into_inner(),
            severity: self.severity,
            file: reader.file().to_owned(),
            span,
            name,
        })
    }
}
