//! Protocols as transition systems. The environment is the contract of Kubernetes' API: one order of writes, and caches that lag
//! by any amount and never go back.
//!
//! Three reductions keep every reachable violation. A cache advances only when a read or a stream shows that it did: nothing else
//! sees it. A step that reads nothing which another program of the client sets is taken together with the step before it. Servers
//! that differ only in their names are one. [`Machine::unreduced`] does without them, for comparison.

use super::content::{ContentId, Contents};
use super::knowledge::{Computed, Knowledge, keys};
use super::protocol::{Act, Ask, Preconditions, PropertyKind, Protocol, Resume, STOP, VariableKind};
use super::state::{Change, Fault, LateWrite, Layout, NO_CLIENT, NO_KEY, NO_SERVER, ServerOrder, State, uid_name};
use super::system::{Broken, TransitionSystem};

/// Steps that a program takes together, at most. A loop without a request takes no more.
const TOGETHER: usize = 32;

/// A protocol with everything that its runs have computed.
#[derive(Debug)]
pub struct Machine {
    pub(super) protocol: Protocol,
    pub(super) layout: Layout,
    pub(super) contents: Contents,
    knowledge: Knowledge,
    /// The content without fields.
    empty: ContentId,
    initial: State,
    is_reduced: bool,
}

/// The place of a step in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    pub client: u8,
    pub program: u8,
    pub step: u8,
}

/// The answer to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was committed at a revision.
    Committed(u8),
    /// Nothing was to be changed.
    Unchanged,
    /// A precondition failed, or the name was taken.
    Conflict,
    /// There is no such object.
    Missing,
    /// No answer came. The revision at which it was committed, if it was.
    Unanswered(Option<u8>),
}

/// A transition, as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A list, a GET or the initial events of a stream showed the state at a revision. No server: any.
    Read { actor: Actor, server: u8, revision: u8 },
    /// A stream that was opened at a version, if it was not open, delivered the change at a revision.
    Delivered { actor: Actor, server: u8, opened: Option<u8>, revision: u8 },
    /// A write.
    Wrote { actor: Actor, outcome: Outcome },
    /// A write without an answer was committed later.
    Late { actor: Actor, revision: u8 },
    /// A stream broke.
    Broke { actor: Actor },
    /// A stream or its version was answered with 410.
    Expired { actor: Actor },
    /// A program went on, without a request.
    Local { actor: Actor },
    /// A client crashed and started again.
    Crashed { client: u8 },
    /// A cache advanced (only without reductions).
    Advanced,
}

/// One transition: the new state, the broken properties, the event, and the former names of the servers.
pub type Visit<'v> = dyn FnMut(State, Broken, Event, &ServerOrder) + 'v;

impl Machine {
    /// A protocol as a transition system, or the reason why it cannot be one.
    pub fn new(protocol: Protocol) -> Result<Machine, String> {
        Machine::with_reductions(protocol, true)
    }

    /// The same without reductions: many more states, and the same violations.
    pub fn unreduced(protocol: Protocol) -> Result<Machine, String> {
        Machine::with_reductions(protocol, false)
    }

    fn with_reductions(protocol: Protocol, is_reduced: bool) -> Result<Machine, String> {
        let layout = Layout::of(&protocol)?;
        let (contents, mut initial) = (Contents::default(), layout.empty());
        layout.commit(&mut initial, Change { key: NO_KEY, content: 0, uid: 0, client: NO_CLIENT });
        for (key, fields) in &protocol.objects {
            let content = contents.number(fields.clone()).unwrap_or_default();
            let uid = layout.next_uid(&initial);
            layout.commit(&mut initial, Change { key: *key, content, uid, client: NO_CLIENT });
        }
        let base = layout.last(&initial);
        let limits = protocol.limits;
        let faults = [
            (Fault::Crash, limits.crashes),
            (Fault::Break, limits.breaks),
            (Fault::Expiration, limits.expirations),
            (Fault::Timeout, limits.timeouts),
        ];
        faults.into_iter().for_each(|(fault, count)| layout.set_left(&mut initial, fault, count));
        for server in 0..limits.servers {
            (0..protocol.resources.len() as u8).for_each(|resource| layout.raise(&mut initial, server, resource, base));
        }
        for client in 0..protocol.clients.len() as u8 {
            layout.clear(&mut initial, &protocol, client);
        }
        let empty = contents.number(serde_json::json!({})).unwrap_or_default();
        let knowledge = Knowledge::default();
        let mut machine = Machine { protocol, layout, contents, knowledge, empty, initial, is_reduced };
        let mut initial = machine.initial.clone();
        machine.settle_all(&mut initial);
        machine.layout.sort_servers(&mut initial, machine.protocol.clients.len());
        machine.initial = initial;
        Ok(machine)
    }

