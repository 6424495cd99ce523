//! A simulated cluster: one etcd, API servers with stale caches, clients that write, list, get and watch, and their
//! recorders. A seed determines everything. Faults are injected one at a time, and the simulation knows them.

use crate::simulation::controllers::{Controller, Setting};
use crate::simulation::fault::Fault;
use crate::simulation::recorder::body;
use crate::support::dice::Dice;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) uid: String,
    pub(super) revision: u64,
    pub(super) phase: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) revision: u64,
    pub(super) name: String,
    /// The object after the change, or the deleted one.
    pub(super) object: Object,
    pub(super) deleted: bool,
    pub(super) created: bool,
}

pub(super) struct Server {
    pub(super) name: &'static str,
    /// The cache has everything through this revision.
    pub(super) cache: u64,
    pub(super) lag: u64,
    pub(super) audit: Vec<(u64, String)>,
    pub(super) offset: i64,
}

pub(super) struct Stream {
    pub(super) client: usize,
    pub(super) server: usize,
    pub(super) id: u64,
    pub(super) position: u64,
    pub(super) phase: Option<u64>,
    pub(super) members: BTreeMap<String, u64>,
    pub(super) started: u64,
    pub(super) audit_id: String,
    pub(super) uri: String,
    pub(super) delivered: u64,
    pub(super) last: Option<Value>,
}

pub(super) struct Client {
    pub(super) name: String,
    pub(super) incarnation: u64,
    pub(super) busy: u64,
    pub(super) lines: Vec<String>,
    /// The last revision of its reflector, and its pinned server.
    pub(super) frontier: u64,
    pub(super) pinned: usize,
    pub(super) phase: Option<u64>,
    pub(super) captured: bool,
    pub(super) agent: String,
    pub(super) context: (u64, usize),
    /// Whether this incarnation has had a stream. Without one, a watch from any revision is a new consumer.
    pub(super) streamed: bool,
    /// Revision of its last list, which explains a watch from there.
    pub(super) listed: u64,
}

/// The recorded evidence by file, and the audit id of the fault.
pub struct Recording {
    pub files: Vec<(String, String)>,
    pub injected: bool,
    pub client: Option<String>,
}

pub struct Cluster {
    pub(super) dice: Dice,
    pub(super) now: u64,
    pub(super) revision: u64,
    pub(super) log: Vec<Change>,
    pub(super) live: BTreeMap<String, Object>,
    pub(super) servers: Vec<Server>,
    pub(super) clients: Vec<Client>,
    pub(super) streams: Vec<Stream>,
    /// The objects that controllers share, and the controllers.
    pub(super) settings: BTreeMap<String, Setting>,
    pub(super) controllers: Vec<Controller>,
    pub(super) next_id: u64,
    pub(super) fault: Fault,
    pub(super) injected: bool,
    pub(super) client_at_fault: Option<String>,
    pub(super) shared_clock: bool,
}

/// A pod keeps its node, so objects leave a selector by their phase.
const PHASES: [&str; 3] = ["Pending", "Running", "Unknown"];
const START: u64 = 1_700_000_000_000_000_000;

impl Cluster {
    pub fn new(seed: u64, fault: Fault) -> Cluster {
        let mut dice = Dice::new(seed);
        let shared_clock = dice.one_in(2) || fault != Fault::None;
        let server = |name, lag, offset| Server { name, cache: 10, lag, audit: Vec::new(), offset };
        let offset = if shared_clock { 0 } else { dice.roll(4_000_000) as i64 - 2_000_000 };
        let lag = 5 + dice.roll(60);
        let client = |name: &str, pinned, phase, captured| Client {
            name: name.to_owned(),
            incarnation: 1,
            busy: START,
            lines: Vec::new(),
            frontier: 0,
            pinned,
            phase,
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
                client("system:serviceaccount:prod:deployer", 0, None, dice.one_in(2)),
                client("system:serviceaccount:prod:scaler", 1, None, dice.one_in(2)),
                client("system:serviceaccount:prod:pauser", 0, None, dice.one_in(2)),
                client("system:serviceaccount:prod:annotator", 1, None, dice.one_in(2)),
            ],
            settings: BTreeMap::new(),
            controllers: Controller::all(6),
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
        self.create_settings();
        for step in 0..steps {
            self.now += 200_000 + self.dice.roll(4_000_000);
            self.advance_caches();
            let late = step > steps / 3;
            match self.dice.roll(16) {
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
                12..=15 => self.control(late),
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

    pub(super) fn dice_of(&mut self, sides: u64) -> usize {
        self.dice.roll(sides) as usize
    }

    pub(super) fn strikes(&mut self, fault: Fault, late: bool, client: usize) -> bool {
        let strikes = self.fault == fault && late && !self.injected;
        if strikes {
            self.injected = true;
            self.client_at_fault = Some(self.clients[client].name.clone());
        }
        strikes
    }

    pub(super) fn next(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(super) fn audit_id(&mut self) -> String {
        let (a, b) = (self.next(), self.dice.roll(u64::MAX));
        format!("{:08x}-0000-4000-8000-{:012x}", a, b & 0xffff_ffff_ffff)
    }

    pub(super) fn state_at(&self, revision: u64) -> BTreeMap<String, Object> {
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

    pub(super) fn items(&self, state: &BTreeMap<String, Object>, phase: Option<u64>) -> Vec<Value> {
        let inside = state.iter().filter(|(_, o)| phase.is_none_or(|n| n == o.phase));
        inside.map(|(name, o)| body(name, o, o.revision)).collect()
    }

    pub(super) fn wait_for(&mut self, client: usize) {
        self.now = self.now.max(self.clients[client].busy + 2_000_000);
    }

    pub(super) fn write(&mut self, client: usize, late: bool) {
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
            // A deletion's answer does not have its revision, so only a put collides visibly.
            let other_key = last.name != name && !last.deleted;
            if other_key && self.strikes(Fault::Collision, late, client) {
                next = self.log[self.log.len() - 1].revision;
            }
        }
        let path = "/api/v1/namespaces/prod/pods";
        match live {
            None => {
                let object = Object {
                    uid: format!("uid-{}", self.next()),
                    revision: next,
                    phase: 1 + self.dice.roll(PHASES.len() as u64),
                };
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
                    // Nothing changes: the answer has the old version.
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
                    changed.phase = 1 + self.dice.roll(PHASES.len() as u64);
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

    pub(super) fn commit(&mut self, revision: u64, name: &str, object: Object, deleted: bool, created: bool) {
        self.revision = self.revision.max(revision);
        if deleted {
            self.live.remove(name);
        } else {
            self.live.insert(name.to_owned(), object.clone());
        }
        let object = if deleted { object } else { Object { revision, ..object } };
        self.log.push(Change { revision, name: name.to_owned(), object, deleted, created });
    }

    /// Whether a change above a revision was answered long enough ago to be certainly in the past.
    pub(super) fn settled(&self, revision: u64) -> bool {
        self.log.iter().filter(|c| c.revision > revision).count() > 1
    }
}

/// The name of a phase.
pub(super) fn phase_name(phase: u64) -> &'static str {
    PHASES[(phase - 1) as usize]
}
