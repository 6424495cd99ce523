//! How far apart the clocks of the servers may be that wrote one audit log, if lines do not name their server.
//!
//! Take two writes that are adjacent by revision. The later one was answered after the earlier one was sent. If two servers made
//! them, the later server's clock is ahead by at most the time from that sending to that answer. The server of a write is
//! unknown, but every server renews its identity lease every ten seconds. So among the writes of half a minute, each server
//! follows each other one, perhaps through a third. The longest step between adjacent writes, times the number of servers less
//! one, bounds the offset of any two.

use super::{GRAIN, OPEN};
use crate::history::writers::Writers;
use crate::history::{History, OperationId, Revision};
use crate::ingest::Time;

/// Nanoseconds. Every server that wrote lines at a moment also made a write within this time around it.
const AROUND: i64 = 30_000_000_000;

/// Number of renewals around a moment that shows that the log has those of every server. Each server makes them in half of the
/// time.
const RENEWALS: usize = 2;

/// Nanoseconds for which one bound is kept; longer if a log spans many years.
const STRETCH: i64 = 5_000_000_000;

/// Limit on the number of bounds for one log.
const STRETCHES: i64 = 1 << 20;

/// Bounds on the difference between times of one log, by interval of time. All values are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spread {
    first: i64,
    stretch: i64,
    /// The bound for times in each interval: at most [`OPEN`].
    bounds: Vec<i64>,
    /// For each interval, the lowest horizon of a moment in it or after it.
    lowest: Vec<i64>,
    declared: i64,
}

impl Spread {
    /// From the operations of a log, its writes in order of revision, and its writers. `declared` bounds the result in any case.
    pub(super) fn of(
        history: &History,
        lines: &[OperationId],
        writes: &[(Revision, OperationId)],
        writers: &Writers,
        declared: i64,
    ) -> Spread {
        let mut spread = Spread { declared, stretch: STRETCH, ..Spread::default() };
        let Some((first, last)) = writers.span.map(|(first, last)| (first.0, last.0)) else { return spread };
        let stretch = STRETCH.max(last.saturating_sub(first) / STRETCHES);
        (spread.first, spread.stretch) = (first, stretch);
        let around = (AROUND / stretch).max(1) as usize;
        let place = |time: i64| ((time.clamp(first, last) - first) / stretch) as usize;
        let count = place(last) + 1;
        let (steps, everywhere) = steps(history, writes, count, 8 * around, place);
        let factor = writers.count() as i64 - 1;
        let renewed = |at: usize| {
            let until = |at: usize| Time(first.saturating_add((at as i64).saturating_mul(stretch)));
            let renewals = |time: Time| writers.renewals.partition_point(|renewal| *renewal < time);
            renewals(until(at + around + 1)) - renewals(until(at.saturating_sub(around))) >= RENEWALS
        };
        let longest = |at: usize| {
            let near = &steps[at.saturating_sub(around)..(at + around + 1).min(count)];
            near.iter().copied().max().unwrap_or(0).max(everywhere)
        };
        let bound = |at: usize| {
            let shown = if renewed(at) { longest(at).saturating_mul(factor).saturating_add(GRAIN) } else { OPEN };
            shown.min(OPEN).min(declared)
        };
        spread.bounds = (0..count).map(bound).collect();
        // Intervals without lines are never queried.
        let mut is_used = vec![false; count];
        for at in lines.iter().map(|line| line.index()) {
            let ends = [history.operations.invoke(at), history.operations.ret(at)];
            ends.into_iter().filter(|time| time.is_known()).for_each(|time| is_used[place(time.0)] = true);
        }
        let mut lowest = i64::MAX;
        spread.lowest = vec![lowest; count];
        for at in (0..count).rev().filter(|at| is_used[*at]) {
            lowest = lowest.min((first + at as i64 * stretch).saturating_sub(spread.bounds[at]));
            spread.lowest[at] = lowest;
        }
        for at in (1..count).rev() {
            spread.lowest[at - 1] = spread.lowest[at - 1].min(spread.lowest[at]);
        }
        spread
    }

    /// The horizon of a time: earlier times are certainly before it.
    pub(super) fn horizon(&self, time: Time) -> Time {
        let past = |bound: i64| time.0.saturating_sub(bound);
        let Some(last) = self.bounds.len().checked_sub(1) else { return Time(past(self.declared)) };
        let at = time.0.saturating_sub(self.first).div_euclid(self.stretch).clamp(0, last as i64) as usize;
        // The horizon never falls as time rises, so queries in order of time get answers in order.
        let later = self.lowest.get(at + 1).copied().unwrap_or(i64::MAX);
        Time(past(self.bounds[at]).min(later))
    }

    /// No bound is lower.
    pub(super) fn narrowest(&self) -> i64 {
        self.bounds.iter().copied().fold(self.declared, i64::min)
    }

    /// A bound that holds at all times.
    pub(super) fn widest(&self) -> i64 {
        self.bounds.iter().copied().max().unwrap_or(OPEN).min(self.declared)
    }
}

/// The longest step between two writes that are adjacent by revision, for each interval that it touches; and the longest of the
/// steps that touch more than `most` intervals.
fn steps(
    history: &History,
    writes: &[(Revision, OperationId)],
    count: usize,
    most: usize,
    place: impl Fn(i64) -> usize,
) -> (Vec<i64>, i64) {
    let (mut steps, mut everywhere) = (vec![0; count], 0);
    let times = |(_, id): &(Revision, OperationId)| {
        let (sent, answered) = (history.operations.invoke(id.index()), history.operations.ret(id.index()));
        (sent.is_known() && answered.is_known()).then_some((sent.0, answered.0))
    };
    let writes: Vec<(i64, i64)> = writes.iter().filter_map(times).collect();
    for pair in writes.windows(2) {
        let step = pair[1].1.saturating_sub(pair[0].0);
        let (from, to) = (pair[0].0.min(pair[1].0), pair[0].1.max(pair[1].1));
        let (from, to) = (place(from), place(to));
        if to - from > most {
            everywhere = step.max(everywhere);
        } else {
            steps[from..=to].iter_mut().for_each(|known| *known = step.max(*known));
        }
    }
    (steps, everywhere)
}
