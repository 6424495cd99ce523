//! From results of rules to verdicts: per rule, per client, and overall. `docs/verdicts.md` has the rules. It also links findings to
//! their causes and collects the evidence that no rule could check.

use super::options::NO_EVIDENCE;
use super::rule_result::EndedRule;
use super::{ClientReport, CoverageReport, Finding, Group, Judgement, Kind, RULES, Rule, RuleReport, Verdict};
use crate::history::Nature;
#[cfg(feature = "container")]
use crate::history::snapshot::beside;
use crate::history::{ClientId, ClockId, History, IdentifiedBy, IncarnationId, KeyId, Marks, OperationId, Verb};
use crate::order::{Order, Provenance};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The judgement of a history without any decision.
pub fn undecided(why: &str) -> Judgement {
    let verdict = || Verdict::Unknown(why.to_owned());
    Judgement {
        verdict: verdict(),
        clients: Vec::new(),
        rules: RULES.iter().map(|rule| unjudged(rule, verdict())).collect(),
        findings: Vec::new(),
        coverage: Vec::new(),
        unchecked: Vec::new(),
        problems: Vec::new(),
        proofs: Vec::new(),
    }
}

/// The report of a rule that did not run to its end.
pub(super) fn unjudged(rule: &Rule, verdict: Verdict) -> RuleReport {
    RuleReport { rule: rule.slug, verdict, checked: 0, open: None, undecided: Vec::new() }
}

pub(super) fn rule_verdict(rule: &Rule, result: &EndedRule, lost: Option<&str>) -> Verdict {
    let has = |kind| result.findings.iter().find(|f| f.kind == kind);
    if has(Kind::Violation).is_some() {
        return Verdict::Violated;
    }
    if let Some(suspect) = has(Kind::Suspect) {
        return Verdict::Unknown(suspect.certificate.unproved().to_owned());
    }
    if let Some(open) = &result.open {
        return Verdict::Unknown(open.clone());
    }
    if result.checked == 0 {
        return Verdict::NotChecked(format!("{NO_EVIDENCE}: {}", rule.needs));
    }
    match lost {
        Some(lost) => Verdict::Unknown(lost.to_owned()),
        None => Verdict::Holds,
    }
}

/// The reason why too much input was lost for anything to hold, if it was.
pub fn lost_input(history: &History) -> Option<String> {
    let file = history.files.iter().find(|f| f.format.is_some() && f.too_many_problems())?;
    let unit = file.unit();
    Some(format!("{} of {} {unit}s of {} could not be used", file.problems, file.lines.max(file.problems), file.path))
}

/// The overall verdict.
pub(super) fn overall(history: &History, rules: &[RuleReport]) -> Verdict {
    if rules.iter().any(|r| r.verdict == Verdict::Violated) {
        return Verdict::Violated;
    }
    if let Some(lost) = lost_input(history) {
        return Verdict::Unknown(lost);
    }
    if history.is_empty() {
        return Verdict::Unknown("no evidence could be read".to_owned());
    }
    for report in rules {
        if let Verdict::Unknown(reason) = &report.verdict {
            return Verdict::Unknown(format!("{}: {reason}", report.rule));
        }
    }
    if rules.iter().all(|r| matches!(r.verdict, Verdict::NotChecked(_))) {
        return Verdict::Unknown("no rule met an obligation in this evidence".to_owned());
    }
    // A file that could not be opened, or ends early, makes the verdict unknown even if few lines are lost.
    if let Some(problem) = history.problems.iter().find(|p| p.line == 0) {
        return Verdict::Unknown(format!("{}: expected {}, found {}", problem.path, problem.expected, problem.found));
    }
    Verdict::Holds
}

