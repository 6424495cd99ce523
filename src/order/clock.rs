//! Clocks: bounds on the offsets between them, from the evidence.
//!
//! Every time belongs to a named clock, and two times of one clock compare freely. Across clocks there are difference
//! constraints: an answer that shows a revision returned after the write of that revision was sent, and a server's interval lies
//! inside its client's. Floyd and Warshall's algorithm closes them. Offsets are presumed constant. If the constraints contradict
//! each other, a clock stepped, and its times prove nothing.

mod bounds;
mod spread;
mod step;
mod twice_recorded;

pub use step::ClockStep;
pub(super) use twice_recorded::TwiceRecorded;

use crate::history::{ClockId, Operation};
use crate::ingest::Time;
use spread::Spread;

/// No bound.
const OPEN: i64 = i64::MAX / 4;

/// One microsecond. Audit logs truncate times to it, so a time denotes the microsecond that begins with it.
const GRAIN: i64 = 1_000;

/// Evidence with more clocks than this is not related across clocks (there is one clock per file unless the evidence names it).
/// The offsets of all pairs would take too much memory and time.
pub(super) const MAX_RELATED_CLOCKS: usize = 512;

/// Bounds on the offsets between clocks.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    count: usize,
    /// The declared bound for every pair of clocks; used alone above [`MAX_RELATED_CLOCKS`] clocks.
    declared: i64,
    /// `bound[b * count + a]`: the offset of clock a minus that of b is at most this. Empty above [`MAX_RELATED_CLOCKS`]
    /// clocks. The offset of a clock, added to its times, gives common time. A query reads the bounds of all clocks
    /// against one, so these are adjacent. During the closure, a and b are swapped.
    bound: Vec<i64>,
    /// By clock, the least bound of any clock against it, or of two servers of its log. Empty if `bound` is.
    least: Vec<i64>,
    /// By clock, the evidence that its times contradict other evidence.
    stepped: Vec<Option<ClockStep>>,
    /// By clock, how far apart the servers of an audit log may be. Empty if every log comes from one server.
    spreads: Vec<Option<Box<Spread>>>,
    /// The requests that both their client and their server recorded.
    twice_recorded: TwiceRecorded,
}

/// The relation of two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Proved: before.
    Before,
    /// Proved: not before.
    NotBefore,
    /// The times say before, but the offset is not bounded: an offset of this many nanoseconds would reverse the order.
    BeforeUnless(i64),
    /// A time is missing.
    Unknown,
}

impl Clocks {
    fn spread_of(&self, clock: ClockId) -> Option<&Spread> {
        self.spreads.get(clock.index())?.as_deref()
    }

    /// Nanoseconds by which the servers of a log may be apart. `None` if the log comes from one server, `Some(None)` if nothing
    /// bounds the difference.
    pub fn several(&self, clock: ClockId) -> Option<Option<i64>> {
        Some(self.spread_of(clock)?.widest()).map(|bound| (bound < OPEN).then_some(bound))
    }

    fn offset(&self, a: ClockId, b: ClockId) -> i64 {
        self.bound.get(b.index() * self.count + a.index()).copied().unwrap_or(self.declared)
    }

    /// Whether times of different clocks can compare at all.
    pub(super) fn relate(&self) -> bool {
        !self.bound.is_empty() || self.declared < OPEN
    }

    /// The step of a clock, if the evidence shows one.
    pub fn step(&self, clock: ClockId) -> Option<ClockStep> {
        if clock.is_some() { self.stepped[clock.index()] } else { None }
    }

    /// The number of clocks, if there are too many to relate them.
    pub fn unrelated(&self) -> Option<usize> {
        (self.stepped.len() > MAX_RELATED_CLOCKS).then_some(self.stepped.len())
    }

