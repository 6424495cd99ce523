//! Small histories of etcd: drawn, sometimes corrupted, and as a recording.

use crate::chance::Chance;
use crate::oracle::{Hidden, Server};
use retrograde::history::Symbol;
use retrograde::history::etcd::{
    self, Client, Condition, Interval, Outcome, Pair, Previous, Range, Recording, Relation, Request, Response, Span,
    StepResult, Target, Txn, ValueId,
};
use retrograde::ingest::{Position, Time};
use std::fmt;

/// A key: a place in [`KEYS`].
pub type Key = u8;

/// Names in their order.
const KEYS: [&str; 4] = ["a", "ab", "b", "c"];

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(pub u8);

impl Name {
    /// That of a key of which only the name was asked for.
    pub const EMPTY: Name = Name(u8::MAX);
}

#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    pub key: Key,
    pub end: Option<Key>,
    pub limit: i64,
    pub revision: i64,
    pub keys_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compare {
    Changed(i64),
    Version(i64),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Key, value, and the lease as it was recorded.
    Put(Key, Name, i64),
    Delete(Key),
    Look(Look),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    Range(Look),
    Txn { conditions: Vec<(Key, Compare)>, success: Vec<Step>, failure: Vec<Step> },
    Grant(i64),
    Revoke(i64),
    Compact(i64),
}

/// Keys with value, revision and count of changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub pairs: Vec<(Key, Name, i64, i64)>,
    pub count: i64,
    pub deleted: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Done { revision: i64, failure: bool, results: Vec<Found> },
    Compacted,
    Future,
    Refused,
    Unknown,
}

#[derive(Clone, Debug)]
pub struct Operation {
    pub client: u32,
    pub call: i64,
    pub returned: i64,
    pub ask: Ask,
    pub answer: Answer,
}

#[derive(Clone, Debug)]
pub struct Event {
    pub key: Key,
    pub revision: i64,
    /// `None`: deleted.
    pub value: Option<Name>,
    pub create: bool,
    pub previous: Option<(Name, i64, i64)>,
}

#[derive(Clone, Debug)]
pub enum Told {
    Events { time: i64, revision: i64, events: Vec<Event> },
    Progress { time: i64, revision: i64 },
    Compacted { time: i64 },
}

#[derive(Clone, Debug)]
pub struct Watch {
    pub text: &'static str,
    pub prefix: bool,
    pub from: i64,
    pub previous: bool,
    pub told: Vec<Told>,
}

impl Watch {
    pub fn covers(&self, key: Key) -> bool {
        let name = KEYS[key as usize];
        if self.prefix { name.starts_with(self.text) } else { name == self.text }
    }
}

#[derive(Clone, Debug)]
pub struct Small {
    pub operations: Vec<Operation>,
    pub watches: Vec<Watch>,
}

fn key(dice: &mut Chance) -> Key {
    // Few keys make much happen to each.
    [0, 0, 0, 1, 2, 3][dice.below(6) as usize]
}

fn look(server: &Server, dice: &mut Chance) -> Look {
    let whole = dice.below(2) == 0;
    let past = 1 + dice.below(server.revision() as u64 + 1) as i64;
    Look {
        key: if whole { 0 } else { key(dice) },
        end: whole.then(|| 1 + dice.below(3) as u8),
        limit: if dice.below(3) == 0 { 1 + dice.below(2) as i64 } else { 0 },
        revision: if dice.below(3) == 0 { past } else { 0 },
        keys_only: dice.below(5) == 0,
    }
}

fn ask(server: &Server, n: u8, granted: usize, dice: &mut Chance) -> Ask {
    let lease = |dice: &mut Chance| 7 + dice.below(granted.max(1) as u64) as i64;
    let plain = |step: Step| Ask::Txn { conditions: vec![], success: vec![step], failure: vec![] };
    let value = Name(if dice.below(6) == 0 { 0 } else { n });
    match dice.below(20) {
        0..=4 => {
            let lease = if dice.below(2) == 0 { lease(dice) } else { 0 };
            plain(Step::Put(key(dice), value, lease))
        }
        5 | 6 => plain(Step::Delete(key(dice))),
        7..=10 => {
            let of = key(dice);
            let live = server.now()[of as usize];
            let compare = match dice.below(4) {
                0 => Compare::Version(live.map_or(1, |live| live.version)),
                1 => Compare::Changed(1 + dice.below(server.revision() as u64) as i64),
                _ => Compare::Changed(live.map_or(0, |live| live.changed)),
            };
            let step = if dice.below(3) == 0 { Step::Delete(of) } else { Step::Put(of, value, 0) };
            let failure = match dice.below(3) {
                0 => vec![],
                1 => vec![Step::Put(3, value, 0)],
                _ => vec![Step::Look(Look { key: of, end: None, limit: 0, revision: 0, keys_only: false })],
            };
            Ask::Txn { conditions: vec![(of, compare)], success: vec![step], failure }
        }
        11 => {
            let whole = Look { key: 0, end: Some(3), limit: 0, revision: 0, keys_only: false };
            let mut success = vec![Step::Put(0, value, 0), Step::Delete(2), Step::Look(whole)];
            success.truncate(1 + dice.below(3) as usize);
            success.push(Step::Put(3, value, 0));
            Ask::Txn { conditions: vec![], success, failure: vec![] }
        }
        12..=15 => Ask::Range(look(server, dice)),
        // The server chooses the number.
        16 | 17 => Ask::Grant(7 + granted as i64),
        18 => Ask::Revoke(lease(dice)),
        _ => Ask::Compact(1 + dice.below(server.revision() as u64 + 1) as i64),
    }
}

