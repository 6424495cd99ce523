//! Leadership: objects that say which of several replicas is the one that acts.

use super::condition::{self, Condition};
use super::reader::Reader;
use super::{Path, ResourceName};
use serde::Deserialize;
use toml::Spanned;

/// Objects of a resource name the replica that leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// Its name.
    pub name: String,
    /// Objects of this resource.
    pub resource: ResourceName,
    /// Who leads; empty while nobody does.
    pub holder: Path,
    /// For how many seconds after a renewal it does.
    pub duration: Path,
    /// An object for which one of these holds elects nobody.
    pub unless: Vec<Condition>,
}

impl Leadership {
    /// The paths that have to be kept of its objects.
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
