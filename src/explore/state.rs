//! The state of a run, packed into bytes: etcd's log, the watermarks of the caches, and what every client knows.

use super::content::ContentId;
use super::protocol::{Act, PropertyKind, Protocol, STOP, VariableKind};
use std::hash::{Hash, Hasher};

/// Bytes of a state, at most.
const SIZE: usize = 192;

/// No server: the next request may go to any.
pub const NO_SERVER: u8 = u8::MAX;

/// The objects at the begin are of no client.
pub const NO_CLIENT: u8 = u8::MAX;

/// The key of the first change, which makes the empty store a revision of its own.
pub const NO_KEY: u8 = u8::MAX;

/// The position of a stream whose version was answered with 410.
pub const EXPIRED: u8 = u8::MAX;

/// For each server, its name before a renaming.
pub type ServerOrder = [u8; 8];

/// Bytes before the log: its length, and the faults that may still happen.
const HEAD: usize = 5;

/// Bytes of a change in the log.
const CHANGE: usize = 5;

/// Bytes of a write without an answer that may still be committed.
const LATE: usize = 6 + PREMISES;

/// Premises of a write, at most.
pub const PREMISES: usize = 4;

/// A state of a [`Machine`](super::Machine). It is opaque: its places depend on the protocol.
#[derive(Clone, Debug)]
pub struct State {
    len: u8,
    bytes: [u8; SIZE],
}

impl State {
    fn used(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        self.used() == other.used()
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write(self.used());
    }
}

/// A change that etcd committed. Its revision is its place in the log, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: u8,
    /// The content after it; 0 for a deletion.
    pub content: ContentId,
    /// The object: creations count them.
    pub uid: u8,
    /// The client that wrote it.
    pub client: u8,
}

/// A write that had no answer and is not committed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateWrite {
    /// The client.
    pub client: u8,
    /// The step.
    pub step: u8,
    /// The content of a creation, or the patch.
    pub content: ContentId,
    /// The version in the precondition; 0: none.
    pub version: u8,
    /// The uid in the precondition; 0: none.
    pub uid: u8,
    /// The versions on which the decision rests, in the order of the step's `because`.
    pub premises: [u8; PREMISES],
}

/// Faults that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Crash = 1,
    Break,
    Expiration,
    Timeout,
}

/// The places of everything in a [`State`].
#[derive(Debug)]
pub struct Layout {
    revisions: u8,
    servers: u8,
    resources: usize,
    watermarks: usize,
    clients: usize,
    programs: usize,
    /// The place of the writes that barriers wait for, of each client and resource; `None` without a barrier.
    own: Option<usize>,
    /// The place of what GETs showed, of each client and key; `None` if no property asks for it.
    got: Option<usize>,
    keys: usize,
    /// The first program of each client.
    first_program: Vec<usize>,
    /// The place of each variable of each client.
    variables: Vec<Vec<usize>>,
    late: usize,
    late_writes: usize,
    len: usize,
}

impl Layout {
    /// The layout for a protocol, or the reason why its states are too large.
    pub fn of(protocol: &Protocol) -> Result<Layout, String> {
        let limits = protocol.limits;
        let revisions = 1 + protocol.objects.len() + usize::from(limits.writes);
        let watermarks = HEAD + revisions * CHANGE;
        let resources = protocol.resources.len();
        let clients = watermarks + usize::from(limits.servers) * resources;
        let programs = clients + protocol.clients.len() * (1 + 2 * resources);
        let (own, programs) = match protocol.steps.iter().any(|step| step.barrier.is_some()) {
            true => (Some(programs), programs + protocol.clients.len() * resources),
            false => (None, programs),
        };
        let is_asked = protocol.properties.iter().any(|property| matches!(property.kind, PropertyKind::MonotonicReads));
        let reads_objects = protocol.steps.iter().any(|step| matches!(step.act, Act::Get { .. }));
        let (got, programs) = match is_asked && reads_objects {
            true => (Some(programs), programs + protocol.clients.len() * protocol.keys.len()),
            false => (None, programs),
        };
        let mut first_program = Vec::new();
        let mut count = 0;
        for client in &protocol.clients {
            first_program.push(count);
            count += client.programs.len();
        }
        let mut at = programs + 2 * count;
        let mut variables = Vec::new();
        for client in &protocol.clients {
            let mut places = Vec::new();
            for variable in &client.variables {
                places.push(at);
                at += 1 + match variable.kind {
                    VariableKind::Object(_) => 1,
                    VariableKind::Resource(resource) => protocol.resources[usize::from(resource)].keys.len(),
                };
            }
            variables.push(places);
        }
        let late_writes = usize::from(limits.timeouts);
        let len = at + late_writes * LATE;
        if !(1..=8).contains(&limits.servers) || resources > 16 || protocol.clients.len() > 31 {
            return Err("1 to 8 servers, at most 16 resources and at most 31 clients are expected".to_owned());
        }
        if len > SIZE || revisions > 250 {
            return Err(format!(
                "a state of this protocol takes {len} bytes, and at most {SIZE} are expected: lower limits.writes or \
                 limits.timeouts, or use fewer clients, keys and variables"
            ));
        }
        Ok(Layout {
            revisions: revisions as u8,
            servers: limits.servers,
            resources,
            watermarks,
            clients,
            programs,
            own,
            got,
            keys: protocol.keys.len(),
            first_program,
            variables,
            late: at,
            late_writes,
            len,
        })
    }

