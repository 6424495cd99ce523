//! References: fields by which one object names another, by uid, by name, or by both.

use super::condition::{self, Condition};
use super::reader::Reader;
use super::unchecked::{Name, Unchecked};
use crate::ingest::fields::{Path, ResourceName};
use serde::Deserialize;

/// A field of one resource that names an object of another, by uid, by name, or by both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its name.
    pub name: String,
    /// The resource of the objects that refer.
    pub from: ResourceName,
    /// The resource of the targets; `None` if the reference itself names the kind.
    pub to: Option<ResourceName>,
    /// The uid of the target.
    pub uid: Option<Path>,
    /// The name of the target.
    pub target: Option<Path>,
    /// The namespace of the target; without it, that of the referring object, or none if the target has none.
    pub namespace: Option<Path>,
    /// The kind of the target, if `to` does not name it.
    pub kind: Option<Path>,
    /// The API version of the target, beside `kind`.
    pub api_version: Option<Path>,
    /// `true` if the target's controller made the reference itself.
    pub controller: Option<Path>,
    /// The target owns the object: the garbage collector removes the object after its last owner.
    pub owns: bool,
    /// The reference gives the object to its target, as a pod to a node.
    pub binds: bool,
    /// The reference is made once in the life of the object and never changes.
    pub once: bool,
    /// The object is meaningless without this target: a client that reads it without a check whether the target lives is misled.
    pub belongs: bool,
    /// Controllers that make the reference follow the target and clean up after it: a late reference is not a fault.
    pub followed: bool,
    /// It counts only while all of these hold.
    pub when: Vec<Condition>,
    /// It does not count while one of these holds.
    pub unless: Vec<Condition>,
}

impl Reference {
    /// Every path that it reads.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let named = [&self.uid, &self.target, &self.namespace, &self.kind, &self.api_version, &self.controller];
        let conditions = self.when.iter().chain(&self.unless).map(|condition| &condition.path);
        named.into_iter().flatten().chain(conditions)
    }
}

/// A field by which one object names another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "reference"))]
pub(super) struct Written {
    /// Its name, unique among its kind in the file. A declaration replaces one of the same kind and name in an earlier file or a
    /// pack.
    name: Unchecked<Name>,
    /// The resource of the objects that refer.
    from: Unchecked<ResourceName>,
    /// The resource of the targets. Without it, `kind` names the kind of the target.
    to: Option<Unchecked<ResourceName>>,
    /// The uid of the target.
    uid: Option<Unchecked<Path>>,
    /// The name of the target.
    target: Option<Unchecked<Path>>,
    /// The namespace of the target. Without it, the target is in the namespace of the object.
    namespace: Option<Unchecked<Path>>,
    /// The kind of the target.
    kind: Option<Unchecked<Path>>,
    /// The API version of the target.
    api_version: Option<Unchecked<Path>>,
    /// True if the controller of the target made the reference.
    controller: Option<Unchecked<Path>>,
    /// The target owns the object: the garbage collector removes the object after its last owner.
    #[serde(default)]
    owns: bool,
    /// The reference gives the object to its target, as a pod to a node.
    #[serde(default)]
    binds: bool,
    /// The reference is made once in the life of the object and never changes.
    #[serde(default)]
    once: bool,
    /// The object has no meaning without this target.
    #[serde(default)]
    belongs: bool,
    /// Controllers that make the reference follow the target and clean up after it. A late reference is no fault.
    #[serde(default)]
    followed: bool,
    /// The reference counts only while all of these hold.
    #[serde(default)]
    when: condition::Written,
    /// The reference does not count while one of these holds.
    #[serde(default)]
    unless: condition::Written,
}

impl Written {
    pub fn checked(self, reader: &mut Reader<'_>) -> Option<Reference> {
        let name = reader.name("reference", &self.name);
        let from = reader.resource(&self.from);
        let to = match &self.to {
            None => Some(None),
            Some(to) => reader.resource(to).map(Some),
        };
        let [uid, target, namespace, kind, api_version, controller] =
            [&self.uid, &self.target, &self.namespace, &self.kind, &self.api_version, &self.controller]
                .map(|path| reader.optional_path(path.as_ref()));
        let when = condition::checked(self.when, reader);
        let unless = condition::checked(self.unless, reader);
        let span = self.name.span();
        if self.uid.is_none() && self.target.is_none() {
            reader.mistake(span, "a reference needs a path `uid`, a path `target` (the name), or both");
            return None;
        }
        if self.to.is_some() == self.kind.is_some() {
            reader.mistake(span, "a reference needs a resource `to` or a path `kind`, not both");
            return None;
        }
        if (self.binds || self.once) && self.target.is_none() {
            reader.mistake(span, "a reference that `binds` or is made `once` needs a path `target`");
            return None;
        }
        if (self.owns || self.belongs) && self.uid.is_none() {
            reader.mistake(span, "a reference that `owns` or `belongs` needs a path `uid`");
            return None;
        }
        if self.followed && (self.uid.is_none() || self.to.is_none()) {
            reader.mistake(span, "a reference that is `followed` needs a path `uid` and a resource `to`");
            return None;
        }
        Some(Reference {
            name: name?,
            from: from?,
            to: to?,
            uid: uid?,
            target: target?,
            namespace: namespace?,
            kind: kind?,
            api_version: api_version?,
            controller: controller?,
            owns: self.owns,
            binds: self.binds,
            once: self.once,
            belongs: self.belongs,
            followed: self.followed,
            when: when?,
            unless: unless?,
        })
    }
}
