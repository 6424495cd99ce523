//! A sketch is a history drawn as text, for tests, documentation and bug reports.
//!
//! It shows clients, their requests in time, revisions and the anomaly at a glance. The program lowers it to the
//! evidence that real recorders leave: capture lines, audit events, an etcd watch. The same builder reads this
//! evidence. Positions are those of the sketch.
//!
//! ```
//! use retrograde::history::sketch::sketch;
//!
//! let history = sketch("
//! client kubelet user=system:node:node-1
//! etcd          +a:u1@10  ~a@12  -a@15  +a:u2@20
//!
//! kubelet/1@A   |-LIST rv=0 => 12 {a:u1@12}-|  |-DELETE a:u1 => ok-|
//! kubelet/2@B                                                         |-LIST rv=0 => 12 {a:u1@12}-|
//! ")?;
//! let judgement = retrograde::judge(&history, &retrograde::Options::default());
//! let rules: Vec<_> = judgement.findings.iter().map(|finding| finding.rule).collect();
//! assert_eq!(rules, ["read-your-writes", "unsafe-first-read"]);
//! # Ok::<(), retrograde::history::sketch::SketchError>(())
//! ```
//!
//! # Lines
//!
//! ```text
//! # to the end of the line: a comment (at a line's begin, or after a space)
//! CLIENT[/LIFE][@SERVER]  ACT              a step: after everything above it, before everything below
//! CLIENT[/LIFE][@SERVER]  |-ACT-|  |-ACT-| drawn: the columns of the bars are its times
//! CLIENT[/LIFE]  .. EVENTS -|              more of the stream that this life began last (`..NAME` for a named one)
//! etcd  EVENTS                             what etcd itself showed; not in time
//! --- [5s]                                 ends a group of drawn lines; time continues (5 seconds later)
//! column 10ms                              duration of one column (else 1ms)
//! client NAME user=U agent=A clock=C address=IP pod=P recorded=capture|audit|both level=metadata|request|response
//! server NAME clock=C                      the clock of its audit log
//! clock NAME +40ms                         how far the clock is ahead
//! resource PLURAL.GROUP kind=K version=V cluster
//! default RESOURCE [in NAMESPACE]          for keys without a resource (else pods in default)
//! recorded capture|audit|both              recorder of undeclared clients
//! level metadata|request|response          their audit level
//! uids uuid                                write uids as UUIDs
//! ```
//!
//! Neighbouring drawn lines share their columns. A drawn act ends with `|`. It ends with `-?` if no recorder saw an
//! answer, and a watch ends with ` ..` if it continues. Dashes beside bars have no meaning.
//!
//! # Acts
//!
//! ```text
//! GET KEY [ASK] => OBJECT            LIST [RESOURCE] [in NAMESPACE] [ASK] => REVISION {OBJECT ...} [more]
//! CREATE OBJECT => OBJECT            WATCH [RESOURCE] [in NAMESPACE] [ASK] [as NAME] EVENTS
//! PUT OBJECT => OBJECT               DELETEALL [RESOURCE] [in NAMESPACE] [ASK] => REVISION {OBJECT ...}
//! PATCH OBJECT [test(:UID@VERSION)] => OBJECT
//! DELETE OBJECT => ok[:UID] | OBJECT
//! READ KEY => OBJECT | absent        a read from the client's cache
//! DECIDE NAME                        the span of a decision
//! MARK TEXT                          a note for diagrams
//! ```
//!
//! The request names the uid and version of a written OBJECT: the base of a PUT, the precondition of a DELETE. The
//! labels of a PATCHed OBJECT are those that the patch sets. The answer follows the arrow. Every answer can also be
//! `!CODE` (`!409 live=:UID` for a uid conflict), `bare` (success, body not recorded) or `?` (none seen). After an
//! answered object, `deleting` means that deletion has begun and that something holds it back. `gone` means that this
//! write removed the object, and `created` that this PUT or PATCH created it. Any act can have the option
//! `for DECISION`. A write can have the options `status`, `scale`, `binding`, `eviction`, `dry-run` and `no-body`. A PATCH
//! with `apply` is a server-side apply: it sends the whole OBJECT.
//!
//! ```text
//! ASK     rv=0  rv=N  exact=N  atleast=N  limit=N  continue=N  continue=inconsistent
//!         (continue: after the last page that this client drew)
//!         labels(SELECTOR)  fields(SELECTOR)  shards(SELECTOR)
//!         a watch also: from N  initial  no-initial  bookmarks
//! OBJECT  [KEY][:UID][@VERSION][[ATTRIBUTE ...]]
//! ATTRIBUTE  label=value  node=N  phase=P  owner=Kind/name:uid  finalizer=F  .path=value  deleting  gone  created  ?
//! KEY     NAME  RESOURCE/NAME  NAMESPACE/NAME  RESOURCE/NAMESPACE/NAME    (`*`: the server generates the name)
//! EVENTS  +OBJECT added  ~OBJECT modified  -OBJECT deleted  ^N bookmark  ^^N end of the initial events  !CODE error
//!         eof  closed (by the client)  broken
//! ```
//!
//! A bare number is a version. An answered object without uid or brackets takes them from its request. If the request
//! has none, the object takes them from its latest mention at or below its version. `:-` is a uid that was not
//! recorded, `[]` means no attributes, and `[?]` is a body cut down to identity. An object never takes attributes of
//! another life of its name. `.path=value` sets any field: `.spec.replicas=3`, `.spec.clusterIPs=["10.0.0.1"]`. The
//! value is JSON, or a text.
//!
//! # Evidence
//!
//! The program reads a sketch from files in memory. There is a capture for each client that records itself, an audit log
//! for each server that records one, and an `etcdctl watch`. A sketch begins at
//! 2026-03-02T09:00:00Z on a clock that is neither ahead nor behind. A step takes six columns or more. A group of drawn
//! lines begins five columns after the end of the part before it. A server's interval lies inside its client's by a
//! fifth of a column.

