//! Builds a recording from batches: groups files by client and by member, then reports flaws that no file shows alone.

use super::assembly::{Flaw, Segment};
use super::batch::{Batch, Piece, Rows};
use super::member::{Log, Member, Store};
use super::operation::{Operation, Span};
use super::recording::{Client, CreationMarks, Recording};
use super::watch::Watch;
use crate::ingest::etcd::layout::{self, Owner, Place};
use crate::ingest::limits::KEPT_PROBLEMS;
use crate::ingest::{FileId, FileSummary, Format, InputFile, Position, Problem};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::ops::Range;

/// Builds one recording.
pub(super) struct Builder {
    rows: Rows,
    /// Number of batches that are not merged yet.
    begun: usize,
    /// Rows of members by file.
    segments: Vec<Segment>,
    stores: Vec<(FileId, Store)>,
}

impl Builder {
    /// An empty builder.
    pub fn new() -> Builder {
        Builder { rows: Rows::default(), begun: 0, segments: Vec::new(), stores: Vec::new() }
    }

    /// Begins a batch. If it may append directly and no other batch is open, it borrows the rows and is merged first.
    pub fn begin(&mut self, may_borrow: bool) -> Option<Rows> {
        self.begun += 1;
        (may_borrow && self.begun == 1).then(|| std::mem::take(&mut self.rows))
    }

    /// Merges a batch; its first line has the number `first_line`.
    pub fn merge(&mut self, first_line: u32, mut batch: Batch) {
        self.begun -= 1;
        if let Some(behind) = batch.behind {
            self.rows = batch.rows;
            for operation in &mut self.rows.operations[behind..] {
                operation.position.line = operation.position.line.saturating_add(first_line);
            }
            return;
        }
        self.rows.append(first_line, &mut batch.rows);
        match batch.format {
            Some(Format::EtcdLog) => {
                let rows = std::mem::take(&mut batch.rows.log);
                self.segments.push(Segment { file: batch.file, name: None, rows });
            }
            Some(Format::EtcdStore) => {
                self.stores.push((batch.file, Store::of(std::mem::take(&mut batch.rows.store))));
            }
            _ => {}
        }
    }

    /// Finishes the recording.
    pub fn finish(
        self,
        name: String,
        inputs: Vec<InputFile>,
        files: Vec<FileSummary>,
        problems: Vec<Problem>,
    ) -> Recording {
        let Builder { mut rows, segments, stores, .. } = self;
        let orphans = rows.put_pieces_together();
        rows.values.name_texts();
        // The suite added traffic.json, which may hold an empty object, more than a year after the creation mark of events.
        let traffic = |file: &FileSummary| file.path.rsplit('/').next() == Some("traffic.json");
        if files.iter().any(traffic) {
            rows.creation_marks = CreationMarks::Written;
        }
        let mut recording = Recording {
            name,
            inputs,
            files,
            problems,
            texts: rows.texts,
            values: rows.values,
            operations: rows.operations,
            requests: rows.requests,
            results: rows.results,
            pairs: rows.pairs,
            watches: rows.watches,
            responses: rows.responses,
            events: rows.events,
            unique_revisions: rows.unique_revisions,
            creation_marks: rows.creation_marks,
            ..Recording::default()
        };
        recording.put_clients_in_order();
        for (position, number) in orphans {
            let found = format!("a part of watch {number} without its request");
            recording.flaw(Some(position.file), position.line, "a watch with its request", found);
        }
        recording.put_members_together(segments, stores);
        recording.look_for_flaws();
        recording
    }
}

impl Rows {
    /// Joins the pieces of each watch that was written while it ran. Returns pieces without a watch.
    fn put_pieces_together(&mut self) -> Vec<(Position, u64)> {
        let pieces = std::mem::take(&mut self.pieces);
        if pieces.is_empty() {
            return Vec::new();
        }
        let name = |piece: &Piece| (piece.position.file, piece.number);
        let known: BTreeMap<(FileId, u64), u32> =
            pieces.iter().filter_map(|piece| Some((name(piece), piece.watch?))).collect();
        let mut spans: Vec<Vec<Span>> = self.watches.iter().map(|watch| vec![watch.responses]).collect();
        let mut orphans = Vec::new();
        for piece in &pieces {
            match known.get(&name(piece)) {
                Some(watch) => spans[*watch as usize].push(piece.responses),
                None => orphans.push((piece.position, piece.number)),
            }
        }
        let mut responses = Vec::with_capacity(self.responses.len());
        for (watch, spans) in self.watches.iter_mut().zip(spans) {
            let start = responses.len();
            spans.into_iter().for_each(|span| responses.extend_from_slice(span.of(&self.responses)));
            watch.responses = Span::since(start, &responses);
        }
        self.responses = responses;
        orphans
    }
}

