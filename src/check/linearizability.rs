#![doc = include_str!("../../docs/rules/linearizability.md")]

use super::etcd;
use super::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Halt, Kind, Proof, Rule, RuleResult};
use crate::check::options::{Limits, SPENT};
use crate::history::calls::{Call as Recorded, Calls, Moment, Value};
use crate::history::{ClockId, History, IncarnationId, KeyId, ValueId};
use crate::ingest::call::Ending;
use crate::ingest::limits::KEPT_PROBLEMS_PER_FILE;
use crate::ingest::problem::Problem;
use crate::isolation::Level;
use crate::model::{self, Beginnings, Effect, Log, Model, Spec, TypedLog, Visitor};
use crate::search::{
    self, Alternative, Budget, Call, Claim, Core, HistoryError, Limit, Missing, Outcome, Reason, SpecHistory,
    Undecided, Verdict,
};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::time::Instant;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "linearizability",
    title: "each call takes effect at one moment between its invocation and its answer",
    group: Group::Operations,
    promise: BrokenBy::Server,
    needs: "an operation log",
    causes: &[],
    page: include_str!("../../docs/rules/linearizability.md"),
    checks: Checks::operations(check).and_etcd(etcd::order::check),
};

/// The most objects of one log with a finding each.
const OBJECTS: usize = 20;

/// The most calls that a finding shows.
const SHOWN: usize = 16;

/// The most transactions of a log that are reduced to a minimal core.
const MOST_REDUCED: usize = 2_000;

/// The most pairs of calls that a reason names.
const PAIRS: usize = 6;

/// The most late calls that a reason names. With more of them almost anything can be explained.
const LATE: usize = 2;

/// The most calls of a core for which a reason names missing calls. Larger cores contradict themselves.
const FEW: usize = 2;

/// The most alternative orders that a reason names.
const ALTERNATIVES: usize = 4;

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let log = Log { calls: history.calls(), names: &history.names };
    if log.calls.is_empty() {
        return;
    }
    match Model::of(log) {
        // The caller asserts a weaker level: rule `isolation` decides it.
        Ok(Model::ListAppend | Model::MultiRegister)
            if log.calls.is_timeless || evidence.options.level.is_some_and(|level| level != Level::STRICT) => {}
        Ok(model) => {
            let transactions = super::isolation::strict_order(log, model);
            model.visit(
                log,
                Decision { history, model, result, proofs: evidence.options.proofs, begun: None, transactions },
            )
        }
        Err(why) => result.open = Some(format!("the model is not known: {why}")),
    }
}

/// Decides a log of any model.
struct Decision<'d, 'e> {
    history: &'d History,
    model: Model,
    result: &'d mut RuleResult<'e>,
    /// Whether to keep an order that explains the log.
    proofs: bool,
    /// For a log of transactions: an order of their calls that explains it, or that there is none.
    transactions: Option<Result<Vec<u32>, ()>>,
    /// Whether some object of the log shows a value from before its beginning; computed at the first use.
    begun: Option<bool>,
}

/// The part of a log that is known completely, below a rank, with the reason why no more is.
struct Known {
    below: i64,
    because: String,
}

impl Visitor for Decision<'_, '_> {
    type Output = ();

