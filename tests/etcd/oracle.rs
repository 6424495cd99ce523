//! Enumerates every execution of a small etcd history: the requests that took effect, their order, expired leases,
//! and the leases of transactional puts. Slow, and written from etcd's documentation alone: it shares no code with
//! the checker.

use crate::etcd::small::{Answer, Ask, Compare, Event, Found, Key, Look, Name, Operation, Small, Step, Told, Watch};
use std::collections::BTreeSet;

/// A live key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    pub value: Name,
    pub changed: i64,
    pub version: i64,
    pub lease: i64,
}

/// The state of each key.
pub type State = [Option<Live>; 4];

/// A store with its history.
#[derive(Clone, Debug)]
pub struct Server {
    /// States by revision, from revision 1.
    pub states: Vec<State>,
    pub leases: BTreeSet<i64>,
    /// Leases without a recorded grant; their lifetime is unknown.
    pub elsewhere: BTreeSet<i64>,
    pub compacted: i64,
}

/// Leases of a transaction's puts, in the order of the puts. The record does not contain them.
pub type Hidden = Vec<i64>;

impl Server {
    pub fn new() -> Server {
        Server { states: vec![State::default()], leases: BTreeSet::new(), elsewhere: BTreeSet::new(), compacted: 0 }
    }

    pub fn revision(&self) -> i64 {
        self.states.len() as i64
    }

    fn lives(&self, lease: i64) -> bool {
        self.leases.contains(&lease) || self.elsewhere.contains(&lease)
    }

    pub fn now(&self) -> &State {
        &self.states[self.states.len() - 1]
    }

    pub fn state(&self, revision: i64) -> &State {
        &self.states[revision as usize - 1]
    }

    /// The keys that a revision changed, with their states before and after.
    pub fn changes(&self, revision: i64) -> Vec<(Key, Option<Live>, Option<Live>)> {
        let pairs = self.state(revision - 1).iter().zip(self.state(revision));
        let changes = (0..).zip(pairs).filter(|(_, (before, after))| before != after);
        changes.map(|(key, (before, after))| (key, *before, *after)).collect()
    }

    /// Expires a lease. Returns whether keys were deleted with it.
    pub fn expire(&mut self, lease: i64) -> bool {
        self.leases.remove(&lease);
        let mut state = *self.now();
        let attached = |live: &Option<Live>| live.is_some_and(|live| live.lease == lease);
        state.iter_mut().filter(|live| attached(live)).for_each(|live| *live = None);
        let removed = state != *self.now();
        if removed {
            self.states.push(state);
        }
        removed
    }

    /// Applies a request and returns the answer.
    pub fn apply(&mut self, ask: &Ask, hidden: &Hidden) -> Answer {
        let done = |server: &Server, results| Answer::Done { revision: server.revision(), failure: false, results };
        match ask {
            Ask::Range(look) if look.revision > self.revision() => Answer::Future,
            Ask::Range(look) if look.revision > 0 && look.revision < self.compacted => Answer::Compacted,
            Ask::Range(look) => {
                let at = if look.revision > 0 { look.revision } else { self.revision() };
                done(self, vec![found(self.state(at), look)])
            }
            Ask::Txn { conditions, success, failure } => self.txn(conditions, success, failure, hidden),
            // A live lease cannot be granted; one without a key may have ended unobserved.
            Ask::Grant(lease) if self.now().iter().flatten().any(|live| live.lease == *lease) => Answer::Refused,
            Ask::Grant(lease) => {
                // A grant without an id is of a lease that no request names.
                self.leases.extend(Some(*lease).filter(|lease| *lease != 0));
                done(self, Vec::new())
            }
            Ask::Revoke(lease) => {
                if !self.lives(*lease) {
                    return Answer::Refused;
                }
                self.expire(*lease);
                done(self, Vec::new())
            }
            Ask::Compact(through) if *through <= self.compacted => Answer::Compacted,
            Ask::Compact(through) if *through > self.revision() => Answer::Future,
            Ask::Compact(through) => {
                self.compacted = *through;
                Answer::Done { revision: 0, failure: false, results: Vec::new() }
            }
        }
    }

