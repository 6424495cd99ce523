//! Protocols as transition systems. The environment is the contract of Kubernetes' API: one order of writes, and caches that lag
//! by any amount and never go back.
//!
//! Three reductions keep every reachable violation. A cache advances only when a read or a stream shows that it did: nothing else
//! sees it. A step that reads nothing which another program of the client sets is taken together with the step before it. Servers
//! that differ only in their names are one. [`Machine::unreduced`] does without them, for comparison.

mod properties;
mod reads;
mod writes;

use crate::explore::content::{ContentId, Contents, ManagedKind};
use crate::explore::error::ProtocolError;
use crate::explore::knowledge::{Computed, Knowledge, keys};
use crate::explore::protocol::{Act, Ask, Protocol, STOP, VariableKind, Watch};
use crate::explore::state::{Change, Fault, Layout, NO_CLIENT, NO_KEY, NO_SERVER, ServerOrder, State};
use crate::explore::system::{Broken, TransitionSystem};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    /// The patch by which a deletion begins, if finalizers hold the object.
    deleting: ContentId,
    initial: State,
    is_reduced: bool,
    /// Whether objects have the managers of their fields: for server-side apply.
    has_managers: bool,
    /// Transitions so far that cost something: quorum reads, and refused writes.
    quorum_reads: AtomicU64,
    refused_writes: AtomicU64,
    /// Whether a write was left out, since the run has as many as the limit.
    has_more_writes: AtomicBool,
}