mod audit;
mod body;
mod error;
mod lives;
mod lowered;
mod lowering;
mod naming;
mod parser;
mod phrase;
mod settings;
mod syntax;
mod text;

pub use error::SketchError;

use super::batch::Batch;
use super::{Builder, Domains, History};
use crate::ingest::fields::{Fields, field_capture};
use crate::ingest::{self, Batch as _, FileId, FileSummary, Format, InputFile, Record, SourceRule};
use std::sync::Arc;
#[cfg(test)]
mod tests;

use lowered::Lowered;
use syntax::Place;

/// Parses a sketch into a history.
pub fn sketch(text: &str) -> Result<History, SketchError> {
    sketch_with(text, &Arc::default())
}

/// Parses a sketch into a history that keeps declared fields.
pub fn sketch_with(text: &str, fields: &Arc<Fields>) -> Result<History, SketchError> {
    let files = lowering::lower(&parser::parse(text)?);
    let mut inputs: Vec<InputFile> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let mut input = InputFile::in_memory(FileId(index as u32), "sketch", text.as_bytes());
        if let Some((server, clock)) = file.server.clone() {
            // Requests without a drawn server share one.
            let clock = if server.is_empty() { input.shown.clone() } else { clock };
            let server = Some(server).filter(|server| !server.is_empty());
            input.source = SourceRule { server, clock: Some(clock), ..SourceRule::default() };
        }
        inputs.push(input);
    }
    let offsets = line_offsets(text);
    let mut builder = Builder::new(&inputs);
    let mut summaries = Vec::new();
    for (input, file) in inputs.iter().zip(&files) {
        let mut batch = Batch::new(input.id, file.format, fields.clone());
        field_capture::during(fields.tree(), || {
            let take =
                |(line, json): &(u32, String)| take(&mut batch, file.format, *line, offsets[*line as usize - 1], json);
            file.lines.iter().try_for_each(take)
        })
        .map_err(|error| error.with_text(text))?;
        builder.merge(input.id, 0, batch);
        summaries.push(FileSummary {
            path: input.shown.clone(),
            format: Some(file.format.name()),
            lines: file.lines.len() as u64,
            records: file.lines.len() as u64,
            ..FileSummary::default()
        });
    }
    let mut history = builder.finish(&Domains::default());
    history.inputs = inputs;
    history.files = summaries;
    Ok(history)
}

fn take(batch: &mut Batch, format: Format, line: u32, offset: u64, json: &str) -> Result<(), SketchError> {
    let place = Place { line, column: 0 };
    let record = match format {
        Format::Audit => serde_json::from_str(json).map(|mut event: Box<ingest::kubernetes::audit::Event<'_>>| {
            // The sketch writes valid times itself.
            event.read_times().ok();
            Record::Audit(event)
        }),
        Format::EtcdWatch => serde_json::from_str(json).map(|response| Record::Etcd(Box::new(response))),
        _ => serde_json::from_str(json).map(|line| Record::Capture(Box::new(line))),
    };
    let record = record.map_err(|e| SketchError::at(place, "valid evidence", e.to_string()))?;
    batch
        .record(line, offset, record)
        .map_err(|refused: ingest::Refused| SketchError::at(place, refused.expected, refused.found))
}

fn line_offsets(text: &str) -> Vec<u64> {
    let mut offsets = vec![0];
    offsets.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at as u64 + 1));
    offsets
}

/// The evidence that recorders of a sketched history would leave.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Files: name and content.
    pub files: Vec<(String, String)>,
    /// `--source` arguments for facts that the files omit.
    pub sources: Vec<String>,
}

/// Lowers a sketch to evidence files.
#[doc(hidden)]
pub fn evidence(text: &str) -> Result<Evidence, SketchError> {
    let files = lowering::lower(&parser::parse(text)?);
    let source = |file: &Lowered| {
        let (server, clock) = file.server.as_ref().filter(|(server, _)| !server.is_empty())?;
        Some(format!("{}:server={server},clock={clock}", file.name))
    };
    let sources = files.iter().filter_map(source).collect();
    let content = |file: &Lowered| file.lines.iter().map(|(_, json)| format!("{json}\n")).collect();
    let files = files.iter().map(|file| (file.name.clone(), content(file))).collect();
    Ok(Evidence { files, sources })
}
