//! What was over before something else began: the order of intervals in time, as few edges as say all of it.

use super::sparse::Node;
use crate::history::ClockId;
use crate::ingest::Time;
use crate::order::clock::Clocks;
use rustc_hash::FxHashMap;

/// When something began and when it was over, by one clock.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// What.
    pub node: Node,
    /// Not later than its begin.
    pub begin: Time,
    /// Not earlier than its end; unknown where nobody saw one.
    pub end: Time,
    /// Clock of both.
    pub clock: ClockId,
}

/// The intervals of one clock that ended, by their end.
#[derive(Default)]
struct Ended {
    rows: Vec<(Time, Node)>,
    /// The latest begin among this row and those before it: whatever ended before that is followed by one of them.
    latest_begin: Vec<Time>,
}

impl Ended {
    fn of(intervals: &[Interval]) -> Ended {
        let mut by_end: Vec<(Time, Node, Time)> =
            intervals.iter().filter(|i| i.end.is_known()).map(|i| (i.end.max(i.begin), i.node, i.begin)).collect();
        by_end.sort_unstable();
        let mut ended = Ended::default();
        for (end, node, begin) in by_end {
            let latest = ended.latest_begin.last().map_or(begin, |latest| begin.max(*latest));
            ended.rows.push((end, node));
            ended.latest_begin.push(latest);
        }
        ended
    }

    /// How many ended before a time, when `from` ended before an earlier one. Times are asked for in their order.
    fn before(&self, time: Time, from: usize) -> usize {
        from + self.rows[from..].iter().take_while(|(end, _)| *end < time).count()
    }

    /// Ending before this moment is implied by having been followed by one of the first rows.
    fn followed(&self, rows: usize) -> Option<Time> {
        rows.checked_sub(1).map(|last| self.latest_begin[last])
    }
}

/// Tells `edge` of every pair of which one was over before the other began, in which nothing lies between: the transitive
/// reduction of the order in time. On one clock it is exact; across clocks, where their bounds prove the order, a pair is left
/// out only if something on either of the two clocks lies between.
///
/// One pass over the intervals of each clock for every clock that can be compared with it, in order of begin. There are as many
/// edges as intervals times those that overlap each. What is over and what begins at the same time are not ordered, nor is
/// anything on a clock that stepped.
pub fn reduction(intervals: &[Interval], clocks: &Clocks, mut edge: impl FnMut(Node, Node)) {
    let mut by_clock: FxHashMap<ClockId, Vec<Interval>> = FxHashMap::default();
    for interval in intervals.iter().filter(|i| i.begin.is_known() && i.clock.is_some()) {
        by_clock.entry(interval.clock).or_default().push(*interval);
    }
    let mut lines: Vec<(ClockId, Vec<Interval>, Ended)> = by_clock
        .into_iter()
        .map(|(clock, mut line)| {
            line.sort_unstable_by_key(|i| (i.begin, i.node));
            let ended = Ended::of(&line);
            (clock, line, ended)
        })
        .collect();
    lines.sort_unstable_by_key(|(clock, ..)| *clock);
    for (clock, line, own) in &lines {
        for (other, _, ended) in &lines {
            if clocks.horizon(*other, *clock, Time(0)).is_none() {
                continue;
            }
            let (mut own_before, mut upper, mut lower) = (0, 0, 0);
            for interval in line {
                let Some(horizon) = clocks.horizon(*other, *clock, interval.begin) else { continue };
                upper = ended.before(horizon, upper);
                own_before = own.before(interval.begin, own_before);
                let by_own = own.followed(own_before).and_then(|begin| clocks.horizon(*other, *clock, begin));
                let followed = ended.followed(upper).max(by_own);
                if let Some(followed) = followed {
                    lower = ended.before(followed, lower);
                }
                for (_, node) in ended.rows.get(lower..upper).unwrap_or(&[]) {
                    edge(*node, interval.node);
                }
            }
        }
    }
}
