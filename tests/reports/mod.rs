//! Every report format, over every incident: the output conforms to its standard.

mod trace;

use retrograde::check::{Judgement, Kind};
use retrograde::history::{self, Domains, History};
use retrograde::ingest::{self, ReadOptions};
use retrograde::report::{Format, Look, Part, Report};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Each variant of each incident: its name, history and judgement.
fn incidents() -> Vec<(String, History, Judgement)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("histories/incidents");
    let mut found = Vec::new();
    for incident in std::fs::read_dir(root).unwrap() {
        for variant in std::fs::read_dir(incident.unwrap().path()).unwrap() {
            let path = variant.unwrap().path();
            let inputs = ingest::inputs(std::slice::from_ref(&path), &[], &[]).unwrap();
            let history = history::load(inputs, &ReadOptions::default(), &Domains::default(), &());
            let judgement = retrograde::judge(&history, &retrograde::Options::default());
            found.push((path.display().to_string(), history, judgement));
        }
    }
    assert!(found.len() >= 20, "{}", found.len());
    found
}

fn written(format: &str, history: &History, judgement: &Judgement) -> Vec<u8> {
    let format = Format::named(format).expect("a format of reports");
    let report = Report { histories: vec![Part::of(history, judgement)] };
    let mut out = Vec::new();
    report.write(format, Look::default(), &mut out).unwrap();
    out
}

