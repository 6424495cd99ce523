//! Random controllers over a simulated API. Correct ones get no finding, and one bug is found under its rule.
//!
//! It finds false alarms of the rules on references, allocations, operation groups and leaders in histories that were
//! not drawn by hand, and bugs that these rules miss among other requests. Each run is recorded as a sketch, so a
//! failing seed can be read, and becomes a history in `histories/`.

mod addresses;
mod api;
mod lives;
mod world;

use crate::support::draws::seeds;
use retrograde::check::{Judgement, Kind};
use retrograde::history::sketch::sketch_with;
use std::collections::BTreeSet;
use world::{Bug, run};

fn judge(text: &str) -> Judgement {
    let history =
        sketch_with(text, &retrograde::read_options().fields).unwrap_or_else(|error| panic!("{error}\n{text}"));
    retrograde::judge(&history, &retrograde::Options::default())
}

fn told(judgement: &Judgement) -> String {
    let findings = judgement.findings.iter().filter(|finding| finding.kind != Kind::Hazard);
    findings.map(|f| format!("{} {}: {}\n  {}\n", f.kind_word(), f.rule, f.summary, f.certificate.reason)).collect()
}

#[test]
fn honest_controllers_are_never_accused() {
    for seed in seeds(30) {
        let (text, _) = run(seed, None, 150);
        let judgement = judge(&text);
        let silent = judgement.findings.iter().all(|finding| finding.kind == Kind::Hazard);
        assert!(silent, "seed {seed}\n{text}\n{}", told(&judgement));
    }
}

#[test]
fn one_bug_is_found_under_its_rule_and_nothing_unrelated_is() {
    for bug in Bug::ALL {
        let (must, may) = bug.rules();
        let mut struck = 0;
        for seed in seeds(15) {
            let (text, has_struck) = run(seed, Some(bug), 220);
            if !has_struck {
                continue;
            }
            struck += 1;
            let judgement = judge(&text);
            let grave = judgement.findings.iter().filter(|finding| finding.kind == Kind::Violation);
            let found: BTreeSet<&str> = grave.map(|finding| finding.rule).collect();
            let unrelated: Vec<_> = found.iter().filter(|rule| !must.contains(rule) && !may.contains(rule)).collect();
            assert!(unrelated.is_empty(), "{bug:?}, seed {seed}: {unrelated:?}\n{text}\n{}", told(&judgement));
            let hit = must.iter().any(|rule| found.contains(rule));
            assert!(hit, "{bug:?}, seed {seed}: missed\n{text}\n{}", told(&judgement));
        }
        assert!(struck >= 5, "{bug:?} struck only {struck} times: the controllers do not come to it");
    }
}
