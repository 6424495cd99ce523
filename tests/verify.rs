//! Verified reports: genuine ones are confirmed, forged ones are not.
#![cfg(feature = "cli")]

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const INCIDENT: &str = "histories/incidents/kubelet-restart/buggy";

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_retrograde"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    (output.status.code(), said + &String::from_utf8_lossy(&output.stderr))
}

struct Saved(PathBuf);

impl Saved {
    fn check(name: &str, evidence: &str) -> Saved {
        let path = std::env::temp_dir().join(format!("retrograde-verify-{name}-{}.json", std::process::id()));
        run(&["check", "--quiet", "--proofs", &format!("--json={}", path.display()), evidence]);
        Saved(path)
    }

    fn verify(&self, evidence: &str) -> (Option<i32>, String) {
        run(&["verify", self.0.to_str().unwrap(), evidence])
    }

    /// The result of `verify` for the report with one change.
    fn forged(&self, evidence: &str, change: impl Fn(&mut Value)) -> (Option<i32>, String) {
        let honest = std::fs::read_to_string(&self.0).unwrap();
        let mut document: Value = serde_json::from_str(&honest).unwrap();
        change(&mut document["histories"][0]);
        std::fs::write(&self.0, document.to_string()).unwrap();
        let result = self.verify(evidence);
        std::fs::write(&self.0, honest).unwrap();
        result
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn log(model: &str, prefix: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("histories/models").join(model);
    let mut names: Vec<String> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let name = names.into_iter().find(|name| name.starts_with(prefix)).unwrap();
    format!("histories/models/{model}/{name}")
}

#[test]
fn every_verdict_over_the_committed_logs_is_confirmed() {
    for model in ["register", "cas-register", "multi-register", "kv", "list-append", "mutex", "set", "counter", "pool"]
    {
        for (prefix, proof) in [("fixed", "linearization"), ("violation", "it takes every answer")] {
            let log = log(model, prefix);
            let (code, said) = Saved::check(&format!("{model}-{prefix}"), &log).verify(&log);
            assert!(code == Some(0) && said.contains(proof), "{log}: {code:?} {said}");
        }
    }
}

#[test]
fn an_order_that_was_tampered_with_is_found_out() {
    let log = log("cas-register", "fixed-keys");
    let saved = Saved::check("order", &log);
    let order = |order: fn(Vec<&str>) -> Vec<&str>| {
        saved.forged(&log, |history| {
            let text = history["proofs"][0]["order"].as_str().unwrap().to_owned();
            history["proofs"][0]["order"] = json!(order(text.split(' ').collect()).join(" "));
        })
    };
    assert_eq!(order(|order| order).0, Some(0));
    for (change, said) in [
        ((|order| order[..order.len() - 1].to_vec()) as fn(Vec<&str>) -> Vec<&str>, "is not in the order"),
        (|order| order.into_iter().rev().collect(), "cannot have the recorded answer"),
        (|order| [&order[..], &order[..1]].concat(), "twice"),
        (|_| vec!["4000000"], "there is no call"),
        (|_| vec!["-1"], "is not the number"),
    ] {
        let (code, text) = order(change);
        assert!(code == Some(1) && text.contains(said), "{code:?} {text}");
    }
    let (code, text) = saved.forged(&log, |history| history["verdict"] = json!("violated"));
    assert!(code == Some(1) && text.contains("another verdict"), "{text}");
    let (code, _) = saved.forged(&log, |history| history["proofs"] = json!([]));
    assert_eq!(code, Some(3), "a verdict without a proof is not confirmed");
    let (code, text) = saved.forged(&log, |history| history["proofs"][0]["kind"] = json!("oath"));
    assert!(code == Some(3) && text.contains("does not know"), "{text}");
}

#[test]
fn a_core_that_was_tampered_with_is_found_out() {
    let log = log("register", "violation");
    let saved = Saved::check("core", &log);
    let (code, text) = saved.forged(&log, |history| {
        let claims = history["proofs"][0]["claims"].as_array_mut().unwrap();
        claims.remove(0);
    });
    assert!(code == Some(1) && text.contains("this order explains"), "{text}");
    let (code, text) = saved.forged(&log, |history| {
        for claim in history["proofs"][0]["claims"].as_array_mut().unwrap() {
            for part in ["answer", "invoked", "returned"] {
                claim[part] = json!(true);
            }
        }
    });
    assert!(code == Some(1) && text.contains("can be left out"), "{text}");
    let other = self::log("register", "fixed");
    let (code, text) = saved.verify(&other);
    assert!(code == Some(3) && text.contains("not among the evidence"), "{text}");
}

#[test]
fn facts_of_a_cluster_are_looked_up_where_the_report_says_they_stand() {
    let saved = Saved::check("facts", INCIDENT);
    let (code, text) = saved.verify(INCIDENT);
    assert!(code == Some(0) && text.contains("facts are where the report says"), "{text}");
    let fact = |change: fn(&mut Value)| {
        saved.forged(INCIDENT, |history| {
            for fact in history["findings"][0]["occurrences"][0]["facts"].as_array_mut().unwrap() {
                change(fact);
            }
        })
    };
    for (change, said) in [
        ((|fact| fact["source"]["offset"] = json!(1)) as fn(&mut Value), "no record begins at byte 1"),
        (|fact| fact["source"]["line"] = json!(4000), "not 4000"),
        (|fact| fact["audit_id"] = json!("00000000-0000-0000-0000-000000000000"), "but not 00000000"),
    ] {
        let (code, text) = fact(change);
        assert!(code == Some(1) && text.contains(said), "{code:?} {text}");
    }
    let (code, text) = fact(|fact| fact["source"]["file"] = json!("elsewhere.log"));
    assert!(code == Some(3) && text.contains("not among the evidence"), "{text}");
    let (code, text) = run(&["verify", "Cargo.toml", INCIDENT]);
    assert!(code == Some(2) && text.contains("no report"), "{text}");
}

/// Rules whose findings have facts that may contradict each other by definition.
const DEFINITE: [&str; 11] = [
    "false-progress",
    "revision-reuse",
    "revision-rewind",
    "split-timeline",
    "stale-consistent-read",
    "watch-before-write",
    "watch-duplicate",
    "watch-filter",
    "watch-gap",
    "watch-prehistory",
    "watch-reorder",
];

/// Whether a finding of a rule names a place in a member's log, or a request that revokes a lease or compacts.
fn is_only_found(document: &Value, rule: &str) -> bool {
    let findings =
        document["histories"].as_array().unwrap().iter().flat_map(|history| history["findings"].as_array().unwrap());
    let facts = findings.filter(|finding| finding["rule"] == rule).flat_map(|finding| {
        let occurrences = finding["occurrences"].as_array().unwrap().iter();
        occurrences.flat_map(|occurrence| occurrence["facts"].as_array().unwrap())
    });
    let mut sources =
        facts.filter_map(|fact| Some((fact["source"]["file"].as_str()?, fact["source"]["line"].as_u64()?)));
    sources.any(|(file, line)| {
        let path = Path::new(file);
        if path.extension().is_some_and(|kind| kind == "wal") {
            return true;
        }
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let cited = text.lines().nth(line as usize - 1).unwrap_or_default();
        cited.contains("\"leaseRevoke\"") || cited.contains("\"compact\"")
    })
}

#[test]
fn reports_of_etcd_are_confirmed_by_their_order_or_by_their_facts() {
    let mut orders = 0;
    for rule in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("histories/rules")).unwrap() {
        let folder = rule.unwrap().path();
        let rule = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for report in folder.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            let name = report.file_name().unwrap().to_str().unwrap().to_owned();
            if report.extension().is_none_or(|kind| kind != "report") {
                continue;
            }
            let evidence = format!("histories/rules/{rule}/{name}");
            let saved = Saved::check(&format!("{rule}-{name}"), &evidence);
            let document: Value = serde_json::from_str(&std::fs::read_to_string(&saved.0).unwrap()).unwrap();
            let verdict = document["verdict"].as_str().unwrap();
            let (code, text) = saved.verify(&evidence);
            // Facts of a member's log, and of requests that change no key by themselves, are only found, not compared.
            let is_only_found = is_only_found(&document, &rule);
            let said = match verdict {
                "holds" if document["histories"][0]["clients"].as_array().unwrap().is_empty() => {
                    "the members have the same"
                }
                "holds" => "gives every answer and every delivery",
                "violated" if DEFINITE.contains(&rule.as_str()) && !is_only_found => {
                    "contradict each other by the definition"
                }
                _ => "where the report says",
            };
            orders += usize::from(verdict == "holds");
            let expected = if verdict == "unknown" { 3 } else { 0 };
            let fits = code == Some(expected) && (verdict == "unknown" || text.contains(said));
            assert!(fits, "{evidence}, {verdict}: {code:?} {text}");
        }
    }
    assert!(orders > 15, "only {orders} hold");
}