#[test]
fn sarif_is_valid_by_the_schema_of_oasis_and_points_at_lines_that_exist() {
    let schema = serde_json::from_str(include_str!("sarif-2.1.0.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for (name, history, judgement) in incidents() {
        let log: serde_json::Value = serde_json::from_slice(&written("sarif", &history, &judgement)).unwrap();
        let errors: Vec<String> = schema.iter_errors(&log).map(|e| format!("{} at {}", e, e.instance_path)).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        let results = log["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.len(), judgement.findings.len(), "{name}");
        for result in results {
            assert!(!result["codeFlows"][0]["threadFlows"][0]["locations"].as_array().unwrap().is_empty());
            let place = &result["locations"][0]["physicalLocation"];
            let uri =
                place["artifactLocation"]["uri"].as_str().unwrap().strip_prefix("file://").expect("an absolute path");
            let text = std::fs::read_to_string(uri).unwrap_or_else(|error| panic!("{uri}: {error}"));
            let line = place["region"]["startLine"].as_u64().unwrap() as usize;
            assert!((1..=text.lines().count()).contains(&line), "{uri}:{line}");
        }
    }
}

#[test]
fn junit_has_as_many_failures_as_clients_have_violated_rules() {
    for (name, history, judgement) in incidents() {
        let xml = String::from_utf8(written("junit", &history, &judgement)).unwrap();
        let report = quick_junit::Report::deserialize_from_str(&xml).unwrap_or_else(|error| panic!("{name}: {error}"));
        let failures = report.test_suites.iter().map(|suite| suite.failures).sum::<usize>();
        let violated = judgement.clients.iter().flat_map(|client| &client.guarantees);
        let violated = violated.filter(|(_, verdict)| verdict.word() == "violated").count();
        assert!(failures >= violated, "{name}: {failures} failures, {violated} violated");
        assert_eq!(failures > 0, judgement.verdict.word() == "violated", "{name}");
        for rule in &judgement.rules {
            assert!(xml.contains(&format!("name=\"{}\"", rule.rule)), "{name}: {} is no test case", rule.rule);
        }
    }
}

#[test]
fn a_trace_has_a_track_for_every_event_and_an_end_for_every_slice() {
    for (name, history, judgement) in incidents() {
        let trace =
            trace::read(&written("perfetto", &history, &judgement)).unwrap_or_else(|why| panic!("{name}: {why}"));
        let operations = history.operations.iter().filter(|o| o.invoke.is_known()).count();
        assert!(trace.slices > 0 && trace.slices <= operations, "{name}: {} of {operations}", trace.slices);
        assert!(judgement.findings.is_empty() || trace.flows > 0, "{name}");
    }
}

#[test]
fn every_format_writes_every_incident_and_nobody_s_secret() {
    for (name, history, judgement) in incidents() {
        for format in Format::ALL {
            let out = written(format.name(), &history, &judgement);
            assert!(!out.is_empty(), "{name}: {}", format.name());
        }
        let text = String::from_utf8(written("markdown", &history, &judgement)).unwrap();
        assert!(text.starts_with(&format!("## retrograde: {}\n", judgement.verdict.word())), "{name}");
    }
}

#[test]
fn graphviz_reads_every_picture_and_has_a_node_for_every_fact() {
    let Some(dot) = crate::support::program::program("dot") else { return };
    for (name, history, judgement) in incidents() {
        let mut dot = Command::new(&dot)
            .arg("-Tplain")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        dot.stdin.take().unwrap().write_all(&written("dot", &history, &judgement)).unwrap();
        let drawn = dot.wait_with_output().unwrap();
        let complaint = String::from_utf8_lossy(&drawn.stderr);
        assert!(drawn.status.success() && !complaint.contains("syntax"), "{name}: {complaint}");
        let grave = judgement.findings.iter().any(|finding| finding.kind != Kind::Hazard);
        let told = judgement.findings.iter().filter(|finding| !grave || finding.kind != Kind::Hazard);
        let facts: usize = told.map(|finding| finding.certificate.facts.len()).sum();
        let nodes = String::from_utf8_lossy(&drawn.stdout).lines().filter(|line| line.starts_with("node ")).count();
        assert_eq!(nodes, facts, "{name}");
    }
}

#[test]
fn times_as_far_apart_as_numbers_go_are_written_in_every_format() {
    let folder = std::env::temp_dir().join(format!("retrograde-far-times-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let request = |client: &str, at: &str| {
        let header = format!(r#"{{"kind":"capture","version":1,"client":"{client}","server":"A","clock":"lab"}}"#);
        let request =
            format!(r#"{{"kind":"request","id":1,"at":"{at}","method":"GET","uri":"/api/v1/namespaces/d/pods"}}"#);
        let body = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}"#;
        let answer = format!(r#"{{"kind":"response","id":1,"at":"{at}","status":200,"body":{body}}}"#);
        format!("{header}\n{request}\n{answer}\n")
    };
    for (client, at) in [("early", "1677-09-21T00:12:44.145224193Z"), ("late", "2262-04-11T23:47:16.854775806Z")] {
        std::fs::write(folder.join(format!("{client}.jsonl")), request(client, at)).unwrap();
    }
    let inputs = ingest::inputs(std::slice::from_ref(&folder), &[], &[]).unwrap();
    let history = history::load(inputs, &ReadOptions::default(), &Domains::default(), &());
    assert_eq!(history.operations.len(), 2);
    let [one, other] = [0, 1].map(|index| history.operations.invoke(index).0);
    assert_eq!(one.checked_sub(other).or(other.checked_sub(one)), None, "their difference is no number");
    let judgement = retrograde::judge(&history, &retrograde::Options::default());
    for format in Format::ALL {
        assert!(!written(format.name(), &history, &judgement).is_empty(), "{}", format.name());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_highest_revision_that_there_is_has_none_above_it() {
    let text = "w@A CREATE x => x:u1@MAX\nw@A GET x => x:u1@MAX\nr@A LIST => MAX {x:u1@MAX}\nw@A PUT x:u1@BELOW => x:u1@MAX\nw@A DELETE x => ok:u1\n\
                w@A CREATE y => y:u2@MAX\nr@B GET x => !404\nr@B LIST rv=0 limit=1 => MAX {y:u2@BELOW} more\n\
                r@B WATCH from BELOW +x:u1@MAX -x:u1@MAX ^MAX +y:u2@MAX\n";
    let (highest, below) = (u128::MAX.to_string(), (u128::MAX - 1).to_string());
    let text = text.replace("MAX", &highest).replace("BELOW", &below);
    let history = history::sketch::sketch(&text).unwrap_or_else(|error| panic!("{error}"));
    let judgement = retrograde::judge(&history, &retrograde::Options::default());
    assert!(!judgement.findings.is_empty());
    for format in Format::ALL {
        assert!(!written(format.name(), &history, &judgement).is_empty(), "{}", format.name());
    }
}
