//! Parses values of etcd's robustness reports and binary files of members.

use super::super::etcd::traffic::Traffic;
use super::super::etcd::{backend, operation, wal, watch};
use super::super::limits::LONGEST_NAME;
use super::super::problem::{Fault, Found, size};
use super::{Outcome, Parser, Tally, count_line_ends};
use crate::ingest::block::Whole;
use crate::ingest::input::stream;
use crate::ingest::{Batch, Format, Record, Refused};

impl<B: Batch> Parser<'_, B> {
    /// Parses the objects of a report. Files that were edited by hand may hold several on one line.
    pub(super) fn report(&mut self, mut line: u32, mut offset: u64, mut text: &str) {
        loop {
            let (outcome, next) = match self.format {
                Format::EtcdOperations => self.operation(line, offset, text),
                _ => self.client_watch(line, offset, text),
            };
            self.settle(line, outcome);
            let Some(next) = next.filter(|next| *next > 0) else { return };
            line += count_line_ends(&text.as_bytes()[..next]);
            offset += next as u64;
            text = &text[next..];
        }
    }

    /// Parses one operation. Also returns the offset of the next one.
    fn operation(&mut self, line: u32, offset: u64, text: &str) -> (Outcome, Option<usize>) {
        match operation::read(text) {
            Ok((operation, _)) if operation.request.kind.is_empty() => (self.other_kind(text), None),
            Ok((operation, next)) => (self.batch.record(line, offset, Record::EtcdOperation(operation)).into(), next),
            Err(error) => (self.no_json(text, &error), None),
        }
    }

    /// Parses one watch. Also returns the offset of the next one.
    fn client_watch(&mut self, line: u32, offset: u64, text: &str) -> (Outcome, Option<usize>) {
        let mut place = Place { text: text.as_bytes(), at: 0, line, offset };
        let mut refused: Option<Refused> = None;
        let batch = &mut *self.batch;
        let mut asked = false;
        let read = watch::read(text, |at, mut part| {
            let (line, offset) = place.of(at);
            match &mut part {
                watch::Part::Response(response) => {
                    for event in &mut response.events {
                        event.place = place.of(event.place.1 as usize);
                    }
                }
                watch::Part::Request(_) | watch::Part::Number(_) => asked = true,
                watch::Part::Begin => {}
            }
            if let Err(error) = batch.record(line, offset, Record::EtcdWatch(Box::new(part))) {
                refused.get_or_insert(error);
            }
        });
        match (read, refused) {
            (Err(error), _) => (self.no_json(text, &error), None),
            (Ok(_), None) if !asked => (self.other_kind(text), None),
            (Ok(next), refused) => (refused.map_or(Ok(()), Err).into(), next),
        }
    }

    pub(super) fn traffic(&mut self, line: u32, offset: u64, text: &str) -> Outcome {
        match serde_json::from_str::<Traffic>(text) {
            Ok(traffic) => self.batch.record(line, offset, Record::EtcdTraffic(traffic)).into(),
            Err(error) => self.no_json(text, &error),
        }
    }
}

/// Line numbers for ascending offsets.
struct Place<'t> {
    text: &'t [u8],
    at: usize,
    line: u32,
    offset: u64,
}

impl Place<'_> {
    /// Line and offset of a byte of the text.
    fn of(&mut self, at: usize) -> (u32, u64) {
        if at > self.at {
            self.line += count_line_ends(&self.text[self.at..at]);
            self.at = at;
        }
        (self.line, self.offset + at as u64)
    }
}

/// Reads a binary file into a batch.
pub(in super::super) fn parse_whole<B: Batch>(whole: &Whole, batch: &mut B) -> Tally {
    let mut tally = Tally::default();
    let mut last = 0;
    let mut hand = |number: u32, offset, record: Record<'_>| {
        // Records count from 1. The end of a log follows its last record.
        last = number.max(1) - 1;
        tally.lines += 1;
        if let Record::EtcdStore(backend::Part::Revision(revision)) = &record
            && revision.key.len() > LONGEST_NAME
        {
            let expected = format!("a key of at most {}", size(LONGEST_NAME as u64));
            tally.problem(last, || Fault::new(expected, Found::described(size(revision.key.len() as u64))));
            return Ok(());
        }
        match batch.record(last, offset, record) {
            Ok(()) => tally.records += 1,
            Err(refused) => tally.problem(last, || Fault::new(refused.expected, refused.found)),
        }
        Ok(())
    };
    let opened = whole.content.open().map_err(|error| stream::unreadable(&error));
    let result = opened.and_then(|mut content| match whole.format {
        Format::EtcdLog => wal::read(&mut content, |n, at, part| hand(n, at, Record::EtcdLog(Box::new(part)))),
        _ => backend::read(&mut content, |n, at, part| hand(n, at, Record::EtcdStore(part))),
    });
    if let Err(fault) = result {
        tally.lines += 1;
        tally.problem(last, || fault);
    }
    tally
}
