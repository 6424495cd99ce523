//! Groups hazards by rule and client for reports to people. Every informer begins with `resourceVersion=0`, so a real cluster has
//! hundreds of such hazards, and one line per client suffices. JSON and SARIF keep every finding.

use crate::check::{Finding, Kind};
use crate::history::ClientId;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// The hazards of one rule and one client.
pub struct HazardGroup<'f> {
    /// The hazards, in the order of findings; at least one.
    pub findings: Vec<&'f Finding>,
}

impl<'f> HazardGroup<'f> {
    /// Groups the hazards among these findings. Rules keep their order; within a rule, the client with most occurrences comes
    /// first.
    pub fn all(findings: impl Iterator<Item = &'f Finding>) -> Vec<HazardGroup<'f>> {
        let mut groups: Vec<HazardGroup<'f>> = Vec::new();
        let mut places: FxHashMap<(&str, ClientId), usize> = FxHashMap::default();
        let mut rules: FxHashMap<&str, usize> = FxHashMap::default();
        for finding in findings.filter(|finding| finding.kind == Kind::Hazard) {
            let next = rules.len();
            rules.entry(finding.rule).or_insert(next);
            let place = *places.entry((finding.rule, finding.client)).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.findings.push(finding),
                None => groups.push(HazardGroup { findings: vec![finding] }),
            }
        }
        groups.sort_by_key(|group| (rules[group.first().rule], Reverse(group.times())));
        groups
    }

    /// The hazard that represents the group.
    pub fn first(&self) -> &'f Finding {
        self.findings[0]
    }

    /// Number of occurrences, over all hazards.
    pub fn times(&self) -> u64 {
        self.findings.iter().map(|finding| finding.occurrences.len().max(1) as u64).sum()
    }

    /// Whether all belong to one incarnation of the client.
    pub fn is_of_one_life(&self) -> bool {
        self.findings.iter().all(|finding| finding.incarnation == self.first().incarnation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    /// A finding of the sample with another kind, rule, client and number of occurrences.
    fn finding(kind: Kind, rule: &'static str, client: u32, occurrences: usize) -> Finding {
        let mut finding = sample::restart(str::to_owned).judgement.findings.remove(0);
        let certificate = finding.certificate.clone();
        (finding.kind, finding.rule, finding.client) = (kind, rule, ClientId(client));
        finding.occurrences = vec![certificate; occurrences];
        finding
    }

    #[test]
    fn hazards_of_one_rule_and_client_are_one_group_and_other_findings_are_none() {
        let findings = [
            finding(Kind::Hazard, "unsafe-relist", 1, 2),
            finding(Kind::Violation, "unsafe-first-read", 1, 1),
            finding(Kind::Hazard, "unsafe-first-read", 1, 1),
            finding(Kind::Hazard, "unsafe-first-read", 2, 3),
            finding(Kind::Hazard, "unsafe-first-read", 1, 1),
        ];
        let groups = HazardGroup::all(findings.iter());
        let groups: Vec<_> =
            groups.iter().map(|g| (g.first().rule, g.first().client.0, g.findings.len(), g.times())).collect();
        assert_eq!(
            groups,
            [("unsafe-relist", 1, 1, 2), ("unsafe-first-read", 2, 1, 3), ("unsafe-first-read", 1, 2, 2)]
        );
    }
}
