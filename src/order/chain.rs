//! Reflector chains: which list or stream each watch continues. Input: the lists and watches of each process and scope. Output:
//! [`ReflectorChains`], with a [`Start`] for each watch.
//!
//! A reflector lists, watches from the list's revision, and later resumes from the last revision of the stream. Several informers
//! of one process may watch one resource. A watch that nothing explains is therefore a new consumer, not a reflector that went
//! backwards. Prefer a lost finding to a false one: see `ended`.

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

/// The reason for the start revision of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The list whose revision it names.
    List(OperationId),
    /// The list right before it, whose body is not recorded. The list is presumed to have the watch's revision (reflector pair).
    Pair(OperationId),
    /// The previous watch, which had ended.
    Continues(OperationId),
    /// The watch names the version of an item of that list, below the list's own revision, and no stream came in between.
    Item(OperationId),
    /// Another consumer of the same scope, because the previous watch was still open.
    NewConsumer,
    /// The watch brings its own initial state, or the evidence shows nothing before it.
    Fresh,
}

/// One watch or list of a chain.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The operation.
    pub operation: OperationId,
    /// For a watch, the reason for its start revision.
    pub start: Start,
    /// The highest revision that the chain had seen before this step, with the evidence; `None` at the beginning.
    pub frontier: Option<(Revision, EvidenceRef)>,
    /// The HTTP code of the error that ended the previous stream; 0 if none is known.
    pub error: u16,
    /// Whether the process may have several consumers of this scope: two watches, or a list and a watch, were open at one time.
    /// The consumer that makes this step is unknown then.
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
    /// The revision of the list, if its body was recorded.
    list_revision: Option<Revision>,
    watch: Option<OperationId>,
    watch_since_list: bool,
    /// Whether a stream was open when the list was sent. Another consumer may have sent the list then.
    list_beside_stream: bool,
    has_concurrent_consumers: bool,
    /// The frontier of the chain when the list was sent.
    before_list: Option<(Revision, EvidenceRef)>,
    frontier: Option<(Revision, EvidenceRef)>,
    error: u16,
}

/// All chains, and the revisions of lists that only a following watch discloses.
#[derive(Debug, Default)]
pub struct ReflectorChains {
    /// In order of incarnation, then scope.
    pub chains: Vec<Chain>,
    /// Lists with a revision from the reflector pair: by list, the revision and the watch.
    pub paired: FxHashMap<OperationId, (Revision, OperationId)>,
    starts: FxHashMap<OperationId, Start>,
    has_concurrent_consumers: FxHashSet<OperationId>,
}

