//! The tables that rows refer to, and the mapping of a block's ids into the tables of a history.

use super::super::client::Process;
use super::super::ids::*;
use super::super::interner::{Interner, Table};
use super::super::json_parts::Parts;
use super::super::operation::AuditId;
use super::super::resource::{self, Key, Resource};
use super::super::scope::{Attributes, Scope};

/// The tables that rows refer to.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// Names.
    pub names: Interner,
    /// Resources.
    pub resources: Table<Resource>,
    /// Keys. The resource is [`ResourceId::NONE`] if only the request, on another line, has it.
    pub keys: Table<Key>,
    /// Scopes.
    pub scopes: Table<Scope>,
    /// Attributes of versions.
    pub attributes: Table<Attributes>,
    /// Parts of declared fields.
    pub parts: Parts,
    /// Processes.
    pub processes: Table<Process>,
    recent: Recent,
}

/// The most recent names. A request names its object up to three times: in its reference, its body and its answer.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    group: Symbol,
    plural: Symbol,
    namespace: Symbol,
    name: Symbol,
    uid: Symbol,
}

impl Tables {
    /// Interns a resource under its canonical group.
    pub fn resource(&mut self, group: &str, plural: &str) -> ResourceId {
        let group = self.names.again(&mut self.recent.group, resource::canonical_group(group, plural));
        let plural = self.names.again(&mut self.recent.plural, plural);
        ResourceId(self.resources.intern(Resource { group, plural }))
    }

    /// Interns a key.
    pub fn key(&mut self, resource: ResourceId, namespace: &str, name: &str) -> KeyId {
        let (namespace, name) = (self.namespace(namespace), self.name(name));
        KeyId(self.keys.intern(Key { resource, namespace, name }))
    }

    /// Interns a namespace.
    pub fn namespace(&mut self, text: &str) -> Symbol {
        self.names.again(&mut self.recent.namespace, text)
    }

    /// Interns the name of an object.
    pub fn name(&mut self, text: &str) -> Symbol {
        self.names.again(&mut self.recent.name, text)
    }

    /// Interns a uid; none for the empty text.
    pub fn uid(&mut self, text: &str) -> Symbol {
        if text.is_empty() { Symbol::NONE } else { self.names.again(&mut self.recent.uid, text) }
    }

    /// Interns a text; none for the empty text.
    pub fn optional(&mut self, text: &str) -> Symbol {
        if text.is_empty() { Symbol::NONE } else { self.names.intern(text) }
    }

    /// Interns the tables of a block; returns the new ids.
    pub fn absorb(&mut self, other: &Tables) -> Moved {
        let names = self.names.absorb(&other.names);
        let name = |s: Symbol| if s.is_some() { names[s.index()] } else { s };
        let resources: Vec<ResourceId> = other
            .resources
            .values()
            .iter()
            .map(|r| ResourceId(self.resources.intern(Resource { group: name(r.group), plural: name(r.plural) })))
            .collect();
        let resource = |r: ResourceId| if r.is_some() { resources[r.index()] } else { r };
        let keys = other
            .keys
            .values()
            .iter()
            .map(|k| {
                let key = Key { resource: resource(k.resource), namespace: name(k.namespace), name: name(k.name) };
                KeyId(self.keys.intern(key))
            })
            .collect();
        let scopes = other
            .scopes
            .values()
            .iter()
            .map(|s| {
                ScopeId(self.scopes.intern(Scope {
                    resource: resource(s.resource),
                    namespace: name(s.namespace),
                    name: name(s.name),
                    labels: name(s.labels),
                    fields: name(s.fields),
                    shard: name(s.shard),
                }))
            })
            .collect();
        let parts = self.parts.absorb(&other.parts, name);
        let part = |v: PartId| if v.is_some() { parts[v.index()] } else { v };
        let attributes = other
            .attributes
            .values()
            .iter()
            .map(|a| {
                let a = Attributes {
                    labels: name(a.labels),
                    node: name(a.node),
                    phase: name(a.phase),
                    fields: part(a.fields),
                    ..*a
                };
                AttributesId(self.attributes.intern(a))
            })
            .collect();
        let processes = other
            .processes
            .values()
            .iter()
            .map(|p| {
                ProcessId(self.processes.intern(Process {
                    user: name(p.user),
                    label: name(p.label),
                    pod_uid: name(p.pod_uid),
                    pod_name: name(p.pod_name),
                    node_name: name(p.node_name),
                    address: name(p.address),
                    agent: name(p.agent),
                    clock: name(p.clock),
                }))
            })
            .collect();
        Moved { names, keys, scopes, attributes, processes }
    }
}

/// The new ids of a block's rows.
#[derive(Debug)]
pub struct Moved {
    names: Vec<Symbol>,
    keys: Vec<KeyId>,
    scopes: Vec<ScopeId>,
    attributes: Vec<AttributesId>,
    processes: Vec<ProcessId>,
}

impl Moved {
    /// The new id of a name.
    pub fn name(&self, id: Symbol) -> Symbol {
        if id.is_some() { self.names[id.index()] } else { id }
    }

    /// The new id of a key.
    pub fn key(&self, id: KeyId) -> KeyId {
        if id.is_some() { self.keys[id.index()] } else { id }
    }

    /// The new id of a scope.
    pub fn scope(&self, id: ScopeId) -> ScopeId {
        if id.is_some() { self.scopes[id.index()] } else { id }
    }

    /// The new id of attributes.
    pub fn attributes(&self, id: AttributesId) -> AttributesId {
        if id.is_some() { self.attributes[id.index()] } else { id }
    }

    /// The new id of a process.
    pub fn process(&self, id: ProcessId) -> ProcessId {
        if id.is_some() { self.processes[id.index()] } else { id }
    }

    /// The audit id with its text's new id.
    pub fn audit_id(&self, id: AuditId) -> AuditId {
        match id {
            AuditId::Text(symbol) => AuditId::Text(self.name(symbol)),
            other => other,
        }
    }
}