/// What puts of transactions are attached to in truth.
fn hidden(server: &Server, dice: &mut Chance) -> Hidden {
    let leases: Vec<i64> = server.leases.iter().copied().collect();
    (0..2).map(|_| if leases.is_empty() || dice.below(4) > 0 { 0 } else { *dice.one(&leases) }).collect()
}

impl Small {
    /// Draws one: what a server does, some of it not answered, some answers and deliveries then changed.
    pub fn draw(dice: &mut Chance) -> Small {
        let clients = 1 + dice.below(3) as u32;
        let count = 3 + dice.below(6) as usize;
        let mut slots = Vec::new();
        let mut free = vec![1 + dice.below(3) as i64; clients as usize];
        for _ in 0..count {
            let client = dice.below(u64::from(clients)) as usize;
            let call = free[client] + dice.below(4) as i64;
            let fate = dice.below(8);
            let done = call + dice.below(if fate == 0 { 20 } else { 5 }) as i64;
            let returned = if fate < 2 { call + 4 } else { done + dice.below(4) as i64 };
            free[client] = returned + 1;
            slots.push((done, client as u32, call, returned, fate));
        }
        slots.sort_unstable();
        let mut server = Server::new();
        let mut born = Vec::new();
        let mut compactions = Vec::new();
        let mut operations: Vec<Operation> = Vec::new();
        let mut granted = 0;
        for (n, (done, client, call, returned, fate)) in slots.into_iter().enumerate() {
            if dice.below(12) == 0 && !server.leases.is_empty() {
                let lease = *server.leases.iter().next().unwrap_or(&0);
                server.expire(lease);
            }
            let mut ask = ask(&server, n as u8 + 1, granted, dice);
            granted += usize::from(matches!(ask, Ask::Grant(_)));
            let attached = hidden(&server, dice);
            // 0: took effect at some time, and nobody was told; 1: lost.
            let answer = if fate == 1 { Answer::Unknown } else { server.apply(&ask, &attached) };
            born.resize(server.revision() as usize - 1, done);
            compactions.push((server.compacted, done));
            let answer = if fate == 0 { Answer::Unknown } else { answer };
            if let (Ask::Grant(lease), Answer::Unknown) = (&mut ask, &answer) {
                *lease = 0;
            }
            operations.push(Operation { client, call, returned, ask, answer });
        }
        operations.sort_by_key(|operation| (operation.client, operation.call));
        let watches = (0..dice.below(3)).map(|_| watch(&server, &born, &compactions, dice)).collect();
        let mut small = Small { operations, watches };
        for _ in 0..[0, 1, 2, 2, 3][dice.below(5) as usize] {
            small.corrupt(dice);
        }
        small
    }

