//! The knowledge of processes about names. Input: answers, lists, events and cache reads of the wanted processes. Output: per
//! process and name the last reads in order of time. Trap: [`ClientKnowledge::last`] returns `None` if another read may have
//! come later; and knowledge is complete only if [`ClientKnowledge::may_know_more`] is false.

use super::unrecorded_reads::UnrecordedReads;
use crate::check::{Evidence, Fact};
use crate::history::{
    Asked, ClockId, DeliveryKind, Document, IncarnationId, KeyId, Marks, Operation, OperationId, Outcome, ResourceId,
    Revision, Subresource, Symbol, Verb,
};
use crate::ingest::Time;
use crate::order::clock::of_each_clock;
use crate::order::{Reading, Relation, is_deliberate, premise, removes};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::OnceLock;

/// Up to this many reads of a name by a process are looked at one by one. More are indexed by life.
const FEW_READS: usize = 16;

/// The state of a name as a process knew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The object with this uid has the name.
    Life(Symbol),
    /// The object with this uid is gone.
    End(Symbol),
    /// An object left the watched selection: it may be gone, or only changed.
    Left(Symbol),
    /// No object has the name.
    Nothing,
    /// The process itself may have created another object, or ended the one that it knew.
    Unsure,
}

/// The source of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// An answer about one object.
    Answer(OperationId),
    /// A list.
    List(OperationId),
    /// An event: delivery index, watch.
    Event(u32, OperationId),
    /// A cache read, by index.
    Cache(u32),
}

/// One read of a name by a process.
#[derive(Clone, Copy, Debug)]
pub struct LastRead {
    /// The time at which it had reached the process.
    pub moment: (Time, ClockId),
    /// The state that it showed.
    pub known: Known,
    /// The version; zero without one.
    pub revision: Revision,
    /// Its source.
    pub shown: Shown,
}

impl LastRead {
    /// The body that it showed, if it was recorded.
    pub fn document(&self, key: KeyId) -> Option<Document> {
        match self.shown {
            Shown::Answer(id) => Some(Document::Answer(id)),
            Shown::List(id) => Some(Document::Item(id, key)),
            Shown::Event(index, watch) => Some(Document::Delivery(index, watch)),
            Shown::Cache(_) => None,
        }
    }

    /// Whether it is the answer to a write of the process itself.
    pub fn is_own_write(&self, evidence: &Evidence<'_>) -> bool {
        matches!(self.shown, Shown::Answer(id) if evidence.history.operation(id).verb.is_write())
    }

    /// The decision that it belongs to.
    pub fn decision(&self, evidence: &Evidence<'_>) -> Symbol {
        match self.shown {
            Shown::Answer(id) | Shown::List(id) => evidence.history.operation(id).decision,
            Shown::Event(..) => Symbol::NONE,
            Shown::Cache(index) => evidence.history.cache_reads[index as usize].decision,
        }
    }

    /// The read as a fact.
    pub fn fact(&self, evidence: &Evidence<'_>, key: KeyId, says: String) -> Fact {
        let uid = match self.known {
            Known::Life(uid) | Known::End(uid) | Known::Left(uid) => uid,
            Known::Nothing | Known::Unsure => Symbol::NONE,
        };
        match self.shown {
            Shown::Answer(id) | Shown::List(id) => evidence.item(id, key, uid, self.revision, says),
            Shown::Event(index, watch) => evidence.delivery(index as usize, watch, says),
            Shown::Cache(index) => Fact { uid, ..evidence.cache_read(index as usize, says) },
        }
    }
}

/// The reads of some names by some processes.
#[derive(Debug, Default)]
pub struct ClientKnowledge {
    of: FxHashMap<(IncarnationId, KeyId), Vec<LastRead>>,
    silent: UnrecordedReads,
    /// Resources that some client watches in the logs of servers. For others, an audit policy may omit all watches.
    watched: FxHashSet<ResourceId>,
    /// Wanted lives that recorded their own requests.
    recorders: FxHashSet<IncarnationId>,
    /// Lives that may be of the same process as a wanted one.
    possible_identities: FxHashMap<IncarnationId, Vec<IncarnationId>>,
    lives: OnceLock<FxHashMap<(IncarnationId, KeyId), FxHashMap<Symbol, ReadsOfLife>>>,
}