    /// A state without any change.
    pub fn empty(&self) -> State {
        State { len: self.len as u8, bytes: [0; SIZE] }
    }

    /// The revision of the last change.
    pub fn last(&self, state: &State) -> u8 {
        state.bytes[0]
    }

    /// Whether another write can be committed.
    pub fn has_room(&self, state: &State) -> bool {
        state.bytes[0] < self.revisions
    }

    /// How often a fault may still happen.
    pub fn left(&self, state: &State, fault: Fault) -> u8 {
        state.bytes[fault as usize]
    }

    /// Sets how often a fault may still happen.
    pub fn set_left(&self, state: &mut State, fault: Fault, count: u8) {
        state.bytes[fault as usize] = count;
    }

    /// Whether a fault may happen. If so, it is counted.
    pub fn spend(&self, state: &mut State, fault: Fault) -> bool {
        let left = &mut state.bytes[fault as usize];
        let may = *left > 0;
        *left = left.saturating_sub(1);
        may
    }

    /// The change at a revision.
    pub fn change(&self, state: &State, revision: u8) -> Change {
        let at = HEAD + (usize::from(revision) - 1) * CHANGE;
        let bytes = &state.bytes[at..at + CHANGE];
        Change {
            key: bytes[0],
            content: ContentId::from_le_bytes([bytes[1], bytes[2]]),
            uid: bytes[3],
            client: bytes[4],
        }
    }

    /// Commits a change.
    pub fn commit(&self, state: &mut State, change: Change) -> u8 {
        let revision = state.bytes[0] + 1;
        state.bytes[0] = revision;
        let at = HEAD + (usize::from(revision) - 1) * CHANGE;
        let [low, high] = change.content.to_le_bytes();
        state.bytes[at..at + CHANGE].copy_from_slice(&[change.key, low, high, change.uid, change.client]);
        revision
    }

    /// The revision of the last change of a key at or below a revision; 0 if there is none.
    pub fn version_at(&self, state: &State, key: u8, revision: u8) -> u8 {
        (1..=revision).rev().find(|at| self.change(state, *at).key == key).unwrap_or(0)
    }

    /// The current object of a key: its version, uid and content.
    pub fn current(&self, state: &State, key: u8) -> Option<(u8, Change)> {
        let version = self.version_at(state, key, self.last(state));
        let change = (version > 0).then(|| self.change(state, version))?;
        (change.content > 0).then_some((version, change))
    }

    /// The uid of the next created object.
    pub fn next_uid(&self, state: &State) -> u8 {
        (1..=self.last(state)).map(|revision| self.change(state, revision).uid).max().unwrap_or(0) + 1
    }

    /// The watermark of a server's cache of a resource.
    pub fn watermark(&self, state: &State, server: u8, resource: u8) -> u8 {
        state.bytes[self.watermarks + usize::from(server) * self.resources + usize::from(resource)]
    }

    /// Raises the watermark of a server's cache.
    pub fn raise(&self, state: &mut State, server: u8, resource: u8, revision: u8) {
        let at = self.watermarks + usize::from(server) * self.resources + usize::from(resource);
        state.bytes[at] = state.bytes[at].max(revision);
    }

    fn client(&self, client: u8) -> usize {
        self.clients + usize::from(client) * (1 + 2 * self.resources)
    }

    /// The server of a client's connection.
    pub fn server(&self, state: &State, client: u8) -> u8 {
        state.bytes[self.client(client)]
    }

