//! Which of the ways to a verdict are gone. None of them changes it: for tests that compare them.

use super::register::{LEG, Reductions, Width};

/// How a history is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Forms are used where there are some.
    pub forms: bool,
    /// Registers: one way only, not a race.
    pub width: Option<Width>,
    /// Registers: the race is begun in legs of at least so many events.
    pub leg: usize,
    /// Registers: what makes the search small.
    pub reductions: Reductions,
}

impl Default for Switches {
    fn default() -> Self {
        Switches { forms: true, width: None, leg: LEG, reductions: Reductions::default() }
    }
}
