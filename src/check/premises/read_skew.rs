#![doc = include_str!("../../../docs/rules/read-skew.md")]

use crate::check::facts::commit_evidence;
use crate::check::premises::premise_index::{ENDLESS, PremiseIndex, Used};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{ClockId, OperationId, Revision};
use crate::ingest::Time;
use rustc_hash::FxHashMap;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "read-skew",
    title: "all values that one decision used were true together at some revision",
    group: Group::Premises,
    promise: BrokenBy::Nobody,
    needs: "declared decisions (read lines, requests with a decision) with two reads of single objects",
    causes: &["torn-snapshot", "stale-consistent-read", "monotonic-reads", "read-your-writes"],
    page: include_str!("../../../docs/rules/read-skew.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let Some(basis) = PremiseIndex::declared(evidence) else { return };
    let history = evidence.history;
    let mut harmful = None;
    for (write, decided) in basis.decided() {
        let o = history.operation(write);
        let Some(decided) = decided else {
            result.undecided(ENDLESS);
            continue;
        };
        let used: Vec<&Used> = decided.used.iter().filter(|used| !used.truth.is_empty()).collect();
        if used.len() < 2 {
            continue;
        }
        result.checked(o.incarnation);
        let pass = std::ptr::from_ref(decided.pass);
        let Some((a, b)) = skew(evidence, &basis, &used) else { continue };
        let kind = if commit_evidence::took_effect(evidence, write, &o) { Kind::Violation } else { Kind::Hazard };
        // One finding a pass is enough, because its later writes rest on the same reads.
        if kind == Kind::Violation && harmful.replace(pass) == Some(pass) {
            continue;
        }
        found(evidence, &basis, result, write, kind, [a, b]);
    }
}

/// The value of one counter that ended first, and the one that began last.
#[derive(Default)]
struct Extremes<'u> {
    first: Option<&'u Used>,
    last: Option<&'u Used>,
}

/// Two values that were never true together.
fn skew<'u>(evidence: &Evidence<'_>, basis: &PremiseIndex<'_>, used: &[&'u Used]) -> Option<(&'u Used, &'u Used)> {
    let history = evidence.history;
    // Intervals of one counter share a revision unless one of them ends before another begins.
    let mut counters: FxHashMap<_, Extremes<'_>> = FxHashMap::default();
    for &one in used {
        let Extremes { first, last } = counters.entry(basis.counter(history.resource_of(one.premise.key))).or_default();
        let end = |used: &Used| used.truth.through.unwrap_or(Revision::new(u128::MAX));
        if first.is_none_or(|first| end(one) < end(first)) {
            *first = Some(one);
        }
        if last.is_none_or(|last| one.truth.from > last.truth.from) {
            *last = Some(one);
        }
    }
    let mut by_revision: Vec<(&Used, &Used)> = counters
        .into_values()
        .filter_map(|Extremes { first, last }| first.zip(last))
        .filter(|(a, b)| !a.truth.meets(&b.truth))
        .collect();
    by_revision.sort_by_key(|(a, b)| (a.premise.moment, b.premise.moment, a.premise.key));
    if let Some(&pair) = by_revision.first() {
        return Some(pair);
    }
    by_time(evidence, used)
}

/// Two values without a common counter: one had certainly ended before the write of the other was sent.
fn by_time<'u>(evidence: &Evidence<'_>, used: &[&'u Used]) -> Option<(&'u Used, &'u Used)> {
    let (history, clocks) = (evidence.history, &evidence.order.clocks);
    let mut ended: FxHashMap<ClockId, (Time, &Used)> = FxHashMap::default();
    let mut begun: FxHashMap<ClockId, (Time, &Used)> = FxHashMap::default();
    for &one in used {
        if let Some((time, clock)) = one.truth.not_after(history) {
            let first = ended.entry(clock).or_insert((time, one));
            if time < first.0 {
                *first = (time, one);
            }
        }
        if let Some((time, clock)) = one.truth.not_before(history) {
            let last = begun.entry(clock).or_insert((time, one));
            if time > last.0 {
                *last = (time, one);
            }
        }
    }
    let mut pairs: Vec<(&Used, &Used)> = Vec::new();
    for (&end_clock, &(end, a)) in &ended {
        for (&begin_clock, &(begin, b)) in &begun {
            if a.premise.key != b.premise.key && clocks.before((end, end_clock), (begin, begin_clock)) {
                pairs.push((a, b));
            }
        }
    }
    pairs.into_iter().min_by_key(|(a, b)| (a.premise.moment, b.premise.moment, a.premise.key))
}

