//! Watches: starts, deliveries, bookmarks, ends, and restarts of their processes.

use crate::simulation::cluster::{Change, Cluster, Stream, phase_name};
use crate::simulation::fault::Fault;
use crate::simulation::recorder::{body, time};
use serde_json::{Value, json};

impl Cluster {
    /// Caches take changes that are old enough; streams deliver what their server's cache has.
    pub(super) fn advance_caches(&mut self) {
        for server in 0..self.servers.len() {
            let lag = self.servers[server].lag;
            let reach = self.log.len() as u64;
            let behind = if self.dice.one_in(4) { lag } else { lag / 2 };
            let index = reach.saturating_sub(behind);
            if index > 0 {
                let revision = self.log[index as usize - 1].revision;
                self.servers[server].cache = self.servers[server].cache.max(revision);
            }
        }
        for at in 0..self.streams.len() {
            self.deliver(at);
        }
    }

    pub(super) fn deliver(&mut self, at: usize) {
        let stream = &self.streams[at];
        let cache = self.servers[stream.server].cache;
        let from = stream.position;
        let changes: Vec<Change> =
            self.log.iter().filter(|c| c.revision > from && c.revision <= cache).cloned().collect();
        let mut events: Vec<Value> = Vec::new();
        for change in changes {
            let phase = self.streams[at].phase;
            let matches = phase.is_none_or(|n| n == change.object.phase) && !change.deleted;
            let stream = &mut self.streams[at];
            let was = stream.members.contains_key(&change.name);
            let kind = match (was, matches) {
                (false, true) => "ADDED",
                (true, true) => "MODIFIED",
                (true, false) => "DELETED",
                (false, false) => continue,
            };
            let client = self.streams[at].client;
            let plain = kind == "ADDED" && change.created && phase.is_none();
            let kind = if plain && self.strikes(Fault::WrongType, true, client) { "MODIFIED" } else { kind };
            let stream = &mut self.streams[at];
            // Leaving a selector delivers the object's former state with the version of the change.
            let mut shown = body(&change.name, &change.object, change.revision);
            let before = stream.members.get(&change.name).copied();
            if matches {
                stream.members.insert(change.name.clone(), change.revision);
            } else {
                stream.members.remove(&change.name);
                shown["status"]["phase"] = json!(phase_name(phase.unwrap_or(change.object.phase)));
            }
            let dated = before.filter(|_| kind == "DELETED" && change.deleted && self.fault == Fault::OldDeleteVersion);
            if let Some(before) = dated {
                self.injected = true;
                self.client_at_fault = Some(self.clients[self.streams[at].client].name.clone());
                shown["metadata"]["resourceVersion"] = json!(before.to_string());
            }
            events.push(json!({"type": kind, "object": shown}));
        }
        self.streams[at].position = self.streams[at].position.max(cache);
        let (client, delivered) = (self.streams[at].client, self.streams[at].delivered);
        if events.len() >= 2 && delivered > 0 {
            // A later event is delivered, so the gap is visible. The revision of a deletion may be in no other
            // evidence.
            let out = events[..events.len() - 1].iter().position(|e| e["type"] != "DELETED");
            if let Some(out) = out.filter(|_| self.strikes(Fault::DroppedEvent, true, client)) {
                events.remove(out);
            }
            if events.len() >= 2 && self.strikes(Fault::SwappedEvents, true, client) {
                let n = events.len();
                events.swap(n - 1, n - 2);
            }
        }
        if !events.is_empty() && delivered > 0 && self.strikes(Fault::RepeatedEvent, true, client) {
            let again = events[events.len() - 1].clone();
            events.push(again);
        }
        for event in events {
            self.record_event(at, event);
        }
    }

    /// Starts a reflector, or its next watch.
    pub(super) fn watch(&mut self, client: usize, late: bool) {
        if self.streams.iter().any(|s| s.client == client) {
            return;
        }
        self.wait_for(client);
        let selector = self.clients[client]
            .phase
            .map_or(String::new(), |n| format!("&fieldSelector=status.phase%3D{}", phase_name(n)));
        let (mut server, phase) = (self.clients[client].pinned, self.clients[client].phase);
        if self.clients[client].frontier == 0 {
            // resourceVersion=0 always from one server, whose cache only advances.
            let revision = self.servers[server].cache;
            let items = self.items(&self.state_at(revision), phase);
            let answer = self.answer_list(revision, items);
            let uri = format!("/api/v1/namespaces/prod/pods?limit=500&resourceVersion=0{selector}");
            self.exchange(client, server, "list", "GET", &uri, None, 200, Some(answer), None);
            self.clients[client].frontier = revision;
            self.clients[client].listed = revision;
        } else if self.dice.one_in(2) {
            // A watch from a revision may go to any server.
            server = self.dice_of(2);
        }
        let frontier = self.clients[client].frontier;
        let mut start = frontier;
        if frontier > 40 && late && self.clients[client].streamed {
            let older = self.log.iter().rev().filter(|c| c.revision < frontier).nth(3).map(|c| c.revision);
            let inside = |c: &Change| !c.deleted && phase.is_none_or(|n| n == c.object.phase);
            let listed = self.clients[client].listed;
            let older = older
                .filter(|&older| older != listed)
                .filter(|&older| self.log.iter().any(|c| c.revision > older && c.revision <= frontier && inside(c)));
            if let Some(older) = older.filter(|_| self.strikes(Fault::ResumeBackwards, late, client)) {
                start = older;
                server = 0;
            }
        }
        let state = self.state_at(start);
        let members = state
            .iter()
            .filter(|(_, o)| phase.is_none_or(|n| n == o.phase))
            .map(|(n, o)| (n.clone(), o.revision))
            .collect();
        let (id, audit_id) = (self.next(), self.audit_id());
        let uri = format!(
            "/api/v1/namespaces/prod/pods?allowWatchBookmarks=true&resourceVersion={start}&timeoutSeconds=400&watch=true{selector}"
        );
        self.capture_context(client, server);
        let c = &mut self.clients[client];
        if c.captured {
            c.lines.push(json!({"kind": "request", "id": id, "at": time(self.now, 0), "method": "GET", "uri": uri, "user_agent": c.agent}).to_string());
            c.lines.push(json!({"kind": "response", "id": id, "at": time(self.now + 100_000, 0), "status": 200, "audit_id": audit_id}).to_string());
        }
        c.busy = self.now + 200_000;
        c.streamed = true;
        self.streams.push(Stream {
            client,
            server,
            id,
            position: start,
            phase,
            members,
            started: self.now + 30_000,
            audit_id,
            uri,
            delivered: 0,
            last: None,
        });
        let at = self.streams.len() - 1;
        self.now += 300_000;
        let again = self
            .log
            .iter()
            .find(|c| c.revision == start && !c.deleted && phase.is_none_or(|n| n == c.object.phase))
            .cloned();
        if let Some(change) = again.filter(|_| self.strikes(Fault::Prehistory, late, client)) {
            self.record_event(
                at,
                json!({"type": "MODIFIED", "object": body(&change.name, &change.object, change.revision)}),
            );
        }
    }

