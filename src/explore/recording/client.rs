//! The client of a finding, as its requests show it: how it lists, watches and writes, and with which options.

use super::{Scene, WriteKind};
use crate::history::{Asked, DeliveryKind, KeyId, Marks, Operation, OperationId, ResourceId, Verb};
use std::collections::{BTreeMap, BTreeSet};

/// The version that a read asks for. The weakest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// Any state.
    Any,
    /// None older than the one that the client knows.
    NotOlder,
    /// The most recent one.
    Fresh,
}

impl Ask {
    fn of(o: &Operation) -> Ask {
        match o.asked {
            Asked::Any => Ask::Any,
            Asked::From | Asked::Exact | Asked::LegacyExact => Ask::NotOlder,
            _ => Ask::Fresh,
        }
    }
}

/// Lists and streams of a resource.
#[derive(Debug)]
pub struct Reflector {
    pub resource: ResourceId,
    /// The variable that holds what it has seen.
    pub variable: String,
    /// The first list of a life.
    pub first: Ask,
    /// Later lists of the same life.
    pub again: Ask,
    pub watches: bool,
    /// The state with which its streams begin, if they send the initial events in place of lists.
    pub initial_events: Option<Ask>,
}

/// The read that shows the client the object that it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// None.
    Nothing,
    /// A list or a stream: the number of the reflector.
    Reflector(usize),
    /// A GET before the write.
    Get(Ask),
}

/// A write of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnWrite {
    pub key: KeyId,
    pub kind: WriteKind,
    pub base: Base,
    pub if_uid: bool,
    pub if_version: bool,
    /// The objects on which the decision rests, whether each was there, and the number of the reflector that showed it.
    pub premises: Vec<(KeyId, bool, usize)>,
}

/// Everything that the client does.
#[derive(Debug)]
pub struct Client {
    /// The user, if a sketch can name it.
    pub user: Option<String>,
    pub reflectors: Vec<Reflector>,
    /// The objects that it reads alone, and how.
    pub gets: Vec<(KeyId, Ask)>,
    pub writes: Vec<OwnWrite>,
    /// Whether requests of one life reach several servers.
    pub switches: bool,
    pub servers: usize,
    pub crashes: usize,
    pub breaks: usize,
    pub expirations: usize,
    pub timeouts: usize,
}

impl Client {
    pub fn of(scene: &Scene<'_>) -> Result<Client, String> {
        let life = scene.lives[scene.lives.len() - 1];
        let mut client = Client {
            user: Some(scene.history.client_name(life).to_owned()).filter(|user| user.chars().all(is_of_user)),
            reflectors: reflectors(scene),
            gets: Vec::new(),
            writes: Vec::new(),
            switches: false,
            servers: 2,
            // Every run has these faults, whether the recorded one had them or not.
            crashes: (scene.lives.len() - 1).max(1),
            breaks: 0,
            expirations: 0,
            timeouts: 0,
        };
        let mut servers = BTreeSet::new();
        for life in &scene.lives {
            let (mut of_life, mut watches) = (BTreeSet::new(), 0);
            for (_, o) in scene.requests(*life) {
                if scene.covered(o).is_some() {
                    watches += usize::from(o.verb == Verb::Watch);
                } else if !(o.verb == Verb::Get && scene.keys.contains_key(&o.key)) {
                    continue;
                } else if !client.gets.contains(&(o.key, Ask::of(o))) {
                    client.gets.push((o.key, Ask::of(o)));
                }
                of_life.insert(o.server);
            }
            client.switches |= of_life.len() > 1;
            client.breaks = client.breaks.max(watches);
            client.expirations = client.breaks.min(1);
            servers.extend(of_life);
        }
        client.servers = servers.len().clamp(2, 3);
        client.own_writes(scene);
        // Of these, the ones before a write belong to it, and only a rule of reads concerns the others.
        let of_write = |(key, _): &(KeyId, Ask)| client.writes.iter().any(|write| write.key == *key);
        if matches!(scene.finding.rule, "monotonic-reads" | "read-your-writes") {
            client.gets.retain(|get| !of_write(get) || client.writes.is_empty());
        } else {
            client.gets.clear();
        }
        if client.reflectors.is_empty()
            && client.gets.is_empty()
            && client.writes.iter().all(|write| write.base == Base::Nothing)
        {
            return Err("no request shows how the client read these objects".to_owned());
        }
        Ok(client)
    }

    /// The writes of the client that were committed around the finding, and the write at fault.
    fn own_writes(&mut self, scene: &Scene<'_>) {
        let committed = scene.writes.iter().filter(|write| write.is_own).map(|write| (write.operation, write.kind));
        let facts = scene.finding.certificate.facts.iter().map(|fact| fact.operation).filter(|id| id.is_some());
        let at_fault = facts.filter_map(|id| {
            let o = scene.history.operation(id);
            let kind = match o.verb {
                Verb::Create => WriteKind::Create,
                Verb::Update | Verb::Patch => WriteKind::Patch,
                Verb::Delete => WriteKind::Delete,
                _ => return None,
            };
            (scene.lives.contains(&o.incarnation) && scene.keys.contains_key(&o.key)).then_some((id, kind))
        });
        let all: BTreeMap<OperationId, WriteKind> = at_fault.chain(committed).collect();
        for (id, kind) in all {
            let o = scene.history.operation(id);
            let kind = if o.marks.has(Marks::APPLY) { WriteKind::Apply } else { kind };
            self.timeouts |= usize::from(!o.is_answered());
            let write = OwnWrite {
                key: o.key,
                kind,
                base: if kind == WriteKind::Create { Base::Nothing } else { self.base(scene, id, &o) },
                // Servers do not compare each uid in a body, and the answer may show that this one was not compared.
                if_uid: kind != WriteKind::Create
                    && o.request_uid.is_some()
                    && (o.verb == Verb::Delete || !o.answer_uid.is_some() || o.answer_uid == o.request_uid),
                if_version: kind != WriteKind::Create && o.asked_revision.is_some(),
                premises: self.premises(scene, &o),
            };
            if !self.writes.contains(&write) {
                self.writes.push(write);
            }
        }
    }

