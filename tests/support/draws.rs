//! How many cases a test draws.
//!
//! `RETROGRADE_DRAWS=10` multiplies the number that each test has by default. `RETROGRADE_SEEDS` sets it: a number, or a
//! range of seeds such as `40..50`.

use std::ops::Range;

/// The seeds of a test that draws `default` cases.
///
/// # Panics
///
/// If a variable is set and cannot be parsed.
pub fn seeds(default: u64) -> Range<u64> {
    let number = |text: &str| -> u64 {
        text.parse().unwrap_or_else(|_| panic!("expected a number or a range of RETROGRADE_SEEDS, found `{text}`"))
    };
    if let Ok(text) = std::env::var("RETROGRADE_SEEDS") {
        return text.split_once("..").map_or_else(|| 0..number(&text), |(from, to)| number(from)..number(to));
    }
    let factor = std::env::var("RETROGRADE_DRAWS").map_or(1, |text| number(&text));
    0..default * factor
}
