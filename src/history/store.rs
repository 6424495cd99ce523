//! The history: rows, names, and the queries of all later stages.
//!
//! Invariant: every id in a row is valid for the tables here, and the rows keep the order that their fields state. Binary
//! searches rely on it.

use super::calls::Calls;
use super::client::Incarnation;
use super::etcd::Cluster;
use super::ids::*;
use super::interner::Interner;
use super::json_parts::Parts;
use super::nature::{Nature, Subject};
use super::operation::*;
use super::operations::Operations;
use super::request::Verb;
use super::resource::{Key, Placement, Resource};
use super::scope::{Attributes, Deletion, Difference, Scope};
use super::selector;
use crate::ingest::{FileId, FileSummary, InputFile, Position, Problem};
use std::sync::LazyLock;

/// All recorded facts. Operations are in order of invoke time, then position.
#[derive(Debug, Default)]
pub struct History {
    /// All names.
    #[doc(hidden)]
    pub names: Interner,
    /// Inputs, for re-reading.
    #[doc(hidden)]
    pub inputs: Vec<InputFile>,
    /// The summary of reading each input.
    #[doc(hidden)]
    pub files: Vec<FileSummary>,
    /// Lines that could not be used, with the reason.
    pub problems: Vec<Problem>,
    /// Resources.
    #[doc(hidden)]
    pub resources: Vec<Resource>,
    /// The domain of each resource.
    #[doc(hidden)]
    pub placements: Vec<Placement>,
    /// Names of the domains.
    #[doc(hidden)]
    pub domains: Vec<String>,
    /// Keys.
    #[doc(hidden)]
    pub keys: Vec<Key>,
    /// Scopes.
    #[doc(hidden)]
    pub scopes: Vec<Scope>,
    /// Attributes of versions.
    #[doc(hidden)]
    pub attributes: Vec<Attributes>,
    /// Parts of declared fields.
    #[doc(hidden)]
    pub parts: Parts,
    /// Clients: user names.
    #[doc(hidden)]
    pub clients: Vec<Symbol>,
    /// Incarnations of clients.
    #[doc(hidden)]
    pub incarnations: Vec<Incarnation>,
    /// Servers.
    #[doc(hidden)]
    pub servers: Vec<Symbol>,
    /// Clocks.
    #[doc(hidden)]
    pub clocks: Vec<Symbol>,
    /// Operations.
    #[doc(hidden)]
    pub operations: Operations,
    /// Listed items of all operations.
    #[doc(hidden)]
    pub items: Vec<Item>,
    /// Watches with recorded deliveries, in order of their operations; their deliveries have the same order.
    #[doc(hidden)]
    pub streams: Vec<Stream>,
    /// Their deliveries, each stream's in the order of arrival.
    #[doc(hidden)]
    pub deliveries: Vec<Delivery>,
    /// Events of etcd witnesses.
    #[doc(hidden)]
    pub witness: Vec<WitnessEvent>,
    /// The intervals in which witnesses miss no change.
    #[doc(hidden)]
    pub witness_spans: Vec<WitnessSpan>,
    /// Positions of captured requests' bodies, in order of operations. The position of an operation is that of its answer.
    #[doc(hidden)]
    pub request_places: Vec<(OperationId, Position)>,
    /// Positions of servers' records with bodies, for requests that clients recorded too. In order of operations.
    #[doc(hidden)]
    pub server_records: Vec<(OperationId, Position)>,
    /// Reads from client-side caches.
    #[doc(hidden)]
    pub cache_reads: Vec<CacheRead>,
    /// Begins and ends of decision passes.
    #[doc(hidden)]
    pub brackets: Vec<Bracket>,
    /// Recorders' notes for diagrams.
    #[doc(hidden)]
    pub annotations: Vec<Annotation>,
    /// Facts of histories of one nature.
    #[doc(hidden)]
    pub subject: Subject,
    /// API server versions named by the server's own loopback client: (server, minor version of 1.x).
    #[doc(hidden)]
    pub server_versions: Vec<(ServerId, u32)>,
}

static NO_CALLS: LazyLock<Calls> = LazyLock::new(Calls::default);

impl History {
    /// Whether there is nothing to check.
    pub fn is_empty(&self) -> bool {
        match &self.subject {
            Subject::Kubernetes => self.operations.is_empty() && self.witness.is_empty(),
            Subject::Etcd(cluster) => cluster.recording.is_empty(),
            Subject::Operations(calls) => calls.is_empty(),
        }
    }
}

