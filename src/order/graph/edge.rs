//! Why one thing comes before another.

use std::fmt;

/// The kinds of order, from what the store decided to what only clocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EdgeKind {
    /// Both wrote one key, and the revisions say in which order (Adya: ww).
    Version = 0,
    /// The later one saw what the earlier one wrote (wr).
    ReadsFrom,
    /// The later one replaced what the earlier one saw (rw).
    AntiDependency,
    /// The later one's request names what an answer to the earlier one said: a base version, a start, a page's token.
    Message,
    /// One process life did both, one after the other.
    Program,
    /// Two lives of one process did them.
    Session,
    /// One was over before the other began, by clocks that can be compared.
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

    /// The word beside an arrow.
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
    /// None.
    pub const NONE: EdgeKinds = EdgeKinds(0);
    /// All of them.
    pub const ALL: EdgeKinds = EdgeKinds((1 << EdgeKind::ALL.len()) - 1);

    /// These kinds.
    pub const fn of(kinds: &[EdgeKind]) -> EdgeKinds {
        let (mut set, mut at) = (0, 0);
        while at < kinds.len() {
            set |= 1 << kinds[at] as u8;
            at += 1;
        }
        EdgeKinds(set)
    }

    /// These and those.
    pub const fn and(self, other: EdgeKinds) -> EdgeKinds {
        EdgeKinds(self.0 | other.0)
    }

    /// These, as far as they are among those.
    pub const fn within(self, other: EdgeKinds) -> EdgeKinds {
        EdgeKinds(self.0 & other.0)
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a kind is among them.
    pub const fn has(self, kind: EdgeKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// The kinds, in order.
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