    /// All clocks that stepped.
    pub fn steps(&self) -> impl Iterator<Item = ClockStep> + '_ {
        self.stepped.iter().flatten().copied()
    }

    /// The horizon of `time` on another clock: times of clock `of` below it are proved earlier. `None` if nothing bounds the
    /// offset.
    pub fn horizon(&self, of: ClockId, clock: ClockId, time: Time) -> Option<Time> {
        if !time.is_known() || self.step(of).is_some() || self.step(clock).is_some() {
            return None;
        }
        if of == clock {
            return Some(self.spread_of(clock).map_or(time, |spread| spread.horizon(time)));
        }
        // t_of + o_of < t + o_clock for every allowed offset iff t_of < t - max(o_of - o_clock).
        let bound = self.offset(of, clock);
        (bound < OPEN).then(|| Time(time.0.saturating_sub(bound)))
    }

    /// No horizon of `time` is later than this on any clock. `None` if no clock has one.
    pub(super) fn latest_horizon(&self, clock: ClockId, time: Time) -> Option<Time> {
        let least = self.least.get(clock.index()).copied().unwrap_or(self.declared.min(0));
        let has_any = time.is_known() && least < OPEN && self.step(clock).is_none();
        has_any.then(|| Time(time.0.saturating_sub(least)))
    }

    /// The relation of two moments, as far as their clocks prove it.
    pub fn relation(&self, a: (Time, ClockId), b: (Time, ClockId)) -> Relation {
        if !a.0.is_known() || !b.0.is_known() || !a.1.is_some() || !b.1.is_some() {
            return Relation::Unknown;
        }
        if self.horizon(a.1, b.1, b.0).is_some_and(|horizon| a.0 < horizon) {
            return Relation::Before;
        }
        if a.1 == b.1 && self.step(a.1).is_none() && self.spread_of(a.1).is_none() {
            return Relation::NotBefore;
        }
        if self.horizon(b.1, a.1, a.0).is_some_and(|horizon| b.0 < horizon) {
            return Relation::NotBefore;
        }
        if a.0 < b.0 { Relation::BeforeUnless(b.0.since(a.0)) } else { Relation::NotBefore }
    }

    /// Whether one moment is proved to be before another.
    pub fn before(&self, a: (Time, ClockId), b: (Time, ClockId)) -> bool {
        a.0.is_known()
            && a.1.is_some()
            && b.1.is_some()
            && self.horizon(a.1, b.1, b.0).is_some_and(|horizon| a.0 < horizon)
    }

    /// When a request was sent, as each of its records says.
    pub fn sent(&self, o: &Operation) -> impl Iterator<Item = (Time, ClockId)> + use<> {
        let other = self.twice_recorded.other(o).map(|other| (other.invoke, other.clock));
        std::iter::once((o.invoke, o.clock)).chain(other)
    }

    /// When a request was answered, as each of its records says.
    pub fn answered(&self, o: &Operation) -> impl Iterator<Item = (Time, ClockId)> + use<> {
        let other = self.twice_recorded.other(o).map(|other| (other.ret, other.clock));
        std::iter::once((o.ret, o.clock)).chain(other)
    }

    /// Whether a request is proved to be answered before another one was sent. This is about what the servers did: a client
    /// knows an answer only when its own record says so.
    pub fn is_answered_before(&self, earlier: &Operation, later: &Operation) -> bool {
        self.answered(earlier).any(|answered| self.is_before_request(answered, later))
    }

    /// Whether a moment is proved to be before a request was sent.
    pub fn is_before_request(&self, moment: (Time, ClockId), later: &Operation) -> bool {
        self.sent(later).any(|sent| self.before(moment, sent))
    }
}

/// Splits items that are sorted by clock into the runs of each clock.
pub(crate) fn of_each_clock<T>(all: &[T], at: impl Fn(&T) -> (Time, ClockId)) -> impl Iterator<Item = &[T]> {
    let mut rest = all;
    std::iter::from_fn(move || {
        let clock = at(rest.first()?).1;
        let (run, later) = rest.split_at(rest.partition_point(|item| at(item).1 == clock));
        rest = later;
        Some(run)
    })
}

#[cfg(test)]
mod tests {
    use crate::history::sketch::sketch;
    use crate::order::{Order, OrderOptions};

    fn stepped(text: &str) -> bool {
        let history = sketch(text).unwrap_or_else(|error| panic!("{error}"));
        let order = Order::derive(&history, &OrderOptions::default());
        order.clocks.steps().next().is_some()
    }

    #[test]
    fn a_store_that_went_back_is_no_clock_that_stepped() {
        assert!(!stepped("web@A  CREATE a => a:u1@120\nweb@A  CREATE b => b:u2@101\n"));
    }

    #[test]
    fn very_many_clocks_compare_with_themselves_and_by_what_was_declared() {
        let history = crate::history::History {
            clocks: vec![crate::history::Symbol::NONE; super::MAX_RELATED_CLOCKS + 1],
            ..Default::default()
        };
        let one = |clock_skew| Order::derive(&history, &OrderOptions { clock_skew, ..OrderOptions::default() }).clocks;
        let at = |time, clock| (crate::ingest::Time(time), crate::history::ClockId(clock));
        assert!(one(None).before(at(1, 3), at(2, 3)) && !one(None).before(at(1, 3), at(1_000_000, 4)));
        assert!(one(Some(1_000)).before(at(1, 3), at(1_000_000, 4)) && !one(Some(1_000)).before(at(1, 3), at(900, 4)));
        assert!(one(None).bound.is_empty());
    }

    #[test]
    fn times_that_fall_in_a_file_show_a_step() {
        // The positions of a sketch are its lines, so a second line of one client that is drawn earlier falls back.
        assert!(stepped(
            "web@A                                 |-CREATE b => b:u2@12-|\nweb@A  |-CREATE a => a:u1@13-|\n"
        ));
    }
}
