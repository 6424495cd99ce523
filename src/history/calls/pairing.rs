//! Pairs events into calls: each return with its invocation. Ranks the events so that lines and times both agree with the order.
//!
//! A log that is ambiguous is reported, and what it may hide is marked as lost, since a call without its return has an unknown
//! outcome.

use super::super::ids::{IncarnationId, Symbol, ValueId};
use super::super::interner::Interner;
use super::transactions::Transactions;
use super::unnamed::{Unnamed, Unpaired};
use super::values::{Value, Values};
use super::{Call, Calls, Function, Lost, Moment, tuples};
use crate::ingest::call::{Ending, Event, Kind, Line};
use crate::ingest::limits::{KEPT_PROBLEMS, KEPT_PROBLEMS_PER_FILE};
use crate::ingest::{self, FileId, Position, Problem, Record, Refused, Time};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The events that one worker collects from a block of an operation log.
#[derive(Debug, Default)]
pub struct Batch {
    values: Values,
    rows: Vec<Row>,
    model: Option<String>,
    clock: Option<String>,
    others: u64,
}

/// One event. Process and function are texts of the values; an event may have no process.
#[derive(Clone, Copy, Debug)]
struct Row {
    line: u32,
    offset: u64,
    process: Symbol,
    kind: Kind,
    function: Symbol,
    key: ValueId,
    value: ValueId,
    result: ValueId,
    at: Time,
    until: Time,
}

impl ingest::Batch for Batch {
    fn record(&mut self, line: u32, offset: u64, record: Record<'_>) -> Result<(), Refused> {
        let Record::Call(read) = record else { return Ok(()) };
        match *read {
            Line::Header(header) => {
                self.model = self.model.take().or(header.model.map(Into::into));
                self.clock = self.clock.take().or(header.clock.map(Into::into));
            }
            Line::Other => self.others += 1,
            Line::Event(event) => {
                let Event { process, kind, function, key, value, result, at, until } = event;
                let mut take = |datum| Option::map_or(datum, ValueId::NONE, |datum| self.values.take(&datum));
                let (key, value, result) = (take(key), take(value), take(result));
                let process = process.map_or(Symbol::NONE, |process| self.values.texts.intern(&process));
                let function = self.values.texts.intern(&function);
                self.rows.push(Row { line, offset, process, kind, function, key, value, result, at, until });
            }
        }
        Ok(())
    }
}

/// Pairs the events of one log.
#[derive(Debug)]
pub struct Pairing {
    file: FileId,
    path: String,
    /// Names of functions in the log, each with the name that counts instead.
    functions: Arc<[(String, String)]>,
    calls: Calls,
    /// The name of the clock, if the log has one.
    pub clock: Option<String>,
    /// Names of processes in order of appearance. The index of a name is the id of its calls' incarnation.
    pub processes: Vec<Symbol>,
    by_process: FxHashMap<Symbol, Process>,
    /// Time of each event, in the order of the log; empty until an event has a time.
    times: Vec<Time>,
    /// The line of each event.
    lines: Vec<u32>,
    style: Option<Style>,
    /// The processes of events without one.
    unnamed: Option<Unnamed>,
    /// Transactions of which the log has the steps, and the name of their function.
    transactions: Transactions,
    transaction: Symbol,
    /// Problems in the log, up to a limit.
    pub problems: Vec<Problem>,
    /// Number of all problems.
    problem_count: u64,
    /// The first reason why nothing in the log is certain.
    confused: Option<String>,
}

/// Functions whose return repeats the argument, if it has a value.
const REPEATED: [&str; 7] = ["write", "cas", "put", "append", "enqueue", "add", "remove"];

/// The kind of records in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Events,
    Whole,
}

#[derive(Debug)]
struct Process {
    id: IncarnationId,
    open: Option<u32>,
    /// Whether it began a second operation while one was open, so that returns cannot be assigned.
    tangled: bool,
}

impl Pairing {
    /// For the log at this path, which is the only file of its history.
    pub fn new(path: &str, functions: Arc<[(String, String)]>) -> Pairing {
        Pairing {
            file: FileId(0),
            path: path.to_owned(),
            functions,
            calls: Calls::default(),
            clock: None,
            processes: Vec::new(),
            by_process: FxHashMap::default(),
            times: Vec::new(),
            lines: Vec::new(),
            style: None,
            unnamed: None,
            transactions: Transactions::default(),
            transaction: Symbol::NONE,
            problems: Vec::new(),
            problem_count: 0,
            confused: None,
        }
    }

