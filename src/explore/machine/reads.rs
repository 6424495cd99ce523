//! Reads and streams: every answer that the contract allows, and what the client learns from it.

use super::{Actor, Event, Machine, Visit};
use crate::explore::knowledge::keys;
use crate::explore::protocol::{Ask, PropertyKind, Resume, VariableKind, Watch};
use crate::explore::state::{EXPIRED, Fault, NO_SERVER, State};
use crate::explore::system::Broken;

impl Machine {
    /// The servers that may answer a client's next request.
    pub(super) fn servers(&self, state: &State, client: u8) -> std::ops::Range<u8> {
        match self.layout.server(state, client) {
            NO_SERVER => 0..self.protocol.limits.servers,
            server => server..server + 1,
        }
    }

    /// The resource that changed at a revision.
    pub(super) fn resource_at(&self, state: &State, revision: u8) -> Option<u8> {
        let key = self.layout.change(state, revision).key;
        self.protocol.keys.get(usize::from(key)).map(|key| key.resource)
    }

    /// The resource of what a read shows.
    pub(super) fn resource(&self, kind: VariableKind) -> u8 {
        match kind {
            VariableKind::Resource(resource) => resource,
            VariableKind::Object(key) => self.protocol.keys[usize::from(key)].resource,
        }
    }

