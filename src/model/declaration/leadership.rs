//! Leadership: objects that name the acting one of several replicas.

use super::condition::{self, Condition};
use super::reader::Reader;
use super::{Path, ResourceName};
use serde::Deserialize;
use toml::Spanned;

/// Objects of a resource that name the leading replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// Its name.
    pub name: String,
    /// Objects of this resource.
    pub resource: ResourceName,
    /// The leader; empty without one.
    pub holder: Path,
    /// The seconds that it leads after a renewal.
    pub duration: Path,
    /// An object for which one of these holds names no leader.
    pub unless: Vec<Condition>,
}

impl Leadership {
    /// The paths that must be kept of its objects.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        [&self.holder, &self.duration].into_iter().chain(self.unless.iter().map(|condition| &condition.path))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Written {
    name: Spanned<String>,
    resource: Spanned<String>,
    holder: Spanned<String>,
    duration: Spanned<String>,
    #[serde(default)]
    unless: condition::Written,
}

impl Written {
    pub fn checked(self, reader: &mut Reader<'_>) -> Option<Leadership> {
        let name = reader.name("leadership", &self.name);
        let resource = reader.resource(&self.resource);
        let (holder, duration) = (reader.path(&self.holder), reader.path(&self.duration));
        let unless = condition::checked(self.unless, reader);
        Some(Leadership { name: name?, resource: resource?, holder: holder?, duration: duration?, unless: unless? })
    }
}
