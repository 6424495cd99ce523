//! Reports of etcd's robustness suite: clients write, list and read a few keys while the server stalls at times.
//!
//! Requests take effect one after the other. In a stall none does: writes that wait longer than the deadline get no
//! answer, and some of them are lost. One watch covers all keys.

use super::chance::Chance;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write as _;

/// Parameters of a report.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Clients whose requests are writes in seven of ten cases.
    pub writers: usize,
    /// Clients that only read.
    pub readers: usize,
    /// Number of operations, unanswered ones included.
    pub operations: usize,
    /// Start and period of the stalls, in milliseconds. Each lasts a second.
    pub stalls: Option<(u64, u64)>,
    /// Seed of the pseudo-random numbers.
    pub seed: u64,
}

/// A report: the files of its clients, and the file of its watch.
pub struct Report {
    /// `operations.json` of each client.
    pub operations: Vec<String>,
    /// `watch.json`.
    pub watch: String,
    /// Number of operations.
    pub count: usize,
    /// Writes of unknown outcome.
    pub unknown: usize,
    /// The last revision of the store.
    pub revision: i64,
}

/// Number of keys that are written.
const KEYS: u64 = 10;

/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;

/// Latency of each direction, in nanoseconds.
const LATENCY: u64 = 2 * MS;

/// Mean pause between two requests of a client, in nanoseconds.
const THINKING: f64 = 6.0 * MS as f64;

const DEADLINE: u64 = 200 * MS;

/// Probability that a write that times out is lost.
const LOST: f64 = 0.3;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ask {
    /// Key, and the revision that the write expects.
    Put(u64, i64),
    Delete(u64, i64),
    Get(u64),
    List,
}

#[derive(Default)]
struct Store {
    /// Value, revision and number of changes.
    keys: BTreeMap<u64, (u64, i64, i64)>,
    revision: i64,
    events: String,
}

fn pair(text: &mut String, key: u64, (value, changed, version): (u64, i64, i64)) {
    let _ = write!(
        text,
        r#"{{"Key":"/registry/pods/default/pod{key:02}","Value":{{"Value":"{value}"}},"ModRevision":{changed},"Version":{version}}}"#
    );
}

