//! Small etcd histories.

mod corruption;
mod draw;
mod recording;

use std::fmt;

/// A key, as an index into [`KEYS`].
pub type Key = u8;

/// Names in ascending order.
const KEYS: [&str; 4] = ["a", "ab", "b", "c"];

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(pub u8);

impl Name {
    /// The value of a key that was read without its value.
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
    /// Key, value, and recorded lease.
    Put(Key, Name, i64),
    Delete(Key),
    /// The keys from one on, and below another.
    DeleteBetween(Key, Key),
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

/// Keys with value, revision and number of changes.
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
    /// Proposals of the server in order, with the leases of puts. An expired lease is a revocation.
    pub proposed: Vec<Ask>,
    /// Number of these that the log of the only member has, all committed; `None`: no log.
    pub logged: Option<usize>,
}

impl Ask {
    /// Whether the request goes through the log.
    pub fn is_proposed(&self) -> bool {
        !matches!(self, Ask::Range(_))
    }
}

impl Small {
    /// The entries of the log.
    pub fn log(&self) -> &[Ask] {
        &self.proposed[..self.logged.unwrap_or(0)]
    }

    /// Size for choosing the smallest of several failures.
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
        self.log().iter().try_for_each(|entry| writeln!(f, "  logged {entry:?}"))
    }
}