impl ReflectorChains {
    /// Builds the chains of every process.
    pub fn build(history: &History, timeline: &Timeline, clocks: &Clocks, watermarks: &Watermarks) -> ReflectorChains {
        let mut by_chain: FxHashMap<(IncarnationId, ScopeId), Vec<OperationId>> = FxHashMap::default();
        for (id, o) in history.operations.of_verbs(&[Verb::List, Verb::Watch]) {
            if !o.marks.has(Marks::SAVED) {
                by_chain.entry((o.incarnation, o.scope)).or_default().push(id);
            }
        }
        let known = Known { history, timeline, clocks, watermarks, reached: &reached(history, watermarks) };
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
        state.has_concurrent_consumers |= beside && o.verb == Verb::Watch;
        let (frontier, error, has_concurrent_consumers) = (state.frontier, state.error, state.has_concurrent_consumers);
        let mut step = Step { operation: id, start: Start::Fresh, frontier, error, has_concurrent_consumers };
        if !o.is_answered() && o.verb == Verb::List {
            return None;
        }
        if o.verb == Verb::List {
            // Deliberate reads of the past and later pages are not the start of a reflector.
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
        // A reflector resumes a stream that ended without an error and does not list again. The list in between belongs to
        // another consumer, unless the watch may start from it on another server.
        if let (Start::Continues(_), Some(list)) = (step.start, state.list)
            && !state.watch_since_list
            && state.error == 0
            && !self.may_start_from(known, state, list, id)
        {
            state.has_concurrent_consumers |= state.before_list.is_some_and(|(reached, _)| o.asked_revision >= reached);
            state.frontier = state.before_list;
            (step.has_concurrent_consumers, step.frontier) = (state.has_concurrent_consumers, state.frontier);
        }
        if step.has_concurrent_consumers {
            self.has_concurrent_consumers.insert(id);
        }
        if step.start == Start::NewConsumer {
            return Some(step);
        }
        let start = (o.asked == Asked::From && known.was_reached(id, &o)).then_some(o.asked_revision);
        if matches!(step.start, Start::Fresh) && start.is_none() {
            // It brings its own state, so the earlier frontier of the chain does not bind it.
            state.frontier = None;
            step.frontier = None;
        }
        if let (Start::Pair(list), Some(start)) = (step.start, start) {
            self.paired.insert(list, (start, id));
        }
        if matches!(step.start, Start::List(_) | Start::Pair(_)) && start.is_some() {
            // It starts again from the list, whatever the frontier was.
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
            // A list explains the start only if nothing newer had arrived since.
            let overtaken = state.watch_since_list && state.frontier.is_some_and(|(came, _)| came > o.asked_revision);
            if before && !overtaken && state.list_revision == Some(o.asked_revision) {
                return Start::List(list);
            }
            let one_place = listed.server == o.server || !listed.server.is_some();
            if one_place && self.may_start_from(known, state, list, id) {
                return Start::Pair(list);
            }
            // The version of an item, and below the frontier before the list: the wrong revision from that list.
            let resumes = state.before_list.is_some_and(|(reached, _)| o.asked_revision >= reached);
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
            // No previous stream, and not the revision of the list: another consumer.
            None if state.list.is_some() => Start::NewConsumer,
            None => Start::Fresh,
        }
    }

    /// Whether a watch may start from the state that a list of unknown revision showed.
    fn may_start_from(&self, known: Known<'_>, state: &State, list: OperationId, id: OperationId) -> bool {
        let [listed, o] = [list, id].map(|id| known.history.operation(id));
        let before = listed.ret <= o.invoke
            || listed.clock != o.clock
            || !known.clocks.before((o.invoke, o.clock), (listed.ret, listed.clock));
        let pairs = matches!(listed.asked, Asked::Any | Asked::Unset) && !listed.marks.has(Marks::MORE_PAGES);
        let alone = !state.watch_since_list && !state.list_beside_stream && !state.has_concurrent_consumers;
        before && state.list_revision.is_none() && pairs && alone && known.may_pair(&listed, id, &o)
    }

    fn is_item(&self, history: &History, list: OperationId, revision: Revision) -> bool {
        let listed = history.operation(list);
        revision < listed.answered && history.items_of(&listed).iter().any(|item| item.revision == revision)
    }

    /// Whether a watch may belong to any of several consumers of its scope.
    pub fn has_concurrent_consumers(&self, watch: OperationId) -> bool {
        self.has_concurrent_consumers.contains(&watch)
    }

    /// Whether a process may have had several consumers of one scope.
    pub fn are_crowded(&self, incarnation: IncarnationId) -> bool {
        self.steps_of(incarnation).any(|step| step.has_concurrent_consumers)
    }

    /// Whether the evidence has watches of a process.
    pub fn has_watches(&self, incarnation: IncarnationId) -> bool {
        self.steps_of(incarnation).any(|step| self.starts.contains_key(&step.operation))
    }

    fn steps_of(&self, incarnation: IncarnationId) -> impl Iterator<Item = &Step> {
        let first = self.chains.partition_point(|chain| chain.incarnation < incarnation);
        let own = self.chains[first..].iter().take_while(move |chain| chain.incarnation == incarnation);
        own.flat_map(|chain| &chain.steps)
    }

    /// The reason for the start revision of a watch; `None` for a watch outside all chains.
    pub fn start_of(&self, watch: OperationId) -> Option<Start> {
        self.starts.get(&watch).copied()
    }
}

/// The inputs from which chains are built.
#[derive(Clone, Copy)]
struct Known<'c> {
    history: &'c History,
    timeline: &'c Timeline,
    clocks: &'c Clocks,
    watermarks: &'c Watermarks,
    reached: &'c Flags,
}

/// Watches whose start revision may certainly have existed, as far as one pass over all watches can show it.
fn reached(history: &History, watermarks: &Watermarks) -> Flags {
    let steady = watermarks.are_steady();
    let mut reached = Flags::none(if steady { history.operations.len() } else { 0 });
    let mut walk = watermarks.walk(history);
    for (id, o) in history.operations.all_of_verbs(&[Verb::Watch]).filter(|(_, o)| steady && o.asked == Asked::From) {
        if history.scopes.get(o.scope.index()).is_some_and(|scope| walk.has_reached(scope.resource, &o)) {
            reached.set(id.index());
        }
    }
    reached
}

impl Known<'_> {
    /// Whether a watch may start from a list. It may not if its revision did not exist yet, or if the process itself wrote that
    /// revision after it sent the list.
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

    /// See [`Watermarks::may_have_reached`].
    fn was_reached(&self, id: OperationId, watch: &Operation) -> bool {
        self.reached.has(id.index()) || self.watermarks.may_have_reached(self.history, self.clocks, watch)
    }
}

/// The end times of those watches of a chain that may still be open.
#[derive(Default)]
struct Open(Vec<(Time, ClockId)>);

impl Open {
    /// Whether some stream may still be open when an operation begins. If the operation is a watch, it counts as open from then
    /// on.
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

/// Beyond this number of open streams of one scope, further ones are not tracked.
const CONSUMERS: usize = 16;

/// Whether a watch had certainly ended when a later operation began. A reflector's next watch that is mistaken for a new consumer
/// only loses a finding; the opposite mistake would invent one.
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