fn found(
    evidence: &Evidence<'_>,
    basis: &PremiseIndex<'_>,
    result: &mut RuleResult<'_>,
    write: OperationId,
    kind: Kind,
    [a, b]: [&Used; 2],
) {
    let history = evidence.history;
    let o = history.operation(write);
    let client = evidence.short_client(&o);
    let (first, last) = (basis.words(&a.premise), basis.words(&b.premise));
    let mut facts = vec![basis.fact(&a.premise, format!("{client} read {first} for its decision"))];
    if let Some(version) = a.truth.ended_by {
        facts.push(
            evidence.version(&version, format!("{}, so the first value had ended", evidence.change_words(&version))),
        );
    }
    if let Some(version) = b.truth.begun_by {
        facts.push(
            evidence.version(
                &version,
                format!("{}: the second value was true from here on", evidence.change_words(&version)),
            ),
        );
    }
    facts.push(basis.fact(&b.premise, format!("{client} read {last} for the same decision")));
    let request = history.request_name(&o);
    facts.push(match kind {
        Kind::Violation => evidence.operation(write, o.answered, format!("{request} was answered with success")),
        _ => evidence.operation(write, o.answered, format!("{request} was not answered with success")),
    });
    let window = |used: &Used| match used.truth.through {
        Some(through) => format!("[{}, {through}]", used.truth.from),
        None => format!("from {}", used.truth.from),
    };
    result.found(Draft {
        kind,
        broken_by: BrokenBy::Nobody,
        incarnation: o.incarnation,
        key: o.key,
        cause: format!(
            "{} {}",
            history.resource_name(history.resource_of(a.premise.key)),
            history.resource_name(history.resource_of(b.premise.key))
        ),
        summary: format!("{client} decided on {first} and {last}, which were never true together"),
        facts,
        reason: format!(
            "the first value was true at revisions {}, the second {}, so no state of the store had both",
            window(a),
            window(b)
        ),
        refuted_by: "evidence that the decision read one of the two again before it wrote".to_owned(),
        consequence: "it acts on a state of the cluster that never existed".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    /// The absence that the first read shows ends before the second object gets the version that is read.
    const SKEW: &str = "default widgets\no@A CREATE p => p:up@10\nc@A GET r for d => !404\no@A CREATE r => r:ur@25\n\
                        o@A PUT p:up@10 => p:up@31\nc@A GET p for d => p:up@31\nc@A PATCH p test(@31) for d => p:up@40\n";

    #[test]
    fn two_values_that_were_never_true_together() {
        assert_eq!(kinds(&RULE, SKEW), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &SKEW.replace("=> p:up@40", "=> !422")), [Kind::Hazard]);
        // Read again, both were true at 31.
        assert!(holds(&RULE, &SKEW.replace("c@A PATCH", "c@A GET r for d => r:ur@25\nc@A PATCH")));
    }

    #[test]
    fn an_absence_that_a_cache_still_showed_is_one_too() {
        let cached =
            SKEW.replace("c@A GET r for d => !404\n", "").replace("c@A PATCH", "c@A READ r => absent for d\nc@A PATCH");
        // Nothing shows that the object still existed when the cache was read.
        assert!(holds(&RULE, &cached));
        assert_eq!(kinds(&RULE, &format!("{cached}o@A PUT r:ur@25 => r:ur@45\n")), [Kind::Violation]);
    }

    #[test]
    fn resources_that_may_have_an_etcd_of_their_own_compare_by_time() {
        let text = "c@A READ a => :u1@10 for d\no@A CREATE a => a:u1@10\no@A PUT a:u1@10 => a:u1@20\n\
                    o@A CREATE nodes/n => nodes/n:u2@30\nc@A GET nodes/n for d => nodes/n:u2@30\nc@A DELETE b for d => ok\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        let concurrent = text.replace(
            "o@A PUT a:u1@10 => a:u1@20\no@A CREATE nodes/n => nodes/n:u2@30\n",
            "---\no@A |-PUT a:u1@10 => a:u1@20-----------|\nx@A |-CREATE nodes/n => nodes/n:u2@30-|\n---\n",
        );
        assert!(holds(&RULE, &concurrent));
    }

    #[test]
    fn reads_of_other_decisions_and_other_passes_do_not_count() {
        let text = "o@A CREATE a => a:u1@10\nc@A READ a => :u1@10 for d\no@A PUT a:u1@10 => a:u1@20\no@A CREATE b => b:u2@30\n\
                    c@A GET b for d => b:u2@30\nc@A PATCH b test(@30) for d => b:u2@40\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &text.replace(":u1@10 for d", ":u1@10 for e")), []);
        let passes = text.replace("c@A GET", "c@A DECIDE d\nc@A GET");
        assert_eq!(kinds(&RULE, &passes), []);
    }

    #[test]
    fn what_the_decision_wrote_itself_is_no_read() {
        let text = "o@A CREATE a => a:u1@10\nc@A GET a for d => a:u1@10\nc@A PUT a:u1@10 for d => a:u1@20\no@A CREATE b => b:u2@30\n\
                    c@A GET b for d => b:u2@30\nc@A GET z for d => !404\nc@A PATCH b test(@30) for d => b:u2@40\n";
        assert!(holds(&RULE, text));
    }
}
