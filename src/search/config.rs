//! The configuration of a search: which searches and which kinds of pruning decide a history. Only tests and benchmarks depart
//! from the default. No setting changes a verdict.

use super::register::{Reductions, Thresholds, Width};

/// Which searches decide a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchConfig {
    /// Register forms are used if all operations have one.
    pub forms: bool,
    /// Registers: one search with this width, no portfolio.
    pub width: Option<Width>,
    /// Registers: sizes from which on the search proceeds in another way.
    pub thresholds: Thresholds,
    /// Registers: which kinds of pruning are used.
    pub reductions: Reductions,
}

impl Default for SearchConfig {
    fn default() -> Self {
        SearchConfig { forms: true, width: None, thresholds: Thresholds::default(), reductions: Reductions::default() }
    }
}