    /// Adds one block, whose first line has the number `first_line`.
    pub fn merge(&mut self, names: &mut Interner, first_line: u32, mut batch: Batch) {
        // Most logs are one block, whose values become those of the log without a copy.
        let first = self.calls.values.is_empty() && self.calls.values.texts.is_empty();
        let moved = match first {
            true => Vec::new(),
            false => self.calls.values.absorb(&batch.values),
        };
        if first {
            std::mem::swap(&mut self.calls.values, &mut batch.values);
        }
        let value = |id: ValueId| if first || !id.is_some() { id } else { moved[id.index()] };
        self.calls.model = self.calls.model.take().or_else(|| batch.model.clone());
        self.clock = self.clock.take().or_else(|| batch.clock.clone());
        self.calls.others += batch.others;
        // A log has few names and many events.
        let texts = if first { self.calls.values.texts.len() } else { batch.values.texts.len() };
        let mut known: Vec<Option<Symbol>> = vec![None; texts];
        let mut renamed: FxHashMap<Symbol, Symbol> = FxHashMap::default();
        for (from, to) in self.functions.iter() {
            renamed.insert(names.intern(from), names.intern(to));
        }
        for row in &batch.rows {
            let texts = if first { &self.calls.values.texts } else { &batch.values.texts };
            let mut name =
                |symbol: Symbol| *known[symbol.index()].get_or_insert_with(|| names.intern(texts.get(symbol)));
            let process = if row.process.is_some() { name(row.process) } else { Symbol::NONE };
            let function = name(row.function);
            let function = renamed.get(&function).copied().unwrap_or(function);
            let position = Position { file: self.file, line: first_line + row.line, offset: row.offset };
            let row = Row { key: value(row.key), value: value(row.value), result: value(row.result), ..*row };
            match process.is_some() {
                _ if matches!(row.kind, Kind::Step | Kind::Boundary { .. }) => {
                    self.transaction = function;
                    match row.kind {
                        Kind::Boundary { of_session } => self.transactions.boundary(of_session),
                        _ if process.is_some() => self.transactions.named(process, row.key, position, row.value),
                        _ => self.transactions.step(names, position, row.value),
                    }
                }
                false => self.unnamed(names, function, position, &row),
                true if self.unnamed.is_some() => {
                    self.problem(position, "no process, as other operations have none", names.get(process));
                    self.confuse("it has operations with a process and without");
                }
                true => self.event(names, process, function, position, &row),
            }
        }
    }

    /// An event without a process.
    fn unnamed(&mut self, names: &mut Interner, function: Symbol, position: Position, row: &Row) {
        if self.unnamed.is_none() && !self.processes.is_empty() {
            self.problem(position, "a process, as other operations have", "none");
            self.confuse("it has operations with a process and without");
            return;
        }
        let unnamed = self.unnamed.get_or_insert_default();
        let question = (function, row.key, row.value);
        let now = Moment { rank: self.lines.len() as i64, time: row.at, position };
        let (process, since) = match row.kind {
            Kind::Invoke | Kind::Whole(_) | Kind::Step | Kind::Boundary { .. } => unnamed.invoke(question, now),
            Kind::Return(ending) => {
                let name = names.get(function);
                let repeats = name == "txn" || REPEATED.contains(&name);
                let lives = ending != Ending::Unknown;
                match unnamed.give_back(&self.calls.values, question, repeats, lives) {
                    Ok(process) => (process, now),
                    // A nemesis, such as one that starts and stops, makes no calls.
                    Err(Unpaired::Missing) if !lives && !unnamed.has_invoked(function) => {
                        self.calls.others += 1;
                        return;
                    }
                    Err(Unpaired::Missing) => {
                        let found = format!("a return of {name}, which has no open invocation");
                        self.problem(position, "an invocation before its return", &found);
                        self.confuse("it has a return whose invocation is missing");
                        return;
                    }
                    Err(Unpaired::Ambiguous) => {
                        let found = format!("a return of {name} without a process, which several invocations may have");
                        self.problem(position, "a return of one open invocation", &found);
                        self.confuse("it has no processes, and a return that may be that of several invocations");
                        return;
                    }
                }
            }
        };
        let process = names.intern(&process.to_string());
        self.event(names, process, function, position, row);
        if let Some(open) = self.by_process.get(&process).and_then(|process| process.open) {
            self.calls
                .calls
                .change(open as usize, |open| (open.invoke.rank, open.invoke.time) = (since.rank, since.time));
        }
    }

