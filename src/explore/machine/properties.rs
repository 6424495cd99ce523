//! Safety properties: which of them a transition breaks.

use super::Machine;
use crate::explore::content::ContentId;
use crate::explore::knowledge::Computed;
use crate::explore::protocol::{Act, PropertyKind};
use crate::explore::state::{Change, LateWrite, State, uid_name};
use crate::explore::system::Broken;

impl Machine {
    /// The properties of a kind.
    pub(super) fn breaks(&self, is: impl Fn(&PropertyKind) -> bool) -> Broken {
        let properties = self.protocol.properties.iter().enumerate();
        properties.filter(|(_, property)| is(&property.kind)).map(|(at, _)| 1 << at).sum()
    }

    /// The properties that a write breaks by what it rests on.
    pub(super) fn broken_by(
        &self,
        state: &State,
        sent: LateWrite,
        current: Option<(u8, Change)>,
        change: Change,
    ) -> Broken {
        let declared = &self.protocol.steps[usize::from(sent.step)];
        let base = (sent.version > 0).then(|| self.layout.change(state, sent.version));
        let mut broken = 0;
        for (at, property) in self.protocol.properties.iter().enumerate() {
            let is_broken = match property.kind {
                // An apply states what its owner wants, whatever it finds.
                PropertyKind::NameReuse if matches!(declared.act, Act::Apply { .. }) => false,
                PropertyKind::NameReuse => sent.uid > 0 && current.is_some_and(|(_, change)| change.uid != sent.uid),
                PropertyKind::DanglingReference => {
                    let read = sent.premises.iter().take(declared.because.len()).copied();
                    let read = read.filter(|version| *version > 0).map(|version| self.layout.change(state, version));
                    let mut others = read.chain(base).filter(|read| read.content > 0 && read.uid != change.uid);
                    others.any(|read| self.is_dangling(state, read.content))
                }
                PropertyKind::StalePremise => {
                    change.content == 0 && {
                        let created =
                            (2..=self.layout.last(state)).find(|at| self.layout.change(state, *at).uid == change.uid);
                        let made =
                            created.is_some_and(|created| self.layout.change(state, created).client == sent.client);
                        declared.because.iter().zip(sent.premises).any(|((_, key), known)| {
                            let is_absence = known == 0 || self.layout.change(state, known).content == 0;
                            // The process knows what it created, but an absence is a premise of everything that it deletes.
                            (is_absence || !made)
                                && self
                                    .ended(state, known, *key)
                                    .zip(created)
                                    .is_some_and(|(ended, created)| created > ended)
                        })
                    }
                }
                _ => false,
            };
            broken |= u32::from(is_broken) << at;
        }
        broken
    }

    /// The revision at which what a client knows of a key ended to be true, unless it is true again.
    pub(super) fn ended(&self, state: &State, known: u8, key: u8) -> Option<u8> {
        let last = self.layout.last(state);
        let ended = (known + 1..=last).find(|revision| self.layout.change(state, *revision).key == key)?;
        let was_there = known > 0 && self.layout.change(state, known).content > 0;
        let is_there = self.layout.current(state, key).is_some();
        (was_there || is_there).then_some(ended)
    }

    /// The uid that a content names as its owner.
    pub(super) fn owner(&self, content: ContentId) -> Option<String> {
        Some(self.contents.value(content).get("owner")?.as_str()?.to_owned())
    }

    /// Whether a content names an owner that is gone.
    pub(super) fn is_dangling(&self, state: &State, content: ContentId) -> bool {
        let Some(owner) = (content > 0).then(|| self.owner(content)).flatten() else { return false };
        let keys = 0..self.protocol.keys.len() as u8;
        !keys.filter_map(|key| self.layout.current(state, key)).any(|(_, change)| uid_name(change.uid) == owner)
    }

    /// The properties that the objects in etcd break after a change.
    pub(super) fn broken_after(&self, state: &State, change: Change) -> Broken {
        let of = self.protocol.keys[usize::from(change.key)].resource;
        let mut broken = 0;
        for (at, property) in self.protocol.properties.iter().enumerate() {
            let is_broken = match &property.kind {
                PropertyKind::DoubleAllocation { resource, field } if *resource == of && change.content > 0 => {
                    let value = self.field(change.content, field);
                    let keys = &self.protocol.resources[usize::from(of)].keys;
                    let others = keys.iter().filter(|key| **key != change.key);
                    let mut others = others.filter_map(|key| self.layout.current(state, *key));
                    value.is_some() && others.any(|(_, other)| self.field(other.content, field) == value)
                }
                PropertyKind::Invariant { resource, expression } if *resource == of => {
                    self.knowledge.of_etcd(self.parts(), state, of, *expression) == Some(Computed::Truth(false))
                }
                _ => false,
            };
            broken |= u32::from(is_broken) << at;
        }
        broken
    }

    /// An invariant that is false at the begin, so that no transition breaks it.
    pub(super) fn broken_at_begin(&self) -> Option<&str> {
        let is_false = |kind: &PropertyKind| match kind {
            PropertyKind::Invariant { resource, expression } => {
                let computed = self.knowledge.of_etcd(self.parts(), &self.initial, *resource, *expression);
                computed == Some(Computed::Truth(false))
            }
            _ => false,
        };
        self.protocol.properties.iter().find(|property| is_false(&property.kind)).map(|property| &*property.name)
    }

    /// The value of a field of a content, by its path.
    pub(super) fn field(&self, content: ContentId, path: &str) -> Option<serde_json::Value> {
        let content = self.contents.value(content);
        let value = path.split('.').try_fold(&*content, |value, name| value.get(name))?;
        Some(value.clone())
    }
}
