//! Seeded histories of one register: clients read, write and compare-and-set, and some answers are lost.
//!
//! A discrete-event simulation. Each client invokes at exponentially distributed intervals. An operation lasts an
//! exponentially distributed time, and its linearization point is uniformly distributed in it. With equal means about
//! half of the clients are busy at a time. An operation of unknown outcome takes effect with probability one half,
//! and its client continues under another name. The linearization points explain every answer, unless a stale read is
//! requested.

use super::chance::Chance;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;

/// Mean length of an operation, and mean pause between two of one client.
const MEAN: f64 = 1000.0;

/// Parameters of a history.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Concurrent clients.
    pub clients: usize,
    /// Number of operations.
    pub operations: usize,
    /// Number of values; 0: every write has its own.
    pub values: u64,
    /// Shares of reads and writes; the rest are compare-and-sets.
    pub shares: [f64; 2],
    /// Probability of an unknown outcome.
    pub unknown: f64,
    /// Staleness in writes of the first completed read after the median moment; 0: all answers are right.
    pub stale: usize,
    /// Seed of the pseudo-random numbers.
    pub seed: u64,
}

/// An operation on the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Reads the value.
    Read,
    /// Writes a value.
    Write(u64),
    /// Sets the second value if the register has the first.
    Cas(u64, u64),
}

/// The answer of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The value read; `None` before the first write.
    Value(Option<u64>),
    /// The write completed.
    Written,
    /// Whether the value was set.
    Set(bool),
    /// The outcome is unknown.
    Unknown,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The client.
    pub client: u32,
    /// Time of the invocation.
    pub invoke: u64,
    /// Time of the answer; without meaning if the outcome is unknown.
    pub returned: u64,
    /// The operation.
    pub ask: Ask,
    /// The answer.
    pub end: End,
}

impl Family {
    /// Half reads, half writes, each write with its own value.
    pub fn unique(clients: usize, operations: usize, unknown: f64) -> Family {
        Family { clients, operations, values: 0, shares: [0.5, 0.5], unknown, stale: 0, seed: 1 }
    }

    /// Reads, writes and compare-and-sets of five values, in Jepsen's proportions.
    pub fn five_values(clients: usize, operations: usize, unknown: f64) -> Family {
        Family { values: 5, shares: [0.34, 0.33], ..Family::unique(clients, operations, unknown) }
    }

    /// Twenty values, and one read that is stale by 25 writes.
    pub fn stale_among_twenty(clients: usize, operations: usize, unknown: f64) -> Family {
        Family { values: 20, shares: [0.5, 0.25], stale: 25, ..Family::unique(clients, operations, unknown) }
    }

    /// A name for tables and files.
    pub fn name(&self) -> String {
        let values = if self.values == 0 { "unique".to_owned() } else { format!("{}-values", self.values) };
        let mut name = format!("{values}-{}x{}", self.clients, self.operations);
        if self.unknown > 0.0 {
            let _ = write!(name, "-unknown-{}", self.unknown * 100.0);
        }
        if self.stale > 0 {
            let _ = write!(name, "-stale-{}", self.stale);
        }
        name
    }