    fn txn(&mut self, conditions: &[(Key, Compare)], success: &[Step], failure: &[Step], hidden: &Hidden) -> Answer {
        let holds = |(key, compare): &(Key, Compare)| {
            let live = self.now()[*key as usize];
            match compare {
                Compare::Changed(number) => live.map_or(0, |live| live.changed) == *number,
                Compare::Version(number) => live.map_or(0, |live| live.version) == *number,
            }
        };
        let holds = conditions.iter().all(holds);
        let steps = if holds { success } else { failure };
        let mut hidden = hidden.iter();
        let plain = is_plain(conditions, success, failure);
        let (mut state, mut changed, mut results) = (*self.now(), false, Vec::new());
        let number = self.revision() + 1;
        for step in steps {
            let mut result = Found::default();
            match step {
                Step::Put(key, value, lease) => {
                    let lease = if plain || *lease != 0 { *lease } else { *hidden.next().unwrap_or(&0) };
                    if lease != 0 && !self.lives(lease) {
                        return Answer::Refused;
                    }
                    let version = state[*key as usize].map_or(0, |live| live.version) + 1;
                    state[*key as usize] = Some(Live { value: *value, changed: number, version, lease });
                    changed = true;
                }
                Step::Delete(key) => {
                    result.deleted = i64::from(state[*key as usize].take().is_some());
                    changed |= result.deleted > 0;
                }
                Step::DeleteBetween(key, end) => {
                    let inside = &mut state[*key as usize..*end as usize];
                    result.deleted = inside.iter_mut().filter_map(Option::take).count() as i64;
                    changed |= result.deleted > 0;
                }
                Step::Look(look) if look.revision > self.revision() => return Answer::Future,
                Step::Look(look) if look.revision > 0 && look.revision < self.compacted => return Answer::Compacted,
                Step::Look(look) if look.revision > 0 => result = found(self.state(look.revision), look),
                Step::Look(look) => result = found(&state, look),
            }
            results.push(result);
        }
        if changed {
            self.states.push(state);
        }
        Answer::Done { revision: self.revision(), failure: !holds, results }
    }
}

/// Only for these requests the record contains the lease.
pub fn is_plain(conditions: &[(Key, Compare)], success: &[Step], failure: &[Step]) -> bool {
    conditions.is_empty() && failure.is_empty() && success.len() == 1
}

fn found(state: &State, look: &Look) -> Found {
    let inside = |key: &Key| look.end.map_or(*key == look.key, |end| *key >= look.key && *key < end);
    let all = (0..).zip(state).filter(|(key, _)| inside(key)).filter_map(|(key, live)| Some((key, live.as_ref()?)));
    let value = |live: &Live| if look.keys_only { Name::EMPTY } else { live.value };
    let all: Vec<_> = all.map(|(key, live)| (key, value(live), live.changed, live.version)).collect();
    let count = all.len() as i64;
    let shown = if look.limit > 0 { all.len().min(look.limit as usize) } else { all.len() };
    Found { pairs: all[..shown].to_vec(), count, deleted: 0 }
}

/// One enumeration.
struct Trial<'s> {
    small: &'s Small,
    /// Whether events of this history mark creations.
    marks_creation: bool,
    /// Leases without a recorded grant.
    elsewhere: BTreeSet<i64>,
    /// Leases that requests name.
    leases: BTreeSet<i64>,
    /// Whether clients without records may have sent entries of the log.
    unrecorded: bool,
}

/// State of an enumeration. Each event has the earliest time that the order allows: the latest call so far.
#[derive(Clone)]
struct Course {
    server: Server,
    placed: u32,
    time: i64,
    /// Time of each revision, from revision 2.
    born: Vec<i64>,
    /// Compactions: revision and time.
    compactions: Vec<(i64, i64)>,
    /// Number of log entries applied.
    logged: usize,
}

/// Whether some execution explains a history, in which recorded clients sent every entry of the log.
pub fn is_possible(small: &Small) -> bool {
    is_explained(small, false)
}

/// Whether some execution explains a history, in which clients without records may have sent entries of the log.
pub fn is_possible_beside_other_clients(small: &Small) -> bool {
    is_explained(small, true)
}