/// What the runs cost: transitions of all visited states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Reads of the most recent state.
    pub quorum_reads: u64,
    /// Writes that a precondition or a taken name refused.
    pub refused_writes: u64,
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
    /// The write adds a finalizer to an object whose deletion has begun, or applies another uid.
    Invalid,
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
    /// A stream that was opened at a version, if it was not open, sent a bookmark with a revision.
    Bookmark { actor: Actor, server: u8, opened: Option<u8>, revision: u8 },
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
    /// A protocol as a transition system.
    ///
    /// # Errors
    /// If its states do not fit into [`State`].
    pub fn new(protocol: Protocol) -> Result<Machine, ProtocolError> {
        Machine::with_reductions(protocol, true)
    }

    /// The same without reductions: many more states, and the same violations. Tests compare the two.
    ///
    /// # Errors
    /// As [`Machine::new`].
    #[doc(hidden)]
    pub fn unreduced(protocol: Protocol) -> Result<Machine, ProtocolError> {
        Machine::with_reductions(protocol, false)
    }

    fn with_reductions(protocol: Protocol, is_reduced: bool) -> Result<Machine, ProtocolError> {
        let layout = Layout::of(&protocol)?;
        let (contents, mut initial) = (Contents::default(), layout.empty());
        layout.commit(&mut initial, Change { key: NO_KEY, content: 0, uid: 0, client: NO_CLIENT });
        let has_managers = protocol.steps.iter().any(|step| matches!(step.act, Act::Apply { .. }));
        for (key, fields) in &protocol.objects {
            let mut content = contents.number(fields.clone()).unwrap_or_default();
            if has_managers {
                let made = (0, content, NO_CLIENT, ManagedKind::Other);
                content = contents.managed(made, "setup").unwrap_or_default();
            }
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
        let deleting = serde_json::json!({"metadata": {"deletionTimestamp": "2026-03-02T09:00:00Z"}});
        let deleting = contents.number(deleting).unwrap_or_default();
        let knowledge = Knowledge::default();
        let mut machine = Machine {
            protocol,
            layout,
            contents,
            knowledge,
            empty,
            deleting,
            initial,
            is_reduced,
            has_managers,
            quorum_reads: AtomicU64::new(0),
            refused_writes: AtomicU64::new(0),
            has_more_writes: AtomicBool::new(false),
        };
        let mut initial = machine.initial.clone();
        machine.settle_all(&mut initial);
        machine.layout.sort_servers(&mut initial, machine.protocol.clients.len());
        machine.initial = initial;
        match machine.broken_at_begin() {
            Some(name) => Err(format!("`{name}` is false for the objects at the begin already").into()),
            None => Ok(machine),
        }
    }

    /// The expression that could not be evaluated, and why.
    pub fn failure(&self) -> Option<String> {
        self.knowledge.failure()
    }

    /// What the transitions cost of which successors were asked for so far.
    pub fn cost(&self) -> Cost {
        Cost {
            quorum_reads: self.quorum_reads.load(Ordering::Relaxed),
            refused_writes: self.refused_writes.load(Ordering::Relaxed),
        }
    }

    /// Whether the limit of writes left runs out, of those states of which successors were asked for so far.
    pub fn has_more_writes(&self) -> bool {
        self.has_more_writes.load(Ordering::Relaxed)
    }

    /// Whether a read shows the most recent state.
    fn is_quorum(&self, step: u8, server: u8) -> bool {
        let act = &self.protocol.steps[usize::from(step)].act;
        server == NO_SERVER || matches!(act, Act::Watch(Watch { initial: Some(Ask::Unset), .. }))
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
        let declared = &self.protocol.steps[usize::from(step)];
        match declared.act {
            _ if declared.when.is_some() || declared.barrier.is_some() => false,
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
        if !declared.when.is_none_or(is_true) || !self.shows_own_writes(state, actor) {
            return;
        }
        match declared.act {
            Act::List { resource, ask, into } => {
                self.read(state, actor, VariableKind::Resource(resource), (ask, into), visit);
            }
            Act::Get { key, ask, into } => self.read(state, actor, VariableKind::Object(key), (ask, into), visit),
            Act::Watch(watch) => self.watch(state, actor, watch, visit),
            Act::Create { .. } | Act::Patch { .. } | Act::Apply { .. } | Act::Delete { .. } => {
                self.write(state, actor, visit)
            }
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

    /// Whether the barrier of a step lets it pass.
    fn shows_own_writes(&self, state: &State, Actor { client, step, .. }: Actor) -> bool {
        self.protocol.steps[usize::from(step)].barrier.is_none_or(|variable| {
            let kind = self.protocol.clients[usize::from(client)].variables[usize::from(variable)].kind;
            self.known_version(state, client, variable) >= self.layout.own(state, client, self.resource(kind))
        })
    }

    /// The version that a request can take from a variable; 0: none. A list has one, an object has its own, and 404 has none.
    pub(in crate::explore) fn known_version(&self, state: &State, client: u8, variable: u8) -> u8 {
        match self.protocol.clients[usize::from(client)].variables[usize::from(variable)].kind {
            VariableKind::Resource(_) => self.layout.version(state, client, variable),
            VariableKind::Object(_) => {
                let version = self.layout.entry(state, client, variable, 0);
                if version > 0 && self.layout.change(state, version).content > 0 { version } else { 0 }
            }
        }
    }

    /// The change that a client's variable holds for a key.
    pub(super) fn entry(&self, state: &State, client: u8, variable: u8, key: u8) -> u8 {
        let kind = self.protocol.clients[usize::from(client)].variables[usize::from(variable)].kind;
        let nth = keys(&self.protocol, kind).into_iter().position(|known| known == key);
        nth.map_or(0, |nth| self.layout.entry(state, client, variable, nth))
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
        let mut cost = Cost::default();
        self.transitions(state, &mut |state, broken, event, _| {
            match event {
                Event::Read { actor, server, .. } if self.is_quorum(actor.step, server) => cost.quorum_reads += 1,
                Event::Wrote { outcome: Outcome::Conflict | Outcome::Invalid, .. } => cost.refused_writes += 1,
                _ => {}
            }
            visit(state, broken);
        });
        for (count, total) in [(cost.quorum_reads, &self.quorum_reads), (cost.refused_writes, &self.refused_writes)] {
            if count > 0 {
                total.fetch_add(count, Ordering::Relaxed);
            }
        }
    }
}
