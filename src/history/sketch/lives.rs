//! Completes mentions of objects from the other mentions in a sketch.
//!
//! A uid stays the same for an object's life, and attributes stay until they change. A mention therefore takes both from the
//! mention with the highest version at or below its own (for a removal: below).

use super::syntax::{Act, Answer, Attributes, Carried, Named, Sketch, SketchKey};
use std::collections::BTreeMap;

/// All mentions of objects in a sketch.
#[derive(Debug, Default)]
pub struct Lives {
    uids: BTreeMap<SketchKey, BTreeMap<u128, String>>,
    attributes: BTreeMap<SketchKey, BTreeMap<u128, Attributes>>,
    /// Versions at which etcd shows a creation.
    created: BTreeMap<SketchKey, Vec<u128>>,
}

impl Lives {
    /// Collects every mention.
    pub fn of(sketch: &Sketch) -> Lives {
        let mut lives = Lives::default();
        for event in &sketch.witness {
            lives.event(&event.carried);
            if let Carried::Added(object) = &event.carried
                && let (Some(key), Some(revision)) = (&object.key, object.revision)
            {
                lives.created.entry(key.clone()).or_default().push(revision);
            }
        }
        for act in &sketch.acts {
            match &act.act {
                Act::Request(request) => {
                    for event in &request.events {
                        lives.event(&event.carried);
                    }
                    match &request.answer {
                        Answer::Object(object) => {
                            let key = object.key.clone().or_else(|| request.target.key.clone());
                            lives.mention(&Named { key, ..answered(&request.target, object) }, false);
                        }
                        Answer::List(_, Some(items), _) => items.iter().for_each(|item| lives.mention(item, false)),
                        _ => {}
                    }
                }
                Act::Read { key, seen: Some(seen), .. } => {
                    lives.mention(&Named { key: Some(key.clone()), ..seen.clone() }, false);
                }
                _ => {}
            }
        }
        lives
    }

    fn event(&mut self, carried: &Carried) {
        match carried {
            Carried::Added(object) | Carried::Modified(object) => self.mention(object, false),
            Carried::Deleted(object) => self.mention(object, true),
            _ => {}
        }
    }

    fn mention(&mut self, object: &Named, removal: bool) {
        let (Some(key), Some(revision)) = (&object.key, object.revision) else { return };
        if let Some(uid) = object.uid.as_ref().filter(|uid| !uid.is_empty()) {
            self.uids.entry(key.clone()).or_default().entry(revision).or_insert_with(|| uid.clone());
        }
        // A removal shows the state before it, and an object that is gone has none after it.
        if let Some(said) = object.attributes.as_ref().filter(|a| !removal && !a.gone && !a.reduced) {
            self.attributes.entry(key.clone()).or_default().entry(revision).or_insert_with(|| said.clone());
        }
    }

    /// The uid of a mentioned object; empty if not recorded.
    pub fn uid(&self, key: &SketchKey, named: &Named) -> String {
        if let Some(uid) = &named.uid {
            return uid.clone();
        }
        let known = self.uids.get(key);
        let at = named.revision.unwrap_or(u128::MAX);
        let below = known.and_then(|known| known.range(..=at).next_back());
        let above = known.and_then(|known| known.values().next());
        below.map(|(_, uid)| uid).or(above).cloned().unwrap_or_else(|| format!("{}-uid", key.name))
    }

    /// The uid of a key, if it has only one in the sketch.
    pub fn only_uid(&self, key: &SketchKey) -> Option<String> {
        let mut uids: Vec<&String> = self.uids.get(key)?.values().collect();
        uids.sort();
        uids.dedup();
        match uids.as_slice() {
            [uid] => Some((*uid).clone()),
            _ => None,
        }
    }

    /// The attributes of a mentioned object.
    pub fn attributes(&self, key: &SketchKey, named: &Named, removal: bool) -> Attributes {
        if let Some(said) = &named.attributes {
            return said.clone();
        }
        let Some(known) = self.attributes.get(key) else { return Attributes::default() };
        let at = named.revision.unwrap_or(u128::MAX);
        let below = if removal { known.range(..at).next_back() } else { known.range(..=at).next_back() };
        let Some((revision, said)) = below else { return Attributes::default() };
        let of_then = Named { revision: Some(*revision), ..Named::default() };
        // A later life of the name does not inherit attributes.
        if self.uid(key, &of_then) == self.uid(key, named) { said.clone() } else { Attributes::default() }
    }

    /// The creation version of the life that a version belongs to, as etcd shows it.
    pub fn created(&self, key: &SketchKey, revision: u128) -> u128 {
        let created = self.created.get(key).map_or(&[][..], |c| c);
        created.iter().copied().filter(|c| *c <= revision).max().unwrap_or(1)
    }
}

/// The object in an answer, completed from the request's target.
pub fn answered(target: &Named, object: &Named) -> Named {
    let other = object.key.is_some() && object.key != target.key;
    if other {
        return object.clone();
    }
    Named {
        uid: object.uid.clone().or_else(|| target.uid.clone()),
        attributes: object.attributes.clone().or_else(|| target.attributes.clone()),
        ..object.clone()
    }
}