    fn corrupt(&mut self, dice: &mut Chance) {
        let nudge = |number: &mut i64, dice: &mut Chance| *number += [-2, -1, -1, 1, 1, 2][dice.below(6) as usize];
        if !self.watches.is_empty() && dice.below(3) == 0 {
            let at = dice.below(self.watches.len() as u64) as usize;
            corrupt_watch(&mut self.watches[at], dice, &nudge);
            return;
        }
        let at = dice.below(self.operations.len() as u64) as usize;
        let operation = &mut self.operations[at];
        match dice.below(12) {
            0 => operation.returned = (operation.returned - dice.below(6) as i64).max(operation.call),
            1 => operation.call = (operation.call + dice.below(6) as i64).min(operation.returned),
            2 if !matches!(operation.ask, Ask::Grant(_)) => operation.answer = Answer::Unknown,
            3 if matches!(operation.ask, Ask::Range(Look { revision: 1.., .. }) | Ask::Compact(_)) => {
                operation.answer = if dice.below(2) == 0 { Answer::Compacted } else { Answer::Future };
            }
            _ => {}
        }
        match (&mut operation.ask, dice.below(4)) {
            (Ask::Compact(through), 0) if *through > 2 => nudge(through, dice),
            (Ask::Range(look), 0) if look.revision > 1 => nudge(&mut look.revision, dice),
            (Ask::Grant(lease) | Ask::Revoke(lease), 0) => *lease = 15 - *lease,
            _ => {}
        }
        let counts = !matches!(operation.ask, Ask::Compact(_));
        let values = !matches!(operation.ask, Ask::Range(Look { keys_only: true, .. }));
        let Answer::Done { revision, failure, results } = &mut operation.answer else { return };
        match dice.below(4) {
            0 if counts && *revision > 2 => nudge(revision, dice),
            1 if matches!(&operation.ask, Ask::Txn { success, failure, .. } if success.len() == failure.len()) => {
                *failure = !*failure;
            }
            _ => {}
        }
        if results.is_empty() {
            return;
        }
        let at = dice.below(results.len() as u64) as usize;
        let result = &mut results[at];
        if matches!(&operation.ask, Ask::Txn { success, .. } if matches!(success[..], [Step::Delete(_)])) && !*failure {
            result.deleted = 1 - result.deleted;
            return;
        }
        let count = result.pairs.len() as u64;
        match dice.below(6) {
            0 if count > 0 => drop(result.pairs.remove(dice.below(count) as usize)),
            1 if count > 0 => nudge(&mut result.pairs[dice.below(count) as usize].2, dice),
            2 if count > 0 => {
                let version = &mut result.pairs[dice.below(count) as usize].3;
                nudge(version, dice);
                // No count at all is what old reports have.
                *version = (*version).max(1);
            }
            3 if count > 0 && values => result.pairs[dice.below(count) as usize].1 = Name(dice.below(8) as u8),
            4 if count > 0 => result.count += 1,
            5 if count == 0 && matches!(operation.ask, Ask::Txn { .. }) => result.deleted = 1 - result.deleted.min(1),
            _ => {}
        }
    }
}

/// What a watch is told from a revision on.
fn watch(server: &Server, born: &[i64], compactions: &[(i64, i64)], dice: &mut Chance) -> Watch {
    let (text, prefix) = *dice.one(&[("", true), ("", true), ("a", true), ("a", false), ("c", false)]);
    let from = if dice.below(5) == 0 { 0 } else { 1 + dice.below(server.revision() as u64) as i64 };
    let mut watch = Watch { text, prefix, from, previous: dice.below(3) > 0, told: Vec::new() };
    // From now on: from some moment.
    let first = if from == 0 { 1 + dice.below(server.revision() as u64 + 1) as i64 } else { from };
    let mut time = 0;
    let mut events = Vec::new();
    for number in first.max(2)..=server.revision() {
        time = time.max(born[number as usize - 2]) + dice.below(4) as i64;
        for (key, before, after) in server.changes(number).into_iter().filter(|(key, ..)| watch.covers(*key)) {
            let compacted = compactions.iter().any(|(through, at)| *through >= number && *at <= time);
            let told = before.filter(|_| watch.previous && !(compacted && dice.below(2) == 0));
            events.push(Event {
                key,
                revision: number,
                value: after.map(|live| live.value),
                create: before.is_none(),
                previous: told.map(|live| (live.value, live.changed, live.version)),
            });
        }
        if dice.below(3) > 0 && !events.is_empty() {
            watch.told.push(Told::Events { time, revision: number, events: std::mem::take(&mut events) });
        } else if dice.below(4) == 0 && events.is_empty() {
            watch.told.push(Told::Progress { time, revision: number });
        }
        if dice.below(12) == 0 {
            break;
        }
    }
    let next = watch.told.iter().filter_map(|told| match told {
        Told::Events { events, .. } => events.last().map(|event| event.revision + 1),
        _ => None,
    });
    let next = next.max().unwrap_or(1).max(from);
    if let Some((_, at)) = compactions.iter().find(|(through, _)| *through > next)
        && dice.below(2) == 0
    {
        watch.told.push(Told::Compacted { time: time.max(*at) + 1 });
    }
    watch
}

