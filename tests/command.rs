//! The command line: exit codes, output streams, and `explain` of one request.
#![cfg(feature = "cli")]

use std::path::PathBuf;
use std::process::{Command, Output};

const INCIDENT: &str = "histories/incidents/kubelet-restart/buggy";

fn retrograde(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_retrograde"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the program runs")
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn place(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("retrograde-command-{name}-{}", std::process::id()))
}

#[test]
fn what_the_baseline_has_does_not_fail_again_and_what_is_new_does() {
    let (all, none) = (place("all.json"), place("none.json"));
    let first = retrograde(&["check", "--quiet", &format!("--json={}", all.display()), INCIDENT]);
    assert_eq!((first.status.code(), first.stdout.len()), (Some(1), 0));
    let known = retrograde(&["check", "--quiet", "--baseline", all.to_str().unwrap(), INCIDENT]);
    let said = String::from_utf8_lossy(&known.stderr).into_owned();
    assert_eq!(known.status.code(), Some(0), "{said}");
    assert!(said.contains("findings are known, 0 are not"), "{said}");
    let fixed = "histories/incidents/kubelet-restart/quorum-lists";
    retrograde(&["check", "--quiet", &format!("--json={}", none.display()), fixed]);
    let new = retrograde(&["check", "--quiet", "--baseline", none.to_str().unwrap(), INCIDENT]);
    assert_eq!(new.status.code(), Some(1));
    let wrong = retrograde(&["check", "--baseline", "Cargo.toml", INCIDENT]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("no report of retrograde"));
    for file in [all, none] {
        std::fs::remove_file(file).unwrap();
    }
}

#[cfg(not(feature = "proxy"))]
#[test]
fn a_program_without_the_proxies_says_how_to_get_one() {
    let folder = place("recording");
    let refused = retrograde(&["record", "etcd", "-o", folder.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("--features proxy") && !folder.exists(), "{said}");
}

#[test]
fn a_focus_leaves_out_what_is_elsewhere_and_says_so() {
    let mine = retrograde(&["check", "--client", "system:node:node-1", "--json", INCIDENT]);
    assert_eq!(mine.status.code(), Some(1));
    let nobody = retrograde(&["check", "--client", "nobody", INCIDENT]);
    assert!(text(&nobody).contains("No client's view was checked"), "{}", text(&nobody));
    let other = retrograde(&["check", "--client", "statefulset-controller", "--verbose", INCIDENT]);
    assert!(text(&other).contains("findings elsewhere are left out"), "{}", text(&other));
    assert!(!text(&other).contains("VIOLATION"));
    for (arguments, found) in [
        (["--namespace", "default"], true),
        (["--namespace", "kube-system"], false),
        (["--since", "2026-03-02T09:00:00Z"], true),
        (["--since", "2026-03-02T10:00:00Z"], false),
        (["--until", "2026-03-02T10:00:00Z"], true),
        (["--until", "2026-03-02T08:00:00Z"], false),
    ] {
        let output = retrograde(&["check", "--verbose", arguments[0], arguments[1], INCIDENT]);
        assert_eq!(text(&output).contains("VIOLATION"), found, "{arguments:?}: {}", text(&output));
        assert_eq!(output.status.code() == Some(1), found, "{arguments:?}");
    }
}

#[test]
fn two_clusters_are_judged_apart_where_the_caller_names_them() {
    let fixed = "histories/incidents/kubelet-restart/quorum-lists";
    let sources = [format!("{INCIDENT}/*:cluster=east"), format!("{fixed}/*:cluster=west")];
    let [east, west] = sources.each_ref().map(|source| &source[..]);
    let apart = retrograde(&["check", "--source", east, "--source", west, INCIDENT, fixed]);
    let said = text(&apart);
    assert_eq!(apart.status.code(), Some(1), "{said}");
    for line in ["2 histories, each decided on its own", "violated   east: kubernetes", "holds      west: kubernetes"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let both = retrograde(&["check", "--source", east, "--source", &west.replace("west", "east"), INCIDENT, fixed]);
    assert!(!text(&both).contains("2 histories"), "{}", text(&both));
}

#[test]
fn one_request_is_explained_with_its_promise_its_age_and_its_findings() {
    let list = retrograde(&["explain", "--client", "kubelet-1#2", "--key", "pod-0", INCIDENT]);
    assert_eq!(list.status.code(), Some(0));
    insta::assert_snapshot!(text(&list));
    let none = retrograde(&["explain", "--audit-id", "no-such-id", INCIDENT]);
    assert_eq!(none.status.code(), Some(3));
    assert!(text(&none).contains("No request with audit id no-such-id"));
    assert_eq!(retrograde(&["explain", INCIDENT]).status.code(), Some(2), "something must be asked for");
}

#[test]
fn timings_go_to_standard_error_and_quiet_leaves_nothing_on_standard_output() {
    let output = retrograde(&["check", "--quiet", "--timings", INCIDENT]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.stdout.is_empty());
    assert!(["reading", "judging", "writing"].iter().all(|step| said.contains(step)), "{said}");
}

#[test]
fn completions_and_the_manual_name_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = retrograde(&["completions", shell]);
        assert_eq!(script.status.code(), Some(0), "{shell}");
        assert!(text(&script).contains("explain") && text(&script).contains("baseline"), "{shell}");
    }
    assert!(text(&retrograde(&["man"])).contains(".TH retrograde"));
}