    fn visit<S: Spec>(mut self, log: TypedLog<S>) {
        let calls = self.history.calls();
        let known = self.known(&log);
        let beginnings = log.beginnings;
        for typed in &log.operations {
            self.result.checked(calls.calls.get(typed.call as usize).process);
        }
        match self.transactions.take().filter(|_| known.is_none()) {
            // Their dependencies show an order at once, where a search may take long.
            Some(Ok(order)) => {
                if self.proofs {
                    let numbers: FxHashMap<u32, u32> = log.operations.iter().map(|typed| typed.call).zip(0..).collect();
                    let order = order.iter().filter_map(|call| numbers.get(call).copied()).collect();
                    self.result.proofs.push(Proof::Linearization { model: self.model.name(), order });
                }
                return;
            }
            // The rule `isolation` tells a cycle of them, and the reduction of so many calls to a core takes long.
            Some(Err(())) if log.operations.len() > MOST_REDUCED => {
                self.result.undecided("the rule isolation finds that no order explains these transactions");
                return;
            }
            _ => {}
        }
        let all = match Operations::of(log, calls) {
            Ok(all) => all,
            Err(error) => {
                self.result.open = Some(format!("its calls are no history: {error}"));
                return;
            }
        };
        let mut objects: Vec<ValueId> = Vec::new();
        loop {
            let wanted = |call: &Recorded| !objects.contains(&call.key);
            let below = known.as_ref().map_or(i64::MAX, |known| known.below);
            let some = (below < i64::MAX || !objects.is_empty()).then(|| all.some(calls, below, &wanted));
            let operations = some.as_ref().unwrap_or(&all);
            let recorded = &operations.calls;
            match operations.decide(&self.result.limits) {
                Decided::Violated(core, reason) => {
                    let below = known.as_ref().filter(|known| known.below < i64::MAX);
                    let (kind, preface) = match self.doubt(&core, operations, &all, beginnings) {
                        Some(doubt) => (Kind::Suspect, doubt),
                        None => (Kind::Violation, below.map_or_else(String::new, |known| self.bound(known))),
                    };
                    if kind == Kind::Violation {
                        self.result.proofs.push(self.proof(&core, &reason, operations));
                    }
                    let key = self.found(&core, &reason, recorded, kind, &preface);
                    // Other objects of the log may have a violation as well.
                    if !key.is_some() || objects.len() + 1 >= OBJECTS {
                        return;
                    }
                    objects.push(key);
                }
                Decided::Open(undecided) => return self.open(&undecided, recorded),
                Decided::Holds(order) => {
                    if known.is_some() || !objects.is_empty() {
                        break;
                    }
                    // Nothing was left out, so the numbers are those of the log.
                    let Some(order) = self.by_process(&all, order) else { return };
                    if self.proofs {
                        self.result.proofs.push(Proof::Linearization { model: self.model.name(), order });
                    }
                    break;
                }
            }
        }
        let Some(known) = known.filter(|_| objects.is_empty()) else { return };
        // The known part holds. The rest may still show a violation.
        if known.below < i64::MAX
            && let Decided::Violated(core, reason) = all.decide(&self.result.limits)
        {
            let preface =
                format!("The log is not whole ({}), so a call may be missing that would explain it. ", known.because);
            self.found(&core, &reason, &all.calls, Kind::Suspect, &preface);
        }
        self.result.open = Some(format!("the log is not whole: {}", known.because));
    }
}

/// The result of a search.
enum Decided {
    /// An order that explains everything.
    Holds(Vec<u32>),
    /// A minimal core, and the reason why nothing explains it.
    Violated(Core, Reason),
    /// The undecided part.
    Open(Undecided),
}

/// The events of one object.
type Events<'o, S> = Vec<model::Event<'o, <S as Spec>::Operation, <S as Spec>::Answer>>;

/// Operations of a log that are decided together.
struct Operations<S: Spec> {
    spec: Rc<S>,
    history: SpecHistory<S>,
    /// Per operation, its call.
    calls: Vec<u32>,
    /// Per operation, its number in the log; `None` if these are all operations of the log.
    numbers: Option<Vec<u32>>,
}

impl<S: Spec> Operations<S> {
    /// All operations of a log.
    fn of(log: TypedLog<S>, calls: &Calls) -> Result<Self, HistoryError> {
        let of: Vec<u32> = log.operations.iter().map(|typed| typed.call).collect();
        let given = log.operations.into_iter().zip(0..).map(|(typed, process)| {
            let call = calls.calls.get(typed.call as usize);
            let is_answered = call.ret.rank < i64::MAX;
            let outcome = match typed.answer {
                _ if typed.failed && is_answered => Outcome::Failed,
                Some(answer) if is_answered => Outcome::Completed { returned: call.ret.rank, answer },
                _ => Outcome::Unknown,
            };
            // A recorded call may be several operations, and times that fall back may make calls of one process overlap. Only
            // the intervals constrain the order, and they include program order.
            Call { process, operation: typed.operation, invoke: call.invoke.rank, outcome }
        });
        let history = search::History::new(given.collect())?;
        Ok(Operations { spec: Rc::new(log.spec), history, calls: of, numbers: None })
    }

    /// The same operations with other moments.
    fn at(&self, calls: &Calls, place: impl Fn(&Moment) -> i64) -> Option<Self> {
        let given = self.calls.iter().zip(self.history.calls()).map(|(&at, call)| {
            let recorded = calls.calls.get(at as usize);
            let outcome = match &call.outcome {
                Outcome::Completed { answer, .. } => {
                    Outcome::Completed { returned: place(&recorded.ret), answer: answer.clone() }
                }
                other => other.clone(),
            };
            Call { invoke: place(&recorded.invoke), outcome, ..call.clone() }
        });
        let history = search::History::new(given.collect()).ok()?;
        Some(Operations { spec: self.spec.clone(), history, calls: self.calls.clone(), numbers: None })
    }

