//! Children: how many objects of a resource a controller keeps for one owner.

use super::condition::{self, Condition};
use super::reader::Reader;
use super::unchecked::{Name, Unchecked};
use crate::ingest::fields::{Path, ResourceName};
use serde::Deserialize;

/// Objects that a controller makes for an owner, up to a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its name.
    pub name: String,
    /// The children's resource.
    pub resource: ResourceName,
    /// The owner's resource: that of the owner reference which says `controller: true`.
    pub owner: ResourceName,
    /// The owner's field with the number; without it, one.
    pub desired: Option<Path>,
    /// What distinguishes the places of children, each of which has `desired` of them: a node, an ordinal.
    pub place: Vec<Path>,
    /// A child does not count while one of these holds.
    pub unless: Vec<Condition>,
}

impl Child {
    /// Every path that it reads, with the resource that it is read from.
    pub fn paths(&self) -> impl Iterator<Item = (&ResourceName, &Path)> {
        let of_child = self.place.iter().chain(self.unless.iter().map(|condition| &condition.path));
        self.desired.iter().map(|path| (&self.owner, path)).chain(of_child.map(|path| (&self.resource, path)))
    }
}

/// How many objects a controller keeps for one owner.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "child"))]
pub(super) struct Written {
    /// Its name, unique among its kind in the file. A declaration replaces one of the same kind and name in an earlier file or a
    /// pack.
    name: Unchecked<Name>,
    /// The resource of the children.
    resource: Unchecked<ResourceName>,
    /// The resource of the owner.
    owner: Unchecked<ResourceName>,
    /// The field of the owner with the wanted number of children. Without it, one child is wanted.
    desired: Option<Unchecked<Path>>,
    /// The fields that tell the places of children apart. A child has its place from its creation on, even if a field shows it
    /// later.
    #[serde(default)]
    place: Vec<Unchecked<Path>>,
    /// A child does not count while one of these holds.
    #[serde(default)]
    unless: condition::Written,
}

impl Written {
    pub fn checked(self, reader: &mut Reader<'_>) -> Option<Child> {
        let name = reader.name("child", &self.name);
        let (resource, owner) = (reader.resource(&self.resource), reader.resource(&self.owner));
        let desired = reader.optional_path(self.desired.as_ref());
        let place: Vec<Option<Path>> = self.place.iter().map(|path| reader.path(path)).collect();
        let unless = condition::checked(self.unless, reader);
        if self.desired.is_none() && self.place.is_empty() {
            let expected =
                "`desired` (the owner's number of children) or `place` (what distinguishes their places) is expected";
            reader.mistake(self.name.span(), expected);
            return None;
        }
        Some(Child {
            name: name?,
            resource: resource?,
            owner: owner?,
            desired: desired?,
            place: place.into_iter().collect::<Option<_>>()?,
            unless: unless?,
        })
    }
}
