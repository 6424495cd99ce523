//! Difference constraints between clocks, from reads, from requests that both sides recorded, and from declared skew; closed with
//! Floyd and Warshall's algorithm. Output: [`Clocks`]. During the closure `bound` is transposed (see [`Clocks`]).

use super::spread::Spread;
use super::twice_recorded::TwiceRecorded;
use super::{ClockStep, Clocks, GRAIN, MAX_RELATED_CLOCKS, OPEN, step};
use crate::history::writers::Writers;
use crate::history::{ClockId, History, OperationId, Revision, Verb};
use crate::ingest::Time;
use crate::order::shown::Observation;
use crate::order::watermark::{Counter, Watermarks};

impl Clocks {
    /// Derives the bounds. `skew`, in nanoseconds, bounds every pair if the user declares it.
    pub fn bound(
        history: &History,
        unknown: &[Option<Writers>],
        counter: &mut Counter,
        watermarks: &Watermarks,
        skew: Option<i64>,
    ) -> Clocks {
        let count = history.clocks.len();
        let declared = skew.unwrap_or(OPEN);
        let cells = if count <= MAX_RELATED_CLOCKS { count * count } else { 0 };
        let stepped = step::own(history);
        let mut clocks = Clocks { count, declared, bound: vec![OPEN; cells], stepped, ..Clocks::default() };
        clocks.spread(history, unknown, counter);
        let twice_recorded = std::mem::take(&mut counter.twice_recorded);
        if cells > 0 {
            clocks.relate_all(history, counter, &twice_recorded, watermarks, skew);
        }
        clocks.twice_recorded = twice_recorded;
        clocks
    }

    fn relate_all(
        &mut self,
        history: &History,
        counter: &mut Counter,
        twice_recorded: &TwiceRecorded,
        watermarks: &Watermarks,
        skew: Option<i64>,
    ) {
        let count = self.count;
        for a in 0..count {
            for b in 0..count {
                if a == b {
                    self.bound[a * count + b] = 0;
                } else if let Some(skew) = skew {
                    self.bound[a * count + b] = skew;
                }
            }
        }
        self.bound_by_reads(history, counter, twice_recorded, watermarks);
        self.bound_by_sides(twice_recorded);
        self.close();
        for a in 0..count {
            for b in 0..a {
                self.bound.swap(a * count + b, b * count + a);
            }
        }
        self.note_least();
    }

    fn note_least(&mut self) {
        let own = |clock: usize| self.spreads.get(clock).and_then(Option::as_deref).map_or(0, Spread::narrowest);
        let least = |(clock, row): (usize, &[i64])| {
            let others = row.iter().enumerate().filter(|(of, _)| *of != clock).map(|(_, bound)| *bound);
            others.fold(own(clock), i64::min)
        };
        self.least = self.bound.chunks(self.count).enumerate().map(least).collect();
    }

    /// For tests: clocks whose offsets have drawn bounds, or none.
    #[cfg(test)]
    pub(in crate::order) fn with_bounds(count: usize, mut draw: impl FnMut() -> Option<i64>) -> Clocks {
        let bound =
            (0..count * count).map(|at| if at % (count + 1) == 0 { 0 } else { draw().unwrap_or(OPEN) }).collect();
        let mut clocks = Clocks { count, declared: OPEN, bound, stepped: vec![None; count], ..Clocks::default() };
        clocks.note_least();
        clocks
    }

    /// Bounds the difference between the servers of logs that may come from several.
    fn spread(&mut self, history: &History, unknown: &[Option<Writers>], counter: &mut Counter) {
        if unknown.iter().all(Option::is_none) {
            return;
        }
        let mut writes: Vec<Vec<(Revision, OperationId)>> = vec![Vec::new(); self.count];
        if let Some(group) = history.identity_leases().map(|resource| counter.group(resource)) {
            for (revision, clock, _, id) in counter.by_revision(history, group).0.filter(|write| write.1.is_some()) {
                writes[clock.index()].push((revision, id));
            }
        }
        let clock = |id: &OperationId| history.operations.clock(id.index());
        let mut lines: Vec<OperationId> = (0..history.operations.len() as u32).map(OperationId).collect();
        lines.sort_by_key(clock);
        let of = |(at, writers): (usize, &Option<Writers>)| {
            let (of, writers) = (ClockId(at as u32), writers.as_ref()?);
            let lines = &lines[lines.partition_point(|id| clock(id) < of)..lines.partition_point(|id| clock(id) <= of)];
            Some(Box::new(Spread::of(history, lines, &writes[at], writers, self.declared)))
        };
        self.spreads = unknown.iter().enumerate().map(of).collect();
    }

    fn limit(&mut self, a: ClockId, b: ClockId, at_most: i64) {
        if a.is_some() && b.is_some() && a != b {
            // A constraint holds for one server of a log; the others may differ from it by their spread.
            let apart = [a, b].into_iter().filter_map(|clock| self.spread_of(clock)).map(Spread::widest);
            let at_most = apart.fold(at_most, i64::saturating_add).min(OPEN);
            let cell = &mut self.bound[a.index() * self.count + b.index()];
            *cell = (*cell).min(at_most);
        }
    }