#[test]
fn a_mistyped_flag_or_rule_is_answered_with_the_nearest() {
    let flag = retrograde(&["check", "--fail-onn", "hazard", INCIDENT]);
    assert!(String::from_utf8_lossy(&flag.stderr).contains("--fail-on"));
    let rule = retrograde(&["check", "--only", "monotonic-read", INCIDENT]);
    assert!(String::from_utf8_lossy(&rule.stderr).contains("monotonic-reads"));
    assert_eq!((flag.status.code(), rule.status.code()), (Some(2), Some(2)));
}

#[test]
fn invariants_of_a_rules_file_are_judged_and_its_mistakes_are_shown_in_their_lines() {
    let file = place("rules.toml");
    let path = file.to_str().unwrap();
    let written = |expression: &str| {
        let rule = "[[invariant]]\nname = \"mine\"\nresource = \"pods\"\nexpression = ";
        std::fs::write(&file, format!("{rule}'{expression}'\n")).unwrap();
        retrograde(&["check", "--only", "invariant", "--rules", path, INCIDENT])
    };
    let kept = written("self.metadata.name != \"\"");
    assert_eq!(kept.status.code(), Some(0), "{}", text(&kept));
    let broken = written("self.metadata.name == \"\"");
    assert_eq!(broken.status.code(), Some(1));
    assert!(text(&broken).contains("mine is false of pods default/"), "{}", text(&broken));
    let open = written("self.metadata.nothing == \"\"");
    assert_eq!(open.status.code(), Some(3), "{}", text(&open));
    assert!(text(&open).contains("a value has no field `nothing`"), "{}", text(&open));
    let wrong = written("self.metadata.name =! 1");
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(2), "{said}");
    assert!(said.contains(":4:") && said.contains("\n4 | expression = "), "{said}");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn show_tells_what_was_understood_of_a_report_of_etcd() {
    let folder = place("report");
    std::fs::create_dir_all(folder.join("client-1")).unwrap();
    let put = r#"{"Type":"txn","Txn":{"OperationsOnSuccess":[{"Type":"put-operation","Put":{"Key":"k","Value":{"Value":"7"}}}]}}"#;
    let get = r#"{"Type":"range","Range":{"Start":"k","End":"","Limit":0,"Revision":0}}"#;
    let lines = [
        format!(
            r#"{{"ClientId":0,"Input":{put},"Call":10,"Output":{{"Txn":{{"Results":[{{}}]}},"Revision":2,"member-id":"a1"}},"Return":20}}"#
        ),
        format!(r#"{{"ClientId":0,"Input":{get},"Call":30,"Output":{{"Error":"context deadline exceeded"}},"Return":40}}"#),
        r#"{"ClientId":0,"Input":{"Type":"compact","Compact":{"Revision":2}},"Call":50,"Output":{"Compact":{},"Revision":-1},"Return":60}"#.to_owned(),
    ];
    std::fs::write(folder.join("client-1/operations.json"), lines.join("\n")).unwrap();
    let watch = r#"{"Request":{"Key":"","Revision":1,"WithPrefix":true},"Responses":[{"Events":[{"Type":"put-operation","Key":"k","Value":{"Value":"7"},"Revision":2,"IsCreate":true}],"Revision":2,"Time":25}]}"#;
    std::fs::write(folder.join("client-1/watch.json"), watch).unwrap();
    let overview = text(&retrograde(&["show", folder.to_str().unwrap()]));
    for told in [
        "Members",
        "a1: 1 answer;",
        "Clients: 1",
        "Operations: 3",
        "put         1 answered",
        "read        0 answered  0 refused  1 unknown",
        "1  context deadline exceeded",
        "Revisions: 2 to 2",
        "complete through 2",
        "Watches: 1 with 1 event",
        "every key  1  1 event",
        "through 2",
    ] {
        assert!(overview.contains(told), "{told}: {overview}");
    }
    let key = text(&retrograde(&["show", "--key", "k", folder.to_str().unwrap()]));
    assert!(key.contains("put k=7, change 1 of its life") && key.contains("write of client-1"), "{key}");
    let around = text(&retrograde(&["show", "--around", "2", folder.to_str().unwrap()]));
    assert!(around.contains("Versions around revision 2: 1"), "{around}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn logs_that_may_be_of_several_servers_are_counted_in_one_line() {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let event = |n: u32| {
        format!(
            r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a{n}","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/d/pods/p","verb":"get","user":{{"username":"u"}},"objectRef":{{"resource":"pods","namespace":"d","name":"p","apiVersion":"v1"}},"responseStatus":{{"code":200}},"requestReceivedTimestamp":"2026-03-02T09:00:00.00000{n}Z","stageTimestamp":"2026-03-02T09:00:00.10000{n}Z"}}"#
        )
    };
    let told = || {
        let output = retrograde(&["check", "--json", folder.path().to_str().expect("a plain name")]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
        let reasons = report["histories"][0]["unchecked"].as_array().expect("reasons").clone();
        let reasons = reasons.iter().filter_map(|reason| reason.as_str().map(str::to_owned));
        reasons.filter(|reason| reason.contains("may be of several servers")).collect::<Vec<_>>()
    };
    for n in 0..3 {
        std::fs::write(folder.path().join(format!("{n}.log")), event(n) + "\n").expect("the folder takes a file");
        let reasons = told();
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        assert!(reasons[0].contains("0.log") && reasons[0].contains("nothing bounds"), "{reasons:?}");
        assert_eq!(reasons[0].contains(&format!(" and {n} more: ")), n > 0, "{reasons:?}");
    }
}

#[test]
fn functions_of_a_log_can_have_other_names_than_in_the_model() {
    let log = |shown: &str| {
        format!(
            "{{:process 0 :type :invoke :f :write-set :value 1}}\n{{:process 0 :type :ok :f :write-set :value 1}}\n\
             {{:process 1 :type :invoke :f :read-set-all :value nil}}\n{{:process 1 :type :ok :f :read-set-all :value {shown}}}\n"
        )
    };
    let folder = crate::support::folder::Folder::new();
    let functions = "--functions=write-set=add,read-set-all=read";
    for (name, shown, code) in [("kept", "#{1}", 0), ("lost", "#{}", 1)] {
        let (path, saved, packed) =
            (folder.text(name), folder.text(&format!("{name}.json")), folder.text(&format!("{name}.rgh")));
        std::fs::write(&path, log(shown)).unwrap();
        assert_eq!(retrograde(&["check", "--quiet", "--model=set", &path]).status.code(), Some(3));
        let check = ["check", "--quiet", "--proofs", "--model=set", functions, &format!("--json={saved}"), &path];
        assert_eq!(retrograde(&check).status.code(), Some(code));
        assert_eq!(retrograde(&["verify", "--model=set", functions, &saved, &path]).status.code(), Some(0));
        assert_eq!(retrograde(&["pack", functions, "-o", &packed, &path]).status.code(), Some(0));
        assert_eq!(retrograde(&["check", "--quiet", "--model=set", &packed]).status.code(), Some(code));
        let again = retrograde(&["check", "--model=set", functions, &packed]);
        assert!(String::from_utf8_lossy(&again.stderr).contains("--functions to `retrograde pack`"));
    }
    let wrong = retrograde(&["check", "--functions=write-set=ad", &folder.text("kept")]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("no model has the function 'ad'; functions: acquire"));
}
