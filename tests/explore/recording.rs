//! Protocols from recordings: most findings from which one can be taken are found again, and `check` convicts the run.

use crate::support::committed;
use crate::support::folder::Folder;
use retrograde::check::Kind;
use retrograde::explore::{Bounds, Variant, fixes, is_recordable, recorded, variant};
use retrograde::history::History;
use retrograde::order::{Order, OrderOptions};
use std::process::Command;

/// The protocols of all violations of a history, by rule.
fn protocols(history: &History) -> Vec<(&'static str, Result<String, String>)> {
    let judgement = retrograde::judge(history, &retrograde::Options::default());
    let order = Order::derive(history, &OrderOptions::default());
    let findings = judgement.findings.iter();
    let of = findings.filter(|finding| finding.kind == Kind::Violation && is_recordable(finding.rule));
    of.map(|finding| (finding.rule, recorded(history, &order, finding))).collect()
}

fn explored(protocol: &str, fix: Option<&str>) -> Variant {
    let bounds = Bounds { states: 300_000, ..Bounds::default() };
    variant(protocol, fix, None, bounds).unwrap_or_else(|error| panic!("{fix:?}: {error}\n{protocol}"))
}

#[test]
fn most_recorded_protocols_break_what_the_recording_broke() {
    let (mut taken, mut broken, mut convicted) = (0, 0, 0);
    let mut refused: Vec<String> = Vec::new();
    for path in committed::sketches() {
        let text = std::fs::read_to_string(&path).unwrap();
        let Ok(history) = retrograde::history::sketch::sketch(&text) else { continue };
        for (rule, protocol) in protocols(&history) {
            let protocol = match protocol {
                Ok(protocol) => protocol,
                Err(why) => {
                    refused.push(why);
                    continue;
                }
            };
            taken += 1;
            for fix in fixes(&protocol).unwrap() {
                explored(&protocol, Some(&fix.name));
            }
            let run = explored(&protocol, None).properties.swap_remove(0).1;
            broken += u32::from(run.is_some());
            convicted += u32::from(run.is_some_and(|run| run.violated.contains(&rule)));
        }
    }
    // The others are clients whose fault a protocol does not express, such as a watch from a version of long ago.
    assert!(taken >= 60 && broken * 5 >= taken * 3 && convicted * 10 >= broken * 9, "{taken}, {broken}, {convicted}");
    assert!(refused.iter().all(|why| why == "no request shows how the client read these objects"), "{refused:?}");
}

/// The safe alternatives of a finding of an incident, and whether the protocol without any shows the finding.
fn safe(incident: &str, wanted: &str) -> (bool, Vec<String>) {
    let text = std::fs::read_to_string(format!("histories/incidents/{incident}/story.sketch")).unwrap();
    let history = retrograde::history::sketch::sketch(&text).unwrap_or_else(|error| panic!("{error}"));
    let (_, protocol) = protocols(&history).into_iter().find(|(rule, _)| *rule == wanted).expect("a finding");
    let protocol = protocol.expect("a protocol");
    let is_safe = |fix: &String| explored(&protocol, Some(fix)).is_safe() == Some(true);
    let safe = fixes(&protocol).unwrap().into_iter().map(|fix| fix.name).filter(is_safe).collect();
    (explored(&protocol, None).is_safe() == Some(false), safe)
}

#[test]
fn the_alternatives_of_the_incidents_are_safe_as_in_the_shipped_protocols() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let stale_lists = names(&["not-older-than", "quorum-reads", "watch-list"]);
    assert_eq!(safe("kubelet-restart/buggy", "monotonic-reads"), (true, stale_lists));
    let writes = names(&["uid-in-the-write", "version-in-the-write"]);
    assert_eq!(safe("kubelet-restart/buggy", "name-reuse"), (true, writes));
    let resume = names(&["highest-version", "server-fix"]);
    assert_eq!(safe("reflector-resume/buggy", "monotonic-reads"), (true, resume));
    assert_eq!(safe("reflector-resume/buggy", "stale-premise"), (true, Vec::new()));
}

/// Runs the program in a folder.
fn run(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_retrograde"));
    let output = command.current_dir(folder.root()).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_program_takes_a_protocol_from_a_finding_of_a_report() {
    let folder = Folder::copy_of("histories/incidents/kubelet-restart/buggy");
    let (code, report, _) = run(&folder, &["check", "kubelet-1.jsonl", "audit-A.log", "audit-B.log"]);
    assert_eq!(code, Some(1));
    assert!(report.contains("`retrograde explore --from"), "{report}");
    run(&folder, &["check", "kubelet-1.jsonl", "audit-A.log", "audit-B.log", "--json=report.json"]);
    let evidence = ["report.json", "kubelet-1.jsonl", "audit-A.log", "audit-B.log"];
    let from =
        |finding: &str, more: &[&str]| run(&folder, &[&["explore", "--from", finding][..], &evidence, more].concat());
    let (code, table, error) = from("name-reuse", &[]);
    assert_eq!(code, Some(1), "{error}");
    assert!(
        table.contains("uid-in-the-write") && table.contains("`check` finds in the evidence of this run: name-reuse")
    );
    let (code, protocol, _) = from("name-reuse", &["--print"]);
    assert_eq!(code, Some(0));
    std::fs::write(folder.path("mine.toml"), protocol).unwrap();
    let (_, again, _) = run(&folder, &["explore", "mine.toml"]);
    assert_eq!(again, table, "the printed protocol is the one that was explored");

    let (code, _, error) = from("no-such-rule", &[]);
    assert_eq!(code, Some(2));
    assert!(error.contains("0 findings of the report are `no-such-rule`; they are:") && error.contains("name-reuse"));
    let (code, _, error) = from("unsafe-first-read", &[]);
    assert_eq!(code, Some(2));
    assert!(error.contains("a protocol can be taken from findings of monotonic-reads, "), "{error}");
    let (code, _, error) = run(&folder, &["explore", "--from", "name-reuse", "report.json", "audit-A.log"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("this evidence, with these declarations, has no finding"), "{error}");
    let (code, _, error) = run(&folder, &["explore", "kubelet-restart", "--clock-skew", "1s"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("declarations about evidence need --from"), "{error}");
}

#[test]
fn a_finding_that_no_run_shows_makes_no_alternative_safe() {
    let folder = Folder::new();
    let sketch = std::fs::read_to_string("histories/rules/monotonic-reads/violation-watch-from-before.sketch").unwrap();
    let evidence = retrograde::history::sketch::evidence(&sketch).unwrap();
    let mut names: Vec<&str> = Vec::new();
    for (name, text) in &evidence.files {
        std::fs::write(folder.path(name), text).unwrap();
        names.push(name);
    }
    run(&folder, &[&["check", "--json=report.json"][..], &names].concat());
    let (code, table, error) =
        run(&folder, &[&["explore", "--from", "monotonic-reads", "report.json"][..], &names].concat());
    assert!(table.contains("No run of this protocol shows the finding."), "{table}{error}");
    assert_eq!(code, Some(3));
}
