//! Writes: requests from what a client knows, and their commit or refusal by etcd.

use super::{Actor, Event, Machine, Outcome, Visit};
use crate::explore::content::{ContentId, ManagedKind};
use crate::explore::knowledge::Computed;
use crate::explore::protocol::{Act, Preconditions};
use crate::explore::state::{Change, Fault, LateWrite, PREMISES, State};
use crate::explore::system::Broken;
use std::sync::atomic::Ordering;

impl Machine {
    /// The fields that a client's expression gives.
    pub(in crate::explore) fn fields_of(
        &self,
        state: &State,
        client: u8,
        expression: u16,
    ) -> Option<serde_json::Value> {
        match self.knowledge.of_client(self.parts(), state, client, expression)? {
            Computed::Content(content) => Some((*self.contents.value(content)).clone()),
            Computed::Truth(_) => None,
        }
    }

    pub(super) fn write(&self, state: &State, actor: Actor, visit: &mut Visit<'_>) {
        let declared = &self.protocol.steps[usize::from(actor.step)];
        let Some(sent) = self.request(state, actor) else { return };
        let Some(sent) = sent else {
            // The client knows no object to write, so it sends nothing.
            let mut after = state.clone();
            self.go(&mut after, actor, declared.on_missing);
            return self.end(after, 0, Event::Local { actor }, visit);
        };
        let mut after = state.clone();
        let Some((outcome, broken)) = self.commit(&mut after, sent) else { return };
        let unanswered = after.clone();
        let resource = self.protocol.keys[usize::from(self.target(actor.step))].resource;
        if let Outcome::Committed(revision) = outcome {
            let is_shown = self.shows_revision(&after, revision);
            self.layout.note_write(&mut after, actor.client, resource, (revision, is_shown));
        }
        let next = match outcome {
            Outcome::Conflict | Outcome::Invalid => declared.on_conflict,
            Outcome::Missing => declared.on_missing,
            _ => declared.next,
        };
        self.go(&mut after, actor, next);
        self.end(after, broken, Event::Wrote { actor, outcome }, visit);
        if self.layout.left(state, Fault::Timeout) == 0 {
            return;
        }
        if let Outcome::Committed(revision) = outcome {
            let mut after = unanswered;
            self.layout.spend(&mut after, Fault::Timeout);
            self.go(&mut after, actor, declared.on_timeout);
            let outcome = Outcome::Unanswered(Some(revision));
            self.end(after, broken, Event::Wrote { actor, outcome }, visit);
        }
        let mut after = state.clone();
        self.layout.spend(&mut after, Fault::Timeout);
        if self.layout.delay(&mut after, sent) {
            self.go(&mut after, actor, declared.on_timeout);
            self.end(after, 0, Event::Wrote { actor, outcome: Outcome::Unanswered(None) }, visit);
        }
    }

    pub(super) fn late(&self, state: &State, nth: usize, late: LateWrite, visit: &mut Visit<'_>) {
        let mut after = state.clone();
        self.layout.forget(&mut after, nth);
        if let Some((Outcome::Committed(revision), broken)) = self.commit(&mut after, late) {
            let actor = Actor { client: late.client, program: 0, step: late.step };
            self.end(after, broken, Event::Late { actor, revision }, visit);
        }
    }

    /// Whether the answer to a write shows its revision. For these resources, the answer to a deletion is the object with the
    /// revision of its removal, and for most others a Status without one (seen from kube-apiserver 1.37.2).
    pub(in crate::explore) fn shows_revision(&self, state: &State, revision: u8) -> bool {
        const OBJECTS: [&str; 9] = [
            "namespaces",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "resourcequotas",
            "serviceaccounts",
            "services",
            "storageclasses.storage.k8s.io",
        ];
        let change = self.layout.change(state, revision);
        let resource = self.protocol.keys[usize::from(change.key)].resource;
        change.content > 0 || OBJECTS.contains(&&*self.protocol.resources[usize::from(resource)].name)
    }

    /// The key of a write.
    pub(in crate::explore) fn target(&self, step: u8) -> u8 {
        match self.protocol.steps[usize::from(step)].act {
            Act::Create { key, .. } | Act::Patch { key, .. } | Act::Apply { key, .. } | Act::Delete { key, .. } => key,
            _ => 0,
        }
    }