    fn event(&mut self, names: &Interner, process: Symbol, function: Symbol, position: Position, row: &Row) {
        // A process that is named by a keyword and only has `info` records, such as a second nemesis, makes no calls.
        if row.kind == Kind::Return(Ending::Unknown)
            && !self.by_process.contains_key(&process)
            && names.get(process).starts_with(':')
        {
            self.calls.others += 1;
            return;
        }
        let style = if matches!(row.kind, Kind::Whole(_)) { Style::Whole } else { Style::Events };
        if *self.style.get_or_insert(style) != style {
            self.problem(position, "events or whole operations, as before", "both in one log");
            self.confuse("it mixes events and whole operations");
            return;
        }
        let event = self.lines.len() as i64;
        if row.at.is_known() || !self.times.is_empty() {
            self.times.resize(self.lines.len(), Time::UNKNOWN);
            self.times.push(row.at);
        }
        self.lines.push(position.line);
        let moment = Moment { rank: event, time: row.at, position };
        let fresh = self.by_process.len() as u32;
        let state = self.by_process.entry(process).or_insert_with(|| {
            self.processes.push(process);
            Process { id: IncarnationId(fresh), open: None, tangled: false }
        });
        let call = Call {
            process: state.id,
            function,
            key: row.key,
            argument: row.value,
            answer: ValueId::NONE,
            ending: Ending::Unknown,
            invoke: moment,
            ret: Moment { rank: i64::MAX, time: Time::UNKNOWN, position: Position::default() },
        };
        let next = self.calls.calls.len() as u32;
        match row.kind {
            Kind::Invoke => {
                let before = state.open.replace(next);
                self.calls.calls.push(call);
                if let Some(before) = before {
                    state.tangled = true;
                    let line = self.calls.calls.get(before as usize).invoke.position.line;
                    let found = format!(
                        "an invocation of process {} while the operation of line {line} is open",
                        names.get(process)
                    );
                    self.problem(position, "the return of an operation before the next one", &found);
                    self.calls.lose(i64::MAX, || "a process did two things at once".to_owned());
                }
            }
            Kind::Return(ending) => match state.open.take() {
                None if state.tangled => state.tangled = false,
                None => {
                    let found = format!("a return of process {}, which has no open operation", names.get(process));
                    self.problem(position, "an invocation before its return", &found);
                    self.confuse("it has a return whose invocation is missing");
                }
                // The return cannot be assigned; the open operations stay open.
                Some(_) if state.tangled => {}
                Some(open) => {
                    let asked = self.calls.calls.get(open as usize);
                    if asked.function != function {
                        let line = asked.invoke.position.line;
                        let found = format!("the return of {}", names.get(function));
                        let expected = format!("the return of {} (line {line})", names.get(asked.function));
                        self.problem(position, &expected, &found);
                        self.confuse("it has a return of another function than the open operation");
                        return;
                    }
                    if asked.key.is_some() && row.key.is_some() && asked.key != row.key {
                        let line = asked.invoke.position.line;
                        let key = |id| self.calls.values.brief(id, 60);
                        let expected = format!("a return on the key {} (line {line})", key(asked.key));
                        let found = format!("one on {}", key(row.key));
                        self.problem(position, &expected, &found);
                        self.confuse("it has a return on another key than its invocation");
                    }
                    if ending == Ending::Ok && row.value != asked.argument && !row.result.is_some() {
                        self.compare(names, &asked, row.value, position);
                    }
                    self.calls.calls.change(open as usize, |open| {
                        open.ending = ending;
                        open.answer = if row.result.is_some() { row.result } else { row.value };
                        if !open.key.is_some() {
                            open.key = row.key;
                        }
                        if ending != Ending::Unknown {
                            open.ret = moment;
                        }
                    });
                }
            },
            Kind::Whole(ending) => self.whole(row, ending, call),
            Kind::Step | Kind::Boundary { .. } => {}
        }
    }

