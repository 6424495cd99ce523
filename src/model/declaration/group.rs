//! Groups: several writes to several objects that belong together.

use super::reader::Reader;
use super::unchecked::{Name, Unchecked, Words};
use super::{Path, ResourceName, Step};
use serde::Deserialize;
use toml::Spanned;

/// Writes that belong together. The API has no transaction over objects, so a client that reads in between sees a part of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// What the writes do together, as words for sentences: "giving an address to a pod".
    pub title: String,
    /// Its parts, in the order in which they are written. The last one completes the group.
    pub parts: Vec<Part>,
}

/// One part: an object, an entry of a map in an object, or a field of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The resource of its objects.
    pub resource: ResourceName,
    /// What joins it with the other parts: texts, put together with `/`. Paths with a common beginning up to a `[*]` go through
    /// its elements together.
    pub of: Vec<Path>,
    /// The part is an entry of a list or map: what distinguishes it from other entries of its object.
    pub entry: Option<Path>,
    /// The part exists once this field has a value; without it (and without `entry`), as long as the object.
    pub field: Option<Path>,
}

impl Part {
    /// The paths that must be kept of its objects.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.of.iter().chain(&self.entry).chain(&self.field)
    }

    /// Whether only the name, namespace or uid of its object joins it. (A field may name an object with its namespace, as
    /// `default/web-0`, and so replace two texts.)
    pub fn is_joined_by_names(&self) -> bool {
        let is_name = |path: &Path| match path.steps.as_slice() {
            [Step::Member(metadata), Step::Member(field)] => {
                metadata == "metadata" && matches!(field.as_str(), "name" | "namespace" | "uid")
            }
            _ => false,
        };
        self.of.iter().all(is_name)
    }
}

/// Writes to several objects that belong together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "group"))]
pub(super) struct Written {
    /// Its name, unique among its kind in the file. A declaration replaces one of the same kind and name in an earlier file or a
    /// pack.
    name: Unchecked<Name>,
    /// The purpose of the writes: "giving an address to a pod".
    title: Option<Unchecked<Words>>,
    /// Its parts, in the order in which they are written.
    #[cfg_attr(test, schemars(length(min = 2)))]
    part: Vec<WrittenPart>,
}

/// One of the writes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "part"))]
struct WrittenPart {
    /// The resource of the objects that have the part.
    resource: Unchecked<ResourceName>,
    /// The fields that join the part with the others. Their texts are joined by `/`. All parts have the same number of fields,
    /// unless a field holds several texts with `/` between them.
    #[cfg_attr(test, schemars(with = "Vec<Unchecked<Path>>"))]
    of: Spanned<Vec<Unchecked<Path>>>,
    /// The part is an entry of an object. This field tells it from the other entries.
    entry: Option<Unchecked<Path>>,
    /// The part exists once this field has a value.
    field: Option<Unchecked<Path>>,
}

impl Written {
    pub fn checked(self, reader: &mut Reader<'_>) -> Option<Group> {
        let name = reader.name("group", &self.name);
        if self.part.len() < 2 {
            reader.mistake(self.name.span(), "at least two parts are expected");
            return None;
        }
        let spans: Vec<_> = self.part.iter().map(|part| part.of.span()).collect();
        let parts: Vec<Option<Part>> = self.part.into_iter().map(|part| part.checked(reader)).collect();
        let (name, parts) = (name?, parts.into_iter().collect::<Option<Vec<_>>>()?);
        let most = parts.iter().map(|part| part.of.len()).max().unwrap_or(0);
        for (_, span) in parts.iter().zip(spans).filter(|(part, _)| part.of.len() < most && part.is_joined_by_names()) {
            let expected = "expected as many paths as another part has";
            let why = "names and uids have no `/`, so fewer paths cannot match";
            reader.mistake(span, &format!("{expected}, {most}: {why}"));
        }
        let title = reader.words(self.title).unwrap_or_else(|| name.replace('-', " "));
        Some(Group { name, title, parts })
    }
}

impl WrittenPart {
    fn checked(self, reader: &mut Reader<'_>) -> Option<Part> {
        let resource = reader.resource(&self.resource);
        if resource.as_ref().is_some_and(|resource| resource.plural == "*") {
            reader.mistake(self.resource.span(), "one resource is expected, found `*`");
            return None;
        }
        let span = self.of.span();
        let of = self.of.into_inner();
        if of.is_empty() {
            reader.mistake(span, "a list of paths is expected: what joins the part with the others");
            return None;
        }
        if let (Some(entry), Some(_)) = (&self.entry, &self.field) {
            reader.mistake(entry.span(), "`entry` or `field` is expected, found both");
            return None;
        }
        let of: Vec<Option<Path>> = of.iter().map(|path| reader.path(path)).collect();
        let (entry, field) = (reader.optional_path(self.entry.as_ref()), reader.optional_path(self.field.as_ref()));
        Some(Part {
            resource: resource?,
            of: of.into_iter().collect::<Option<Vec<_>>>()?,
            entry: entry?,
            field: field?,
        })
    }
}