impl ClientKnowledge {
    /// Collects the reads of these names by these processes.
    pub fn collect(evidence: &Evidence<'_>, wanted: &FxHashSet<(IncarnationId, KeyId)>) -> ClientKnowledge {
        let mut knowledge = ClientKnowledge::default();
        if wanted.is_empty() {
            return knowledge;
        }
        let mut names: FxHashMap<IncarnationId, Vec<KeyId>> = FxHashMap::default();
        let sessions = &evidence.order.sessions;
        for &(incarnation, key) in wanted {
            let possible_identities = knowledge.possible_identities.entry(incarnation);
            let possible_identities = possible_identities
                .or_insert_with(|| sessions.possible_identities(evidence.history, incarnation).collect());
            for &life in [incarnation].iter().chain(&*possible_identities) {
                if knowledge.of.insert((life, key), Vec::new()).is_none() {
                    names.entry(life).or_default().push(key);
                }
            }
        }
        let mut asked_for = vec![false; evidence.history.keys.len()];
        for (_, key) in knowledge.of.keys().filter(|(_, key)| key.is_some()) {
            asked_for[key.index()] = true;
        }
        let operations = &evidence.history.operations;
        for id in operations.ids_but_shadows() {
            let (verb, key) = (operations.verb(id.index()), operations.key(id.index()));
            // Most operations are about an object that is not wanted.
            if is_about_one(verb, key) && !asked_for[key.index()] {
                continue;
            }
            let o = evidence.history.operation(id);
            let by_server = !o.marks.has(Marks::CLIENT_SIDE) || o.marks.has(Marks::BOTH_SIDES);
            if o.verb == Verb::Watch && o.scope.is_some() && by_server {
                knowledge.watched.insert(evidence.history.scopes[o.scope.index()].resource);
            }
            let Some(keys) = names.get(&o.incarnation).filter(|_| !o.marks.has(Marks::SAVED)) else { continue };
            if o.marks.has(Marks::CLIENT_SIDE) {
                knowledge.recorders.insert(o.incarnation);
            }
            knowledge.collect_list(evidence, id, &o, keys);
            if o.verb == Verb::Watch {
                knowledge.collect_stream(evidence, id, &o);
            } else if let Some(last_read) = of_answer(id, &o) {
                knowledge.learn((o.incarnation, o.key), last_read);
            }
            if o.scope.is_some() && is_silent(evidence, id, &o) {
                knowledge.silent.push(evidence.history, id, &o);
            }
        }
        for (index, read) in evidence.history.cache_reads.iter().enumerate() {
            let known = match premise::cached(read) {
                Reading::Present { uid, .. } => Known::Life(uid),
                Reading::Absent => Known::Nothing,
            };
            let shown = Shown::Cache(index as u32);
            let last_read = LastRead { moment: (read.at, read.clock), known, revision: read.revision, shown };
            knowledge.learn((read.incarnation, read.key), last_read);
        }
        knowledge.silent.arrange(evidence.history);
        for last_reads in knowledge.of.values_mut() {
            last_reads.sort_by_key(|last_read| (last_read.moment.1, last_read.moment.0));
            last_reads.shrink_to_fit();
        }
        knowledge
    }

    fn learn(&mut self, of: (IncarnationId, KeyId), last_read: LastRead) {
        if let Some(last_reads) = self.of.get_mut(&of).filter(|_| last_read.moment.0.is_known()) {
            last_reads.push(last_read);
        }
    }

    fn collect_list(&mut self, evidence: &Evidence<'_>, id: OperationId, o: &Operation, keys: &[KeyId]) {
        let history = evidence.history;
        let shows = o.is_answered() && o.marks.has(Marks::LIST_ANSWER) && o.marks.has(Marks::ANSWER_BODY);
        if !shows || (!o.verb.is_write() && is_deliberate(&evidence.order.chains, id, o)) {
            return;
        }
        let last_read =
            |known, revision| LastRead { moment: (o.ret, o.clock), known, revision, shown: Shown::List(id) };
        let mut listed: FxHashSet<KeyId> = FxHashSet::default();
        for item in history.items_of(o) {
            listed.insert(item.key);
            // A deletion of a collection answers with the deleted objects.
            let known = if o.verb.is_write() { Known::End(item.uid) } else { Known::Life(item.uid) };
            self.learn((o.incarnation, item.key), last_read(known, item.revision));
        }
        let whole = o.verb == Verb::List && !o.marks.has(Marks::MORE_PAGES) && !history.is_selective(o.scope);
        for &key in keys.iter().filter(|key| whole && !listed.contains(key) && history.covers_key(o.scope, **key)) {
            self.learn((o.incarnation, key), last_read(Known::Nothing, Revision::NONE));
        }
    }

