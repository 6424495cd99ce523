//! Draws an etcd cluster: requests as operations, watches with their events, and the progress of each client and watch.

use super::{Drawing, EMBEDDED, Row, WORDS};
use crate::explain::terminal_text::clip;
use crate::history::etcd::{Cluster, Interval, Operation, Outcome, Request, Response, Step, Watch};
use crate::history::{KeyId, Revision, Symbol, Verb};
use crate::ingest::Time;
use crate::report::html::picture::{Events, Line};

/// The only revision counter of a cluster.
const DOMAIN: usize = 0;

/// The verb and key under which a request is drawn.
struct About {
    verb: Verb,
    key: Symbol,
}

impl Drawing<'_> {
    /// Every revision in an answer or event, with its time.
    pub(super) fn heads(cluster: &Cluster) -> Vec<(Time, Revision)> {
        let recording = &cluster.recording;
        let answers = recording.operations.iter().filter(|o| o.revision > 0).map(|o| (o.returned, o.revision));
        let events = recording.responses.iter().filter(|r| reached(cluster, r) > 0);
        let events = events.map(|r| (r.time, reached(cluster, r)));
        answers.chain(events).filter(|(time, _)| time.is_known()).map(|(time, r)| (time, counted(r))).collect()
    }

    /// Adds the lanes and lines of a cluster.
    pub(super) fn cluster(&mut self) {
        let Some(cluster) = self.history.cluster() else { return };
        let recording = &cluster.recording;
        let (mut operations, mut events) = (EMBEDDED, EMBEDDED);
        for (number, client) in (0..).zip(&recording.clients) {
            let Some(&lane) = self.lane_of.get(&cluster.incarnation(number)) else { continue };
            for operation in recording.operations_of(client) {
                let known = operation.outcome != Outcome::Unknown;
                let u = if known { operation.returned } else { Time::UNKNOWN };
                let t = self.time(operation.call);
                if t < 0 {
                    continue;
                }
                if operations == 0 || !self.near.covers(operation.call, u) {
                    self.picture.omitted[0] += 1;
                    continue;
                }
                operations -= 1;
                let row = self.request(cluster, operation, t);
                self.rows[lane].push(row);
            }
            let mut ticks = Vec::new();
            for watch in recording.watches_of(client) {
                let responses = watch.responses.of(&recording.responses);
                let known = || responses.iter().map(|r| r.time).filter(|time| time.is_known());
                let (Some(first), Some(last)) = (known().min(), known().max()) else { continue };
                if self.near.covers(first, last) {
                    let row = self.watch(cluster, watch, first, last);
                    self.rows[lane].push(row);
                }
                for response in responses.iter().filter(|response| response.time.is_known()) {
                    let new = response.events.of(&recording.events).len().max(1);
                    if events < new || !self.near.covers(response.time, response.time) {
                        self.picture.omitted[1] += new as u64;
                        continue;
                    }
                    events -= new;
                    self.add_ticks(cluster, watch, response, &mut ticks);
                }
                self.watched(cluster, watch, lane, self.time(last));
            }
            self.answers(recording.operations_of(client), lane);
            ticks.sort_by_key(|(t, ..)| *t);
            let column = &mut self.picture.lanes[lane].events;
            ticks.into_iter().for_each(|tick| push(column, tick));
        }
    }

    fn request(&mut self, cluster: &Cluster, operation: &Operation, t: i64) -> Row {
        let recording = &cluster.recording;
        let about = about(cluster, &operation.request);
        let mut words = recording.request_words(&operation.request);
        if operation.failure {
            words += ", otherwise";
        }
        if operation.error.is_some() {
            words += &format!(": {}", recording.texts.get(operation.error));
        }
        let server = cluster.server(operation.member);
        if server.is_some() {
            words += &format!(" [{}]", self.history.server_name(server));
        }
        Row {
            t,
            u: match operation.outcome {
                Outcome::Unknown => -1,
                // Reports give a refusal no time of its own.
                Outcome::Refused => self.time(operation.returned).max(t),
                _ => self.time(operation.returned),
            },
            r: self.revision_number(operation.revision),
            verb: about.verb,
            key: self.named(cluster, about.key),
            status: match operation.outcome {
                Outcome::Answered => 200,
                Outcome::Compacted | Outcome::Future | Outcome::Refused => 400,
                Outcome::Unknown => 0,
            },
            position: operation.position,
            answer: operation.position,
            word: Some(self.word(words)),
        }
    }

    fn watch(&mut self, cluster: &Cluster, watch: &Watch, first: Time, last: Time) -> Row {
        let words = cluster.recording.watch_words(watch);
        Row {
            t: self.time(first),
            u: self.time(last),
            r: -1,
            verb: Verb::Watch,
            key: self.named(cluster, watch.key),
            status: 200,
            position: watch.position,
            answer: watch.position,
            word: Some(self.word(words)),
        }
    }

    /// Adds the events of a response, or its progress or error if it has none.
    fn add_ticks(&mut self, cluster: &Cluster, watch: &Watch, response: &Response, ticks: &mut Vec<Tick>) {
        let t = self.time(response.time);
        let file = watch.position.file.0;
        for event in response.events.of(&cluster.recording.events) {
            let kind = match (event.delete, event.create) {
                (true, _) => 'D',
                (_, true) => 'A',
                _ => 'M',
            };
            let key = self.named(cluster, event.key);
            ticks.push((t, self.revision_number(event.revision), key, kind, file, event.line));
        }
        let kind = if response.error.is_some() { 'R' } else { 'B' };
        if response.events.len == 0 && (response.error.is_some() || response.progress) {
            ticks.push((t, self.revision_number(response.revision), -1, kind, file, response.line));
        }
    }

    /// The progress of a watch: the revision of its last event or notification.
    fn watched(&mut self, cluster: &Cluster, watch: &Watch, lane: usize, end: i64) {
        let mut points = Vec::new();
        for response in watch.responses.of(&cluster.recording.responses).iter().filter(|r| r.time.is_known()) {
            let r = self.revision_number(reached(cluster, response));
            if r >= 0 {
                points.extend([self.time(response.time), r]);
            }
        }
        let scope = clip(&cluster.recording.watch_words(watch), WORDS);
        self.line(lane, scope, points, end);
    }

    /// The progress of a client: the revision of the store in its last answer. Answers to overlapping requests have no order, so
    /// none of them counts as a fall.
    fn answers(&mut self, operations: &[Operation], lane: usize) {
        let mut answered: Vec<&Operation> =
            operations.iter().filter(|o| o.revision > 0 && o.call.is_known() && o.returned.is_known()).collect();
        answered.sort_by_key(|o| (o.returned, o.call));
        let mut points = Vec::new();
        let mut before = (Time::UNKNOWN, -1);
        for operation in answered {
            let mut r = self.revision_number(operation.revision);
            if before.0.is_known() && operation.call < before.0 {
                r = r.max(before.1);
            }
            before = (operation.returned, r);
            if r >= 0 {
                points.extend([self.time(operation.returned), r]);
            }
        }
        self.line(lane, "answers".to_owned(), points, -1);
    }

    fn line(&mut self, lane: usize, scope: String, points: Vec<i64>, end: i64) {
        if points.is_empty() {
            return;
        }
        let points = self.thin(points);
        self.picture.lines.push(Line { lane, scope, domain: DOMAIN, points, end });
    }

    fn revision_number(&self, number: i64) -> i64 {
        self.revision(DOMAIN, counted(number))
    }

    fn named(&mut self, cluster: &Cluster, key: Symbol) -> i64 {
        let key = if key.is_some() { cluster.key(key) } else { KeyId::NONE };
        self.key(key)
    }
}

