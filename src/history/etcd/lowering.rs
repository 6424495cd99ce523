//! Turns records of clients into rows.

use super::batch::{Piece, Rows};
use super::operation::{
    Condition, Interval, Operation, Pair, Range, Relation, Request, Span, Step, StepResult, Target, Txn,
};
use super::outcome::{Outcome, known};
use super::recording::CreationMarks;
use super::value::ValueId;
use super::watch::{Event, Previous, Response, Watch};
use crate::history::Symbol;
use crate::ingest::etcd::{HIGHEST_REVISION, operation as recorded, watch};
use crate::ingest::{Found, Position, Refused, Time};

/// Placeholder until the whole file's client is known.
const NO_CLIENT: u32 = u32::MAX;

/// Below this number of operations the cache of sightings costs more than it saves.
const MIN_CACHED_OPERATIONS: usize = 4_096;

fn refused<T>(expected: &str, found: impl Into<Found>) -> Result<T, Refused> {
    Err(Refused { expected: expected.to_owned(), found: found.into() })
}

impl Rows {
    /// Adds an operation of a client.
    pub fn operation(&mut self, position: Position, o: &recorded::Operation<'_>) -> Result<(), Refused> {
        let outcome = if o.begun { Outcome::Unknown } else { Outcome::of(&o.answer) };
        if o.call < 0 {
            return refused(
                "a time since the suite began",
                Found::described(format!("a request sent at {} ns", o.call)),
            );
        }
        let answered = outcome == Outcome::Answered;
        if answered && o.returned < o.call {
            return refused(
                "an answer after its request",
                Found::described(format!("sent at {} ns, answered at {} ns", o.call, o.returned)),
            );
        }
        let (range, txn) = (o.answer.range.as_ref(), o.answer.txn.as_ref());
        let kind = &*o.request.kind;
        match kind {
            "range" if answered && range.is_none() => {
                return refused("the answer to a range", "an answer without it");
            }
            "txn" if answered && txn.is_none() => {
                return refused("the answer to a transaction", "an answer without it");
            }
            "range" | "txn" | "leaseGrant" | "leaseRevoke"
                if answered && !(1..=HIGHEST_REVISION).contains(&o.answer.revision) =>
            {
                return refused(
                    "a revision above 0, and not above 2^60, in an answer",
                    Found::described(format!("{kind} answered at revision {}", o.answer.revision)),
                );
            }
            _ => {}
        }
        let request = self.request(&o.request, if answered { o.answer.revision } else { 0 })?;
        let results = match &request {
            Request::Range(_) if answered => self.results(range.into_iter()),
            Request::Txn(_) if answered => self.results(txn.and_then(|txn| txn.results.as_ref()).into_iter().flatten()),
            _ => Span::default(),
        };
        let without_revision = matches!(request, Request::Compact { .. } | Request::Defragment);
        let error = if o.answer.error.is_empty() { &o.answer.client_error } else { &o.answer.error };
        let error = if error.is_empty() { Symbol::NONE } else { self.texts.intern(&known(error)) };
        self.operations.push(Operation {
            position,
            client: NO_CLIENT,
            stream: o.stream,
            call: Time(o.call),
            returned: match outcome {
                Outcome::Unknown | Outcome::Refused => Time::UNKNOWN,
                // Old reports invent a return for failed operations only.
                _ if o.returned < o.call => Time::UNKNOWN,
                _ => Time(o.returned),
            },
            request,
            outcome,
            revision: if answered && !without_revision { o.answer.revision } else { 0 },
            member: member(&o.answer),
            failure: answered && txn.is_some_and(|txn| txn.failure),
            results,
            error,
            begun: o.begun,
        });
        Ok(())
    }

    /// A request. `at` is the revision in its answer, or 0.
    fn request(&mut self, request: &recorded::Request<'_>, at: i64) -> Result<Request, Refused> {
        let missing = || Refused {
            expected: "a request with its content".to_owned(),
            found: Found::described(format!("a request of type {} without it", &*request.kind)),
        };
        Ok(match &*request.kind {
            "range" => Request::Range(self.range(request.range.as_ref().ok_or_else(missing)?)),
            "txn" => {
                let txn = request.txn.as_ref().ok_or_else(missing)?;
                let start = self.requests.conditions.len();
                for condition in txn.conditions.iter().flatten() {
                    let condition = self.condition(condition);
                    self.requests.conditions.push(condition);
                }
                let conditions = Span::since(start, &self.requests.conditions);
                let success = self.steps(txn.success.as_deref().unwrap_or_default(), at)?;
                let failure = self.steps(txn.failure.as_deref().unwrap_or_default(), 0)?;
                Request::Txn(Txn { conditions, success, failure })
            }
            "leaseGrant" => Request::LeaseGrant { lease: request.lease_grant.ok_or_else(missing)?.id, ttl: 0 },
            "leaseRevoke" => Request::LeaseRevoke { lease: request.lease_revoke.ok_or_else(missing)?.id },
            "compact" => Request::Compact { revision: request.compact.ok_or_else(missing)?.revision },
            "defragment" => Request::Defragment,
            "other" => Request::Other,
            other => return refused("a request of a known type", Found::text("a type", other)),
        })
    }

