//! Reflector chains: which list or stream each watch continues.
//!
//! A reflector lists, watches from the list's revision, and goes on from where the stream came to. Several informers of one
//! process may watch one resource, so a watch that nothing explains is a new consumer, not a reflector gone backwards.

use super::clock::Clocks;
use super::flags::Flags;
use super::shown::EvidenceRef;
use super::timeline::Timeline;
use super::watermark::Watermarks;
use crate::history::{
    Asked, ClockId, DeliveryKind, History, IncarnationId, Marks, Operation, OperationId, Revision, ScopeId, Verb,
};
use crate::ingest::Time;
use rustc_hash::{FxHashMap, FxHashSet};

/// Why a watch starts where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The list whose revision it names.
    List(OperationId),
    /// The list right before it, whose body is not recorded: its revision is taken to be the watch's (reflector pair).
    Pair(OperationId),
    /// The watch before it, which had ended.
    Continues(OperationId),
    /// It names the version of an item of that list, below the list's own revision, and no stream lies in between.
    Item(OperationId),
    /// Another consumer of the same scope: the watch before it was still open.
    NewConsumer,
    /// It brings its own initial state, or is the first that the evidence shows.
    Fresh,
}

/// One watch or list of a chain.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The operation.
    pub operation: OperationId,
    /// For a watch: why it starts where it starts.
    pub start: Start,
    /// The highest revision that the chain had seen before this step, and what showed it; none at its beginning.
    pub frontier: Option<(Revision, EvidenceRef)>,
    /// The error that the stream before ended with (an HTTP code), 0 for none known.
    pub error: u16,
    /// Whether the process may have several consumers of this scope: two of its watches, or a list and a watch, were open at
    /// one time. Which of them goes on with this step is then not known.
    pub has_concurrent_consumers: bool,
}

/// The lists and watches of one process on one scope, in order.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The process.
    pub incarnation: IncarnationId,
    /// The scope, selectors included.
    pub scope: ScopeId,
    /// In order of invoke time.
    pub steps: Vec<Step>,
}

#[derive(Clone, Copy, Default)]
struct State {
    list: Option<OperationId>,
    /// The list's revision, where its body was recorded.
    list_revision: Option<Revision>,
    watch: Option<OperationId>,
    watch_since_list: bool,
    /// Whether a stream was open when the list was sent: then another consumer, or nobody's reflector, sent it.
    list_beside_stream: bool,
    crowded: bool,
    /// Where the chain stood when the list came.
    before_list: Option<(Revision, EvidenceRef)>,
    frontier: Option<(Revision, EvidenceRef)>,
    error: u16,
}

/// Chains and the revisions of lists that only a watch after them discloses.
#[derive(Debug, Default)]
pub struct ReflectorChains {
    /// In order of incarnation, then scope.
    pub chains: Vec<Chain>,
    /// Lists whose revision comes from the reflector pair: list, revision, watch.
    pub paired: FxHashMap<OperationId, (Revision, OperationId)>,
    starts: FxHashMap<OperationId, Start>,
    crowded: FxHashSet<OperationId>,
}

