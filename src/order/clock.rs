//! Clocks: what the evidence proves about the offsets between them.
//!
//! Every time belongs to a named clock. Two times of one clock compare freely. Across clocks, an answer that shows a revision
//! cannot have returned before the write of that revision was sent, and a server's interval lies inside its client's:
//! difference constraints, closed by Floyd and Warshall. Offsets are taken as constant; where the constraints contradict each
//! other, a clock stepped, and nothing is proved by its times any more.

mod spread;
mod step;

pub use step::ClockStep;

use super::head::{Counter, Heads};
use super::sight::Sight;
use crate::history::writers::Writers;
use crate::history::{AuditId, ClockId, History, Marks, OperationId, Revision, Verb};
use crate::ingest::Time;
use rustc_hash::FxHashMap;
use spread::Spread;

/// No bound.
const OPEN: i64 = i64::MAX / 4;

/// A microsecond: audit times are cut to it, so a time stands for the microsecond that begins with it.
const GRAIN: i64 = 1_000;

/// Evidence with more clocks than this (one a file, where nobody says otherwise) has each compared with itself only: the offsets
/// of all pairs would take more memory and time than the evidence is worth.
pub(super) const RELATED: usize = 512;

/// Bounds on the offsets between clocks.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    count: usize,
    /// What the user declared of every pair; used by itself where there are too many clocks.
    declared: i64,
    /// Empty where there are too many clocks. `bound[b * count + a]`: the offset of clock a minus that of b is at most this. Adding a clock's
    /// offset to its times gives common time. A question asks for those of all clocks against one, so these stand side by side; until all
    /// are found, a and b change places.
    bound: Vec<i64>,
    /// Clocks whose times contradict the evidence.
    stepped: Vec<Option<ClockStep>>,
    /// Of audit logs that may be of several servers, how far apart these may be; none where all clocks are of one.
    spreads: Vec<Option<Box<Spread>>>,
}

/// How two moments relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Proved: before.
    Before,
    /// Proved: not before.
    NotBefore,
    /// Their clocks' times say before, and nothing proves the offset: this many nanoseconds of offset explain it away.
    BeforeUnless(i64),
    /// A time is missing.
    Unknown,
}

impl Clocks {
    /// Bounds from the evidence; `skew` bounds every pair, where the user declares it.
    pub fn bound(
        history: &History,
        unknown: &[Option<Writers>],
        counter: &mut Counter,
        heads: &Heads,
        skew: Option<i64>,
    ) -> Clocks {
        let count = history.clocks.len();
        let declared = skew.unwrap_or(OPEN);
        let cells = if count <= RELATED { count * count } else { 0 };
        let stepped = step::own(history);
        let mut clocks = Clocks { count, declared, bound: vec![OPEN; cells], stepped, spreads: Vec::new() };
        clocks.spread(history, unknown, counter);
        if cells == 0 {
            return clocks;
        }
        for a in 0..count {
            for b in 0..count {
                if a == b {
                    clocks.bound[a * count + b] = 0;
                } else if let Some(skew) = skew {
                    clocks.bound[a * count + b] = skew;
                }
            }
        }
        clocks.bound_by_reads(history, counter, heads);
        clocks.bound_by_sides(history);
        clocks.close();
        for a in 0..count {
            for b in 0..a {
                clocks.bound.swap(a * count + b, b * count + a);
            }
        }
        clocks
    }

    /// Bounds the servers of logs that may be of several.
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

    fn spread_of(&self, clock: ClockId) -> Option<&Spread> {
        self.spreads.get(clock.index())?.as_deref()
    }

    /// How far apart the servers may be that wrote a log, where nothing shows that it was one only: nanoseconds, or nothing where nothing
    /// bounds it.
    pub fn several(&self, clock: ClockId) -> Option<Option<i64>> {
        Some(self.spread_of(clock)?.widest()).map(|bound| (bound < OPEN).then_some(bound))
    }

    fn limit(&mut self, a: ClockId, b: ClockId, at_most: i64) {
        if a.is_some() && b.is_some() && a != b {
            // What one server's lines bound, every other server of its log may miss by their spread.
            let apart = [a, b].into_iter().filter_map(|clock| self.spread_of(clock)).map(Spread::widest);
            let at_most = apart.fold(at_most, i64::saturating_add).min(OPEN);
            let cell = &mut self.bound[a.index() * self.count + b.index()];
            *cell = (*cell).min(at_most);
        }
    }

