//! Regular expressions in expressions. A pattern may come from evidence, so the cost of compiling, keeping and using it is paid
//! before it is incurred.
//!
//! A pattern is simulated at first: each byte of a text may cost as much as the pattern has states, and a pattern of sixteen
//! bytes can have fifteen thousand. A pattern that has cost as much as making a table becomes a table (a DFA), if that is small.
//! Then a text costs its length.

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::{self, NFA, pikevm::PikeVM};
use regex_automata::{Anchored, Input};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};

/// Bytes of a pattern, at most.
const MAX_PATTERN_BYTES: usize = 2 << 10;

/// Bytes of the states of a pattern, at most.
const LARGEST: usize = 1 << 20;

/// Bytes of a table and of making it, at most. Larger ones are simulated.
const TABLE: usize = 128 << 10;

/// Bytes of all patterns of a thread. Above it, the thread drops all of them.
const MAX_CACHED_BYTES: usize = 16 << 20;

/// Steps of compiling a pattern, at least.
const COMPILING: u64 = 200;

/// Steps for a class of characters, and for one that ignores case, which visits all of Unicode.
const CLASS: u64 = 40;
const FOLDED_CLASS: u64 = 1_000;

/// Bytes of a table that cost one step to make.
const MADE: u64 = 32;

/// Bytes that one step reads with a table, and states that one step visits in a simulation.
const READ: u64 = 64;
const STATES: u64 = 128;

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::new(Known::of(MAX_CACHED_BYTES));
    /// How many patterns this thread has compiled.
    static COMPILED: Cell<u64> = const { Cell::new(0) };
}

/// Compiled patterns; `None` for a text that is not a pattern.
struct Known {
    patterns: FxHashMap<String, Option<Pattern>>,
    bytes: usize,
    most_bytes: usize,
}

/// Why a text was not compared with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not a pattern, or it is too large.
    Unfit,
    /// There are too few steps.
    Unpaid,
}

/// A compiled pattern.
struct Pattern {
    simulated: Box<PikeVM>,
    states: u64,
    /// Steps paid for simulating it.
    paid: u64,
    table: Table,
}

enum Table {
    /// Not needed yet.
    Open,
    Made(Box<dense::DFA<Vec<u32>>>),
    /// It would be too large.
    Refused,
}

/// Whether a part of a text matches a pattern. `pay` takes steps; `false` if there are too few.
pub fn is_match(text: &str, pattern: &str, pay: impl Fn(u64) -> bool) -> Result<bool, Refusal> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(Refusal::Unfit);
    }
    KNOWN.with_borrow_mut(|known| match known.get(pattern, &pay)? {
        Some(pattern) => pattern.is_match(text, &pay).ok_or(Refusal::Unpaid),
        None => Err(Refusal::Unfit),
    })
}

/// How many patterns this thread has compiled so far.
#[cfg(test)]
pub fn compiled() -> u64 {
    COMPILED.get()
}

impl Known {
    /// No pattern yet, and room for this many bytes.
    fn of(most_bytes: usize) -> Known {
        Known { patterns: FxHashMap::default(), bytes: 0, most_bytes }
    }

    fn get(&mut self, pattern: &str, pay: &impl Fn(u64) -> bool) -> Result<Option<&mut Pattern>, Refusal> {
        if !self.patterns.contains_key(pattern) {
            if !pay(price(pattern)) {
                return Err(Refusal::Unpaid);
            }
            COMPILED.set(COMPILED.get() + 1);
            let made = match states(pattern) {
                Some(nfa) => Some(Pattern::of(nfa, pay).ok_or(Refusal::Unpaid)?),
                None => None,
            };
            let bytes = 2 * pattern.len() + 128 + made.as_ref().map_or(0, Pattern::bytes);
            if self.bytes + bytes > self.most_bytes {
                *self = Known::of(self.most_bytes);
            }
            self.bytes += bytes;
            self.patterns.insert(pattern.to_owned(), made);
        }
        Ok(self.patterns.get_mut(pattern).and_then(Option::as_mut))
    }
}

/// The steps of reading a pattern.
fn price(pattern: &str) -> u64 {
    let classes = pattern.bytes().filter(|byte| matches!(byte, b'\\' | b'[' | b'.')).count() as u64;
    let flags = pattern.split("(?").skip(1);
    let folds = flags.into_iter().any(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        rest[..end].contains('i')
    });
    COMPILING + 4 * pattern.len() as u64 + classes * if folds { FOLDED_CLASS } else { CLASS }
}

fn states(pattern: &str) -> Option<NFA> {
    let config = thompson::Config::new().nfa_size_limit(Some(LARGEST));
    thompson::Compiler::new().configure(config).build(pattern).ok()
}

impl Pattern {
    /// `None` if there are too few steps.
    fn of(nfa: NFA, pay: &impl Fn(u64) -> bool) -> Option<Pattern> {
        let states = nfa.states().len() as u64;
        if !pay(states) {
            return None;
        }
        let simulated = Box::new(PikeVM::new_from_nfa(nfa).ok()?);
        Some(Pattern { simulated, states, paid: 0, table: Table::Open })
    }

    /// Its bytes, at most.
    fn bytes(&self) -> usize {
        self.simulated.get_nfa().memory_usage() + TABLE
    }