#[test]
fn an_order_of_a_report_of_etcd_that_was_tampered_with_is_found_out() {
    let evidence = "histories/rules/stale-consistent-read/fixed.report";
    let saved = Saved::check("etcd-order", evidence);
    let order = |order: fn(Vec<&str>) -> Vec<&str>| {
        saved.forged(evidence, |history| {
            let text = history["proofs"][0]["order"].as_str().unwrap().to_owned();
            history["proofs"][0]["order"] = json!(order(text.split(' ').collect()).join(" "));
        })
    };
    assert_eq!(order(|order| order).0, Some(0));
    for (change, said) in [
        ((|order| order[..order.len() - 1].to_vec()) as fn(Vec<&str>) -> Vec<&str>, "is not in the order"),
        (|order| order.into_iter().rev().collect(), "cannot have the recorded answer"),
        (|order| [&order[..2], &[order[3], order[2]][..]].concat(), "is before"),
        (|order| [&order[..], &order[..1]].concat(), "is in the order twice"),
        (|order| [&order[..], &["expired:7"][..]].concat(), "without a removed key"),
        (|_| vec!["4000000"], "there is no operation"),
        (|_| vec!["expired:"], "is not the number"),
    ] {
        let (code, text) = order(change);
        assert!(code == Some(1) && text.contains(said), "{code:?} {text}");
    }
    let (code, text) = saved.forged(evidence, |history| history["proofs"] = json!([]));
    assert!(code == Some(3) && text.contains("--proofs"), "{text}");
    let evidence = "histories/rules/revision-reuse/violation.report";
    let saved = Saved::check("etcd-facts", evidence);
    let (code, text) = saved.forged(evidence, |history| {
        let facts = &mut history["findings"][0]["occurrences"][0]["facts"];
        facts[1] = facts[0].clone();
    });
    assert!(code == Some(1) && text.contains("do not contradict each other"), "{text}");
}

