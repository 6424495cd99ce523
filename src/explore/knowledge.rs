//! Values of expressions: what a client knows, and the objects in etcd. A value is computed once for equal knowledge.

use super::content::{ContentId, Contents};
use super::protocol::{Protocol, VariableKind};
use super::state::{Layout, State, revision, uid_name};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value as Json, json};
use std::sync::{Mutex, RwLock};

/// The result of an expression. Truth values and contents share numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    /// A truth value.
    Truth(bool),
    /// An object's fields.
    Content(ContentId),
}

/// What every expression gave so far.
#[derive(Debug, Default)]
pub struct Knowledge {
    known: RwLock<FxHashMap<Box<[u8]>, Computed>>,
    /// The first expression that could not be evaluated, and why.
    failure: Mutex<Option<String>>,
}

impl Knowledge {
    /// The reason why an expression could not be evaluated.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().ok()?.clone()
    }

    /// Evaluates an expression over a client's variables. `None` if a variable that it reads holds nothing yet, or if it cannot
    /// be evaluated.
    pub fn of_client<'p>(
        &self,
        (protocol, layout, contents): (&'p Protocol, &Layout, &Contents),
        state: &State,
        client: u8,
        expression: u16,
    ) -> Option<Computed> {
        let variables = &protocol.clients[usize::from(client)].variables;
        let read = &protocol.expressions[usize::from(expression)].variables;
        let read = (0..).zip(variables).filter(|(_, variable)| read.contains(&variable.name));
        let mut inputs = expression.to_le_bytes().to_vec();
        for (number, variable) in read.clone() {
            if layout.version(state, client, number) == 0 {
                return None;
            }
            for nth in 0..keys(protocol, variable.kind).len() {
                input(layout, state, layout.entry(state, client, number, nth), &mut inputs);
            }
        }
        self.value(inputs, protocol, contents, expression, || {
            let value = |(number, variable): (u8, &'p super::protocol::Variable)| {
                let entry =
                    |nth: usize| object(protocol, layout, contents, state, layout.entry(state, client, number, nth));
                let value = match variable.kind {
                    VariableKind::Object(_) => entry(0).unwrap_or(Json::Null),
                    VariableKind::Resource(resource) => {
                        let keys = &protocol.resources[usize::from(resource)].keys;
                        let name = |key: u8| protocol.keys[usize::from(key)].name.clone();
                        let there = keys.iter().enumerate().filter_map(|(nth, key)| Some((name(*key), entry(nth)?)));
                        Json::Object(there.collect())
                    }
                };
                (variable.name.as_str(), value)
            };
            read.map(value).collect()
        })
    }

    /// Evaluates an expression over all living `objects` of a resource.
    pub fn of_etcd(
        &self,
        (protocol, layout, contents): (&Protocol, &Layout, &Contents),
        state: &State,
        resource: u8,
        expression: u16,
    ) -> Option<Computed> {
        let mut inputs = expression.to_le_bytes().to_vec();
        let keys = &protocol.resources[usize::from(resource)].keys;
        let versions: Vec<u8> =
            keys.iter().map(|key| layout.current(state, *key).map_or(0, |(version, _)| version)).collect();
        versions.iter().for_each(|version| input(layout, state, *version, &mut inputs));
        self.value(inputs, protocol, contents, expression, || {
            let objects = versions.iter().filter_map(|version| object(protocol, layout, contents, state, *version));
            vec![("objects", Json::Array(objects.collect()))]
        })
    }

    fn value<'p>(
        &self,
        inputs: Vec<u8>,
        protocol: &'p Protocol,
        contents: &Contents,
        expression: u16,
        bindings: impl FnOnce() -> Vec<(&'p str, Json)>,
    ) -> Option<Computed> {
        if let Some(known) = self.known.read().ok().and_then(|known| known.get(&*inputs).copied()) {
            return Some(known);
        }
        let expression = &protocol.expressions[usize::from(expression)];
        let computed = match expression.evaluate(&bindings()) {
            Ok(Json::Bool(truth)) => Ok(Computed::Truth(truth)),
            Ok(value @ Json::Object(_)) => {
                contents.number(value).map(Computed::Content).ok_or_else(|| "objects have too many contents".to_owned())
            }
            Ok(_) => Err("a truth value, or a map of fields, is expected".to_owned()),
            Err(error) => Err(error),
        };
        match computed {
            Ok(computed) => {
                self.known.write().ok()?.insert(inputs.into(), computed);
                Some(computed)
            }
            Err(message) => {
                let mut failure = self.failure.lock().ok()?;
                failure.get_or_insert_with(|| format!("`{expression:?}`: {message}"));
                None
            }
        }
    }
}

/// The keys that a variable has places for.
pub fn keys(protocol: &Protocol, kind: VariableKind) -> Vec<u8> {
    match kind {
        VariableKind::Object(key) => vec![key],
        VariableKind::Resource(resource) => protocol.resources[usize::from(resource)].keys.clone(),
    }
}

/// Everything that an expression can see of one version.
fn input(layout: &Layout, state: &State, version: u8, inputs: &mut Vec<u8>) {
    if version == 0 {
        return inputs.push(0);
    }
    let change = layout.change(state, version);
    let [low, high] = change.content.to_le_bytes();
    match change.content {
        0 => inputs.push(0),
        _ => inputs.extend([version, low, high, change.uid]),
    }
}

/// A version of an object as the value of an expression.
fn object(protocol: &Protocol, layout: &Layout, contents: &Contents, state: &State, version: u8) -> Option<Json> {
    let change = (version > 0).then(|| layout.change(state, version)).filter(|change| change.content > 0)?;
    let mut fields = match &*contents.value(change.content) {
        Json::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if let Json::Object(metadata) = metadata {
        metadata.insert("name".to_owned(), protocol.keys[usize::from(change.key)].name.clone().into());
        metadata.insert("uid".to_owned(), uid_name(change.uid).into());
        metadata.insert("resourceVersion".to_owned(), revision(version).to_string().into());
    }
    Some(Json::Object(fields))
}