    /// Bounds offsets by answers: an answer shows revision R at time t of clock b. Every write at or below R was sent before, so
    /// for a write sent at s on clock a, the offsets differ by at most t - s.
    ///
    /// On one clock, an answer before the write that it shows has two explanations: the clock stepped back, or the store went
    /// back. Recorders append, so a step shows as times that fall from one line to the next. If none fall that far, the store
    /// went back.
    fn bound_by_reads(
        &mut self,
        history: &History,
        counter: &mut Counter,
        twice_recorded: &TwiceRecorded,
        watermarks: &Watermarks,
    ) {
        if self.count == 1 && watermarks.are_steady() {
            return;
        }
        let falls = step::falls(history);
        let all: Vec<usize> = (0..self.count).collect();
        if self.count == 1 && falls[0] == 0 {
            return;
        }
        for group in 0..counter.groups() {
            // A write below a revision that the clock of one of its records had seen comes from a store that went back. It
            // bounds no clock. That is also true if only one list or watch showed the revision on this clock.
            let had_seen = |revision, clock: ClockId, sent| {
                let seen = || watermarks.seen(history, group, clock, sent);
                clock.is_some() && seen().is_some_and(|seen| seen > revision)
            };
            let went_back = |revision, clock, sent, id: OperationId| {
                let other = || twice_recorded.other(&history.operation(id));
                had_seen(revision, clock, sent)
                    || watermarks.against(history, id).is_some()
                    || other().is_some_and(|other| had_seen(revision, other.clock, other.invoke))
            };
            // For each clock, the last sent write at or below the answer's revision; and the clocks in the order in which this
            // write changed.
            let mut latest: Vec<Option<(Time, OperationId)>> = vec![None; self.count];
            let mut changes: Vec<usize> = Vec::new();
            // For each clock, how many changes its answers took into account, and the latest of these answers. A later answer
            // adds nothing about the other clocks.
            let mut compared = vec![(0, Time(i64::MIN)); self.count];
            let (writes, answers) = counter.by_revision(history, group);
            let mut writes = writes.peekable();
            for Observation { time: returned, clock, revision, evidence: showing, .. } in answers {
                while let Some((written, of, sent, id)) = writes.next_if(|write| write.0 <= revision) {
                    let counts = falls[of.index()] > 0 || !went_back(written, of, sent, id);
                    if counts && latest[of.index()].is_none_or(|(time, _)| sent > time) {
                        latest[of.index()] = Some((sent, id));
                        changes.push(of.index());
                    }
                }
                let Some((changed, newest)) = compared.get_mut(clock.index()) else { continue };
                let is_later = returned >= *newest && changes.len() - *changed < self.count;
                let others = if is_later { &changes[*changed..] } else { &all[..] };
                (*changed, *newest) = (changes.len(), returned.max(*newest));
                for of in others.iter().copied().chain([clock.index()]) {
                    let Some((sent, id)) = latest[of] else { continue };
                    let slack = returned.since(sent).saturating_add(GRAIN);
                    if of != clock.index() {
                        self.limit(ClockId(of as u32), clock, slack);
                    } else if slack < 0
                        && self.spread_of(clock).is_none()
                        && -slack <= falls[of]
                        && self.stepped[of].is_none_or(|s| s.by < -slack)
                        && !step::recorded_before(history, showing, id)
                    {
                        self.stepped[of] =
                            Some(ClockStep { clock, by: -slack, at: Some(step::place(history, showing)) });
                    }
                }
            }
        }
    }

    /// For a request that both sides recorded, the server's interval lies inside the client's.
    fn bound_by_sides(&mut self, twice_recorded: &TwiceRecorded) {
        for (verb, [client, server]) in twice_recorded.all() {
            if client.invoke.is_known() && server.invoke.is_known() {
                self.limit(client.clock, server.clock, server.invoke.since(client.invoke).saturating_add(GRAIN));
            }
            if verb != Verb::Watch && client.ret.is_known() && server.ret.is_known() {
                self.limit(server.clock, client.clock, client.ret.since(server.ret).saturating_add(GRAIN));
            }
        }
    }

    fn close(&mut self) {
        let n = self.count;
        let mut bounded: Vec<(usize, i64)> = Vec::with_capacity(n);
        for k in 0..n {
            bounded.clear();
            bounded.extend(self.bound[k * n..][..n].iter().copied().enumerate().filter(|(_, right)| *right < OPEN));
            for row in self.bound.chunks_mut(n).filter(|row| row[k] < OPEN) {
                let left = row[k];
                for &(b, right) in &bounded {
                    // A saturated sum is a looser bound, so it is safe.
                    row[b] = row[b].min(left.saturating_add(right));
                }
            }
        }
        // A negative cycle: no constant offsets explain the evidence, so every clock on it counts as stepped.
        for a in 0..n {
            let own = self.bound[a * n + a];
            if own < 0 && self.stepped[a].is_none() {
                let clock = ClockId(a as u32);
                self.stepped[a] = Some(ClockStep { clock, by: own.saturating_neg(), at: None });
            }
        }
    }
}