    /// Whether every process did its calls one after the other in this order: an answered call comes before the process's next
    /// one.
    fn keeps_programs(&self, calls: &Calls, order: &[u32]) -> bool {
        let mut last: FxHashMap<IncarnationId, u64> = FxHashMap::default();
        order.iter().all(|&at| {
            let recorded = calls.calls.get(self.calls[at as usize] as usize);
            let (place, last) = (recorded.invoke.position.offset, last.entry(recorded.process).or_default());
            let kept = place >= *last || recorded.ret.rank == i64::MAX;
            *last = place.max(*last);
            kept
        })
    }

    /// The wanted operations of a log, as far as they are known below a rank.
    fn some(&self, calls: &Calls, below: i64, wanted: &dyn Fn(&Recorded) -> bool) -> Self {
        let (mut given, mut numbers, mut of) = (Vec::new(), Vec::new(), Vec::new());
        for ((number, &at), call) in (0..).zip(&self.calls).zip(self.history.calls()) {
            let recorded = calls.calls.get(at as usize);
            if recorded.invoke.rank >= below || !wanted(&recorded) {
                continue;
            }
            let outcome = if recorded.ret.rank < below { call.outcome.clone() } else { Outcome::Unknown };
            given.push(Call { process: given.len() as u32, outcome, ..call.clone() });
            numbers.push(number);
            of.push(at);
        }
        let history = search::History::new(given).unwrap_or_else(|_| unreachable!("a part of what is a history"));
        Operations { spec: self.spec.clone(), history, calls: of, numbers: Some(numbers) }
    }

    /// The events of the objects, by object, in the order of the log. Answers to calls that were sent after a certain
    /// overwrite are left out, because they cannot show the first value.
    fn events<'s>(&'s self, calls: &Calls) -> Vec<Events<'s, S>> {
        type Event<'s, S> = (i64, bool, &'s Call<<S as Spec>::Operation, <S as Spec>::Answer>);
        let mut objects: FxHashMap<ValueId, Vec<Event<'s, S>>> = FxHashMap::default();
        for (&at, call) in self.calls.iter().zip(self.history.calls()) {
            let events = objects.entry(calls.calls.get(at as usize).key).or_default();
            match &call.outcome {
                // A failed write does not show the first value either.
                Outcome::Failed | Outcome::Unknown => {}
                Outcome::Completed { returned, .. } => events.push((*returned, true, call)),
            }
            events.push((call.invoke, false, call));
        }
        let mut told = Vec::with_capacity(objects.len());
        for mut events in objects.into_values() {
            // The order of events at one time is unknown.
            events.sort_by_key(|&(rank, answered, _)| (rank, answered));
            let mut overwritten = i64::MAX;
            let event = |(rank, answered, call): Event<'s, S>| match &call.outcome {
                Outcome::Completed { answer, .. } if answered => {
                    if self.spec.effect(&call.operation, Some(answer)) == Effect::Overwrite {
                        overwritten = overwritten.min(rank);
                    }
                    (call.invoke <= overwritten).then_some(model::Event::Answered(&call.operation, answer))
                }
                _ => Some(model::Event::Asked(&call.operation)),
            };
            told.push(events.into_iter().filter_map(event).collect());
        }
        told
    }

    /// The same operations, after one call that ended before all of them.
    fn behind(&self, operation: S::Operation, answer: S::Answer) -> Self {
        let outcome = Outcome::Completed { returned: i64::MIN, answer };
        let mut given = self.history.calls().to_vec();
        given.push(Call { process: given.len() as u32, operation, invoke: i64::MIN, outcome });
        let history =
            search::History::new(given).unwrap_or_else(|_| unreachable!("a process of its own, at its own time"));
        Operations { spec: self.spec.clone(), history, calls: self.calls.clone(), numbers: None }
    }

    /// The number of an operation in the log.
    fn number(&self, at: u32) -> u32 {
        self.numbers.as_ref().map_or(at, |numbers| numbers[at as usize])
    }

    fn decide(&self, limits: &Limits) -> Decided {
        let Operations { spec, history, .. } = self;
        let budget = || budget(limits);
        match search::check(&**spec, history, &budget()) {
            Verdict::Linearizable(found) => Decided::Holds(found.order),
            Verdict::Unknown(undecided) => Decided::Open(undecided),
            Verdict::Violated(core) => {
                let core = search::minimal(&**spec, history, &core, &budget());
                // Cores that were too large to reduce have too many orders to name.
                let reason = match core.minimal {
                    true => search::reason(&**spec, history, &core, &budget()),
                    false => Reason::default(),
                };
                Decided::Violated(core, reason)
            }
        }
    }
}

