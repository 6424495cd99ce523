//! The configuration of a search: which searches and which kinds of pruning decide a history. Only tests and benchmarks depart
//! from the default. No setting changes a verdict.

use super::register::{MIN_SEGMENT_EVENTS, Reductions, Width};

/// Which searches decide a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchConfig {
    /// Register forms are used if all operations have one.
    pub forms: bool,
    /// Registers: one search with this width, no portfolio.
    pub width: Option<Width>,
    /// Registers: events of a segment of the speculative search, at least.
    pub min_segment_events: usize,
    /// Registers: which kinds of pruning are used.
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
