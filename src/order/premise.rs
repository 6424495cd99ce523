//! Premises: the values on which a write was based. Input: `decision` and `read` lines of a capture, requests with `"decision"`.
//! Output: [`Decisions`], from which [`Pass::premises`] derives the premises of a write.
//!
//! A process declares its premises if it names the decision of its reads and writes: the last read of each key in one pass,
//! before the write was sent. A value that the server compared (the base of a PUT, a precondition) is a premise that held. All
//! other premises are inferred from what the process had seen; rules name what they infer and how certain it is.

mod premises;

pub use premises::Premises;

use super::validity::{Reading, Seen, ValidityInterval, ValidityIntervals};
use crate::history::{
    Asked, CacheRead, ClockId, History, IncarnationId, KeyId, Marks, Operation, OperationId, Outcome, Revision, Symbol,
    Verb,
};
use crate::ingest::Time;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The reason why a value is a premise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ground {
    /// The process declared it: read and write belong to one pass of one decision.
    Declared,
    /// The server compared it when it committed the write.
    Compared,
    /// A declared rule says what such a write depends on.
    Ruled,
    /// The process had seen the value last. The evidence does not show that the write depends on it.
    Inferred,
}

/// The read that showed a premise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The answer to a read of one object, or to a write of the process itself.
    Answer(OperationId),
    /// A list.
    List(OperationId),
    /// An event: the index of the delivery, and its watch.
    Event(u32, OperationId),
    /// A read from the client's cache: an index into the history's cache reads.
    Cache(u32),
    /// The write itself, which names the value.
    Request(OperationId),
}

/// A value on which a write was based.
#[derive(Clone, Copy, Debug)]
pub struct Premise {
    /// Its key.
    pub key: KeyId,
    /// The value that the process presumed.
    pub reading: Reading,
    /// When the process had the value, with the clock.
    pub moment: (Time, ClockId),
    /// The read that showed it.
    pub source: Source,
    /// The reason why it is a premise.
    pub ground: Ground,
}

impl Premise {
    /// The revisions at which the value may have been true.
    pub fn truth<'h>(&self, history: &'h History, truths: &ValidityIntervals<'h>) -> ValidityInterval {
        truths.of(self.key, self.reading, self.seen(history, truths))
    }

    /// The states of the revision order that the read can have shown.
    pub fn seen(&self, history: &History, truths: &ValidityIntervals<'_>) -> Seen {
        match self.source {
            Source::List(id) => truths.of_list(id),
            Source::Answer(id) | Source::Request(id) => {
                let o = history.operation(id);
                let fresh = o.verb == Verb::Get && o.asked == Asked::Unset;
                truths.seen_by_request(self.key, &o, fresh)
            }
            Source::Event(index, _) => {
                let at = history.deliveries[index as usize].revision.known();
                at.map_or(Seen::default(), |at| Seen { from: at, through: Some(at) })
            }
            Source::Cache(_) => truths.seen_by_moment(self.key, self.moment),
        }
    }
}

/// The value that the server compared when it committed a write: the version or uid that the request names. `None` if it names
/// none, or if the request was not answered with success.
pub fn compared(history: &History, id: OperationId) -> Option<Premise> {
    let o = history.operation(id);
    let (uid, revision) = (o.request_uid, o.asked_revision);
    let compares = o.verb.is_write() && o.key.is_some() && o.is_answered() && o.verb != Verb::Create;
    // Servers compare a uid in a body only for some kinds, but always in preconditions. A version is always compared.
    let uid_counts = o.verb == Verb::Delete && uid.is_some();
    (compares && (revision.is_some() || uid_counts)).then_some(Premise {
        key: o.key,
        reading: Reading::Present { uid, revision },
        moment: (o.invoke, o.clock),
        source: Source::Request(id),
        ground: Ground::Compared,
    })
}

/// One read of a pass.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// When the read was complete.
    time: Time,
    source: Source,
}

