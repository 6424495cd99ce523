//! JUnit XML for test reports of CI systems: one test suite per history, with one test case per rule and client.
//!
//! A violation is a failure with the paragraph of the human report. An unknown verdict is an error, since the exit code does not
//! count it as success either. Hazards do not fail; their paragraphs are the output of the case. A rule that checked nothing is
//! one skipped case.

use super::{Part, Report, Sink, human};
use crate::check::{Finding, Kind, Verdict};
use crate::explain::markup::xml;
use crate::explain::{names, words};
use crate::history::ClientId;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use std::io;

/// Paragraphs per case.
const PARAGRAPHS: usize = 20;

/// Writes JUnit XML.
#[derive(Clone, Copy, Debug, Default)]
pub struct Junit;

impl Sink for Junit {
    fn write(&self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let mut document = quick_junit::Report::new("retrograde");
        document.add_test_suites(report.histories.iter().map(suite));
        document.serialize(out).map_err(io::Error::other)
    }
}

fn suite(part: &Part<'_>) -> TestSuite {
    let judgement = part.judgement;
    let mut suite = TestSuite::new(xml(part.name));
    for rule in &judgement.rules {
        let of_rule: Vec<&Finding> = judgement.findings.iter().filter(|f| f.rule == rule.rule).collect();
        let mut cases = 0;
        for client in &judgement.clients {
            let Some((_, verdict)) = client.guarantees.iter().find(|(slug, _)| *slug == rule.rule) else { continue };
            cases += 1;
            let name = names::client(part.history, client.client);
            let findings: Vec<&Finding> = of_rule.iter().copied().filter(|f| f.client == client.client).collect();
            suite.add_test_case(case(part, rule.rule, &name, verdict, &findings));
        }
        // Findings of clients outside the list, and the verdict of a rule without clients.
        let is_listed = |id: ClientId| judgement.clients.iter().any(|client| client.client == id);
        let others: Vec<&Finding> = of_rule.iter().copied().filter(|f| !is_listed(f.client)).collect();
        if cases == 0 || !others.is_empty() || !is_explained(part, rule.rule, &rule.verdict) {
            suite.add_test_case(case(part, rule.rule, "the evidence as a whole", &rule.verdict, &others));
        }
    }
    // An undecided obligation is neither a success nor a failure.
    for rule in &judgement.rules {
        for open in &rule.undecided {
            let mut status = TestCaseStatus::skipped();
            status.set_message(xml(&format!("{} not decided: {}", open.count, open.reason)));
            let mut case = TestCase::new(rule.rule, status);
            case.set_classname("undecided");
            suite.add_test_case(case);
        }
    }
    let verdict = &judgement.verdict;
    // A verdict without a rule that explains it, such as many unreadable lines, must fail too.
    if !matches!(verdict, Verdict::Holds | Verdict::Violated) {
        suite.add_test_case(case(part, "verdict", "the evidence as a whole", verdict, &[]));
    }
    suite
}

/// Whether the cases of its clients include the rule's own verdict.
fn is_explained(part: &Part<'_>, slug: &str, verdict: &Verdict) -> bool {
    let verdicts = part.judgement.clients.iter().flat_map(|c| &c.guarantees).filter(|(rule, _)| *rule == slug);
    let mut words = verdicts.map(|(_, verdict)| verdict.word());
    *verdict == Verdict::Holds || words.any(|word| word == verdict.word())
}

fn case(part: &Part<'_>, rule: &str, client: &str, verdict: &Verdict, findings: &[&Finding]) -> TestCase {
    let mut status = match verdict {
        Verdict::Holds => TestCaseStatus::success(),
        Verdict::Violated => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Verdict::Unknown(_) => TestCaseStatus::non_success(NonSuccessKind::Error),
        Verdict::NotChecked(_) => TestCaseStatus::skipped(),
    };
    let grave: Vec<&Finding> = findings.iter().copied().filter(|f| f.kind != Kind::Hazard).collect();
    let message = grave.first().map_or(verdict.reason(), |finding| finding.summary.as_str());
    if !matches!(status, TestCaseStatus::Success { .. }) && !message.is_empty() {
        status.set_message(xml(message));
        if !matches!(verdict, Verdict::NotChecked(_)) {
            status.set_type(grave.first().map_or(verdict.word(), |finding| finding.kind_word()));
        }
        if !grave.is_empty() {
            status.set_description(xml(&paragraphs(part, &grave)));
        }
    }
    let mut case = TestCase::new(rule, status);
    case.set_classname(xml(client));
    let hazards: Vec<&Finding> = findings.iter().copied().filter(|f| f.kind == Kind::Hazard).collect();
    if !hazards.is_empty() {
        case.set_system_out(xml(&paragraphs(part, &hazards)));
    }
    case
}

fn paragraphs(part: &Part<'_>, findings: &[&Finding]) -> String {
    let mut text = String::from("\n");
    for finding in findings.iter().take(PARAGRAPHS) {
        text += &human::passage(part.history, finding);
        text.push('\n');
    }
    if findings.len() > PARAGRAPHS {
        text += &format!("and {} more\n", words::thousands((findings.len() - PARAGRAPHS) as u64));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn written(decorate: fn(&str) -> String) -> quick_junit::Report {
        let sample = sample::restart(decorate);
        let mut out = Vec::new();
        Junit.write(&sample.report(), &mut out).unwrap();
        quick_junit::Report::deserialize_from_str(&String::from_utf8(out).unwrap()).expect("JUnit XML")
    }

    #[test]
    fn a_violation_is_a_failure_with_the_paragraph_and_every_rule_is_a_case() {
        let report = written(str::to_owned);
        let suite = &report.test_suites[0];
        let of_rule: Vec<&TestCase> =
            suite.test_cases.iter().filter(|c| c.name.as_str() == "monotonic-reads").collect();
        let clients: Vec<&str> = of_rule.iter().map(|case| case.classname.as_ref().unwrap().as_str()).collect();
        let failed = of_rule[clients.iter().position(|name| *name == "system:node:node-1").unwrap()];
        match &failed.status {
            TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, message, description, .. } => {
                assert!(message.as_ref().unwrap().as_str().contains("deleted at revision 39"));
                let text = description.as_ref().unwrap().as_str();
                assert!(text.contains("Why impossible") && text.contains("captures/kubelet-1.jsonl:36"), "{text}");
            }
            other => panic!("{other:?}"),
        }
        assert!(clients.is_sorted_by(|a, b| a < b), "one case a client: {clients:?}");
        assert!(suite.test_cases.iter().any(|case| matches!(case.status, TestCaseStatus::Skipped { .. })));
        assert!(suite.test_cases.iter().any(|case| matches!(case.status, TestCaseStatus::Success { .. })));
    }

    #[test]
    fn names_that_are_hostile_to_xml_are_text() {
        let report = written(|name| format!("]]></failure><{name} a=\"&\u{0}\u{1b}[31m\u{202e}"));
        assert_eq!(report.test_suites.len(), 1);
        let cases = &report.test_suites[0].test_cases;
        assert!(cases.iter().any(|case| case.classname.as_ref().unwrap().as_str().contains("]]></failure><")));
    }
}
