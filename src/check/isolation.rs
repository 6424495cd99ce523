#![doc = include_str!("../../docs/rules/isolation.md")]

use super::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::calls::{Call, Calls, Value};
use crate::history::{ClockId, History, ValueId};
use crate::ingest::call::Ending;
use crate::isolation::{
    Because, Choice, CommitOrder, Decision, Dependency, Flaw, Flawed, Level, Levels, Node, Outcome, Respects, Step,
    Transactions, Violation, anomaly,
};
use crate::model::{Log, Model};
use rustc_hash::{FxHashMap, FxHashSet};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "isolation",
    title: "transactions have the isolation level that is asserted",
    group: Group::Operations,
    promise: BrokenBy::Server,
    needs: "an operation log of transactions",
    causes: &[],
    page: include_str!("../../docs/rules/isolation.md"),
    checks: Checks::transactions(check),
};

/// Sets of transactions that a search for an order tries, and edges that a search for a short cycle visits: this many, and
/// [`BUDGET_EACH`] for each transaction.
const BUDGET: u64 = 100_000;

/// See [`BUDGET`]. An order that needs no backtracking takes two sets for each transaction.
const BUDGET_EACH: u64 = 10;

/// The most facts that a finding tells about transactions without an order.
const CHOICES: usize = 10;

/// The most steps of a cycle that a finding tells.
const STEPS: usize = 12;

/// The most transactions that a finding shows.
const SHOWN: usize = 16;

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let log = Log { calls: history.calls(), names: &history.names };
    let Ok(model @ (Model::ListAppend | Model::MultiRegister)) = Model::of(log) else { return };
    let read = Read::of(log, model);
    if read.history.is_empty() {
        return;
    }
    let levels = Levels::of(&read.history, read.budget());
    let strongest = Level { respects: Respects::Sessions, ..Level::STRICT };
    let strongest = if log.calls.is_timeless { strongest } else { Level::STRICT };
    let asserted = evidence.options.level.unwrap_or(strongest);
    let lacks = match (&log.calls.lost, read.left_out) {
        (Some(lost), _) => Some(format!("the log is not whole: {}", lost.why)),
        (None, 0) if read.has_beginnings => Some("a value was read that no transaction had written".to_owned()),
        (None, 0) => None,
        (None, count) => Some(format!("{count} calls are no transactions of {}", model.name())),
    };
    let told = Told { history, read: &read, levels: &levels, asserted, lacks: lacks.as_deref() };
    let mut shown: Vec<&Violation> = Vec::new();
    for (level, violation) in levels.weakest_violated() {
        if !shown.contains(&violation) {
            shown.push(violation);
            result.found(told.finding(level, violation));
        }
    }
    match levels.decision(asserted) {
        // Without an assertion, the rule `linearizability` decides a log with times.
        Some(Decision::Unknown(_)) if evidence.options.level.is_none() && !log.calls.is_timeless => return,
        None => result.open = Some(format!("{asserted} is not decided: the transactions have no times")),
        Some(Decision::Unknown(why)) => result.open = Some(format!("{asserted} is not decided: {why}")),
        _ => result.open = lacks,
    }
    for call in &read.calls {
        result.checked(log.calls.calls.get(*call as usize).process);
    }
}

/// A log as transactions.
struct Read {
    history: Transactions,
    /// By transaction, its call.
    calls: Vec<u32>,
    /// By key, its value.
    keys: Vec<ValueId>,
    /// Calls that are no transactions.
    left_out: usize,
    /// Whether a register showed 0 or `false` that no transaction wrote: it may have begun so.
    has_beginnings: bool,
}

