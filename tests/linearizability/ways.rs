//! All search configurations: every strategy, and every reduction alone and left out.

use retrograde::search::{Reductions, SearchConfig, Thresholds, Width};

/// The first one is the default.
pub fn all() -> Vec<SearchConfig> {
    let (every, none) = (Reductions::default(), Reductions::NONE);
    let reductions = [
        every,
        none,
        Reductions { earliest_first: true, ..none },
        Reductions { last_producer: true, ..none },
        Reductions { useless_writes: true, ..none },
        Reductions { supply: true, ..none },
        Reductions { dominance: true, ..none },
        Reductions { forgotten_states: true, ..none },
        Reductions { earliest_first: false, ..every },
        Reductions { last_producer: false, ..every },
        Reductions { useless_writes: false, ..every },
        Reductions { supply: false, ..every },
        Reductions { dominance: false, ..every },
        Reductions { forgotten_states: false, ..every },
    ];
    let usual = SearchConfig::default();
    let widths = [Some(Width::Beam(1)), Some(Width::Beam(3)), Some(Width::Everything)];
    let widths = widths.map(|width| SearchConfig { width, thresholds: Thresholds::SMALL, ..usual });
    let small = SearchConfig { thresholds: Thresholds::SMALL, ..usual };
    let strategies = [&[usual, small], &widths[..]].concat();
    let of_registers = reductions
        .iter()
        .flat_map(|&reductions| strategies.iter().map(move |&strategy| SearchConfig { reductions, ..strategy }));
    let by_steps = [usual.kinds_in_key, 0].map(|kinds_in_key| SearchConfig { forms: false, kinds_in_key, ..usual });
    of_registers.chain(by_steps).collect()
}