impl Store {
    fn event(&mut self, key: u64, at: u64, after: Option<u64>, before: Option<(u64, i64, i64)>) {
        let kind = if after.is_some() { "put" } else { "delete" };
        let value = after.map(|value| format!(r#""Value":"{value}""#)).unwrap_or_default();
        let create = if before.is_none() { r#","IsCreate":true"# } else { "" };
        let comma = if self.events.is_empty() { "" } else { "," };
        let _ = write!(
            self.events,
            r#"{comma}{{"Events":[{{"Type":"{kind}-operation","Key":"/registry/pods/default/pod{key:02}","Value":{{{value}}},"Revision":{}{create}}}],"Revision":{},"Time":{at}}}"#,
            self.revision, self.revision
        );
    }

    /// Applies a request; returns the answer without its revision.
    fn apply(&mut self, ask: Ask, value: u64, at: u64) -> String {
        let mut text = String::new();
        match ask {
            Ask::Put(key, expected) | Ask::Delete(key, expected) => {
                let before = self.keys.get(&key).copied();
                if before.map_or(0, |(_, changed, _)| changed) != expected {
                    text.push_str(r#""Txn":{"Failure":true,"Results":[{"KVs":["#);
                    let count = u32::from(before.is_some());
                    before.into_iter().for_each(|live| pair(&mut text, key, live));
                    let _ = write!(text, r#"],"Count":{count},"Deleted":0}}]}}"#);
                    return text;
                }
                self.revision += 1;
                let deleted = match ask {
                    Ask::Put(..) => {
                        let version = before.map_or(0, |(.., version)| version) + 1;
                        self.keys.insert(key, (value, self.revision, version));
                        self.event(key, at, Some(value), before);
                        0
                    }
                    _ => {
                        self.keys.remove(&key);
                        self.event(key, at, None, before);
                        1
                    }
                };
                let _ = write!(
                    text,
                    r#""Txn":{{"Failure":false,"Results":[{{"KVs":null,"Count":0,"Deleted":{deleted}}}]}}"#
                );
            }
            Ask::Get(key) => {
                text.push_str(r#""Range":{"KVs":["#);
                let found = self.keys.get(&key).copied();
                found.into_iter().for_each(|live| pair(&mut text, key, live));
                let _ = write!(text, r#"],"Count":{}}}"#, u32::from(found.is_some()));
            }
            Ask::List => {
                text.push_str(r#""Range":{"KVs":["#);
                for (n, (key, live)) in self.keys.iter().enumerate() {
                    text.push_str(if n > 0 { "," } else { "" });
                    pair(&mut text, *key, *live);
                }
                let _ = write!(text, r#"],"Count":{}}}"#, self.keys.len());
            }
        }
        text
    }
}

fn asked(ask: Ask, value: u64) -> String {
    let key = |key: u64| format!("/registry/pods/default/pod{key:02}");
    match ask {
        Ask::Put(of, expected) | Ask::Delete(of, expected) => {
            let key = key(of);
            let step = match ask {
                Ask::Put(..) => format!(
                    r#"{{"Type":"put-operation","Put":{{"Key":"{key}","Value":{{"Value":"{value}"}},"LeaseID":0}}}}"#
                ),
                _ => format!(r#"{{"Type":"delete-operation","Delete":{{"Key":"{key}"}}}}"#),
            };
            format!(
                r#"{{"Type":"txn","Txn":{{"Conditions":[{{"Key":"{key}","ExpectedRevision":{expected},"ExpectedVersion":0}}],"OperationsOnSuccess":[{step}],"OperationsOnFailure":[{{"Type":"range-operation","Range":{{"Start":"{key}","End":"","Limit":0,"KeysOnly":false}}}}]}}}}"#
            )
        }
        Ask::Get(of) => {
            format!(r#"{{"Type":"range","Range":{{"Start":"{}","End":"","Limit":0,"KeysOnly":false,"Revision":0}}}}"#, key(of))
        }
        Ask::List => r#"{"Type":"range","Range":{"Start":"/registry/pods/","End":"/registry/pods0","Limit":0,"KeysOnly":false,"Revision":0}}"#.to_owned(),
    }
}

/// The next event: its time, the client, the call time; and the request that takes effect, or `None` to send the next
/// one.
type Step = (u64, usize, u64, Option<(Ask, u64)>);

impl Traffic {
    /// A few seconds of traffic with a stall of a second in the middle.
    pub fn stalled(writers: usize, readers: usize, operations: usize) -> Traffic {
        Traffic { writers, readers, operations, stalls: Some((2_000, u64::MAX)), seed: 1 }
    }

    /// Traffic without a stall.
    pub fn steady(writers: usize, readers: usize, operations: usize) -> Traffic {
        Traffic { stalls: None, ..Traffic::stalled(writers, readers, operations) }
    }

    /// The end of the stall that includes a moment, if there is one.
    fn held(&self, at: u64) -> Option<u64> {
        let (first, every) = self.stalls?;
        let since = at.checked_sub(first * MS)?;
        let begun = since - since % every.saturating_mul(MS);
        (since - begun < 1_000 * MS).then_some(first * MS + begun + 1_000 * MS)
    }

    fn ask(&self, client: usize, store: &Store, dice: &mut Chance) -> Ask {
        let key = dice.below(KEYS);
        let writes = client < self.writers && dice.happens(0.7);
        if !writes {
            let lists = if client < self.writers { 0.5 } else { 0.25 };
            return if dice.happens(lists) { Ask::List } else { Ask::Get(key) };
        }
        let expected = store.keys.get(&key).map_or(0, |(_, changed, _)| *changed);
        if expected > 0 && dice.happens(0.05) { Ask::Delete(key, expected) } else { Ask::Put(key, expected) }
    }

    /// Draws the report.
    pub fn draw(&self) -> Report {
        let mut dice = Chance::new(self.seed);
        let clients = self.writers + self.readers;
        let mut store = Store { revision: 1, ..Store::default() };
        let mut report = Report {
            operations: vec![String::new(); clients],
            watch: String::new(),
            count: 0,
            unknown: 0,
            revision: 1,
        };
        let mut next: BinaryHeap<Reverse<Step>> = BinaryHeap::new();
        for client in 0..clients {
            next.push(Reverse((dice.exponential(THINKING) as u64, client, 0, None)));
        }
        let mut values = 0;
        let mut sent = 0;
        while let Some(Reverse((at, client, call, pending))) = next.pop() {
            let Some((ask, value)) = pending else {
                if sent == self.operations {
                    continue;
                }
                sent += 1;
                values += 1;
                let ask = self.ask(client, &store, &mut dice);
                let arrives = at + LATENCY;
                let takes = self.held(arrives).map_or(arrives, |end| end + dice.below(50 * MS));
                next.push(Reverse((takes, client, at, Some((ask, values)))));
                if takes + LATENCY > at + DEADLINE {
                    // The client continues; its request waits.
                    next.push(Reverse((at + DEADLINE + dice.exponential(THINKING) as u64, client, 0, None)));
                }
                continue;
            };
            let late = at + LATENCY > call + DEADLINE;
            let writes = matches!(ask, Ask::Put(..) | Ask::Delete(..));
            let text = &mut report.operations[client];
            let (answer, returned) = match late {
                false => {
                    let answer = store.apply(ask, value, at);
                    (format!(r#"{{{answer},"Revision":{},"Error":""}}"#, store.revision), at + LATENCY)
                }
                true => {
                    if writes && !dice.happens(LOST) {
                        store.apply(ask, value, at);
                    }
                    report.unknown += usize::from(writes);
                    (r#"{"Revision":0,"Error":"context deadline exceeded"}"#.to_owned(), call + DEADLINE)
                }
            };
            report.count += 1;
            let _ = writeln!(
                text,
                r#"{{"ClientId":{client},"Input":{},"Call":{call},"Output":{answer},"Return":{returned}}}"#,
                asked(ask, value)
            );
            if !late {
                next.push(Reverse((returned + dice.exponential(THINKING) as u64, client, 0, None)));
            }
        }
        report.revision = store.revision;
        report.watch = format!(
            r#"{{"Request":{{"Key":"","Revision":1,"WithPrefix":true,"WithProgressNotify":true,"WithPrevKV":false}},"Responses":[{}]}}"#,
            store.events
        );
        report
    }
}

/// Puts of unknown outcome to one key, sent one after the other, of which every second is observed. `alike`: all have
/// one value.
pub fn unanswered(puts: usize, alike: bool) -> Report {
    let mut store = Store { revision: 1, ..Store::default() };
    let mut text = String::new();
    for n in 0..puts as u64 {
        let value = if alike { 7 } else { n };
        let call = 10 * n;
        let _ = writeln!(
            text,
            r#"{{"ClientId":0,"Input":{{"Type":"txn","Txn":{{"Conditions":null,"OperationsOnSuccess":[{{"Type":"put-operation","Put":{{"Key":"/registry/pods/default/pod00","Value":{{"Value":"{value}"}},"LeaseID":0}}}}],"OperationsOnFailure":null}}}},"Call":{call},"Output":{{"Revision":0,"Error":"context deadline exceeded"}},"Return":{}}}"#,
            call + 5
        );
        if n % 2 == 0 {
            let before = store.keys.get(&0).copied();
            store.revision += 1;
            store.keys.insert(0, (value, store.revision, before.map_or(0, |(.., version)| version) + 1));
            store.event(0, 10 * puts as u64, Some(value), before);
        }
    }
    let watch = format!(r#"{{"Request":{{"Key":"","Revision":1,"WithPrefix":true}},"Responses":[{}]}}"#, store.events);
    Report { operations: vec![text], watch, count: puts, unknown: puts, revision: store.revision }
}
