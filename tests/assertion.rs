//! The interface for test suites: assertions that pass and fail, and their messages.

use retrograde::assertion::{Claim, Undecided, replay};
use retrograde::check::Kind;
use retrograde::history::{self, Domains, History};
use retrograde::ingest::{self, ReadOptions};
use retrograde::model::Spec;
use retrograde::search::{self, Call, Outcome};
use retrograde::{Recorder, assert_consistent, assert_linearizable};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// Seats that can be sold once.
struct Cinema;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Request {
    Buy(u8),
    Sold,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Answer {
    Ticket,
    Taken,
    Seats(Vec<u8>),
}

impl Spec for Cinema {
    type State = Vec<u8>;
    type Operation = Request;
    type Answer = Answer;

    fn initial(&self) -> Vec<u8> {
        Vec::new()
    }

    fn step(&self, sold: &Vec<u8>, request: &Request, answer: Option<&Answer>) -> Option<Vec<u8>> {
        let mut next = sold.clone();
        let right = match request {
            Request::Buy(seat) => match sold.binary_search(seat) {
                Ok(_) => Answer::Taken,
                Err(at) => {
                    next.insert(at, *seat);
                    Answer::Ticket
                }
            },
            Request::Sold => Answer::Seats(sold.clone()),
        };
        answer.is_none_or(|answer| *answer == right).then_some(next)
    }
}

fn sold_twice() -> search::History<Request, Answer> {
    let call = |process, operation, invoke, returned, answer| Call {
        process,
        operation,
        invoke,
        outcome: Outcome::Completed { returned, answer },
    };
    search::History::new(vec![
        call(0, Request::Buy(7), 10, 30, Answer::Ticket),
        call(1, Request::Buy(7), 20, 40, Answer::Ticket),
        call(2, Request::Sold, 50, 60, Answer::Seats(vec![7])),
    ])
    .unwrap()
}

fn evidence(incident: &str) -> History {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("histories/incidents").join(incident);
    let inputs = ingest::inputs(&[path], &[], &[]).unwrap();
    history::load(inputs, &ReadOptions::default(), &Domains::default(), &())
}

fn panic_text(assertion: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(assertion).expect_err("it should fail");
    *panic.downcast::<String>().expect("a text")
}

#[test]
fn a_right_cinema_passes_and_calls_without_answer_do_not_disturb() {
    let recorder: Recorder<Request, Answer> = Recorder::new();
    let seats = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for customer in ["ann", "bob", "cleo", "dan"] {
            let (recorder, seats) = (recorder.clone(), &seats);
            scope.spawn(move || {
                let client = recorder.client(customer);
                for seat in 0..50 {
                    let call = client.invoke(Request::Buy(seat));
                    let mut sold: std::sync::MutexGuard<'_, Vec<u8>> = seats.lock().unwrap();
                    let answer = match sold.binary_search(&seat) {
                        Ok(_) => Answer::Taken,
                        Err(at) => {
                            sold.insert(at, seat);
                            Answer::Ticket
                        }
                    };
                    drop(sold);
                    // Every tenth answer is lost.
                    if seat % 10 == 0 { call.unknown() } else { call.ok(answer) }
                }
            });
        }
    });
    assert_eq!(recorder.len(), 200);
    assert_linearizable!(Cinema, recorder);
}

#[test]
fn a_seat_that_is_sold_twice_fails_with_the_two_calls() {
    let text = panic_text(|| assert_linearizable!(Cinema, sold_twice()));
    insta::assert_snapshot!(text);
}

#[test]
fn an_incident_fails_with_the_human_report_and_its_fix_passes() {
    let text = panic_text(|| assert_consistent!(evidence("kubelet-restart/buggy")));
    assert!(text.starts_with("VIOLATED") && text.contains("Why impossible"), "{text}");
    assert_consistent!(evidence("kubelet-restart/quorum-lists"));
    // Hazards fail a test only on request.
    let lucky = evidence("kubelet-restart/lucky");
    assert_consistent!(lucky);
    assert!(Claim::default().fail_on(Kind::Hazard).consistent(&lucky).unwrap_err().is_refuted());
}

#[test]
fn what_is_allowed_never_fails_and_a_rule_that_does_not_exist_does() {
    let incident = evidence("kubelet-restart/buggy");
    let judgement = retrograde::judge(&incident, &retrograde::Options::default());
    let violated = judgement.findings.iter().filter(|f| f.kind == Kind::Violation).map(|f| f.rule);
    let claim = violated.fold(Claim::default(), |claim, rule| claim.allow(rule));
    claim.undecided(Undecided::Passes).consistent(&incident).unwrap();
    let error = Claim::default().allow("monotone-reads").consistent(&incident).unwrap_err();
    assert!(error.is_unusable() && error.to_string().contains("monotone-reads"), "{error}");
}

#[test]
fn what_is_not_decided_fails_unless_it_is_said_to_pass() {
    let empty = History::default();
    let error = Claim::default().consistent(&empty).unwrap_err();
    assert!(error.is_undecided() && error.to_string().starts_with("UNKNOWN"), "{error}");
    Claim::default().undecided(Undecided::Passes).consistent(&empty).unwrap();
}

