//! A simulated cluster: one etcd, API servers with lagging caches, clients that write, list, get and watch, and recorders
//! beside them. Everything is drawn from a seed. Faults are injected one at a time, and the simulation knows what it did.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// xorshift64*: small, seeded, the same everywhere.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % sides
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.roll(n) == 0
    }
}

/// What goes wrong, at most one kind a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// A consistent list answers from the lagging cache.
    StaleConsistentList,
    /// A consistent get answers from the lagging cache.
    StaleConsistentGet,
    /// A list not older than N answers below N.
    BelowMinimum,
    /// An exact list answers another revision.
    WrongSnapshot,
    /// A list lacks an object that lives at its revision.
    LostItem,
    /// A list shows an outdated version of an object.
    OldItem,
    /// A stream leaves an event out.
    DroppedEvent,
    /// A stream delivers an event twice.
    RepeatedEvent,
    /// A stream swaps two events.
    SwappedEvents,
    /// DELETED events carry the object's version before.
    OldDeleteVersion,
    /// A creation is delivered as MODIFIED.
    WrongType,
    /// A bookmark runs ahead of the events.
    EarlyBookmark,
    /// A watch from N delivers N again.
    Prehistory,
    /// After a restart a client lists with resourceVersion=0 from the lagging server.
    TimeTravel,
    /// A reflector resumes from an older version.
    ResumeBackwards,
    /// A write answers a revision below an earlier one.
    Rewind,
    /// Two objects share one revision.
    Collision,
    /// A stale conditional write is accepted.
    BrokenCompare,
}

impl Fault {
    pub const ALL: [Fault; 18] = [
        Fault::StaleConsistentList,
        Fault::StaleConsistentGet,
        Fault::BelowMinimum,
        Fault::WrongSnapshot,
        Fault::LostItem,
        Fault::OldItem,
        Fault::DroppedEvent,
        Fault::RepeatedEvent,
        Fault::SwappedEvents,
        Fault::OldDeleteVersion,
        Fault::WrongType,
        Fault::EarlyBookmark,
        Fault::Prehistory,
        Fault::TimeTravel,
        Fault::ResumeBackwards,
        Fault::Rewind,
        Fault::Collision,
        Fault::BrokenCompare,
    ];

    /// The rules of which one must speak, and those that may as well (consequences).
    pub fn rules(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Fault::None => (&[], &[]),
            Fault::StaleConsistentList => (&["stale-consistent-read"], &["monotonic-reads", "read-your-writes"]),
            Fault::StaleConsistentGet => (&["stale-consistent-read"], &["monotonic-reads", "read-your-writes"]),
            Fault::BelowMinimum => (&["below-minimum"], &["monotonic-reads"]),
            Fault::WrongSnapshot => (&["wrong-snapshot"], &[]),
            Fault::LostItem | Fault::OldItem => (&["torn-snapshot"], &["monotonic-reads", "read-your-writes"]),
            Fault::DroppedEvent => (&["watch-gap"], &["watch-type"]),
            Fault::RepeatedEvent => (&["watch-duplicate"], &["watch-type", "watch-reorder"]),
            Fault::SwappedEvents => (&["watch-reorder"], &["watch-type", "false-progress"]),
            Fault::OldDeleteVersion => (&["delete-version"], &["watch-gap"]),
            Fault::WrongType => (&["watch-type"], &[]),
            Fault::EarlyBookmark => (&["false-progress"], &["watch-gap", "resume-backwards", "monotonic-reads"]),
            Fault::Prehistory => (&["watch-prehistory"], &["watch-type", "watch-duplicate"]),
            Fault::TimeTravel => (&["monotonic-reads"], &[]),
            Fault::ResumeBackwards => (&["resume-backwards", "resume-from-item"], &["monotonic-reads"]),
            // A store that goes back breaks nearly every promise above it.
            Fault::Rewind => (&["revision-rewind"], STORE),
            Fault::Collision => (&["revision-reuse", "identity-break"], STORE),
            Fault::BrokenCompare => (&["broken-compare"], &["read-your-writes", "blind-write"]),
        }
    }
}

/// What a store with a broken order entails.
const STORE: &[&str] = &[
    "revision-rewind",
    "revision-reuse",
    "monotonic-writes",
    "writes-follow-reads",
    "stale-consistent-read",
    "torn-snapshot",
    "watch-gap",
    "watch-reorder",
    "watch-duplicate",
    "watch-prehistory",
    "watch-type",
    "false-progress",
    "identity-break",
    "bad-initial-state",
    "broken-compare",
    "monotonic-reads",
    "read-your-writes",
    "resume-backwards",
];

