//! Turns the declared fields that the parser found in a body into parts, cut to the paths declared for the resource.

use super::super::ids::*;
use super::super::interner::Interner;
use super::super::json_parts::{Part, Parts};
use super::super::resource;
use super::{Batch, Tables};
use crate::ingest::fields::{self, Cut, Fields, Found, Seen, Tree};
use crate::ingest::kubernetes::body::Body;
use crate::ingest::kubernetes::digest::Digest;
use crate::ingest::kubernetes::object::{Item, Kept, Metadata, Spec, StatusField};
use crate::ingest::limits::LONGEST_FIELD;
use rustc_hash::FxHashMap;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The paths to keep per resource, cached.
#[derive(Debug)]
pub(super) struct Keeping {
    fields: Arc<Fields>,
    /// By resource of the batch; `None` if not looked up yet.
    wanted: Vec<Option<Option<Arc<Wanted>>>>,
    /// By kind and API version, if the resource is on another line: the last lookup.
    last_kind: (String, String, Option<Arc<Wanted>>),
    /// By kind and API version: all lookups.
    by_kind: FxHashMap<(String, String), Option<Arc<Wanted>>>,
    /// The last comparison: the recorder's list of kept fields, the wanted paths, and whether it covers them.
    covered: Option<(String, Arc<Wanted>, bool)>,
    /// Interned names by node of the tree, for nodes met so far.
    named: Vec<Symbol>,
}

/// The paths to keep of a resource.
#[derive(Debug)]
struct Wanted {
    cut: Cut,
    /// The paths as text.
    named: String,
}

impl Wanted {
    fn of(fields: &Fields, plural: &str, group: &str) -> Option<Arc<Wanted>> {
        let cut = fields.cut(plural, group)?;
        Some(Arc::new(Wanted { cut, named: fields.named(plural, group) }))
    }
}

impl Keeping {
    pub fn new(fields: Arc<Fields>) -> Keeping {
        let last_kind = (String::new(), String::new(), None);
        Keeping {
            fields,
            wanted: Vec::new(),
            last_kind,
            by_kind: FxHashMap::default(),
            covered: None,
            named: Vec::new(),
        }
    }

    /// Whether the recorder kept all wanted paths. The last result is cached, since recorders list the same fields for most
    /// objects.
    fn covers(&mut self, recorded: &str, wanted: &Arc<Wanted>) -> bool {
        if let Some((text, of, covers)) = &self.covered
            && Arc::ptr_eq(of, wanted)
            && text == recorded
        {
            return *covers;
        }
        let covers = fields::covers(recorded, &wanted.named);
        self.covered = Some((recorded.to_owned(), wanted.clone(), covers));
        covers
    }
}

/// A body to read declared fields from.
#[derive(Clone, Copy)]
pub(super) struct Source<'b, 'a> {
    /// The resource; none if another line has it.
    pub resource: ResourceId,
    /// Kind and API version, of the object or of its list.
    pub kind: &'b str,
    /// API version, of the object or of its list.
    pub api_version: &'b str,
    pub kept: &'b Kept<'a>,
    pub metadata: &'b Metadata<'a>,
    pub spec: &'b Option<Spec<'a>>,
    pub status: &'b StatusField<'a>,
    pub recorded_fields: Option<&'b str>,
    /// Digest of `data` and `binaryData` together; 0 if both are empty.
    pub data: u32,
}

impl<'b, 'a> Source<'b, 'a> {
    /// From a body that is an object.
    pub fn of(body: &'b Body<'a>, resource: ResourceId) -> Source<'b, 'a> {
        let Body { kind, api_version, kept, metadata, spec, status, recorded_fields, data, .. } = body;
        let (recorded_fields, data) = (recorded_fields.as_deref(), together(*data, body.binary_data));
        Source { resource, kind, api_version, kept, metadata, spec, status, recorded_fields, data }
    }