#[doc(hidden)]
impl History {
    /// The input with this id.
    pub fn input(&self, id: FileId) -> Option<&InputFile> {
        let at = self.inputs.get(id.0 as usize).filter(|input| input.id == id);
        at.or_else(|| self.inputs.iter().find(|input| input.id == id))
    }

    /// The text of a name.
    pub fn name(&self, symbol: Symbol) -> &str {
        self.names.get(symbol)
    }

    /// An operation.
    #[inline(always)]
    pub fn operation(&self, id: OperationId) -> Operation {
        self.operations.get(id.index())
    }

    /// Whether two records of one object belong to one request: the client's, and the server's shadow of it.
    pub fn are_one_request(&self, a: OperationId, b: OperationId) -> bool {
        let (one, other) = (self.operation(a), self.operation(b));
        a == b || (one.audit_id == other.audit_id && one.audit_id != AuditId::None && one.verb == other.verb)
    }

    /// The stream of a watch, if its deliveries were recorded.
    pub fn stream_of(&self, id: OperationId) -> Option<&Stream> {
        if self.operations.verb(id.index()) != Verb::Watch {
            return None;
        }
        self.streams.binary_search_by_key(&id, |s| s.operation).ok().map(|at| &self.streams[at])
    }

    /// The watch of a delivery.
    pub fn watch_of(&self, delivery: usize) -> OperationId {
        let at = self.streams.partition_point(|s| s.deliveries_start as usize <= delivery);
        at.checked_sub(1).map_or(OperationId::NONE, |at| self.streams[at].operation)
    }

    /// The deliveries of a stream.
    pub fn deliveries_of(&self, stream: &Stream) -> &[Delivery] {
        &self.deliveries[stream.deliveries()]
    }

    /// The items of a list.
    pub fn items_of(&self, operation: &Operation) -> &[Item] {
        &self.items[operation.items()]
    }

    /// The resource of a key.
    pub fn resource_of(&self, key: KeyId) -> ResourceId {
        self.keys[key.index()].resource
    }

    /// The domain of a resource; the first domain for objects of operation logs, which have no placement.
    pub fn domain_of(&self, resource: ResourceId) -> DomainId {
        self.placements.get(resource.index()).map_or(DomainId(0), |placement| placement.domain)
    }

    /// Whether the revisions of two resources certainly come from one counter: one resource, or one domain in which neither may
    /// have an etcd of its own.
    pub fn share_counter(&self, a: ResourceId, b: ResourceId) -> bool {
        let (pa, pb) = (self.placements[a.index()], self.placements[b.index()]);
        a == b || (pa.domain == pb.domain && !pa.overridable && !pb.overridable)
    }

    /// The client name of an incarnation.
    pub fn client_name(&self, incarnation: IncarnationId) -> &str {
        if !incarnation.is_some() {
            return "";
        }
        self.name(self.clients[self.incarnations[incarnation.index()].client.index()])
    }

    /// Whether one record of a version has more content than another.
    pub fn says_more(&self, one: AttributesId, than: AttributesId) -> bool {
        let extent = |id| Attributes::extent(&self.attributes, id);
        extent(one) > extent(than)
    }

    /// The first field that differs between two records of one version. A field that only one record has is no difference, since
    /// the other may have been cut.
    pub fn difference(&self, one: AttributesId, other: AttributesId) -> Option<Difference> {
        if one == other || !one.is_some() || !other.is_some() {
            return None;
        }
        let (one, other) = (self.attributes[one.index()], self.attributes[other.index()]);
        let said = |symbol: Symbol| symbol.is_some().then(|| self.name(symbol)).filter(|text| !text.is_empty());
        let labels = |symbol| said(symbol).and_then(selector::labels).filter(|labels| !labels.is_empty());
        let differ =
            |(_, one, other): &(_, Symbol, Symbol)| one != other && said(*one).is_some() && said(*other).is_some();
        if one.labels != other.labels
            && let (Some(one), Some(other)) = (labels(one.labels), labels(other.labels))
            && one != other
        {
            return Some(Difference::Labels);
        }
        let fields = [(Difference::Node, one.node, other.node), (Difference::Phase, one.phase, other.phase)];
        if let Some((field, ..)) = fields.into_iter().find(differ) {
            return Some(field);
        }
        if one.created != other.created && one.created != 0 && other.created != 0 {
            return Some(Difference::CreationTimestamp);
        }
        let deletions = [one.deletion, other.deletion];
        if deletions.contains(&Deletion::Begun) && deletions.contains(&Deletion::NotBegun) {
            return Some(Difference::DeletionTimestamp);
        }
        (one.data != other.data && one.data != 0 && other.data != 0).then_some(Difference::Data)
    }

