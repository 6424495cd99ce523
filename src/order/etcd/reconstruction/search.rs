//! Backtracking search over gaps in order of revisions. A failed constraint returns to the last gap of its component, and states
//! from which nothing led to a solution are cached.

use super::super::effects::Change;
use super::candidates::{Candidate, Candidates, Changed};
use super::problem::{Mark, Problem};
use super::state::{Cell, State};
use super::{SearchOutcome, Supposed, Writer};
use crate::history::etcd::Request;
use rustc_hash::{FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

/// Limit on visited marks.
const STEPS: u64 = 8_000_000;

/// Limit on complete choices that are compared with all evidence, for small recordings.
const CHOICES: u64 = 2_000;

/// Limit on the total cost of these comparisons, in records.
const RECORDS: u64 = 4_000_000;

/// A gap on the current path, with its candidates.
struct Frame {
    mark: usize,
    gap: u32,
    state: State,
    candidates: Vec<Candidate>,
    next: usize,
    /// Whether some later choice satisfied all constraints.
    reached: bool,
    failed: (usize, u64),
}

enum Walked {
    /// All marks were passed.
    End,
    /// At a gap.
    Gap(usize, u32),
    /// A constraint failed; the component of its keys.
    Contradiction(u32),
    Spent,
}

struct Search<'c> {
    problem: &'c Problem<'c>,
    frames: Vec<Frame>,
    used: FxHashSet<u32>,
    /// Ends of leases so far, with their revisions.
    ended: Vec<(i64, i64)>,
    /// Positions and states from which no solution was reached.
    failed: FxHashSet<(usize, u64)>,
    steps: u64,
    complete: bool,
    deepest: i64,
}

/// Searches a problem. `accepts` compares a complete choice with all evidence.
pub fn run(problem: &Problem<'_>, mut accepts: impl FnMut(&[Supposed]) -> bool) -> SearchOutcome {
    let recording = problem.known.recording;
    let records = (recording.operations.len() + recording.events.len()) as u64 + 1;
    let mut choices = CHOICES.min(RECORDS / records).max(4);
    let mut search = Search {
        problem,
        frames: Vec::new(),
        used: FxHashSet::default(),
        ended: Vec::new(),
        failed: FxHashSet::default(),
        steps: STEPS,
        complete: true,
        deepest: 0,
    };
    let mut state: State = vec![None; problem.keys.names.len()];
    let mut walked = search.walk(&mut state, 0);
    let mut refused = false;
    loop {
        match walked {
            Walked::Spent => return SearchOutcome::Spent,
            Walked::End => {
                let supposed = search.supposed();
                if accepts(&supposed) {
                    return SearchOutcome::Found(supposed);
                }
                refused = true;
                choices -= 1;
                if choices == 0 {
                    return SearchOutcome::Spent;
                }
                search.frames.iter_mut().for_each(|frame| frame.reached = true);
            }
            Walked::Gap(mark, gap) => search.enter(mark, gap, &state),
            Walked::Contradiction(part) => search.back_to(part),
        }
        let Some((mark, next)) = search.next() else {
            // `accepts` may reject a choice only because something stays open.
            let sure = search.complete && !refused && search.deepest > 0;
            return if sure { SearchOutcome::Nothing { at: search.deepest } } else { SearchOutcome::Beyond };
        };
        state = next;
        walked = search.walk(&mut state, mark + 1);
    }
}