impl ReflectorChains {
    /// Builds the chains of every process.
    pub fn build(history: &History, timeline: &Timeline, clocks: &Clocks, heads: &Watermarks) -> ReflectorChains {
        let mut by_chain: FxHashMap<(IncarnationId, ScopeId), Vec<OperationId>> = FxHashMap::default();
        for (id, o) in history.operations.of_verbs(&[Verb::List, Verb::Watch]) {
            if !o.marks.has(Marks::SAVED) {
                by_chain.entry((o.incarnation, o.scope)).or_default().push(id);
            }
        }
        let known = Known { history, timeline, clocks, heads, reached: &reached(history, heads) };
        let mut chains = ReflectorChains::default();
        let mut keys: Vec<_> = by_chain.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            let operations = by_chain.remove(&key).unwrap_or_default();
            let mut steps = Vec::with_capacity(operations.len());
            let mut state = State::default();
            let mut open = Open::default();
            for id in operations {
                let beside = open.begin(history, clocks, id);
                if let Some(step) = chains.step(known, &mut state, id, beside) {
                    steps.push(step);
                }
            }
            chains.chains.push(Chain { incarnation: key.0, scope: key.1, steps });
        }
        chains
    }

    fn step(&mut self, known: Known<'_>, state: &mut State, id: OperationId, beside: bool) -> Option<Step> {
        let Known { history, timeline, .. } = known;
        let o = history.operation(id);
        state.crowded |= beside && o.verb == Verb::Watch;
        let (frontier, error, crowded) = (state.frontier, state.error, state.crowded);
        let mut step = Step { operation: id, start: Start::Fresh, frontier, error, has_concurrent_consumers: crowded };
        if !o.is_answered() && o.verb == Verb::List {
            return None;
        }
        if o.verb == Verb::List {
            // Deliberate reads of the past and later pages are not where a reflector starts from.
            if matches!(
                o.asked,
                Asked::Exact | Asked::LegacyExact | Asked::Continue | Asked::ContinueInconsistent | Asked::Invalid
            ) {
                return Some(step);
            }
            state.list = Some(id);
            state.list_revision = o.answered.known();
            state.watch_since_list = false;
            state.list_beside_stream = beside;
            state.before_list = state.frontier;
            if let Some(revision) = o.answered.known() {
                advance(state, revision, EvidenceRef::Answer(id));
            }
            return Some(step);
        }
        if !(o.is_answered() || o.marks.has(Marks::OPEN)) {
            return None;
        }
        step.start = self.explain(known, state, id);
        self.starts.insert(id, step.start);
        // A stream that ended without an error is gone on with, not listed anew: then the list in between is another consumer's, unless
        // the watch may start from it on another server.
        if let (Start::Continues(_), Some(list)) = (step.start, state.list)
            && !state.watch_since_list
            && state.error == 0
            && !self.may_start_from(known, state, list, id)
        {
            state.crowded |= state.before_list.is_some_and(|(stood, _)| o.asked_revision >= stood);
            state.frontier = state.before_list;
            (step.has_concurrent_consumers, step.frontier) = (state.crowded, state.frontier);
        }
        if step.has_concurrent_consumers {
            self.crowded.insert(id);
        }
        if step.start == Start::NewConsumer {
            return Some(step);
        }
        let start = (o.asked == Asked::From && known.was_reached(id, &o)).then_some(o.asked_revision);
        if matches!(step.start, Start::Fresh) && start.is_none() {
            // It brings its own state; where the chain stood no longer matters to it.
            state.frontier = None;
            step.frontier = None;
        }
        if let (Start::Pair(list), Some(start)) = (step.start, start) {
            self.paired.insert(list, (start, id));
        }
        if matches!(step.start, Start::List(_) | Start::Pair(_)) && start.is_some() {
            // It begins anew from the list, wherever the chain stood before.
            state.frontier = None;
        }
        if let Some(start) = start {
            advance(state, start, EvidenceRef::Answer(id));
        }
        state.watch = Some(id);
        state.watch_since_list = true;
        state.error = 0;
        if let Some(stream) = history.stream_of(id) {
            for index in stream.deliveries() {
                let d = &history.deliveries[index];
                if d.kind == DeliveryKind::Error {
                    state.error = d.code;
                } else if d.revision.is_some() && !timeline.is_misdated(index) {
                    advance(state, d.revision, EvidenceRef::Delivery(index as u32, id));
                }
            }
        }
        Some(step)
    }

    fn explain(&self, known: Known<'_>, state: &State, id: OperationId) -> Start {
        let Known { history, clocks, .. } = known;
        let o = history.operation(id);
        if o.asked != Asked::From || o.marks.has(Marks::INITIAL_EVENTS) {
            return Start::Fresh;
        }
        if let Some(list) = state.list {
            let listed = history.operation(list);
            let before = listed.ret <= o.invoke
                || listed.clock != o.clock
                || !clocks.before((o.invoke, o.clock), (listed.ret, listed.clock));
            // A list explains only where nothing newer had come since.
            let overtaken = state.watch_since_list && state.frontier.is_some_and(|(came, _)| came > o.asked_revision);
            if before && !overtaken && state.list_revision == Some(o.asked_revision) {
                return Start::List(list);
            }
            let one_place = listed.server == o.server || !listed.server.is_some();
            if one_place && self.may_start_from(known, state, list, id) {
                return Start::Pair(list);
            }
            // The version of an item, and not where the stream before the list had come to: the wrong number from that list.
            let resumes = state.before_list.is_some_and(|(stood, _)| o.asked_revision >= stood);
            if before && !state.watch_since_list && !resumes && self.is_item(history, list, o.asked_revision) {
                return Start::Item(list);
            }
        }
        match state.watch {
            Some(previous) => {
                if ended(history, clocks, previous, id) {
                    Start::Continues(previous)
                } else {
                    Start::NewConsumer
                }
            }
            // No stream before it, and not the list's revision: somebody else's.
            None if state.list.is_some() => Start::NewConsumer,
            None => Start::Fresh,
        }
    }

    /// Whether a watch may start from what a list of unknown revision showed.
    fn may_start_from(&self, known: Known<'_>, state: &State, list: OperationId, id: OperationId) -> bool {
        let [listed, o] = [list, id].map(|id| known.history.operation(id));
        let before = listed.ret <= o.invoke
            || listed.clock != o.clock
            || !known.clocks.before((o.invoke, o.clock), (listed.ret, listed.clock));
        let pairs = matches!(listed.asked, Asked::Any | Asked::Unset) && !listed.marks.has(Marks::MORE_PAGES);
        let alone = !state.watch_since_list && !state.list_beside_stream && !state.crowded;
        before && state.list_revision.is_none() && pairs && alone && known.may_pair(&listed, id, &o)
    }

    fn is_item(&self, history: &History, list: OperationId, revision: Revision) -> bool {
        let listed = history.operation(list);
        revision < listed.answered && history.items_of(&listed).iter().any(|item| item.revision == revision)
    }

    /// Whether a watch may belong to any of several consumers of its scope.
    pub fn is_crowded(&self, watch: OperationId) -> bool {
        self.crowded.contains(&watch)
    }

    /// Whether several watches of one scope by a process were open at a time.
    pub fn are_crowded(&self, incarnation: IncarnationId) -> bool {
        self.steps_of(incarnation).any(|step| step.has_concurrent_consumers)
    }

    /// Whether watches of a process are in the evidence.
    pub fn has_watches(&self, incarnation: IncarnationId) -> bool {
        self.steps_of(incarnation).any(|step| self.starts.contains_key(&step.operation))
    }

    fn steps_of(&self, incarnation: IncarnationId) -> impl Iterator<Item = &Step> {
        let first = self.chains.partition_point(|chain| chain.incarnation < incarnation);
        let own = self.chains[first..].iter().take_while(move |chain| chain.incarnation == incarnation);
        own.flat_map(|chain| &chain.steps)
    }

    /// Why a watch starts where it starts.
    pub fn start_of(&self, watch: OperationId) -> Option<Start> {
        self.starts.get(&watch).copied()
    }
}

