//! All ways to a verdict: every strategy, every reduction alone and all but it.

use retrograde::search::{Reductions, Switches, Width};

const NONE: Reductions = Reductions {
    earliest_first: false,
    last_producer: false,
    useless_writes: false,
    supply: false,
    dominance: false,
    forgotten_states: false,
};

/// The first one is what everybody gets.
pub fn all() -> Vec<Switches> {
    let every = Reductions::default();
    let reductions = [
        every,
        NONE,
        Reductions { earliest_first: true, ..NONE },
        Reductions { last_producer: true, ..NONE },
        Reductions { useless_writes: true, ..NONE },
        Reductions { supply: true, ..NONE },
        Reductions { dominance: true, ..NONE },
        Reductions { forgotten_states: true, ..NONE },
        Reductions { earliest_first: false, ..every },
        Reductions { last_producer: false, ..every },
        Reductions { useless_writes: false, ..every },
        Reductions { supply: false, ..every },
        Reductions { dominance: false, ..every },
        Reductions { forgotten_states: false, ..every },
    ];
    let widths = [None, Some(Width::Beam(1)), Some(Width::Beam(3)), Some(Width::Everything)];
    let of_registers =
        reductions.iter().flat_map(|&reductions| widths.map(|width| Switches { forms: true, width, reductions }));
    of_registers.chain([Switches { forms: false, ..Switches::default() }]).collect()
}
