//! Parts of declared groups in the revision order. Input: the declarations and the versions of objects. Output: groups with at
//! least two parts in the evidence, and the pieces of each version. Invariant: work is bounded by `MAX_ROWS` and
//! `JOINED`; after that every question returns `None` and [`Pieces::is_spent`] is true.

use crate::check::Evidence;
use crate::history::{AttributesId, History, KeyId, ResourceId, Revision, Symbol};
use crate::model::declaration::{Declarations, Group, Part, Path, ResourceName, Step};
use crate::order::Version;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// A group with parts among the resources of a history.
#[derive(Clone, Debug)]
pub struct Found<'d> {
    /// The declaration.
    pub group: &'d Group,
    /// The resource of each part; `None` without an object of it in the evidence.
    pub resources: Vec<Option<ResourceId>>,
}

/// One part in one version: the join with the other parts, and the entry of the object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Piece {
    /// The values of the join, separated by `/`.
    pub of: String,
    /// The entry; empty if the object, or a field of it, is the part.
    pub entry: String,
}

/// The most rows of declared fields that are examined. The rest is left undecided.
const MAX_ROWS: usize = 2_000_000;

/// The most objects with a join that are examined, for all writes together. A join that everything shares asks for all objects
/// at each write.
const JOINED: usize = 1_000_000;

/// The declared groups with at least two parts in the evidence.
///
/// A declaration whose parts leave the API group open yields one group per API group of those parts.
pub fn found<'d>(evidence: &Evidence<'_>, declarations: &'d Declarations) -> Vec<Found<'d>> {
    let history = evidence.history;
    let of_group = |id: &ResourceId| history.name(history.resources[id.index()].group);
    let mut all = Vec::new();
    for group in &declarations.groups {
        let open = |part: &&Part| part.resource.group.is_none();
        let mut spaces: Vec<&str> = match group.parts.iter().any(|part| open(&part)) {
            true => {
                let of_parts =
                    group.parts.iter().filter(open).flat_map(|part| evidence.resources_named(&part.resource));
                of_parts.map(|id| of_group(&id)).collect()
            }
            false => vec![""],
        };
        spaces.sort_unstable();
        spaces.dedup();
        for space in spaces {
            let resource = |wanted: &ResourceName| {
                let mut named = evidence.resources_named(wanted).into_iter();
                named.find(|id| wanted.group.is_some() || of_group(id) == space)
            };
            let resources: Vec<Option<ResourceId>> = group.parts.iter().map(|part| resource(&part.resource)).collect();
            if resources.iter().flatten().count() > 1 {
                all.push(Found { group, resources });
            }
        }
    }
    all
}

/// Keys by the join of a part.
type Index = FxHashMap<String, Vec<KeyId>>;

/// The pieces of one version; `None` if the evidence does not show them.
type Shown = Option<Rc<Vec<Piece>>>;

/// The pieces of versions, cached per part and version.
pub struct Pieces<'e, 'h> {
    evidence: &'e Evidence<'h>,
    known: FxHashMap<(*const Part, KeyId, Revision), Shown>,
    indices: FxHashMap<(*const Part, ResourceId), Option<Rc<Index>>>,
    names: FxHashMap<ResourceId, FxHashMap<(Symbol, Symbol), KeyId>>,
    rows: usize,
    joined: usize,
}

impl<'e, 'h> Pieces<'e, 'h> {
    /// An empty cache.
    pub fn new(evidence: &'e Evidence<'h>) -> Pieces<'e, 'h> {
        Pieces {
            evidence,
            known: FxHashMap::default(),
            indices: FxHashMap::default(),
            names: FxHashMap::default(),
            rows: 0,
            joined: 0,
        }
    }

    /// Whether a limit was reached, so that the rest is left undecided.
    pub fn is_spent(&self) -> bool {
        self.rows > MAX_ROWS || self.joined > JOINED
    }

    /// The pieces of a part in a version, sorted; `None` if the evidence does not show them.
    pub fn of(&mut self, part: &Part, version: &Version) -> Shown {
        if version.change.lives() != Some(true) {
            return Some(Rc::default());
        }
        let place = (std::ptr::from_ref(part), version.key, version.revision);
        if let Some(known) = self.known.get(&place) {
            return known.clone();
        }
        if self.is_spent() {
            return None;
        }
        let pieces = self.read(part, version.key, version.uid, version.attributes).map(Rc::new);
        self.rows += 1 + pieces.as_ref().map_or(0, |pieces| pieces.len());
        self.known.insert(place, pieces.clone());
        pieces
    }