/// The remaining budget.
fn budget(limits: &Limits) -> Budget<'static> {
    Budget {
        time: limits.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
        memory: limits.memory,
        cancel: limits.cancel(),
    }
}

impl Decision<'_, '_> {
    /// An order that explains the log and in which each process did one call after the other. Times that fall back may leave
    /// the calls of one process unordered; `None`: the rule is left open with that reason.
    fn by_process<S: Spec>(&mut self, all: &Operations<S>, order: Vec<u32>) -> Option<Vec<u32>> {
        let calls = self.history.calls();
        if calls.falls_back == 0 || all.keeps_programs(calls, &order) {
            return Some(order);
        }
        // The order of the lines, and that of the times, is each stricter than their common part.
        let limits = self.result.limits;
        let explained = |place: &dyn Fn(&Moment) -> i64| match all.at(calls, place)?.decide(&limits) {
            Decided::Holds(order) => Some(order).filter(|order| all.keeps_programs(calls, order)),
            _ => None,
        };
        let timed = || calls.calls.iter().all(|call| call.invoke.time.is_known());
        let order = explained(&|moment| moment.position.offset as i64);
        let order = order.or_else(|| timed().then(|| explained(&|moment| moment.time.0)).flatten());
        if order.is_none() {
            self.result.open = Some(
                "times fall back inside a process: where lines and times disagree it did two calls at once, and \
                neither the order of the lines nor that of the times explains the answers"
                    .to_owned(),
            );
        }
        order
    }

    /// The reason why a violation may be none although the log is whole, as sentences.
    fn doubt<S: Spec>(
        &mut self,
        core: &Core,
        operations: &Operations<S>,
        all: &Operations<S>,
        beginnings: Beginnings<S::Operation, S::Answer>,
    ) -> Option<String> {
        let log = Log { calls: self.history.calls(), names: &self.history.names };
        if let Some((at, call)) = log.resembles_keys() {
            let found = self.words(&call);
            let (position, expected) = (place(&call), "a key for each call, since the values look like [key value]");
            if self.result.problems.is_empty() {
                self.result.problems.push(self.problem(at, expected.to_owned(), found.clone()));
            }
            return Some(format!(
                "The values look like pairs of a key and a value (line {}: {found}), and no call names a key. Then \
                they belong to several objects, each of which may be linearizable. ",
                position.line
            ));
        }
        let of = self.recorded(&operations.calls, *core.calls.first()?).key;
        let wanted = |call: &Recorded| call.key == of;
        let part = (of.is_some()).then(|| operations.some(self.history.calls(), i64::MAX, &wanted));
        let part = part.as_ref().unwrap_or(operations);
        let explains = |(operation, answer): &(S::Operation, S::Answer)| {
            let behind = part.behind(operation.clone(), answer.clone());
            let budget = budget(&self.result.limits);
            !matches!(search::check(&*behind.spec, &behind.history, &budget), Verdict::Violated(_))
        };
        let events = part.events(self.history.calls());
        // If no object of the log shows a value that no call can have set, all are presumed to have begun empty. Only a
        // natural first value counts: a read of any other value is the error that a checker looks for.
        let values = &self.history.calls().values;
        let is_natural = |value: ValueId| match values.get(value) {
            Value::Int(number) => *number == 0,
            Value::Bool(told) => !told,
            _ => false,
        };
        let begun = |events: &Events<'_, S>| !beginnings(events, false, &is_natural).is_empty();
        if !*self.begun.get_or_insert_with(|| all.events(self.history.calls()).iter().any(begun)) {
            return None;
        }
        events.iter().flat_map(|events| beginnings(events, true, &is_natural)).find(explains)?;
        Some(
            "The log shows values that none of its calls had set before, and a first value of this object explains \
            all of its answers. "
                .to_owned(),
        )
    }

