//! The kinds of order between two units.

use std::fmt;

/// The kinds of order, from what the store decided to what only clocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EdgeKind {
    /// Both wrote one key, and revisions order the writes (Adya: ww).
    Version = 0,
    /// The later unit saw what the earlier one wrote (wr).
    ReadsFrom,
    /// The later unit replaced what the earlier one saw (rw).
    AntiDependency,
    /// The later request names a value from an answer to the earlier one: a base version, a start revision, a continue token.
    Message,
    /// One incarnation did both, one after the other.
    Program,
    /// Two incarnations of one session did them.
    Session,
    /// One ended before the other began, by clocks that can be compared.
    RealTime,
}

impl EdgeKind {
    /// All kinds, in order.
    pub const ALL: [EdgeKind; 7] = [
        EdgeKind::Version,
        EdgeKind::ReadsFrom,
        EdgeKind::AntiDependency,
        EdgeKind::Message,
        EdgeKind::Program,
        EdgeKind::Session,
        EdgeKind::RealTime,
    ];

    /// The label of an edge in drawings and reports.
    pub fn word(self) -> &'static str {
        match self {
            EdgeKind::Version => "ww",
            EdgeKind::ReadsFrom => "wr",
            EdgeKind::AntiDependency => "rw",
            EdgeKind::Message => "message",
            EdgeKind::Program => "program order",
            EdgeKind::Session => "session",
            EdgeKind::RealTime => "real time",
        }
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EdgeKinds(u8);

impl EdgeKinds {
    /// The empty set.
    pub const NONE: EdgeKinds = EdgeKinds(0);
    /// The set of all kinds.
    pub const ALL: EdgeKinds = EdgeKinds((1 << EdgeKind::ALL.len()) - 1);

    /// The set of these kinds.
    pub const fn of(kinds: &[EdgeKind]) -> EdgeKinds {
        let (mut set, mut at) = (0, 0);
        while at < kinds.len() {
            set |= 1 << kinds[at] as u8;
            at += 1;
        }
        EdgeKinds(set)
    }

    /// The union.
    pub const fn and(self, other: EdgeKinds) -> EdgeKinds {
        EdgeKinds(self.0 | other.0)
    }

    /// The intersection.
    pub const fn within(self, other: EdgeKinds) -> EdgeKinds {
        EdgeKinds(self.0 & other.0)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set has a kind.
    pub const fn has(self, kind: EdgeKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// The kinds of the set, in order.
    pub fn iter(self) -> impl Iterator<Item = EdgeKind> {
        EdgeKind::ALL.into_iter().filter(move |kind| self.has(*kind))
    }
}

impl From<EdgeKind> for EdgeKinds {
    fn from(kind: EdgeKind) -> Self {
        EdgeKinds::of(&[kind])
    }
}

impl fmt::Display for EdgeKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.iter().map(EdgeKind::word).collect();
        f.write_str(&words.join(", "))
    }
}