    /// The request of a write step. `None` if it has to wait; `Some(None)` if the client knows no object to write.
    pub(super) fn request(&self, state: &State, actor: Actor) -> Option<Option<LateWrite>> {
        let Actor { client, step, .. } = actor;
        let (fields, base, preconditions) = match self.protocol.steps[usize::from(step)].act {
            Act::Create { fields, .. } => (fields, None, Preconditions::default()),
            Act::Patch { fields, base, preconditions, .. } | Act::Apply { fields, base, preconditions, .. } => {
                (fields, base, preconditions)
            }
            Act::Delete { base, preconditions, .. } => (None, base, preconditions),
            _ => return None,
        };
        let mut sent = LateWrite { client, step, content: 0, version: 0, uid: 0, premises: [0; PREMISES] };
        let because = &self.protocol.steps[usize::from(step)].because;
        for (known, (variable, key)) in sent.premises.iter_mut().zip(because) {
            *known = self.entry(state, client, *variable, *key);
        }
        if let Some(variable) = base {
            if self.layout.version(state, client, variable) == 0 {
                return None;
            }
            let version = self.entry(state, client, variable, self.target(step));
            let known = (version > 0).then(|| self.layout.change(state, version)).filter(|change| change.content > 0);
            let Some(known) = known else { return Some(None) };
            sent.version = version;
            sent.uid = known.uid;
        }
        sent.content = match fields {
            Some(expression) => match self.knowledge.of_client(self.parts(), state, client, expression)? {
                Computed::Content(content) => content,
                Computed::Truth(_) => return None,
            },
            None => self.empty,
        };
        debug_assert!(preconditions == Preconditions::default() || sent.version > 0);
        Some(Some(sent))
    }

    /// Whether a content has a finalizer that the content before it has not.
    fn adds_finalizer(&self, before: ContentId, after: ContentId) -> bool {
        let [before, after] = [before, after].map(|content| self.contents.value(content));
        let finalizers = |content: &serde_json::Value| content["metadata"]["finalizers"].as_array().cloned();
        let before = finalizers(&before).unwrap_or_default();
        finalizers(&after).unwrap_or_default().iter().any(|finalizer| !before.contains(finalizer))
    }

    /// The content after a creation, a patch or an apply; 0 if the managers of fields conflict.
    fn content_after(&self, before: Option<ContentId>, sent: LateWrite) -> Option<ContentId> {
        let (after, kind) = match (&self.protocol.steps[usize::from(sent.step)].act, before) {
            (Act::Apply { force, .. }, _) => (sent.content, ManagedKind::Apply { force: *force }),
            (_, Some(before)) => (self.contents.merge(before, sent.content)?, ManagedKind::Other),
            (_, None) => (sent.content, ManagedKind::Other),
        };
        if !self.has_managers || before == Some(after) {
            return Some(after);
        }
        let manager = &self.protocol.clients[usize::from(sent.client)].name;
        self.contents.managed((before.unwrap_or(0), after, sent.client, kind), manager)
    }

    /// Commits a write or refuses it. `None` if the log is full.
    pub(super) fn commit(&self, state: &mut State, sent: LateWrite) -> Option<(Outcome, Broken)> {
        let declared = &self.protocol.steps[usize::from(sent.step)];
        let key = self.target(sent.step);
        let current = self.layout.current(state, key);
        let refused = |preconditions: Preconditions, (version, change): (u8, Change)| {
            preconditions.version && version != sent.version || preconditions.uid && change.uid != sent.uid
        };
        let change = match (&declared.act, current) {
            (Act::Create { .. }, Some(_)) => return Some((Outcome::Conflict, 0)),
            // Kubernetes 1.37 creates a missing object also if the apply names a version, and refuses one that names a uid.
            (Act::Apply { preconditions, .. }, None) if preconditions.uid => return Some((Outcome::Conflict, 0)),
            (Act::Create { .. } | Act::Apply { .. }, None) => {
                let content = self.content_after(None, sent)?;
                Change { key, content, uid: self.layout.next_uid(state), client: sent.client }
            }
            (_, None) => return Some((Outcome::Missing, 0)),
            (
                Act::Patch { preconditions, .. } | Act::Apply { preconditions, .. } | Act::Delete { preconditions, .. },
                Some(current),
            ) if refused(*preconditions, current) => {
                let is_version = preconditions.version && current.0 != sent.version;
                let is_invalid = matches!(declared.act, Act::Apply { .. }) && !is_version;
                return Some((if is_invalid { Outcome::Invalid } else { Outcome::Conflict }, 0));
            }
            (Act::Patch { .. } | Act::Apply { .. }, Some((_, change))) => {
                let content = self.content_after(Some(change.content), sent)?;
                if content == 0 {
                    return Some((Outcome::Conflict, 0));
                }
                if content == change.content {
                    return Some((Outcome::Unchanged, 0));
                }
                let deletion = self.contents.deletion(content);
                if deletion.has_begun && self.adds_finalizer(change.content, content) {
                    return Some((Outcome::Invalid, 0));
                }
                // Without its last finalizer, an object whose deletion has begun is gone.
                let content = if deletion.has_begun && !deletion.is_held { 0 } else { content };
                Change { content, client: sent.client, ..change }
            }
            (_, Some((_, change))) => {
                let deletion = self.contents.deletion(change.content);
                if deletion.is_held && deletion.has_begun {
                    return Some((Outcome::Unchanged, 0));
                }
                let content = if deletion.is_held { self.contents.merge(change.content, self.deleting)? } else { 0 };
                Change { content, client: sent.client, ..change }
            }
        };
        if !self.layout.has_room(state) {
            if !self.has_more_writes() {
                self.has_more_writes.store(true, Ordering::Relaxed);
            }
            return None;
        }
        let mut broken = self.broken_by(state, sent, current, change);
        let revision = self.layout.commit(state, change);
        broken |= self.broken_after(state, change);
        Some((Outcome::Committed(revision), broken))
    }
}
