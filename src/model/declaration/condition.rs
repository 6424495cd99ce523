//! Conditions on the fields of an object: `when` and `unless` of declarations.

use super::reader::Reader;
use crate::ingest::fields::Path;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// A field and the values that it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The field.
    pub path: Path,
    /// Texts, numbers and truth values as text; `*` fits any value.
    pub values: Vec<String>,
}

impl Condition {
    /// Whether the value of the field is one of its values.
    pub fn admits(&self, text: Option<&str>) -> bool {
        text.is_some_and(|text| self.values.iter().any(|value| value == "*" || value == text))
    }
}

/// Paths with the values that they may have; `*` is any value: `{ "status.phase" = ["Succeeded", "Failed"] }`.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "conditions"))]
#[cfg_attr(
    test,
    schemars(extend("additionalProperties" = { "type": "array", "minItems": 1, "items": { "type": "string" } }))
)]
pub(super) struct Written(
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Vec<String>>"))] BTreeMap<Spanned<String>, Vec<String>>,
);

/// Reads conditions; `None` if one is wrong.
pub(super) fn checked(written: Written, reader: &mut Reader<'_>) -> Option<Vec<Condition>> {
    let mut conditions = Some(Vec::new());
    for (path, values) in written.0 {
        if values.is_empty() {
            reader.mistake(path.span(), "a list of values is expected; \"*\" is any value");
            conditions = None;
        }
        match (reader.path(&path.into()), &mut conditions) {
            (Some(path), Some(conditions)) => conditions.push(Condition { path, values }),
            _ => conditions = None,
        }
    }
    conditions
}