#[derive(Clone, Debug)]
struct Object {
    uid: String,
    revision: u64,
    node: u64,
}

#[derive(Clone, Debug)]
struct Change {
    revision: u64,
    name: String,
    /// The object after the change, or the one that was removed.
    object: Object,
    deleted: bool,
    created: bool,
}

struct Server {
    name: &'static str,
    /// Everything through here is in its cache.
    cache: u64,
    lag: u64,
    audit: Vec<(u64, String)>,
    offset: i64,
}

struct Stream {
    client: usize,
    server: usize,
    id: u64,
    position: u64,
    node: Option<u64>,
    members: BTreeMap<String, u64>,
    started: u64,
    audit_id: String,
    uri: String,
    delivered: u64,
    last: Option<Value>,
}

struct Client {
    name: String,
    incarnation: u64,
    busy: u64,
    lines: Vec<String>,
    /// What its reflector had come to; its pinned server.
    frontier: u64,
    pinned: usize,
    node: Option<u64>,
    captured: bool,
    agent: String,
    context: (u64, usize),
    /// Whether this life has had a stream: without one, a watch from anywhere is a new consumer.
    streamed: bool,
    /// Revision of its last list: a watch from there is explained by it.
    listed: u64,
}

/// The recorded evidence, file by file, and the audit id at fault where there is one.
pub struct Recording {
    pub files: Vec<(String, String)>,
    pub injected: bool,
    pub client: Option<String>,
}

pub struct Cluster {
    dice: Dice,
    now: u64,
    revision: u64,
    log: Vec<Change>,
    live: BTreeMap<String, Object>,
    servers: Vec<Server>,
    clients: Vec<Client>,
    streams: Vec<Stream>,
    next_id: u64,
    fault: Fault,
    injected: bool,
    client_at_fault: Option<String>,
    shared_clock: bool,
}

const NODES: u64 = 3;
const START: u64 = 1_700_000_000_000_000_000;

impl Cluster {
    pub fn new(seed: u64, fault: Fault) -> Cluster {
        let mut dice = Dice::new(seed);
        let shared_clock = dice.one_in(2) || fault != Fault::None;
        let server = |name, lag, offset| Server { name, cache: 10, lag, audit: Vec::new(), offset };
        let offset = if shared_clock { 0 } else { dice.roll(4_000_000) as i64 - 2_000_000 };
        let lag = 5 + dice.roll(60);
        let client = |name: &str, pinned, node, captured| Client {
            name: name.to_owned(),
            incarnation: 1,
            busy: START,
            lines: Vec::new(),
            frontier: 0,
            pinned,
            node,
            captured,
            agent: format!("{}/v1.0 (linux/amd64)", name.rsplit(':').next().unwrap_or(name)),
            context: (0, 9),
            streamed: false,
            listed: 0,
        };
        Cluster {
            now: START + 1_000_000_000,
            revision: 10,
            log: Vec::new(),
            live: BTreeMap::new(),
            servers: vec![server("a", 2, 0), server("b", lag, offset)],
            clients: vec![
                client("system:serviceaccount:prod:writer-1", 0, None, true),
                client("system:serviceaccount:prod:writer-2", 1, None, dice.one_in(2)),
                client("system:serviceaccount:prod:informer-1", 0, None, true),
                client("system:serviceaccount:prod:informer-2", 1, None, true),
                client("system:node:node-1", 1, Some(1), true),
                client("system:serviceaccount:prod:reader", 0, None, dice.one_in(2)),
            ],
            streams: Vec::new(),
            next_id: 1,
            fault,
            injected: false,
            client_at_fault: None,
            dice,
            shared_clock,
        }
    }

