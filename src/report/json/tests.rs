use super::Json;
use crate::check::Verdict;
use crate::model::committed_schema::{Contract, committed_schema};
use crate::report::document::Document;
use crate::report::sample;
use crate::report::{Report, Sink};
use serde_json::Value;

fn text(report: &Report<'_>) -> String {
    let mut out = Vec::new();
    Json.write(report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn reports_are_valid_by_the_committed_schema() {
    let schema = committed_schema::<Document<'_>>("docs/report.schema.json", Contract::Json);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut empty = sample::restart(str::to_owned);
    empty.history = crate::history::History::default();
    empty.judgement = sample::empty_judgement(Verdict::NotChecked("no evidence".to_owned()));
    let mut bare = sample::restart(str::to_owned);
    for finding in &mut bare.judgement.findings {
        finding.client = crate::history::ClientId::NONE;
        finding.incarnation = crate::history::IncarnationId::NONE;
        finding.key = crate::history::KeyId::NONE;
        for fact in &mut finding.certificate.facts {
            *fact = crate::check::Fact { time: crate::ingest::Time::UNKNOWN, ..fact.clone() };
            fact.revision = crate::history::Revision::NONE;
            fact.audit_id = crate::history::AuditId::None;
            fact.incarnation = crate::history::IncarnationId::NONE;
            fact.uid = crate::history::Symbol::NONE;
        }
    }
    let hostile = sample::restart(|text| format!("{text}\u{1b}\"\\\u{202e}"));
    for sample in [&empty, &bare, &hostile, &sample::restart(str::to_owned)] {
        let document: Value = serde_json::from_str(&text(&sample.report())).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path)).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    let none: Value = serde_json::from_str(&text(&Report { histories: Vec::new() })).unwrap();
    assert!(validator.is_valid(&none));
    assert!(!validator.is_valid(&serde_json::json!({"schema": "retrograde/report/1"})));
}

#[test]
fn fields_keep_their_order_and_revisions_are_texts() {
    let mut sample = sample::restart(str::to_owned);
    sample.judgement.findings.truncate(1);
    sample.judgement.findings[0].occurrences.truncate(1);
    sample.history.problems.truncate(1);
    sample.judgement.findings[0].revisions.push(crate::history::Revision::new(u128::MAX));
    insta::assert_snapshot!(text(&sample.report()));
}

#[test]
fn user_names_stand_verbatim_and_yet_harmless() {
    let sample = sample::restart(|text| format!("{text}\u{1b}\u{9b}\u{7f}\u{202e}\u{e0041}é"));
    let text = text(&sample.report());
    assert!(!text.chars().any(|c| c != '\n' && crate::explain::terminal_text::acts(c)));
    let document: Value = serde_json::from_str(&text).unwrap();
    let client = &document["histories"][0]["findings"][0]["client"];
    assert_eq!(*client, "system:node:node-1\u{1b}\u{9b}\u{7f}\u{202e}\u{e0041}é");
}
