//! Storage of operations: rows of 88 bytes, since a history has more operations than anything else. Checks read 64 of them, one
//! cache line. The other 24 hold the position and the audit id, which only reports need.
//!
//! An operation that does not fit (a revision above 64 bits, a decision, a page key, hours between request and answer) is kept
//! whole in a map beside the rows. Invariant: [`Operations::get`] returns exactly what was pushed.

use super::ids::*;
use super::operation::{AuditId, Marks, Operation, Subresource};
use super::request::{Asked, Verb};
use super::revision::Revision;
use super::rows::Rows;
use crate::ingest::{FileId, Position, Time};
use rustc_hash::FxHashMap;

/// Operations by number. Accessors return values, so the layout stays private.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    rows: Rows<Row>,
    records: Vec<Record>,
    /// One byte per row, so that a filter by verb does not read the rows: the verb's number, plus [`SHADOW`] for a shadow.
    sorts: Vec<u8>,
    /// Distinct sources of records: file, server, clock.
    sources: Vec<Source>,
    known: FxHashMap<Source, u32>,
    /// Operations that do not fit into a row.
    whole: FxHashMap<u32, Operation>,
}

type Source = (FileId, ServerId, ClockId);

/// An operation without its rare fields.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Row {
    invoke: Time,
    asked_revision: u64,
    answered: u64,
    marks: Marks,
    /// Index of the source, and the status in the low [`STATUS`] bits.
    source: u32,
    duration: PackedDuration,
    incarnation: IncarnationId,
    scope: ScopeId,
    key: KeyId,
    request_uid: Symbol,
    answer_uid: Symbol,
    attributes: AttributesId,
    verb: Verb,
    asked: Asked,
    subresource: Subresource,
    form: u8,
}

/// The part of an operation that only reports need.
#[derive(Clone, Copy, Debug)]
struct Record {
    audit_id: [u64; 2],
    /// Offset, and the line in the low [`LINE`] bits.
    place: u64,
}

const _: () = assert!(size_of::<Row>() == 64 && size_of::<Record>() == 24);

/// Bits of the line in [`Record::place`]; the offset is above them.
const LINE: u32 = 28;
/// Bits of the status in [`Row::source`]; the index of the source is above them.
const STATUS: u32 = 10;
/// Bits of [`Row::form`]. UUID and TEXT: kind of audit id. ITEMS: `answer_uid` and `attributes` hold start and length of the
/// items. WHOLE: the operation is in `Operations::whole`.
const UUID: u8 = 1;
const TEXT: u8 = 2;
const ITEMS: u8 = 4;
const WHOLE: u8 = 8;

/// In a sort: a server's record of a request that the client recorded too.
const SHADOW: u8 = 1 << 4;

fn sort(o: &Operation) -> u8 {
    o.verb as u8 | if o.marks.has(Marks::SHADOW) { SHADOW } else { 0 }
}

/// Duration of an operation: nanoseconds below 2^30, above them microseconds; the highest value means no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PackedDuration(u32);

impl PackedDuration {
    const OPEN: PackedDuration = PackedDuration(u32::MAX);
    const NANOSECONDS: u32 = 1 << 30;

    /// `None` if the duration does not fit.
    fn between(invoke: Time, ret: Time) -> Option<PackedDuration> {
        if !ret.is_known() {
            return Some(PackedDuration::OPEN);
        }
        let duration = u64::try_from(ret.0.checked_sub(invoke.0)?).ok()?;
        if duration < u64::from(PackedDuration::NANOSECONDS) {
            return Some(PackedDuration(duration as u32));
        }
        let long = duration / 1_000 + u64::from(PackedDuration::NANOSECONDS);
        (duration % 1_000 == 0 && long < u64::from(u32::MAX)).then_some(PackedDuration(long as u32))
    }

    fn after(self, invoke: Time) -> Time {
        match self {
            PackedDuration::OPEN => Time::UNKNOWN,
            PackedDuration(short) if short < PackedDuration::NANOSECONDS => {
                Time(invoke.0.saturating_add(i64::from(short)))
            }
            PackedDuration(long) => {
                Time(invoke.0.saturating_add(i64::from(long - PackedDuration::NANOSECONDS) * 1_000))
            }
        }
    }
}

