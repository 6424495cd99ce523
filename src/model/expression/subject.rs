//! Objects of the history as values of expressions: their identity, and the declared fields that the evidence shows. A version
//! becomes a value only when it is first read.

use super::{growth, metering};
use crate::history::{AttributesId, History, KeyId, Part, PartId, Revision, Symbol};
use cel::ExecutionError;
use cel::common::traits::{Indexer, Iterable, Iterator as Elements, Sizer};
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt, LIST_TYPE, MAP_TYPE, Type,
};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Fields of `metadata` that every version has.
pub const IDENTITY: [&str; 4] = ["name", "namespace", "uid", "resourceVersion"];

/// A version of an object.
#[derive(Clone)]
pub struct Subject<'h>(Arc<Seen<'h>>);

struct Seen<'h> {
    history: &'h History,
    key: KeyId,
    uid: Symbol,
    revision: Revision,
    attributes: AttributesId,
    shown: OnceLock<Shown<'h>>,
}

struct Shown<'h> {
    fields: CelMap<'h>,
    /// Bytes of its longest text.
    longest: u64,
}

/// The variables of an expression and their values.
#[derive(Clone, Debug, Default)]
pub struct Bindings<'h> {
    now: Option<Subject<'h>>,
    before: Option<Subject<'h>>,
    all: Option<All<'h>>,
    new: Option<All<'h>>,
}

#[derive(Clone, Debug)]
struct All<'h>(Arc<[Subject<'h>]>);

impl<'h> Subject<'h> {
    /// A version and what the evidence shows of it.
    pub fn of(
        history: &'h History,
        (key, uid, revision): (KeyId, Symbol, Revision),
        attributes: AttributesId,
    ) -> Subject<'h> {
        Subject(Arc::new(Seen { history, key, uid, revision, attributes, shown: OnceLock::new() }))
    }

    fn shown(&self) -> &Shown<'h> {
        self.0.shown.get_or_init(|| Shown::of(&self.0))
    }
}

impl fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown().fields.fmt(f)
    }
}

impl<'h> Shown<'h> {
    fn of(seen: &Seen<'h>) -> Shown<'h> {
        let &Seen { history, key, uid, revision, attributes, .. } = seen;
        let mut longest = 0;
        let shown = attributes.is_some().then(|| history.attributes[attributes.index()].fields).filter(|f| f.is_some());
        let mut fields: HashMap<CelMapKey<'h>, Box<dyn Val + 'h>> = HashMap::new();
        let mut inner = HashMap::new();
        if let Some(Part::Map(members)) = shown.map(|root| history.parts.get(root)) {
            for &(name, id) in members {
                let name = history.name(name);
                match convert(history, id, &mut longest) {
                    Made::Map(metadata) if name == "metadata" => inner = metadata,
                    made => drop(fields.insert(CelMapKey::String(name.into()), made.boxed())),
                }
            }
        }
        let of = history.keys[key.index()];
        let texts = [of.name, of.namespace, uid].map(|symbol| if symbol.is_some() { history.name(symbol) } else { "" });
        for (name, text) in IDENTITY.into_iter().zip(texts).filter(|(_, text)| !text.is_empty()) {
            inner.insert(CelMapKey::String(name.into()), Box::new(CelString::from(text)));
        }
        let version = Box::new(CelString::from(revision.to_string()));
        inner.insert(CelMapKey::String(IDENTITY[3].into()), version);
        fields.insert(CelMapKey::String("metadata".into()), Box::new(CelMap::from(inner)));
        Shown { fields: CelMap::from(fields), longest }
    }
}

impl<'h> Bindings<'h> {
    /// `self`.
    pub fn object(now: Subject<'h>) -> Bindings<'h> {
        Bindings { now: Some(now), ..Bindings::default() }
    }

    /// `oldSelf` and `self`.
    pub fn change(before: Subject<'h>, now: Subject<'h>) -> Bindings<'h> {
        Bindings { now: Some(now), before: Some(before), ..Bindings::default() }
    }