/// What chains are built from.
#[derive(Clone, Copy)]
struct Known<'c> {
    history: &'c History,
    timeline: &'c Timeline,
    clocks: &'c Clocks,
    heads: &'c Watermarks,
    reached: &'c Flags,
}

/// Watches that certainly start from what may have been there, where one walk through all of them tells.
fn reached(history: &History, heads: &Watermarks) -> Flags {
    let steady = heads.are_steady();
    let mut reached = Flags::none(if steady { history.operations.len() } else { 0 });
    let mut walk = heads.walk(history);
    for (id, o) in history.operations.all_of_verbs(&[Verb::Watch]).filter(|(_, o)| steady && o.asked == Asked::From) {
        if history.scopes.get(o.scope.index()).is_some_and(|scope| walk.has_reached(scope.resource, &o)) {
            reached.set(id.index());
        }
    }
    reached
}

impl Known<'_> {
    /// Whether a watch may start from what a list showed: not where the number is none yet, or that of a write which the process
    /// itself sent after the list.
    fn may_pair(&self, list: &Operation, id: OperationId, watch: &Operation) -> bool {
        let Some(scope) = self.history.scopes.get(watch.scope.index()) else { return false };
        let below = watch.asked_revision.previous();
        let mut written = self.timeline.of_resource(scope.resource, below, watch.asked_revision);
        let is_own = |writer: OperationId| {
            let write = self.history.operation(writer);
            write.incarnation == watch.incarnation
                && !self.clocks.before((write.ret, write.clock), (list.invoke, list.clock))
        };
        self.was_reached(id, watch) && !written.any(|version| version.writer.is_some() && is_own(version.writer))
    }

    /// See [`Heads::may_have_reached`].
    fn was_reached(&self, id: OperationId, watch: &Operation) -> bool {
        self.reached.has(id.index()) || self.heads.may_have_reached(self.history, self.clocks, watch)
    }
}

/// When the watches of a chain ended that may still be open.
#[derive(Default)]
struct Open(Vec<(Time, ClockId)>);

impl Open {
    /// Whether some stream is not known to have ended when an operation begins; a watch is open from then on.
    fn begin(&mut self, history: &History, clocks: &Clocks, id: OperationId) -> bool {
        let o = history.operation(id);
        self.0.retain(|&end| !clocks.before(end, (o.invoke, o.clock)));
        let beside = !self.0.is_empty();
        if o.verb == Verb::Watch && (o.is_answered() || o.marks.has(Marks::OPEN)) && self.0.len() < CONSUMERS {
            self.0.push((o.ret, o.clock));
        }
        beside
    }
}

/// More open streams of one scope than this are not told apart.
const CONSUMERS: usize = 16;

/// Whether a watch had certainly ended when a later operation began. Taking a reflector's next watch for a new consumer only
/// loses a finding; the other way round would make one up.
fn ended(history: &History, clocks: &Clocks, watch: OperationId, next: OperationId) -> bool {
    let (operations, watch, next) = (&history.operations, watch.index(), next.index());
    let answered = (operations.ret(watch), operations.clock(watch));
    clocks.before(answered, (operations.invoke(next), operations.clock(next)))
}

fn advance(state: &mut State, revision: Revision, showing: EvidenceRef) {
    if state.frontier.is_none_or(|(frontier, _)| revision > frontier) {
        state.frontier = Some((revision, showing));
    }
}
