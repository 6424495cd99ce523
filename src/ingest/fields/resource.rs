//! Resources in declarations.

use std::fmt;

/// Word for the core group, whose name is empty. No other group can have it, since groups of custom resources have a
/// dot.
const CORE: &str = "core";

/// Name for every resource.
pub(super) const EVERY: &str = "*";

/// Longest name: a plural has at most 63 characters, a group 253.
const MAX_BYTES: usize = 63 + 1 + 253;

/// A resource in a declaration: `pods`, `ippools.whereabouts.cni.cncf.io`.
///
/// With a group it is that resource alone; `services.core` is the one of the core group. Without a group it is
/// **open**: the declaration covers that plural in each group, once per group. All names without a group in one
/// declaration mean the same group. So a reference from `pods` to `nodes` never joins pods of one group with nodes of
/// another, and values are compared inside one group only. A group without values at the declared paths is not
/// concerned.
///
/// One declaration then serves built-in kinds, custom resources that mirror them (virtual clusters, test servers),
/// and a kind that moved between groups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName {
    /// The plural, or `*` for every resource.
    pub plural: String,
    /// The group; `None`: open.
    pub group: Option<String>,
}

impl ResourceName {
    /// Parses `PLURAL`, `PLURAL.GROUP`, `PLURAL.core` or `*`. The error describes valid text.
    pub fn parse(text: &str) -> Result<ResourceName, &'static str> {
        const EXPECTED: &str = "a resource is expected: its plural in lower case, with its group unless it is the core group, \
                                such as pods or ippools.whereabouts.cni.cncf.io";
        let (plural, group) = text.split_once('.').map_or((text, None), |(plural, group)| (plural, Some(group)));
        let plain = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-'))
        };
        if text.len() > MAX_BYTES
            || !(plain(plural) || (plural == EVERY && group.is_none()))
            || group.is_some_and(|group| !plain(group))
        {
            return Err(EXPECTED);
        }
        let group = group.map(|group| if group == CORE { String::new() } else { group.to_owned() });
        Ok(ResourceName { plural: plural.to_owned(), group })
    }

    /// Whether it is `*`.
    pub fn is_every(&self) -> bool {
        self.plural == EVERY
    }

    /// Whether the declaration covers a resource of the evidence.
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