/// One pass of a decision: from one `begin` to the next; without brackets, all requests with the decision's name.
#[derive(Clone, Debug)]
pub struct Pass {
    /// The deciding process.
    pub incarnation: IncarnationId,
    /// The name of the decision, unique within its process.
    pub decision: Symbol,
    /// The clock of all its times.
    clock: ClockId,
    /// Reads by the time of their answer.
    reads: Vec<Step>,
    /// Indices of the reads that are lists.
    lists: Vec<u32>,
    /// Writes by send time.
    pub writes: Vec<OperationId>,
    /// For each write, when the last committed write before it was sent.
    earlier: Vec<Option<Time>>,
    /// Creates that were answered "already exists", by the time of that answer.
    refused: Vec<(Time, KeyId)>,
    /// Whether both its begin and its end are recorded.
    closed: bool,
}

/// Without recorded brackets, a pass is presumed to end with a committed write. More reads than this before a write are then not
/// one decision.
const OPEN: usize = 64;

/// Limit on the listed objects of one pass that are examined.
const LISTED: usize = 20_000;

impl Pass {
    fn new(incarnation: IncarnationId, decision: Symbol, clock: ClockId) -> Pass {
        let (reads, lists, writes, earlier, refused) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Pass { incarnation, decision, clock, reads, lists, writes, earlier, refused, closed: false }
    }

    /// The reads that were complete when the nth write was sent; all reads if there is no such write.
    fn before(&self, history: &History, nth: usize) -> &[Step] {
        &self.reads[self.span(history, nth)]
    }

    fn span(&self, history: &History, nth: usize) -> Range<usize> {
        let until = |time: Time| self.reads.partition_point(|step| step.time <= time);
        let sent = self.writes.get(nth).map_or(self.reads.len(), |write| until(history.operation(*write).invoke));
        let from = if self.closed { 0 } else { self.earlier.get(nth).copied().flatten().map_or(0, until) };
        from.min(sent)..sent
    }

    /// The number of steps that [`Pass::premises`] reads for the nth write.
    pub fn cost(&self, history: &History, nth: usize) -> usize {
        let steps = self.before(history, nth);
        let own = if self.closed { nth } else { self.refused_beside(history, nth, steps).len() };
        steps.len() + own
    }

    /// The refused creates that were answered between the first of some reads and the sending of the nth write.
    fn refused_beside(&self, history: &History, nth: usize, steps: &[Step]) -> &[(Time, KeyId)] {
        let Some(first) = steps.first() else { return &[] };
        let sent = self.writes.get(nth).map_or(Time::UNKNOWN, |write| history.operations.invoke(write.index()));
        let from = self.refused.partition_point(|(time, _)| *time < first.time);
        let to = self.refused.partition_point(|(time, _)| *time <= sent);
        &self.refused[from..to.max(from)]
    }

    /// The single objects that the pass had read when it sent the nth write: the last read of each key, without keys that the
    /// pass had written since. In the order of reading. `None` if the reads cannot be those of one decision.
    pub fn premises(&self, history: &History, nth: usize) -> Option<Vec<Premise>> {
        let steps = self.before(history, nth);
        if !self.closed && steps.len() > OPEN {
            return None;
        }
        let mut last: FxHashMap<KeyId, (usize, Premise)> = FxHashMap::default();
        let mut own: FxHashMap<KeyId, Time> = FxHashMap::default();
        let mut wrote = |key: KeyId, time: Time| {
            let last = own.entry(key).or_insert(time);
            *last = time.max(*last);
        };
        // "Already exists" is newer than the read before it, which found no object.
        for (time, key) in self.refused_beside(history, nth, steps) {
            wrote(*key, *time);
        }
        // Without brackets, the reads begin at the last committed write, so earlier writes do not matter.
        for id in if self.closed { &self.writes[..nth] } else { &[] } {
            let written = history.operation(*id);
            if written.outcome() != Outcome::Rejected {
                wrote(written.key, written.invoke);
            }
        }
        for (at, step) in steps.iter().enumerate() {
            if let Some(premise) = self.read(history, step)
                && own.get(&premise.key).is_none_or(|written| step.time > *written)
            {
                last.insert(premise.key, (at, premise));
            }
        }
        let mut premises: Vec<(usize, Premise)> = last.into_values().collect();
        premises.sort_unstable_by_key(|(at, _)| *at);
        Some(premises.into_iter().map(|(_, premise)| premise).collect())
    }