impl Search<'_> {
    fn walk(&mut self, state: &mut State, from: usize) -> Walked {
        let Problem { known, keys, marks, of_key, .. } = self.problem;
        for (at, (revision, mark)) in marks.iter().enumerate().skip(from) {
            self.steps = self.steps.saturating_sub(1);
            if self.steps == 0 {
                return Walked::Spent;
            }
            match mark {
                Mark::Change { key, value, attached } => apply(state, *revision, (*key, *value, *attached)),
                Mark::Gap(gap) => return Walked::Gap(at, *gap),
                Mark::Claim(claim) if claim.fits(*known, keys, state) => {}
                Mark::Claim(claim) => {
                    let key = claim.keys(*known, keys).first().map_or(u32::MAX, |key| of_key[*key as usize]);
                    return Walked::Contradiction(key);
                }
            }
        }
        Walked::End
    }

    fn enter(&mut self, mark: usize, gap: u32, state: &State) {
        let problem = self.problem;
        let part = problem.of_gap[gap as usize];
        let mut hasher = FxHasher::default();
        for (cell, of) in state.iter().zip(&problem.of_key) {
            if *of == part {
                cell.hash(&mut hasher);
            }
        }
        let mut kinds: Vec<u32> = self.used.iter().map(|at| problem.kinds.get(at).copied().unwrap_or(*at)).collect();
        kinds.sort_unstable();
        kinds.hash(&mut hasher);
        self.ended.hash(&mut hasher);
        let failed = (mark, hasher.finish());
        let mut candidates = Candidates { all: Vec::new(), complete: true };
        if !self.failed.contains(&failed) {
            let of = &problem.gaps[gap as usize];
            candidates = Candidates::of(problem, of, state, &self.used, &self.ended);
            self.steps = self.steps.saturating_sub(1 + of.requests.len() as u64);
            if candidates.all.is_empty() {
                self.deepest = self.deepest.max(of.number);
            }
        }
        self.complete &= candidates.complete;
        let state = if candidates.all.is_empty() { State::new() } else { state.clone() };
        let candidates = candidates.all;
        self.frames.push(Frame { mark, gap, state, candidates, next: 0, reached: false, failed });
    }

    /// The lease that a writer ends.
    fn lease(&self, writer: Writer) -> Option<i64> {
        match writer {
            Writer::Expiry(lease) => Some(lease),
            Writer::Operation(at) => match self.problem.known.recording.operations[at as usize].request {
                Request::LeaseRevoke { lease } => Some(lease),
                _ => None,
            },
        }
    }

    /// Undoes the last choice of the top frame.
    fn take_back(&mut self) {
        let Some(frame) = self.frames.last() else { return };
        let chosen = frame.next.checked_sub(1).and_then(|at| frame.candidates.get(at));
        let Some(&Candidate { writer, .. }) = chosen else { return };
        if let Writer::Operation(at) = writer {
            self.used.remove(&at);
        }
        if self.lease(writer).is_some() {
            self.ended.pop();
        }
    }

    /// Backtracks to the last gap of a component; choices at other gaps change nothing for it.
    fn back_to(&mut self, part: u32) {
        while let Some(frame) = self.frames.last() {
            if frame.reached || self.problem.of_gap[frame.gap as usize] == part {
                return;
            }
            self.take_back();
            self.frames.pop();
        }
    }

    /// Takes the next choice. Returns its mark and the state after it.
    fn next(&mut self) -> Option<(usize, State)> {
        loop {
            self.take_back();
            let frame = self.frames.last_mut()?;
            if let Some(candidate) = frame.candidates.get(frame.next) {
                frame.next += 1;
                let number = self.problem.gaps[frame.gap as usize].number;
                let mut state = frame.state.clone();
                candidate.changes.iter().for_each(|changed| apply(&mut state, number, *changed));
                let writer = candidate.writer;
                if let Writer::Operation(at) = writer {
                    self.used.insert(at);
                }
                let mark = frame.mark;
                self.ended.extend(self.lease(writer).map(|lease| (lease, number)));
                return Some((mark, state));
            }
            let Frame { gap, reached, failed, .. } = self.frames.pop()?;
            if !reached {
                self.failed.insert(failed);
                self.back_to(self.problem.of_gap[gap as usize]);
            }
        }
    }

    fn supposed(&self) -> Vec<Supposed> {
        let names = &self.problem.keys.names;
        let of = |frame: &Frame| {
            let candidate = frame.candidates.get(frame.next.checked_sub(1)?)?;
            let number = self.problem.gaps[frame.gap as usize].number;
            let changes =
                candidate.changes.iter().map(|(key, value, _)| Change { key: names[*key as usize], value: *value });
            Some(Supposed { revision: number, writer: candidate.writer, changes: changes.collect() })
        };
        self.frames.iter().filter_map(of).collect()
    }
}

fn apply(state: &mut State, revision: i64, (key, value, attached): Changed) {
    let cell = &mut state[key as usize];
    *cell = value.map(|value| Cell {
        created: cell.map_or(revision, |before| before.created),
        changed: revision,
        version: cell.map_or(1, |before| before.version + 1),
        value,
        attached,
    });
}