    /// The last part of a client's name, for sentences: `node-1` of `system:node:node-1`.
    pub fn short_client(&self, incarnation: IncarnationId) -> &str {
        let name = self.client_name(incarnation);
        name.rsplit(':').next().unwrap_or(name)
    }

    /// The name of a server; empty if unknown.
    pub fn server_name(&self, server: ServerId) -> &str {
        if server.is_some() { self.name(self.servers[server.index()]) } else { "" }
    }

    /// The name of a clock; empty if unknown.
    pub fn clock_name(&self, clock: ClockId) -> &str {
        if clock.is_some() { self.name(self.clocks[clock.index()]) } else { "" }
    }

    /// The name of a resource in reports: `pods`, `deployments.apps`.
    pub fn resource_name(&self, id: ResourceId) -> String {
        let resource = self.resources[id.index()];
        let (plural, group) = (self.name(resource.plural), self.name(resource.group));
        if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
    }

    /// The name of a key in reports: `pods default/web-0`.
    pub fn key_name(&self, id: KeyId) -> String {
        if !id.is_some() {
            return String::new();
        }
        let key = self.keys[id.index()];
        let (namespace, name) = (self.name(key.namespace), self.name(key.name));
        // An answer without request leaves a key without resource.
        let resource = if key.resource.is_some() { self.resource_name(key.resource) } else { "unknown".to_owned() };
        if namespace.is_empty() { format!("{resource} {name}") } else { format!("{resource} {namespace}/{name}") }
    }

    /// The name of a scope in reports: `pods in default where spec.nodeName=node-1`.
    pub fn scope_name(&self, id: ScopeId) -> String {
        if !id.is_some() {
            return String::new();
        }
        let scope = self.scopes[id.index()];
        let mut text = self.resource_name(scope.resource);
        let (namespace, name) = (self.name(scope.namespace), self.name(scope.name));
        match (namespace.is_empty(), name.is_empty()) {
            (true, true) => {}
            (false, true) => text += &format!(" in {namespace}"),
            (true, false) => text += &format!(" {name}"),
            (false, false) => text += &format!(" {namespace}/{name}"),
        }
        for selector in [scope.labels, scope.fields, scope.shard] {
            if !self.name(selector).is_empty() {
                text += &format!(" where {}", self.name(selector));
            }
        }
        text
    }

    /// The path of a file as the caller named it.
    pub fn file_name(&self, id: FileId) -> &str {
        self.files.get(id.0 as usize).map_or("", |f| f.path.as_str())
    }

    /// Whether a scope has a selector beyond namespace and name.
    pub fn is_selective(&self, id: ScopeId) -> bool {
        let scope = self.scopes[id.index()];
        [scope.labels, scope.fields, scope.shard].iter().any(|&s| !self.name(s).is_empty())
    }

    /// Whether a key lies in the scope's resource, namespace and name (selectors aside).
    pub fn covers_key(&self, scope: ScopeId, key: KeyId) -> bool {
        let (scope, key) = (self.scopes[scope.index()], self.keys[key.index()]);
        scope.resource == key.resource
            && (self.name(scope.namespace).is_empty() || scope.namespace == key.namespace)
            && (self.name(scope.name).is_empty() || scope.name == key.name)
    }

    /// Whether the scope's selectors select a version; `None` if the evidence does not show it.
    pub fn selects(&self, scope: ScopeId, key: KeyId, attributes: AttributesId) -> Option<bool> {
        if !self.is_selective(scope) {
            return Some(true);
        }
        let (scope, key) = (self.scopes[scope.index()], self.keys[key.index()]);
        let seen = if attributes.is_some() { self.attributes[attributes.index()] } else { Attributes::default() };
        let text = |symbol: Symbol| symbol.is_some().then(|| self.name(symbol));
        let labels = match self.name(scope.labels) {
            "" => Some(true),
            wanted => text(seen.labels).and_then(|labels| selector::matches_labels(wanted, labels)),
        };
        let fields = selector::matches_fields(self.name(scope.fields), |field| match field {
            "spec.nodeName" => text(seen.node),
            "status.phase" => text(seen.phase),
            "metadata.name" => text(key.name),
            "metadata.namespace" => text(key.namespace),
            _ => None,
        });
        let shard = self.name(scope.shard).is_empty().then_some(true);
        match (labels, fields, shard) {
            (Some(false), ..) | (_, Some(false), _) => Some(false),
            (Some(true), Some(true), Some(true)) => Some(true),
            _ => None,
        }
    }

