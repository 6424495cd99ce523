//! Isolation levels, and which of them is stronger.
//!
//! | level | excludes | source |
//! | --- | --- | --- |
//! | read-uncommitted | G0: a cycle of writes | Adya 1999, PL-1 |
//! | read-committed | G1: aborted and intermediate reads, cycles of writes and reads | Adya 1999, PL-2 |
//! | monotonic-atomic-view | a read that misses a transaction which an earlier read saw | Bailis 2013; the read committed of Biswas and Enea 2019 |
//! | read-atomic | a fractured read: one key of a transaction seen, another one missed | Cerone 2015 |
//! | causal | a read that misses a write which happened before it | Biswas and Enea 2019 |
//! | parallel-snapshot | G-single: a cycle with one anti-dependency | Cerone 2015; Adya's PL-2+ without sessions |
//! | prefix | a snapshot that is no prefix of the commits, such as a long fork | Cerone 2015 |
//! | snapshot-isolation | G-nonadjacent too: a cycle without two adjacent anti-dependencies | Cerone and Gotsman 2016 |
//! | serializable | every cycle | Adya 1999, PL-3 |
//!
//! A level may also respect the order of each session, or real time (Daudjee and Salem 2006; Crooks 2017).

use std::fmt;

/// What a level promises about dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isolation {
    /// PL-1.
    ReadUncommitted,
    /// PL-2.
    ReadCommitted,
    /// Once a transaction saw another one, its later reads do not miss it.
    MonotonicAtomicView,
    /// A transaction sees all or nothing of another one.
    ReadAtomic,
    /// A transaction sees everything that happened before what it sees.
    Causal,
    /// Snapshots that are closed under what they saw, and no two concurrent writes of one key.
    ParallelSnapshot,
    /// Snapshots that are prefixes of one order of commits.
    Prefix,
    /// Both.
    Snapshot,
    /// One transaction at a time.
    Serializable,
}

/// The order that a level respects besides dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Respects {
    /// None.
    Dependencies,
    /// The order of each session.
    Sessions,
    /// A transaction that ended before another one began comes first.
    RealTime,
}

/// An isolation level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level {
    /// The promise about dependencies.
    pub isolation: Isolation,
    /// The order that it respects besides.
    pub respects: Respects,
}

impl Isolation {
    /// All, a weaker one before a stronger one.
    pub const ALL: [Isolation; 9] = [
        Isolation::ReadUncommitted,
        Isolation::ReadCommitted,
        Isolation::MonotonicAtomicView,
        Isolation::ReadAtomic,
        Isolation::Causal,
        Isolation::ParallelSnapshot,
        Isolation::Prefix,
        Isolation::Snapshot,
        Isolation::Serializable,
    ];

    /// Those that are next below.
    fn below(self) -> &'static [Isolation] {
        match self {
            Isolation::ReadUncommitted => &[],
            Isolation::ReadCommitted => &[Isolation::ReadUncommitted],
            Isolation::MonotonicAtomicView => &[Isolation::ReadCommitted],
            Isolation::ReadAtomic => &[Isolation::MonotonicAtomicView],
            Isolation::Causal => &[Isolation::ReadAtomic],
            Isolation::ParallelSnapshot | Isolation::Prefix => &[Isolation::Causal],
            Isolation::Snapshot => &[Isolation::ParallelSnapshot, Isolation::Prefix],
            Isolation::Serializable => &[Isolation::Snapshot],
        }
    }

    fn implies(self, other: Isolation) -> bool {
        self == other || self.below().iter().any(|below| below.implies(other))
    }

    fn name(self) -> &'static str {
        match self {
            Isolation::ReadUncommitted => "read-uncommitted",
            Isolation::ReadCommitted => "read-committed",
            Isolation::MonotonicAtomicView => "monotonic-atomic-view",
            Isolation::ReadAtomic => "read-atomic",
            Isolation::Causal => "causal",
            Isolation::ParallelSnapshot => "parallel-snapshot",
            Isolation::Prefix => "prefix",
            Isolation::Snapshot => "snapshot-isolation",
            Isolation::Serializable => "serializable",
        }
    }
}

impl Respects {
    const ALL: [Respects; 3] = [Respects::Dependencies, Respects::Sessions, Respects::RealTime];
}

impl Level {
    /// Strict serializability: one transaction at a time, in real time.
    pub const STRICT: Level = Level { isolation: Isolation::Serializable, respects: Respects::RealTime };

    /// All levels, a weaker one before a stronger one. Causality needs sessions.
    pub fn all() -> impl Iterator<Item = Level> {
        let of = |isolation| Respects::ALL.map(|respects| Level { isolation, respects });
        let is_one = |level: &Level| level.isolation != Isolation::Causal || level.respects > Respects::Dependencies;
        Isolation::ALL.into_iter().flat_map(of).filter(is_one)
    }

    /// The level of a name, or of the name that Elle has for it.
    pub fn named(name: &str) -> Option<Level> {
        let name = match name {
            "strong-serializable" => "strict-serializable",
            "repeatable-read" => "serializable",
            "consistent-view" | "parallel-snapshot-isolation" => "parallel-snapshot",
            name => name,
        };
        Level::all().find(|level| level.to_string() == name)
    }

    /// Whether every history of this level has the other one.
    pub fn implies(self, other: Level) -> bool {
        self.isolation.implies(other.isolation) && self.respects >= other.respects
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.isolation.name();
        match self.respects {
            Respects::Dependencies => f.write_str(name),
            Respects::Sessions => write!(f, "strong-session-{name}"),
            Respects::RealTime if self.isolation == Isolation::Serializable => write!(f, "strict-{name}"),
            Respects::RealTime => write!(f, "strong-{name}"),
        }
    }
}
