//! Draws an operation log: calls as operations in words, and the order of the calls in a finding.

use super::{Drawing, EMBEDDED, Row};
use crate::history::Verb;
use crate::history::calls::{Call, CallRows, Moment};
use crate::ingest::Position;
use crate::ingest::call::Ending;
use crate::report::html::picture::Finding;
use rustc_hash::{FxHashMap, FxHashSet};

/// Calls of a finding to compare with each other.
const COMPARED: usize = 64;
/// The reason why one call precedes another.
const ANSWERED: &str = "answered before it was invoked";

/// Ranks of a log without times, made dense; empty for a log with times.
#[derive(Default)]
pub(super) struct Places(FxHashMap<i64, i64>);

impl Places {
    /// From the calls of a log.
    pub(super) fn of(calls: &CallRows) -> Places {
        let mut ranks: Vec<i64> = Vec::new();
        for call in calls.iter() {
            if call.invoke.time.is_known() || call.ret.time.is_known() {
                return Places::default();
            }
            ranks.push(call.invoke.rank);
            if call.ending != Ending::Unknown {
                ranks.push(call.ret.rank);
            }
        }
        ranks.sort_unstable();
        ranks.dedup();
        Places(ranks.into_iter().zip(0..).collect())
    }

    /// Whether ranks are drawn instead of times.
    pub(super) fn are_drawn(&self) -> bool {
        !self.0.is_empty()
    }

    fn of_moment(&self, moment: Moment) -> Option<i64> {
        self.0.get(&moment.rank).copied()
    }
}

impl Drawing<'_> {
    /// The position of a moment in the picture; -1: none.
    fn moment(&self, moment: Moment) -> i64 {
        if self.places.are_drawn() { self.places.of_moment(moment).unwrap_or(-1) } else { self.time(moment.time) }
    }

    /// Adds the calls of an operation log, in words.
    pub(super) fn calls(&mut self, cited: &FxHashSet<Position>) {
        let log = self.history.calls();
        let mut left = EMBEDDED;
        for call in log.calls.iter() {
            let Some(&lane) = self.lane_of.get(&call.process) else { continue };
            let t = self.moment(call.invoke);
            if t < 0 {
                continue;
            }
            let is_near = self.places.are_drawn() || self.near.covers(call.invoke.time, call.ret.time);
            let is_cited = || cited.contains(&call.invoke.position) || cited.contains(&call.ret.position);
            if (left == 0 || !is_near) && !is_cited() {
                self.picture.omitted[0] += 1;
                continue;
            }
            left = left.saturating_sub(1);
            let key = log.keys.get(&call.key).map_or(-1, |key| self.key(*key));
            let word = self.word(log.words(&call, self.history.name(call.function)));
            let row = Row {
                t,
                u: if call.ending == Ending::Unknown { -1 } else { self.moment(call.ret) },
                r: -1,
                verb: Verb::Other,
                key,
                status: match call.ending {
                    Ending::Ok => 200,
                    Ending::Refused | Ending::Fail => 400,
                    Ending::Unknown => 0,
                },
                position: call.invoke.position,
                answer: call.ret.position,
                word: Some(word),
            };
            self.rows[lane].push(row);
        }
    }

    /// Places the facts of a finding at their calls, with an edge from each call to its direct successors.
    pub(super) fn core(&self, finding: &mut Finding, positions: &[Position], calls: &FxHashMap<Position, Call>) {
        let cited: Vec<(usize, &Call)> = positions
            .iter()
            .enumerate()
            .filter_map(|(at, position)| Some((at, calls.get(position)?)))
            .take(COMPARED)
            .collect();
        if cited.is_empty() {
            return;
        }
        for (at, call) in &cited {
            let invoke = self.moment(call.invoke);
            let fact = &mut finding.facts[*at];
            fact.t = if call.ending == Ending::Unknown { invoke } else { self.moment(call.ret).max(invoke) };
        }
        let before = |a: &Call, b: &Call| a.ending != Ending::Unknown && a.ret.rank < b.invoke.rank;
        finding.edges.clear();
        for (from, a) in &cited {
            for (to, b) in cited.iter().filter(|(_, b)| before(a, b)) {
                if !cited.iter().any(|(_, c)| before(a, c) && before(c, b)) {
                    finding.edges.push((*from, *to, ANSWERED));
                }
            }
        }
    }
}