    /// Whether a field selector of the scope uses a field that is not recorded.
    pub fn is_beyond_evidence(&self, scope: ScopeId) -> bool {
        let is_kept =
            |field| matches!(field, "metadata.name" | "metadata.namespace" | "spec.nodeName" | "status.phase");
        !selector::fields_of(self.name(self.scopes[scope.index()].fields)).all(is_kept)
    }

    /// Whether `outer` covers every key and selection of `inner`, as far as the texts show it.
    pub fn scope_contains(&self, outer: ScopeId, inner: ScopeId) -> bool {
        let (o, i) = (self.scopes[outer.index()], self.scopes[inner.index()]);
        let wide = |o: Symbol, i: Symbol| self.name(o).is_empty() || o == i;
        o.resource == i.resource
            && wide(o.namespace, i.namespace)
            && wide(o.name, i.name)
            && wide(o.labels, i.labels)
            && wide(o.fields, i.fields)
            && wide(o.shard, i.shard)
    }

    /// Whether two scopes may share an object, as far as namespaces and names show it.
    pub fn scopes_may_overlap(&self, a: ScopeId, b: ScopeId) -> bool {
        let (a, b) = (self.scopes[a.index()], self.scopes[b.index()]);
        let meets = |x: Symbol, y: Symbol| x == y || self.name(x).is_empty() || self.name(y).is_empty();
        a.resource == b.resource && meets(a.namespace, b.namespace) && meets(a.name, b.name)
    }

    /// An audit id as text.
    pub fn audit_id(&self, id: AuditId) -> String {
        match id {
            AuditId::None => String::new(),
            AuditId::Text(symbol) => self.name(symbol).to_owned(),
            AuditId::Uuid(high, low) => format!(
                "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                high >> 32,
                (high >> 16) & 0xffff,
                high & 0xffff,
                low >> 48,
                low & 0xffff_ffff_ffff
            ),
        }
    }

    /// The minor version of a server's Kubernetes, if its loopback client named it.
    pub fn server_minor(&self, server: ServerId) -> Option<u32> {
        self.server_versions.iter().find(|(s, _)| *s == server).map(|(_, minor)| *minor)
    }

    /// The nature of the history.
    pub fn nature(&self) -> Nature {
        match self.subject {
            Subject::Kubernetes => Nature::Kubernetes,
            Subject::Etcd(_) => Nature::Etcd,
            Subject::Operations(_) => Nature::Operations,
        }
    }

    /// The recorded etcd cluster; `None` for another nature.
    pub fn cluster(&self) -> Option<&Cluster> {
        match &self.subject {
            Subject::Etcd(cluster) => Some(cluster),
            Subject::Kubernetes | Subject::Operations(_) => None,
        }
    }

    /// The calls of an operation log; empty for another nature.
    pub fn calls(&self) -> &Calls {
        match &self.subject {
            Subject::Operations(calls) => calls,
            Subject::Kubernetes | Subject::Etcd(_) => &NO_CALLS,
        }
    }

    /// Sets the model of an operation log. Histories of other natures have none.
    pub fn set_model(&mut self, model: &str) {
        if let Subject::Operations(calls) = &mut self.subject {
            calls.model = Some(model.to_owned());
        }
    }

    /// The item of a list with this key.
    pub fn item(&self, operation: &Operation, key: KeyId) -> Option<&Item> {
        self.items_of(operation).iter().find(|i| i.key == key)
    }

    /// The name of a request in reports: `LIST pods resourceVersion=0`.
    pub fn request_name(&self, operation: &Operation) -> String {
        use super::request::Asked;
        let target =
            if operation.key.is_some() { self.key_name(operation.key) } else { self.scope_name(operation.scope) };
        let asked = match operation.asked {
            _ if operation.verb.is_write() => match operation.asked_revision.known() {
                Some(base) => format!(" based on {base}"),
                None => String::new(),
            },
            Asked::Unset => String::new(),
            Asked::Any => " resourceVersion=0".to_owned(),
            Asked::From | Asked::LegacyExact => format!(" resourceVersion={}", operation.asked_revision),
            Asked::Exact => format!(" resourceVersion={} exactly", operation.asked_revision),
            Asked::Continue => format!(" continued at {}", operation.asked_revision),
            Asked::ContinueInconsistent => " continued at a newer revision".to_owned(),
            Asked::Invalid => " with invalid options".to_owned(),
            Asked::Unrecorded => " (request not recorded)".to_owned(),
        };
        let sub = match operation.subresource {
            Subresource::Status => "/status",
            Subresource::Scale => "/scale",
            _ => "",
        };
        format!("{} {target}{sub}{asked}", operation.verb.name())
    }
}