    /// On one clock an answer before the write that it shows has two explanations: the clock stepped back, or the store did.
    /// Recorders append, so a step shows as times that fall from one line to the next; where none fall so far, it was the store.
    ///
    /// An answer on clock b at t that shows revision R: every write at or below R was sent before, so for a write sent at s on
    /// clock a, the offsets differ by at most t - s.
    fn bound_by_reads(&mut self, history: &History, counter: &mut Counter, heads: &Heads) {
        if self.count == 1 && heads.are_steady() {
            return;
        }
        let falls = step::falls(history);
        if self.count == 1 && falls[0] == 0 {
            return;
        }
        for group in 0..counter.groups() {
            // A write below what its own clock had seen before comes from a store that went back: it bounds no clock.
            let went_back =
                |revision, clock, sent| heads.seen(history, group, clock, sent).is_some_and(|seen| seen > revision);
            // Of each clock, the write sent last among those at or below the answer's revision.
            let mut latest: Vec<Option<(Time, OperationId)>> = vec![None; self.count];
            let (writes, answers) = counter.by_revision(history, group);
            let mut writes = writes.peekable();
            for Sight { time: returned, clock, revision, showing, .. } in answers {
                while let Some((written, of, sent, id)) = writes.next_if(|write| write.0 <= revision) {
                    let counts = falls[of.index()] > 0 || !went_back(written, of, sent);
                    if counts && latest[of.index()].is_none_or(|(time, _)| sent > time) {
                        latest[of.index()] = Some((sent, id));
                    }
                }
                for (of, sent) in latest.iter().enumerate() {
                    let Some((sent, id)) = *sent else { continue };
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

    /// A server's interval lies inside that of its client, for a request that both recorded.
    fn bound_by_sides(&mut self, history: &History) {
        let mut shadows: FxHashMap<(AuditId, Verb), Vec<OperationId>> = FxHashMap::default();
        for (id, o) in history.operations.of_marks(Marks::SHADOW) {
            shadows.entry((o.audit_id, o.verb)).or_default().push(id);
        }
        let both = history.operations.of_marks(Marks::BOTH_SIDES).map(|(_, o)| o);
        for client in both.filter(|o| o.marks.has(Marks::CLIENT_SIDE)) {
            let Some(found) = shadows.get(&(client.audit_id, client.verb)) else { continue };
            let [only] = found.as_slice() else { continue };
            let server = history.operation(*only);
            if client.invoke.is_known() && server.invoke.is_known() {
                self.limit(client.clock, server.clock, server.invoke.since(client.invoke).saturating_add(GRAIN));
            }
            if client.verb != Verb::Watch && client.ret.is_known() && server.ret.is_known() {
                self.limit(server.clock, client.clock, client.ret.since(server.ret).saturating_add(GRAIN));
            }
        }
    }

    fn close(&mut self) {
        let n = self.count;
        for k in 0..n {
            for a in 0..n {
                let left = self.bound[a * n + k];
                if left >= OPEN {
                    continue;
                }
                for b in 0..n {
                    let right = self.bound[k * n + b];
                    // What no number holds is a looser bound.
                    let through = left.saturating_add(right);
                    if right < OPEN && through < self.bound[a * n + b] {
                        self.bound[a * n + b] = through;
                    }
                }
            }
        }
        // A negative cycle: no constant offsets explain the evidence, so both clocks of it are out.
        for a in 0..n {
            let own = self.bound[a * n + a];
            if own < 0 && self.stepped[a].is_none() {
                let clock = ClockId(a as u32);
                self.stepped[a] = Some(ClockStep { clock, by: own.saturating_neg(), at: None });
            }
        }
    }

    fn offset(&self, a: ClockId, b: ClockId) -> i64 {
        self.bound.get(b.index() * self.count + a.index()).copied().unwrap_or(self.declared)
    }

    /// Whether times of different clocks may compare at all.
    pub(super) fn relate(&self) -> bool {
        !self.bound.is_empty() || self.declared < OPEN
    }

    /// The step of a clock, where the evidence shows one.
    pub fn step(&self, clock: ClockId) -> Option<ClockStep> {
        if clock.is_some() { self.stepped[clock.index()] } else { None }
    }

    /// How many clocks there are, where they are too many to be related to each other by the evidence.
    pub fn unrelated(&self) -> Option<usize> {
        (self.stepped.len() > RELATED).then_some(self.stepped.len())
    }

    /// All clocks that stepped.
    pub fn steps(&self) -> impl Iterator<Item = ClockStep> + '_ {
        self.stepped.iter().flatten().copied()
    }

    /// The latest time of clock `of` that is certainly before `time` of `clock`: times below it are proved earlier.
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

    /// Whether a moment is before another.
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

    /// Whether a moment is proved to be before another.
    pub fn before(&self, a: (Time, ClockId), b: (Time, ClockId)) -> bool {
        a.0.is_known()
            && a.1.is_some()
            && b.1.is_some()
            && self.horizon(a.1, b.1, b.0).is_some_and(|horizon| a.0 < horizon)
    }
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
            clocks: vec![crate::history::Symbol::NONE; super::RELATED + 1],
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
        // The positions of a sketch are its own lines, so a second line of one client that is drawn earlier falls back.
        assert!(stepped(
            "web@A                                 |-CREATE b => b:u2@12-|\nweb@A  |-CREATE a => a:u1@13-|\n"
        ));
    }
}
