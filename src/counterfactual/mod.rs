//! Counterfactuals: what would have prevented a finding. Input: findings with their certificates. Output: [`Prevention`]s.
//!
//! Each alternative request is evaluated against the same revision order and clocks, for this occurrence, with what was certainly
//! committed before the request at fault was sent. Invariant: nothing else of a finding changes, and no statement goes beyond the
//! evidence.

pub(crate) mod own_writes;
mod premise;
mod read;
mod write;

use crate::check::{Evidence, Facts, Finding, Judgement, Kind, Options, Prevention};
use crate::history::{History, KeyId, OperationId};
use crate::order::Order;

/// Computes and fills in what would have prevented each violation and suspect.
pub fn prevent(history: &History, order: &Order, options: &Options, judgement: &mut Judgement) {
    Preventions::of(history, order, options, &judgement.findings).fill(judgement, options);
}

/// Preventions of the findings of a judgement, in their order. There are fewer if the computation was halted.
#[derive(Clone, Debug, Default)]
pub struct Preventions(Vec<Vec<Prevention>>);

impl Preventions {
    /// Computes preventions until the options halt the computation. Hazards get none.
    pub fn of(history: &History, order: &Order, options: &Options, findings: &[Finding]) -> Preventions {
        let evidence = Evidence { history, order, options, facts: &Facts::default() };
        let of = |finding: &Finding| match finding.kind {
            Kind::Hazard => Vec::new(),
            Kind::Violation | Kind::Suspect => preventions(&evidence, finding),
        };
        Preventions(findings.iter().take_while(|_| options.halted().is_none()).map(of).collect())
    }

    /// Fills them into the judgement whose findings they are for. Missing ones are reported in `unchecked`.
    pub fn fill(self, judgement: &mut Judgement, options: &Options) {
        let missing = judgement.findings.iter().skip(self.0.len()).filter(|finding| finding.kind != Kind::Hazard);
        let missing = missing.count() as u64;
        if missing > 0 {
            let why = options.halted().unwrap_or("the computation ended");
            judgement.unchecked.push(format!("{why} before it was known what would have prevented {missing} findings"));
        }
        for (finding, preventions) in judgement.findings.iter_mut().zip(self.0) {
            finding.prevention = preventions;
        }
    }
}

fn preventions(evidence: &Evidence<'_>, finding: &Finding) -> Vec<Prevention> {
    let Some(fault) = fault(evidence, finding) else { return Vec::new() };
    let mut preventions = match finding.rule {
        "monotonic-reads" | "read-your-writes" | "stale-consistent-read" | "below-minimum" => {
            read::preventions(evidence, finding, fault)
        }
        "resume-backwards" | "resume-from-item" => read::resumptions(evidence, finding, fault),
        "intermediate-state" | "false-absence" | "stale-premise" | "read-skew" => {
            premise::preventions(evidence, finding)
        }
        "name-reuse" | "ghost-actor" | "blind-write" => write::preventions(evidence, finding, fault),
        _ => Vec::new(),
    };
    preventions.extend(own_writes::prevention(evidence, finding, fault));
    preventions
}

/// The request at fault: that of the last fact with a request.
fn fault(evidence: &Evidence<'_>, finding: &Finding) -> Option<OperationId> {
    let facts = finding.certificate.facts.iter().rev();
    facts.map(|f| f.operation).find(|o| o.is_some() && o.index() < evidence.history.operations.len())
}