    fn read(&self, part: &Part, key: KeyId, uid: Symbol, attributes: AttributesId) -> Option<Vec<Piece>> {
        let history = self.evidence.history;
        let declared = history.declared(key, uid, attributes);
        let paths: Vec<&Path> = part.of.iter().chain(&part.entry).chain(&part.field).collect();
        let Some(declared) = declared else {
            // Parts of the identity are known for every version. Other fields need a recorded body.
            let identity: Option<Vec<&str>> = part.of.iter().map(|path| identity(history, key, uid, path)).collect();
            if let Some(of) = identity.filter(|_| part.entry.is_none() && part.field.is_none()) {
                return Some(vec![Piece { of: of.join("/"), entry: String::new() }]);
            }
            let shown = attributes.is_some().then(|| history.attributes[attributes.index()])?;
            let metadata = |path: &&Path| path.steps.first() == Some(&Step::Member("metadata".to_owned()));
            return (shown.whole || paths.iter().all(metadata)).then(Vec::new);
        };
        if !paths.iter().all(|path| declared.shows(path)) {
            return None;
        }
        let mut pieces: Vec<Piece> = declared
            .rows(&paths)?
            .into_iter()
            .filter_map(|row| {
                let mut row = row.into_iter();
                let of: Vec<String> = row.by_ref().take(part.of.len()).collect::<Option<_>>()?;
                let entry = if part.entry.is_some() { row.next()?? } else { String::new() };
                let there = part.field.is_none() || row.next().flatten().is_some_and(|text| !text.is_empty());
                there.then(|| Piece { of: of.join("/"), entry })
            })
            .collect();
        pieces.sort_unstable();
        pieces.dedup();
        Some(pieces)
    }

    /// The objects of a resource that ever had a piece with this join; none after a limit.
    pub fn keys(&mut self, part: &Part, resource: ResourceId, of: &str) -> Vec<KeyId> {
        if self.is_spent() {
            return Vec::new();
        }
        if let Some(keys) = self.by_name(part, resource, of) {
            return keys;
        }
        let place = (std::ptr::from_ref(part), resource);
        let index = match self.indices.get(&place) {
            Some(index) => index.clone(),
            None => {
                let index = self.index(part, resource).map(Rc::new);
                self.indices.insert(place, index.clone());
                index
            }
        };
        let keys = index.and_then(|index| index.get(of).cloned()).unwrap_or_default();
        self.joined += keys.len();
        keys
    }

    /// The key, if the part is joined by namespace and name of its object.
    fn by_name(&mut self, part: &Part, resource: ResourceId, of: &str) -> Option<Vec<KeyId>> {
        let [namespace, name] = part.of.as_slice() else { return None };
        if namespace.literal() != ["metadata", "namespace"] || name.literal() != ["metadata", "name"] {
            return None;
        }
        let history = self.evidence.history;
        let names = self.names.entry(resource).or_insert_with(|| {
            let name = |&key: &KeyId| ((history.keys[key.index()].namespace, history.keys[key.index()].name), key);
            self.evidence.keys_of(resource).iter().map(name).collect()
        });
        let (namespace, name) = of.split_once('/')?;
        let symbols = history.names.find(namespace).zip(history.names.find(name));
        Some(symbols.and_then(|symbols| names.get(&symbols).copied()).into_iter().collect())
    }

    fn index(&mut self, part: &Part, resource: ResourceId) -> Option<Index> {
        let timeline = &self.evidence.order.timeline;
        let mut seen: FxHashSet<(KeyId, Piece)> = FxHashSet::default();
        let mut index = Index::default();
        let all: Vec<Version> = timeline.of_resource(resource, Revision::NONE, Revision::new(u128::MAX)).collect();
        for version in all {
            for piece in self.of(part, &version).iter().flat_map(|pieces| pieces.iter()) {
                if seen.insert((version.key, piece.clone())) {
                    let keys = index.entry(piece.of.clone()).or_default();
                    if keys.last() != Some(&version.key) {
                        keys.push(version.key);
                    }
                }
            }
            if self.is_spent() {
                return None;
            }
        }
        Some(index)
    }
}

/// A field of an object's identity.
fn identity<'h>(history: &'h History, key: KeyId, uid: Symbol, path: &Path) -> Option<&'h str> {
    let of = history.keys[key.index()];
    let symbol = match path.literal().as_slice() {
        ["metadata", "name"] => of.name,
        ["metadata", "namespace"] => of.namespace,
        ["metadata", "uid"] => uid,
        _ => return None,
    };
    Some(history.name(symbol)).filter(|text| !text.is_empty())
}