    /// Every answer that the contract allows.
    pub(super) fn read(
        &self,
        state: &State,
        actor: Actor,
        kind: VariableKind,
        (ask, into): (Ask, u8),
        visit: &mut Visit<'_>,
    ) {
        let next = self.protocol.steps[usize::from(actor.step)].next;
        let answer = |server: u8, revision: u8, visit: &mut Visit<'_>| {
            let mut after = state.clone();
            let broken = match ask {
                // A client that asks for a version of the past does not go back by it.
                Ask::Exact(_) => {
                    self.learn(&mut after, actor.client, kind, into, revision);
                    0
                }
                _ => self.observe(&mut after, actor.client, kind, into, revision),
            };
            if server != NO_SERVER {
                self.layout.connect(&mut after, actor.client, server);
                self.layout.raise(&mut after, server, self.resource(kind), revision);
            }
            self.go(&mut after, actor, next);
            self.end(after, broken, Event::Read { actor, server, revision }, visit);
        };
        self.answers(state, actor.client, self.resource(kind), ask, &mut |server, revision| {
            answer(server, revision, visit);
        });
    }

    /// The servers and revisions of answers to a read.
    pub(super) fn answers(&self, state: &State, client: u8, resource: u8, ask: Ask, visit: &mut dyn FnMut(u8, u8)) {
        let last = self.layout.last(state);
        let least = match ask {
            // The most recent state may come from any server.
            Ask::Unset => return visit(NO_SERVER, last),
            Ask::Any => 0,
            Ask::NotOlderThan(variable) => self.known_version(state, client, variable),
            // Nothing is known of a version that was never read.
            Ask::Exact(variable) => match self.layout.version(state, client, variable) {
                0 => return,
                version => return visit(NO_SERVER, version),
            },
        };
        for server in self.servers(state, client) {
            let watermark = self.layout.watermark(state, server, resource);
            if !self.is_reduced {
                if watermark >= least {
                    visit(server, watermark);
                }
                continue;
            }
            let lowest = watermark.max(least);
            visit(server, lowest);
            for revision in lowest + 1..=last {
                if self.resource_at(state, revision) == Some(resource) {
                    visit(server, revision);
                }
            }
        }
    }

    /// A client learns the state at a revision.
    pub(super) fn observe(&self, state: &mut State, client: u8, kind: VariableKind, into: u8, revision: u8) -> Broken {
        let resource = self.resource(kind);
        let (seen, wrote) = (self.layout.seen(state, client, resource), self.layout.wrote(state, client, resource));
        // An answer with one object shows that it is old only if the object has changed.
        let is_below = |state: &State, bound: u8| match kind {
            VariableKind::Resource(_) => revision < bound,
            VariableKind::Object(key) => {
                (revision + 1..=bound).any(|revision| self.layout.change(state, revision).key == key)
            }
        };
        let mut broken = 0;
        let is_older = |key: &u8| self.layout.version_at(state, *key, revision) < self.layout.got(state, client, *key);
        if is_below(state, seen) || keys(&self.protocol, kind).iter().any(is_older) {
            broken |= self.breaks(|kind| matches!(kind, PropertyKind::MonotonicReads));
        }
        if is_below(state, wrote) {
            broken |= self.breaks(|kind| matches!(kind, PropertyKind::ReadYourWrites));
        }
        // A stream goes on at its own pace beside a GET, so only lists and streams bound it.
        match kind {
            VariableKind::Resource(_) => self.layout.see(state, client, resource, revision),
            VariableKind::Object(key) => {
                let version = self.layout.version_at(state, key, revision);
                self.layout.note_got(state, client, key, version);
            }
        }
        self.learn(state, client, kind, into, revision);
        broken
    }

    /// A variable of a client holds the state at a revision.
    fn learn(&self, state: &mut State, client: u8, kind: VariableKind, into: u8, revision: u8) {
        self.layout.set_version(state, client, into, revision);
        for (nth, key) in keys(&self.protocol, kind).into_iter().enumerate() {
            let version = self.layout.version_at(state, key, revision);
            self.layout.set_entry(state, client, into, nth, version);
        }
    }

    pub(super) fn watch(
        &self,
        state: &State,
        actor: Actor,
        Watch { resource, into, resume, initial, bookmarks }: Watch,
        visit: &mut Visit<'_>,
    ) {
        let Actor { client, program, .. } = actor;
        let declared = &self.protocol.steps[usize::from(actor.step)];
        let position = self.layout.position(state, client, usize::from(program));
        let version = self.layout.version(state, client, into);
        let (position, has_expired) = if position == EXPIRED { (0, true) } else { (position, false) };
        // After 410, a stream with the initial events begins again, and another one goes on from what was listed since.
        if version == 0 || has_expired && initial.is_some() {
            if let Some(ask) = initial {
                let mut begin = |server: u8, revision: u8| {
                    let mut after = state.clone();
                    let broken = self.observe(&mut after, client, VariableKind::Resource(resource), into, revision);
                    self.layout.connect(&mut after, client, server);
                    self.layout.raise(&mut after, server, resource, revision);
                    self.layout.set_position(&mut after, client, usize::from(program), revision);
                    self.go(&mut after, actor, declared.on_event);
                    self.end(after, broken, Event::Read { actor, server, revision }, visit);
                };
                self.answers(state, client, resource, ask, &mut |server, revision| match server {
                    // A stream needs a server, and any of them waits until its cache has got so far.
                    NO_SERVER => self.servers(state, client).for_each(|server| begin(server, revision)),
                    server => begin(server, revision),
                });
            }
            return;
        }
        let from = if position == 0 { version } else { position };
        let of_resource = |revision: &u8| self.resource_at(state, *revision) == Some(resource);
        let event = (from + 1..=self.layout.last(state)).find(of_resource);
        // A bookmark says that the stream has got so far, so it comes before the next event.
        let last = event.map_or(self.layout.last(state), |event| event - 1);
        let marks = (from + 1..=last).filter(|_| bookmarks);
        let opened = (position == 0).then_some(version);
        for revision in event.into_iter().chain(marks) {
            for server in self.servers(state, client) {
                if !self.is_reduced && self.layout.watermark(state, server, resource) < revision {
                    continue;
                }
                let mut after = state.clone();
                self.layout.connect(&mut after, client, server);
                self.layout.raise(&mut after, server, resource, revision);
                self.layout.set_position(&mut after, client, usize::from(program), revision);
                if Some(revision) == event {
                    let broken = self.deliver(&mut after, client, (resource, into, resume), revision);
                    self.go(&mut after, actor, declared.on_event);
                    self.end(after, broken, Event::Delivered { actor, server, opened, revision }, visit);
                } else {
                    self.layout.see(&mut after, client, resource, revision);
                    self.layout.set_version(&mut after, client, into, revision);
                    self.end(after, 0, Event::Bookmark { actor, server, opened, revision }, visit);
                }
            }
        }
        if position > 0 && self.layout.left(state, Fault::Break) > 0 {
            let mut after = state.clone();
            self.layout.spend(&mut after, Fault::Break);
            self.layout.set_position(&mut after, client, usize::from(program), 0);
            self.layout.connect(&mut after, client, NO_SERVER);
            self.end(after, 0, Event::Broke { actor }, visit);
        }
        if event.is_some() && self.layout.left(state, Fault::Expiration) > 0 {
            let mut after = state.clone();
            self.layout.spend(&mut after, Fault::Expiration);
            self.layout.set_position(&mut after, client, usize::from(program), EXPIRED);
            self.layout.connect(&mut after, client, NO_SERVER);
            self.go(&mut after, actor, declared.on_expired);
            self.end(after, 0, Event::Expired { actor }, visit);
        }
    }

    /// A stream delivers the change at a revision.
    pub(super) fn deliver(
        &self,
        state: &mut State,
        client: u8,
        (resource, into, resume): (u8, u8, Resume),
        revision: u8,
    ) -> Broken {
        let change = self.layout.change(state, revision);
        let mut broken = 0;
        if revision < self.layout.seen(state, client, resource) {
            broken |= self.breaks(|kind| matches!(kind, PropertyKind::MonotonicReads));
        }
        self.layout.see(state, client, resource, revision);
        let version = match change.content {
            0 if self.protocol.server.old_version_in_deletions => {
                self.layout.version_at(state, change.key, revision - 1)
            }
            _ => revision,
        };
        let version = match resume {
            Resume::LastEvent => version,
            Resume::Highest => version.max(self.layout.version(state, client, into)),
        };
        self.layout.set_version(state, client, into, version);
        let keys = &self.protocol.resources[usize::from(resource)].keys;
        if let Some(nth) = keys.iter().position(|key| *key == change.key) {
            self.layout.set_entry(state, client, into, nth, revision);
        }
        broken
    }
}
