//! How many cases a test draws, and which share of a fixed list of cases it runs.
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
    if let Ok(text) = std::env::var("RETROGRADE_SEEDS") {
        return text.split_once("..").map_or_else(|| 0..number(&text), |(from, to)| number(from)..number(to));
    }
    0..default * factor()
}

/// Every `nth` of the cases. `RETROGRADE_DRAWS=2` doubles the share, and `RETROGRADE_DRAWS=nth` takes all.
///
/// # Panics
///
/// If the variable is set and cannot be parsed.
pub fn every<T>(nth: u64, cases: Vec<T>) -> Vec<T> {
    let taken = factor().min(nth);
    (0..nth).cycle().zip(cases).filter(|(at, _)| *at < taken).map(|(_, case)| case).collect()
}

fn factor() -> u64 {
    std::env::var("RETROGRADE_DRAWS").map_or(1, |text| number(&text))
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("expected a number or a range of seeds, found `{text}`"))
}