/// Links each finding to the finding that explains it: a finding of a rule in `causes` that shares an operation, or key and
/// process.
pub(super) fn explain_consequences(findings: &mut [Finding]) {
    let mut by_operation: FxHashMap<(&'static str, OperationId), usize> = FxHashMap::default();
    let mut by_key: FxHashMap<(&'static str, KeyId, ClientId), usize> = FxHashMap::default();
    for (index, finding) in findings.iter().enumerate() {
        for fact in finding.occurrences.iter().flat_map(|c| &c.facts).filter(|f| f.operation.is_some()) {
            by_operation.entry((finding.rule, fact.operation)).or_insert(index);
        }
        if finding.key.is_some() {
            by_key.entry((finding.rule, finding.key, finding.client)).or_insert(index);
        }
    }
    let cause_of = |index: usize, finding: &Finding| -> Option<usize> {
        let rule = crate::check::registry::find(finding.rule)?;
        // If two rules name each other, the surer finding is the cause; of two equal ones, that of the earlier rule.
        let rank = |finding: &Finding| (finding.kind, RULES.iter().position(|r| r.slug == finding.rule));
        let fits = |&cause: &usize| {
            let mutual =
                crate::check::registry::find(findings[cause].rule).is_some_and(|r| r.causes.contains(&finding.rule));
            let before = if mutual { rank(&findings[cause]) < rank(finding) } else { true };
            cause != index && findings[cause].kind <= finding.kind && before
        };
        rule.causes.iter().find_map(|&slug| {
            let shared = finding.certificate.facts.iter().filter(|f| f.operation.is_some());
            let mut shared = shared.filter_map(|f| by_operation.get(&(slug, f.operation)).copied());
            shared
                .find(|cause| fits(cause))
                .or_else(|| by_key.get(&(slug, finding.key, finding.client)).copied().filter(fits))
        })
    };
    let mut causes: Vec<Option<usize>> = findings.iter().enumerate().map(|(index, f)| cause_of(index, f)).collect();
    explain_faults(findings, &mut causes);
    let ids: Vec<String> = findings.iter().map(|f| f.id.clone()).collect();
    for (finding, cause) in findings.iter_mut().zip(causes) {
        finding.consequence_of = cause.map(|cause| ids[cause].clone());
    }
}

/// The surest finding of the earliest rule explains the other findings of its root cause. A finding of several root causes is
/// a consequence only if another finding explains each of them.
fn explain_faults(findings: &mut [Finding], causes: &mut [Option<usize>]) {
    for finding in findings.iter_mut() {
        finding.faults.sort_unstable();
        finding.faults.dedup();
    }
    let rank = |at: usize| {
        let finding = &findings[at];
        let place = RULES.iter().position(|rule| rule.slug == finding.rule);
        (finding.kind, place, finding.revisions.first().copied(), finding.client, finding.id.as_str())
    };
    let mut order: Vec<usize> = (0..findings.len()).filter(|at| !findings[*at].faults.is_empty()).collect();
    order.sort_by(|a, b| rank(*a).cmp(&rank(*b)));
    let mut first: FxHashMap<u32, usize> = FxHashMap::default();
    for at in order {
        let of_fault = findings[at].faults.iter().map(|fault| *first.entry(*fault).or_insert(at));
        let explained: Vec<usize> = of_fault.collect();
        if explained.iter().all(|cause| *cause != at) {
            causes[at] = explained.first().copied();
        }
    }
}

pub(super) fn order_findings(findings: &mut [Finding]) {
    let place = |slug: &str| RULES.iter().position(|r| r.slug == slug).unwrap_or(usize::MAX);
    findings.sort_by(|a, b| {
        (a.kind, place(a.rule), a.client, &a.revisions, &a.id).cmp(&(
            b.kind,
            place(b.rule),
            b.client,
            &b.revisions,
            &b.id,
        ))
    });
}

pub(super) fn client_reports(
    history: &History,
    order: &Order,
    findings: &[Finding],
    per_client: &FxHashMap<(ClientId, usize), u64>,
    rules: &[RuleReport],
    lost: Option<&str>,
) -> Vec<ClientReport> {
    let mut lives: BTreeMap<ClientId, Vec<IncarnationId>> = BTreeMap::new();
    for (index, life) in history.incarnations.iter().enumerate() {
        if life.identified_by != IdentifiedBy::File || !history.name(history.clients[life.client.index()]).is_empty() {
            lives.entry(life.client).or_default().push(IncarnationId(index as u32));
        }
    }
    let mut by_client: FxHashMap<(ClientId, &str), Vec<&Finding>> = FxHashMap::default();
    for finding in findings {
        by_client.entry((finding.client, finding.rule)).or_default().push(finding);
    }
    let mut reports: Vec<ClientReport> = lives
        .into_iter()
        .map(|(client, incarnations)| {
            let mut guarantees = Vec::new();
            let mut verdict = Verdict::NotChecked("no observation of this client is in the evidence".to_owned());
            for (index, rule) in RULES.iter().enumerate() {
                let of_rule = by_client.get(&(client, rule.slug)).map_or(&[][..], Vec::as_slice);
                let checked = per_client.get(&(client, index)).copied().unwrap_or(0);
                if of_rule.is_empty() && checked == 0 {
                    continue;
                }
                let of_client = if of_rule.iter().any(|f| f.kind == Kind::Violation) {
                    Verdict::Violated
                } else if let Some(suspect) = of_rule.iter().find(|f| f.kind == Kind::Suspect) {
                    Verdict::Unknown(suspect.certificate.unproved().to_owned())
                } else if let Some(lost) = lost {
                    Verdict::Unknown(lost.to_owned())
                } else if rule.group == Group::Operations
                    && let Verdict::Unknown(open) = &rules[index].verdict
                {
                    // One order explains all clients, so an open order is open for each.
                    Verdict::Unknown(open.clone())
                } else {
                    Verdict::Holds
                };
                if rule.group.is_about_observations() {
                    verdict = worse(verdict, &of_client);
                }
                guarantees.push((rule.slug, of_client));
            }
            let mut processes: Vec<u32> = incarnations.iter().map(|life| order.sessions.index_of(*life)).collect();
            processes.sort_unstable();
            processes.dedup();
            ClientReport { client, incarnations, processes: processes.len(), verdict, guarantees }
        })
        .collect();
    reports.sort_by(|a, b| {
        let name = |c: ClientId| history.name(history.clients[c.index()]);
        name(a.client).cmp(name(b.client))
    });
    reports
}

fn worse(a: Verdict, b: &Verdict) -> Verdict {
    let rank = |v: &Verdict| match v {
        Verdict::NotChecked(_) => 0,
        Verdict::Holds => 1,
        Verdict::Unknown(_) => 2,
        Verdict::Violated => 3,
    };
    if rank(b) > rank(&a) { b.clone() } else { a }
}

pub(super) fn coverage(history: &History, order: &Order) -> Vec<CoverageReport> {
    let mut reports: Vec<CoverageReport> = Vec::new();
    for span in order.timeline.spans() {
        let (domain, scope) = if span.scope.is_some() {
            let domain = history.domain_of(history.scopes[span.scope.index()].resource);
            (history.domains[domain.index()].clone(), history.scope_name(span.scope))
        } else {
            ("default".to_owned(), String::new())
        };
        let shown_by = span.provenance.word().to_owned();
        // Intervals of one scope that meet or overlap are joined.
        match reports.last_mut() {
            Some(last)
                if last.scope == scope
                    && last.domain == domain
                    && last.shown_by == shown_by
                    && span.after <= last.through =>
            {
                last.through = last.through.max(span.through);
            }
            _ => reports.push(CoverageReport { domain, scope, after: span.after, through: span.through, shown_by }),
        }
    }
    reports
}

/// The evidence that no rule could check, with reasons.
pub(super) fn unchecked_evidence(history: &History, order: &Order) -> Vec<String> {
    let mut reasons = Vec::new();
    let gone: Vec<_> = history.inputs.iter().filter(|input| input.gone && input.identity.is_some()).collect();
    if let Some(first) = gone.first() {
        reasons.push(format!(
            "{} of {} files of evidence changed or are gone since they were packed ({}): their lines cannot be shown, \
            and questions that need a body stay open",
            gone.len(),
            history.inputs.len(),
            first.shown
        ));
    }
    #[cfg(feature = "container")]
    for why in beside::WHY {
        let mut left = history.files.iter().filter(|file| file.ignored.as_deref() == Some(why)).map(|file| &file.path);
        if let Some(first) = left.next() {
            let more = left.count();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            reasons.push(format!("{first}{more}: {why}"));
        }
    }
    let reads = history.operations.all_of_verbs(&[Verb::List, Verb::Get]);
    let silent = reads.filter(|(_, o)| o.is_answered() && !o.marks.has(Marks::ANSWER_BODY));
    let count = silent.count();
    if count > 0 {
        let reads = if count == 1 { "1 read was".to_owned() } else { format!("{count} reads were") };
        reasons.push(format!("{reads} recorded without the answer (audit level below RequestResponse)"));
    }
    let watches = history.operations.of_verbs(&[Verb::Watch]).filter(|(id, _)| history.stream_of(*id).is_none());
    let count = watches.count();
    if count > 0 {
        let watches = if count == 1 { "1 watch was".to_owned() } else { format!("{count} watches were") };
        reasons.push(format!("{watches} recorded without events (audit logs never hold them; record a capture)"));
    }
    let cut = history.operations.of_marks(Marks::TRUNCATED).count();
    if cut > 0 {
        let events = if cut == 1 { "1 audit event" } else { &format!("{cut} audit events") };
        reasons.push(format!("{events} lost bodies to truncation"));
    }
    if let Some(count) = order.clocks.unrelated() {
        reasons.push(format!(
            "{count} clocks are too many to bound against each other: times compare only inside each (name them with --source, or declare --clock-skew)"
        ));
    }
    reasons.extend(several_servers(history, order));
    for step in order.clocks.steps() {
        let place = step.at.map_or(String::new(), |at| format!(" ({}:{})", history.file_name(at.file), at.line));
        reasons.push(format!(
            "clock {} stepped or drifted by at least {} ms{place}: its times prove no order",
            history.clock_name(step.clock),
            step.by as f64 / 1e6
        ));
    }
    if history.nature() == Nature::Etcd {
        return reasons;
    }
    if history.nature() == Nature::Operations {
        if history.calls().falls_back > 0 {
            reasons.push(format!(
                "times of the log fall back by up to {:.3} ms: an event counts as earlier only if lines and times agree",
                history.calls().falls_back as f64 / 1e6
            ));
        }
        return reasons;
    }
    if order.timeline.spans().iter().all(|s| s.provenance != Provenance::Witness) && !history.is_empty() {
        reasons
            .push("no etcd witness: changes that no recorded client wrote, read or watched are not known".to_owned());
    }
    let lifetimes = order.lifetimes(history);
    if let Some(&uid) = lifetimes.twice().first() {
        let bearers = lifetimes.all().iter().filter(|life| life.uid == uid).take(2);
        let names: Vec<_> = bearers.map(|life| history.key_name(life.key)).collect();
        reasons.push(format!(
            "uids that two objects have, although no server gives one uid twice: {}, such as {} of {}; no rule judges \
            lives that only these uids identify",
            lifetimes.twice().len(),
            history.name(uid),
            names.join(" and ")
        ));
    }
    reasons
}

/// Logs that may be of several servers: one reason for those with a bound on the offset of their servers, and one for the
/// others.
fn several_servers(history: &History, order: &Order) -> Vec<String> {
    let clocks = (0..history.clocks.len() as u32).map(ClockId);
    let several: Vec<_> = clocks.filter_map(|clock| Some((clock, order.clocks.several(clock)?))).collect();
    let reason = |is_bounded: bool| {
        let mut logs = several.iter().filter(|(_, apart)| apart.is_some() == is_bounded);
        let (first, apart) = logs.next()?;
        let (more, apart) = logs.fold((0, *apart), |(count, widest), (_, apart)| (count + 1, widest.max(*apart)));
        let bound = match apart {
            Some(apart) => format!("their clocks differ by no more than {:.3} s", apart as f64 / 1e9),
            None => "nothing bounds the offset of their clocks".to_owned(),
        };
        let first = history.clock_name(*first);
        Some(match more {
            0 => format!(
                "{first}: it may be of several servers, and {bound} (if it is of one, declare --source 'FILE:server=NAME')"
            ),
            more => format!(
                "{first} and {more} more: each may be of several servers, and {bound} (if one is of one, declare \
                --source 'FILE:server=NAME')"
            ),
        })
    };
    let is_bounded = several.first().is_some_and(|(_, apart)| apart.is_some());
    [is_bounded, !is_bounded].into_iter().filter_map(reason).collect()
}

#[cfg(test)]
mod tests {
    use crate::check::testing::trial::drawn;
    use crate::check::{Options, judge};
    use crate::order::{Order, OrderOptions};

    #[test]
    fn a_uid_of_two_objects_is_told() {
        let history = drawn(include_str!("../../histories/traps/one-uid-of-two-objects.sketch"));
        let order = Order::derive(&history, &OrderOptions::default());
        let unchecked = judge(&history, &order, &Options::default()).unchecked;
        let uids: Vec<_> = unchecked.iter().filter(|text| text.contains("two objects have")).collect();
        assert_eq!(uids.len(), 1, "{unchecked:?}");
        assert!(uids[0].contains("u1 of pods default/web and services default/web"), "{uids:?}");
    }
}
