//! Turns a recording into a history: assigns ids to clients, keys, members and the clock, so that findings can name them.

use super::cluster::{CLOCK, Cluster};
use super::operation::{Request, Requests, Step};
use super::recording::Recording;
use crate::history::{
    ClientId, History, IdentifiedBy, Incarnation, Key, KeyId, Placement, Resource, ResourceId, ServerId, Subject,
    Symbol,
};
use crate::ingest::Time;
use rustc_hash::FxHashMap;

impl History {
    /// The history of a recording.
    #[doc(hidden)]
    pub fn of_etcd(mut recording: Recording) -> History {
        let mut history = History {
            inputs: std::mem::take(&mut recording.inputs),
            files: recording.files.clone(),
            problems: std::mem::take(&mut recording.problems),
            ..History::default()
        };
        let clock = history.names.intern("suite");
        history.clocks.push(clock);
        for client in &recording.clients {
            let id = ClientId(history.clients.len() as u32);
            history.clients.push(history.names.intern(&client.name));
            let operations = recording.operations_of(client);
            let first = operations.first().map_or(Time::UNKNOWN, |operation| operation.call);
            let last = operations.iter().map(|operation| operation.returned).filter(|time| time.is_known()).max();
            history.incarnations.push(Incarnation {
                client: id,
                label: client.name.clone(),
                identified_by: IdentifiedBy::Directory,
                place: None,
                program: String::new(),
                span: (first, last.unwrap_or(Time::UNKNOWN)),
                clock: CLOCK,
                served: Vec::new(),
            });
        }
        let servers = servers(&mut history, &recording);
        let keys = keys(&mut history, &recording);
        history.subject = Subject::Etcd(Box::new(Cluster { recording, keys, servers }));
        history
    }
}

fn servers(history: &mut History, recording: &Recording) -> FxHashMap<u64, ServerId> {
    let mut servers = FxHashMap::default();
    let named = recording.members.iter().filter_map(|member| Some((member.log.as_ref()?.node, member.name.clone())));
    let numbered = recording.operations.iter().map(|operation| (operation.member, String::new()));
    for (number, name) in named.chain(numbered).filter(|(number, _)| *number != 0) {
        servers.entry(number).or_insert_with(|| {
            let name = if name.is_empty() { format!("{number:x}") } else { name };
            history.servers.push(history.names.intern(&name));
            ServerId(history.servers.len() as u32 - 1)
        });
    }
    servers
}

fn keys(history: &mut History, recording: &Recording) -> FxHashMap<Symbol, KeyId> {
    let mut keys = FxHashMap::default();
    // Most keys occur many times.
    let mut known = vec![false; recording.texts.len()];
    let resource = Resource { group: history.names.intern(""), plural: history.names.intern("key") };
    history.resources.push(resource);
    let mut add = |key: Symbol| {
        if !key.is_some() || std::mem::replace(&mut known[key.index()], true) {
            return;
        }
        let name = history.names.intern(recording.texts.get(key));
        keys.insert(key, KeyId(history.keys.len() as u32));
        history.keys.push(Key { resource: ResourceId(0), namespace: resource.group, name });
    };
    let Requests { conditions, steps } = &recording.requests;
    conditions.iter().for_each(|condition| add(condition.keys.key));
    for step in steps {
        match step {
            Step::Range(range) => add(range.keys.key),
            Step::Put { key, .. } => add(*key),
            Step::Delete(keys) => add(keys.key),
            Step::Txn(_) | Step::Nothing => {}
        }
    }
    for operation in &recording.operations {
        if let Request::Range(range) = operation.request {
            add(range.keys.key);
        }
    }
    recording.pairs.iter().for_each(|pair| add(pair.key));
    recording.events.iter().for_each(|event| add(event.key));
    recording.watches.iter().for_each(|watch| add(watch.key));
    let stores = recording.members.iter().filter_map(|member| member.store.as_ref());
    stores.flat_map(|store| &store.revisions).for_each(|revision| add(revision.key));
    history.placements.push(Placement { domain: crate::history::DomainId(0), overridable: false });
    history.domains.push("default".to_owned());
    keys
}