    /// From an element of a list. `list` is the list's kind and API version, for elements without their own.
    pub fn of_item(item: &'b Item<'a>, list: (&'b str, &'b str), resource: ResourceId) -> Source<'b, 'a> {
        let (kind, api_version) = if item.kind.is_empty() { list } else { (&*item.kind, &*item.api_version) };
        let Item { kept, metadata, spec, status, recorded_fields, data, .. } = item;
        let (recorded_fields, data) = (recorded_fields.as_deref(), together(*data, item.binary_data));
        Source { resource, kind, api_version, kept, metadata, spec, status, recorded_fields, data }
    }
}

fn together(data: Digest, binary_data: Digest) -> u32 {
    data.0.wrapping_add(binary_data.0.rotate_left(1))
}

impl Batch {
    fn wanted(&mut self, source: &Source<'_, '_>) -> Option<Arc<Wanted>> {
        let keeping = &mut self.keeping;
        if !keeping.fields.tree().leads_on(Tree::ROOT) {
            return None;
        }
        if !source.resource.is_some() {
            // The answer in a capture has the kind, its request the resource. The kind of a list is cut to that of its elements.
            let kind = source.kind.strip_suffix("List").filter(|kind| !kind.is_empty()).unwrap_or(source.kind);
            if (kind, source.api_version) != (keeping.last_kind.0.as_str(), keeping.last_kind.1.as_str()) {
                let names = (kind.to_owned(), source.api_version.to_owned());
                let wanted = keeping.by_kind.entry(names.clone()).or_insert_with(|| {
                    let group = resource::group_of_api_version(source.api_version);
                    let plural = resource::plural_of_kind(kind);
                    Wanted::of(&keeping.fields, &plural, resource::canonical_group(group, &plural))
                });
                keeping.last_kind = (names.0, names.1, wanted.clone());
            }
            return keeping.last_kind.2.clone();
        }
        let at = source.resource.index();
        if keeping.wanted.len() <= at {
            keeping.wanted.resize(at + 1, None);
        }
        let known = self.tables.resources.values()[at];
        let names = &self.tables.names;
        keeping.wanted[at]
            .get_or_insert_with(|| Wanted::of(&keeping.fields, names.get(known.plural), names.get(known.group)))
            .clone()
    }

    /// The declared fields of a body; none if nothing is declared for its resource, or if they cannot be read.
    pub(super) fn fields(&mut self, source: Source<'_, '_>) -> PartId {
        let Some(wanted) = self.wanted(&source) else { return PartId::NONE };
        // A field that the recorder left out is not absent.
        if source.recorded_fields.is_some_and(|recorded| !self.keeping.covers(recorded, &wanted)) {
            return PartId::NONE;
        }
        let fields = self.keeping.fields.clone();
        let spec = source.spec.as_ref().map_or(&[][..], |spec| &spec.found);
        let metadata = source.metadata;
        let parts =
            [&metadata.kept.found, &metadata.annotations.kept.found, spec, &source.status.found, &source.kept.found];
        let tree = fields.tree();
        let own = tree.own().iter().filter_map(|&(node, own)| Some((node, metadata.own(own)?)));
        let mut found: Vec<Found<'_>> = parts.into_iter().flatten().copied().chain(own).collect();
        found.sort_by_key(|&(node, _)| tree.rank(node));
        // A repeated member is ambiguous.
        if found.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return PartId::NONE;
        }
        // A value inside a text that holds JSON is read with that text.
        let mut last: Option<u16> = None;
        found.retain(|&(node, _)| {
            let inside = last.is_some_and(|last| tree.lineage(node).contains(&last));
            if !inside && tree.is_found(node) {
                last = Some(node);
            }
            !inside
        });
        self.object(tree, &found, 0, &wanted.cut).unwrap_or_default()
    }

    /// The object of these members at a depth. `None` if a member cannot be read.
    fn object(&mut self, tree: &Tree, found: &[Found<'_>], depth: usize, cut: &Cut) -> Option<PartId> {
        let mut members = Vec::new();
        for group in found.chunk_by(|a, b| tree.lineage(a.0)[depth] == tree.lineage(b.0)[depth]) {
            let (first, seen) = group[0];
            let member = tree.lineage(first)[depth];
            let Some(cut) = cut.member(tree.name(member)) else { continue };
            // An entry for the object itself precedes those for its members.
            let ends = first == member;
            let is_text = ends && tree.is_found(first);
            let value = if is_text {
                if seen.length() > LONGEST_FIELD {
                    return None;
                }
                let Tables { names, parts, .. } = &mut self.tables;
                let reader = Reader { cut, names, parts };
                match seen {
                    Seen::Json(raw) => reader.deserialize(&mut serde_json::Deserializer::from_str(raw.get())).ok()?,
                    Seen::Text(text) => reader.text(text),
                }
            } else {
                Some(self.object(tree, &group[usize::from(ends)..], depth + 1, cut)?)
            };
            if let Some(value) = value {
                members.push((self.name_of(tree, member), value));
            }
        }
        Some(self.tables.parts.intern(Part::Map(&members)))
    }

    /// The interned name of a declared member, cached since many objects have it.
    fn name_of(&mut self, tree: &Tree, member: u16) -> Symbol {
        let named = &mut self.keeping.named;
        let at = usize::from(member);
        if named.len() <= at {
            named.resize(at + 1, Symbol::NONE);
        }
        if !named[at].is_some() {
            named[at] = self.tables.names.intern(tree.name(member));
        }
        named[at]
    }
}

