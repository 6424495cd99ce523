//! Leadership: objects that name the acting one of several replicas.

use super::condition::{self, Condition};
use super::reader::Reader;
use super::unchecked::{Name, Unchecked};
use super::{Path, ResourceName};
use serde::Deserialize;

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

/// Objects that name the leader among replicas.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "leadership"))]
pub(super) struct Written {
    /// Its name, unique among its kind in the file. A declaration replaces one of the same kind and name in an earlier file or a
    /// pack.
    name: Unchecked<Name>,
    /// The resource of the objects.
    resource: Unchecked<ResourceName>,
    /// The leader; empty while nobody leads.
    holder: Unchecked<Path>,
    /// The seconds for which a renewal counts.
    duration: Unchecked<Path>,
    /// An object elects nobody while one of these holds.
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
