//! The words of findings about answers that contradict themselves, or contradict another record of the same state.

use super::{Recorded, revision};
use crate::check::Fact;
use crate::history::Symbol;
use crate::order::etcd::{Incoherence, Stay, Teller};

/// The key of an answer that contradicts itself, the clause of its fact, and the summary.
pub(super) fn incoherent(r: &Recorded<'_>, how: Incoherence) -> (Symbol, String, String) {
    let pair = |at: u32| &r.recording.pairs[at as usize];
    let counted = |at: u32| {
        let result = &r.recording.results[at as usize];
        let says = format!("was answered a count of {}, and {} keys", result.count, result.pairs.len);
        let summary =
            format!("The count of an answer is {}, but the number of its keys is {}.", result.count, result.pairs.len);
        (Symbol::NONE, says, summary)
    };
    match how {
        Incoherence::Order { pair: at } => {
            let (key, before) = (r.text(pair(at).key), r.text(pair(at - 1).key));
            let summary = format!("An answer has {key} after {before}, against the order of keys.");
            (pair(at).key, format!("the answer has {before} and then {key}"), summary)
        }
        Incoherence::Count { result } | Incoherence::Withheld { result } => counted(result),
        Incoherence::Version { pair: at } => {
            let found = pair(at);
            let key = r.text(found.key);
            let says =
                format!("was answered that {key} had changed {} times by revision {}", found.version, found.revision);
            let summary =
                format!("An answer says that {key} changed {} times by revision {}.", found.version, found.revision);
            (found.key, says, summary)
        }
    }
}

/// The reason why such an answer is wrong.
pub(super) fn incoherent_reason(how: Incoherence, sure: bool) -> &'static str {
    match (how, sure) {
        (Incoherence::Order { .. }, true) => "etcd answers a read in the order of keys.",
        (Incoherence::Order { .. }, false) => {
            "etcd answers a read in the order of keys. Not proved: a step of a transaction may have asked for another order, which is not recorded"
        }
        (Incoherence::Count { .. }, _) => "An answer counts all keys that it shows, and a single key once.",
        (Incoherence::Withheld { .. }, true) => {
            "An answer shows all keys that it counts, up to the limit of its request."
        }
        (Incoherence::Withheld { .. }, false) => {
            "An answer shows all keys that it counts. Not proved: a step of a transaction may have asked for their \
            count only, which is not recorded"
        }
        (Incoherence::Version { .. }, _) => {
            "A revision changes a key once at most, and the first change of a store makes revision 2."
        }
    }
}

impl Recorded<'_> {
    /// The record that shows a key present or unchanged, as a fact.
    pub(super) fn stay(&self, key: Symbol, stay: Stay) -> Fact {
        let text = self.text(key);
        let says = match stay.changed {
            0 if stay.from == stay.through => format!("shows that {text} existed at revision {}", stay.from),
            0 => format!("shows that {text} existed from revision {} through {}", stay.from, stay.through),
            changed => format!("shows {text} of revision {changed} in the state at revision {}", stay.through),
        };
        let fact = match stay.by {
            Teller::Operation(at) => self.answered(at, format!("{}; {says}", self.asked(at))),
            Teller::Event(watch, e) => self.event(watch, e, says),
        };
        Fact { key: self.cluster.key(key), revision: revision(stay.through), ..fact }
    }
}