    /// Connects a client.
    pub fn connect(&self, state: &mut State, client: u8, server: u8) {
        state.bytes[self.client(client)] = server;
    }

    /// The highest revision at which a list or a stream showed a resource to a client, in all its lives.
    pub fn seen(&self, state: &State, client: u8, resource: u8) -> u8 {
        state.bytes[self.client(client) + 1 + usize::from(resource)]
    }

    /// Remembers that a client has seen a revision.
    pub fn see(&self, state: &mut State, client: u8, resource: u8, revision: u8) {
        let at = self.client(client) + 1 + usize::from(resource);
        state.bytes[at] = state.bytes[at].max(revision);
    }

    /// The last change of a key that a GET showed to a client, in all its lives.
    pub fn got(&self, state: &State, client: u8, key: u8) -> u8 {
        self.got.map_or(0, |got| state.bytes[got + usize::from(client) * self.keys + usize::from(key)])
    }

    /// Remembers what a GET showed.
    pub fn note_got(&self, state: &mut State, client: u8, key: u8, version: u8) {
        if let Some(got) = self.got {
            let place = &mut state.bytes[got + usize::from(client) * self.keys + usize::from(key)];
            *place = version.max(*place);
        }
    }

    /// The revision of a client's last answered write of a resource; 0 if there is none.
    pub fn wrote(&self, state: &State, client: u8, resource: u8) -> u8 {
        state.bytes[self.client(client) + 1 + self.resources + usize::from(resource)]
    }

    /// Remembers a client's write, and for barriers its revision, if the answer has it.
    pub fn note_write(&self, state: &mut State, client: u8, resource: u8, (revision, is_shown): (u8, bool)) {
        state.bytes[self.client(client) + 1 + self.resources + usize::from(resource)] = revision;
        if let Some(own) = self.own.filter(|_| is_shown) {
            state.bytes[own + usize::from(client) * self.resources + usize::from(resource)] = revision;
        }
    }

    /// The revision of a client's last answered write of a resource in this life, for barriers; 0 if there is none.
    pub fn own(&self, state: &State, client: u8, resource: u8) -> u8 {
        self.own.map_or(0, |own| state.bytes[own + usize::from(client) * self.resources + usize::from(resource)])
    }

    fn program(&self, client: u8, program: usize) -> usize {
        self.programs + 2 * (self.first_program[usize::from(client)] + program)
    }

    /// The step of a program.
    pub fn step(&self, state: &State, client: u8, program: usize) -> u8 {
        state.bytes[self.program(client, program)]
    }

    /// Moves a program to a step.
    pub fn go(&self, state: &mut State, client: u8, program: usize, step: u8) {
        state.bytes[self.program(client, program)] = step;
    }

    /// The revision up to which a program's stream has delivered; 0 if none is open.
    pub fn position(&self, state: &State, client: u8, program: usize) -> u8 {
        state.bytes[self.program(client, program) + 1]
    }

    /// Sets the revision up to which a program's stream has delivered.
    pub fn set_position(&self, state: &mut State, client: u8, program: usize, position: u8) {
        state.bytes[self.program(client, program) + 1] = position;
    }

    /// The version of what a variable holds; 0 if it holds nothing.
    pub fn version(&self, state: &State, client: u8, variable: u8) -> u8 {
        state.bytes[self.variables[usize::from(client)][usize::from(variable)]]
    }

    /// Sets the version of what a variable holds.
    pub fn set_version(&self, state: &mut State, client: u8, variable: u8, version: u8) {
        state.bytes[self.variables[usize::from(client)][usize::from(variable)]] = version;
    }

    /// The change that a variable holds for the nth of its keys; 0: none was ever seen.
    pub fn entry(&self, state: &State, client: u8, variable: u8, nth: usize) -> u8 {
        state.bytes[self.variables[usize::from(client)][usize::from(variable)] + 1 + nth]
    }

    /// Sets what a variable holds for the nth of its keys.
    pub fn set_entry(&self, state: &mut State, client: u8, variable: u8, nth: usize, revision: u8) {
        state.bytes[self.variables[usize::from(client)][usize::from(variable)] + 1 + nth] = revision;
    }

