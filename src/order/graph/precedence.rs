//! Interval order: a unit comes before another if it ended before the other began. Output: the transitive reduction, so that
//! every pair in order is connected by few edges.

use super::sparse::Node;
use crate::history::ClockId;
use crate::ingest::Time;
use crate::order::clock::Clocks;
use rustc_hash::FxHashMap;

/// The time of a unit on one clock.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// The unit.
    pub node: Node,
    /// Not later than its true begin.
    pub begin: Time,
    /// Not earlier than its true end; unknown if the evidence shows none.
    pub end: Time,
    /// The clock of both times.
    pub clock: ClockId,
}

/// The intervals of one clock that ended, by their end.
#[derive(Default)]
struct Ended {
    rows: Vec<(Time, Node)>,
    /// The latest begin among this row and the rows before it. One of these rows follows every interval that ended before that.
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

    /// The number of rows that ended before a time. `from` is the number for an earlier time; calls must ascend.
    fn before(&self, time: Time, from: usize) -> usize {
        from + self.rows[from..].iter().take_while(|(end, _)| *end < time).count()
    }

    /// The latest begin among the first rows. An interval that ended before it precedes one of them, so it needs no edge.
    fn followed(&self, rows: usize) -> Option<Time> {
        rows.checked_sub(1).map(|last| self.latest_begin[last])
    }
}

/// Calls `edge` for every ordered pair without another interval in between: the transitive reduction of the order in time. It is
/// exact on one clock. Across clocks whose bounds prove the order, a pair is left out only for an interval on one of its two
/// clocks.
///
/// One pass over the intervals of each clock for every comparable clock, in order of begin. The number of edges is at most the
/// number of intervals times the number that overlap each. Equal times are not ordered, nor is any time of a stepped clock.
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