fn corrupt_watch(watch: &mut Watch, dice: &mut Chance, nudge: &impl Fn(&mut i64, &mut Chance)) {
    if watch.told.is_empty() || dice.below(8) == 0 {
        if watch.from > 1 {
            nudge(&mut watch.from, dice);
        }
        return;
    }
    let at = dice.below(watch.told.len() as u64) as usize;
    if dice.below(6) == 0 {
        watch.told.remove(at);
        return;
    }
    if dice.below(8) == 0 {
        let time = match watch.told[at] {
            Told::Events { time, .. } | Told::Progress { time, .. } | Told::Compacted { time } => time,
        };
        let told = if dice.below(3) == 0 {
            Told::Compacted { time }
        } else {
            Told::Progress { time, revision: 1 + dice.below(8) as i64 }
        };
        watch.told.insert(at, told);
        return;
    }
    match &mut watch.told[at] {
        Told::Progress { time, revision } => match dice.below(2) {
            0 if *revision > 2 => nudge(revision, dice),
            _ => nudge(time, dice),
        },
        Told::Compacted { time } => nudge(time, dice),
        Told::Events { time, revision, events } => {
            let n = dice.below(events.len() as u64) as usize;
            match dice.below(9) {
                0 => nudge(time, dice),
                1 if *revision > 2 => nudge(revision, dice),
                2 if events.len() > 1 => drop(events.remove(n)),
                3 => events.insert(n, events[n].clone()),
                4 => nudge(&mut events[n].revision, dice),
                5 => events[n].value = events[n].value.map(|_| Name(dice.below(8) as u8)),
                6 => events[n].create = !events[n].create,
                7 => events[n].previous = None,
                _ => {
                    if let Some(previous) = &mut events[n].previous {
                        nudge(if dice.below(2) == 0 { &mut previous.1 } else { &mut previous.2 }, dice);
                        previous.2 = previous.2.max(1);
                    }
                }
            }
            events.retain(|event| event.revision > 0);
            if events.is_empty() {
                watch.told.remove(at);
            }
        }
    }
}

impl Small {
    /// Of two that show the same, people read the one of less.
    pub fn size(&self) -> u64 {
        let told = self.watches.iter().map(|watch| 1 + watch.told.len());
        (self.operations.len() + told.sum::<usize>()) as u64
    }
}

impl fmt::Display for Small {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Operation { client, call, returned, ask, answer } in &self.operations {
            writeln!(f, "  client {client} {call}..{returned} {ask:?}\n    -> {answer:?}")?;
        }
        for Watch { text, prefix, from, previous, told } in &self.watches {
            writeln!(f, "  watch {text:?} prefix {prefix} from {from} previous {previous}")?;
            told.iter().try_for_each(|told| writeln!(f, "    {told:?}"))?;
        }
        Ok(())
    }
}

/// The tables of a recording while they grow.
struct Tables(Recording);

impl Small {
    /// As reports have it.
    pub fn recording(&self) -> Recording {
        let mut tables = Tables(Recording { name: "small".to_owned(), ..Recording::default() });
        let clients = self.operations.iter().map(|operation| operation.client).max().unwrap_or(0) + 1;
        for client in 0..clients + self.watches.len() as u32 {
            let of: Vec<&Operation> = self.operations.iter().filter(|operation| operation.client == client).collect();
            let first = tables.0.operations.len() as u32;
            of.iter().for_each(|operation| tables.operation(operation));
            let begun = tables.0.watches.len() as u32;
            if let Some(watch) = client.checked_sub(clients).and_then(|at| self.watches.get(at as usize)) {
                tables.watch(client, watch);
            }
            let (operations, watches) = (tables.0.operations.len() as u32, tables.0.watches.len() as u32);
            tables.0.clients.push(Client {
                name: format!("client-{}", client + 1),
                operations: first..operations,
                watches: begun..watches,
            });
        }
        tables.0
    }
}

fn since<T>(start: usize, table: &[T]) -> Span {
    Span { start: start as u32, len: (table.len() - start) as u32 }
}

impl Tables {
    fn key(&mut self, key: Key) -> Symbol {
        self.0.texts.intern(KEYS[key as usize])
    }

    fn value(&mut self, value: Name) -> ValueId {
        match value {
            Name::EMPTY => ValueId::default(),
            Name(n) => self.0.values.recorded(&format!("v{n}"), 0),
        }
    }

    fn range(&mut self, look: &Look) -> Range {
        let end = look.end.map_or(Symbol::NONE, |end| self.key(end));
        let keys = Interval { key: self.key(look.key), end };
        Range {
            keys,
            limit: look.limit,
            revision: look.revision,
            keys_only: look.keys_only,
            count_only: false,
            serializable: false,
        }
    }