impl Record {
    fn position(&self, file: FileId) -> Position {
        Position { file, line: self.place as u32 & ((1 << LINE) - 1), offset: self.place >> LINE }
    }
}

impl Operations {
    /// Number of operations.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 0
    }

    /// The operation with a number below [`Operations::len`].
    #[inline(always)]
    pub fn get(&self, index: usize) -> Operation {
        let (row, record) = (&self.rows[index], &self.records[index]);
        if row.form & WHOLE != 0 {
            return *self.whole(index);
        }
        let (file, server, clock) = self.sources[(row.source >> STATUS) as usize];
        let (answer_uid, attributes, (items_start, items_len)) = match row.form & ITEMS {
            0 => (row.answer_uid, row.attributes, (0, 0)),
            _ => (Symbol::NONE, AttributesId::NONE, (row.answer_uid.0, row.attributes.0)),
        };
        Operation {
            position: record.position(file),
            audit_id: match row.form & (UUID | TEXT) {
                UUID => AuditId::Uuid(record.audit_id[0], record.audit_id[1]),
                TEXT => AuditId::Text(Symbol(record.audit_id[0] as u32)),
                _ => AuditId::None,
            },
            invoke: row.invoke,
            ret: row.duration.after(row.invoke),
            asked_revision: Revision::from(row.asked_revision),
            answered: Revision::from(row.answered),
            clock,
            server,
            incarnation: row.incarnation,
            scope: row.scope,
            key: row.key,
            request_uid: row.request_uid,
            answer_uid,
            attributes,
            items_start,
            items_len,
            decision: Symbol::NONE,
            page_after: Symbol::NONE,
            page_end: Symbol::NONE,
            marks: row.marks,
            status: (row.source & ((1 << STATUS) - 1)) as u16,
            verb: row.verb,
            asked: row.asked,
            subresource: row.subresource,
        }
    }

    #[cold]
    fn whole(&self, index: usize) -> &Operation {
        &self.whole[&(index as u32)]
    }

    /// All operations, by number.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Operation> + ExactSizeIterator + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// All operations with their ids.
    pub fn by_id(&self) -> impl DoubleEndedIterator<Item = (OperationId, Operation)> + ExactSizeIterator + '_ {
        (0..self.len()).map(|index| (OperationId(index as u32), self.get(index)))
    }

    /// All operations but shadows, by number.
    pub fn but_shadows(&self) -> impl Iterator<Item = (OperationId, Operation)> + use<'_> {
        Sorted { operations: self, at: 0, wanted: (1 << SHADOW) - 1 }
    }

    /// The ids of all operations but shadows, in order.
    pub fn ids_but_shadows(&self) -> impl Iterator<Item = OperationId> + use<'_> {
        self.ids((1 << SHADOW) - 1)
    }

    /// The ids of operations with these verbs, without shadows, in order.
    pub fn ids_of_verbs(&self, verbs: &[Verb]) -> impl Iterator<Item = OperationId> + use<'_> {
        self.ids(sorts(verbs))
    }

    fn ids(&self, wanted: u32) -> impl Iterator<Item = OperationId> + use<'_> {
        let found = (0..).zip(&self.sorts).filter(move |(_, sort)| wanted >> **sort & 1 != 0);
        found.map(|(index, _)| OperationId(index))
    }

    /// Operations with these verbs, without shadows, by number.
    pub fn of_verbs(&self, verbs: &[Verb]) -> impl Iterator<Item = (OperationId, Operation)> + use<'_> {
        Sorted { operations: self, at: 0, wanted: sorts(verbs) }
    }

    /// Operations with these verbs, shadows included.
    pub fn all_of_verbs(&self, verbs: &[Verb]) -> impl Iterator<Item = (OperationId, Operation)> + use<'_> {
        let wanted = sorts(verbs);
        Sorted { operations: self, at: 0, wanted: wanted | wanted << SHADOW }
    }

    /// Operations with all these marks, by number.
    pub fn of_marks(&self, marks: Marks) -> impl Iterator<Item = (OperationId, Operation)> + use<'_> {
        let found = (0..).zip(self.rows.iter()).filter(move |(_, row)| row.marks.has(marks));
        found.map(|(index, _)| (OperationId(index), self.get(index as usize)))
    }

    /// Operations that belong to a decision, by number.
    pub fn decided(&self) -> impl Iterator<Item = (OperationId, Operation)> + use<'_> {
        let mut found: Vec<u32> = self.whole.iter().filter(|(_, o)| o.decision.is_some()).map(|(id, _)| *id).collect();
        found.sort_unstable();
        found.into_iter().map(|index| (OperationId(index), self.get(index as usize)))
    }

    /// Operations whose answer has an earlier time than the request, by number.
    pub fn answered_before_sent(&self) -> impl Iterator<Item = Operation> + use<'_> {
        // A row cannot hold a negative duration, so these are kept whole.
        let is_odd = |o: &Operation| o.invoke.is_known() && o.ret.is_known() && o.ret < o.invoke && o.clock.is_some();
        let mut found: Vec<u32> = self.whole.iter().filter(|(_, o)| is_odd(o)).map(|(id, _)| *id).collect();
        found.sort_unstable();
        found.into_iter().map(|index| self.get(index as usize))
    }

    /// Time of the request.
    #[inline]
    pub fn invoke(&self, index: usize) -> Time {
        self.rows[index].invoke
    }

    /// Time of the answer.
    #[inline]
    pub fn ret(&self, index: usize) -> Time {
        let row = &self.rows[index];
        if row.form & WHOLE == 0 { row.duration.after(row.invoke) } else { self.whole(index).ret }
    }

    /// The revision in the answer.
    #[inline]
    pub fn answered(&self, index: usize) -> Revision {
        let row = &self.rows[index];
        if row.form & WHOLE == 0 { Revision::from(row.answered) } else { self.whole(index).answered }
    }

    /// The revision that the request asked for, or the base of a write.
    #[inline]
    pub fn asked_revision(&self, index: usize) -> Revision {
        let row = &self.rows[index];
        if row.form & WHOLE == 0 { Revision::from(row.asked_revision) } else { self.whole(index).asked_revision }
    }

    /// The clock of both times.
    #[inline]
    pub fn clock(&self, index: usize) -> ClockId {
        let row = &self.rows[index];
        if row.form & WHOLE == 0 { self.sources[(row.source >> STATUS) as usize].2 } else { self.whole(index).clock }
    }

    /// Position of the answer.
    #[inline]
    pub fn position(&self, index: usize) -> Position {
        let row = &self.rows[index];
        if row.form & WHOLE != 0 {
            return self.whole(index).position;
        }
        self.records[index].position(self.sources[(row.source >> STATUS) as usize].0)
    }

    /// The object, if the operation is about a single one.
    #[inline]
    pub fn key(&self, index: usize) -> KeyId {
        self.rows[index].key
    }

    /// The scope: which objects the operation covers.
    #[inline]
    pub fn scope(&self, index: usize) -> ScopeId {
        self.rows[index].scope
    }

    /// The verb.
    #[inline]
    pub fn verb(&self, index: usize) -> Verb {
        self.rows[index].verb
    }

    /// The incarnation that sent the request.
    #[inline]
    pub fn incarnation(&self, index: usize) -> IncarnationId {
        self.rows[index].incarnation
    }

    /// Appends an operation.
    pub(super) fn push(&mut self, operation: Operation) {
        let (row, record) = self.row(self.rows.len(), &operation);
        self.rows.push(row);
        self.records.push(record);
        self.sorts.push(sort(&operation));
    }

    /// Replaces an operation.
    pub(super) fn set(&mut self, index: usize, operation: Operation) {
        self.whole.remove(&(index as u32));
        (self.rows[index], self.records[index]) = self.row(index, &operation);
        self.sorts[index] = sort(&operation);
    }

    /// Changes an operation in place.
    pub(super) fn change(&mut self, index: usize, change: impl FnOnce(&mut Operation)) {
        let mut operation = self.get(index);
        change(&mut operation);
        self.set(index, operation);
    }

    /// Replaces the incarnation of every operation.
    pub(super) fn change_incarnations(&mut self, change: impl Fn(IncarnationId) -> IncarnationId) {
        for row in self.rows.iter_mut() {
            row.incarnation = change(row.incarnation);
        }
        for operation in self.whole.values_mut() {
            operation.incarnation = change(operation.incarnation);
        }
    }

    fn row(&mut self, index: usize, o: &Operation) -> (Row, Record) {
        let fit = (|| {
            let source = self.source((o.position.file, o.server, o.clock));
            let words = [o.asked_revision, o.answered].map(|revision| u64::try_from(revision.value()).ok());
            let ([Some(asked_revision), Some(answered)], Some(duration)) =
                (words, PackedDuration::between(o.invoke, o.ret))
            else {
                return None;
            };
            let fits = o.position.line >> LINE == 0
                && (o.position.offset << LINE) >> LINE == o.position.offset
                && o.status >> STATUS == 0
                && (source << STATUS) >> STATUS == source
                && ![o.decision, o.page_after, o.page_end].iter().any(|name| name.is_some())
                && (o.items_len == 0 || !(o.answer_uid.is_some() || o.attributes.is_some()));
            fits.then_some((source, asked_revision, answered, duration))
        })();
        let (source, asked_revision, answered, duration) = fit.unwrap_or((0, 0, 0, PackedDuration::OPEN));
        let (audit_id, mut form) = match o.audit_id {
            AuditId::None => ([0, 0], 0),
            AuditId::Uuid(high, low) => ([high, low], UUID),
            AuditId::Text(text) => ([u64::from(text.0), 0], TEXT),
        };
        if fit.is_none() {
            form |= WHOLE;
            self.whole.insert(index as u32, *o);
        } else if o.items_len > 0 {
            form |= ITEMS;
        }
        // A list has no uid and attributes of its own, so these fields hold its items.
        let (answer_uid, attributes) = match form & ITEMS {
            0 => (o.answer_uid, o.attributes),
            _ => (Symbol(o.items_start), AttributesId(o.items_len)),
        };
        let record = Record { audit_id, place: o.position.offset << LINE | u64::from(o.position.line) };
        let row = Row {
            invoke: o.invoke,
            asked_revision,
            answered,
            marks: o.marks,
            source: source << STATUS | u32::from(o.status),
            duration,
            incarnation: o.incarnation,
            scope: o.scope,
            key: o.key,
            request_uid: o.request_uid,
            answer_uid,
            attributes,
            verb: o.verb,
            asked: o.asked,
            subresource: o.subresource,
            form,
        };
        (row, record)
    }

    fn source(&mut self, source: Source) -> u32 {
        // Records arrive file by file, so the last source usually fits.
        if self.sources.last() == Some(&source) {
            return self.sources.len() as u32 - 1;
        }
        *self.known.entry(source).or_insert_with(|| {
            self.sources.push(source);
            self.sources.len() as u32 - 1
        })
    }

    /// Reorders the operations as `order` names them and drops the others. Works in place by cycles of the permutation, since a
    /// second copy would be the peak of a history's memory.
    pub(super) fn arrange(&mut self, mut order: Vec<u32>) {
        const DONE: u32 = u32::MAX;
        let whole = std::mem::take(&mut self.whole);
        self.sorts = order.iter().map(|&old| self.sorts[old as usize]).collect();
        for (new, old) in order.iter().enumerate() {
            if self.rows[*old as usize].form & WHOLE != 0 {
                self.whole.insert(new as u32, whole[old]);
            }
        }
        let (rows, records) = (&mut self.rows, &mut self.records);
        let stay = order.len();
        let mut stays = vec![false; rows.len()];
        order.iter().for_each(|&row| stays[row as usize] = true);
        order.extend((0..rows.len() as u32).filter(|&row| !stays[row as usize]));
        for start in 0..rows.len() {
            if order[start] == DONE {
                continue;
            }
            let first = (rows[start], records[start]);
            let mut at = start;
            loop {
                let from = std::mem::replace(&mut order[at], DONE) as usize;
                if from == start {
                    (rows[at], records[at]) = first;
                    break;
                }
                (rows[at], records[at]) = (rows[from], records[from]);
                at = from;
            }
        }
        rows.truncate(stay);
        records.truncate(stay);
        records.shrink_to_fit();
    }
}