    fn collect_stream(&mut self, evidence: &Evidence<'_>, id: OperationId, o: &Operation) {
        let history = evidence.history;
        let Some(stream) = history.stream_of(id) else { return };
        let selective = !o.scope.is_some() || history.is_selective(o.scope);
        for index in stream.deliveries() {
            let d = &history.deliveries[index];
            let known = match d.kind {
                DeliveryKind::Added | DeliveryKind::Modified => Known::Life(d.uid),
                DeliveryKind::Deleted if selective => Known::Left(d.uid),
                DeliveryKind::Deleted => Known::End(d.uid),
                _ => continue,
            };
            let shown = Shown::Event(index as u32, id);
            let last_read = LastRead { moment: (d.at, o.clock), known, revision: d.revision, shown };
            self.learn((o.incarnation, d.key), last_read);
        }
    }

    /// All reads of a name by a process, by clock, then by time.
    pub fn of(&self, incarnation: IncarnationId, key: KeyId) -> &[LastRead] {
        self.of.get(&(incarnation, key)).map_or(&[], |last_reads| last_reads)
    }

    /// All reads of a name that a process may have made, unordered, with those of lives that may be of the same process.
    pub fn at_most(&self, incarnation: IncarnationId, key: KeyId) -> impl Iterator<Item = &LastRead> {
        let possible_identities = self.possible_identities.get(&incarnation).into_iter().flatten();
        [incarnation].into_iter().chain(possible_identities.copied()).flat_map(move |life| self.of(life, key))
    }