    /// Everything that the pass had read when it sent the nth write, listed objects included: the last value of each key, in
    /// order of keys. `nth` may be the number of writes, for the end of the pass. At most 20 000 keys.
    pub fn everything(&self, history: &History, nth: usize) -> Vec<Premise> {
        let mut last: FxHashMap<KeyId, Premise> = FxHashMap::default();
        for step in self.before(history, nth) {
            if let Source::List(list) = step.source {
                let o = history.operation(list);
                for item in history.items_of(&o).iter().take(LISTED.saturating_sub(last.len())) {
                    let reading = Reading::Present { uid: item.uid, revision: item.revision };
                    last.insert(item.key, self.premise(item.key, reading, step));
                }
            } else if let Some(premise) = self.read(history, step).filter(|_| last.len() < LISTED) {
                last.insert(premise.key, premise);
            }
        }
        let mut all: Vec<Premise> = last.into_values().collect();
        all.sort_unstable_by_key(|premise| premise.key);
        all
    }

    /// The last value of a key that the pass had read when it sent the nth write, lists included.
    pub fn last_of(&self, history: &History, nth: usize, key: KeyId) -> Option<Premise> {
        self.before(history, nth).iter().rev().find_map(|step| match step.source {
            Source::List(list) => listed(history, list, key).map(|reading| self.premise(key, reading, step)),
            _ => self.read(history, step).filter(|premise| premise.key == key),
        })
    }

    /// Whether a premise of the nth write is the pass's last read of its key by then, lists included.
    pub fn is_last(&self, history: &History, nth: usize, premise: &Premise) -> bool {
        let span = self.span(history, nth);
        let first = span.start + self.reads[span.clone()].partition_point(|step| step.time < premise.moment.0);
        let Some(place) = (first..span.end).find(|at| self.reads[*at].source == premise.source) else { return false };
        let lists = &self.lists[self.lists.partition_point(|at| *at as usize <= place)..];
        let lists = lists.iter().map(|at| *at as usize).take_while(|at| *at < span.end);
        !lists
            .map(|at| self.reads[at].source)
            .any(|source| matches!(source, Source::List(list) if listed(history, list, premise.key).is_some()))
    }

    fn premise(&self, key: KeyId, reading: Reading, step: &Step) -> Premise {
        Premise { key, reading, moment: (step.time, self.clock), source: step.source, ground: Ground::Declared }
    }

    /// The value of a read of one object; `None` for lists.
    fn read(&self, history: &History, step: &Step) -> Option<Premise> {
        let (key, reading) = match step.source {
            Source::Answer(id) => {
                let o = history.operation(id);
                let reading = match o.outcome() {
                    Outcome::Answered => Reading::Present { uid: o.answer_uid, revision: o.answered },
                    _ => Reading::Absent,
                };
                (o.key, reading)
            }
            Source::Cache(index) => {
                let read = &history.cache_reads[index as usize];
                (read.key, cached(read))
            }
            Source::List(_) | Source::Event(..) | Source::Request(_) => return None,
        };
        Some(self.premise(key, reading, step))
    }
}

/// The value of a read from a cache. Neither uid nor version means absence.
pub fn cached(read: &CacheRead) -> Reading {
    match read.uid.is_some() || read.revision.is_some() {
        true => Reading::Present { uid: read.uid, revision: read.revision },
        false => Reading::Absent,
    }
}

