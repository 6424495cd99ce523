//! Takes declared members out of objects during the one parse of a line.
//!
//! The narrow types of bodies implement serde, which has no parameter for state. So the tree of wanted members is
//! thread-local, set for the parse of one block ([`during`]). Code that parses a body outside of `during` captures
//! nothing.

use super::tree::{Place, Tree};
use crate::ingest::json::text::{Text, visit_scalars_as};
use crate::ingest::limits::UNLIMITED;
use serde::de::{self, DeserializeSeed, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// A wanted member of an object: its node in the tree and its value. If only the shape is noted, the value has no
/// meaning.
pub type Found<'a> = (u16, Seen<'a>);

/// The value of a wanted member.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// Any value, as JSON text.
    Json(&'a RawValue),
    /// A text, with its escapes resolved.
    Text(&'a str),
}

impl Seen<'_> {
    /// Length in bytes.
    pub fn length(&self) -> usize {
        match self {
            Seen::Json(raw) => raw.get().len(),
            Seen::Text(text) => text.len(),
        }
    }
}

/// Notes that a member is present, unless its value is kept anyway.
fn note(tree: &Tree, node: u16, found: &mut Vec<Found<'_>>) {
    static THERE: LazyLock<Option<&'static RawValue>> = LazyLock::new(|| serde_json::from_str("{}").ok());
    if tree.is_noted(node) && !tree.is_found(node) {
        found.extend(THERE.map(|there| (node, Seen::Json(there))));
    }
}

thread_local! {
    static WANTED: RefCell<Option<Arc<Tree>>> = const { RefCell::new(None) };
}

/// Runs `act` while this thread captures the members of a tree.
pub fn during<R>(tree: &Arc<Tree>, act: impl FnOnce() -> R) -> R {
    struct Restore(Option<Arc<Tree>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let before = self.0.take();
            WANTED.with(|wanted| *wanted.borrow_mut() = before);
        }
    }
    let wanted = tree.leads_on(Tree::ROOT).then(|| tree.clone());
    let _restore = Restore(WANTED.with(|now| now.replace(wanted)));
    act()
}

/// Runs `act` with the tree of this thread.
pub(in crate::ingest) fn wanted<R>(act: impl FnOnce(Option<&Tree>) -> R) -> R {
    WANTED.with(|wanted| act(wanted.borrow().as_deref()))
}

/// Passes the members of an object to a narrow type and takes out the wanted ones. A member may go to both.
pub(in crate::ingest) struct Sieve<'t, 'de, A> {
    map: A,
    tree: Option<(&'t Tree, u16)>,
    /// Names that the narrow type reads, and those whose own types have a sieve.
    known: &'static [&'static str],
    sieved: &'static [&'static str],
    /// Node of the wanted member whose value is next.
    next: Option<u16>,
    /// The captured members.
    pub found: Vec<Found<'de>>,
    /// Whether the object has a member beyond its identity.
    pub has_more: bool,
}

impl<'t, 'de, A: MapAccess<'de>> Sieve<'t, 'de, A> {
    /// The members of the object at a place. Without a tree they pass unchanged.
    pub fn new(
        map: A,
        tree: Option<&'t Tree>,
        place: Place,
        known: &'static [&'static str],
        sieved: &'static [&'static str],
    ) -> Self {
        let node = tree.and_then(|tree| Some((tree, tree.place(place)?)));
        let mut found = Vec::new();
        if let Some((tree, node)) = node {
            note(tree, node, &mut found);
        }
        Sieve { map, tree: node, known, sieved, next: None, found, has_more: false }
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for &mut Sieve<'_, 'de, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some((tree, node)) = self.tree else { return self.map.next_key_seed(seed) };
        while let Some(key) = self.map.next_key::<Text<'de, UNLIMITED>>()? {
            self.has_more = self.has_more || !matches!(&*key, "kind" | "apiVersion" | "metadata" | "recordedFields");
            let member = tree.member(node, &key);
            if let Some(member) = member.filter(|_| !self.known.contains(&&*key)) {
                self.map.next_value_seed(Wanted { tree, node: member, found: &mut self.found })?;
                continue;
            }
            let is_taken = |member| !tree.is_own(member) && (tree.is_found(member) || !self.sieved.contains(&&*key));
            self.next = member.filter(|&member| is_taken(member));
            return match key.0 {
                Cow::Borrowed(key) => seed.deserialize(de::value::BorrowedStrDeserializer::new(key)),
                Cow::Owned(key) => seed.deserialize(key.into_deserializer()),
            }
            .map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        let Some(node) = self.next.take() else { return self.map.next_value_seed(seed) };
        let raw: &'de RawValue = self.map.next_value()?;
        match self.tree {
            Some((tree, _)) if !tree.is_found(node) => Wanted { tree, node, found: &mut self.found }
                .deserialize(&mut serde_json::Deserializer::from_str(raw.get()))
                .map_err(de::Error::custom)?,
            _ => self.found.push((node, Seen::Json(raw))),
        }
        seed.deserialize(&mut serde_json::Deserializer::from_str(raw.get())).map_err(de::Error::custom)
    }
}

/// A value at a node: kept as text, or searched for wanted members.
struct Wanted<'t, 'f, 'de> {
    tree: &'t Tree,
    node: u16,
    found: &'f mut Vec<Found<'de>>,
}

impl<'de> DeserializeSeed<'de> for Wanted<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.tree.is_found(self.node) {
            let raw: &'de RawValue = de::Deserialize::deserialize(deserializer)?;
            self.found.push((self.node, Seen::Json(raw)));
            return Ok(());
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Wanted<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        note(self.tree, self.node, self.found);
        while let Some(key) = map.next_key::<Text<'de, UNLIMITED>>()? {
            match self.tree.member(self.node, &key) {
                Some(node) => map.next_value_seed(Wanted { tree: self.tree, node, found: self.found })?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    visit_scalars_as!(());
    visit_scalars_as!((); visit_str: &str);

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A narrow type whose members pass a sieve.
pub(in crate::ingest) trait Sieved<'de>: Sized {
    /// Its place in an object.
    const PLACE: Place;
    /// The names that it reads.
    const KNOWN: &'static [&'static str];
    /// Those whose own types have a sieve.
    const SIEVED: &'static [&'static str];

    /// Reads it from the members that pass the sieve.
    fn narrow<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;

    /// Receives the captured members, and whether there was more than identity.
    fn take(&mut self, found: Vec<Found<'de>>, has_more: bool);
}

/// Reads a narrow type through the sieve.
pub(in crate::ingest) fn sieved<'de, T: Sieved<'de>, D: de::Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Through<T>(std::marker::PhantomData<T>);
    impl<'de, T: Sieved<'de>> Visitor<'de> for Through<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            wanted(|tree| {
                let mut sieve = Sieve::new(map, tree, T::PLACE, T::KNOWN, T::SIEVED);
                let mut read = T::narrow(de::value::MapAccessDeserializer::new(&mut sieve))?;
                read.take(sieve.found, sieve.has_more);
                Ok(read)
            })
        }
    }
    deserializer.deserialize_map(Through(std::marker::PhantomData))
}
