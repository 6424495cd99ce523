//! Pruning: branches that the search leaves out because they cannot change the verdict. Each kind has a switch, and tests compare
//! with and without. A new kind needs an argument here why it is sound, also together with the others.

/// Which kinds of pruning are used. None changes a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reductions {
    /// **Earliest first.** Of equal pending operations, the search uses the one that returns first. Sound: if a linearization
    /// uses the later one first, the two can change places, because the later one is pending wherever the earlier one would be
    /// linearized. Before the last overwrite only operations that were pending there are equal; see `Generator::follow`.
    pub earliest_first: bool,
    /// **Last producer.** If no operation can lead back to a state that an operation still needs, the search does not leave that
    /// state. Nor does it use the last operation that leads to the state in a hidden step. Sound: such a configuration cannot get
    /// past the return of the operation that needs the state, unless the register holds it at present. In that case the hidden
    /// block can also follow the present state: it begins after the operation that last led there, and ends with the last
    /// producer.
    pub last_producer: bool,
    /// **Useless writes.** A write that can be put before the last overwrite, and whose value no operation can use any more, is
    /// put only there. Sound while no compare-and-set must still fail: whatever is linearized between this write and the next one
    /// is as possible in the state before it.
    pub useless_writes: bool,
    /// **Supply.** The uses of a crashed class are not counted while at least as many of its operations are left as operations
    /// may want its state. Sound: a use serves at least one operation, and no two uses serve the same one. For the same reason,
    /// uses of a class are forgotten once no operation can want its state.
    pub supply: bool,
    /// **Dominance.** A configuration that another one dominates is dropped; see `Configuration::dominates`.
    pub dominance: bool,
    /// **Forgotten states.** A state becomes `DONT_CARE` if no remaining operation can distinguish it from others.
    pub forgotten_states: bool,
}

impl Reductions {
    /// No pruning.
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

/// How many configurations of a layer are expanded at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// At first this many. The number doubles with every second dead end after the furthest return.
    Beam(usize),
    /// The whole layer.
    Everything,
}