    pub fn run(mut self, steps: u64) -> Recording {
        for step in 0..steps {
            self.now += 200_000 + self.dice.roll(4_000_000);
            self.advance_caches();
            let late = step > steps / 3;
            match self.dice.roll(12) {
                0..=3 => {
                    let client = self.dice_of(2);
                    self.write(client, late);
                }
                4 => self.list(5, late),
                5 => self.get(5, late),
                6 => {
                    let client = 2 + self.dice_of(3);
                    self.watch(client, late);
                }
                7 => self.end_stream(),
                8 => self.bookmark(late),
                9 => self.exact_list(5, late),
                10 => self.minimum_list(late),
                _ => self.restart(late),
            }
        }
        self.now += 3_000_000_000;
        self.advance_caches();
        while !self.streams.is_empty() {
            self.end_stream();
        }
        let mut files = Vec::new();
        for server in &mut self.servers {
            server.audit.sort();
            let text: Vec<String> = server.audit.iter().map(|(_, line)| line.clone()).collect();
            files.push((format!("audit-{}.log", server.name), text.join("\n") + "\n"));
        }
        for client in self.clients.iter().filter(|c| c.captured && !c.lines.is_empty()) {
            let file = client.name.rsplit(':').next().unwrap_or("client");
            files.push((format!("captures/{file}.jsonl"), client.lines.join("\n") + "\n"));
        }
        Recording { files, injected: self.injected, client: self.client_at_fault }
    }

    pub fn shared_clock(&self) -> bool {
        self.shared_clock
    }

    fn dice_of(&mut self, sides: u64) -> usize {
        self.dice.roll(sides) as usize
    }

    fn strikes(&mut self, fault: Fault, late: bool, client: usize) -> bool {
        let strikes = self.fault == fault && late && !self.injected;
        if strikes {
            self.injected = true;
            self.client_at_fault = Some(self.clients[client].name.clone());
        }
        strikes
    }

