//! Determines the intervals of revisions in which an etcd witness misses no change.
//!
//! A span ends where revisions go back or the recorder marks a break. Inside a span, etcd's count of changes per key discloses
//! lost lines.

use super::batch::Moved;
use super::builder::Builder;
use super::ids::*;
use super::operation::*;
use super::scope::Scope;
use crate::ingest::{self, FileId};
use rustc_hash::FxHashMap;

impl Builder {
    pub(super) fn merge_witness(
        &mut self,
        file: FileId,
        first_line: u32,
        events: &[WitnessEvent],
        breaks: &[usize],
        moved: &Moved,
    ) {
        for (index, event) in events.iter().enumerate() {
            let event = WitnessEvent {
                position: ingest::Position { line: event.position.line + first_line, ..event.position },
                key: moved.key(event.key),
                uid: moved.name(event.uid),
                attributes: moved.attributes(event.attributes),
                ..*event
            };
            let last = self.files[file.0 as usize].last_witness;
            if breaks.contains(&index) || last.is_none_or(|last| event.revision < last) {
                self.close_span();
                self.span_start = self.witness.len();
            }
            self.files[file.0 as usize].last_witness = Some(event.revision);
            self.witness.push(event);
        }
    }

    /// Ends the present span of witness events.
    ///
    /// `etcdctl watch --prefix P` shows only P, and P is not recorded. A span with objects of two resources is presumed to show
    /// everything below the registry. A span with one resource is presumed to show only that one, and only its namespace if all
    /// objects share it.
    pub(super) fn close_span(&mut self) {
        let events = &self.witness[self.span_start.min(self.witness.len())..];
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return };
        let keys = self.tables.keys.values();
        let mut seen = events.iter().filter(|e| e.key.is_some()).map(|e| keys[e.key.index()]);
        let Some(one) = seen.next() else { return };
        let (mut resources, mut namespaces) = (false, false);
        for key in seen {
            resources |= key.resource != one.resource;
            namespaces |= key.namespace != one.namespace;
        }
        let (after, through, position) = (first.revision.previous(), last.revision, first.position);
        let scope = if resources {
            ScopeId::NONE
        } else {
            let empty = self.tables.names.intern("");
            let namespace = if namespaces { empty } else { one.namespace };
            let scope =
                Scope { resource: one.resource, namespace, name: empty, labels: empty, fields: empty, shard: empty };
            ScopeId(self.tables.scopes.intern(scope))
        };
        let holes = witness_holes(events, after);
        let mut from = after;
        for &(last_seen, next_seen) in &holes {
            if last_seen > from {
                self.spans.push(WitnessSpan { after: from, through: last_seen, scope, position });
            }
            from = from.max(next_seen.previous());
        }
        if through > from {
            self.spans.push(WitnessSpan { after: from, through, scope, position });
        }
        if let Some((last_seen, next_seen)) = holes.first() {
            let found =
                format!("a change missing between revisions {last_seen} and {next_seen}, by the change count of a key");
            self.problem(position.file, position.line, "every change of the keys that the watch shows", &found);
        }
    }
}

/// Gaps of a witness in which an event must be lost, as exclusive bounds, in order. etcd counts the changes of a key's life and
/// names its creation revision, so a lost line shows at the key's next event.
fn witness_holes(events: &[WitnessEvent], after: super::Revision) -> Vec<(super::Revision, super::Revision)> {
    let mut last: FxHashMap<KeyId, &WitnessEvent> = FxHashMap::default();
    let mut holes: Vec<(super::Revision, super::Revision)> = Vec::new();
    for event in events.iter().filter(|e| e.key.is_some()) {
        let whole = match last.insert(event.key, event) {
            _ if event.tombstone => None,
            Some(before) if before.tombstone => (event.created != event.revision).then_some(before.revision),
            Some(before) if event.created != before.created => Some(before.revision),
            Some(before) => (event.count > 0 && event.count != before.count + 1).then_some(before.revision),
            None => (event.created > after && event.created != event.revision).then_some(after),
        };
        holes.extend(whole.map(|seen| (seen, event.revision)));
    }
    holes.sort_unstable();
    holes
}