/// Verbs as a set of sorts, one bit each.
fn sorts(verbs: &[Verb]) -> u32 {
    verbs.iter().fold(0, |wanted, verb| wanted | 1 << *verb as u8)
}

/// Iterator over operations of some sorts. It is not composed of std iterators, which would copy each operation between stages.
struct Sorted<'o> {
    operations: &'o Operations,
    at: usize,
    wanted: u32,
}

impl Iterator for Sorted<'_> {
    type Item = (OperationId, Operation);

    #[inline(always)]
    fn next(&mut self) -> Option<(OperationId, Operation)> {
        let next = self.operations.sorts[self.at..].iter().position(|sort| self.wanted >> sort & 1 != 0)?;
        let index = self.at + next;
        self.at = index + 1;
        Some((OperationId(index as u32), self.operations.get(index)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::builder::EMPTY;
    use super::*;

    /// An operation with a different value in every field.
    fn operation(n: u32) -> Operation {
        let n64 = u64::from(n);
        Operation {
            position: Position { file: FileId(n % 3), line: n + 1, offset: n64 * 1_000 },
            audit_id: AuditId::Uuid(n64 + 2, n64 + 3),
            invoke: Time(1_700_000_000_000_000_000 + i64::from(n)),
            ret: Time(1_700_000_000_000_004_000 + i64::from(n)),
            asked_revision: Revision::from(n64 + 4),
            answered: Revision::from(n64 + 5),
            clock: ClockId(n % 2),
            server: ServerId(n % 5),
            incarnation: IncarnationId(n + 6),
            scope: ScopeId(n + 7),
            key: KeyId(n + 8),
            request_uid: Symbol(n + 9),
            answer_uid: Symbol(n + 10),
            attributes: AttributesId(n + 11),
            items_start: n * 2,
            items_len: 3,
            decision: Symbol::NONE,
            page_after: Symbol::NONE,
            page_end: Symbol::NONE,
            marks: Marks(n % (1 << 21)),
            status: 409,
            verb: Verb::Patch,
            asked: Asked::From,
            subresource: Subresource::Status,
        }
    }

    fn fields_of(operations: &Operations, index: usize) -> Operation {
        Operation {
            position: operations.position(index),
            invoke: operations.invoke(index),
            ret: operations.ret(index),
            answered: operations.answered(index),
            asked_revision: operations.asked_revision(index),
            clock: operations.clock(index),
            key: operations.key(index),
            verb: operations.verb(index),
            incarnation: operations.incarnation(index),
            ..operations.get(index)
        }
    }

    fn same(a: &Operation, b: &Operation) {
        assert_eq!(format!("{a:?}"), format!("{b:?}"));
    }

    #[test]
    fn every_operation_comes_back_as_it_was_put_in() {
        let plain = operation(1);
        let late = |after: i64| Operation { ret: Time(plain.invoke.0 + after), ..plain };
        let list = Operation { answer_uid: Symbol::NONE, attributes: AttributesId::NONE, ..plain };
        let odd = [
            plain,
            list,
            Operation { answer_uid: Symbol(9), ..list },
            Operation { attributes: AttributesId(9), ..list },
            Operation { items_start: u32::MAX, items_len: u32::MAX, ..list },
            Operation { items_start: 0, items_len: 0, ..list },
            Operation { items_start: 0, items_len: 1, decision: Symbol(4), ..list },
            EMPTY,
            Operation { audit_id: AuditId::None, ..plain },
            Operation { audit_id: AuditId::Text(Symbol(7)), ..plain },
            Operation { asked_revision: Revision::new(1 << 64), ..plain },
            Operation { answered: Revision::new(u128::MAX), ..plain },
            Operation { answered: Revision::from(u64::MAX), ..plain },
            Operation { decision: Symbol(4), ..plain },
            Operation { page_after: Symbol(5), ..plain },
            Operation { page_end: Symbol(6), ..plain },
            Operation { ret: Time::UNKNOWN, ..plain },
            Operation { invoke: Time::UNKNOWN, ..plain },
            Operation { invoke: Time(i64::MIN), ..plain },
            Operation { invoke: Time(-5), ret: Time(i64::MAX - 1), ..plain },
            Operation { status: u16::MAX, ..plain },
            Operation { marks: Marks(u32::MAX), ..plain },
            Operation { position: Position { offset: u64::MAX, ..plain.position }, ..plain },
            Operation { position: Position { offset: 1 << 36, ..plain.position }, ..plain },
            Operation { position: Position { line: u32::MAX, ..plain.position }, ..plain },
            Operation {
                position: Position { line: (1 << LINE) - 1, offset: (1 << 36) - 1, ..plain.position },
                ..plain
            },
            Operation { items_start: u32::MAX, items_len: u32::MAX, ..plain },
            late(0),
            late(-1),
            late((1 << 30) - 1),
            late(1 << 30),
            late(1_073_742_000),
            late(3_600_000_000_000),
            late(3_600_000_000_001),
            late(36_000_000_000_000),
        ];
        let mut operations = Operations::default();
        odd.iter().for_each(|o| operations.push(*o));
        odd.iter().zip(operations.iter()).for_each(|(put, got)| same(put, &got));
        // Each row's operation is set at every other row.
        for put in &odd {
            for index in 0..operations.len() {
                operations.set(index, *put);
                same(put, &operations.get(index));
                same(put, &fields_of(&operations, index));
            }
        }
    }

    #[test]
    fn operations_of_some_verbs_are_those_that_all_of_them_have() {
        const ALL: [Verb; 9] = [
            Verb::Get,
            Verb::List,
            Verb::Watch,
            Verb::Create,
            Verb::Update,
            Verb::Patch,
            Verb::Delete,
            Verb::DeleteCollection,
            Verb::Other,
        ];
        let mut operations = Operations::default();
        for n in 0..200u32 {
            let marks = Marks(if n % 7 == 0 { Marks::SHADOW.0 } else { n % 8 });
            operations.push(Operation { verb: ALL[n as usize % 9], marks, ..operation(n) });
        }
        operations.change(40, |o| o.verb = Verb::Get);
        operations.change(41, |o| o.marks.set(Marks::SHADOW));
        operations.change(42, |o| o.decision = Symbol(3));
        operations.change(43, |o| (o.decision, o.marks) = (Symbol(4), Marks(u32::MAX)));
        operations.arrange((10..150).rev().collect());
        let ids =
            |found: &mut dyn Iterator<Item = (OperationId, Operation)>| found.map(|(id, _)| id).collect::<Vec<_>>();
        let decided = ids(&mut operations.by_id().filter(|(_, o)| o.decision.is_some()));
        assert_eq!((ids(&mut operations.decided()), decided.len()), (decided, 2));
        for marks in [Marks::SHADOW, Marks(3), Marks::OPEN] {
            let marked = ids(&mut operations.by_id().filter(|(_, o)| o.marks.has(marks)));
            assert_eq!(ids(&mut operations.of_marks(marks)), marked);
        }
        for verbs in [&ALL[..], &ALL[..1], &ALL[1..4], &ALL[8..], &[]] {
            let all = operations.by_id().filter(|(_, o)| verbs.contains(&o.verb) && !o.marks.has(Marks::SHADOW));
            let expected: Vec<_> = all.map(|(id, o)| (id, format!("{o:?}"))).collect();
            let found: Vec<_> = operations.of_verbs(verbs).map(|(id, o)| (id, format!("{o:?}"))).collect();
            assert_eq!(found, expected);
            let all = operations.by_id().filter(|(_, o)| verbs.contains(&o.verb)).map(|(id, _)| id);
            assert!(operations.all_of_verbs(verbs).map(|(id, _)| id).eq(all));
        }
    }

    #[test]
    fn more_sources_than_a_row_counts_are_kept_too() {
        let sources = vec![(FileId(0), ServerId(0), ClockId(0)); 1 << 22];
        let mut operations = Operations { sources, ..Operations::default() };
        let o = operation(5);
        operations.push(o);
        same(&o, &operations.get(0));
    }

    #[test]
    fn arranged_operations_keep_what_stands_beside_their_rows() {
        let mut operations = Operations::default();
        let all: Vec<Operation> = (0..100)
            .map(|n| match n % 4 {
                0 => Operation { decision: Symbol(n), ..operation(n) },
                1 => Operation { items_start: 0, items_len: 0, ..operation(n) },
                2 => Operation { answer_uid: Symbol::NONE, attributes: AttributesId::NONE, ..operation(n) },
                _ => operation(n),
            })
            .collect();
        all.iter().for_each(|o| operations.push(*o));
        let order: Vec<u32> = (0..100).rev().filter(|n| n % 7 != 0).collect();
        operations.arrange(order.clone());
        operations.change_incarnations(|id| IncarnationId(id.0 + 1_000));
        assert_eq!(operations.len(), order.len());
        for (got, &old) in operations.iter().zip(&order) {
            let put = all[old as usize];
            same(&got, &Operation { incarnation: IncarnationId(put.incarnation.0 + 1_000), ..put });
        }
    }
}