/// The value that a list shows for a key; `None` if the list does not cover the key.
pub fn listed(history: &History, list: OperationId, key: KeyId) -> Option<Reading> {
    let o = history.operation(list);
    if !history.covers_key(o.scope, key) {
        return None;
    }
    if let Some(item) = history.item(&o, key) {
        return Some(Reading::Present { uid: item.uid, revision: item.revision });
    }
    // A page or a selection does not show absence.
    let whole = !o.marks.has(Marks::MORE_PAGES) && !history.is_selective(o.scope) && o.asked != Asked::Continue;
    whole.then_some(Reading::Absent)
}

/// All declared decisions of a history, as passes.
#[derive(Debug, Default)]
pub struct Decisions {
    /// By process, decision and time.
    pub passes: Vec<Pass>,
    of_write: FxHashMap<OperationId, (u32, u32)>,
}

/// Order of rows with the same time.
const BEGIN: u8 = 0;
const INSIDE: u8 = 1;
const END: u8 = 2;

impl Decisions {
    /// Groups reads and writes into passes. Two processes may use the same name for different decisions.
    pub fn collect(history: &History) -> Decisions {
        type Place = (IncarnationId, Symbol, ClockId);
        // At one time, begins come first and ends come last.
        let mut rows: Vec<(Place, Time, u8, u32, Option<Source>)> = Vec::new();
        for (index, bracket) in history.brackets.iter().enumerate() {
            let place = (bracket.incarnation, bracket.decision, bracket.clock);
            rows.push((place, bracket.at, if bracket.begins { BEGIN } else { END }, index as u32, None));
        }
        for (index, read) in history.cache_reads.iter().enumerate().filter(|(_, r)| r.decision.is_some()) {
            let place = (read.incarnation, read.decision, read.clock);
            rows.push((place, read.at, INSIDE, index as u32, Some(Source::Cache(index as u32))));
        }
        for (id, o) in history.operations.decided().filter(|(_, o)| !o.marks.has(Marks::SHADOW)) {
            if let Some(source) = source(id, &o) {
                rows.push(((o.incarnation, o.decision, o.clock), o.invoke, INSIDE, id.0, Some(source)));
            }
        }
        rows.sort_unstable_by_key(|&(place, time, kind, index, _)| (place, time, kind, index));
        let mut decisions = Decisions::default();
        let (mut open, mut begun) = (None, false);
        for (place, time, kind, _, source) in rows {
            let (incarnation, decision, clock) = place;
            if open != Some(place) || kind == BEGIN {
                decisions.passes.push(Pass::new(incarnation, decision, clock));
                (open, begun) = (Some(place), kind == BEGIN);
            }
            let Some(pass) = decisions.passes.last_mut() else { continue };
            let Some(source) = source else {
                // A request may reach the server after the recorded end; it still belongs to the decision.
                pass.closed |= begun && kind == END;
                continue;
            };
            match source {
                Source::Request(id) => {
                    let last = pass.writes.last().map(|id| history.operation(*id)).filter(|o| o.is_answered());
                    let earlier = last.map(|o| o.invoke).or(pass.earlier.last().copied().flatten());
                    pass.earlier.push(earlier);
                    pass.writes.push(id);
                    let o = history.operation(id);
                    if o.outcome() == Outcome::Rejected && o.verb == Verb::Create && o.status == 409 && o.ret.is_known()
                    {
                        pass.refused.push((o.ret, o.key));
                    }
                }
                Source::Cache(_) => pass.reads.push(Step { time, source }),
                Source::Event(..) => {}
                Source::Answer(id) | Source::List(id) => {
                    let time = history.operation(id).ret;
                    if time.is_known() {
                        pass.reads.push(Step { time, source });
                    }
                }
            }
        }
        decisions.passes.retain(|pass| !pass.reads.is_empty() || !pass.writes.is_empty());
        for (index, pass) in decisions.passes.iter_mut().enumerate() {
            pass.reads.sort_by_key(|step| step.time);
            let lists = (0..).zip(&pass.reads).filter(|(_, step)| matches!(step.source, Source::List(_)));
            pass.lists = lists.map(|(at, _)| at).collect();
            pass.refused.sort_unstable();
            let places = pass.writes.iter().enumerate().map(|(nth, &write)| (write, (index as u32, nth as u32)));
            decisions.of_write.extend(places);
        }
        decisions
    }