    /// The expression that could not be evaluated, and why.
    pub fn failure(&self) -> Option<String> {
        self.knowledge.failure()
    }

    /// The protocol.
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn parts(&self) -> (&Protocol, &Layout, &Contents) {
        (&self.protocol, &self.layout, &self.contents)
    }

    /// Visits every transition of a state.
    pub(super) fn transitions(&self, state: &State, visit: &mut Visit<'_>) {
        for (client, declared) in (0..).zip(&self.protocol.clients) {
            for program in 0..declared.programs.len() as u8 {
                let step = self.layout.step(state, client, usize::from(program));
                if step != STOP {
                    self.step(state, Actor { client, program, step }, visit);
                }
            }
            if declared.crashes && self.layout.left(state, Fault::Crash) > 0 {
                let mut after = state.clone();
                self.layout.clear(&mut after, &self.protocol, client);
                if after != *state {
                    self.layout.spend(&mut after, Fault::Crash);
                    self.settle_client(&mut after, client);
                    self.end(after, 0, Event::Crashed { client }, visit);
                }
            }
        }
        for (nth, late) in self.layout.late_writes(state) {
            self.late(state, nth, late, visit);
        }
        if !self.is_reduced {
            self.advance(state, visit);
        }
    }

    /// Every cache by one change.
    fn advance(&self, state: &State, visit: &mut Visit<'_>) {
        for server in 0..self.protocol.limits.servers {
            for resource in 0..self.protocol.resources.len() as u8 {
                let watermark = self.layout.watermark(state, server, resource);
                if watermark < self.layout.last(state) {
                    let mut after = state.clone();
                    self.layout.raise(&mut after, server, resource, watermark + 1);
                    self.end(after, 0, Event::Advanced, visit);
                }
            }
        }
    }

    /// Ends a transition.
    fn end(&self, mut state: State, broken: Broken, event: Event, visit: &mut Visit<'_>) {
        let mut order = [0, 1, 2, 3, 4, 5, 6, 7];
        if self.is_reduced {
            order = self.layout.sort_servers(&mut state, self.protocol.clients.len());
        }
        visit(state, broken, event, &order);
    }

    /// Moves a program on, with the steps that it takes together with this one.
    fn go(&self, state: &mut State, actor: Actor, step: u8) {
        self.layout.go(state, actor.client, usize::from(actor.program), step);
        self.settle(state, actor.client, actor.program);
    }

    fn settle_all(&self, state: &mut State) {
        (0..self.protocol.clients.len() as u8).for_each(|client| self.settle_client(state, client));
    }

    fn settle_client(&self, state: &mut State, client: u8) {
        let programs = self.protocol.clients[usize::from(client)].programs.len() as u8;
        (0..programs).for_each(|program| self.settle(state, client, program));
    }

    fn settle(&self, state: &mut State, client: u8, program: u8) {
        if !self.is_reduced {
            return;
        }
        for _ in 0..TOGETHER {
            let step = self.layout.step(state, client, usize::from(program));
            if step == STOP || !self.is_alone(client, step) {
                return;
            }
            match self.local(state, client, step) {
                Some(next) => self.layout.go(state, client, usize::from(program), next),
                None => return,
            }
        }
    }

    /// Whether nothing but its own program changes what a step reads.
    fn is_alone(&self, client: u8, step: u8) -> bool {
        match self.protocol.steps[usize::from(step)].act {
            Act::Goto(_) | Act::Stop => true,
            Act::Decide(expression) | Act::Await(expression) => {
                let read = &self.protocol.expressions[usize::from(expression)].variables;
                let variables = &self.protocol.clients[usize::from(client)].variables;
                !variables.iter().any(|variable| variable.shared && read.contains(&variable.name))
            }
            _ => false,
        }
    }

    /// The next step after one that sends no request; `None` if it sends one, or has to wait.
    fn local(&self, state: &State, client: u8, step: u8) -> Option<u8> {
        let declared = &self.protocol.steps[usize::from(step)];
        let truth = |expression: u16| match self.knowledge.of_client(self.parts(), state, client, expression)? {
            Computed::Truth(truth) => Some(truth),
            Computed::Content(_) => None,
        };
        match declared.act {
            Act::Goto(target) => Some(target),
            Act::Stop => Some(STOP),
            Act::Decide(expression) => Some(if truth(expression)? { declared.next } else { declared.otherwise }),
            Act::Await(expression) => truth(expression)?.then_some(declared.next),
            _ => None,
        }
    }