fn is_explained(small: &Small, unrecorded: bool) -> bool {
    let marks_creation = small.watches.iter().flat_map(|watch| &watch.told).any(|told| match told {
        Told::Events { events, .. } => events.iter().any(|event| event.create),
        _ => false,
    });
    let mut server = Server::new();
    let elsewhere = granted_elsewhere(small);
    // A log from its first entry on contains every grant before its end.
    if small.log().is_empty() {
        server.elsewhere.clone_from(&elsewhere);
    }
    let course = Course { server, placed: 0, time: 0, born: Vec::new(), compactions: Vec::new(), logged: 0 };
    Trial { small, marks_creation, elsewhere, leases: leases(small), unrecorded }.goes_on(&course)
}

/// Leases without a recorded grant, which another client granted.
pub fn granted_elsewhere(small: &Small) -> BTreeSet<i64> {
    let granted = |lease: &i64| small.operations.iter().any(|operation| operation.ask == Ask::Grant(*lease));
    let mut leases = leases(small);
    leases.retain(|lease| !granted(lease));
    leases
}

/// Leases that requests name.
fn leases(small: &Small) -> BTreeSet<i64> {
    let named = |operation: &Operation| match &operation.ask {
        Ask::Txn { success, failure, .. } => {
            let attached = success.iter().chain(failure).filter_map(|step| match step {
                Step::Put(_, _, lease) if *lease != 0 => Some(*lease),
                _ => None,
            });
            attached.collect()
        }
        // A refused revoke found no lease.
        Ask::Revoke(lease) if operation.answer != Answer::Refused => vec![*lease],
        Ask::Grant(lease) if *lease != 0 => vec![*lease],
        _ => Vec::new(),
    };
    small.operations.iter().flat_map(named).collect()
}

impl Course {
    /// Notes the revision and the compaction that the last request made.
    fn changed_since(&mut self, before: &Course) {
        if self.server.revision() > before.server.revision() {
            self.born.push(self.time);
        }
        if self.server.compacted > before.server.compacted {
            self.compactions.push((self.server.compacted, self.time));
        }
    }
}