    fn range(&mut self, range: &recorded::Range<'_>) -> Range {
        let keys = self.interval(&range.start, &range.end);
        let recorded::Range { limit, revision, keys_only, count_only, serializable, sorted, .. } = *range;
        // Recorders with more details of a read than the suite did not always record its order.
        let sorted = sorted.unwrap_or(count_only.is_some());
        Range { keys, limit, revision, keys_only, count_only: count_only == Some(true), serializable, sorted }
    }

    fn interval(&mut self, key: &str, end: &str) -> Interval {
        let end = if end.is_empty() { Symbol::NONE } else { self.texts.intern(end) };
        Interval { key: self.asked_key(key), end }
    }

    /// A key in a request, likely the same as in its other parts.
    fn asked_key(&mut self, key: &str) -> Symbol {
        self.texts.again(&mut self.last_key, key)
    }

    fn condition(&mut self, condition: &recorded::Condition<'_>) -> Condition {
        let keys = self.interval(&condition.key, &condition.end);
        let target = match &*condition.target {
            "" => {
                let (target, number) = match condition.version {
                    1.. => (Target::Version, condition.version),
                    _ => (Target::ModRevision, condition.revision),
                };
                return Condition { keys, target, relation: Relation::Equal, number, value: ValueId::default() };
            }
            "version" => Target::Version,
            "create" => Target::CreateRevision,
            "mod" => Target::ModRevision,
            "value" => Target::Value,
            "lease" => Target::Lease,
            _ => Target::Unknown,
        };
        let relation = match &*condition.relation {
            "=" => Relation::Equal,
            ">" => Relation::Greater,
            "<" => Relation::Less,
            "!=" => Relation::NotEqual,
            _ => Relation::Unknown,
        };
        Condition { keys, target, relation, number: condition.number, value: self.value(&condition.value) }
    }

    fn steps(&mut self, steps: &[recorded::Step<'_>], at: i64) -> Result<Span, Refused> {
        let start = self.requests.steps.len();
        for step in steps {
            let step = match &*step.kind {
                "range-operation" => Step::Range(self.range(&step.range)),
                "put-operation" => {
                    let (key, value) = self.seen(&step.put.key, &step.put.value, at);
                    Step::Put { key, value, lease: step.put.lease, keeps_value: false, keeps_lease: false }
                }
                "delete-operation" => Step::Delete(self.interval(&step.delete.key, &step.delete.end)),
                other => return refused("a step of a known type", Found::text("a type", other)),
            };
            self.requests.steps.push(step);
        }
        Ok(Span::since(start, &self.requests.steps))
    }

    fn value(&mut self, value: &recorded::Value<'_>) -> ValueId {
        self.values.recorded(&value.text, value.hash)
    }

    fn results<'a>(&mut self, found: impl Iterator<Item = &'a recorded::Found<'a>>) -> Span {
        let start = self.results.len();
        for found in found {
            let first = self.pairs.len();
            for pair in found.pairs.iter().flatten() {
                let (key, value) = self.seen(&pair.key, &pair.value, pair.revision);
                self.pairs.push(Pair { key, value, revision: pair.revision, version: pair.version });
            }
            let pairs = Span::since(first, &self.pairs);
            self.results.push(StepResult { pairs, count: found.count, deleted: found.deleted });
        }
        Span::since(start, &self.results)
    }

    /// A key and its value, likely the last ones seen at revision `at`; 0 for none.
    fn seen(&mut self, key: &str, value: &recorded::Value<'_>, at: i64) -> (Symbol, ValueId) {
        let is_this = |(symbol, id): &(Symbol, ValueId)| {
            symbol.index() < self.texts.len()
                && self.texts.get(*symbol) == key
                && self.values.is_recorded(*id, &value.text, value.hash)
        };
        if let Some(seen) = self.sightings.last(at).filter(is_this) {
            return seen;
        }
        let seen = (self.asked_key(key), self.value(value));
        if at > 0 && self.operations.len() > MIN_CACHED_OPERATIONS {
            self.sightings.keep(at, seen);
        }
        seen
    }

