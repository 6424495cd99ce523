//! A client of kube-rs that a layer records as in docs/guide-ci.md, against an API server whose last list is stale or
//! fresh.
//!
//! The client is a program of the crate `tests/cluster`. Building its hundred crates takes a minute or two, so this test
//! runs only if `CI` is set. `src/record/kube_tests.rs` tests the layer without it.

use crate::support::client_crate;
use retrograde::check::{Kind, Verdict};
use retrograde::history::{self, Domains};
use retrograde::ingest;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_stale_list_of_a_recorded_client_is_convicted_and_a_fresh_one_is_not() {
    if std::env::var_os("CI").is_none_or(|ci| ci.is_empty()) {
        eprintln!("skipped: CI is not set, and building kube-rs takes a while");
        return;
    }
    for (last, expected) in [("stale", Verdict::Violated), ("fresh", Verdict::Holds)] {
        let path = std::env::temp_dir().join(format!("retrograde-kube-layer-{last}-{}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let status = client_crate::cargo("run", "cluster")
            .args(["--bin", "kube_traffic", "--"])
            .arg(&path)
            .arg(last)
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the client cannot be built, or failed");
        let inputs = ingest::inputs(std::slice::from_ref(&path), &[], &[]).expect("a capture");
        let history = history::load(inputs, &retrograde::read_options(), &Domains::default(), &());
        assert!(history.problems.is_empty() && history.deliveries.len() == 2, "{:?}", history.problems);
        let judgement = retrograde::judge(&history, &retrograde::Options::default());
        let grave = judgement.findings.iter().filter(|finding| finding.kind != Kind::Hazard);
        let rules: Vec<&str> = grave.map(|finding| finding.rule).collect();
        assert_eq!((judgement.verdict.clone(), rules.is_empty()), (expected, last == "fresh"), "{rules:?}");
        std::fs::remove_file(path).expect("the capture");
    }
}

#[test]
fn the_guide_shows_how_this_client_is_recorded() {
    let read = |name| std::fs::read_to_string(root().join(name)).expect("a text");
    let (source, guide) = (read("tests/cluster/src/bin/kube_traffic.rs"), read("docs/guide-ci.md"));
    let start = source.find("/// A client of Kubernetes that is recorded.").expect("the function");
    let end = source[start..].find("\n}\n").expect("its end") + 3;
    assert!(
        guide.contains(&source[start..start + end]),
        "docs/guide-ci.md does not show\n{}",
        &source[start..start + end]
    );
}