fn counted(number: i64) -> Revision {
    Revision::new(u128::try_from(number).unwrap_or(0))
}

/// A watch event: time, revision, key, kind, file, line.
type Tick = (i64, i64, i64, char, u32, u32);

fn push(events: &mut Events, (t, r, k, y, f, l): Tick) {
    events.t.push(t);
    events.r.push(r);
    events.k.push(k);
    events.y.push(y);
    events.f.push(f);
    events.l.push(l);
}

/// The revision that a response reaches, by its last event or its progress; 0: none.
fn reached(cluster: &Cluster, response: &Response) -> i64 {
    match response.events.of(&cluster.recording.events).last() {
        Some(event) => event.revision,
        None if response.progress => response.revision,
        None => 0,
    }
}

/// Whether a request reads or writes, and its most telling key.
fn about(cluster: &Cluster, request: &Request) -> About {
    let recording = &cluster.recording;
    match request {
        Request::Range(range) if range.keys.end.is_some() => About { verb: Verb::List, key: range.keys.key },
        Request::Range(range) => About { verb: Verb::Get, key: range.keys.key },
        Request::Txn(txn) => {
            let steps = txn.success.of(&recording.requests.steps);
            let steps = || steps.iter().chain(txn.failure.of(&recording.requests.steps));
            let write = steps().find_map(|step| match step {
                Step::Put { key, .. } => Some(About { verb: Verb::Update, key: *key }),
                Step::Delete(Interval { key, .. }) => Some(About { verb: Verb::Delete, key: *key }),
                _ => None,
            });
            let read = || {
                steps().find_map(|step| match step {
                    Step::Range(range) => Some(About { verb: Verb::Get, key: range.keys.key }),
                    _ => None,
                })
            };
            write.or_else(read).unwrap_or(About { verb: Verb::Other, key: Symbol::NONE })
        }
        // The end of a lease deletes its keys.
        Request::LeaseRevoke { .. } => About { verb: Verb::Delete, key: Symbol::NONE },
        Request::LeaseGrant { .. } | Request::Compact { .. } | Request::Defragment | Request::Other => {
            About { verb: Verb::Other, key: Symbol::NONE }
        }
    }
}