    fn next(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn audit_id(&mut self) -> String {
        let (a, b) = (self.next(), self.dice.roll(u64::MAX));
        format!("{:08x}-0000-4000-8000-{:012x}", a, b & 0xffff_ffff_ffff)
    }

    /// Caches take in what is old enough; streams deliver what their server's cache has.
    fn advance_caches(&mut self) {
        for server in 0..self.servers.len() {
            let lag = self.servers[server].lag;
            let reach = self.log.len() as u64;
            let behind = if self.dice.one_in(4) { lag } else { lag / 2 };
            let index = reach.saturating_sub(behind);
            if index > 0 {
                let revision = self.log[index as usize - 1].revision;
                self.servers[server].cache = self.servers[server].cache.max(revision);
            }
        }
        for at in 0..self.streams.len() {
            self.deliver(at);
        }
    }

    fn deliver(&mut self, at: usize) {
        let stream = &self.streams[at];
        let cache = self.servers[stream.server].cache;
        let from = stream.position;
        let changes: Vec<Change> =
            self.log.iter().filter(|c| c.revision > from && c.revision <= cache).cloned().collect();
        let mut events: Vec<Value> = Vec::new();
        for change in changes {
            let node = self.streams[at].node;
            let matches = node.is_none_or(|n| n == change.object.node) && !change.deleted;
            let stream = &mut self.streams[at];
            let was = stream.members.contains_key(&change.name);
            let kind = match (was, matches) {
                (false, true) => "ADDED",
                (true, true) => "MODIFIED",
                (true, false) => "DELETED",
                (false, false) => continue,
            };
            let client = self.streams[at].client;
            let plain = kind == "ADDED" && change.created && node.is_none();
            let kind = if plain && self.strikes(Fault::WrongType, true, client) { "MODIFIED" } else { kind };
            let stream = &mut self.streams[at];
            // Leaving shows the object as it was, at the version of the change.
            let mut shown = body(&change.name, &change.object, change.revision);
            let before = stream.members.get(&change.name).copied();
            if matches {
                stream.members.insert(change.name.clone(), change.revision);
            } else {
                stream.members.remove(&change.name);
                shown["spec"]["nodeName"] = json!(format!("node-{}", node.unwrap_or(change.object.node)));
            }
            let dated = before.filter(|_| kind == "DELETED" && change.deleted && self.fault == Fault::OldDeleteVersion);
            if let Some(before) = dated {
                self.injected = true;
                self.client_at_fault = Some(self.clients[self.streams[at].client].name.clone());
                shown["metadata"]["resourceVersion"] = json!(before.to_string());
            }
            events.push(json!({"type": kind, "object": shown}));
        }
        self.streams[at].position = self.streams[at].position.max(cache);
        let (client, delivered) = (self.streams[at].client, self.streams[at].delivered);
        if events.len() >= 2 && delivered > 0 {
            // Something after it is delivered, so the hole shows; a deletion's revision may be known from nowhere else.
            let out = events[..events.len() - 1].iter().position(|e| e["type"] != "DELETED");
            if let Some(out) = out.filter(|_| self.strikes(Fault::DroppedEvent, true, client)) {
                events.remove(out);
            }
            if events.len() >= 2 && self.strikes(Fault::SwappedEvents, true, client) {
                let n = events.len();
                events.swap(n - 1, n - 2);
            }
        }
        if !events.is_empty() && delivered > 0 && self.strikes(Fault::RepeatedEvent, true, client) {
            let again = events[events.len() - 1].clone();
            events.push(again);
        }
        for event in events {
            self.record_event(at, event);
        }
    }

    fn record_event(&mut self, at: usize, event: Value) {
        let when = self.now + self.dice.roll(100_000);
        self.now = when;
        let stream = &mut self.streams[at];
        stream.delivered += 1;
        stream.last = Some(event.clone());
        let (client, id) = (stream.client, stream.id);
        let line = json!({"kind": "event", "id": id, "at": time(when, 0), "event": event});
        if self.clients[client].captured {
            self.clients[client].lines.push(line.to_string());
        }
        let version = event["object"]["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse().ok()).unwrap_or(0);
        let client = &mut self.clients[client];
        client.frontier = client.frontier.max(version);
    }

    fn state_at(&self, revision: u64) -> BTreeMap<String, Object> {
        let mut state = BTreeMap::new();
        for change in self.log.iter().take_while(|c| c.revision <= revision) {
            if change.deleted {
                state.remove(&change.name);
            } else {
                state.insert(change.name.clone(), change.object.clone());
            }
        }
        state
    }

    fn items(&self, state: &BTreeMap<String, Object>, node: Option<u64>) -> Vec<Value> {
        let inside = state.iter().filter(|(_, o)| node.is_none_or(|n| n == o.node));
        inside.map(|(name, o)| body(name, o, o.revision)).collect()
    }

    /// Records one exchange on both sides: invoke before now, return after it.
    #[allow(clippy::too_many_arguments)]
    fn exchange(
        &mut self,
        client: usize,
        server: usize,
        verb: &str,
        method: &str,
        uri: &str,
        request: Option<Value>,
        status: u16,
        answer: Option<Value>,
        name: Option<&str>,
    ) {
        let before = 50_000 + self.dice.roll(900_000);
        let after = 50_000 + self.dice.roll(900_000);
        let (invoke, ret) = (self.now - before, self.now + after);
        let audit_id = self.audit_id();
        let id = self.next();
        self.capture_context(client, server);
        let c = &mut self.clients[client];
        c.busy = ret + 1_000;
        if c.captured {
            let mut line = json!({"kind": "request", "id": id, "at": time(invoke - 20_000, 0), "method": method, "uri": uri, "user_agent": c.agent});
            if let Some(request) = &request {
                line["body"] = request.clone();
            }
            c.lines.push(line.to_string());
            let mut line = json!({"kind": "response", "id": id, "at": time(ret + 20_000, 0), "status": status, "audit_id": audit_id});
            if let Some(answer) = &answer {
                line["body"] = answer.clone();
            }
            c.lines.push(line.to_string());
        }
        self.audit(client, server, verb, uri, (invoke, ret), &audit_id, request, status, answer, name);
        self.now = ret + 25_000;
    }

    #[allow(clippy::too_many_arguments)]
    fn audit(
        &mut self,
        client: usize,
        server: usize,
        verb: &str,
        uri: &str,
        span: (u64, u64),
        audit_id: &str,
        request: Option<Value>,
        status: u16,
        answer: Option<Value>,
        name: Option<&str>,
    ) {
        let c = &self.clients[client];
        let s = &mut self.servers[server];
        let mut reference = json!({"resource": "pods", "namespace": "prod", "apiVersion": "v1"});
        if let Some(name) = name {
            reference["name"] = json!(name);
        }
        if let (Some(request), "update") = (&request, verb) {
            for field in ["uid", "resourceVersion"] {
                if let Some(value) = request["metadata"].get(field) {
                    reference[field] = value.clone();
                }
            }
        }
        let mut event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": audit_id,
            "stage": "ResponseComplete", "requestURI": uri, "verb": verb, "user": {"username": c.name},
            "sourceIPs": [format!("10.0.0.{}", client + 1)], "userAgent": c.agent, "objectRef": reference,
            "responseStatus": {"metadata": {}, "code": status},
            "requestReceivedTimestamp": time(span.0, s.offset), "stageTimestamp": time(span.1, s.offset),
        });
        if let Some(request) = request {
            event["requestObject"] = request;
        }
        if let Some(answer) = answer {
            event["responseObject"] = answer;
        }
        s.audit.push((span.1, event.to_string()));
    }

