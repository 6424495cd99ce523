//! Contents of objects, each with a number. A merge of two contents is computed once.

use super::field_managers;
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::sync::{Arc, Mutex, RwLock};

/// The number of a content. 0: the object does not exist.
pub type ContentId = u16;

/// All contents that any run has shown so far.
#[derive(Debug, Default)]
pub struct Contents {
    table: Mutex<Table>,
    merged: RwLock<FxHashMap<(ContentId, ContentId), ContentId>>,
    /// The object after a write of a client, with the managers of its fields; 0: a conflict.
    managed: RwLock<FxHashMap<ManagedWrite, ContentId>>,
    /// For each content, what its metadata says about a deletion.
    deletions: RwLock<Vec<Deletion>>,
}

/// A write in a protocol with server-side apply: the object before it (0: none), what is sent, the client and the kind.
type ManagedWrite = (ContentId, ContentId, u8, ManagedKind);

/// The kinds of writes between which the managers of fields differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ManagedKind {
    /// A server-side apply.
    Apply {
        /// Whether it takes fields from other managers.
        force: bool,
    },
    /// Any other write. What is sent is the object after it.
    Other,
}

/// What an object's metadata says about its deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Finalizers hold the object.
    pub is_held: bool,
    /// The deletion has begun.
    pub has_begun: bool,
}

impl Deletion {
    fn of(content: &Value) -> Deletion {
        let of = |name| content.get("metadata").and_then(|metadata| metadata.get(name));
        let is_held = of("finalizers").and_then(Value::as_array).is_some_and(|finalizers| !finalizers.is_empty());
        Deletion { is_held, has_begun: of("deletionTimestamp").is_some() }
    }
}

#[derive(Debug, Default)]
struct Table {
    values: Vec<Arc<Value>>,
    numbers: FxHashMap<String, ContentId>,
}

impl Contents {
    /// The number of a content; `None` if there are too many.
    pub fn number(&self, value: Value) -> Option<ContentId> {
        let text = value.to_string();
        let mut table = self.table.lock().ok()?;
        if let Some(&number) = table.numbers.get(&text) {
            return Some(number);
        }
        let deletion = Deletion::of(&value);
        table.values.push(Arc::new(value));
        let number = ContentId::try_from(table.values.len()).ok()?;
        self.deletions.write().ok()?.push(deletion);
        table.numbers.insert(text, number);
        Some(number)
    }

    /// The content with a number.
    pub fn value(&self, number: ContentId) -> Arc<Value> {
        let table = self.table.lock();
        let value = table.ok().and_then(|table| table.values.get(usize::from(number).checked_sub(1)?).cloned());
        value.unwrap_or_else(|| Arc::new(Value::Null))
    }

    /// What a content says about the deletion of its object.
    pub fn deletion(&self, number: ContentId) -> Deletion {
        let deletions = self.deletions.read().ok();
        let known = deletions.and_then(|known| known.get(usize::from(number).checked_sub(1)?).copied());
        known.unwrap_or_default()
    }

    /// An object after a write, with the managers of its fields; 0: the managers conflict.
    pub fn managed(&self, write: ManagedWrite, manager: &str) -> Option<ContentId> {
        let known = self.managed.read().ok().and_then(|managed| managed.get(&write).copied());
        if known.is_some() {
            return known;
        }
        let (before, sent, _, kind) = write;
        let (before, sent) = ((before > 0).then(|| self.value(before)), self.value(sent));
        let after = match kind {
            ManagedKind::Apply { force } => field_managers::applied(before.as_deref(), &sent, manager, force),
            ManagedKind::Other => Some(field_managers::written(before.as_deref(), &sent, manager)),
        };
        let number = match after {
            Some(after) => self.number(after)?,
            None => 0,
        };
        self.managed.write().ok()?.insert(write, number);
        Some(number)
    }

    /// A content after a merge patch (RFC 7386).
    pub fn merge(&self, base: ContentId, patch: ContentId) -> Option<ContentId> {
        let known = self.merged.read().ok().and_then(|merged| merged.get(&(base, patch)).copied());
        if known.is_some() {
            return known;
        }
        let mut value = (*self.value(base)).clone();
        merge(&mut value, &self.value(patch));
        let number = self.number(value)?;
        self.merged.write().ok()?.insert((base, patch), number);
        Some(number)
    }
}

fn merge(base: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        return base.clone_from(patch);
    };
    if !base.is_object() {
        *base = Value::Object(serde_json::Map::new());
    }
    let Value::Object(base) = base else { return };
    for (name, value) in patch {
        if value.is_null() {
            base.remove(name);
        } else {
            merge(base.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
