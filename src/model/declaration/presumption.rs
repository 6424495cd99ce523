//! Presumptions: what a writer presumes when it does a certain write, whatever it read.

use super::reader::Reader;
use super::unchecked::{Name, Unchecked};
use super::{Path, ResourceName};
use serde::Deserialize;
use toml::Spanned;

/// A writer that deletes an object of one resource presumes that an object of another is absent: it deletes for no other reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presumption {
    /// Its name.
    pub name: String,
    /// The resource of the deleted object.
    pub deletes: ResourceName,
    /// The users that delete; `*` fits any text.
    pub by: Vec<String>,
    /// The resource of the absent object.
    pub absent: ResourceName,
    /// The path to its namespace; without it, that of the deleted object.
    pub namespace: Option<Path>,
    /// The path to its name.
    pub target: Path,
}

impl Presumption {
    /// Whether it applies to a user.
    pub fn speaks_of(&self, user: &str) -> bool {
        self.by.iter().any(|pattern| matches(pattern, user))
    }

    /// The paths that must be kept of the deleted objects.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.namespace.iter().chain([&self.target])
    }
}

/// Whether a text fits a pattern in which every `*` fits any text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or("");
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// What a client presumes when it deletes an object.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "presumption"))]
pub(super) struct Written {
    /// Its name, unique among its kind in the file. A declaration replaces one of the same kind and name in an earlier file or a
    /// pack.
    name: Unchecked<Name>,
    /// The resource of the deleted object.
    deletes: Unchecked<ResourceName>,
    /// The users that delete it; `*` stands for any text.
    #[cfg_attr(test, schemars(with = "Vec<String>", length(min = 1)))]
    by: Spanned<Vec<String>>,
    /// The resource of the object that the client presumes absent.
    absent: Unchecked<ResourceName>,
    /// The namespace of that object. Without it, the namespace of the deleted object.
    namespace: Option<Unchecked<Path>>,
    /// The name of that object.
    target: Unchecked<Path>,
}

impl Written {
    pub fn checked(self, reader: &mut Reader<'_>) -> Option<Presumption> {
        let name = reader.name("presumption", &self.name);
        let (deletes, absent) = (reader.resource(&self.deletes), reader.resource(&self.absent));
        let (namespace, target) = (reader.optional_path(self.namespace.as_ref()), reader.path(&self.target));
        let span = self.by.span();
        let by = self.by.into_inner();
        if by.is_empty() {
            reader.mistake(span, "a list of users is expected, such as \"*:endpoint-controller\"");
            return None;
        }
        Some(Presumption {
            name: name?,
            deletes: deletes?,
            by,
            absent: absent?,
            namespace: namespace?,
            target: target?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_in_the_name_of_a_user_stand_for_any_text() {
        for (pattern, text, fits) in [
            ("system:kube-controller-manager", "system:kube-controller-manager", true),
            ("*:endpoint-controller", "system:serviceaccount:kube-system:endpoint-controller", true),
            ("*:endpoint-controller", "system:serviceaccount:kube-system:endpoint-controller-2", false),
            ("system:*:x:*", "system:a:x:b", true),
            ("a*a", "a", false),
            ("*", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}