    /// `objects`.
    pub fn objects(all: impl IntoIterator<Item = Subject<'h>>) -> Bindings<'h> {
        Bindings { all: Some(All(all.into_iter().collect())), ..Bindings::default() }
    }

    /// The same, with the new ones of the objects.
    pub fn with_new(self, new: impl IntoIterator<Item = Subject<'h>>) -> Bindings<'h> {
        Bindings { new: Some(All(new.into_iter().collect())), ..self }
    }

    /// Bytes of the longest text.
    pub(super) fn longest(&self) -> u64 {
        let all = self.all.iter().flat_map(|all| all.0.iter());
        self.now.iter().chain(&self.before).chain(all).map(|subject| subject.shown().longest).max().unwrap_or(0)
    }
}

impl VariableResolver for Bindings<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        match variable {
            "self" | "object" => self.now.as_ref().map(|value| CowVal::Borrowed(value)),
            "oldSelf" | "oldObject" => self.before.as_ref().map(|value| CowVal::Borrowed(value)),
            "objects" => self.all.as_ref().map(|value| CowVal::Borrowed(value)),
            growth::NEW => self.new.as_ref().map(|value| CowVal::Borrowed(value)),
            _ => metering::go_on(variable),
        }
    }
}

enum Made<'h> {
    Map(HashMap<CelMapKey<'h>, Box<dyn Val + 'h>>),
    Other(Box<dyn Val + 'h>),
}

impl<'h> Made<'h> {
    fn boxed(self) -> Box<dyn Val + 'h> {
        match self {
            Made::Map(map) => Box::new(CelMap::from(map)),
            Made::Other(value) => value,
        }
    }
}

fn convert<'h>(history: &'h History, id: PartId, longest: &mut u64) -> Made<'h> {
    Made::Other(match history.parts.get(id) {
        Part::Null => Box::new(CelNull),
        Part::Bool(value) => Box::new(CelBool::from(value)),
        Part::Number(text) => number(history.name(text)),
        Part::Text(text) => {
            let text = history.name(text);
            *longest = (*longest).max(text.len() as u64);
            Box::new(CelString::from(text))
        }
        Part::List(elements) => {
            let elements: Vec<Box<dyn Val + 'h>> =
                elements.iter().map(|&(_, id)| convert(history, id, longest).boxed()).collect();
            Box::new(CelList::from(elements))
        }
        Part::Map(members) => {
            let member = |&(name, id): &(Symbol, PartId)| {
                (CelMapKey::String(history.name(name).into()), convert(history, id, longest).boxed())
            };
            return Made::Map(members.iter().map(member).collect());
        }
    })
}

fn number<'h>(text: &str) -> Box<dyn Val + 'h> {
    if let Ok(whole) = text.parse::<i64>() {
        return Box::new(CelInt::from(whole));
    }
    match text.parse::<u64>() {
        Ok(whole) => Box::new(CelUInt::from(whole)),
        Err(_) => Box::new(CelDouble::from(text.parse::<f64>().unwrap_or(f64::NAN))),
    }
}

impl Val for Subject<'_> {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        static TYPE: Type = MAP_TYPE;
        &TYPE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }
}

impl Indexer for Subject<'_> {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        Indexer::get(&self.shown().fields, index)
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}

impl Val for All<'_> {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        static TYPE: Type = LIST_TYPE;
        &TYPE
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }
}

impl Indexer for All<'_> {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let wanted = index.downcast_ref::<CelInt>().and_then(|nth| usize::try_from(*nth.inner()).ok());
        match wanted.and_then(|nth| self.0.get(nth)) {
            Some(subject) => Ok(CowVal::Borrowed(subject)),
            None => Err(ExecutionError::IndexOutOfBounds(cel::Value::Null)),
        }
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}

impl Sizer for All<'_> {
    fn size(&self) -> CelInt {
        CelInt::from(self.0.len() as i64)
    }
}

struct Each<'b, 'h>(std::slice::Iter<'b, Subject<'h>>);

impl Iterable for All<'_> {
    fn iter<'b, 'v>(&'b self) -> Box<dyn Elements<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Each(self.0.iter()))
    }
}

impl<'b, 'v, 'h: 'v> Elements<'b, 'v> for Each<'b, 'h> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(|subject| subject as &(dyn Val + 'v))
    }
}