impl Trial<'_> {
    fn goes_on(&self, course: &Course) -> bool {
        let left = || (0..self.small.operations.len()).filter(|at| course.placed & (1 << at) == 0);
        let answered = |at: &usize| self.small.operations[*at].is_answered();
        let of = |at: usize| &self.small.operations[at];
        // No answer may have a revision that is past.
        if left().filter(answered).any(|at| of(at).revision().is_some_and(|told| told < course.server.revision())) {
            return false;
        }
        let next = self.small.log().get(course.logged);
        // After the end of the log any client may have been granted a lease.
        let mut behind = course.clone();
        if next.is_none() {
            behind.server.elsewhere.extend(&self.elsewhere);
        }
        let course = &behind;
        if next.is_none()
            && !left().any(|at| answered(&at))
            && self.small.watches.iter().all(|watch| self.fits(course, watch))
        {
            return true;
        }
        let happens = |at: &usize| of(*at).answer != Answer::Refused;
        // In the log a refused request, or one without effect, has an entry too.
        let happens = |at: &usize| match next {
            Some(entry) if of(*at).ask.is_proposed() => is_entry(&of(*at).ask, entry),
            _ => happens(at),
        };
        for at in left().filter(happens) {
            let is_over = |other: usize| answered(&other) && of(other).returned < of(at).call;
            if left().any(is_over) || self.is_foreseen(course, of(at).call) {
                continue;
            }
            if let Some(entry) = next.filter(|_| of(at).ask.is_proposed()) {
                if self.logged(course, at, entry).is_some_and(|next| self.goes_on(&next)) {
                    return true;
                }
                continue;
            }
            for ask in self.numbered(&of(at).ask) {
                for hidden in hidden(&ask, &course.server) {
                    if self.step(course, at, &ask, &hidden).is_some_and(|next| self.goes_on(&next)) {
                        return true;
                    }
                }
            }
        }
        if let Some(entry) = next.filter(|_| self.unrecorded) {
            let mut after = course.clone();
            after.server.apply(entry, &Vec::new());
            after.logged += 1;
            after.changed_since(course);
            if self.goes_on(&after) {
                return true;
            }
        }
        for lease in course.server.leases.iter().chain(&self.elsewhere).copied() {
            if next.is_some_and(|entry| *entry != Ask::Revoke(lease)) {
                continue;
            }
            let mut after = course.clone();
            after.logged += usize::from(next.is_some());
            let removed = after.server.expire(lease);
            if removed {
                after.born.push(after.time);
            }
            if (removed || next.is_some()) && self.goes_on(&after) {
                return true;
            }
        }
        false
    }

    /// The server chooses the id of a lease that is granted without one. Here it is one that a request names.
    fn numbered(&self, ask: &Ask) -> Vec<Ask> {
        match ask {
            Ask::Grant(0) => self.leases.iter().map(|lease| Ask::Grant(*lease)).chain([Ask::Grant(0)]).collect(),
            ask => vec![ask.clone()],
        }
    }

    /// Applies a request as the log has it.
    fn logged(&self, course: &Course, at: usize, entry: &Ask) -> Option<Course> {
        let operation = &self.small.operations[at];
        let mut next = course.clone();
        let answer = next.server.apply(entry, &Vec::new());
        next.logged += 1;
        self.placed(course, &mut next, at);
        let fits = matches!(operation.answer, Answer::Unknown) || same(&operation.ask, &operation.answer, &answer);
        fits.then_some(next)
    }

    /// Notes the effect of an operation and its time.
    fn placed(&self, course: &Course, next: &mut Course, at: usize) {
        next.placed |= 1 << at;
        next.time = next.time.max(self.small.operations[at].call);
        next.changed_since(course);
    }

    /// Whether a watch delivered a revision before it existed.
    fn is_foreseen(&self, course: &Course, time: i64) -> bool {
        let shown = |told: &Told| match told {
            Told::Events { time: at, events, .. } if *at < time => events.iter().map(|event| event.revision).max(),
            Told::Progress { time: at, revision } if *at < time => Some(*revision),
            _ => None,
        };
        let shown = self.small.watches.iter().flat_map(|watch| &watch.told).filter_map(shown);
        shown.max().is_some_and(|shown| shown > course.server.revision())
    }

    fn step(&self, course: &Course, at: usize, ask: &Ask, hidden: &Hidden) -> Option<Course> {
        let operation = &self.small.operations[at];
        let mut next = course.clone();
        let answer = next.server.apply(ask, hidden);
        self.placed(course, &mut next, at);
        let fits = match &operation.answer {
            // A request without a change need not have happened.
            Answer::Unknown => {
                next.born.len() > course.born.len()
                    || next.compactions.len() > course.compactions.len()
                    || next.server.leases != course.server.leases
            }
            told => same(ask, told, &answer),
        };
        fits.then_some(next)
    }

    fn fits(&self, course: &Course, watch: &Watch) -> bool {
        match watch.from {
            0 => (1..=course.server.revision() + 1).any(|from| self.fits_from(course, watch, from)),
            from => self.fits_from(course, watch, from),
        }
    }

    fn fits_from(&self, course: &Course, watch: &Watch, from: i64) -> bool {
        let last = course.server.revision();
        let expected = (2..=last).filter(|number| *number >= from).flat_map(|number| {
            let of_watch = course.server.changes(number).into_iter().filter(|(key, ..)| watch.covers(*key));
            of_watch.map(move |change| (number, change))
        });
        let expected: Vec<_> = expected.collect();
        let exists = |number: i64, time: i64| {
            number < 2 || course.born.get(number as usize - 2).is_some_and(|born| *born <= time)
        };
        let compacted =
            |above: i64, time: i64| course.compactions.iter().any(|(through, at)| *through > above && *at <= time);
        let (mut next, mut highest, mut through) = (0, 0, from - 1);
        for told in &watch.told {
            match told {
                Told::Events { time, revision, events } => {
                    let Some(due) = expected.get(next..next + events.len()) else { return false };
                    let mut left: Vec<&Event> = events.iter().collect();
                    for (number, change) in due {
                        let fits = |event: &&Event| {
                            event.revision == *number && self.shows(event, change, watch, &compacted, *time)
                        };
                        let Some(at) = left.iter().position(fits) else { return false };
                        left.remove(at);
                    }
                    // In revision order, each revision as a whole.
                    let end = due.last().map_or(0, |(number, _)| *number);
                    next += events.len();
                    let is_whole = expected.get(next).is_none_or(|(number, _)| *number > end);
                    let in_order = events.windows(2).all(|pair| pair[0].revision <= pair[1].revision);
                    if !is_whole || !in_order || *revision < end || !exists(end, *time) || end <= through {
                        return false;
                    }
                    highest = end;
                }
                Told::Progress { time, revision } => {
                    let due = expected.get(next).is_some_and(|(number, _)| number <= revision);
                    if due || !exists(*revision, *time) || *revision < through || *revision < highest {
                        return false;
                    }
                    through = *revision;
                }
                Told::Compacted { time } => {
                    if !compacted(watch.from.max(highest + 1).max(1), *time) {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn shows(
        &self,
        event: &Event,
        (key, before, after): &(Key, Option<Live>, Option<Live>),
        watch: &Watch,
        compacted: &impl Fn(i64, i64) -> bool,
        time: i64,
    ) -> bool {
        let previous = before.map(|live| (live.value, live.changed, live.version));
        event.key == *key
            && event.value == after.map(|live| live.value)
            && (!self.marks_creation || event.create == (before.is_none() && after.is_some()))
            && match (event.previous, previous) {
                (None, Some(_)) => !watch.previous || compacted(event.revision - 1, time),
                (told, known) => told == known,
            }
    }
}

/// Whether a log entry can be that of a request. The record of a transaction has no leases, and the id of a lease
/// without an answer is unknown.
fn is_entry(ask: &Ask, entry: &Ask) -> bool {
    let steps = |asked: &[Step], logged: &[Step]| {
        let same = |(asked, logged): (&Step, &Step)| match (asked, logged) {
            (Step::Put(key, value, 0), Step::Put(other, logged, _)) => key == other && value == logged,
            _ => asked == logged,
        };
        asked.len() == logged.len() && asked.iter().zip(logged).all(same)
    };
    match (ask, entry) {
        (Ask::Grant(0), Ask::Grant(_)) => true,
        (
            Ask::Txn { conditions, success, failure },
            Ask::Txn { conditions: of_entry, success: then, failure: otherwise },
        ) if !is_plain(conditions, success, failure) => {
            conditions == of_entry && steps(success, then) && steps(failure, otherwise)
        }
        _ => ask == entry,
    }
}

/// Leases that puts of a request may have, if the record does not contain them.
fn hidden(ask: &Ask, server: &Server) -> Vec<Hidden> {
    let Ask::Txn { conditions, success, failure } = ask else { return vec![Vec::new()] };
    let alive = || server.leases.iter().chain(&server.elsewhere).copied();
    if is_plain(conditions, success, failure) || alive().next().is_none() {
        return vec![Vec::new()];
    }
    let puts = |steps: &[Step]| steps.iter().filter(|step| matches!(step, Step::Put(_, _, 0))).count();
    let mut all: Vec<Hidden> = vec![Vec::new()];
    for _ in 0..puts(success).max(puts(failure)) {
        all =
            all.iter().flat_map(|some| alive().chain([0]).map(|lease| [some.clone(), vec![lease]].concat())).collect();
    }
    all
}

/// Whether an answer equals the recorded one.
fn same(ask: &Ask, told: &Answer, given: &Answer) -> bool {
    let (
        Answer::Done { revision, failure, results },
        Answer::Done { revision: other, failure: given_failure, results: given },
    ) = (told, given)
    else {
        return told == given;
    };
    let steps = match ask {
        Ask::Txn { success, failure: otherwise, .. } => {
            if *failure {
                &otherwise[..]
            } else {
                &success[..]
            }
        }
        _ => &[],
    };
    let result = |(at, (told, given)): (usize, (&Found, &Found))| match steps.get(at) {
        // The record of a list in a transaction contains neither its limit nor whether it only counts.
        Some(Step::Look(look)) if look.end.is_some() => {
            given.pairs.starts_with(&told.pairs) && told.count == given.count && told.deleted == given.deleted
        }
        _ => told == given,
    };
    revision == other
        && failure == given_failure
        && results.len() == given.len()
        && results.iter().zip(given).enumerate().all(result)
}

impl Operation {
    /// Whether it is in every order.
    fn is_answered(&self) -> bool {
        !matches!(self.answer, Answer::Unknown | Answer::Refused)
    }

    /// The revision of its answer.
    fn revision(&self) -> Option<i64> {
        match self.answer {
            Answer::Done { revision, .. } if !matches!(self.ask, Ask::Compact(_)) => Some(revision),
            _ => None,
        }
    }
}
