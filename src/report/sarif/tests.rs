use super::*;
use crate::report::sample;

fn log_of(sample: &sample::Sample) -> serde_json::Value {
    serde_json::to_value(log(&sample.report())).unwrap()
}

#[test]
fn a_finding_is_a_result_with_its_facts_as_a_flow() {
    let log = log_of(&sample::restart(str::to_owned));
    insta::assert_snapshot!(serde_json::to_string_pretty(&log["runs"][0]["results"][0]).unwrap());
}

#[test]
fn more_than_code_scanning_keeps_is_left_out_and_said() {
    let mut sample = sample::restart(str::to_owned);
    sample.judgement.findings = sample.judgement.findings.iter().cycle().take(MAX_RESULTS + 7).cloned().collect();
    let log = log_of(&sample);
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), MAX_RESULTS);
    let levels: Vec<&str> = results.iter().map(|result| result["level"].as_str().unwrap()).collect();
    assert!(levels.is_sorted_by_key(|level| ["error", "warning", "note"].iter().position(|l| l == level)));
    let notes = log["runs"][0]["invocations"][0]["toolExecutionNotifications"].to_string();
    assert!(notes.contains("7 more findings are left out"), "{notes}");
    let mut prints: Vec<String> = results.iter().map(|r| r["partialFingerprints"].to_string()).collect();
    prints.sort_unstable();
    prints.dedup();
    assert_eq!(prints.len(), MAX_RESULTS, "alerts of one fingerprint would be one alert");
}

#[test]
fn a_fingerprint_survives_another_recording_of_the_same_thing() {
    let first = log_of(&sample::restart(str::to_owned));
    let mut again = sample::restart(str::to_owned);
    for finding in &mut again.judgement.findings {
        for fact in &mut finding.certificate.facts {
            fact.position.line += 100;
            fact.time.0 += 5_000_000_000;
        }
    }
    let again = log_of(&again);
    let print = |log: &serde_json::Value| log["runs"][0]["results"][0]["partialFingerprints"].clone();
    assert_eq!(print(&first), print(&again));
    assert_ne!(first["runs"][0]["results"][0]["locations"], again["runs"][0]["results"][0]["locations"]);
}

#[test]
fn paths_of_every_system_are_uris() {
    assert_eq!(uri("evidence/a b.log"), "evidence/a%20b.log");
    assert_eq!(uri("/var/log/ä#1.log"), "file:///var/log/%C3%A4%231.log");
    assert_eq!(uri("C:\\logs\\audit.log"), "file:///C:/logs/audit.log");
    assert_eq!(uri("audit:1.log"), "audit%3A1.log");
}