    /// `None` if there are too few steps.
    fn is_match(&mut self, text: &str, pay: &impl Fn(u64) -> bool) -> Option<bool> {
        let length = text.len() as u64;
        let price = (length + 1).saturating_mul(self.states) / STATES;
        let making = TABLE as u64 / MADE;
        if matches!(self.table, Table::Open) && self.paid.saturating_add(price) >= making {
            if !pay(making) {
                return None;
            }
            self.table = table(self.simulated.get_nfa());
        }
        if let Table::Made(table) = &self.table {
            let input = Input::new(text).anchored(Anchored::No).earliest(true);
            // The search cannot fail: the table has no byte at which it quits.
            return pay(length / READ).then(|| matches!(table.try_search_fwd(&input), Ok(Some(_))));
        }
        self.paid = self.paid.saturating_add(price);
        pay(price).then(|| self.simulated.is_match(&mut self.simulated.create_cache(), text))
    }
}

fn table(nfa: &NFA) -> Table {
    let config = dense::Config::new()
        .start_kind(StartKind::Unanchored)
        .dfa_size_limit(Some(TABLE))
        .determinize_size_limit(Some(TABLE));
    match dense::Builder::new().configure(config).build_from_nfa(nfa) {
        Ok(table) => Table::Made(Box::new(table)),
        Err(_) => Table::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result, and the steps that it takes.
    fn asked(text: &str, pattern: &str, steps: u64) -> (Result<bool, Refusal>, u64) {
        let left = Cell::new(steps);
        let pay = |price: u64| match left.get().checked_sub(price) {
            Some(rest) => {
                left.set(rest);
                true
            }
            None => false,
        };
        let found = is_match(text, pattern, pay);
        (found, steps - left.get())
    }

    #[test]
    fn a_table_says_what_the_simulated_pattern_says() {
        let mut tables = 0;
        for pattern in [
            "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
            "a|bc",
            "(?i)ABC",
            r"^\w+$",
            r"\bab\b",
            "",
            "^$",
            "(?m)^b$",
            "(?s).{3}",
            "x*",
            r"\d{2}",
            "[^a]",
        ] {
            let plain = PikeVM::new(pattern).unwrap_or_else(|error| panic!("{error}"));
            let mut made =
                states(pattern).and_then(|nfa| Pattern::of(nfa, &|_| true)).unwrap_or_else(|| panic!("{pattern}"));
            // As after long use.
            made.paid = u64::MAX;
            for text in ["", "abc", "ABC", "a-b", "\u{e9}t\u{e9}", "a\nb", "12", "-a", "ab c", "\u{4e00}"] {
                let expected = plain.is_match(&mut plain.create_cache(), text);
                assert_eq!(made.is_match(text, &|_| true), Some(expected), "{pattern} {text}");
                assert_eq!(asked(text, pattern, 1 << 20).0, Ok(expected), "{pattern} {text}");
            }
            tables += usize::from(matches!(made.table, Table::Made(_)));
        }
        assert!(tables >= 8, "{tables}");
    }

    #[test]
    fn what_is_no_pattern_or_too_large_a_one_is_refused() {
        for pattern in ["(", "((a{1000}){1000}){1000}", &"a".repeat(MAX_PATTERN_BYTES + 1), &"(".repeat(2_000)] {
            assert_eq!(asked("a", pattern, 1 << 20).0, Err(Refusal::Unfit));
        }
    }

    #[test]
    fn a_pattern_with_many_states_pays_for_each_byte_of_a_text_many_times() {
        let text = "a".repeat(1 << 16);
        // Fifteen thousand states.
        assert_eq!(asked(&text, "((a{50}){50}){6}", 1_000_000).0, Err(Refusal::Unpaid));
        // From here on a table, which costs only the length of the text.
        assert_eq!(asked(&text, "^[a-z]{1,63}$", 1 << 20).0, Ok(false));
        let (found, steps) = asked(&text, "^[a-z]{1,63}$", 1 << 20);
        assert_eq!((found, steps), (Ok(false), (1 << 16) / READ));
    }

    #[test]
    fn ignoring_the_case_of_many_classes_is_paid_before_it_is_done() {
        let before = compiled();
        assert_eq!(asked("a", &format!("(?i){}", r"\w".repeat(680)), 100_000).0, Err(Refusal::Unpaid));
        assert_eq!(compiled(), before);
    }

    #[test]
    fn a_pattern_is_compiled_once_and_all_that_are_kept_have_a_bound() {
        let before = compiled();
        for nth in 0..1_000 {
            asked("text", if nth % 2 == 0 { "^t" } else { "(" }, 1 << 20).0.ok();
        }
        assert_eq!(compiled(), before + 2);
        // Each test has a thread and patterns of its own.
        KNOWN.with_borrow_mut(|known| known.most_bytes = 256 << 10);
        for nth in 0..60 {
            asked("text", &format!("^[a-z]{{3,60}}x{nth}$"), 1 << 20).0.ok();
            KNOWN.with_borrow(|known| assert!(known.bytes <= 256 << 10 && !known.patterns.is_empty()));
        }
        KNOWN.with_borrow(|known| assert!(known.patterns.len() < 60));
    }
}
