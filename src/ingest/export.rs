//! What the envelopes of one file say about all of its events, for `retrograde show` and reports.

use super::envelope::{Envelope, Origin};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Names of one kind to keep for a file; others are only counted.
const MOST_NAMES: usize = 256;

/// The envelopes of a file and what they say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// Names of the envelopes, each with what it cannot show.
    pub envelopes: BTreeMap<String, String>,
    /// Clusters, up to a limit.
    pub clusters: BTreeSet<String>,
    /// API servers, up to a limit.
    pub servers: BTreeSet<String>,
    /// Entries that are no audit events, by kind.
    pub others: BTreeMap<String, u64>,
    /// Events with times without a zone, which are read as UTC.
    pub without_zone: u64,
}

impl Export {
    /// Whether the file is no export.
    pub fn is_empty(&self) -> bool {
        *self == Export::default()
    }

    /// Notes an envelope and a writer that it names.
    pub(super) fn note(&mut self, envelope: &Envelope, origin: &Origin<'_>) {
        if !self.envelopes.contains_key(envelope.name) {
            self.envelopes.insert(envelope.name.to_owned(), envelope.lacks.to_owned());
        }
        for (names, name) in [(&mut self.clusters, &origin.cluster), (&mut self.servers, &origin.server)] {
            if !name.is_empty() && names.len() < MOST_NAMES && !names.contains(&**name) {
                names.insert(name.to_string());
            }
        }
    }

    /// Counts an entry that is no audit event.
    pub(super) fn other(&mut self, kind: &'static str) {
        match self.others.get_mut(kind) {
            Some(count) => *count += 1,
            None => {
                self.others.insert(kind.to_owned(), 1);
            }
        }
    }

    /// Adds what another part of the file says.
    pub(super) fn add(&mut self, part: Export) {
        self.envelopes.extend(part.envelopes);
        self.without_zone += part.without_zone;
        for (kind, count) in part.others {
            *self.others.entry(kind).or_default() += count;
        }
        for (names, more) in [(&mut self.clusters, part.clusters), (&mut self.servers, part.servers)] {
            for name in more {
                if names.len() < MOST_NAMES {
                    names.insert(name);
                }
            }
        }
    }
}