/// Whether the transactions of a log have one order in real time that gives all answers, as the numbers of their calls; `None`
/// if it is no log of transactions, is not whole, or a budget was spent.
pub(super) fn strict_order(log: Log<'_>, model: Model) -> Option<Result<Vec<u32>, ()>> {
    if !matches!(model, Model::ListAppend | Model::MultiRegister)
        || log.calls.lost.is_some()
        || log.calls.falls_back > 0
    {
        return None;
    }
    let read = Read::of(log, model);
    if read.left_out > 0 || read.has_beginnings {
        return None;
    }
    match Levels::strict_order(&read.history, read.budget()) {
        CommitOrder::Order(order) => Some(Ok(order.into_iter().map(|node| read.calls[node as usize]).collect())),
        CommitOrder::None => Some(Err(())),
        CommitOrder::Spent => None,
    }
}

impl Read {
    fn budget(&self) -> u64 {
        BUDGET + BUDGET_EACH * u64::from(self.history.len())
    }

    fn of(log: Log<'_>, model: Model) -> Read {
        let written = written(log);
        let mut read = Read {
            history: Transactions::default(),
            calls: Vec::new(),
            keys: Vec::new(),
            left_out: 0,
            has_beginnings: false,
        };
        let mut numbers: FxHashMap<ValueId, u32> = FxHashMap::default();
        let mut sessions: FxHashMap<_, u32> = FxHashMap::default();
        for (at, call) in (0..).zip(log.calls.calls.iter()) {
            let mut number = |key: ValueId| {
                *numbers.entry(key).or_insert_with(|| {
                    read.keys.push(key);
                    read.keys.len() as u32 - 1
                })
            };
            let mut is_beginning = |key: ValueId, value: ValueId| {
                let is_natural = matches!(log.calls.values.get(value), Value::Int(0) | Value::Bool(false));
                let is_beginning = is_natural && !written.contains(&(key, value));
                // Histories of steps write 0 for no value.
                read.has_beginnings |= is_beginning && !log.calls.is_timeless;
                is_beginning
            };
            let Some(steps) = steps(log, &call, model, &mut number, &mut is_beginning) else {
                read.left_out += 1;
                continue;
            };
            let outcome = match call.ending {
                Ending::Ok => Outcome::Committed,
                Ending::Unknown => Outcome::Unknown,
                Ending::Fail | Ending::Refused => Outcome::Aborted,
            };
            let count = sessions.len() as u32;
            let session = *sessions.entry(call.process).or_insert(count);
            let end = if call.ending == Ending::Ok { call.ret.rank } else { i64::MAX };
            let times = (!log.calls.is_timeless).then_some((call.invoke.rank, end));
            read.history.push(session, times, outcome, steps);
            read.calls.push(at);
        }
        read
    }
}

/// The keys and values that transactions write to registers.
fn written(log: Log<'_>) -> FxHashSet<(ValueId, ValueId)> {
    let steps = log.calls.calls.iter().filter_map(|call| log.recording(call).steps(call.argument)).flatten();
    steps.filter(|(word, ..)| matches!(*word, "w" | "write")).map(|(_, key, value)| (key, value)).collect()
}

/// The steps of a call, with their answers if it was answered.
fn steps(
    log: Log<'_>,
    call: &Call,
    model: Model,
    number: &mut impl FnMut(ValueId) -> u32,
    is_beginning: &mut impl FnMut(ValueId, ValueId) -> bool,
) -> Option<Vec<Step>> {
    let recording = log.recording(*call);
    let text = match call.ending {
        Ending::Ok if call.answer.is_some() => call.answer,
        _ => call.argument,
    };
    let is_list = model == Model::ListAppend;
    let step = |(word, key, value): (&str, ValueId, ValueId)| {
        let (object, key) = (key, number(key));
        let value = recording.some(value);
        Some(match (word, value) {
            ("r" | "read", None) if is_list => Step::List(key, Vec::new()),
            ("r" | "read", Some(value)) if is_list => {
                let elements = log.calls.values.sequence(value)?;
                Step::List(key, elements.iter().map(|element| element.0).collect())
            }
            ("append", Some(value)) if is_list => Step::Append(key, value.0),
            ("r" | "read", value) => {
                Step::Read(key, value.filter(|value| !is_beginning(object, *value)).map(|value| value.0))
            }
            ("w" | "write", Some(value)) => Step::Write(key, value.0),
            _ => return None,
        })
    };
    recording.steps(text)?.into_iter().map(step).collect()
}

