//! Many invariants over many versions. Work is bounded, and the rest is unknown.

use crate::check::invariants::declared::context::budgets;
use crate::check::invariants::declared::{Mode, RULE, Tally, case, evaluate};
use crate::check::invariants::{double_allocation, double_bind};
use crate::check::testing::trial::{declared, drawn_for, ruled};
use crate::check::{Evidence, Facts, Limits, Options};
use crate::history::History;
use crate::order::{Order, OrderOptions};
use std::fmt::Write;

const HEAD: &str = "default widgets in d\n";

/// Widgets, each of one version.
fn widgets(count: usize, spec: impl Fn(usize) -> String) -> String {
    let mut sketch = HEAD.to_owned();
    for nth in 0..count {
        let made = format!("o@A CREATE w{nth} => w{nth}:u{nth}@{}[{}]", nth + 10, spec(nth));
        writeln!(sketch, "{made}").unwrap_or_else(|error| panic!("{error}"));
    }
    sketch
}

fn invariants(count: usize, resource: impl Fn(usize) -> String, expression: &str) -> String {
    let one = |nth: usize| {
        format!(
            "[[invariant]]\nname = \"i{nth}\"\nresource = \"{}\"\nexpression = '''{expression}'''\n\n",
            resource(nth)
        )
    };
    (0..count).map(one).collect()
}

/// Asks a question of the evidence that a sketch draws.
fn on<R>(rules: &str, sketch: &str, ask: impl FnOnce(&Evidence<'_>) -> R) -> R {
    let declarations = declared(rules);
    let history: History = drawn_for(sketch, &declarations);
    let order = Order::derive(&history, &OrderOptions::default());
    let options = Options { declarations, ..Options::default() };
    let facts = Facts::of_small_sizes();
    ask(&Evidence { history: &history, order: &order, options: &options, facts: &facts })
}

fn tallies(rules: &str, sketch: &str) -> Vec<Tally> {
    on(rules, sketch, |evidence| evaluate(evidence, Limits::default(), Mode::Incremental))
}

#[test]
fn many_invariants_of_one_resource_are_looked_at_as_far_as_a_run_looks() {
    let rules = invariants(300, |_| "widgets".to_owned(), "self.spec.n >= 0");
    let sketch = widgets(40, |nth| format!(".spec.n={nth}"));
    let found = tallies(&rules, &sketch);
    let looked: Vec<&Tally> = found.iter().filter(|tally| tally.given_up.is_none()).collect();
    // 2,000 units, and 64 for each of 40 versions and 40 requests.
    assert_eq!(looked.len(), (2_000 + 64 * 80) / 40);
    assert!(looked.iter().all(|tally| tally.checked == 40));
    let trial = ruled(&RULE, &rules, &sketch);
    let why = trial.open.unwrap_or_default();
    assert!(why.starts_with("invariant i178 (rules.toml:") && why.contains("than one run looks at"), "{why}");
    assert_eq!((trial.checked, trial.undecided), (178 * 40, 300 - 178));
}

#[test]
fn many_invariants_of_as_many_resources_are_all_looked_at() {
    let rules = invariants(2_000, |nth| if nth == 1_999 { "widgets".to_owned() } else { format!("w{nth}s") }, "true");
    let trial = ruled(&RULE, &rules, &widgets(40, |_| String::new()));
    assert!(trial.open.is_none() && trial.checked == 40, "{:?}", trial.open);
}

#[test]
fn of_many_invariants_that_say_nothing_a_hundred_are_named() {
    let rules = invariants(2_000, |nth| format!("w{nth}s"), "true");
    on(&rules, &widgets(1, |_| String::new()), |evidence| {
        let mut result = crate::check::RuleResult::new(RULE.slug, evidence);
        RULE.check(evidence, &mut result);
        assert_eq!(result.undecided.len(), 101);
        assert_eq!(
            result.undecided.get("no object of its resource is in the evidence (other invariants)"),
            Some(&1_900)
        );
    });
}

#[test]
fn an_invariant_that_takes_many_steps_leaves_the_others_theirs() {
    let rules = invariants(10, |_| "widgets".to_owned(), "self.spec.n >= 0");
    on(&rules, &widgets(40, |nth| format!(".spec.n={nth}")), |evidence| {
        let cases = case::of(evidence);
        let mut budgets = budgets(evidence, &cases);
        let mut hungry = budgets.remove(0);
        while hungry.is_spent(&Limits::default()).is_none() {
            hungry.charge_list(64 * 10_000);
        }
        assert!(budgets.iter().all(|budget| budget.is_spent(&Limits::default()).is_none()));
    });
}

#[test]
fn a_pattern_of_the_evidence_that_costs_too_much_is_unknown() {
    let rules = invariants(1, |_| "widgets".to_owned(), "self.spec.text.matches(self.spec.pattern)");
    let text = "a".repeat(16_000);
    let found = tallies(&rules, &widgets(5, |_| format!(".spec.text={text} .spec.pattern=\"((a{{50}}){{50}}){{6}}\"")));
    assert_eq!((found[0].checked, found[0].failed.values().sum::<u64>()), (0, 3), "{:?}", found[0]);
    assert_eq!(found[0].given_up, Some("its evaluations take too many steps"));
}

#[test]
fn many_allocations_and_references_of_one_resource_are_looked_at_as_far_as_a_run_looks() {
    let sketch = widgets(40, |nth| format!(".spec.n={nth} .spec.to=x"));
    let many = |one: &dyn Fn(usize) -> String| (0..300).map(one).collect::<String>();
    let allocations =
        many(&|nth| format!("[[allocation]]\nname = \"a{nth}\"\nresource = \"widgets\"\nvalue = [\"spec.n\"]\n\n"));
    let references = many(&|nth| {
        format!(
            "[[reference]]\nname = \"r{nth}\"\nfrom = \"widgets\"\nto = \"nodes\"\ntarget = \"spec.to\"\nonce = true\n\n"
        )
    });
    for (rule, rules) in [(&double_allocation::RULE, allocations), (&double_bind::RULE, references)] {
        let trial = ruled(rule, &rules, &sketch);
        assert!(trial.open.is_some_and(|why| why.contains("than one run looks at")), "{}", rule.slug);
        assert!(trial.undecided >= 300 - 178 && trial.findings.is_empty(), "{} {}", rule.slug, trial.undecided);
    }
}