impl Recording {
    fn place(&self, file: FileId) -> Place {
        let format = self.files[file.0 as usize].format.and_then(Format::from_name);
        layout::place(&self.files[file.0 as usize].path, format.unwrap_or(Format::EtcdOperations))
    }

    /// Name and directory of the member that a file belongs to.
    fn member(&self, file: FileId) -> Option<(String, String)> {
        match self.place(file) {
            Place { owner: Owner::Member(name), root, .. } => Some((name, root)),
            _ => None,
        }
    }

    pub(super) fn flaw(&mut self, file: Option<FileId>, line: u32, expected: &str, found: String) {
        let path = file.map_or_else(|| self.name.clone(), |file| self.file_name(file).to_owned());
        if let Some(summary) = file.and_then(|file| self.files.get_mut(file.0 as usize)) {
            summary.problems += 1;
        }
        if self.problems.len() >= KEPT_PROBLEMS && line > 0 {
            return;
        }
        self.problems.push(Problem { file, path, line, expected: expected.to_owned(), found });
    }

    /// Assigns the rows to the directories of clients, in the order of their numbers.
    fn put_clients_in_order(&mut self) {
        let names: Vec<Option<String>> = (0..self.files.len() as u32)
            .map(|file| match self.place(FileId(file)).owner {
                Owner::Client(name) if self.files[file as usize].format.is_some() => Some(name),
                _ => None,
            })
            .collect();
        let mut order: Vec<&String> = names.iter().flatten().collect();
        order.sort_by_key(|name| client_order(name));
        order.dedup();
        let clients: BTreeMap<&String, u32> = order.iter().zip(0..).map(|(name, at)| (*name, at)).collect();
        let owner =
            |name: &Option<String>| name.as_ref().and_then(|name| clients.get(name)).copied().unwrap_or(u32::MAX);
        let owners: Vec<u32> = names.iter().map(owner).collect();
        let of = |position: Position| owners.get(position.file.0 as usize).copied().unwrap_or(u32::MAX);
        // Operations are most of a report and mostly sorted, so one pass assigns them and checks the order.
        let place = |o: &Operation| (o.client, o.call, o.begun, o.position);
        let (mut in_order, mut begun, mut last) = (true, false, None);
        for operation in &mut self.operations {
            operation.client = of(operation.position);
            let place = place(operation);
            in_order &= last <= Some(place);
            begun |= operation.begun;
            last = Some(place);
        }
        for watch in &mut self.watches {
            watch.client = of(watch.position);
        }
        if !in_order {
            self.operations.sort_by_key(place);
        }
        if begun {
            self.leave_out_beginnings();
        }
        self.watches.sort_by_key(|watch| (watch.client, watch.position));
        self.clients = order
            .iter()
            .zip(0..)
            .map(|(name, at)| Client {
                name: (*name).clone(),
                operations: stretch(&self.operations, |operation: &Operation| operation.client, at),
                watches: stretch(&self.watches, |watch: &Watch| watch.client, at),
            })
            .collect();
    }

    /// Drops the recorded beginning of an operation if its answer was recorded too.
    fn leave_out_beginnings(&mut self) {
        let name = |operation: &Operation| (operation.client, operation.call, operation.stream);
        let answered: FxHashSet<_> = self.operations.iter().filter(|operation| !operation.begun).map(name).collect();
        self.operations.retain(|operation| !operation.begun || !answered.contains(&name(operation)));
    }

    fn put_members_together(&mut self, segments: Vec<Segment>, stores: Vec<(FileId, Store)>) {
        // By name and directory: data directories of several members may have one name.
        let mut logs: BTreeMap<(String, String), Vec<Segment>> = BTreeMap::new();
        let mut members: BTreeMap<(String, String), Member> = BTreeMap::new();
        for mut segment in segments {
            let Some(name) = self.member(segment.file) else { continue };
            match segment_name(self.file_name(segment.file)) {
                Some(place) => segment.name = place,
                None => {
                    self.set_aside(segment.file);
                    continue;
                }
            }
            members.entry(name.clone()).or_default();
            logs.entry(name).or_default().push(segment);
        }
        for (file, store) in stores {
            let Some(name) = self.member(file) else { continue };
            // Stores sent by a leader, and those that a defragmentation was writing, are in the same folder as the member's own.
            let mut names = self.file_name(file).rsplit('/');
            let (name_of_file, folder) = (names.next(), names.next());
            if folder == Some("snap") && name_of_file != Some("db") {
                self.set_aside(file);
                continue;
            }
            members.entry(name).or_default().store = Some(store);
        }
        let mut flaws: Vec<Flaw> = Vec::new();
        for (name, segments) in logs {
            if let Some(member) = members.get_mut(&name) {
                member.log = Log::of(segments, &mut flaws);
            }
        }
        for flaw in flaws {
            self.flaw(Some(flaw.file), 0, flaw.expected, flaw.found);
        }
        let one_name = |name: &str| members.keys().filter(|(other, _)| other == name).count() > 1;
        let names: Vec<String> =
            members.keys().map(|(name, folder)| if one_name(name) { folder.clone() } else { name.clone() }).collect();
        self.members =
            names.into_iter().zip(members.into_values()).map(|(name, member)| Member { name, ..member }).collect();
    }

