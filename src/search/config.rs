//! The configuration of a search: which searches and which kinds of pruning decide a history. Only tests and benchmarks depart
//! from the default. No setting changes a verdict.

use super::register::{Reductions, Thresholds, Width};

/// Which searches decide a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchConfig {
    /// Register forms are used if all operations have one.
    pub forms: bool,
    /// By steps: up to this many kinds of crashed operations are counted in the key of a visited state, which is faster than a
    /// shared set. More kinds would make long keys: there may be as many kinds as operations.
    pub kinds_in_key: usize,
    /// Registers: one search with this width, no portfolio.
    pub width: Option<Width>,
    /// Registers: sizes from which on the search proceeds in another way.
    pub thresholds: Thresholds,
    /// Registers: which kinds of pruning are used.
    pub reductions: Reductions,
}

impl Default for SearchConfig {
    fn default() -> Self {
        SearchConfig {
            forms: true,
            kinds_in_key: 64,
            width: None,
            thresholds: Thresholds::default(),
            reductions: Reductions::default(),
        }
    }
}
