//! Which of the ways to a verdict are gone. None of them changes it: for tests that compare them.

use super::register::{MIN_SEGMENT_EVENTS, Reductions, Width};

/// How a history is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchConfig {
    /// Forms are used where there are some.
    pub forms: bool,
    /// Registers: one way only, not a race.
    pub width: Option<Width>,
    /// Registers: the race is begun in legs of at least so many events.
    pub min_segment_events: usize,
    /// Registers: what makes the search small.
    pub reductions: Reductions,
}

impl Default for SearchConfig {
    fn default() -> Self {
        SearchConfig {
            forms: true,
            width: None,
            min_segment_events: MIN_SEGMENT_EVENTS,
            reductions: Reductions::default(),
        }
    }
}
