//! Assigns each request to an incarnation of a client, and names the evidence that separates incarnations.
//!
//! Precedence: the label of a capture, the pod's uid in the token, then user, address and agent. Reports name this evidence with
//! every finding about a session, so a new kind of evidence needs a [`IdentifiedBy`] of its own.

use super::builder::Builder;
use super::client::{self, IdentifiedBy, Incarnation, Process, Served};
use super::ids::*;
use super::interner::Table;
use super::operation::*;
use super::store::History;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

impl Builder {
    /// The process of an API server's loopback client is separated by server, since user and address are the same on each.
    pub(super) fn on_server(&mut self, process: ProcessId, server: Symbol) -> ProcessId {
        let known = self.tables.processes.values()[process.index()];
        if self.tables.names.get(known.user) != "system:apiserver" {
            return process;
        }
        ProcessId(self.tables.processes.intern(Process { clock: server, ..known }))
    }

    /// Separates incarnations. Returns the incarnation of each process that some operation has.
    pub(super) fn incarnations(&mut self, history: &mut History, order: &[u32]) -> FxHashMap<u32, IncarnationId> {
        let mut clients: Table<Symbol> = Table::default();
        let mut lives: FxHashMap<(Symbol, IdentifiedBy, String, String), IncarnationId> = FxHashMap::default();
        let mut of_process = FxHashMap::default();
        let several = self.of_several();
        for &row in order {
            let operation = self.operations.get(row as usize);
            let process = operation.incarnation.0;
            let id = match of_process.get(&process) {
                Some(&id) => id,
                None => {
                    let evidence = self.tables.processes.values()[process as usize];
                    let saved = operation.marks.has(Marks::SAVED);
                    let (mut identified_by, label, mut place, program) = self.tell(&evidence, saved);
                    let is_loopback = evidence.clock.is_some() && !evidence.label.is_some();
                    if is_loopback && several.contains(&operation.clock) {
                        (identified_by, place) = (IdentifiedBy::Loopback, None);
                    }
                    let client = ClientId(clients.intern(evidence.user));
                    let id = *lives
                        .entry((evidence.user, identified_by, label.clone(), within(identified_by, &program)))
                        .or_insert_with(|| {
                            let id = IncarnationId(history.incarnations.len() as u32);
                            let span = (operation.invoke, operation.invoke);
                            history.incarnations.push(Incarnation {
                                client,
                                label: label.clone(),
                                identified_by,
                                place,
                                program,
                                span,
                                clock: operation.clock,
                                served: Vec::new(),
                            });
                            id
                        });
                    of_process.insert(process, id);
                    id
                }
            };
            let life = &mut history.incarnations[id.index()];
            // Only times of one clock extend the span; another clock is offset.
            if operation.clock == life.clock {
                if operation.invoke.is_known() && (operation.invoke < life.span.0 || !life.span.0.is_known()) {
                    life.span.0 = operation.invoke;
                }
                let last = if operation.ret.is_known() { operation.ret } else { operation.invoke };
                if last.is_known() && (last > life.span.1 || !life.span.1.is_known()) {
                    life.span.1 = last;
                }
            }
        }
        // Cache reads and decisions have no user agent, so their incarnation is looked up by user, kind of evidence and label.
        let reads = self.cache_reads.iter().map(|read| (read.incarnation.0, read.at, read.clock));
        let brackets = self.brackets.iter().map(|bracket| (bracket.incarnation.0, bracket.at, bracket.clock));
        for (process, at, clock) in reads.chain(brackets) {
            if of_process.contains_key(&process) {
                continue;
            }
            let evidence = self.tables.processes.values()[process as usize];
            let (identified_by, label, place, program) = self.tell(&evidence, false);
            let client = ClientId(clients.intern(evidence.user));
            let id = *lives
                .entry((evidence.user, identified_by, label.clone(), within(identified_by, &program)))
                .or_insert_with(|| {
                    let id = IncarnationId(history.incarnations.len() as u32);
                    let span = (at, at);
                    let served = Vec::new();
                    let life = Incarnation { client, label, identified_by, place, program, span, clock, served };
                    history.incarnations.push(life);
                    id
                });
            of_process.insert(process, id);
        }
        history.clients = clients.values().to_vec();
        of_process
    }

    /// Keeps the identities under which servers know recorded clients. One request of each pair is known from both sides.
    pub(super) fn served(
        &self,
        history: &mut History,
        incarnations: &FxHashMap<u32, IncarnationId>,
        sides: &BTreeSet<(IncarnationId, IncarnationId)>,
    ) {
        for (recorded, served) in sides {
            let (identified_by, label, place, program) =
                self.tell(&self.tables.processes.values()[served.index()], false);
            let life = incarnations.get(&recorded.0).and_then(|id| history.incarnations.get_mut(id.index()));
            let served = Served { identified_by, label, place, program };
            if let Some(life) = life.filter(|life| !life.served.contains(&served)) {
                life.served.push(served);
            }
        }
    }

    pub(super) fn tell(&self, p: &Process, saved: bool) -> (IdentifiedBy, String, Option<String>, String) {
        let text = |s: Symbol| self.tables.names.get(s);
        let program = client::program(text(p.agent)).to_owned();
        if saved {
            return (IdentifiedBy::File, text(p.label).to_owned(), None, program);
        }
        if p.label.is_some() {
            let stem = client::label_place(text(p.label));
            // A node has one kubelet, whatever the labels of its incarnations.
            let node = text(p.user).strip_prefix("system:node:").filter(|_| program == "kubelet" || stem.is_none());
            let place = match node {
                Some(node) => Some(format!("{program} on node {node}, recorded by itself")),
                None => stem.map(|stem| format!("{stem} recorded on clock {}", text(p.clock))),
            };
            return (IdentifiedBy::CaptureLabel, text(p.label).to_owned(), place, program);
        }
        if !text(p.pod_uid).is_empty() {
            let place = client::pod_place(text(p.pod_name), text(p.node_name), &program);
            return (IdentifiedBy::PodUid, text(p.pod_uid).to_owned(), place, program);
        }
        // A node's own identity is its place; any other user's place is its address.
        let place = text(p.user).strip_prefix("system:node:").map(|node| format!("{program} on node {node}"));
        let mut label = format!("{} from {}", text(p.agent), text(p.address));
        if p.clock.is_some() {
            label += &format!(" inside {}", text(p.clock));
        }
        let identified_by =
            if client::is_command_line(&program) { IdentifiedBy::CommandLine } else { IdentifiedBy::Address };
        let place = place.or_else(|| {
            let server = if p.clock.is_some() { format!(" inside {}", text(p.clock)) } else { String::new() };
            Some(format!("{program} at {}{server}", text(p.address)))
        });
        (identified_by, label, place, program)
    }
}

/// The further part that separates processes with equal evidence: the containers of one pod run several programs.
fn within(identified_by: IdentifiedBy, program: &str) -> String {
    if identified_by == IdentifiedBy::PodUid { program.to_owned() } else { String::new() }
}
