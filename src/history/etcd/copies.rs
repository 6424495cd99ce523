//! Drops records that occur twice, and reports them. A write that counts twice would contradict itself.

use super::builder::stretch;
use super::operation::{Operation, Request, StepResult};
use super::recording::Recording;
use super::watch::Watch;
use crate::ingest::Time;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

impl Recording {
    /// Drops copies of clients, then copies of single operations.
    pub(super) fn leave_out_copies(&mut self) {
        self.leave_out_clients();
        self.leave_out_operations();
    }

    /// Drops clients whose directory is a copy of another one.
    fn leave_out_clients(&mut self) {
        let mut first: BTreeMap<(Time, i64), Vec<u32>> = BTreeMap::new();
        let mut copies: Vec<(u32, u32)> = Vec::new();
        for (at, client) in self.clients.iter().enumerate() {
            let Some(one) = self.operations_of(client).first() else { continue };
            let others = first.entry((one.call, one.stream)).or_default();
            match others.iter().find(|other| self.is_copy(at as u32, **other)) {
                Some(&original) => copies.push((at as u32, original)),
                None => others.push(at as u32),
            }
        }
        if copies.is_empty() {
            return;
        }
        for &(copy, original) in &copies {
            let file =
                self.operations_of(&self.clients[copy as usize]).first().map(|operation| operation.position.file);
            let found = format!("a copy of {}", self.clients[original as usize].name);
            self.flaw(file, 0, "each client once", found);
        }
        let is_copy = |client: u32| copies.iter().any(|(copy, _)| *copy == client);
        self.operations.retain(|operation| !is_copy(operation.client));
        self.watches.retain(|watch| !is_copy(watch.client));
        self.count_rows_of_clients();
    }

    fn count_rows_of_clients(&mut self) {
        for (at, client) in self.clients.iter_mut().enumerate() {
            client.operations = stretch(&self.operations, |operation: &Operation| operation.client, at as u32);
            client.watches = stretch(&self.watches, |watch: &Watch| watch.client, at as u32);
        }
    }

    /// Drops operations that occur twice, in one file or in those of two clients. Reads stay, since a repeated read contradicts
    /// nothing.
    fn leave_out_operations(&mut self) {
        let mut first: FxHashMap<(Time, i64), u32> = FxHashMap::default();
        let mut copies: Vec<(u32, u32)> = Vec::new();
        for (at, operation) in (0..).zip(&self.operations) {
            if matches!(operation.request, Request::Range(_)) {
                continue;
            }
            let original = *first.entry((operation.call, operation.stream)).or_insert(at);
            if original != at && self.is_same_record(&self.operations[original as usize], operation) {
                copies.push((at, original));
            }
        }
        for &(copy, original) in &copies {
            let [copy, original] = [copy, original].map(|at| self.operations[at as usize].position);
            let of = match original.file == copy.file {
                true => String::new(),
                false => format!(" of {}", self.file_name(original.file)),
            };
            let found = format!("a copy of line {}{of}", original.line);
            self.flaw(Some(copy.file), copy.line, "each operation once", found);
        }
        if copies.is_empty() {
            return;
        }
        let copies: FxHashSet<u32> = copies.into_iter().map(|(copy, _)| copy).collect();
        let mut at = 0..;
        self.operations.retain(|_| at.next().is_some_and(|at| !copies.contains(&at)));
        self.count_rows_of_clients();
    }

    /// Whether two operations with one start time are two records of one operation. A client runs one operation at a time, so two
    /// that took time cannot both be its own. Between two clients only a write decides, since its revision is unique.
    fn is_same_record(&self, a: &Operation, b: &Operation) -> bool {
        let mark = |o: &Operation| (o.returned, o.revision, o.outcome, o.failure, o.error, o.member, o.begun);
        let tells = match a.client == b.client {
            true => !a.returned.is_known() || a.call < a.returned || a.revision > 0 && !a.failure,
            false => a.revision > 0 && !a.failure,
        };
        let (found, again) = (a.results.of(&self.results), b.results.of(&self.results));
        let same = |(a, b): (&StepResult, &StepResult)| {
            (a.count, a.deleted) == (b.count, b.deleted) && a.pairs.of(&self.pairs) == b.pairs.of(&self.pairs)
        };
        tells
            && mark(a) == mark(b)
            && self.requests.same(&a.request, &b.request)
            && found.len() == again.len()
            && found.iter().zip(again).all(same)
    }

    /// Whether two clients ran the same operations at the same times. With a coarse clock two short reads may look alike, so a
    /// write or more than two operations must match.
    fn is_copy(&self, a: u32, b: u32) -> bool {
        let (a, b) = (self.operations_of(&self.clients[a as usize]), self.operations_of(&self.clients[b as usize]));
        let mark = |o: &Operation| (o.call, o.returned, o.stream, o.revision, o.outcome, o.failure, o.results.len);
        let both = a.len().min(b.len());
        let telling = a[..both].iter().any(|o| !matches!(o.request, Request::Range(_)) && o.revision > 0);
        (telling || both > 2)
            && a.iter().zip(b).all(|(a, b)| mark(a) == mark(b) && self.requests.same(&a.request, &b.request))
    }
}