/// A healthy cluster that was recorded, and its copy in which one value of one store is another one.
#[test]
fn members_that_were_told_to_agree_are_compared_again() {
    let evidence = "histories/rules/split-timeline/fixed-members-agree.report";
    let folder = crate::support::folder::Folder::new();
    for member in ["m1", "m2", "m3"] {
        for file in ["member/wal/0000000000000000-0000000000000000.wal", "member/snap/db"] {
            let (from, to) = (Path::new(env!("CARGO_MANIFEST_DIR")).join(evidence), folder.path(member));
            std::fs::create_dir_all(to.join(file).parent().unwrap()).unwrap();
            std::fs::copy(from.join(member).join(file), to.join(file)).unwrap();
        }
    }
    let evidence = folder.root().to_str().unwrap();
    let saved = Saved::check("members", evidence);
    let (code, said) = saved.verify(evidence);
    assert!(code == Some(0) && said.contains("the members have the same 140 committed entries"), "{code:?} {said}");
    assert!(
        run(&["show", evidence]).1.contains("The members agree, as far as they were compared: 140 committed entries")
    );
    let store = folder.path("m2/member/snap/db");
    let mut bytes = std::fs::read(&store).unwrap();
    let places: Vec<usize> = (0..bytes.len() - 3).filter(|at| &bytes[*at..at + 3] == b"v45").collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| bytes[*at] = b'w');
    std::fs::write(&store, bytes).unwrap();
    let (code, said) = saved.verify(evidence);
    assert!(code == Some(1) && said.contains("the members m1 and m2 differ at revision 46"), "{code:?} {said}");
    let (code, said) = run(&["check", evidence]);
    assert!(code == Some(1) && said.contains("The store of m2 has another content of revision 46"), "{code:?} {said}");
    assert!(said.contains("No client is recorded"), "{said}");
    assert!(run(&["show", evidence]).1.contains("The members differ, in the stores of m2"));
}