    /// The last read of a name that a process had certainly made before a moment. `None` if another read may have come later,
    /// or if a life that may be of the same process read something newer.
    pub fn last(
        &self,
        evidence: &Evidence<'_>,
        incarnation: IncarnationId,
        key: KeyId,
        moment: (Time, ClockId),
        counts: impl Fn(&LastRead) -> bool,
    ) -> Option<LastRead> {
        let clocks = &evidence.order.clocks;
        let latest = |of_clock: &[LastRead]| {
            let before = of_clock.partition_point(|g| clocks.before(g.moment, moment));
            of_clock[..before].iter().rfind(|g| counts(g)).copied()
        };
        let last = of_each_clock(self.of(incarnation, key), read_at)
            .filter_map(latest)
            .max_by_key(|g| (g.moment.1 == moment.1, g.moment.0))?;
        // Reads that may lie between the last read and the moment.
        let between = |of_clock: &'_ [LastRead], counts: &dyn Fn(&LastRead) -> bool| {
            let from = of_clock.partition_point(|g| clocks.before(g.moment, last.moment));
            let possible = |g: &&LastRead| clocks.relation(g.moment, moment) != Relation::NotBefore;
            of_clock[from..].iter().take_while(possible).any(counts)
        };
        let other = |g: &LastRead| counts(g) && g.known != last.known;
        let overtaken = of_each_clock(self.of(incarnation, key), read_at).any(|of_clock| between(of_clock, &other));
        let news = |g: &LastRead| counts(g) && (g.known != last.known || g.revision > last.revision);
        let possible_identities = self.possible_identities.get(&incarnation).into_iter().flatten();
        let known_to_kin = possible_identities
            .flat_map(|life| of_each_clock(self.of(*life, key), read_at))
            .any(|of_clock| between(of_clock, &news));
        (!overtaken && !known_to_kin).then_some(last)
    }

    /// Whether the process read an object of a name, in a version up to a revision, before a moment only by recorded times of
    /// unrelated clocks. Without a uid, any object of the name counts.
    pub fn may_have_read(
        &self,
        evidence: &Evidence<'_>,
        of: (IncarnationId, KeyId),
        uid: Symbol,
        moment: (Time, ClockId),
        through: Revision,
    ) -> bool {
        let reads = self.of(of.0, of.1);
        if reads.len() <= FEW_READS {
            let is_wanted = |g: &LastRead| {
                matches!(g.known, Known::Life(read) if !uid.is_some() || read == uid)
                    && g.revision.is_some()
                    && g.revision <= through
            };
            return open(evidence, reads, read_at, moment).any(|open| reads[open].iter().any(is_wanted));
        }
        let Some(lives) = self.lives().get(&of) else { return false };
        let is_open = |life: &ReadsOfLife| life.may_precede(evidence, reads, moment, through);
        if uid.is_some() { lives.get(&uid).is_some_and(is_open) } else { lives.values().any(is_open) }
    }

    /// Whether the process read another object of a name before a moment only by recorded times of unrelated clocks.
    /// `is_other` decides for a life by one of its reads.
    pub fn may_have_read_another(
        &self,
        evidence: &Evidence<'_>,
        of: (IncarnationId, KeyId),
        moment: (Time, ClockId),
        is_other: impl Fn(&LastRead) -> bool,
    ) -> bool {
        let reads = self.of(of.0, of.1);
        if reads.len() <= FEW_READS {
            let is_another = |g: &LastRead| matches!(g.known, Known::Life(_)) && is_other(g);
            return open(evidence, reads, read_at, moment).any(|open| reads[open].iter().any(is_another));
        }
        let read = |at: &u32| reads[*at as usize];
        let mut lives = self.lives().get(&of).into_iter().flat_map(FxHashMap::values).map(|life| &life.reads);
        lives.any(|life| {
            is_other(&read(&life[0])) && open(evidence, life, |at| read(at).moment, moment).next().is_some()
        })
    }

    /// The reads that show an object, by process, name and uid, of names that a process read often. Each question about one
    /// life then looks at its reads alone.
    fn lives(&self) -> &FxHashMap<(IncarnationId, KeyId), FxHashMap<Symbol, ReadsOfLife>> {
        self.lives.get_or_init(|| {
            let mut all = FxHashMap::default();
            for (of, reads) in self.of.iter().filter(|(_, reads)| reads.len() > FEW_READS) {
                let mut lives: FxHashMap<Symbol, ReadsOfLife> = FxHashMap::default();
                for (at, read) in (0..).zip(reads) {
                    if let Known::Life(uid) = read.known {
                        lives.entry(uid).or_default().push(reads, at);
                    }
                }
                lives.values_mut().for_each(ReadsOfLife::shrink_to_fit);
                all.insert(*of, lives);
            }
            all
        })
    }

    /// Whether an unrecorded read may have shown the process more of a name between two moments.
    pub fn may_know_more(
        &self,
        evidence: &Evidence<'_>,
        incarnation: IncarnationId,
        key: KeyId,
        after: (Time, ClockId),
        before: (Time, ClockId),
    ) -> bool {
        let (history, clocks) = (evidence.history, &evidence.order.clocks);
        let resource = history.resource_of(key);
        // If a policy omits watches, the process may have received events that no record shows.
        if !self.recorders.contains(&incarnation) && !self.watched.contains(&resource) {
            return true;
        }
        self.silent.may_show(history, clocks, (incarnation, key), after, before)
    }
}

/// The reads of one life by one process, by clock, then by time.
#[derive(Debug, Default)]
struct ReadsOfLife {
    /// Their indices among the reads of the name by the process.
    reads: Vec<u32>,
    /// For each read, the lowest version of it and of the reads before it on the same clock.
    lowest: Vec<Revision>,
}

impl ReadsOfLife {
    /// Adds the read at an index of all reads of the name by the process.
    fn push(&mut self, all: &[LastRead], at: u32) {
        let read = all[at as usize];
        let last = self.reads.last().map(|last| &all[*last as usize]);
        let before = last.filter(|last| last.moment.1 == read.moment.1).and(self.lowest.last());
        let known = before.into_iter().chain([&read.revision]).filter(|revision| revision.is_some());
        self.lowest.push(known.min().copied().unwrap_or_default());
        self.reads.push(at);
    }

    fn shrink_to_fit(&mut self) {
        self.reads.shrink_to_fit();
        self.lowest.shrink_to_fit();
    }