    fn step(&self, state: &State, actor: Actor, visit: &mut Visit<'_>) {
        let declared = &self.protocol.steps[usize::from(actor.step)];
        let is_true = |expression| {
            self.knowledge.of_client(self.parts(), state, actor.client, expression) == Some(Computed::Truth(true))
        };
        if !declared.when.is_none_or(is_true) {
            return;
        }
        match declared.act {
            Act::List { resource, ask, into } => {
                self.read(state, actor, VariableKind::Resource(resource), (ask, into), visit);
            }
            Act::Get { key, ask, into } => self.read(state, actor, VariableKind::Object(key), (ask, into), visit),
            Act::Watch { resource, into, resume, initial } => {
                self.watch(state, actor, (resource, into, resume, initial), visit);
            }
            Act::Create { .. } | Act::Patch { .. } | Act::Delete { .. } => self.write(state, actor, visit),
            Act::Switch => {
                let mut after = state.clone();
                self.layout.connect(&mut after, actor.client, NO_SERVER);
                self.go(&mut after, actor, declared.next);
                self.end(after, 0, Event::Local { actor }, visit);
            }
            Act::Decide(_) | Act::Await(_) | Act::Goto(_) | Act::Stop => {
                if let Some(next) = self.local(state, actor.client, actor.step) {
                    let mut after = state.clone();
                    self.go(&mut after, actor, next);
                    self.end(after, 0, Event::Local { actor }, visit);
                }
            }
        }
    }

    /// The servers that may answer a client's next request.
    fn servers(&self, state: &State, client: u8) -> std::ops::Range<u8> {
        match self.layout.server(state, client) {
            NO_SERVER => 0..self.protocol.limits.servers,
            server => server..server + 1,
        }
    }

    /// The resource that changed at a revision.
    fn resource_at(&self, state: &State, revision: u8) -> Option<u8> {
        let key = self.layout.change(state, revision).key;
        self.protocol.keys.get(usize::from(key)).map(|key| key.resource)
    }

    /// The resource of what a read shows.
    fn resource(&self, kind: VariableKind) -> u8 {
        match kind {
            VariableKind::Resource(resource) => resource,
            VariableKind::Object(key) => self.protocol.keys[usize::from(key)].resource,
        }
    }