    /// Draws the history, sorted by invocation.
    pub fn draw(&self) -> Vec<Access> {
        #[derive(PartialEq, Eq, PartialOrd, Ord)]
        enum Step {
            Invoke { client: usize },
            Effect { operation: usize },
        }
        let mut chance = Chance::new(self.seed);
        let mut names: Vec<u32> = (0..self.clients as u32).collect();
        let mut next_name = self.clients as u32;
        let mut seen: Vec<u64> = vec![0; self.clients];
        let mut history: Vec<Access> = Vec::with_capacity(self.operations);
        let mut owners: Vec<usize> = Vec::with_capacity(self.operations);
        let mut value = None;
        let mut versions: Vec<Option<u64>> = vec![None];
        let mut fresh = 0;
        let mut effects = 0;
        let mut stale = (self.stale > 0).then_some(self.stale);
        let mut agenda = BinaryHeap::new();
        for (sequence, client) in (0..self.clients).enumerate() {
            agenda.push(Reverse((chance.exponential(MEAN) as u64, sequence, Step::Invoke { client })));
        }
        let mut sequence = self.clients;
        while let Some(Reverse((now, _, step))) = agenda.pop() {
            match step {
                Step::Invoke { client } if history.len() < self.operations => {
                    let kind = chance.fraction();
                    let mut new_value = |chance: &mut Chance| {
                        fresh += 1;
                        if self.values == 0 { fresh } else { chance.below(self.values) }
                    };
                    let ask = if kind < self.shares[0] {
                        Ask::Read
                    } else if kind < self.shares[0] + self.shares[1] {
                        Ask::Write(new_value(&mut chance))
                    } else {
                        let from = if self.values == 0 { seen[client] } else { chance.below(self.values) };
                        Ask::Cas(from, new_value(&mut chance))
                    };
                    let length = 2 + chance.exponential(MEAN) as u64;
                    let effect = now + 1 + (chance.fraction() * (length - 1) as f64) as u64;
                    let is_unknown = chance.happens(self.unknown);
                    let happens = !is_unknown || chance.happens(0.5);
                    history.push(Access {
                        client: names[client],
                        invoke: now,
                        returned: now + length,
                        ask,
                        // A completed operation gets its answer at its linearization point.
                        end: if is_unknown { End::Unknown } else { End::Written },
                    });
                    owners.push(client);
                    if is_unknown {
                        names[client] = next_name;
                        next_name += 1;
                    }
                    if happens {
                        agenda.push(Reverse((effect, sequence, Step::Effect { operation: history.len() - 1 })));
                    }
                    let pause = chance.exponential(MEAN) as u64;
                    agenda.push(Reverse((now + length + 1 + pause, sequence + 1, Step::Invoke { client })));
                    sequence += 2;
                }
                Step::Invoke { .. } => {}
                Step::Effect { operation } => {
                    let client = owners[operation];
                    let access = &mut history[operation];
                    let before = value;
                    let mut end = match access.ask {
                        Ask::Read => End::Value(value),
                        Ask::Write(new) => {
                            value = Some(new);
                            End::Written
                        }
                        Ask::Cas(from, to) => {
                            let sets = value == Some(from);
                            value = if sets { Some(to) } else { value };
                            End::Set(sets)
                        }
                    };
                    if value != before || access.ask == Ask::Read {
                        seen[client] = value.unwrap_or(0);
                    }
                    if matches!(access.ask, Ask::Write(_)) || value != before {
                        versions.push(value);
                    }
                    effects += 1;
                    if let (Some(back), End::Value(_), true) = (stale, end, access.end != End::Unknown)
                        && 2 * effects > self.operations
                        && versions.len() > back
                    {
                        stale = None;
                        end = End::Value(versions[versions.len() - 1 - back]);
                    }
                    if access.end != End::Unknown {
                        access.end = end;
                    }
                }
            }
        }
        assert!(stale.is_none(), "no read came after {} writes", self.stale);
        history
    }
}

/// `writes` writes of unknown outcome, then a read of a value that no client writes.
pub fn ladder(writes: u64) -> Vec<Access> {
    let mut history: Vec<Access> = (0..writes).map(|at| unseen_write(at, 10 + at)).collect();
    history.push(read(writes as u32, 10 + writes + 1000, writes + 1));
    history
}

/// `writes` writes of unknown outcome, half of which are then read in order. With `wrong`, an old value is read once
/// more at the end.
pub fn read_back(writes: u64, wrong: bool) -> Vec<Access> {
    let mut history: Vec<Access> = (0..writes).map(|at| unseen_write(at, 10 + at)).collect();
    let reader = writes as u32;
    for at in 0..writes / 2 {
        history.push(read(reader, 10 + writes + 1000 + 20 * at, 2 * at + 1));
    }
    if wrong {
        history.push(read(reader, 10 + writes + 1000 + 20 * (writes / 2), 1));
    }
    history
}

/// Client `at` writes `at + 1`, and its outcome is unknown.
fn unseen_write(at: u64, invoke: u64) -> Access {
    Access { client: at as u32, invoke, returned: u64::MAX, ask: Ask::Write(at + 1), end: End::Unknown }
}

fn read(client: u32, invoke: u64, value: u64) -> Access {
    Access { client, invoke, returned: invoke + 10, ask: Ask::Read, end: End::Value(Some(value)) }
}

/// The history as a Jepsen log, which has the order of events and no times. Events of equal time are written so that
/// they stay concurrent.
pub fn jepsen_log(history: &[Access]) -> String {
    let mut events: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * history.len());
    for (at, access) in history.iter().enumerate() {
        events.push((access.invoke, false, at));
        let end = if access.end == End::Unknown { u64::MAX } else { access.returned };
        events.push((end, true, at));
    }
    events.sort_unstable();
    let mut log = String::with_capacity(48 * events.len());
    for (_, ended, at) in events {
        let access = &history[at];
        let verb = match access.ask {
            Ask::Read => ":read",
            Ask::Write(_) => ":write",
            Ask::Cas(..) => ":cas",
        };
        let (kind, shows_answer) = match (ended, access.end) {
            (false, _) => (":invoke", false),
            (true, End::Unknown) => (":info", true),
            (true, End::Set(false)) => (":fail", true),
            (true, _) => (":ok", true),
        };
        let _ = write!(log, "INFO  jepsen.util - {}\t{kind}\t{verb}\t", access.client);
        let _ = match (access.ask, access.end) {
            (_, End::Unknown) if shows_answer => writeln!(log, ":timed-out"),
            (Ask::Read, End::Value(Some(value))) if shows_answer => writeln!(log, "{value}"),
            (Ask::Read, _) => writeln!(log, "nil"),
            (Ask::Write(value), _) => writeln!(log, "{value}"),
            (Ask::Cas(from, to), _) => writeln!(log, "[{from} {to}]"),
        };
    }
    log
}
