//! Conditions on the fields of an object: `when` and `unless` of declarations.

use super::reader::Reader;
use crate::ingest::fields::Path;
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

/// `{ "status.phase" = ["Succeeded", "Failed"] }`
pub(super) type Written = BTreeMap<Spanned<String>, Vec<String>>;

/// Reads conditions; `None` if one is wrong.
pub(super) fn checked(written: Written, reader: &mut Reader<'_>) -> Option<Vec<Condition>> {
    let mut conditions = Some(Vec::new());
    for (path, values) in written {
        if values.is_empty() {
            reader.mistake(path.span(), "a list of values is expected; \"*\" is any value");
            conditions = None;
        }
        match (reader.path(&path), &mut conditions) {
            (Some(path), Some(conditions)) => conditions.push(Condition { path, values }),
            _ => conditions = None,
        }
    }
    conditions
}
