//! The part of a judgement that the user asked for. All evidence counts for the findings; findings outside the focus are left
//! out and counted, and the verdicts are drawn anew.

use super::{Certificate, Finding, Judgement, Kind, Verdict};
use crate::history::History;
use crate::ingest::Time;

/// The focus. An empty field selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Focus {
    /// Findings of clients whose user name contains this.
    pub client: Option<String>,
    /// Findings about objects of this namespace. A finding without a namespace is kept.
    pub namespace: Option<String>,
    /// Findings that end at this time or later.
    pub since: Option<Time>,
    /// Findings that begin at this time or earlier.
    pub until: Option<Time>,
}

impl Focus {
    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        *self == Focus::default()
    }

    fn words(&self) -> String {
        let text = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("--{name} {value}"));
        let time = |name: &str, value: Option<Time>| value.map(|time| format!("--{name} {time}"));
        let parts = [
            text("client", &self.client),
            text("namespace", &self.namespace),
            time("since", self.since),
            time("until", self.until),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    fn has(&self, history: &History, finding: &Finding) -> bool {
        let client = self.client.as_ref().is_none_or(|wanted| {
            finding.client.is_some() && history.name(history.clients[finding.client.index()]).contains(wanted.as_str())
        });
        client && finding.occurrences.iter().any(|occurrence| self.covers(history, occurrence))
    }

    fn covers(&self, history: &History, occurrence: &Certificate) -> bool {
        let namespace = self.namespace.as_ref().is_none_or(|wanted| {
            let keys = occurrence.facts.iter().filter(|fact| fact.key.is_some()).map(|fact| fact.key);
            let scopes = occurrence.facts.iter().filter(|fact| fact.operation.is_some());
            let scopes = scopes.map(|fact| history.operation(fact.operation).scope).filter(|scope| scope.is_some());
            let namespaces: Vec<&str> = keys
                .map(|key| history.name(history.keys[key.index()].namespace))
                .chain(scopes.map(|scope| history.name(history.scopes[scope.index()].namespace)))
                .collect();
            namespaces.iter().any(|name| name == wanted) || namespaces.iter().all(|name| name.is_empty())
        });
        let times = || occurrence.facts.iter().map(|fact| fact.time).filter(|time| time.is_known());
        let since = self.since.is_none_or(|since| times().max().is_none_or(|last| last >= since));
        let until = self.until.is_none_or(|until| times().min().is_none_or(|first| first <= until));
        namespace && since && until
    }
}

impl Judgement {
    /// Leaves out the findings outside the focus, and draws the verdicts anew. Undecided obligations stay undecided, because
    /// nothing shows whether they lie inside.
    #[doc(hidden)]
    pub fn narrow(&mut self, history: &History, focus: &Focus) {
        if focus.is_everything() {
            return;
        }
        let all = std::mem::take(&mut self.findings);
        let (kept, left): (Vec<Finding>, Vec<Finding>) = all.into_iter().partition(|f| focus.has(history, f));
        self.findings = kept;
        // Proofs concern the whole judgement.
        self.proofs.clear();
        for report in &mut self.rules {
            let of_rule = |findings: &[Finding], kind: Kind, reason: &str| {
                let mut found = findings.iter().filter(|f| f.rule == report.rule && f.kind == kind);
                found.any(|f| reason.is_empty() || f.certificate.reason == reason)
            };
            let is_elsewhere = match &report.verdict {
                Verdict::Violated => !of_rule(&self.findings, Kind::Violation, ""),
                Verdict::Unknown(reason) => of_rule(&left, Kind::Suspect, reason),
                Verdict::Holds | Verdict::NotChecked(_) => false,
            };
            if is_elsewhere {
                let mut suspects = self.findings.iter().filter(|f| f.rule == report.rule && f.kind == Kind::Suspect);
                report.verdict = match suspects.next() {
                    Some(suspect) => Verdict::Unknown(suspect.certificate.reason.clone()),
                    None => report.open.clone().map_or(Verdict::Holds, Verdict::Unknown),
                };
            }
        }
        let name = |client: crate::history::ClientId| history.name(history.clients[client.index()]);
        if let Some(wanted) = &focus.client {
            self.clients.retain(|report| name(report.client).contains(wanted.as_str()));
        }
        for report in &mut self.clients {
            let has = |slug: &str| {
                self.findings.iter().any(|f| f.client == report.client && f.rule == slug && f.kind != Kind::Hazard)
            };
            for (slug, verdict) in &mut report.guarantees {
                if *verdict == Verdict::Violated && !has(slug) {
                    *verdict = Verdict::Holds;
                }
            }
            if report.verdict == Verdict::Violated && report.guarantees.iter().all(|(_, v)| *v != Verdict::Violated) {
                report.verdict = Verdict::Holds;
            }
        }
        self.verdict = super::judgement::overall(history, &self.rules);
        let words = focus.words();
        self.unchecked.insert(
            0,
            format!(
                "only {words}: {} findings elsewhere are left out; the revision order rests on all evidence",
                left.len()
            ),
        );
    }
}
