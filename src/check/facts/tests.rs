//! The sizes from which on facts are computed in another way change no fact.

use super::staleness::Staleness;
use super::*;
use crate::check::testing::trial::drawn;
use crate::history::Verb;
use crate::order::OrderOptions;

/// The answers of a question with the sizes that are shipped, and with small ones.
fn with_both<R>(sketch: &str, ask: impl Fn(&Evidence<'_>) -> R) -> [R; 2] {
    let (history, options) = (drawn(sketch), Options::default());
    let order = Order::derive(&history, &OrderOptions::default());
    [Facts::default(), Facts::of_small_sizes()]
        .map(|facts| ask(&Evidence { history: &history, order: &order, options: &options, facts: &facts }))
}

#[test]
fn writes_that_are_judged_in_several_parts_are_judged_like_those_of_one() {
    let mut sketch = String::new();
    for n in 0..5 {
        let at = 10 * (n + 1);
        sketch += &format!("o@A CREATE w{n} => w{n}:u{n}@{at}\nc@A GET w{n} => w{n}:u{n}@{at}\n");
        sketch += &format!("o@A PUT w{n}:u{n}@{at} => w{n}:u{n}@{}\n", at + 1);
        sketch += &format!("c@A PATCH w{n} => w{n}:u{n}@{}\n", at + 2);
    }
    let [shipped, small] = with_both(&sketch, |evidence| {
        let found = evidence.unconditioned();
        let outdated: Vec<_> = found.outdated.iter().map(|write| (write.id, write.through, write.other)).collect();
        (format!("{outdated:?}"), outdated.len(), found.checked.len(), evidence.facts.sizes.judged_at_once)
    });
    assert_eq!((&shipped.0, shipped.1, shipped.2), (&small.0, small.1, small.2));
    assert!(small.1 == 5 && small.2 > small.3 && shipped.2 <= shipped.3, "{small:?}");
}

#[test]
fn a_change_far_behind_a_list_is_the_one_that_looking_at_all_finds() {
    let mut sketch = String::from("o@A CREATE w => w:u@5[app=web]\n");
    for at in 10..20 {
        sketch += &format!("o@A CREATE d{at} => d{at}:u{at}@{at}[app=db]\n");
    }
    sketch += "o@A PUT w:u@5[app=web] => w:u@30[app=web]\n";
    sketch += "c@A LIST labels(app=web) => 9 {w:u@5[app=web]}\nc@A LIST => 9 {w:u@5[app=web]}\n";
    let [shipped, small] = with_both(&sketch, |evidence| {
        let lists = evidence.of_verbs(&[Verb::List]);
        let stale = lists.map(|(_, o)| Staleness::of_scope(evidence, o.answered, &o));
        stale.map(|stale| stale.map(|stale| stale.version.revision.to_string())).collect::<Vec<_>>()
    });
    assert_eq!(shipped, small);
    // Ten changes that the selector excludes are more than the small size.
    assert_eq!(small, [Some("30".to_owned()), Some("10".to_owned())]);
}