    /// Adds a part of a watch.
    pub fn watch(&mut self, position: Position, part: &watch::Part<'_>) -> Result<(), Refused> {
        match part {
            watch::Part::Begin => {
                self.begun = Some((position, self.responses.len()));
                self.object = (self.watches.len(), self.responses.len());
                self.in_piece = false;
                Ok(())
            }
            watch::Part::Number(number) => {
                // Fields come in any order, so earlier rows of this object belong to the piece.
                let (watches, responses) = self.object;
                let watch = (self.watches.len() > watches).then_some(watches as u32);
                if let Some(watch) = self.watches.get_mut(watches) {
                    watch.responses.len = 0;
                }
                let responses = Span::since(responses, &self.responses);
                self.pieces.push(Piece { position, number: *number, watch, responses });
                self.in_piece = true;
                Ok(())
            }
            watch::Part::Request(request) => {
                let Some((position, first)) = self.begun.take() else {
                    return refused("one request per watch", "a second request");
                };
                let mut responses = Span::since(first, &self.responses);
                if let Some(piece) = self.pieces.last_mut().filter(|_| self.in_piece) {
                    piece.watch = Some(self.watches.len() as u32);
                    responses.len = 0;
                }
                let end = if request.end.is_empty() { Symbol::NONE } else { self.texts.intern(&request.end) };
                // The suite always writes all fields of a request, and added this one in the same commit as creation marks (etcd
                // 9aad6700d).
                if request.previous.is_some() {
                    self.creation_marks = self.creation_marks.max(CreationMarks::Likely);
                }
                self.watches.push(Watch {
                    position,
                    client: NO_CLIENT,
                    key: self.texts.intern(&request.key),
                    end,
                    prefix: request.prefix,
                    revision: request.revision,
                    progress: request.progress,
                    previous: request.previous == Some(true),
                    responses,
                });
                Ok(())
            }
            watch::Part::Response(response) => self.response(position, response),
        }
    }

    fn response(&mut self, position: Position, response: &watch::Response<'_>) -> Result<(), Refused> {
        if let Some(time) = response.time.filter(|time| *time < 0) {
            return refused(
                "a time since the suite began",
                Found::described(format!("a response received at {time} ns")),
            );
        }
        if response.revision > HIGHEST_REVISION {
            return refused(
                "a revision not above 2^60",
                Found::described(format!("a response of revision {}", response.revision)),
            );
        }
        let first = self.events.len();
        for event in &response.events {
            let delete = match &*event.kind {
                "put-operation" => false,
                "delete-operation" => true,
                other => {
                    self.events.truncate(first);
                    return refused("an event of a known type", Found::text("a type", other));
                }
            };
            if !(1..=HIGHEST_REVISION).contains(&event.revision) {
                self.events.truncate(first);
                return refused(
                    "an event with a revision above 0, and not above 2^60",
                    Found::described(format!("an event of revision {}", event.revision)),
                );
            }
            let previous = event.previous.as_ref().map(|previous| Previous {
                value: self.value(&previous.value),
                revision: previous.revision,
                version: previous.version,
            });
            if event.create.is_some() {
                self.creation_marks = CreationMarks::Written;
            }
            let event = Event {
                line: event.place.0,
                offset: event.place.1,
                key: self.texts.intern(&event.key),
                value: self.value(&event.value),
                revision: event.revision,
                delete,
                create: event.create == Some(true),
                previous,
            };
            self.events.push(event);
        }
        let events = Span::since(first, &self.events);
        let error = if response.error.is_empty() { Symbol::NONE } else { self.texts.intern(&known(&response.error)) };
        self.responses.push(Response {
            line: position.line,
            offset: position.offset,
            // The suite omits a zero, and no response arrives at the instant at which it begins.
            time: response.time.filter(|time| *time > 0).map_or(Time::UNKNOWN, Time),
            revision: response.revision,
            progress: response.progress,
            error,
            events,
        });
        if let Some(piece) = self.pieces.last_mut().filter(|_| self.in_piece) {
            piece.responses.len += 1;
            return Ok(());
        }
        // Responses wait until the request is known.
        if let (None, Some(watch)) = (self.begun, self.watches.last_mut()) {
            watch.responses.len += 1;
        }
        Ok(())
    }
}

/// The member's number, in hexadecimal. Reports of two months have a decimal number instead.
fn member(answer: &recorded::Answer<'_>) -> u64 {
    if answer.member.is_empty() { answer.member_number } else { u64::from_str_radix(&answer.member, 16).unwrap_or(0) }
}