    pub(super) fn bookmark(&mut self, late: bool) {
        if self.streams.is_empty() {
            return;
        }
        let at = self.dice_of(self.streams.len() as u64);
        let (server, phase, position) = (self.streams[at].server, self.streams[at].phase, self.streams[at].position);
        let cache = self.servers[server].cache;
        if position < cache {
            return;
        }
        let client = self.streams[at].client;
        let pending = self
            .log
            .iter()
            .rev()
            .find(|c| c.revision > position && phase.is_none_or(|n| n == c.object.phase) && !c.deleted)
            .map(|c| c.revision);
        let early = pending.filter(|_| self.strikes(Fault::EarlyBookmark, late, client));
        let revision = early.unwrap_or(position);
        self.record_event(at, json!({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": revision.to_string(), "creationTimestamp": null}}}));
        if early.is_some() {
            // The skipped events arrive after all.
            self.servers[server].cache = self.revision;
            self.deliver(at);
        }
    }

    pub(super) fn end_stream(&mut self) {
        if self.streams.is_empty() {
            return;
        }
        let at = self.dice_of(self.streams.len() as u64);
        let stream = self.streams.remove(at);
        let c = &mut self.clients[stream.client];
        if c.captured {
            c.lines.push(json!({"kind": "end", "id": stream.id, "at": time(self.now, 0), "reason": "eof"}).to_string());
        }
        c.busy = self.now + 1_000;
        let span = (stream.started, self.now - 20_000);
        self.audit(stream.client, stream.server, "watch", &stream.uri, span, &stream.audit_id, None, 200, None, None);
    }

    /// A process dies and restarts; its reflector lists again.
    pub(super) fn restart(&mut self, late: bool) {
        let client = 2 + self.dice_of(3);
        if !self.clients[client].captured || self.clients[client].frontier == 0 || !self.dice.one_in(3) {
            return;
        }
        if let Some(at) = self.streams.iter().position(|s| s.client == client) {
            let stream = self.streams.remove(at);
            let c = &mut self.clients[client];
            c.lines
                .push(json!({"kind": "end", "id": stream.id, "at": time(self.now, 0), "reason": "closed"}).to_string());
            let span = (stream.started, self.now - 20_000);
            self.audit(client, stream.server, "watch", &stream.uri, span, &stream.audit_id, None, 200, None, None);
        }
        self.now += 50_000_000;
        let frontier = self.clients[client].frontier;
        self.clients[client].incarnation += 1;
        self.clients[client].streamed = false;
        self.clients[client].busy = self.now;
        let phase = self.clients[client].phase;
        let lagging = self.servers[1].cache;
        let missed = self.log.iter().any(|c| {
            c.revision > lagging && c.revision <= frontier && phase.is_none_or(|n| n == c.object.phase) && c.created
        });
        let selector = phase.map_or(String::new(), |n| format!("&fieldSelector=status.phase%3D{}", phase_name(n)));
        if missed && self.strikes(Fault::TimeTravel, late, client) {
            self.clients[client].frontier = 0;
            let items = self.items(&self.state_at(lagging), phase);
            let answer = self.answer_list(lagging, items);
            let uri = format!("/api/v1/namespaces/prod/pods?limit=500&resourceVersion=0{selector}");
            self.exchange(client, 1, "list", "GET", &uri, None, 200, Some(answer), None);
            self.clients[client].frontier = lagging;
            return;
        }
        // A restarted process that reads the most recent state never goes back.
        let server = self.dice_of(2);
        let revision = self.revision;
        let items = self.items(&self.state_at(revision), phase);
        let answer = self.answer_list(revision, items);
        let uri = format!("/api/v1/namespaces/prod/pods?limit=500{selector}");
        self.exchange(client, server, "list", "GET", &uri, None, 200, Some(answer), None);
        self.clients[client].frontier = revision;
        self.clients[client].listed = revision;
        self.clients[client].pinned = server;
    }
}
