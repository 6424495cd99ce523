//! Resources as declarations name them.

use std::fmt;

/// The word for the group that has no name of its own (and none can have this one: a group of custom resources has a dot).
const CORE: &str = "core";

/// The name of the resource of every other one.
pub(super) const EVERY: &str = "*";

/// A plural and a group have 63 and 253 letters at most.
const LONGEST: usize = 63 + 1 + 253;

/// A resource in a declaration: `pods`, `ippools.whereabouts.cni.cncf.io`.
///
/// With a group it is that resource alone. Without one the group is **open**: the declaration speaks of that plural in the core
/// group and in every other one, once per group. All names without group inside one declaration mean the same group, so a
/// reference from `pods` to `nodes` never joins the pods of one group with the nodes of another, and values are compared inside
/// one group only. A group that has a resource of the plural and nothing at the declared paths is not concerned. `services.core` is that of
/// the core group alone.
///
/// This is how one declaration serves built-in kinds, the custom resources that mirror them (virtual clusters, test
/// servers), and a kind that moved between groups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName {
    /// The plural, or `*` for every resource.
    pub plural: String,
    /// The group; `None` where it is open.
    pub group: Option<String>,
}

impl ResourceName {
    /// Reads `PLURAL`, `PLURAL.GROUP`, `PLURAL.core` (the group without a name) or `*`. The error says what is expected.
    pub fn parse(text: &str) -> Result<ResourceName, &'static str> {
        const EXPECTED: &str = "a resource is expected: its plural in lower case, with its group where it has one of its own, \
                                such as pods or ippools.whereabouts.cni.cncf.io";
        let (plural, group) = text.split_once('.').map_or((text, None), |(plural, group)| (plural, Some(group)));
        let plain = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-'))
        };
        if text.len() > LONGEST
            || !(plain(plural) || (plural == EVERY && group.is_none()))
            || group.is_some_and(|group| !plain(group))
        {
            return Err(EXPECTED);
        }
        let group = group.map(|group| if group == CORE { String::new() } else { group.to_owned() });
        Ok(ResourceName { plural: plural.to_owned(), group })
    }

    /// Whether every resource is meant.
    pub fn is_every(&self) -> bool {
        self.plural == EVERY
    }

    /// Whether a resource of the evidence is meant.
    pub fn is(&self, plural: &str, group: &str) -> bool {
        (self.is_every() || self.plural == plural) && self.group.as_deref().is_none_or(|wanted| wanted == group)
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.group {
            Some(group) if group.is_empty() => write!(f, "{}.{CORE}", self.plural),
            Some(group) => write!(f, "{}.{group}", self.plural),
            None => f.write_str(&self.plural),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_group_leaves_the_group_open() {
        let pods = ResourceName::parse("pods").unwrap();
        assert!(pods.is("pods", "") && pods.is("pods", "core.example.com") && !pods.is("nodes", ""));
        let pools = ResourceName::parse("ippools.whereabouts.cni.cncf.io").unwrap();
        assert!(pools.is("ippools", "whereabouts.cni.cncf.io") && !pools.is("ippools", ""));
        assert!(ResourceName::parse("*").unwrap().is("anything", "at.all"));
        let services = ResourceName::parse("services.core").unwrap();
        assert!(services.is("services", "") && !services.is("services", "mesh.example.com"));
        assert_eq!(services.to_string(), "services.core");
    }

    #[test]
    fn a_kind_is_no_plural() {
        for text in [&"p".repeat(400), "", "Pod", "pods.", ".apps", "apps/deployments", "*.apps", "po ds"] {
            assert!(ResourceName::parse(text).is_err(), "{text}");
        }
    }
}