    /// The writes that may still be committed, by their places.
    pub fn late_writes<'s>(&self, state: &'s State) -> impl Iterator<Item = (usize, LateWrite)> + 's {
        let (late, count) = (self.late, self.late_writes);
        (0..count).filter_map(move |nth| {
            let bytes = &state.bytes[late + nth * LATE..][..LATE];
            let content = ContentId::from_le_bytes([bytes[2], bytes[3]]);
            let write = LateWrite {
                client: bytes[0].checked_sub(1)?,
                step: bytes[1],
                content,
                version: bytes[4],
                uid: bytes[5],
                premises: std::array::from_fn(|nth| bytes[6 + nth]),
            };
            Some((nth, write))
        })
    }

    /// Keeps a write without an answer. Returns whether there was room.
    pub fn delay(&self, state: &mut State, write: LateWrite) -> bool {
        let free = (0..self.late_writes).map(|nth| self.late + nth * LATE).find(|at| state.bytes[*at] == 0);
        let Some(at) = free else { return false };
        let [low, high] = write.content.to_le_bytes();
        let bytes = [write.client + 1, write.step, low, high, write.version, write.uid];
        state.bytes[at..at + bytes.len()].copy_from_slice(&bytes);
        state.bytes[at + bytes.len()..at + LATE].copy_from_slice(&write.premises);
        self.sort_late_writes(state);
        true
    }

    /// Forgets a late write.
    pub fn forget(&self, state: &mut State, nth: usize) {
        let at = self.late + nth * LATE;
        state.bytes[at..at + LATE].fill(0);
        self.sort_late_writes(state);
    }

    fn sort_late_writes(&self, state: &mut State) {
        let bytes = &mut state.bytes[self.late..self.late + self.late_writes * LATE];
        let mut writes: Vec<[u8; LATE]> = bytes.as_chunks().0.to_vec();
        writes.sort_unstable();
        bytes.as_chunks_mut().0.copy_from_slice(&writes);
    }

    /// Forgets everything that a process had in memory.
    pub fn clear(&self, state: &mut State, protocol: &Protocol, client: u8) {
        let declared = &protocol.clients[usize::from(client)];
        self.connect(state, client, NO_SERVER);
        if let Some(own) = self.own {
            state.bytes[own + usize::from(client) * self.resources..][..self.resources].fill(0);
        }
        for (program, steps) in declared.programs.iter().enumerate() {
            // A fix may leave a program without steps.
            self.go(state, client, program, if steps.is_empty() { STOP } else { steps.start });
            self.set_position(state, client, program, 0);
        }
        for (number, variable) in (0..).zip(&declared.variables) {
            if variable.kept {
                continue;
            }
            let keys = match variable.kind {
                VariableKind::Object(_) => 1,
                VariableKind::Resource(resource) => protocol.resources[usize::from(resource)].keys.len(),
            };
            self.set_version(state, client, number, 0);
            (0..keys).for_each(|nth| self.set_entry(state, client, number, nth, 0));
        }
    }

    /// Renames servers so that states which differ only in the names of servers are equal. Returns the old name of each.
    pub fn sort_servers(&self, state: &mut State, clients: usize) -> ServerOrder {
        let mut old = [0, 1, 2, 3, 4, 5, 6, 7];
        if self.servers < 2 {
            return old;
        }
        let row = |state: &State, server: u8| -> ([u8; 16], u32) {
            let mut row = [0; 16];
            let at = self.watermarks + usize::from(server) * self.resources;
            row[..self.resources].copy_from_slice(&state.bytes[at..at + self.resources]);
            let connected = (0..clients as u8).filter(|client| self.server(state, *client) == server);
            (row, connected.map(|client| 1 << client).sum())
        };
        let order = &mut old[..usize::from(self.servers)];
        let mut rows = [([0; 16], 0); 8];
        (0..).zip(&mut rows[..order.len()]).for_each(|(server, to)| *to = row(state, server));
        if rows[..order.len()].is_sorted() {
            return old;
        }
        order.sort_by_key(|server| rows[usize::from(*server)]);
        let before = state.clone();
        for (name, &server) in (0..).zip(order.iter()) {
            for resource in 0..self.resources {
                let of = |server: u8| self.watermarks + usize::from(server) * self.resources + resource;
                state.bytes[of(name)] = before.bytes[of(server)];
            }
            for client in 0..clients as u8 {
                if self.server(&before, client) == server {
                    self.connect(state, client, name);
                }
            }
        }
        old
    }
}

/// The revision of a change, for people: the first one is 101.
pub fn revision(number: u8) -> u64 {
    100 + u64::from(number)
}

/// The text of a uid.
pub fn uid_name(number: u8) -> String {
    format!("u{number}")
}