#[test]
fn a_failure_writes_a_page_and_a_document_where_it_is_asked_to() {
    let folder = std::env::temp_dir().join(format!("retrograde-reports-{}", std::process::id()));
    let claim = Claim::default().report_into(&folder).name("cinema: seat 7");
    let text = claim.linearizable(&Cinema, &sold_twice()).unwrap_err().to_string();
    let paths: Vec<&Path> = text.lines().filter_map(|line| line.strip_prefix("report: ")).map(Path::new).collect();
    assert_eq!(paths.len(), 2, "{text}");
    let page = std::fs::read_to_string(paths[0]).unwrap();
    assert!(page.starts_with("<!doctype html>"));
    let (_, data) = page.split_once("<script id=\"data\" type=\"application/json\">").unwrap();
    let data: serde_json::Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let facts = data["histories"][0]["findings"][0]["facts"].as_array().unwrap();
    // These times are no times of day, so places follow the order of the log: answered third and fourth.
    let drawn: Vec<_> =
        facts.iter().map(|fact| (fact["lane"].as_i64(), fact["operation"].as_i64(), fact["t"].as_i64())).collect();
    assert_eq!(drawn, [(Some(0), Some(0), Some(2)), (Some(1), Some(0), Some(3))], "{data}");
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(paths[1]).unwrap()).unwrap();
    assert_eq!(document["histories"][0]["findings"][0]["rule"], "linearizability");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Environment variable with the recording file for the child process of the next test.
const CHILD: &str = "RETROGRADE_TEST_RECORDING";

#[test]
fn a_recording_survives_the_process_that_is_killed() {
    if let Some(path) = std::env::var_os(CHILD) {
        let recorder: Recorder<Request, Answer> = Recorder::in_file(path).unwrap();
        let client = recorder.client("ann");
        client.invoke(Request::Buy(1)).ok(Answer::Ticket);
        let _open = client.invoke(Request::Buy(2));
        println!("recorded");
        std::thread::sleep(Duration::from_secs(600));
    }
    let path = std::env::temp_dir().join(format!("retrograde-killed-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "assertion::a_recording_survives_the_process_that_is_killed", "--nocapture"])
        .env(CHILD, &path)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(said.any(|line| line.unwrap().contains("recorded")));
    child.kill().unwrap();
    child.wait().unwrap();
    let history = replay::<Request, Answer>(&path).unwrap();
    let outcomes: Vec<_> = history.calls().iter().map(|call| call.outcome == Outcome::Unknown).collect();
    assert_eq!(outcomes, [false, true]);
    assert_linearizable!(Cinema, history);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_recording_of_a_provided_model_is_read_by_the_command_line_too() {
    #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    enum Operation {
        Read,
        Write(u64),
    }
    let path = std::env::temp_dir().join(format!("retrograde-register-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let recorder: Recorder<Operation, Option<u64>> = Recorder::in_file(&path).unwrap();
    let client = recorder.client("a");
    client.invoke(Operation::Write(1)).ok(None);
    client.invoke(Operation::Read).ok(Some(2));
    let inputs = ingest::inputs(std::slice::from_ref(&path), &[], &[]).unwrap();
    let history = history::load(inputs, &ReadOptions::default(), &Domains::default(), &());
    let report = Claim::default().consistent(&history).unwrap_err().to_string();
    assert!(report.contains("linearizability") && report.contains("`read` answered 2"), "{report}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn processes_may_have_any_numbers() {
    let mut calls = sold_twice().calls().to_vec();
    for (call, process) in calls.iter_mut().zip([u32::MAX, 3_000_000_000, 7]) {
        call.process = process;
    }
    let report = Claim::default().linearizable(&Cinema, &search::History::new(calls).unwrap()).unwrap_err().to_string();
    assert!(report.contains("process 4294967295") && report.contains("process 3000000000"), "{report}");
}

/// Writes the evidence of a sketch into a folder.
fn files_of(sketch: &Path, name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("retrograde-claim-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = std::fs::read_to_string(sketch).expect("a sketch");
    for (name, content) in retrograde::history::sketch::evidence(&text).expect("a sketch").files {
        std::fs::write(folder.join(name), content).expect("evidence");
    }
    folder
}

#[test]
fn what_a_rules_file_says_is_asserted_of_files_and_its_mistakes_are_told() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("histories/rules-file/invariant-live");
    let rules = || Claim::default().only(["invariant"]).rules_file(example.join("rules.toml"));
    let violation = files_of(&example.join("violation.sketch"), "violation");
    let report = rules().consistent(&violation).expect_err("two machines in a slot").to_string();
    assert!(report.contains("one-machine-a-slot") && report.contains("rules.toml:9"), "{report}");
    assert!(!report.contains("the protocol forbids"), "{report}");
    let fixed = files_of(&example.join("fixed.sketch"), "fixed");
    assert_consistent!(fixed.as_path(), rules());
    // Without the rules file no invariant is declared, so nothing was checked.
    let without =
        Claim::default().only(["invariant"]).consistent(&violation).expect_err("nothing was checked").to_string();
    assert!(!without.contains("one-machine-a-slot"), "{without}");
    let wrong = fixed.join("wrong.toml");
    std::fs::write(
        &wrong,
        "[[invariant]]\nname = \"a\"\nresource = \"machines.cloud.example.com\"\nexpression = \"slef.spec.x == 1\"\n",
    )
    .expect("a file");
    let told = Claim::default().rules_file(&wrong).consistent(&fixed).expect_err("a mistake").to_string();
    assert!(told.contains("wrong.toml:4:15") && told.contains("did you mean self?"), "{told}");
    let missing = Claim::default().rules_file("no-such.toml").consistent(&fixed).expect_err("no file");
    let expected = "cannot read the rules file no-such.toml";
    assert!(missing.is_unusable() && missing.to_string().contains(expected), "{missing}");
    assert!(Claim::default().consistent(&Path::new("no-such-evidence")).unwrap_err().is_unusable());
    for folder in [violation, fixed] {
        std::fs::remove_dir_all(folder).expect("the folder");
    }
}
