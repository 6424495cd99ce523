//! Words for requests, changes and watches in reports.

use super::operation::{Interval, Range, Request, Step, Txn};
use super::recording::Recording;
use super::value::ValueId;
use super::watch::Watch;

/// Characters of a value to show.
const MAX_VALUE_CHARACTERS: usize = 24;
/// Steps of a transaction to show.
const MAX_STEPS: usize = 4;

impl Recording {
    /// A value, cut if it is long.
    pub fn value_words(&self, value: ValueId) -> String {
        let shown = self.values.shown(value);
        match shown.char_indices().nth(MAX_VALUE_CHARACTERS) {
            Some((at, _)) => format!("{}...", &shown[..at]),
            None => shown.into_owned(),
        }
    }

    /// A request: `put k=7`, `if k is at 3: delete k`.
    pub fn request_words(&self, request: &Request) -> String {
        match request {
            Request::Range(range) => self.read_words(range),
            Request::Txn(txn) => self.transaction_words(*txn),
            Request::LeaseGrant { lease, .. } => format!("granted lease {lease}"),
            Request::LeaseRevoke { lease } => format!("revoked lease {lease}"),
            Request::Compact { revision } => format!("compacted through {revision}"),
            Request::Defragment => "defragmented".to_owned(),
            Request::Other => "sent a request of another kind".to_owned(),
        }
    }

    /// A watch: `watch k from revision 7`.
    pub fn watch_words(&self, watch: &Watch) -> String {
        let from = if watch.revision > 0 { format!(" from revision {}", watch.revision) } else { String::new() };
        if watch.prefix {
            return match self.texts.get(watch.key) {
                "" => format!("watch all keys{from}"),
                prefix => format!("watch {prefix}*{from}"),
            };
        }
        format!("watch {}{from}", self.keys_words(Interval { key: watch.key, end: watch.end }))
    }

    fn read_words(&self, range: &Range) -> String {
        let old = if range.revision > 0 { format!(" at revision {}", range.revision) } else { String::new() };
        format!("read {}{old}", self.keys_words(range.keys))
    }

    /// Keys: `a`, `a to b`, or `a and all keys after it` if the end is `\0`.
    fn keys_words(&self, keys: Interval) -> String {
        let first = self.texts.get(keys.key);
        match keys.end.is_some().then(|| self.texts.get(keys.end)) {
            None => first.to_owned(),
            Some("\0") => format!("{first} and all keys after it"),
            Some(end) => format!("{first} to {end}"),
        }
    }

    fn transaction_words(&self, txn: Txn) -> String {
        let conditions: Vec<String> = txn
            .conditions
            .of(&self.requests.conditions)
            .iter()
            .map(|condition| format!("{} is at {}", self.texts.get(condition.keys.key), condition.number))
            .collect();
        let steps: Vec<String> =
            txn.success.of(&self.requests.steps).iter().take(MAX_STEPS).map(|step| self.step_words(step)).collect();
        match conditions.is_empty() {
            true => steps.join(", "),
            false => format!("if {}: {}", conditions.join(" and "), steps.join(", ")),
        }
    }

    fn step_words(&self, step: &Step) -> String {
        match step {
            Step::Put { key, value, .. } => format!("put {}={}", self.texts.get(*key), self.value_words(*value)),
            Step::Delete(keys) => format!("delete {}", self.keys_words(*keys)),
            Step::Range(range) => self.read_words(range),
            Step::Txn(_) => "another transaction".to_owned(),
            Step::Nothing => "nothing".to_owned(),
        }
    }
}
