use super::Human;
use crate::check::{BrokenBy, Kind, NO_EVIDENCE, RuleReport, Verdict};
use crate::explain::terminal_text::width;
use crate::history::ClientId;
use crate::history::Nature;
use crate::report::page::Look;
use crate::report::sample::{self, Sample};
use crate::report::{Part, Report, Sink};

fn text(report: &Report<'_>, look: Look) -> String {
    let mut out = Vec::new();
    Human::new(look).write(report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn plain(sample: &Sample) -> String {
    text(&sample.report(), Look::default())
}

#[test]
fn a_violation_is_told_with_its_proof_its_consequence_and_its_prevention() {
    insta::assert_snapshot!(plain(&sample::restart(str::to_owned)));
}

#[test]
fn a_history_in_order_says_what_was_checked() {
    let mut sample = sample::restart(str::to_owned);
    sample.judgement.verdict = Verdict::Holds;
    sample.judgement.findings.clear();
    sample.judgement.rules.retain(|r| r.verdict == Verdict::Holds);
    sample.judgement.clients.retain(|c| c.verdict == Verdict::Holds);
    sample.history.problems.clear();
    sample.history.files.iter_mut().for_each(|f| f.problems = 0);
    insta::assert_snapshot!(plain(&sample));
}

#[test]
fn nothing_to_judge_is_unknown_and_says_so() {
    let mut sample = sample::restart(str::to_owned);
    sample.history = crate::history::History::default();
    sample.judgement = sample::empty_judgement(Verdict::NotChecked("no file is evidence".to_owned()));
    insta::assert_snapshot!(plain(&sample));
}

#[test]
fn several_histories_have_a_section_each() {
    let (bad, mut good) = (sample::restart(str::to_owned), sample::restart(str::to_owned));
    good.judgement = sample::empty_judgement(Verdict::Holds);
    let part = |name, sample: &'static Sample| Part {
        name,
        nature: Nature::Etcd,
        history: &sample.history,
        judgement: &sample.judgement,
    };
    let report =
        Report { histories: vec![part("one", Box::leak(Box::new(bad))), part("two", Box::leak(Box::new(good)))] };
    insta::assert_snapshot!(text(&report, Look::default()));
}

#[test]
fn many_findings_of_one_rule_are_folded_and_verbose_unfolds_them() {
    let mut sample = sample::restart(str::to_owned);
    let violation = sample.judgement.findings[0].clone();
    let hazard = sample.judgement.findings[3].clone();
    sample.judgement.findings.clear();
    for n in 0..30 {
        sample.judgement.findings.push(crate::check::Finding { id: format!("v{n}"), ..violation.clone() });
    }
    // Hazards of three clients, and of an unknown one.
    let clients = [ClientId(0), ClientId(1), ClientId(2), ClientId::NONE];
    for n in 0..9 {
        let client = clients[n % clients.len()];
        sample.judgement.findings.push(crate::check::Finding { id: format!("h{n}"), client, ..hazard.clone() });
    }
    let short = plain(&sample);
    assert_eq!(short.matches("VIOLATION").count(), 20, "{short}");
    assert_eq!(short.matches("Why impossible").count(), 5);
    assert_eq!((short.matches("HAZARD").count(), short.matches(", 3 times").count()), (3, 1));
    assert!(short.contains("30 violations, 4 hazards"), "{short}");
    assert!(short.contains("and 10 more of monotonic-reads") && short.contains("and 1 more of unsafe-first-read"));
    let long = text(&sample.report(), Look { verbose: true, ..Look::default() });
    assert_eq!(long.matches("Why impossible").count(), 30);
    assert_eq!(long.matches("HAZARD").count(), 9);
}

#[test]
fn no_line_is_wider_than_the_page_however_long_the_names_are() {
    for decorate in [
        (|text| format!("{text}-{}", "long-name-with-parts-".repeat(12))) as fn(&str) -> String,
        |text| format!("{text}{}", "x".repeat(253)),
        |text| format!("{text} {}", "東京".repeat(60)),
    ] {
        let mut sample = sample::restart(decorate);
        for finding in &mut sample.judgement.findings {
            finding.summary = decorate(&finding.summary);
            finding.certificate.facts.iter_mut().for_each(|f| f.says = decorate(&f.says));
            finding.prevention.iter_mut().for_each(|p| p.request = decorate(&p.request));
        }
        for verbose in [false, true] {
            let text = text(&sample.report(), Look { verbose, ..Look::default() });
            for line in text.lines() {
                assert!(width(line) <= 100, "{} columns: {line}", width(line));
            }
        }
    }
}

#[test]
fn no_name_of_the_evidence_reaches_the_terminal_raw() {
    let hostile = |text: &str| format!("{text}\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\r\n\u{200b}");
    let mut sample = sample::restart(hostile);
    sample.judgement.findings.iter_mut().for_each(|f| {
        f.summary = hostile(&f.summary);
        f.refuted_by = hostile(&f.refuted_by);
        f.certificate.reason = hostile(&f.certificate.reason);
        f.certificate.facts.iter_mut().for_each(|fact| fact.says = hostile(&fact.says));
    });
    let text = text(&sample.report(), Look { verbose: true, ..Look::default() });
    assert!(text.contains("\\u{1b}]0;owned\\u{7}"));
    for c in text.chars().filter(|c| *c != '\n') {
        assert!(!c.is_control() && !matches!(c, '\u{202e}' | '\u{200b}'), "{c:?}");
    }
}

#[test]
fn a_violation_never_hides_below_a_hazard_and_a_circle_of_causes_loses_nothing() {
    let mut sample = sample::restart(str::to_owned);
    let finding = |id: &str, kind, cause: &str| {
        let mut finding = sample::finding(id, "watch-gap", kind, BrokenBy::Server, &format!("This is {id}."));
        finding.consequence_of = Some(cause.to_owned());
        finding
    };
    sample.judgement.findings = vec![
        finding("v1", Kind::Violation, "h1"),
        finding("v2", Kind::Violation, "v3"),
        finding("v3", Kind::Violation, "v2"),
        finding("v4", Kind::Violation, "v4"),
        finding("v5", Kind::Violation, "absent"),
        finding("v6", Kind::Violation, "v3"),
        finding("h1", Kind::Hazard, "v2"),
    ];
    let text = plain(&sample);
    for id in ["v1", "v2", "v3", "v4", "v5", "v6", "h1"] {
        assert_eq!(text.matches(&format!("This is {id}.")).count(), 1, "{id}: {text}");
    }
    assert!(text.contains("\nVIOLATION  watch-gap"));
}

/// A report with this many rules without evidence.
fn lacking(rules: usize) -> Sample {
    let slugs = crate::check::RULES.iter().map(|rule| rule.slug);
    let mut sample = sample::restart(str::to_owned);
    sample.judgement = sample::empty_judgement(Verdict::Holds);
    sample.judgement.rules = slugs
        .take(rules)
        .map(|rule| RuleReport {
            rule,
            verdict: Verdict::NotChecked(format!("{NO_EVIDENCE}: of {rule}")),
            checked: 0,
            open: None,
            undecided: Vec::new(),
        })
        .collect();
    sample
}

#[test]
fn rules_without_evidence_are_named_while_they_are_few_and_counted_where_they_are_many() {
    let (few, many) = (lacking(8), lacking(9));
    let named = |text: &str, sample: &Sample| sample.judgement.rules.iter().all(|rule| text.contains(rule.rule));
    assert!(named(&plain(&few), &few), "{}", plain(&few));
    let short = plain(&many);
    assert!(short.contains("- 9 rules: the evidence they need is absent"), "{short}");
    assert!(many.judgement.rules.iter().all(|rule| !short.contains(rule.rule)), "{short}");
    assert!(named(&text(&many.report(), Look { verbose: true, ..Look::default() }), &many));
}

#[test]
fn why_a_rule_is_undecided_is_said_once() {
    let mut sample = sample::restart(str::to_owned);
    let why = "no clock bounds the two servers";
    assert!(plain(&sample).contains(&format!("read-your-writes: {why}")));
    let mut suspect = sample::finding("s1", "read-your-writes", Kind::Suspect, BrokenBy::Server, "It may have been.");
    suspect.certificate.reason = why.to_owned();
    sample.judgement.findings.push(suspect);
    let text = plain(&sample);
    assert!(text.contains("- read-your-writes: see the suspects"), "{text}");
    let undecided = text.split("\nUndecided\n").nth(1).expect("a section");
    assert!(!undecided.split("\nNot checked").next().unwrap().contains(why), "{text}");
}