    /// Compares the value of a return with the argument. In a Jepsen log the value states what happened, in other logs it is an
    /// answer. If a write returns another value than its argument, the meaning is ambiguous.
    fn compare(&mut self, names: &Interner, asked: &Call, value: ValueId, position: Position) {
        let values = &self.calls.values;
        let nothing = |id: ValueId| !id.is_some() || values.is_nil(id);
        let says_no_more = |id: ValueId| matches!(values.get(id), Value::Bool(_) | Value::Nil);
        // In a log with keys the answer is the second part of a tuple.
        let key = |id| tuples::tuple(values, id).map(|(key, value, _)| (key, value));
        if let (Some((of, _)), Some((key, answer))) = (key(asked.argument), key(value))
            && of == key
            && says_no_more(answer)
        {
            return;
        }
        if nothing(value)
            || nothing(asked.argument)
            || says_no_more(value)
            || !REPEATED.contains(&names.get(asked.function))
        {
            return;
        }
        let shown = |id| values.brief(id, 60);
        let expected = format!("the value of line {}, {}", asked.invoke.position.line, shown(asked.argument));
        let found = shown(value);
        self.problem(position, &expected, &found);
        self.confuse("it has a return whose value is not that of its invocation");
    }

    /// Reports calls without a key if others have one.
    fn keys(&mut self) {
        let calls = &self.calls.calls;
        if !calls.iter().any(|call| call.key.is_some()) {
            return;
        }
        let without: Vec<Position> = calls
            .iter()
            .filter(|call| !call.key.is_some() && call.ending != Ending::Fail)
            .map(|call| call.invoke.position)
            .take(KEPT_PROBLEMS_PER_FILE)
            .collect();
        for &position in &without {
            self.problem(position, "a key, as other operations have", "none");
        }
        if !without.is_empty() {
            self.confuse("it has operations with keys and without");
        }
    }

    fn whole(&mut self, row: &Row, ending: Ending, mut call: Call) {
        let position = call.invoke.position;
        if !row.at.is_known() {
            self.problem(position, "the time of the invocation", "none");
            self.confuse("it has an operation without times");
            return;
        }
        if row.until.is_known() && row.until < row.at {
            self.problem(position, "a return at or after the invocation", &format!("{} after {}", row.at, row.until));
            self.confuse("it has an operation that returns before it was invoked");
            return;
        }
        call.invoke.rank = row.at.0;
        call.ending = ending;
        call.answer = if row.result.is_some() { row.result } else { row.value };
        if ending != Ending::Unknown && row.until.is_known() {
            call.ret = Moment { rank: row.until.0, time: row.until, position };
        }
        self.calls.calls.push(call);
    }

    fn problem(&mut self, position: Position, expected: &str, found: &str) {
        self.problem_count += 1;
        if self.problems.len() == KEPT_PROBLEMS {
            return;
        }
        self.problems.push(Problem {
            file: Some(self.file),
            path: self.path.clone(),
            line: position.line,
            expected: expected.to_owned(),
            found: found.to_owned(),
        });
    }

    fn confuse(&mut self, why: &str) {
        self.confused.get_or_insert_with(|| why.to_owned());
    }

    /// The calls of the log. `unread` is the first line that could not be read, 0 for the end of the file.
    pub fn finish(mut self, names: &Interner, unread: Option<u32>) -> Finished {
        if self.style == Some(Style::Whole) {
            self.overlaps(names);
        }
        self.close_transactions();
        self.keys();
        let end = self.lines.len() as i64;
        let mut from = unread.map(|line| match line {
            0 => end,
            line => self.lines.partition_point(|&other| other < line) as i64,
        });
        match self.style {
            Some(Style::Whole) => from = from.map(|_| i64::MIN),
            _ => self.order(&mut from),
        }
        if self.unnamed.is_some() {
            // Some invocations got an earlier place.
            self.calls.calls.sort();
        }
        if let Some(from) = from {
            self.calls.lose(from, || "a part of it could not be read".to_owned());
        }
        if let Some(why) = self.confused.take() {
            self.calls.lost = Some(Lost { from: i64::MIN, why });
        }
        tuples::separate(&mut self.calls.calls, &mut self.calls.values);
        self.count();
        let Pairing { calls, clock, processes, problems, problem_count, .. } = self;
        Finished { calls, clock, processes, problems, problem_count }
    }

    /// Makes a call of each transaction of which the log has the steps. All overlap, since they have no times.
    fn close_transactions(&mut self) {
        let transactions = std::mem::take(&mut self.transactions);
        if transactions.is_empty() {
            return;
        }
        self.calls.is_timeless = true;
        let all = transactions.into_values(&mut self.calls.values);
        let count = all.len() as i64;
        for (number, (transaction, value)) in (0..).zip(all) {
            let fresh = self.by_process.len() as u32;
            let state = self.by_process.entry(transaction.session).or_insert_with(|| {
                self.processes.push(transaction.session);
                Process { id: IncarnationId(fresh), open: None, tangled: false }
            });
            let moment = |rank: i64, position: Position| Moment { rank, time: Time::UNKNOWN, position };
            self.calls.calls.push(Call {
                process: state.id,
                function: self.transaction,
                key: ValueId::NONE,
                argument: value,
                answer: value,
                ending: Ending::Ok,
                invoke: moment(number, transaction.steps.0),
                ret: moment(count + number, transaction.steps.1),
            });
        }
    }