    /// The part of the log that a violation rests on, if the log is not whole.
    fn bound(&self, known: &Known) -> String {
        let behind = self.history.calls().calls.iter().filter(|call| call.invoke.rank >= known.below);
        let of = match behind.map(|call| call.invoke.position.line).min() {
            Some(line) => format!("Only the calls before line {line} count"),
            None => "Only the calls before that count".to_owned(),
        };
        format!("{of}, because after them the log is not whole ({}). ", known.because)
    }

    /// The core for a machine. Without a computed reason, every part of each call counts.
    fn proof<S: Spec>(&self, core: &Core, why: &Reason, operations: &Operations<S>) -> Proof {
        let whole = core.calls.iter().map(|&call| Claim { call, answer: true, invoked: true, returned: true });
        let (claims, minimal) = match why.claims.as_slice() {
            [] => (whole.collect(), false),
            claims => (claims.to_vec(), core.minimal && why.minimal),
        };
        let numbered = claims.into_iter().map(|claim| Claim { call: operations.number(claim.call), ..claim });
        Proof::Core { model: self.model.name(), claims: numbered.collect(), minimal }
    }

    /// Records the calls outside the model, and the part of the log that is certain without them; `None`: all of it.
    fn known<S: Spec>(&mut self, log: &TypedLog<S>) -> Option<Known> {
        let calls = self.history.calls();
        let mut known = calls.lost.as_ref().map(|lost| Known { below: lost.from, because: lost.why.clone() });
        for (at, mismatch) in &log.mismatches {
            let call = &calls.calls.get(*at as usize);
            let from = if mismatch.everywhere { i64::MIN } else { call.invoke.rank };
            match &mut known {
                Some(known) => known.below = known.below.min(from),
                None => {
                    let others = log.mismatches.len() - 1;
                    let more = if others > 0 { format!(" and {others} more are") } else { " is".to_owned() };
                    let because = format!("line {}{more} no operation of {}", place(call).line, self.model.name());
                    known = Some(Known { below: from, because });
                }
            }
            if self.result.problems.len() == KEPT_PROBLEMS_PER_FILE {
                continue;
            }
            self.result.problems.push(self.problem(*at, mismatch.expected.clone(), mismatch.found.clone()));
        }
        known
    }

    /// A problem with the call of this number.
    fn problem(&self, at: u32, expected: String, found: String) -> Problem {
        let place = place(&self.history.calls().calls.get(at as usize));
        let path = self.history.file_name(place.file).to_owned();
        Problem { file: Some(place.file), path, line: place.line, expected, found }
    }

    fn open(&mut self, undecided: &Undecided, recorded: &[u32]) {
        let why = match undecided.limit {
            Limit::Time => SPENT,
            Limit::Memory => "the memory limit was reached",
            Limit::Cancelled => self.result.limits.halt.and_then(Halt::why).unwrap_or("interrupted"),
        };
        let calls = undecided.calls.len();
        let mut keys: Vec<String> = undecided.calls.iter().map(|&at| self.key(&self.recorded(recorded, at))).collect();
        keys.dedup();
        keys.retain(|key| !key.is_empty());
        let on = match keys.as_slice() {
            [] => String::new(),
            [first @ .., last] if first.len() < 4 => {
                let first: String = first.iter().map(|key| format!("{key}, ")).collect();
                format!(" on {first}{last}")
            }
            many => format!(" on {} and {} other keys", many[0], many.len() - 1),
        };
        self.result.open = Some(format!(
            "{why} after {:.1} s of searching: {calls} of {} calls{on} are not decided",
            undecided.spent.as_secs_f64(),
            recorded.len()
        ));
    }

    fn recorded(&self, recorded: &[u32], at: u32) -> Recorded {
        self.history.calls().calls.get(recorded[at as usize] as usize)
    }

    fn key(&self, call: &Recorded) -> String {
        self.history.key_name(self.key_id(call))
    }

    fn key_id(&self, call: &Recorded) -> KeyId {
        self.history.calls().keys.get(&call.key).copied().unwrap_or_default()
    }

    fn words(&self, call: &Recorded) -> String {
        self.history.calls().words(call, self.history.name(call.function))
    }

