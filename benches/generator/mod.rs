//! Seeded inputs: recordings of simulated clusters without faults.
//!
//! Every generator simulates one etcd: a revision counter and its objects. Requests take effect when they are sent,
//! so one order of writes explains the recording. A verdict other than "holds" is an error of the generator or of a
//! rule.
#![allow(dead_code, reason = "each bench uses a part")]

pub mod audit;
pub mod chance;
pub mod etcd;
pub mod fields;
pub mod lists;
pub mod machines;
pub mod operations;
pub mod watch;

use std::fmt::Write as _;

/// A number from the environment, such as `RETROGRADE_BENCH_MB`.
pub fn size(name: &str, default: usize) -> usize {
    let text = std::env::var(name).unwrap_or_default();
    if text.is_empty() { default } else { text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")) }
}

/// xorshift64*: small and equal on every machine.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 20) % sides
    }

    /// An index below a length.
    pub fn index(&mut self, length: usize) -> usize {
        self.roll(length as u64) as usize
    }
}

/// Appends a random UUID.
pub fn uuid(out: &mut String, dice: &mut Dice) {
    let (a, b) = (dice.roll(1 << 40), dice.roll(1 << 40));
    let _ = write!(out, "{:08x}-{:04x}-4000-8000-{b:012x}", a >> 8, a & 0xffff);
}

/// A random UUID.
pub fn fresh_uuid(dice: &mut Dice) -> String {
    let mut text = String::with_capacity(36);
    uuid(&mut text, dice);
    text
}

/// Appends a time in the format of audit logs; `at` is in microseconds since the start of the recording.
pub fn stamp(out: &mut String, at: u64) {
    let (seconds, micros) = (at / 1_000_000, at % 1_000_000);
    let (day, second) = (4 + seconds / 86_400, seconds % 86_400);
    assert!(day < 29, "the recording ends with February");
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let _ = write!(out, "2026-02-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z");
}