    fn reflector_of(&self, scene: &Scene<'_>, key: KeyId) -> Option<usize> {
        let resource = scene.history.resource_of(key);
        self.reflectors.iter().position(|reflector| reflector.resource == resource)
    }

    /// The read that showed the object before a write.
    fn base(&self, scene: &Scene<'_>, id: OperationId, write: &Operation) -> Base {
        let earlier = scene.requests(write.incarnation).iter().take_while(|(other, _)| *other != id);
        let mut last = None;
        let mut wrote = None;
        for (_, o) in earlier.filter(|(_, o)| o.is_answered()) {
            if o.verb.is_write() && o.key == write.key && o.answer_uid.is_some() {
                // Its answer shows the object as a read of the most recent state does.
                wrote = Some(Base::Get(Ask::Fresh));
            } else if o.verb == Verb::Get && o.key == write.key {
                last = Some(Base::Get(Ask::of(o)));
            } else if scene.covered(o) == Some(scene.history.resource_of(write.key)) {
                last = None;
            }
        }
        let reflector = self.reflector_of(scene, write.key).map(Base::Reflector);
        last.or(reflector).or(wrote).unwrap_or(Base::Nothing)
    }

    /// For a stale premise: the other objects among the facts, as the client saw them before it sent a write.
    fn premises(&self, scene: &Scene<'_>, write: &Operation) -> Vec<(KeyId, bool, usize)> {
        if scene.finding.rule != "stale-premise" {
            return Vec::new();
        }
        let other = |key: &&KeyId| **key != write.key && scene.finding.certificate.facts.iter().any(|f| f.key == **key);
        let premise = |key: &KeyId| Some((*key, was_shown(scene, write, *key)?, self.reflector_of(scene, *key)?));
        scene.keys.keys().filter(other).filter_map(premise).collect()
    }
}

/// Whether the last list or event before a write showed the client an object, or its absence.
fn was_shown(scene: &Scene<'_>, write: &Operation, key: KeyId) -> Option<bool> {
    let history = scene.history;
    let mut last = None;
    let covers = |o: &Operation| scene.covered(o).is_some() && history.covers_key(o.scope, key);
    for (id, o) in scene.requests(write.incarnation).iter().filter(|(_, o)| covers(o) && o.is_answered()) {
        if o.verb == Verb::List && o.ret <= write.invoke {
            last = last.max(Some((o.ret, history.item(o, key).is_some())));
        }
        let events = history.stream_of(*id).map_or(&[][..], |stream| history.deliveries_of(stream)).iter();
        let events = events.filter(|event| event.key == key && event.at <= write.invoke);
        last = events.map(|event| Some((event.at, event.kind != DeliveryKind::Deleted))).chain([last]).max().flatten();
    }
    last.map(|(_, is_there)| is_there)
}

/// How the client lists and watches each resource.
fn reflectors(scene: &Scene<'_>) -> Vec<Reflector> {
    #[derive(Default)]
    struct Seen {
        first: Option<Ask>,
        again: Option<Ask>,
        watches: bool,
        initial: Option<Ask>,
    }
    let mut found: BTreeMap<ResourceId, Seen> = BTreeMap::new();
    let weaker = |known: Option<Ask>, ask: Ask| Some(known.map_or(ask, |known| known.min(ask)));
    for life in &scene.lives {
        let mut listed: BTreeSet<ResourceId> = BTreeSet::new();
        for (_, o) in scene.requests(*life) {
            let Some(resource) = scene.covered(o).filter(|_| o.asked != Asked::Continue) else { continue };
            let seen = found.entry(resource).or_default();
            let ask = Ask::of(o);
            if o.verb == Verb::Watch {
                seen.watches = true;
                if o.asked != Asked::From {
                    seen.initial = weaker(seen.initial, ask);
                }
            } else if listed.insert(resource) {
                // A version that a first list names comes from another life, and the client keeps none.
                seen.first = weaker(seen.first, if ask == Ask::Fresh { ask } else { Ask::Any });
            } else {
                seen.again = weaker(seen.again, ask);
            }
        }
    }
    let reflector = |(nth, (resource, seen)): (usize, (ResourceId, Seen))| {
        let first = seen.first.unwrap_or(Ask::Fresh);
        Reflector {
            resource,
            variable: variable(scene, nth, resource),
            first,
            // A client that listed once in each life would list again as it did at first.
            again: seen.again.unwrap_or(first),
            watches: seen.watches,
            initial_events: seen.initial.filter(|_| seen.first.is_none()),
        }
    };
    found.into_iter().enumerate().map(reflector).collect()
}

fn is_of_user(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '-' | '_' | '@' | '/')
}

/// A name for what is seen of a resource.
fn variable(scene: &Scene<'_>, nth: usize, resource: ResourceId) -> String {
    let name = scene.resource(resource);
    let number = if nth == 0 { String::new() } else { format!("_{nth}") };
    format!("seen_{}{number}", name.split('.').next().unwrap_or_default().replace('-', "_"))
}