/// The object of a finding: its key, else the last key among its facts.
fn subject(finding: &Finding) -> KeyId {
    if finding.key.is_some() {
        return finding.key;
    }
    let keys = finding.certificate.facts.iter().rev().map(|f| f.key);
    keys.into_iter().find(|k| k.is_some()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Options, prevent};
    use crate::check::testing::trial::drawn;
    use crate::check::{Effect, Kind, judge};
    use crate::order::{Order, OrderOptions};

    /// The preventions of a rule's findings in a drawn history: request, effect and reason.
    fn prevented(rule: &str, sketch: &str) -> Vec<(String, Effect, String)> {
        let history = drawn(sketch);
        let order = Order::derive(&history, &OrderOptions::default());
        let options = Options::default();
        let mut judgement = judge(&history, &order, &options);
        prevent(&history, &order, &options, &mut judgement);
        let found = judgement.findings.into_iter().filter(|f| f.rule == rule && f.kind == Kind::Violation);
        found.flat_map(|f| f.prevention).map(|p| (p.request, p.effect, p.because)).collect()
    }

    #[test]
    fn the_version_with_which_a_removed_object_lived_would_show_it_again() {
        let text = "w@A CREATE a => a:u1@10\nw@A DELETE a => ok:u1\nw@A CREATE b => b:u2@12\nr@A LIST => 12 {a:u1@10 b:u2@12}\n";
        let list = prevented("stale-consistent-read", text);
        assert!(
            list.iter().all(|(request, effect, _)| *effect == Effect::Narrowed && !request.contains("=10")),
            "{list:?}"
        );
        assert!(list.iter().any(|(_, _, because)| because.contains("404")), "{list:?}");
    }

    #[test]
    fn an_eviction_that_names_the_uid_that_was_seen_is_refused() {
        let text =
            "c@A GET w => w:u1@26\no@A DELETE w:u1 => ok\no@A CREATE w => w:u2@33\nc@A CREATE w eviction => ok\n";
        let list = prevented("name-reuse", text);
        let uid = list.iter().find(|(request, ..)| request.contains("on uid")).map(|(_, effect, _)| *effect);
        assert_eq!(uid, Some(Effect::Impossible), "{list:?}");
    }

    #[test]
    fn a_watch_from_an_items_version_should_have_begun_at_the_lists() {
        let text =
            "etcd  +a:u1@5  +b:u2@12  ~a@15  ~a@18\nctrl@A  LIST => 20 {a@18 b@12}\nctrl@A  WATCH from 12  ~a@15\n";
        let list = prevented("monotonic-reads", text);
        let (first, effect, _) = list.first().expect("a prevention");
        assert!(first.contains("watch from resourceVersion=20") && *effect == Effect::Impossible, "{list:?}");
        assert!(!list.iter().any(|(request, ..)| request.contains("NotOlderThan")), "{list:?}");
    }

    /// Effect and reason of the read-your-own-writes client for the findings of a rule.
    fn own_writes(rule: &str, sketch: &str) -> Vec<(Effect, String)> {
        let all = prevented(rule, sketch).into_iter();
        let own = all.filter(|(request, ..)| request.contains("read-your-own-writes"));
        own.map(|(_, effect, because)| (effect, because)).collect()
    }

    /// A binder whose cache has no claim releases the volume of a claim that exists since 20.
    const BINDER: &str =
        "client binder user=system:serviceaccount:kube-system:persistent-volume-binder\nclient user user=alice\n";
    const DECIDES: &str = "user@A    CREATE persistentvolumes/pv-1 => persistentvolumes/pv-1:v1@22\n\
                           binder@A  READ persistentvolumeclaims/data => absent for pass\n\
                           binder@A  PUT persistentvolumes/pv-1:v1@22 status for pass => persistentvolumes/pv-1:v1@30\n\
                           user@A    PUT persistentvolumeclaims/data:c1@20 => persistentvolumeclaims/data:c1@41\n";

    fn claim(by: &str, name: &str, uid: &str, at: u32) -> String {
        format!("{by}@A CREATE persistentvolumeclaims/{name} => persistentvolumeclaims/{name}:{uid}@{at}\n")
    }

    #[test]
    fn a_client_that_waits_for_its_own_write_of_the_object_reads_it() {
        let text = [BINDER, &claim("binder", "data", "c1", 20), DECIDES].concat();
        let found = own_writes("false-absence", &text);
        assert!(matches!(&*found, [(Effect::Impossible, because)] if because.contains("at 20")), "{found:?}");
    }

    #[test]
    fn a_client_does_not_wait_for_the_write_of_another_client() {
        let text = [BINDER, &claim("user", "data", "c1", 20), DECIDES].concat();
        let found = own_writes("false-absence", &text);
        assert!(matches!(&*found, [(Effect::None, because)] if because.contains("no write")), "{found:?}");
    }

    #[test]
    fn a_read_of_one_object_does_not_wait_for_the_write_of_another_object() {
        let text = [BINDER, &claim("user", "data", "c1", 20), &claim("binder", "logs", "c2", 21), DECIDES].concat();
        let found = own_writes("false-absence", &text);
        assert!(
            matches!(&*found, [(Effect::Narrowed, because)] if because.contains("a list of the kind waits")),
            "{found:?}"
        );
    }

    #[test]
    fn a_restarted_client_does_not_wait_for_the_writes_of_its_former_life() {
        let text = "client k user=system:node:n\nk/1@A CREATE a => a:u1@10\nk/2@B LIST rv=0 => 5 {}\n";
        let found = own_writes("read-your-writes", text);
        assert!(matches!(&*found, [(Effect::None, because)] if because.contains("restart")), "{found:?}");
        let text = "c@A CREATE a => a:u1@10\nc@B LIST rv=0 => 5 {}\n";
        let found = own_writes("read-your-writes", text);
        assert!(matches!(&*found, [(Effect::Impossible, _)]), "{found:?}");
    }
}