/// A finding in words.
struct Told<'t> {
    history: &'t History,
    read: &'t Read,
    levels: &'t Levels,
    asserted: Level,
    lacks: Option<&'t str>,
}

impl Told<'_> {
    fn calls(&self) -> &Calls {
        self.history.calls()
    }

    fn call(&self, node: Node) -> Option<Call> {
        let at = self.read.calls.get(node as usize)?;
        Some(self.calls().calls.get(*at as usize))
    }

    /// A transaction by the line of its answer.
    fn name(&self, node: Node) -> String {
        match self.call(node) {
            Some(call) => format!("T{}", place(&call).line),
            None => "the begin".to_owned(),
        }
    }

    fn key(&self, key: u32) -> String {
        self.read.keys.get(key as usize).map_or_else(String::new, |key| self.calls().values.brief(*key, 40))
    }

    fn fact(&self, node: Node) -> Option<Fact> {
        let call = self.call(node)?;
        let words = self.calls().words(&call, self.history.name(call.function));
        Some(Fact {
            position: place(&call),
            says: format!("{}: {words}", self.name(node)),
            revision: Default::default(),
            key: Default::default(),
            uid: Default::default(),
            time: if call.ret.time.is_known() { call.ret.time } else { call.invoke.time },
            clock: ClockId(0),
            incarnation: call.process,
            server: Default::default(),
            audit_id: Default::default(),
            operation: Default::default(),
        })
    }

    fn finding(&self, level: Level, violation: &Violation) -> Draft {
        let (what, because, nodes) = match violation {
            Violation::Flaw(flawed) => {
                (flawed.flaw.name().to_owned(), self.flaw(flawed), vec![flawed.other, flawed.reader])
            }
            Violation::Cycle(cycle) => {
                let steps: Vec<String> = cycle.iter().take(STEPS).map(|step| self.step(step)).collect();
                let more = match cycle.len() {
                    count if count > STEPS => format!("; and {} more steps", count - STEPS),
                    _ => String::new(),
                };
                let text = format!("{}{more}. That is a cycle: no order has all of it.", steps.join("; "));
                let readers = cycle.iter().filter_map(|step| match step.because {
                    Because::Seen { reader, .. } => Some(reader),
                    _ => None,
                });
                (anomaly(level, cycle), text, cycle.iter().map(|step| step.from).chain(readers).collect())
            }
            Violation::NoOrder(core) => {
                let read = |(reader, writer, key): &(Node, Node, u32)| {
                    format!("{} read what {} wrote to {}", self.name(*reader), self.name(*writer), self.key(*key))
                };
                let reads = core.reads.iter().map(read);
                let all: Vec<String> = reads.chain(core.choices.iter().map(|choice| self.choice(choice))).collect();
                let more = match all.len() {
                    count if count > CHOICES => format!("; and {} more facts like these", count - CHOICES),
                    _ => String::new(),
                };
                let shown = all[..all.len().min(CHOICES)].join("; ");
                let text = format!("{shown}{more}. No order of their commits has all of this.");
                ("no order of commits".to_owned(), text, core.transactions.clone())
            }
        };
        let mut nodes: Vec<Node> = nodes.into_iter().filter(|node| self.call(*node).is_some()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let last = nodes.iter().filter_map(|node| self.call(*node)).max_by_key(|call| place(call).line);
        let kind = match self.lacks {
            _ if !self.asserted.implies(level) => Kind::Hazard,
            Some(_) => Kind::Suspect,
            None => Kind::Violation,
        };
        let strongest = self.levels.strongest();
        let holds = match strongest.as_slice() {
            [] => "The log has none of the levels.".to_owned(),
            names => format!("The strongest levels that the log has: {}.", names.join(", ")),
        };
        let lacks =
            self.lacks.map_or_else(String::new, |lacks| format!("{}{}. ", lacks[..1].to_uppercase(), &lacks[1..]));
        Draft {
            kind,
            broken_by: BrokenBy::Server,
            incarnation: last.map_or_else(Default::default, |call| call.process),
            key: Default::default(),
            cause: level.to_string(),
            summary: format!("the level {level} does not hold: {what}"),
            facts: nodes.iter().take(SHOWN).filter_map(|node| self.fact(*node)).collect(),
            reason: format!("{lacks}{because} {holds}"),
            refuted_by: "a transaction that is not in this log, and wrote one of these values".to_owned(),
            consequence: format!("a client that relies on the level {level} acts on a state that never was"),
        }
    }

    fn flaw(&self, flawed: &Flawed) -> String {
        let (reader, other, key) = (self.name(flawed.reader), self.name(flawed.other), self.key(flawed.key));
        match flawed.flaw {
            Flaw::Aborted => format!("{reader} read what {other} wrote to {key}, and {other} was aborted."),
            Flaw::Intermediate => format!("{reader} read a value of {key} that {other} itself replaced later."),
            Flaw::Unwritten => format!("{reader} read a value of {key} that no transaction wrote."),
            Flaw::IncompatibleOrder => {
                format!("{reader} and {other} read two orders of {key}, and neither is the begin of the other.")
            }
            Flaw::Duplicate => format!("{reader} read an element of {key} twice."),
            Flaw::Reordered => {
                format!("{reader} read {key}, and it shows what {other} appended in another order, or with a gap.")
            }
            Flaw::Future => format!("{reader} read a value of {key} that it wrote itself later."),
            Flaw::Internal => format!("{reader} read {key}, and its answer lacks what it wrote itself before."),
        }
    }

    fn choice(&self, choice: &Choice) -> String {
        let (reader, other, key) = (self.name(choice.reader), self.name(choice.other), self.key(choice.key));
        match self.call(choice.writer) {
            Some(_) => {
                let writer = self.name(choice.writer);
                format!(
                    "{reader} read {key} as {writer} wrote it, so {other}, which wrote it too, comes before {writer} or after \
                     {reader}"
                )
            }
            None => {
                format!("{reader} read {key} as it was at the begin, so {other}, which wrote it, comes after {reader}")
            }
        }
    }

    fn step(&self, step: &Dependency) -> String {
        let (from, to) = (self.name(step.from), self.name(step.to));
        match step.because {
            Because::Read(key) => format!("{to} read what {from} wrote to {}", self.key(key)),
            Because::Order(key) => {
                format!("a list of {} shows what {to} appended behind what {from} appended", self.key(key))
            }
            Because::Seen { reader, key, is_read } => {
                let (reader, key) = (self.name(reader), self.key(key));
                let saw = if is_read { "saw" } else { "comes after" };
                match self.call(step.to) {
                    Some(_) => format!(
                        "{reader} {saw} {from}, which wrote {key}, and read {key} as {to} wrote it, so {to} wrote it later"
                    ),
                    None => format!("{reader} {saw} {from}, which wrote {key}, and read {key} as it was at the begin"),
                }
            }
            Because::Unseen(key) => {
                format!("no list of {} shows what {to} appended, so that follows what {from} appended", self.key(key))
            }
            Because::First(key) => {
                let key = self.key(key);
                format!("{from} read the whole list {key} and appended to it, so what {to} appended follows")
            }
            Because::Begin => "the begin comes before every write".to_owned(),
            Because::Replaced(key) => format!("{from} read a version of {} that {to} replaced", self.key(key)),
            Because::Updated(key) => {
                format!("{from} and {to} read one version of {}, and each replaced it at once", self.key(key))
            }
            Because::Session => format!("{from} and then {to} are of one session"),
            Because::Time => format!("{from} ended before {to} began"),
        }
    }
}

/// The position of the answer, or of the call.
fn place(call: &Call) -> crate::ingest::Position {
    if call.ret.position.line > 0 { call.ret.position } else { call.invoke.position }
}
