//! Allocations: fields by which an object claims something that only one may hold at a time.

use super::condition::{self, Condition};
use super::reader::Reader;
use super::unchecked::{Name, Unchecked, Words};
use crate::ingest::fields::{Path, ResourceName};
use serde::Deserialize;
use toml::Spanned;

/// Objects of a resource that hold values, each with one holder at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Its name.
    pub name: String,
    /// What is held, in a few words for sentences: "the address", "the node port".
    pub what: String,
    /// The resource of the objects that hold values.
    pub resource: ResourceName,
    /// What makes up a value. Paths with a common beginning up to a `[*]` go through its elements together.
    pub value: Vec<Path>,
    /// How values are compared.
    pub compare: Compare,
    /// The holder; without it, the object itself.
    pub holder: Option<Path>,
    /// Values of allocations with one space exclude each other; without it, the allocation's name.
    pub space: String,
    /// The value is held only while all of these hold.
    pub when: Vec<Condition>,
    /// The value is not held while one of these holds.
    pub unless: Vec<Condition>,
    /// Values that mean none.
    pub except: Vec<String>,
    /// The allocation that the allocator itself keeps: once its entry for this value and holder is gone, the field is only stale.
    pub record: Option<String>,
    /// Whether the field is reported late: two holders are then a suspect at most.
    pub reported: bool,
    /// The name of the node that reports the field: if the node is gone or not ready, the field is stale.
    pub node: Option<Path>,
    /// Whether to hold is to be bound: `double-bind` then reports it, not `double-allocation`.
    pub binds: bool,
}

impl Allocation {
    /// Every path that it reads.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let conditions = self.when.iter().chain(&self.unless).map(|condition| &condition.path);
        self.value.iter().chain(&self.holder).chain(&self.node).chain(conditions)
    }
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "compare"))]
pub enum Compare {
    /// As texts.
    #[default]
    Text,
    /// As IP addresses: `::1` is `0:0:0:0:0:0:0:1`.
    Address,
    /// As ranges of addresses (CIDR), which exclude each other where they overlap.
    Range,
}

/// Fields by which an object holds a value that only one object may hold at a time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "allocation"))]
pub(super) struct Written {
    /// Its name, unique among its kind in the file. A declaration replaces one of the same kind and name in an earlier file or a
    /// pack.
    name: Unchecked<Name>,
    /// The name of the value in sentences: "the address".
    what: Option<Unchecked<Words>>,
    /// The resource of the objects that hold values.
    resource: Unchecked<ResourceName>,
    /// The fields that make up a value.
    #[cfg_attr(test, schemars(with = "Vec<Unchecked<Path>>"))]
    value: Spanned<Vec<Unchecked<Path>>>,
    /// How values are compared. Without it, as texts.
    #[serde(default)]
    compare: Compare,
    /// The holder of the value. Without it, the object holds the value.
    holder: Option<Unchecked<Path>>,
    /// Allocations with the same space exclude each other's values. Without it, the space is the name.
    space: Option<Unchecked<Words>>,
    /// The value is held only while all of these hold.
    #[serde(default)]
    when: condition::Written,
    /// The value is not held while one of these holds.
    #[serde(default)]
    unless: condition::Written,
    /// Values that mean that nothing is held.
    #[serde(default)]
    except: Vec<String>,
    /// The allocation that the allocator itself keeps, in this file, an earlier one or a pack. The field of this allocation
    /// follows it late, so it counts only where the other one gave the value to its holder.
    record: Option<Unchecked<Name>>,
    /// The field is reported late. Two holders are a suspect at most.
    #[serde(default)]
    reported: bool,
    /// The name of the node that reports the field. While that node is gone or not ready, the field shows nothing about the
    /// present.
    node: Option<Unchecked<Path>>,
    /// A holder is bound to the value, so the rule `double-bind` judges two holders.
    #[serde(default)]
    binds: bool,
}

impl Written {
    pub fn checked(self, reader: &mut Reader<'_>) -> Option<Allocation> {
        let name = reader.name("allocation", &self.name);
        let resource = reader.resource(&self.resource);
        let span = self.value.span();
        let written = self.value.into_inner();
        if written.is_empty() {
            reader.mistake(span, "a list of paths is expected: what makes up a value");
            return None;
        }
        let value: Vec<Option<Path>> = written.iter().map(|path| reader.path(path)).collect();
        let holder = reader.optional_path(self.holder.as_ref());
        let when = condition::checked(self.when, reader);
        let unless = condition::checked(self.unless, reader);
        let record = self.record.map(|record| reader.record(record));
        let node = reader.optional_path(self.node.as_ref());
        let (what, space) = (reader.words(self.what), reader.words(self.space));
        let name = name?;
        Some(Allocation {
            what: what.unwrap_or_else(|| "the value".to_owned()),
            resource: resource?,
            value: value.into_iter().collect::<Option<Vec<_>>>()?,
            compare: self.compare,
            holder: holder?,
            space: space.unwrap_or_else(|| name.clone()),
            when: when?,
            unless: unless?,
            except: self.except,
            record,
            reported: self.reported,
            node: node?,
            binds: self.binds,
            name,
        })
    }
}