    /// Reports a process with two operations at once.
    fn overlaps(&mut self, names: &Interner) {
        let mut order: Vec<u32> = (0..self.calls.calls.len() as u32).collect();
        order.sort_by_key(|&at| {
            let call = self.calls.calls.get(at as usize);
            // The process did not wait for an operation without return.
            let end = if call.ret.rank < i64::MAX { call.ret.rank } else { call.invoke.rank };
            (call.process, call.invoke.rank, end)
        });
        for pair in order.windows(2) {
            let (first, second) = (self.calls.calls.get(pair[0] as usize), self.calls.calls.get(pair[1] as usize));
            if first.process == second.process && first.ret.rank < i64::MAX && second.invoke.rank < first.ret.rank {
                let name = names.get(self.processes[first.process.index()]);
                let found = format!(
                    "process {name} invoked at {} while its operation of line {} was open until {}",
                    second.invoke.time, first.invoke.position.line, first.ret.time
                );
                self.problem(second.invoke.position, "the return of an operation before the next one", &found);
                self.confuse("it has a process that does two things at once");
            }
        }
        self.calls.calls.sort();
    }

    /// Ranks the events. The rank is the place in the log, unless times fall back. Then one event precedes another only if both
    /// lines and times say so: the rank of an invocation becomes the earliest time at or after its line, that of a return the
    /// latest time at or before its line. An event without a time is bounded by the events around it.
    fn order(&mut self, from: &mut Option<i64>) {
        let mut latest = i64::MIN;
        let mut falls_back = 0;
        for time in self.times.iter().filter(|time| time.is_known()) {
            falls_back = falls_back.max(latest.saturating_sub(time.0));
            latest = latest.max(time.0);
        }
        self.calls.falls_back = falls_back;
        if falls_back == 0 {
            return;
        }
        let mut until: Vec<i64> = Vec::with_capacity(self.times.len());
        for time in &self.times {
            let before = until.last().copied().unwrap_or(i64::MIN);
            until.push(if time.is_known() { before.max(time.0) } else { before });
        }
        let mut since = vec![i64::MAX; self.times.len() + 1];
        for (at, time) in self.times.iter().enumerate().rev() {
            since[at] = if time.is_known() { since[at + 1].min(time.0) } else { since[at + 1] };
        }
        let last = latest;
        let earliest = |at: usize| since[at].min(until.get(at).copied().unwrap_or(last));
        let latest = |at: usize| until[at].max(if since[at] == i64::MAX { i64::MIN } else { since[at] });
        for at in 0..self.calls.calls.len() {
            self.calls.calls.change(at, |call| {
                call.invoke.rank = earliest(call.invoke.rank as usize);
                if call.ret.rank < i64::MAX {
                    call.ret.rank = latest(call.ret.rank as usize);
                }
            });
        }
        *from = from.map(|at| earliest(at as usize));
        self.calls.calls.sort();
    }

    fn count(&mut self) {
        let mut places: FxHashMap<Symbol, usize> = FxHashMap::default();
        let Calls { calls, functions, values, .. } = &mut self.calls;
        for call in calls.iter() {
            let at = *places.entry(call.function).or_insert_with(|| {
                functions.push(Function { name: call.function, ..Function::default() });
                functions.len() - 1
            });
            let function = &mut functions[at];
            match call.ending {
                Ending::Ok => function.ok += 1,
                Ending::Refused => function.refused += 1,
                Ending::Fail => function.failed += 1,
                Ending::Unknown => function.unknown += 1,
            }
            function.nothing += u64::from(call.ending == Ending::Ok && values.is_nil(call.answer));
        }
    }
}

/// The result for one log.
#[derive(Debug)]
pub struct Finished {
    /// The calls.
    pub calls: Calls,
    /// The name of the clock, if the log has one.
    pub clock: Option<String>,
    /// Names of processes by id.
    pub processes: Vec<Symbol>,
    /// The first problems.
    pub problems: Vec<Problem>,
    /// Number of all problems.
    pub problem_count: u64,
}
