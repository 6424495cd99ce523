#![doc = include_str!("../../../docs/rules/double-allocation.md")]

use crate::check::invariants::mutual_exclusion;
use crate::check::{BrokenBy, Checks, Evidence, Group, Rule, RuleResult};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "double-allocation",
    title: "an address, range, port or volume has one holder at a time",
    group: Group::Invariants,
    promise: BrokenBy::Client,
    needs: "versions of objects with the fields that name their allocations",
    causes: &[
        "revision-rewind",
        "revision-reuse",
        "torn-snapshot",
        "watch-gap",
        "name-reuse",
        "intermediate-state",
        "unfenced-leader",
    ],
    page: include_str!("../../../docs/rules/double-allocation.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    mutual_exclusion::check(evidence, result, false);
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::testing::trial::{holds, kinds, trial};

    fn service(name: &str, uid: &str, version: u64, address: &str) -> String {
        format!("services/{name}:{uid}@{version}[.spec.clusterIPs=[\"{address}\"]]")
    }

    /// Two Services are created in sequence; `between` happens in between.
    fn two(first: &str, between: &str, second: &str) -> String {
        let (a, b) = (service("a", "u1", 20, first), service("b", "u2", 30, second));
        format!("o@A CREATE services/a => {a}\n{between}o@A CREATE services/b => {b}\n")
    }

    #[test]
    fn two_living_objects_must_not_have_one_value() {
        let list = "o@A LIST services => 40 {a:u1@20, b:u2@30}\n";
        assert_eq!(kinds(&RULE, &(two("10.0.0.1", "", "10.0.0.1") + list)), [Kind::Violation]);
        assert!(holds(&RULE, &(two("10.0.0.1", "", "10.0.0.2") + list)));
        // Addresses compare by value, not by text.
        assert_eq!(kinds(&RULE, &(two("fd00::1", "", "fd00:0:0:0:0:0:0:1") + list)), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &(two("None", "", "None") + list)), []);
    }

    #[test]
    fn nothing_is_taken_to_have_stood_because_nothing_changed_it() {
        assert!(holds(&RULE, &two("10.0.0.1", "", "10.0.0.1")));
        // It had the address before and after. Nothing shows the versions in between.
        let later = format!("o@A GET services/a => {}\n", service("a", "u1", 35, "10.0.0.1"));
        assert_eq!(kinds(&RULE, &(two("10.0.0.1", "", "10.0.0.1") + &later)), [Kind::Suspect]);
        // The later version was written on the earlier one, so the earlier one was current until then.
        let later = format!("o@A PUT services/a:u1@20 => {}\n", service("a", "u1", 35, "10.0.0.1"));
        assert_eq!(kinds(&RULE, &(two("10.0.0.1", "", "10.0.0.1") + &later)), [Kind::Violation]);
        // A watch shows everything in between.
        let watch = "o@A WATCH services from 20 +services/b:u2@30\n";
        assert_eq!(kinds(&RULE, &(two("10.0.0.1", "", "10.0.0.1") + watch)), [Kind::Violation]);
    }

    #[test]
    fn what_was_given_back_can_be_given_again() {
        let list = "o@A LIST services => 40 {b:u2@30}\n";
        let removed = "o@A DELETE services/a:u1 => ok\n";
        assert!(holds(&RULE, &(two("10.0.0.1", removed, "10.0.0.1") + list)));
        let changed = format!("o@A PUT services/a:u1@20 => {}\n", service("a", "u1", 25, "10.0.0.9"));
        let list = "o@A LIST services => 40 {a:u1@25, b:u2@30}\n";
        assert!(holds(&RULE, &(two("10.0.0.1", &changed, "10.0.0.1") + list)));
        // A new object of the same name is another life, and never coexists with the first.
        let again = "o@A CREATE services/a => services/a:u1@20[.spec.clusterIPs=[\"1.1.1.1\"]]\no@A DELETE services/a:u1 => ok\n\
                     o@A CREATE services/a => services/a:u2@30[.spec.clusterIPs=[\"1.1.1.1\"]]\no@A LIST services => 40 {a:u2@30}\n";
        assert!(holds(&RULE, again));
    }

    #[test]
    fn ports_count_per_protocol() {
        let port = |name: &str, uid: &str, version: u64, protocol: &str| {
            format!(
                "o@A CREATE services/{name} => services/{name}:{uid}@{version}[.spec.ports=[{{\"protocol\":\"{protocol}\",\"nodePort\":30080}}]]\n"
            )
        };
        let list = "o@A LIST services => 40 {a:u1@20, b:u2@30}\n";
        assert_eq!(kinds(&RULE, &(port("a", "u1", 20, "TCP") + &port("b", "u2", 30, "TCP") + list)), [Kind::Violation]);
        assert!(holds(&RULE, &(port("a", "u1", 20, "TCP") + &port("b", "u2", 30, "UDP") + list)));
    }

    #[test]
    fn ranges_exclude_each_other_where_they_overlap() {
        let node = |name: &str, uid: &str, version: u64, range: &str| {
            format!("o@A CREATE nodes/{name} => nodes/{name}:{uid}@{version}[.spec.podCIDRs=[\"{range}\"]]\n")
        };
        let list = "o@A LIST nodes => 40 {a:u1@20, b:u2@30}\n";
        let text = node("a", "u1", 20, "10.0.0.0/16") + &node("b", "u2", 30, "10.0.7.0/24") + list;
        assert_eq!(kinds(&RULE, &text), [Kind::Violation]);
        assert!(holds(&RULE, &text.replace("10.0.7.0", "10.1.7.0")));
    }

    /// A pod reports an address, the allocator changes its record, and another pod reports the address.
    fn reported(records: [&str; 3]) -> String {
        let status = |ip: &str| {
            format!(".metadata.annotations[\"k8s.v1.cni.cncf.io/network-status\"]=\"[{{\\\"ips\\\":[\\\"{ip}\\\"]}}]\"")
        };
        let [before, between, after] = records;
        format!(
            "o@A CREATE a => a:u1@20\n{before}n@A PUT a:u1@20 => a:u1@24[{0}]\n{between}\
             o@A CREATE b => b:u2@28\n{after}n@A PUT b:u2@28 => b:u2@34[{0}]\no@A LIST => 40 {{a:u1@24, b:u2@34}}\n",
            status("10.0.0.1")
        )
    }

    const FOR_A: &str = "n@A CREATE overlappingrangeipreservations/10.0.0.1 => overlappingrangeipreservations/10.0.0.1:r1@21[.spec.podref=default/a]\n";
    const FOR_B: &str = "n@A CREATE overlappingrangeipreservations/10.0.0.1 => overlappingrangeipreservations/10.0.0.1:r2@30[.spec.podref=default/b]\n";
    const TAKEN: &str = "x@A DELETE overlappingrangeipreservations/10.0.0.1:r1 => ok\n";

    #[test]
    fn a_report_that_lags_behind_the_allocator_is_no_second_holder() {
        assert!(holds(&RULE, &reported([FOR_A, TAKEN, FOR_B])));
    }

    #[test]
    fn a_report_made_after_the_allocator_took_the_address_back_is_one() {
        let text = reported([&(FOR_A.to_owned() + TAKEN), "", FOR_B]);
        let trial = trial(&RULE, &text);
        assert_eq!(trial.kinds(), [Kind::Violation]);
        let says: Vec<&str> = trial.findings[0].certificate.facts.iter().map(|f| f.says.as_str()).collect();
        assert!(says.iter().any(|says| says.contains("took 10.0.0.1 back from default/a")), "{says:?}");
    }

    #[test]
    fn what_an_allocator_did_not_record_may_be_another_one_s() {
        for records in [["", "", ""], [FOR_A, "", ""], ["", "", FOR_B]] {
            let trial = trial(&RULE, &reported(records));
            assert_eq!((trial.kinds(), trial.undecided), (vec![], 1));
        }
        // Networks with a name record their addresses under that name.
        let named = |text: &str| text.replace("/10.0.0.1", "/net-10.0.0.1");
        assert_eq!(kinds(&RULE, &reported([&named(FOR_A), "", &named(FOR_B)])), []);
    }

    #[test]
    fn services_of_another_group_are_none() {
        let list = "o@A LIST services => 40 {a:u1@20, b:u2@30}\n";
        let text = two("10.0.0.1", "", "10.0.0.1") + list;
        assert_eq!(
            kinds(
                &RULE,
                &format!(
                    "resource services.mesh.example.com kind=Service\n{}",
                    text.replace("services", "services.mesh.example.com")
                )
            ),
            []
        );
    }
}
