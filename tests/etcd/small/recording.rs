//! A small history in the form of reports.

use super::{Answer, Ask, Compare, Event, KEYS, Key, Look, Name, Operation, Small, Step, Told, Watch};
use retrograde::history::Symbol;
use retrograde::history::etcd::{
    self, Client, Condition, Interval, Log, LogEntry, Member, Note, Outcome, Pair, Previous, Range, Recording,
    Relation, Request, Response, Span, StepResult, Target, Txn, ValueId,
};
use retrograde::ingest::{Position, Time};

/// The tables of a recording under construction.
struct Tables(Recording);

impl Small {
    /// The history as a recording.
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
        if self.logged.is_some() {
            tables.log(self.log());
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
            sorted: false,
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
                Step::DeleteBetween(key, end) => {
                    etcd::Step::Delete(Interval { key: self.key(*key), end: self.key(*end) })
                }
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

    /// The log of the only member. Its first entry makes the member a voter.
    fn log(&mut self, asked: &[Ask]) {
        let node = 7;
        let entry =
            |index: usize, request| LogEntry { position: Position::default(), index: index as u64, term: 2, request };
        let mut entries = vec![entry(1, Request::Other)];
        for (ask, index) in asked.iter().zip(2..) {
            let request = self.request(ask);
            entries.push(entry(index, request));
        }
        let commit = entries.len() as u64;
        let log = Log { node, cluster: 9, entries, notes: vec![(1, Note::Voter(node))], commit, ..Log::default() };
        self.0.members.push(Member { name: "a".to_owned(), log: Some(log), store: None });
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
