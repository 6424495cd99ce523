//! Arranges findings below the findings that explain them.
//!
//! A finding becomes a child only if its cause is at least as grave, so that no violation hides below a hazard.

use crate::check::Finding;
use crate::explain::names;
use crate::explain::words::thousands;
use crate::history::{ClientId, History};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Clients to name per rule.
const MAX_NAMED_CLIENTS: usize = 6;

/// The forest of causes. A finding is a child only of a cause that is as grave as itself.
pub struct Forest<'f> {
    /// The findings.
    pub findings: &'f [Finding],
    /// Findings without a cause in the forest.
    pub roots: Vec<usize>,
    /// The direct consequences of each finding.
    pub children: FxHashMap<usize, Vec<usize>>,
}

impl<'f> Forest<'f> {
    /// Arranges the findings of a history.
    pub fn of(findings: &'f [Finding]) -> Forest<'f> {
        let by_id: FxHashMap<&str, usize> = findings.iter().enumerate().map(|(at, f)| (f.id.as_str(), at)).collect();
        let parent = |at: usize| {
            let cause = by_id.get(findings[at].consequence_of.as_deref()?).copied()?;
            (cause != at && findings[cause].kind <= findings[at].kind).then_some(cause)
        };
        let mut forest = Forest { findings, roots: Vec::new(), children: FxHashMap::default() };
        for at in 0..findings.len() {
            // A cycle of causes has no root, so its first finding becomes one.
            let mut met = FxHashSet::default();
            let mut above = at;
            while let Some(next) = parent(above).filter(|_| met.insert(above)) {
                above = next;
            }
            let circle = parent(above).is_some();
            match parent(at) {
                Some(cause) if !(circle && met.iter().min() == Some(&at)) => {
                    forest.children.entry(cause).or_default().push(at);
                }
                _ => forest.roots.push(at),
            }
        }
        forest
    }
}

impl Forest<'_> {
    /// Everything below a finding, directly or not, in the order of findings.
    pub fn below(&self, at: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut left = vec![at];
        while let Some(above) = left.pop() {
            for &child in self.children.get(&above).into_iter().flatten() {
                found.push(child);
                left.push(child);
            }
        }
        found.sort_unstable();
        found
    }
}

/// Findings by rule, in their order: number and affected clients.
pub fn by_rule<'f>(findings: impl Iterator<Item = &'f Finding>) -> Vec<(&'f str, u64, BTreeSet<ClientId>)> {
    let mut rules: Vec<(&str, u64, BTreeSet<ClientId>)> = Vec::new();
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    for finding in findings {
        let place = *places.entry(finding.rule).or_insert(rules.len());
        if place == rules.len() {
            rules.push((finding.rule, 0, BTreeSet::new()));
        }
        rules[place].1 += 1;
        rules[place].2.extend(finding.client.is_some().then_some(finding.client));
    }
    rules
}

/// `stale-consistent-read (client-3, client-4 and 5 more), watch-gap (client-9)`.
pub fn counts_by_rule<'f>(history: &History, findings: impl Iterator<Item = &'f Finding>) -> String {
    let rule = |(rule, count, clients): (&str, u64, BTreeSet<ClientId>)| {
        let shown = if clients.len() > MAX_NAMED_CLIENTS { MAX_NAMED_CLIENTS - 1 } else { MAX_NAMED_CLIENTS };
        let names: Vec<String> = clients.iter().take(shown).map(|client| names::client(history, *client)).collect();
        match clients.len() {
            0 => format!("{rule} ({})", thousands(count)),
            n if n > shown => format!("{rule} ({} and {} more)", names.join(", "), thousands((n - shown) as u64)),
            _ => format!("{rule} ({})", names.join(", ")),
        }
    };
    by_rule(findings).into_iter().map(rule).collect::<Vec<_>>().join(", ")
}