    /// Ignores a file that etcd keeps but does not use.
    fn set_aside(&mut self, file: FileId) {
        let summary = &mut self.files[file.0 as usize];
        summary.format = None;
        summary.ignored = Some("a copy that etcd keeps but does not use".to_owned());
    }

    /// Reports flaws that no single file shows.
    fn look_for_flaws(&mut self) {
        self.leave_out_copies();
        self.look_for_empty_files();
        let of_report = self.files.iter().any(|file| {
            let format = file.format.and_then(Format::from_name);
            format.is_some_and(|format| layout::place(&file.path, format).of_report)
        });
        if of_report && self.clients.is_empty() {
            self.flaw(None, 0, "a report with the operations of its clients", "no client-*/operations.json".to_owned());
        }
        self.look_for_strangers();
    }

    /// Reports empty files. The suite writes none, so their content was lost.
    fn look_for_empty_files(&mut self) {
        let empty: Vec<FileId> = (0..self.files.len() as u32)
            .map(FileId)
            .filter(|id| {
                let file = &self.files[id.0 as usize];
                let name = file.path.rsplit('/').next().unwrap_or_default();
                let of_client = matches!(name, "operations.json" | "watch.json");
                file.format.is_none()
                    && file.problems == 0
                    && of_client
                    && layout::place(&file.path, Format::EtcdWatches).of_report
            })
            .collect();
        for file in empty {
            let found = self.files[file.0 as usize].ignored.clone().unwrap_or_default();
            self.flaw(Some(file), 0, "the record of an etcd client", found);
        }
    }

    /// Drops members of another cluster. The members that answered clients determine the cluster; if none did, no log is used.
    fn look_for_strangers(&mut self) {
        let logs: Vec<(usize, u64, u64, FileId)> = (0..)
            .zip(&self.members)
            .filter_map(|(at, member)| Some((at, member.log.as_ref().filter(|log| log.cluster != 0)?)))
            .map(|(at, log)| {
                (at, log.node, log.cluster, log.entries.first().map_or(FileId(0), |entry| entry.position.file))
            })
            .collect();
        let Some(&(_, node, first, file)) = logs.first() else { return };
        let answered: FxHashSet<u64> =
            self.operations.iter().map(|operation| operation.member).filter(|id| *id != 0).collect();
        let own = logs.iter().find(|(_, node, ..)| answered.contains(node)).map(|(_, _, cluster, _)| *cluster);
        let cluster = own.unwrap_or(first);
        let mut strangers: Vec<usize> = Vec::new();
        for (n, &(at, node, other, file)) in logs.iter().enumerate() {
            if other != cluster {
                let found = format!("a member of cluster {other:x} among members of cluster {cluster:x}");
                self.flaw(Some(file), 0, "members of one cluster", found);
                strangers.push(at);
            } else if logs[..n].iter().any(|(_, before, ..)| *before == node) {
                self.flaw(Some(file), 0, "each member once", format!("member {node:x} again"));
            }
        }
        if own.is_none() && !(strangers.is_empty() && answered.is_empty()) {
            strangers = logs.iter().map(|(at, ..)| *at).collect();
        }
        for at in strangers {
            (self.members[at].log, self.members[at].store) = (None, None);
        }
        if !answered.is_empty() && own.is_none() {
            self.flaw(
                Some(file),
                0,
                "the logs of members that answered",
                format!("logs of other members, such as {node:x}"),
            );
        }
    }
}

/// Sort key: clients by number, other names after them.
fn client_order(name: &str) -> (u64, &str) {
    let number = name.strip_prefix("client-").and_then(|number| number.parse().ok());
    (number.unwrap_or(u64::MAX), name)
}

/// The range of rows with a mark, in rows sorted by mark.
pub(super) fn stretch<T>(rows: &[T], mark: impl Fn(&T) -> u32, wanted: u32) -> Range<u32> {
    let start = rows.partition_point(|row| mark(row) < wanted);
    let end = rows.partition_point(|row| mark(row) <= wanted);
    start as u32..end as u32
}

/// Number and first index of a segment. `None` if etcd would not read the file as one, `Some(None)` for a renamed file.
fn segment_name(path: &str) -> Option<Option<(u64, u64)>> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some(stem) = name.strip_suffix(".wal") else {
        let set_aside = name.ends_with(".broken") || name.ends_with(".tmp");
        return (!set_aside).then_some(None);
    };
    let (sequence, index) = stem.split_once('-').unwrap_or_default();
    let number = |text: &str| (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok()).flatten();
    Some(number(sequence).zip(number(index)))
}