    /// Every answer that the contract allows.
    fn read(&self, state: &State, actor: Actor, kind: VariableKind, (ask, into): (Ask, u8), visit: &mut Visit<'_>) {
        let next = self.protocol.steps[usize::from(actor.step)].next;
        let answer = |server: u8, revision: u8, visit: &mut Visit<'_>| {
            let mut after = state.clone();
            let broken = self.observe(&mut after, actor.client, kind, into, revision);
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
    fn answers(&self, state: &State, client: u8, resource: u8, ask: Ask, visit: &mut dyn FnMut(u8, u8)) {
        let last = self.layout.last(state);
        let least = match ask {
            // The most recent state may come from any server.
            Ask::Unset => return visit(NO_SERVER, last),
            Ask::Any => 0,
            Ask::NotOlderThan(variable) => self.layout.version(state, client, variable),
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
    fn observe(&self, state: &mut State, client: u8, kind: VariableKind, into: u8, revision: u8) -> Broken {
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
        if is_below(state, seen) {
            broken |= self.breaks(|kind| matches!(kind, PropertyKind::MonotonicReads));
        }
        if is_below(state, wrote) {
            broken |= self.breaks(|kind| matches!(kind, PropertyKind::ReadYourWrites));
        }
        // A stream goes on at its own pace beside a GET, so only lists and streams bound it.
        if matches!(kind, VariableKind::Resource(_)) {
            self.layout.see(state, client, resource, revision);
        }
        self.layout.set_version(state, client, into, revision);
        for (nth, key) in keys(&self.protocol, kind).into_iter().enumerate() {
            let version = self.layout.version_at(state, key, revision);
            self.layout.set_entry(state, client, into, nth, version);
        }
        broken
    }

    /// The properties of a kind.
    fn breaks(&self, is: impl Fn(&PropertyKind) -> bool) -> Broken {
        let properties = self.protocol.properties.iter().enumerate();
        properties.filter(|(_, property)| is(&property.kind)).map(|(at, _)| 1 << at).sum()
    }

    fn watch(
        &self,
        state: &State,
        actor: Actor,
        (resource, into, resume, initial): (u8, u8, Resume, Option<Ask>),
        visit: &mut Visit<'_>,
    ) {
        let Actor { client, program, .. } = actor;
        let declared = &self.protocol.steps[usize::from(actor.step)];
        let position = self.layout.position(state, client, usize::from(program));
        let version = self.layout.version(state, client, into);
        if version == 0 {
            if let Some(ask) = initial {
                self.answers(state, client, resource, ask, &mut |server, revision| {
                    let mut after = state.clone();
                    let kind = VariableKind::Resource(resource);
                    let broken = self.observe(&mut after, client, kind, into, revision);
                    let server = if server == NO_SERVER { self.servers(state, client).start } else { server };
                    self.layout.connect(&mut after, client, server);
                    self.layout.raise(&mut after, server, resource, revision);
                    self.layout.set_position(&mut after, client, usize::from(program), revision);
                    self.go(&mut after, actor, declared.on_event);
                    self.end(after, broken, Event::Read { actor, server, revision }, visit);
                });
            }
            return;
        }
        let from = if position == 0 { version } else { position };
        let of_resource = |revision: &u8| self.resource_at(state, *revision) == Some(resource);
        let event = (from + 1..=self.layout.last(state)).find(of_resource);
        for server in self.servers(state, client) {
            let Some(revision) = event else { break };
            if !self.is_reduced && self.layout.watermark(state, server, resource) < revision {
                continue;
            }
            let mut after = state.clone();
            self.layout.connect(&mut after, client, server);
            self.layout.raise(&mut after, server, resource, revision);
            self.layout.set_position(&mut after, client, usize::from(program), revision);
            let broken = self.deliver(&mut after, client, (resource, into, resume), revision);
            self.go(&mut after, actor, declared.on_event);
            let opened = (position == 0).then_some(version);
            self.end(after, broken, Event::Delivered { actor, server, opened, revision }, visit);
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
            self.layout.set_position(&mut after, client, usize::from(program), 0);
            self.layout.connect(&mut after, client, NO_SERVER);
            self.go(&mut after, actor, declared.on_expired);
            self.end(after, 0, Event::Expired { actor }, visit);
        }
    }

    /// A stream delivers the change at a revision.
    fn deliver(
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

    /// The change that a client's variable holds for a key.
    pub(super) fn entry(&self, state: &State, client: u8, variable: u8, key: u8) -> u8 {
        let kind = self.protocol.clients[usize::from(client)].variables[usize::from(variable)].kind;
        let nth = keys(&self.protocol, kind).into_iter().position(|known| known == key);
        nth.map_or(0, |nth| self.layout.entry(state, client, variable, nth))
    }

    /// The fields that a client's expression gives.
    pub(super) fn fields_of(&self, state: &State, client: u8, expression: u16) -> Option<serde_json::Value> {
        match self.knowledge.of_client(self.parts(), state, client, expression)? {
            Computed::Content(content) => Some((*self.contents.value(content)).clone()),
            Computed::Truth(_) => None,
        }
    }

    fn write(&self, state: &State, actor: Actor, visit: &mut Visit<'_>) {
        let declared = &self.protocol.steps[usize::from(actor.step)];
        let Some(sent) = self.request(state, actor) else { return };
        let Some(sent) = sent else {
            // The client knows no object to write, so it sends nothing.
            let mut after = state.clone();
            self.go(&mut after, actor, declared.on_missing);
            return self.end(after, 0, Event::Local { actor }, visit);
        };
        let mut after = state.clone();
        let Some((outcome, broken)) = self.commit(&mut after, sent) else { return };
        let unanswered = after.clone();
        let resource = self.protocol.keys[usize::from(self.target(actor.step))].resource;
        if let Outcome::Committed(revision) = outcome {
            self.layout.note_write(&mut after, actor.client, resource, revision);
        }
        let next = match outcome {
            Outcome::Conflict => declared.on_conflict,
            Outcome::Missing => declared.on_missing,
            _ => declared.next,
        };
        self.go(&mut after, actor, next);
        self.end(after, broken, Event::Wrote { actor, outcome }, visit);
        if self.layout.left(state, Fault::Timeout) == 0 {
            return;
        }
        if let Outcome::Committed(revision) = outcome {
            let mut after = unanswered;
            self.layout.spend(&mut after, Fault::Timeout);
            self.go(&mut after, actor, declared.on_timeout);
            let outcome = Outcome::Unanswered(Some(revision));
            self.end(after, broken, Event::Wrote { actor, outcome }, visit);
        }
        let mut after = state.clone();
        self.layout.spend(&mut after, Fault::Timeout);
        if self.layout.delay(&mut after, sent) {
            self.go(&mut after, actor, declared.on_timeout);
            self.end(after, 0, Event::Wrote { actor, outcome: Outcome::Unanswered(None) }, visit);
        }
    }

    fn late(&self, state: &State, nth: usize, late: LateWrite, visit: &mut Visit<'_>) {
        let mut after = state.clone();
        self.layout.forget(&mut after, nth);
        if let Some((Outcome::Committed(revision), broken)) = self.commit(&mut after, late) {
            let actor = Actor { client: late.client, program: 0, step: late.step };
            self.end(after, broken, Event::Late { actor, revision }, visit);
        }
    }

    /// The key of a write.
    pub(super) fn target(&self, step: u8) -> u8 {
        match self.protocol.steps[usize::from(step)].act {
            Act::Create { key, .. } | Act::Patch { key, .. } | Act::Delete { key, .. } => key,
            _ => 0,
        }
    }

    /// The request of a write step. `None` if it has to wait; `Some(None)` if the client knows no object to write.
    fn request(&self, state: &State, actor: Actor) -> Option<Option<LateWrite>> {
        let Actor { client, step, .. } = actor;
        let (fields, base, preconditions) = match self.protocol.steps[usize::from(step)].act {
            Act::Create { fields, .. } => (fields, None, Preconditions::default()),
            Act::Patch { fields, base, preconditions, .. } => (fields, base, preconditions),
            Act::Delete { base, preconditions, .. } => (None, base, preconditions),
            _ => return None,
        };
        let mut sent = LateWrite { client, step, content: 0, version: 0, uid: 0 };
        if let Some(variable) = base {
            if self.layout.version(state, client, variable) == 0 {
                return None;
            }
            let version = self.entry(state, client, variable, self.target(step));
            let known = (version > 0).then(|| self.layout.change(state, version)).filter(|change| change.content > 0);
            let Some(known) = known else { return Some(None) };
            sent.version = version;
            sent.uid = known.uid;
        }
        sent.content = match fields {
            Some(expression) => match self.knowledge.of_client(self.parts(), state, client, expression)? {
                Computed::Content(content) => content,
                Computed::Truth(_) => return None,
            },
            None => self.empty,
        };
        debug_assert!(preconditions == Preconditions::default() || sent.version > 0);
        Some(Some(sent))
    }

    /// Commits a write or refuses it. `None` if the log is full.
    fn commit(&self, state: &mut State, sent: LateWrite) -> Option<(Outcome, Broken)> {
        let declared = &self.protocol.steps[usize::from(sent.step)];
        let key = self.target(sent.step);
        let current = self.layout.current(state, key);
        let refused = |preconditions: Preconditions, (version, change): (u8, Change)| {
            preconditions.version && version != sent.version || preconditions.uid && change.uid != sent.uid
        };
        let change = match (&declared.act, current) {
            (Act::Create { .. }, Some(_)) => return Some((Outcome::Conflict, 0)),
            (Act::Create { .. }, None) => {
                Change { key, content: sent.content, uid: self.layout.next_uid(state), client: sent.client }
            }
            (_, None) => return Some((Outcome::Missing, 0)),
            (Act::Patch { preconditions, .. } | Act::Delete { preconditions, .. }, Some(current))
                if refused(*preconditions, current) =>
            {
                return Some((Outcome::Conflict, 0));
            }
            (Act::Patch { .. }, Some((_, change))) => {
                let content = self.contents.merge(change.content, sent.content)?;
                if content == change.content {
                    return Some((Outcome::Unchanged, 0));
                }
                Change { content, client: sent.client, ..change }
            }
            (_, Some((_, change))) => Change { content: 0, client: sent.client, ..change },
        };
        if !self.layout.has_room(state) {
            return None;
        }
        let mut broken = self.broken_by(state, sent, current, change);
        let revision = self.layout.commit(state, change);
        broken |= self.broken_after(state, change);
        Some((Outcome::Committed(revision), broken))
    }

    /// The properties that a write breaks by what it rests on.
    fn broken_by(&self, state: &State, sent: LateWrite, current: Option<(u8, Change)>, change: Change) -> Broken {
        let declared = &self.protocol.steps[usize::from(sent.step)];
        let base = (sent.version > 0).then(|| self.layout.change(state, sent.version));
        let mut broken = 0;
        for (at, property) in self.protocol.properties.iter().enumerate() {
            let is_broken = match property.kind {
                PropertyKind::NameReuse => sent.uid > 0 && current.is_some_and(|(_, change)| change.uid != sent.uid),
                PropertyKind::DanglingReference => {
                    let read =
                        declared.because.iter().map(|(variable, key)| self.entry(state, sent.client, *variable, *key));
                    let read = read.filter(|version| *version > 0).map(|version| self.layout.change(state, version));
                    let mut others = read.chain(base).filter(|read| read.content > 0 && read.uid != change.uid);
                    others.any(|read| self.is_dangling(state, read.content))
                }
                PropertyKind::StalePremise => {
                    change.content == 0 && {
                        let created =
                            (2..=self.layout.last(state)).find(|at| self.layout.change(state, *at).uid == change.uid);
                        let made =
                            created.is_some_and(|created| self.layout.change(state, created).client == sent.client);
                        declared.because.iter().any(|(variable, key)| {
                            let known = self.entry(state, sent.client, *variable, *key);
                            let is_absence = known == 0 || self.layout.change(state, known).content == 0;
                            // The process knows what it created, but an absence is a premise of everything that it deletes.
                            (is_absence || !made)
                                && self
                                    .ended(state, known, *key)
                                    .zip(created)
                                    .is_some_and(|(ended, created)| created > ended)
                        })
                    }
                }
                _ => false,
            };
            broken |= u32::from(is_broken) << at;
        }
        broken
    }

    /// The revision at which what a client knows of a key ended to be true, unless it is true again.
    fn ended(&self, state: &State, known: u8, key: u8) -> Option<u8> {
        let last = self.layout.last(state);
        let ended = (known + 1..=last).find(|revision| self.layout.change(state, *revision).key == key)?;
        let was_there = known > 0 && self.layout.change(state, known).content > 0;
        let is_there = self.layout.current(state, key).is_some();
        (was_there || is_there).then_some(ended)
    }

    /// The uid that a content names as its owner.
    fn owner(&self, content: ContentId) -> Option<String> {
        Some(self.contents.value(content).get("owner")?.as_str()?.to_owned())
    }

    /// Whether a content names an owner that is gone.
    fn is_dangling(&self, state: &State, content: ContentId) -> bool {
        let Some(owner) = (content > 0).then(|| self.owner(content)).flatten() else { return false };
        let keys = 0..self.protocol.keys.len() as u8;
        !keys.filter_map(|key| self.layout.current(state, key)).any(|(_, change)| uid_name(change.uid) == owner)
    }

    /// The properties that the objects in etcd break after a change.
    fn broken_after(&self, state: &State, change: Change) -> Broken {
        let of = self.protocol.keys[usize::from(change.key)].resource;
        let mut broken = 0;
        for (at, property) in self.protocol.properties.iter().enumerate() {
            let is_broken = match &property.kind {
                PropertyKind::DoubleAllocation { resource, field } if *resource == of && change.content > 0 => {
                    let value = self.field(change.content, field);
                    let keys = &self.protocol.resources[usize::from(of)].keys;
                    let others = keys.iter().filter(|key| **key != change.key);
                    let mut others = others.filter_map(|key| self.layout.current(state, *key));
                    value.is_some() && others.any(|(_, other)| self.field(other.content, field) == value)
                }
                PropertyKind::Invariant { resource, expression } if *resource == of => {
                    self.knowledge.of_etcd(self.parts(), state, of, *expression) == Some(Computed::Truth(false))
                }
                _ => false,
            };
            broken |= u32::from(is_broken) << at;
        }
        broken
    }

    /// The value of a field of a content, by its path.
    fn field(&self, content: ContentId, path: &str) -> Option<serde_json::Value> {
        let content = self.contents.value(content);
        let value = path.split('.').try_fold(&*content, |value, name| value.get(name))?;
        Some(value.clone())
    }
}

impl TransitionSystem for Machine {
    type State = State;

    fn properties(&self) -> Vec<String> {
        self.protocol.properties.iter().map(|property| property.name.clone()).collect()
    }

    fn initial(&self) -> State {
        self.initial.clone()
    }

    fn successors(&self, state: &State, visit: &mut dyn FnMut(State, Broken)) {
        self.transitions(state, &mut |state, broken, _, _| visit(state, broken));
    }
}