    /// States a finding. Returns the key of its object.
    fn found(&mut self, core: &Core, why: &Reason, recorded: &[u32], kind: Kind, preface: &str) -> ValueId {
        let mut calls: Vec<Recorded> = core.calls.iter().map(|&at| self.recorded(recorded, at)).collect();
        // One recorded call may be several operations.
        calls.dedup();
        // A call whose answer counts received the impossible answer; a write returns nothing.
        let told = why.claims.iter().filter(|claim| claim.answer).map(|claim| self.recorded(recorded, claim.call));
        let told: Vec<Recorded> = told.filter(|call| call.ending != Ending::Fail).collect();
        let told = if told.is_empty() { &calls } else { &told };
        let Some(&last) = told.iter().filter(|call| call.ending != Ending::Fail).max_by_key(|call| {
            if call.ret.time.is_known() || call.ret.rank < i64::MAX { call.ret.rank } else { i64::MIN }
        }) else {
            return ValueId::NONE;
        };
        let shown = &calls[calls.len().saturating_sub(SHOWN)..];
        let who = self.history.client_name(last.process).to_owned();
        let key = self.key(&last);
        let of = if key.is_empty() { String::new() } else { format!(" of {key}") };
        let count = calls.len();
        let summary = match count {
            1 => format!("{who} received an impossible answer: its {}{of}", self.words(&last)),
            _ => format!("{who} received an answer that no order of the calls explains: its {}{of}", self.words(&last)),
        };
        let reason = format!("{preface}{}", self.reason(shown, core, why, recorded));
        let draft = Draft {
            kind,
            broken_by: BrokenBy::Server,
            incarnation: last.process,
            key: self.key_id(&last),
            cause: key,
            summary,
            facts: shown.iter().map(|call| self.fact(call)).collect(),
            reason,
            refuted_by: "a call on the same object that is not in this log (of another client, or from before its \
                        beginning), or another first value"
                .to_owned(),
            consequence: "a lock, a counter or a decision on this object rests on a value that is no longer true or \
                         never was"
                .to_owned(),
        };
        self.result.found(draft);
        last.key
    }

    fn fact(&self, call: &Recorded) -> Fact {
        let (invoke, ret) = (call.invoke.position.line, call.ret.position.line);
        let mut says = self.words(call);
        if ret != 0 && ret != invoke {
            says += &format!(" (lines {invoke} to {ret})");
        }
        Fact {
            position: place(call),
            says,
            revision: Default::default(),
            key: self.key_id(call),
            uid: Default::default(),
            time: if call.ret.time.is_known() { call.ret.time } else { call.invoke.time },
            clock: ClockId(0),
            incarnation: call.process,
            server: Default::default(),
            audit_id: Default::default(),
            operation: Default::default(),
        }
    }

    /// The reason why no order explains these calls, which are the last ones of the core.
    fn reason(&self, calls: &[Recorded], core: &Core, why: &Reason, recorded: &[u32]) -> String {
        let count = core.calls.len();
        let name = |at: u32| self.named(at, core, recorded);
        let mut reason = match core.calls[..] {
            [only] => format!("Whatever the other calls did, {} cannot have been answered like this. ", name(only)),
            _ => format!(
                "No order of these {count} calls, each at one moment between its invocation and its answer, gives these answers, \
                 whatever the other calls did. "
            ),
        };
        let before = if core.minimal {
            let pairs = why.before.iter().map(|&(first, second)| (name(first), name(second)));
            pairs.take(PAIRS).collect()
        } else {
            self.latest_before(calls)
        };
        if !before.is_empty() {
            reason += &format!("The order is not free: {}. ", in_time(&before));
        }
        if count > 1 {
            let ways = why.alternatives.iter().take(ALTERNATIVES);
            reason.extend(ways.map(|way| self.alternative(way, recorded)));
            if why.alternatives.len() > ALTERNATIVES || !why.complete && !why.alternatives.is_empty() {
                reason += "Other orders fail alike. ";
            }
        }
        reason += &self.others(&why.others, core, recorded);
        reason += &self.longest_prefix(core, recorded);
        if core.minimal {
            reason += "Without any one of them the others can be explained.";
        } else if count > calls.len() {
            reason += &format!(
                "Time ran out before the calls were reduced to those that matter; the last {} are shown.",
                calls.len()
            );
        } else {
            reason += "Some of them may not be needed for that: time ran out before that was decided.";
        }
        reason
    }

