//! A simulated API: objects with uids and versions. It records every request as a sketch.

use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Clone, Debug)]
pub struct Object {
    pub uid: String,
    pub revision: u64,
    /// Fields as in a sketch: `node`, `phase`, `owner`, `.path`.
    pub fields: BTreeMap<String, String>,
}

impl Object {
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// Fields from pairs.
pub fn fields<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

pub struct Api {
    revision: u64,
    uids: u64,
    pub live: BTreeMap<String, Object>,
    pub text: String,
    /// Lines of the etcd witness.
    witness: String,
}

impl Api {
    pub fn new(clients: &[(&str, &str)]) -> Api {
        let mut text = String::new();
        for (name, user) in clients {
            writeln!(text, "client {name} user={user}").unwrap();
        }
        Api { revision: 10, uids: 0, live: BTreeMap::new(), text, witness: "etcd ".to_owned() }
    }

    /// The sketch of all requests, with or without the witness.
    pub fn sketch(mut self, witness: bool) -> String {
        if witness {
            self.text += &self.witness;
            self.text.push('\n');
        }
        self.text
    }

    fn commit(&mut self, sign: char, key: &str, uid: &str) -> u64 {
        self.revision += 1;
        write!(self.witness, " {sign}{key}:{uid}@{}", self.revision).unwrap();
        self.revision
    }

    fn line(&mut self, client: &str, act: &str) {
        writeln!(self.text, "{client}@A {act}").unwrap();
    }

    fn shown(key: &str, object: &Object) -> String {
        let fields: Vec<String> = object.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{key}:{}@{}[{}]", object.uid, object.revision, fields.join(" "))
    }

    pub fn create(&mut self, client: &str, key: &str, fields: BTreeMap<String, String>, decision: &str) -> Object {
        self.uids += 1;
        let uid = format!("u{}", self.uids);
        let revision = self.commit('+', key, &uid);
        let object = Object { uid, revision, fields };
        let shown = Api::shown(key, &object);
        self.line(client, &format!("CREATE {key}{decision} => {shown}"));
        self.live.insert(key.to_owned(), object.clone());
        object
    }

    /// A write on the condition that the object has a version. Returns whether it had.
    pub fn update(
        &mut self,
        client: &str,
        key: &str,
        base: u64,
        change: impl FnOnce(&mut Object),
        decision: &str,
    ) -> bool {
        let Some(object) = self.live.get(key).filter(|object| object.revision == base).cloned() else {
            self.line(client, &format!("PATCH {key} test(@{base}){decision} => !409"));
            return false;
        };
        self.put(client, key, object, &format!("PATCH {key} test(@{base}){decision}"), change);
        true
    }

    /// An unconditional write by name.
    pub fn patch(&mut self, client: &str, key: &str, change: impl FnOnce(&mut Object), decision: &str) {
        let Some(object) = self.live.get(key).cloned() else {
            return self.line(client, &format!("PATCH {key}{decision} => !404"));
        };
        self.put(client, key, object, &format!("PATCH {key}{decision}"), change);
    }

    /// A status that names its uid. `compares`: the server checks that uid.
    pub fn status(&mut self, client: &str, key: &str, uid: &str, compares: bool) {
        let request = format!("PATCH status {key}:{uid}");
        match self.live.get(key).cloned() {
            None => self.line(client, &format!("{request} => !404")),
            Some(object) if compares && object.uid != uid => {
                self.line(client, &format!("{request} => !409 live=:{}", object.uid));
            }
            Some(object) => self.put(client, key, object, &request, |_| ()),
        }
    }

    fn put(&mut self, client: &str, key: &str, mut object: Object, request: &str, change: impl FnOnce(&mut Object)) {
        change(&mut object);
        object.revision = self.commit('~', key, &object.uid);
        let shown = Api::shown(key, &object);
        self.line(client, &format!("{request} => {shown}"));
        self.live.insert(key.to_owned(), object);
    }

    pub fn delete(&mut self, client: &str, key: &str, decision: &str) {
        match self.live.remove(key) {
            Some(object) => {
                self.commit('-', key, &object.uid);
                self.line(client, &format!("DELETE {key}:{0}{decision} => ok:{0}", object.uid));
            }
            None => self.line(client, &format!("DELETE {key}{decision} => !404")),
        }
    }

    pub fn get(&mut self, client: &str, key: &str, decision: &str) -> Option<Object> {
        let object = self.live.get(key).cloned();
        let answer = object.as_ref().map_or("!404".to_owned(), |object| Api::shown(key, object));
        self.line(client, &format!("GET {key}{decision} => {answer}"));
        object
    }

    /// All objects of a resource in the most recent state.
    pub fn list(&mut self, client: &str, resource: &str, decision: &str) -> BTreeMap<String, Object> {
        let prefix = format!("{resource}/");
        let inside = self.live.iter().filter(|(key, _)| key.starts_with(&prefix));
        let found: BTreeMap<String, Object> = inside.map(|(key, object)| (key.clone(), object.clone())).collect();
        let items: Vec<String> =
            found.iter().map(|(key, object)| format!("{key}:{}@{}", object.uid, object.revision)).collect();
        let act = format!("LIST {resource}{decision} => {} {{{}}}", self.revision, items.join(" "));
        self.line(client, &act);
        found
    }

    pub fn pause(&mut self, seconds: u64) {
        writeln!(self.text, "--- {seconds}s").unwrap();
    }
}
