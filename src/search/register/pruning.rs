//! What makes the search small, each to be switched off by itself so that tests can compare.

/// Which reductions are used. None changes a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reductions {
    /// **Earliest first.** Of equal operations the one that returns first is used first. Sound: in any order that uses the later
    /// one and still needs the earlier, the two can change places, as the later one is open wherever the earlier one would have
    /// happened. In the gap only those open then are equal; see `Moves::follow`.
    pub earliest_first: bool,
    /// **Last producer.** A state that some operation still needs is not left, and the last operation that leads to it is not
    /// used up unseen, where nothing can lead back to it. Sound: such a configuration cannot get past the return of the operation
    /// that needs the state, unless it is the present one; then what was put unseen can follow it as well, beginning after the
    /// last operation that leads to it and ending with that one.
    pub last_producer: bool,
    /// **Useless writes.** A write that can be put into the gap, of a value that nothing can use any more, is put there only. Sound
    /// while no compare-and-set must still fail: of what comes after a write of such a value, nothing happens before the next write,
    /// and it can as well happen in the state before.
    pub useless_writes: bool,
    /// **Supply.** Of a class of optional operations of which at least as many are left as operations still want the state they
    /// lead to, uses are not counted. Sound: a use serves at least one operation, and no two the same. For the same reason uses are
    /// forgotten of a class whose state no operation wants any more.
    pub supply: bool,
    /// **Dominance.** A configuration that can do whatever another one can stands for both; see
    /// `Configuration::dominates`.
    pub dominance: bool,
    /// **Nobody asks.** A state in which nothing is left that could happen in it and not in others is no state of its own.
    pub forgotten_states: bool,
}

impl Reductions {
    /// None of them.
    pub const NONE: Reductions = Reductions {
        earliest_first: false,
        last_producer: false,
        useless_writes: false,
        supply: false,
        dominance: false,
        forgotten_states: false,
    };
}

impl Default for Reductions {
    fn default() -> Self {
        Reductions {
            earliest_first: true,
            last_producer: true,
            useless_writes: true,
            supply: true,
            dominance: true,
            forgotten_states: true,
        }
    }
}

/// How many configurations go on at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// At first so many; more where the search has to go back.
    Beam(usize),
    /// All.
    Everything,
}

/// Events of a leg, at least.
pub(in crate::search) const MIN_SEGMENT_EVENTS: usize = 1 << 13;