    fn capture_context(&mut self, client: usize, server: usize) {
        let c = &mut self.clients[client];
        if c.context == (c.incarnation, server) || !c.captured {
            return;
        }
        c.context = (c.incarnation, server);
        let name = c.name.rsplit(':').next().unwrap_or("client");
        let line = json!({"kind": "capture", "version": 1, "client": c.name, "incarnation": format!("{name}#{}", c.incarnation),
            "server": self.servers[server].name, "clock": "lab"});
        c.lines.push(line.to_string());
    }

    fn wait_for(&mut self, client: usize) {
        self.now = self.now.max(self.clients[client].busy + 2_000_000);
    }

    fn write(&mut self, client: usize, late: bool) {
        self.wait_for(client);
        let server = self.clients[client].pinned;
        let name = format!("web-{}", self.dice.roll(12));
        let live = self.live.get(&name).cloned();
        let mut next = self.revision + 1 + self.dice.roll(3);
        if self.log.len() > 20 && live.is_none() {
            if self.strikes(Fault::Rewind, late, client) {
                next = self.log[self.log.len() - 8].revision - 1;
                if self.log.iter().any(|c| c.revision == next) || next <= 10 {
                    self.injected = false;
                    self.client_at_fault = None;
                    next = self.revision + 1;
                }
            }
            let last = &self.log[self.log.len() - 1];
            // A deletion's answer does not show its revision, so only a put collides visibly.
            let other_key = last.name != name && !last.deleted;
            if other_key && self.strikes(Fault::Collision, late, client) {
                next = self.log[self.log.len() - 1].revision;
            }
        }
        let path = "/api/v1/namespaces/prod/pods";
        match live {
            None => {
                let object =
                    Object { uid: format!("uid-{}", self.next()), revision: next, node: 1 + self.dice.roll(NODES) };
                self.commit(next, &name, object.clone(), false, true);
                let mut request = body(&name, &object, next);
                for field in ["uid", "resourceVersion", "creationTimestamp"] {
                    request["metadata"].as_object_mut().unwrap().remove(field);
                }
                self.exchange(
                    client,
                    server,
                    "create",
                    "POST",
                    path,
                    Some(request),
                    201,
                    Some(body(&name, &object, next)),
                    Some(&name),
                );
            }
            Some(object) if self.dice.one_in(3) => {
                self.commit(next, &name, object.clone(), true, false);
                let answer = json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "details": {"name": name, "uid": object.uid}});
                let uri = format!("{path}/{name}");
                let options =
                    json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": object.uid}});
                self.exchange(client, server, "delete", "DELETE", &uri, Some(options), 200, Some(answer), Some(&name));
            }
            Some(object) => {
                let uri = format!("{path}/{name}");
                let stale = self
                    .log
                    .iter()
                    .rev()
                    .filter(|c| c.name == name && c.object.uid == object.uid && !c.deleted)
                    .nth(1)
                    .cloned();
                let conflict = self.dice.one_in(6) && stale.is_some();
                let accept = conflict && self.strikes(Fault::BrokenCompare, late, client);
                let base = match (&stale, conflict) {
                    (Some(old), true) => old.revision,
                    _ => object.revision,
                };
                let request = body(&name, &object, base);
                if conflict && !accept {
                    let answer = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409});
                    return self.exchange(
                        client,
                        server,
                        "update",
                        "PUT",
                        &uri,
                        Some(request),
                        409,
                        Some(answer),
                        Some(&name),
                    );
                }
                if !conflict && self.dice.one_in(8) {
                    // Nothing changes: the answer carries the old version.
                    return self.exchange(
                        client,
                        server,
                        "update",
                        "PUT",
                        &uri,
                        Some(request),
                        200,
                        Some(body(&name, &object, base)),
                        Some(&name),
                    );
                }
                let mut changed = Object { revision: next, ..object };
                if self.dice.one_in(4) {
                    changed.node = 1 + self.dice.roll(NODES);
                }
                self.commit(next, &name, changed.clone(), false, false);
                self.exchange(
                    client,
                    server,
                    "update",
                    "PUT",
                    &uri,
                    Some(request),
                    200,
                    Some(body(&name, &changed, next)),
                    Some(&name),
                );
            }
        }
    }

    fn commit(&mut self, revision: u64, name: &str, object: Object, deleted: bool, created: bool) {
        self.revision = self.revision.max(revision);
        if deleted {
            self.live.remove(name);
        } else {
            self.live.insert(name.to_owned(), object.clone());
        }
        let object = if deleted { object } else { Object { revision, ..object } };
        self.log.push(Change { revision, name: name.to_owned(), object, deleted, created });
    }

    fn answer_list(&self, revision: u64, items: Vec<Value>) -> Value {
        json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": revision.to_string()}, "items": items})
    }

    fn list(&mut self, client: usize, late: bool) {
        self.wait_for(client);
        let server = self.dice_of(2);
        let cache = self.servers[server].cache;
        let behind = self.log.iter().any(|c| c.revision > cache);
        let stale = behind && self.strikes(Fault::StaleConsistentList, late && self.settled(cache), client);
        let revision = if stale { cache } else { self.revision };
        let state = self.state_at(revision);
        let mut items = self.items(&state, None);
        if items.len() > 1 {
            if self.settled_object(&items, revision) && self.strikes(Fault::LostItem, late, client) {
                let at = self.certain(&items, revision);
                items.remove(at);
            }
            if let Some(at) = self.outdated(&items).filter(|_| self.strikes(Fault::OldItem, late, client)) {
                let name = items[at]["metadata"]["name"].as_str().unwrap().to_owned();
                let current = &state[&name];
                let old = self
                    .log
                    .iter()
                    .rev()
                    .filter(|c| c.name == name && c.object.uid == current.uid && !c.deleted)
                    .nth(1)
                    .unwrap();
                items[at] = body(&name, &old.object, old.revision);
            }
        }
        let answer = self.answer_list(revision, items);
        self.exchange(client, server, "list", "GET", "/api/v1/namespaces/prod/pods", None, 200, Some(answer), None);
    }

    /// Whether some change above a revision was answered long enough ago to be certainly before now.
    fn settled(&self, revision: u64) -> bool {
        self.log.iter().filter(|c| c.revision > revision).count() > 1
    }

    fn settled_object(&self, items: &[Value], revision: u64) -> bool {
        items.iter().any(|i| self.is_certain(i, revision))
    }

    /// An object that is seen again later would do; one that was just changed twice is certain already.
    fn is_certain(&self, item: &Value, _revision: u64) -> bool {
        item["metadata"]["name"].is_string()
    }

    fn certain(&self, items: &[Value], revision: u64) -> usize {
        items.iter().position(|i| self.is_certain(i, revision)).unwrap_or(0)
    }

    fn outdated(&self, items: &[Value]) -> Option<usize> {
        items.iter().position(|i| {
            let (name, uid) = (i["metadata"]["name"].as_str().unwrap(), i["metadata"]["uid"].as_str().unwrap());
            self.log.iter().filter(|c| c.name == name && c.object.uid == uid && !c.deleted).count() > 1
        })
    }

    fn get(&mut self, client: usize, late: bool) {
        self.wait_for(client);
        let server = self.dice_of(2);
        let cache = self.servers[server].cache;
        let old = self.state_at(cache);
        let stale_name = old
            .iter()
            .find(|(name, o)| self.live.get(*name).is_none_or(|l| l.revision != o.revision))
            .map(|(n, _)| n.clone());
        let name = stale_name.clone().unwrap_or_else(|| format!("web-{}", self.dice.roll(12)));
        let stale =
            stale_name.is_some() && self.settled(cache) && self.strikes(Fault::StaleConsistentGet, late, client);
        let found = if stale { old.get(&name) } else { self.live.get(&name) }.cloned();
        let uri = format!("/api/v1/namespaces/prod/pods/{name}");
        match found {
            Some(o) => self.exchange(
                client,
                server,
                "get",
                "GET",
                &uri,
                None,
                200,
                Some(body(&name, &o, o.revision)),
                Some(&name),
            ),
            None => {
                let answer = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
                self.exchange(client, server, "get", "GET", &uri, None, 404, Some(answer), Some(&name));
            }
        }
    }

    fn exact_list(&mut self, client: usize, late: bool) {
        if self.log.is_empty() {
            return;
        }
        self.wait_for(client);
        let at = self.dice_of(self.log.len() as u64);
        let asked = self.log[at].revision;
        let old = asked < self.revision;
        let revision = if self.strikes(Fault::WrongSnapshot, late && old, client) { self.revision } else { asked };
        let items = self.items(&self.state_at(revision), None);
        let answer = self.answer_list(revision, items);
        let uri = format!("/api/v1/namespaces/prod/pods?resourceVersion={asked}&resourceVersionMatch=Exact");
        self.exchange(client, 0, "list", "GET", &uri, None, 200, Some(answer), None);
    }

    fn minimum_list(&mut self, late: bool) {
        let client = 5;
        self.wait_for(client);
        let (asked, cache) = (self.revision, self.servers[1].cache);
        let below = cache < asked && self.strikes(Fault::BelowMinimum, late, client);
        let revision = if below { cache } else { asked };
        let items = self.items(&self.state_at(revision), None);
        let answer = self.answer_list(revision, items);
        let uri = format!("/api/v1/namespaces/prod/pods?resourceVersion={asked}&resourceVersionMatch=NotOlderThan");
        self.exchange(client, 1, "list", "GET", &uri, None, 200, Some(answer), None);
    }

    /// A reflector's beginning, or its next watch.
    fn watch(&mut self, client: usize, late: bool) {
        if self.streams.iter().any(|s| s.client == client) {
            return;
        }
        self.wait_for(client);
        let selector =
            self.clients[client].node.map_or(String::new(), |n| format!("&fieldSelector=spec.nodeName%3Dnode-{n}"));
        let (mut server, node) = (self.clients[client].pinned, self.clients[client].node);
        if self.clients[client].frontier == 0 {
            // resourceVersion=0 always from one server: its cache only goes on.
            let revision = self.servers[server].cache;
            let items = self.items(&self.state_at(revision), node);
            let answer = self.answer_list(revision, items);
            let uri = format!("/api/v1/namespaces/prod/pods?limit=500&resourceVersion=0{selector}");
            self.exchange(client, server, "list", "GET", &uri, None, 200, Some(answer), None);
            self.clients[client].frontier = revision;
            self.clients[client].listed = revision;
        } else if self.dice.one_in(2) {
            // A watch that carries its revision along may go to any server.
            server = self.dice_of(2);
        }
        let frontier = self.clients[client].frontier;
        let mut start = frontier;
        if frontier > 40 && late && self.clients[client].streamed {
            let older = self.log.iter().rev().filter(|c| c.revision < frontier).nth(3).map(|c| c.revision);
            let inside = |c: &Change| !c.deleted && node.is_none_or(|n| n == c.object.node);
            let listed = self.clients[client].listed;
            let older = older
                .filter(|&older| older != listed)
                .filter(|&older| self.log.iter().any(|c| c.revision > older && c.revision <= frontier && inside(c)));
            if let Some(older) = older.filter(|_| self.strikes(Fault::ResumeBackwards, late, client)) {
                start = older;
                server = 0;
            }
        }
        let state = self.state_at(start);
        let members = state
            .iter()
            .filter(|(_, o)| node.is_none_or(|n| n == o.node))
            .map(|(n, o)| (n.clone(), o.revision))
            .collect();
        let (id, audit_id) = (self.next(), self.audit_id());
        let uri = format!(
            "/api/v1/namespaces/prod/pods?allowWatchBookmarks=true&resourceVersion={start}&timeoutSeconds=400&watch=true{selector}"
        );
        self.capture_context(client, server);
        let c = &mut self.clients[client];
        if c.captured {
            c.lines.push(json!({"kind": "request", "id": id, "at": time(self.now, 0), "method": "GET", "uri": uri, "user_agent": c.agent}).to_string());
            c.lines.push(json!({"kind": "response", "id": id, "at": time(self.now + 100_000, 0), "status": 200, "audit_id": audit_id}).to_string());
        }
        c.busy = self.now + 200_000;
        c.streamed = true;
        self.streams.push(Stream {
            client,
            server,
            id,
            position: start,
            node,
            members,
            started: self.now + 30_000,
            audit_id,
            uri,
            delivered: 0,
            last: None,
        });
        let at = self.streams.len() - 1;
        self.now += 300_000;
        let again = self
            .log
            .iter()
            .find(|c| c.revision == start && !c.deleted && node.is_none_or(|n| n == c.object.node))
            .cloned();
        if let Some(change) = again.filter(|_| self.strikes(Fault::Prehistory, late, client)) {
            self.record_event(
                at,
                json!({"type": "MODIFIED", "object": body(&change.name, &change.object, change.revision)}),
            );
        }
    }

    fn bookmark(&mut self, late: bool) {
        if self.streams.is_empty() {
            return;
        }
        let at = self.dice_of(self.streams.len() as u64);
        let (server, node, position) = (self.streams[at].server, self.streams[at].node, self.streams[at].position);
        let cache = self.servers[server].cache;
        if position < cache {
            return;
        }
        let client = self.streams[at].client;
        let pending = self
            .log
            .iter()
            .rev()
            .find(|c| c.revision > cache && node.is_none_or(|n| n == c.object.node) && !c.deleted)
            .map(|c| c.revision);
        let early = pending.filter(|_| self.strikes(Fault::EarlyBookmark, late, client));
        let revision = early.unwrap_or(cache.max(position));
        self.record_event(at, json!({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": revision.to_string(), "creationTimestamp": null}}}));
        if early.is_some() {
            // What was skipped comes after all.
            self.servers[server].cache = self.revision;
            self.deliver(at);
        }
    }

    fn end_stream(&mut self) {
        if self.streams.is_empty() {
            return;
        }
        let at = self.dice_of(self.streams.len() as u64);
        let stream = self.streams.remove(at);
        let c = &mut self.clients[stream.client];
        if c.captured {
            c.lines.push(json!({"kind": "end", "id": stream.id, "at": time(self.now, 0), "reason": "eof"}).to_string());
        }
        c.busy = self.now + 1_000;
        let span = (stream.started, self.now - 20_000);
        self.audit(stream.client, stream.server, "watch", &stream.uri, span, &stream.audit_id, None, 200, None, None);
    }

    /// A process dies and comes back; its reflector lists again.
    fn restart(&mut self, late: bool) {
        let client = 2 + self.dice_of(3);
        if !self.clients[client].captured || self.clients[client].frontier == 0 || !self.dice.one_in(3) {
            return;
        }
        if let Some(at) = self.streams.iter().position(|s| s.client == client) {
            let stream = self.streams.remove(at);
            let c = &mut self.clients[client];
            c.lines
                .push(json!({"kind": "end", "id": stream.id, "at": time(self.now, 0), "reason": "closed"}).to_string());
            let span = (stream.started, self.now - 20_000);
            self.audit(client, stream.server, "watch", &stream.uri, span, &stream.audit_id, None, 200, None, None);
        }
        self.now += 50_000_000;
        let frontier = self.clients[client].frontier;
        self.clients[client].incarnation += 1;
        self.clients[client].streamed = false;
        self.clients[client].busy = self.now;
        let node = self.clients[client].node;
        let lagging = self.servers[1].cache;
        let missed = self.log.iter().any(|c| {
            c.revision > lagging && c.revision <= frontier && node.is_none_or(|n| n == c.object.node) && c.created
        });
        let selector = node.map_or(String::new(), |n| format!("&fieldSelector=spec.nodeName%3Dnode-{n}"));
        if missed && self.strikes(Fault::TimeTravel, late, client) {
            self.clients[client].frontier = 0;
            let items = self.items(&self.state_at(lagging), node);
            let answer = self.answer_list(lagging, items);
            let uri = format!("/api/v1/namespaces/prod/pods?limit=500&resourceVersion=0{selector}");
            self.exchange(client, 1, "list", "GET", &uri, None, 200, Some(answer), None);
            self.clients[client].frontier = lagging;
            return;
        }
        // A restarted process that asks for the most recent state never goes back.
        let server = self.dice_of(2);
        let revision = self.revision;
        let items = self.items(&self.state_at(revision), node);
        let answer = self.answer_list(revision, items);
        let uri = format!("/api/v1/namespaces/prod/pods?limit=500{selector}");
        self.exchange(client, server, "list", "GET", &uri, None, 200, Some(answer), None);
        self.clients[client].frontier = revision;
        self.clients[client].listed = revision;
        self.clients[client].pinned = server;
    }
}

fn body(name: &str, object: &Object, revision: u64) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "prod", "uid": object.uid,
        "resourceVersion": revision.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web"}},
        "spec": {"nodeName": format!("node-{}", object.node)}})
}

fn time(nanos: u64, offset: i64) -> String {
    let shifted = nanos as i64 + offset;
    format!("{:.6}", jiff::Timestamp::from_nanosecond(i128::from(shifted / 1_000 * 1_000)).unwrap())
}