/// Reads the kept part of a value; `None` if it has nothing at the declared paths.
struct Reader<'r> {
    cut: &'r Cut,
    names: &'r mut Interner,
    parts: &'r mut Parts,
}

impl Reader<'_> {
    fn scalar(self, value: Part<'_>) -> Option<PartId> {
        // The value has no members although a path continues, or only its presence is declared.
        let leaf = self.cut.whole || (self.cut.each.is_none() && self.cut.members.is_empty());
        leaf.then(|| self.parts.intern(if self.cut.whole { value } else { Part::Null }))
    }

    fn text(self, value: &str) -> Option<PartId> {
        let symbol = if self.cut.whole { self.names.intern(value) } else { Symbol::NONE };
        self.scalar(Part::Text(symbol))
    }

    fn number(self, text: &str) -> Option<PartId> {
        let symbol = self.names.intern(text);
        self.scalar(Part::Number(symbol))
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Option<PartId>;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Option<PartId>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.scalar(Part::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(self.scalar(Part::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.number(&value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(self.number(&value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(self.number(&format!("{value:?}")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(self.text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let Some(cut) = self.cut.element() else {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(self.scalar(Part::Null));
        };
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element_seed(Reader { cut, names: self.names, parts: self.parts })? {
            // An element without the declared member keeps its position.
            let element = element.unwrap_or_else(|| self.parts.intern(Part::Null));
            elements.push((Symbol::NONE, element));
        }
        Ok(Some(self.parts.intern(Part::List(&elements))))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members: Vec<(Symbol, PartId)> = Vec::new();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let Some(cut) = self.cut.member(&key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value_seed(Reader { cut, names: self.names, parts: self.parts })?;
            // A map key with nothing declared below it is kept, since its presence counts.
            let each = self.cut.each.is_some();
            let value = value.or_else(|| each.then(|| self.parts.intern(Part::Null)));
            let Some(value) = value else { continue };
            let name = self.names.intern(&key);
            if members.iter().any(|(known, _)| *known == name) {
                return Err(de::Error::custom("one member twice"));
            }
            members.push((name, value));
        }
        let inner = self.cut.whole || self.cut.each.is_some() || !self.cut.members.is_empty();
        Ok(Some(self.parts.intern(if inner { Part::Map(&members) } else { Part::Null })))
    }
}