    fn steps(&mut self, steps: &[Step]) -> Span {
        let start = self.0.requests.steps.len();
        for step in steps {
            let step = match step {
                Step::Put(key, value, lease) => etcd::Step::Put {
                    key: self.key(*key),
                    value: self.value(*value),
                    lease: *lease,
                    keeps_value: false,
                    keeps_lease: false,
                },
                Step::Delete(key) => etcd::Step::Delete(Interval { key: self.key(*key), end: Symbol::NONE }),
                Step::Look(look) => etcd::Step::Range(self.range(look)),
            };
            self.0.requests.steps.push(step);
        }
        since(start, &self.0.requests.steps)
    }

    fn request(&mut self, ask: &Ask) -> Request {
        match ask {
            Ask::Range(look) => Request::Range(self.range(look)),
            Ask::Txn { conditions, success, failure } => {
                let start = self.0.requests.conditions.len();
                for (key, compare) in conditions {
                    let (target, number) = match compare {
                        Compare::Changed(number) => (Target::ModRevision, *number),
                        Compare::Version(number) => (Target::Version, *number),
                    };
                    let keys = Interval { key: self.key(*key), end: Symbol::NONE };
                    let value = ValueId::default();
                    let condition = Condition { keys, target, relation: Relation::Equal, number, value };
                    self.0.requests.conditions.push(condition);
                }
                let conditions = since(start, &self.0.requests.conditions);
                Request::Txn(Txn { conditions, success: self.steps(success), failure: self.steps(failure) })
            }
            Ask::Grant(lease) => Request::LeaseGrant { lease: *lease, ttl: 0 },
            Ask::Revoke(lease) => Request::LeaseRevoke { lease: *lease },
            Ask::Compact(revision) => Request::Compact { revision: *revision },
        }
    }

    fn operation(&mut self, operation: &Operation) {
        let request = self.request(&operation.ask);
        let start = self.0.results.len();
        let (outcome, revision, failure) = match &operation.answer {
            Answer::Done { revision, failure, results } => {
                for result in results {
                    let first = self.0.pairs.len();
                    for (key, value, revision, version) in &result.pairs {
                        let (key, value) = (self.key(*key), self.value(*value));
                        self.0.pairs.push(Pair { key, value, revision: *revision, version: *version });
                    }
                    let pairs = since(first, &self.0.pairs);
                    self.0.results.push(StepResult { pairs, count: result.count, deleted: result.deleted });
                }
                (Outcome::Answered, *revision, *failure)
            }
            Answer::Compacted => (Outcome::Compacted, 0, false),
            Answer::Future => (Outcome::Future, 0, false),
            Answer::Refused => (Outcome::Refused, 0, false),
            Answer::Unknown => (Outcome::Unknown, 0, false),
        };
        let ended = matches!(outcome, Outcome::Answered | Outcome::Compacted | Outcome::Future);
        self.0.operations.push(etcd::Operation {
            position: Position::default(),
            client: operation.client,
            stream: i64::from(operation.client),
            call: Time(operation.call),
            returned: if ended { Time(operation.returned) } else { Time::UNKNOWN },
            request,
            outcome,
            revision,
            member: 0,
            failure,
            results: since(start, &self.0.results),
            error: Symbol::NONE,
            begun: false,
        });
    }

    fn watch(&mut self, client: u32, watch: &Watch) {
        let start = self.0.responses.len();
        for told in &watch.told {
            let first = self.0.events.len();
            let (time, revision, progress, error) = match told {
                Told::Events { time, revision, events } => {
                    for event in events {
                        let event = self.event(event);
                        self.0.events.push(event);
                    }
                    (*time, *revision, false, Symbol::NONE)
                }
                Told::Progress { time, revision } => (*time, *revision, true, Symbol::NONE),
                Told::Compacted { time } => {
                    let error = self.0.texts.intern("etcdserver: mvcc: required revision has been compacted");
                    (*time, 0, false, error)
                }
            };
            let events = since(first, &self.0.events);
            self.0.responses.push(Response { line: 1, offset: 0, time: Time(time), revision, progress, error, events });
        }
        let key = self.0.texts.intern(watch.text);
        self.0.watches.push(etcd::Watch {
            position: Position::default(),
            client,
            key,
            end: Symbol::NONE,
            prefix: watch.prefix,
            revision: watch.from,
            progress: true,
            previous: watch.previous,
            responses: since(start, &self.0.responses),
        });
    }

    fn event(&mut self, event: &Event) -> etcd::Event {
        let previous =
            event.previous.map(|(value, revision, version)| Previous { value: self.value(value), revision, version });
        etcd::Event {
            line: 1,
            offset: 0,
            key: self.key(event.key),
            value: event.value.map_or_else(ValueId::default, |value| self.value(value)),
            revision: event.revision,
            delete: event.value.is_none(),
            create: event.create,
            previous,
        }
    }
}