    /// Calls outside a small core that would explain it. A larger core contradicts itself, as a stale read contradicts the
    /// writes before it, so a later call that writes the old value back explains nothing.
    fn others(&self, others: &Missing, core: &Core, recorded: &[u32]) -> String {
        let name = |at: u32| self.named(at, core, recorded);
        match others {
            _ if !core.minimal || core.calls.len() > FEW => String::new(),
            Missing::TooLate(late) if late.len() <= LATE => {
                let told = late.iter().map(|&(call, before)| {
                    let line = self.recorded(recorded, call).invoke.position.line;
                    format!("{} (invoked at line {line}, after {} was answered)", name(call), name(before))
                });
                format!("This could be explained had {} come sooner. ", told.collect::<Vec<_>>().join(" and "))
            }
            Missing::NoHelp => "No other call of the log would help, whenever it had happened. ".to_owned(),
            Missing::Open | Missing::TooLate(_) => String::new(),
        }
    }

    /// Per call, the last answered one of those that must come before it.
    fn latest_before(&self, calls: &[Recorded]) -> Vec<(String, String)> {
        let latest = |(at, call): (usize, &Recorded)| {
            let earlier = calls[..at].iter().filter(|other| other.ret.rank < call.invoke.rank);
            let latest = earlier.max_by_key(|other| other.ret.rank)?;
            Some((self.asked_by(latest), self.asked_by(call)))
        };
        calls.iter().enumerate().filter_map(latest).take(PAIRS).collect()
    }

    /// One possible order of the calls, and the call that contradicts it.
    fn alternative(&self, way: &Alternative, recorded: &[u32]) -> String {
        let told = |calls: &[u32], between: &str| {
            let told = |&at: &u32| {
                let call = self.recorded(recorded, at);
                format!("{}'s {}", self.history.client_name(call.process), self.words(&call))
            };
            calls.iter().map(told).collect::<Vec<_>>().join(between)
        };
        let next = told(&way.next, " or ");
        match way.order[..] {
            [] => format!("First must come {next}: impossible. "),
            _ => format!("After {}, next must come {next}: impossible. ", told(&way.order, ", then ")),
        }
    }

    /// The length of the longest order that begins the log.
    fn longest_prefix(&self, core: &Core, recorded: &[u32]) -> String {
        let Some(&last) = core.longest_prefix.last() else { return String::new() };
        let (count, last) = (core.longest_prefix.len(), self.asked_by(&self.recorded(recorded, last)));
        let calls = if count == 1 { "1 call," } else { &format!("{count} calls, the last of them") };
        format!("The longest order found that begins the log has {calls} {last}. ")
    }

    /// The process and the request, with the line if another call of the core has the same words.
    fn named(&self, at: u32, core: &Core, recorded: &[u32]) -> String {
        let call = self.recorded(recorded, at);
        let name = self.asked_by(&call);
        let alike = |other: &u32| *other != at && self.asked_by(&self.recorded(recorded, *other)) == name;
        if core.calls.iter().any(alike) { format!("{name} (line {})", place(&call).line) } else { name }
    }

    /// The process and the request.
    fn asked_by(&self, call: &Recorded) -> String {
        format!("{}'s `{}`", self.history.client_name(call.process), self.asked(call))
    }

    /// The request alone: `cas [1 2]`.
    fn asked(&self, call: &Recorded) -> String {
        let function = self.history.name(call.function);
        let values = &self.history.calls().values;
        if call.argument.is_some() && !values.is_nil(call.argument) {
            format!("{function} {}", values.brief(call.argument, 24))
        } else {
            function.to_owned()
        }
    }
}

/// Answered-before pairs in words: one clause for all calls before one call.
fn in_time(pairs: &[(String, String)]) -> String {
    let mut clauses: Vec<(&str, Vec<&str>)> = Vec::new();
    for (first, second) in pairs {
        match clauses.iter_mut().find(|(of, _)| of == second) {
            Some((_, firsts)) => firsts.push(first),
            None => clauses.push((second, vec![first])),
        }
    }
    let clause = |(second, firsts): (&str, Vec<&str>)| match firsts[..] {
        [ref others @ .., last] if !others.is_empty() => {
            format!("{} and {last} were answered before {second} was invoked", others.join(", "))
        }
        _ => format!("{} was answered before {second} was invoked", firsts.concat()),
    };
    clauses.into_iter().map(clause).collect::<Vec<_>>().join("; ")
}

/// The line of the answer, or of the invocation without an answer.
fn place(call: &Recorded) -> crate::ingest::Position {
    if call.ret.position.line > 0 { call.ret.position } else { call.invoke.position }
}

#[cfg(test)]
mod tests;