    /// Whether a read of a version up to a revision is before a moment by unrelated clocks.
    fn may_precede(
        &self,
        evidence: &Evidence<'_>,
        all: &[LastRead],
        moment: (Time, ClockId),
        through: Revision,
    ) -> bool {
        let is_wanted = |revision: Revision| revision.is_some() && revision <= through;
        let read = |at: &u32| all[*at as usize];
        open(evidence, &self.reads, |at| read(at).moment, moment).any(|open| {
            // The latest read is the likely one. No read is looked at if all versions are above the revision.
            is_wanted(self.lowest[open.end - 1]) && self.reads[open].iter().rev().any(|at| is_wanted(read(at).revision))
        })
    }
}

fn read_at(read: &LastRead) -> (Time, ClockId) {
    read.moment
}

/// On each clock, the indices of the reads before a moment by unrelated clocks. Input: reads by clock, then by time, and
/// the moment of each.
fn open<T>(
    evidence: &Evidence<'_>,
    reads: &[T],
    at: impl Fn(&T) -> (Time, ClockId) + Copy,
    moment: (Time, ClockId),
) -> impl Iterator<Item = Range<usize>> {
    let clocks = &evidence.order.clocks;
    let mut start = 0;
    of_each_clock(reads, at).filter_map(move |reads| {
        let first = start;
        start += reads.len();
        // A later time of one clock is never before a moment that an earlier time of it is not before.
        let relation = |read: &T| clocks.relation(at(read), moment);
        let from = reads.partition_point(|read| relation(read) == Relation::Before);
        let to = from + reads[from..].partition_point(|read| matches!(relation(read), Relation::BeforeUnless(_)));
        (from < to).then_some(first + from..first + to)
    })
}

/// Whether the content of a read is not recorded.
fn is_silent(evidence: &Evidence<'_>, id: OperationId, o: &Operation) -> bool {
    match o.verb {
        Verb::Watch => o.outcome() != Outcome::Rejected && evidence.history.stream_of(id).is_none(),
        Verb::Get | Verb::List => o.outcome() != Outcome::Rejected && !o.marks.has(Marks::ANSWER_BODY),
        _ => false,
    }
}

/// Whether a request names the one object that it is about.
fn is_about_one(verb: Verb, key: KeyId) -> bool {
    key.is_some() && !matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection)
}

/// The read that an answer about one object is.
fn of_answer(id: OperationId, o: &Operation) -> Option<LastRead> {
    if !is_about_one(o.verb, o.key)
        || o.marks.has(Marks::DRY_RUN)
        || matches!(o.subresource, Subresource::Effect | Subresource::Other)
    {
        return None;
    }
    let named = o.answer_uid.is_some().then_some(Known::Life(o.answer_uid));
    let known = match (o.verb, o.outcome()) {
        (Verb::Get, Outcome::Answered) if matches!(o.asked, Asked::Exact) || o.marks.has(Marks::LIST_ANSWER) => None,
        (_, Outcome::Rejected) if o.status == 404 && o.verb != Verb::Create => Some(Known::Nothing),
        // The text of a conflict names the uid of the current object.
        (Verb::Create, Outcome::Rejected) if o.status == 409 => Some(Known::Unsure),
        (_, Outcome::Rejected) => named.filter(|_| o.status == 409),
        (Verb::Create, Outcome::Unknown) => Some(Known::Unsure),
        (_, Outcome::Unknown) => None,
        (Verb::Delete, _) if removes(o) && o.answer_uid.is_some() => Some(Known::End(o.answer_uid)),
        (Verb::Delete, _) if o.answered.is_some() => named,
        (Verb::Delete, _) if removes(o) => Some(Known::Nothing),
        // An answer without its body does not show whether a finalizer still holds the object.
        (Verb::Delete, _) => Some(Known::Unsure),
        (_, _) if removes(o) => Some(Known::End(o.answer_uid)),
        _ => named,
    }?;
    // An unanswered creation may have taken effect as soon as it was sent.
    let time = if o.ret.is_known() && known != Known::Unsure { o.ret } else { o.invoke };
    Some(LastRead { moment: (time, o.clock), known, revision: o.answered, shown: Shown::Answer(id) })
}
