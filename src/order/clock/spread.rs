//! How far apart the clocks of several servers may be that wrote one audit log, where nothing says which line is of which.
//!
//! Take two writes of the log that follow each other by revision. The later one was answered after the earlier one was sent. If servers
//! with two clocks made them, the later server's clock is ahead by no more than the time from the one to the other, as the log shows it.
//! Which server made which write is not known, and need not be: every server renews its identity lease every ten seconds. So among the
//! writes of half a minute each server follows each other one, perhaps by way of a third. The longest step between two writes that follow
//! each other, once for each server but one, bounds the offset of any two.

use super::{GRAIN, OPEN};
use crate::history::writers::Writers;
use crate::history::{History, OperationId, Revision};
use crate::ingest::Time;

/// In this time around a moment every server that wrote lines at that moment made a write.
const AROUND: i64 = 30_000_000_000;

/// So many renewals around a moment show that the log has those of every server: each makes them in half of that time.
const RENEWALS: usize = 2;

/// Bounds are kept for stretches of this length; of longer ones where a log is of many years.
const STRETCH: i64 = 5_000_000_000;

/// No log is cut into more stretches.
const STRETCHES: i64 = 1 << 20;

/// By how much the times of one log may be wrong against each other, at each time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spread {
    first: i64,
    stretch: i64,
    /// Of each stretch, the bound for times in it: at most [`OPEN`].
    bounds: Vec<i64>,
    /// Of each stretch, the lowest time that a moment in it or after it leaves undecided, as a horizon.
    lowest: Vec<i64>,
    declared: i64,
}

impl Spread {
    /// Of the lines of a log, its writes in order of revision, and what it shows of its writers. `declared` bounds it, whatever they show.
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
        // Where the log has no lines, nothing is asked.
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

    /// The latest time that is certainly before one.
    pub(super) fn horizon(&self, time: Time) -> Time {
        let past = |bound: i64| time.0.saturating_sub(bound);
        let Some(last) = self.bounds.len().checked_sub(1) else { return Time(past(self.declared)) };
        let at = time.0.saturating_sub(self.first).div_euclid(self.stretch).clamp(0, last as i64) as usize;
        // Later moments never decide less: what is asked in order of time is answered in order.
        let later = self.lowest.get(at + 1).copied().unwrap_or(i64::MAX);
        Time(past(self.bounds[at]).min(later))
    }

    /// The bound that holds at all times.
    pub(super) fn widest(&self) -> i64 {
        self.bounds.iter().copied().max().unwrap_or(OPEN).min(self.declared)
    }
}

/// The longest step between two writes that follow each other by revision, in each stretch that it touches; and the longest of those that
/// touch too many to mark them all.
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