    /// Whether no decision was declared.
    pub fn is_empty(&self) -> bool {
        self.passes.is_empty()
    }

    /// The pass of a write, and the index of the write in it.
    pub fn of(&self, write: OperationId) -> Option<(&Pass, usize)> {
        self.of_write.get(&write).map(|&(index, nth)| (&self.passes[index as usize], nth as usize))
    }
}

/// The role of an operation in its decision: a read with a result, or a write.
fn source(id: OperationId, o: &Operation) -> Option<Source> {
    if o.verb.is_write() {
        return o.key.is_some().then_some(Source::Request(id));
    }
    match o.verb {
        Verb::Get if !o.key.is_some() || o.marks.has(Marks::LIST_ANSWER) => None,
        Verb::Get if o.is_answered() => o.answered.is_some().then_some(Source::Answer(id)),
        Verb::Get => (o.outcome() == Outcome::Rejected && o.status == 404).then_some(Source::Answer(id)),
        Verb::List => (o.is_answered() && o.marks.has(Marks::LIST_ANSWER)).then_some(Source::List(id)),
        _ => None,
    }
}

impl ValidityIntervals<'_> {
    /// The state that a list showed: that of its revision, or any state if the revision is unknown.
    fn of_list(&self, id: OperationId) -> Seen {
        match self.list_revision(id) {
            Some(revision) => Seen { from: revision, through: Some(revision) },
            None => Seen { from: Revision::NONE, through: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::sketch::sketch;

    /// The declared premises of the last write of a sketch: names with versions, in order of reading.
    fn premises(text: &str) -> Vec<String> {
        let history = sketch(text).unwrap_or_else(|error| panic!("{error}"));
        let decisions = Decisions::collect(&history);
        let write = (0..history.operations.len() as u32).rev().map(OperationId);
        let write = write.into_iter().find(|id| history.operation(*id).verb.is_write()).unwrap();
        let all = decisions.of(write).and_then(|(pass, nth)| pass.premises(&history, nth)).unwrap_or_default();
        let words = |premise: &Premise| match premise.reading {
            Reading::Present { revision, .. } => {
                format!("{}@{revision}", history.name(history.keys[premise.key.index()].name))
            }
            Reading::Absent => format!("no {}", history.name(history.keys[premise.key.index()].name)),
        };
        all.iter().map(words).collect()
    }

    #[test]
    fn a_write_rests_on_what_its_decision_read_last_of_each_key() {
        let text = "c@A READ a => :u1@10 for d\nc@A GET b for d => !404\nc@A GET a for d => a:u1@12\nc@A READ z => :u9@3 for e\n\
                    c@A GET y => y:u8@5\nc@A DELETE x for d => ok\n";
        assert_eq!(premises(text), ["no b", "a@12"]);
        assert_eq!(premises(&text.replace("DELETE x for d", "DELETE x")), [""; 0]);
    }

    #[test]
    fn what_came_after_the_write_or_was_written_by_the_pass_itself_is_no_premise() {
        let text = "c@A READ a => :u1@10 for d\nc@A PUT a:u1@10 for d => a:u1@15\nc@A DELETE x for d => ok\n\
                    c@A READ b => :u2@11 for d\n";
        assert_eq!(premises(text), [""; 0]);
        assert_eq!(premises(&text.replace("=> a:u1@15", "=> !409")), ["a@10"]);
        let read_again = text.replace("c@A DELETE", "c@A GET a for d => a:u1@15\nc@A DELETE");
        assert_eq!(premises(&read_again), ["a@15"]);
    }

    #[test]
    fn premises_from_write_to_write_are_those_of_each_write() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut roll = move |sides: u64| random.u64(..sides);
        let mut compared = 0;
        for bracket in ["c@A DECIDE d\n", ""].repeat(30) {
            let mut text = bracket.to_owned();
            for n in 100..160 {
                let key = format!("k{}", roll(4));
                text += &match roll(7) {
                    0 => format!("c@A READ {key} => :u1@{n} for d\n"),
                    1 => format!("c@A GET {key} for d => {key}:u1@{n}\n"),
                    2 => format!("c@A GET {key} for d => !404\n"),
                    3 => format!("c@A CREATE {key} for d => !409\n"),
                    4 => format!("c@A PUT {key}:u1@{n} for d => {key}:u1@{}\n", n + 200),
                    5 => format!("c@A LIST for d => {n} {{{key}:u1@{n}}}\n"),
                    _ => "c@A DELETE x for d => ok\n".to_owned(),
                };
            }
            let history = sketch(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            for pass in &Decisions::collect(&history).passes {
                let mut turn = Premises::new(pass);
                for nth in 0..pass.writes.len() {
                    let one = pass.premises(&history, nth);
                    let places =
                        |all: &Vec<Premise>| all.iter().map(|p| (p.key, p.source, p.moment)).collect::<Vec<_>>();
                    // Writes may be skipped.
                    if roll(3) > 0 {
                        let found = turn.of(&history, nth, |premise| premise);
                        assert_eq!(found.as_ref().map(places), one.as_ref().map(places), "{nth} of\n{text}");
                    }
                    for premise in one.iter().flatten() {
                        let last = pass.last_of(&history, nth, premise.key).map(|last| last.source);
                        assert_eq!(
                            pass.is_last(&history, nth, premise),
                            last == Some(premise.source),
                            "{nth} of\n{text}"
                        );
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 1_000, "{compared}");
    }

    #[test]
    fn a_name_used_again_is_another_pass_and_a_process_has_its_own_names() {
        let text = "c@A DECIDE d\nc@A READ a => :u1@10 for d\nc@A DECIDE d\nc@A READ b => :u2@30 for d\nc@A DELETE x for d => ok\n";
        assert_eq!(premises(text), ["b@30"]);
        assert_eq!(premises(&text.replace("c@A READ a", "other@A READ a").replace("c@A DECIDE d\n", "")), ["b@30"]);
    }

    #[test]
    fn a_read_with_a_version_and_without_uid_is_no_absence() {
        let read = |uid, revision| CacheRead {
            position: Default::default(),
            at: Time(0),
            clock: ClockId::NONE,
            incarnation: IncarnationId::NONE,
            decision: Symbol::NONE,
            key: KeyId::NONE,
            uid,
            revision,
        };
        assert_eq!(cached(&read(Symbol::NONE, Revision::NONE)), Reading::Absent);
        assert!(matches!(cached(&read(Symbol::NONE, Revision::from(7))), Reading::Present { .. }));
        assert!(matches!(cached(&read(Symbol(3), Revision::NONE)), Reading::Present { .. }));
    }

    #[test]
    fn a_list_shows_absence_only_as_a_whole() {
        let text = "c@A LIST => 20 {a:u1@10}\nc@A LIST fields(spec.nodeName=n) => 20 {a:u1@10}\nc@A LIST limit=1 => 20 {a:u1@10} more\n\
                    c@A LIST in other => 20 {}\nc@A DELETE b => ok\n";
        let history = sketch(text).unwrap_or_else(|error| panic!("{error}"));
        let key = history.operations.get(4).key;
        let shown: Vec<_> = (0..4).map(|id| listed(&history, OperationId(id), key)).collect();
        assert_eq!(shown, [Some(Reading::Absent), None, None, None]);
    }
}
