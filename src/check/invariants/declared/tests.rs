use crate::check::invariants::declared::case::Failure;
use crate::check::invariants::declared::{Mode, Place, RULE, evaluate};
use crate::check::testing::trial::{Trial, declared, drawn_for, ruled};
use crate::check::{Evidence, Kind, Limits, Options};
use crate::order::{Order, OrderOptions};
use std::collections::BTreeMap;

fn invariant(scope: &str, expression: &str, rest: &str) -> String {
    format!(
        "[[invariant]]\nname = \"mine\"\nresource = \"widgets\"\nscope = \"{scope}\"\nexpression = '''{expression}'''\n{rest}\n"
    )
}

const HEAD: &str = "default widgets in d\n";

fn trial(rules: &str, sketch: &str) -> Trial {
    let sketch = format!("{HEAD}{sketch}");
    agree(rules, &sketch);
    let trial = ruled(&RULE, rules, &sketch);
    for finding in &trial.findings {
        assert!(finding.certificate.facts.len() >= 2 || finding.kind == Kind::Hazard, "{finding:#?}");
    }
    trial
}

/// The subject of an interval, its bounds, and its certainty.
type Summary = (usize, Place, u128, bool);

/// Compares both ways of evaluating, which must find the same. Returns the failures.
fn agree(rules: &str, sketch: &str) -> Vec<Summary> {
    let declarations = declared(rules);
    let history = drawn_for(sketch, &declarations);
    let order = Order::derive(&history, &OrderOptions::default());
    let options = Options { declarations, ..Options::default() };
    let evidence =
        Evidence { history: &history, order: &order, options: &options, facts: &crate::check::Facts::default() };
    let found = |mode| {
        let tallies = evaluate(&evidence, Limits::default(), mode);
        let summary = |nth: usize, f: &Failure| (nth, f.of.clone(), f.from.value(), f.is_certain);
        let summary: Vec<Summary> =
            tallies.iter().enumerate().flat_map(|(nth, t)| t.failures.iter().map(move |f| summary(nth, f))).collect();
        summary
    };
    let (swept, plain) = (found(Mode::Incremental), found(Mode::Full));
    assert_eq!(swept, plain, "{rules}\n{sketch}");
    swept
}

fn kinds(rules: &str, sketch: &str) -> Vec<Kind> {
    trial(rules, sketch).findings.iter().flat_map(|f| f.occurrences.iter().map(|_| f.kind)).collect()
}

fn holds(rules: &str, sketch: &str) -> bool {
    let trial = trial(rules, sketch);
    trial.findings.is_empty() && trial.checked > 0 && trial.open.is_none()
}

/// Widget `name` is created with a spec.
fn made(name: &str, version: u64, spec: &str) -> String {
    format!("o@A CREATE {name} => {name}:u-{name}@{version}[{spec}]\n")
}

/// It is written on a version of it.
fn put(name: &str, base: u64, version: u64, spec: &str) -> String {
    format!("o@A PUT {name}:u-{name}@{base} => {name}:u-{name}@{version}[{spec}]\n")
}

fn gone(name: &str, version: u64) -> String {
    format!("o@A DELETE {name}:u-{name} => {name}:u-{name}@{version}[gone]\n")
}

#[test]
fn a_guard_on_a_whole_part_of_an_object_hides_nothing_below_it() {
    for part in ["status", "spec"] {
        let rules = invariant(
            "object",
            &format!("!has(self.{part}) || self.{part}.n <= self.{part}.most"),
            "message = \"too many\"",
        );
        let history =
            |n: u8| made("a", 10, ".metadata.x=1") + &put("a", 10, 20, &format!(".{part}.n={n} .{part}.most=3"));
        assert_eq!(kinds(&rules, &history(5)), [Kind::Violation], "{part}");
        assert!(holds(&rules, &history(2)), "{part}");
    }
}

#[test]
fn an_object_must_be_as_the_expression_says() {
    let rules = invariant("object", "self.spec.n <= self.spec.most", "message = \"too many\"");
    let history = made("a", 10, ".spec.n=1 .spec.most=3") + &put("a", 10, 20, ".spec.n=5 .spec.most=3");
    let trial = trial(&rules, &history);
    assert_eq!(trial.findings.len(), 1);
    let finding = &trial.findings[0];
    assert!(
        finding.summary.starts_with("mine is false of widgets.example.com d/a at revision 20: too many"),
        "{}",
        finding.summary
    );
    assert!(
        finding.certificate.reason.contains("rules.toml:5) requires: self.spec.n <= self.spec.most"),
        "{}",
        finding.certificate.reason
    );
    let says: Vec<&str> = finding.certificate.facts.iter().map(|fact| fact.says.as_str()).collect();
    assert!(
        says[0].starts_with("mine was true: widgets.example.com d/a@10")
            && says[1].contains("spec.most = 3, spec.n = 5"),
        "{says:?}"
    );
    assert!(holds(&rules, &(made("a", 10, ".spec.n=1 .spec.most=3") + &put("a", 10, 20, ".spec.n=3 .spec.most=3"))));
}

#[test]
fn a_stretch_is_one_finding_with_its_end() {
    let rules = invariant("object", "self.spec.n <= 3", "");
    let history = made("a", 10, ".spec.n=4") + &put("a", 10, 20, ".spec.n=5") + &put("a", 20, 30, ".spec.n=1");
    let trial = trial(&rules, &history);
    assert_eq!(trial.findings.len(), 1);
    assert!(trial.findings[0].summary.contains("from revision 10 through 29"), "{}", trial.findings[0].summary);
    assert_eq!(trial.findings[0].certificate.facts.len(), 3);
}

#[test]
fn an_invariant_speaks_of_what_it_selects() {
    let rules = |rest: &str| invariant("object", "self.spec.n <= 3", rest);
    let history = made("a", 10, ".spec.n=4 .spec.kind=small app=web");
    assert_eq!(kinds(&rules(""), &history), [Kind::Violation]);
    assert_eq!(kinds(&rules("severity = \"hazard\""), &history), [Kind::Hazard]);
    assert_eq!(
        kinds(&rules("when = { \"spec.kind\" = [\"small\"], \"metadata.labels.app\" = [\"web\"] }"), &history).len(),
        1
    );
    for rest in [
        "when = { \"spec.kind\" = [\"large\"] }",
        "unless = { \"spec.kind\" = [\"*\"] }",
        "unless = { \"metadata.labels.app\" = [\"web\"] }",
        "namespaces = [\"e\", \"f*\"]",
    ] {
        assert_eq!(kinds(&rules(rest), &history), [], "{rest}");
    }
    assert_eq!(kinds(&rules("namespaces = [\"e\", \"d*\"]"), &history).len(), 1);
}

#[test]
fn what_the_evidence_does_not_show_is_never_false() {
    let rules = invariant("object", "has(self.spec.n) && self.spec.n <= 3", "");
    let reduced = "o@A LIST => 10 {a:u1@9[?]}\n";
    let trial = trial(&rules, reduced);
    assert!(trial.findings.is_empty() && trial.checked == 0 && trial.undecided == 1, "{:?}", trial.findings);
    let live = invariant("live", "objects.all(o, has(o.spec.n))", "");
    assert_eq!(kinds(&live, reduced), []);
}

#[test]
fn an_evaluation_that_fails_leaves_the_rule_open_and_the_others_go_on() {
    let second = invariant("object", "self.spec.n <= 3", "").replace("mine", "other");
    for (expression, why) in [
        ("self.spec.missing <= 3", "a value has no field `missing`"),
        ("self.spec.n / (self.spec.n - 4) == 1", "it divides by zero"),
        ("self.spec.n < 'a'", "found no matching overload for '_<_' applied to '(int, string)'"),
        (
            "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, \
             [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, [1,2,3,4,5,6,7,8,9].all(g, self.spec.n == 4)))))))",
            "it takes more steps than one evaluation may",
        ),
    ] {
        let rules = invariant("object", expression, "") + &second;
        let trial = trial(&rules, &made("a", 10, ".spec.n=4"));
        assert_eq!(trial.findings.len(), 1, "{expression}");
        assert!(trial.findings[0].summary.starts_with("other is false"));
        let open = trial.open.unwrap_or_default();
        assert_eq!(open, format!("invariant mine (rules.toml:5) failed in 1 of 1 evaluations: {why}"), "{expression}");
    }
}

#[test]
fn a_change_is_judged_between_neighbours() {
    let rules = invariant("transition", "self.spec.n == oldSelf.spec.n || self.spec.n == oldSelf.spec.n + 1", "");
    let history = made("a", 10, ".spec.n=1") + &put("a", 10, 20, ".spec.n=3");
    let trial = trial(&rules, &history);
    assert_eq!(trial.findings[0].kind, Kind::Violation);
    assert!(trial.findings[0].summary.starts_with("mine is false of widgets.example.com d/a at revision 20: mine"));
    assert!(holds(&rules, &(made("a", 10, ".spec.n=1") + &put("a", 10, 20, ".spec.n=2"))));
    // Another write may lie in between.
    let gap = made("a", 10, ".spec.n=1") + "o@A GET a => a:u-a@20[.spec.n=3]\n";
    assert_eq!(kinds(&rules, &gap), [Kind::Suspect]);
    // A property of each change that holds of any two versions.
    let immutable = |rest: &str| invariant("transition", "self.spec.n == oldSelf.spec.n", rest);
    assert_eq!(kinds(&immutable("transitive = true"), &gap), [Kind::Violation]);
    assert_eq!(kinds(&immutable(""), &gap), [Kind::Suspect]);
    let hidden = made("a", 10, ".spec.n=1") + "o@A LIST => 15 {a:u-a@15[?]}\n" + &put("a", 15, 20, ".spec.n=3");
    assert_eq!(kinds(&immutable("transitive = true"), &hidden), [Kind::Violation]);
    assert_eq!(kinds(&immutable(""), &hidden), []);
}

#[test]
fn another_life_of_the_name_is_no_change() {
    let rules = invariant("transition", "self.spec.n == oldSelf.spec.n", "transitive = true");
    let again = made("a", 10, ".spec.n=1") + &gone("a", 12) + "o@A CREATE a => a:u2@20[.spec.n=3]\n";
    assert_eq!(kinds(&rules, &again), []);
    let unseen = made("a", 10, ".spec.n=1") + "o@A GET a => a:u2@20[.spec.n=3]\n";
    assert_eq!(kinds(&rules, &unseen), []);
}

const ALONE: &str = "objects.all(a, objects.all(b, a.metadata.uid == b.metadata.uid || a.spec.host != b.spec.host))";

#[test]
fn two_living_objects_convict_whatever_others_there_are() {
    let list = "o@A LIST => 40 {a:u-a@10, b:u-b@20}\n";
    let history = made("a", 10, ".spec.host=h") + &made("b", 20, ".spec.host=h") + list;
    for rules in [invariant("live", ALONE, ""), invariant("live", "objects.size() <= 1", "per = [\"spec.host\"]")] {
        let trial = trial(&rules, &history);
        assert_eq!(trial.findings.len(), 1, "{rules}");
        assert_eq!(trial.findings[0].kind, Kind::Violation);
        assert_eq!(trial.findings[0].certificate.facts.len(), 2);
        assert_eq!(kinds(&rules, &history.replace("u-b@20[.spec.host=h", "u-b@20[.spec.host=i")), []);
        // Nothing shows the first object after the second one exists.
        assert_eq!(kinds(&rules, &history.replace(list, "")), []);
        // It is gone before.
        let after = made("a", 10, ".spec.host=h")
            + &gone("a", 15)
            + &made("b", 20, ".spec.host=h")
            + "o@A LIST => 40 {b:u-b@20}\n";
        assert_eq!(kinds(&rules, &after), []);
    }
}

#[test]
fn what_more_objects_could_make_true_needs_all_of_them() {
    let rules = invariant("live", "objects.exists(o, o.spec.main)", "");
    let one = "o@A LIST => 9 {}\no@A WATCH from 9 +a:u-a@10[.spec.main=false]";
    assert_eq!(kinds(&rules, &format!("{one} ^15\n")), [Kind::Violation]);
    assert!(holds(
        &rules,
        &format!("{one} +b:u-b@12[.spec.main=true] ^15\n")
            .replace("LIST => 9 {}", "LIST => 9 {c:u-c@8[.spec.main=true]}")
    ));
    // Without the list there may be others.
    let trial = trial(&rules, &made("a", 10, ".spec.main=false"));
    assert!(trial.findings.is_empty() && trial.undecided > 0);
    // A page, a selection or a namespace is not the whole.
    for list in ["LIST limit=1 => 9 {} more", "LIST labels(x=y) => 9 {}", "LIST in d => 9 {}"] {
        let part = format!("{one} ^15\n").replace("LIST => 9 {}", list);
        assert_eq!(kinds(&rules, &part), [], "{list}");
    }
    // One of them was not shown.
    assert_eq!(kinds(&rules, &format!("{one} +b:u-b@12[?] ^15\n").replace("{}", "{c:u-c@8[?]}")), []);
}

#[test]
fn of_nothing_at_all_only_a_whole_list_knows() {
    let rules = invariant("live", "objects.size() >= 1", "");
    assert_eq!(kinds(&rules, "o@A LIST => 9 {}\n"), [Kind::Violation]);
    assert!(holds(&rules, "o@A LIST => 9 {a:u1@5[.spec.n=1]}\n"));
}

#[test]
fn a_stretch_of_living_objects_has_a_beginning_and_an_end() {
    let rules = invariant("live", "objects.size() <= 1", "per = [\"spec.host\"]");
    let history = made("a", 10, ".spec.host=h")
        + "o@A WATCH from 10 +b:u-b@20[.spec.host=h] ~b@25[.spec.host=h .spec.n=2] -a@30 ^40\n";
    let trial = trial(&rules, &history);
    assert_eq!(trial.findings.len(), 1);
    let summary = &trial.findings[0].summary;
    assert!(
        summary.starts_with("mine is false of the widgets.example.com with spec.host h from revision 20 through 29"),
        "{summary}"
    );
    let says: Vec<&str> = trial.findings[0].certificate.facts.iter().map(|fact| fact.says.as_str()).collect();
    assert!(says.len() == 3 && says[2] == "widgets.example.com d/a ended", "{says:?}");
}

#[test]
fn an_object_with_several_values_is_in_several_groups() {
    let rules = invariant("live", "objects.size() <= 1", "per = [\"spec.hosts[*]\"]");
    let list = "o@A LIST => 40 {a:u-a@10, b:u-b@20}\n";
    let history = made("a", 10, ".spec.hosts=[\"h\",\"i\"]") + &made("b", 20, ".spec.hosts=[\"i\",\"j\"]") + list;
    let trial = trial(&rules, &history);
    assert_eq!(trial.findings.len(), 1);
    assert!(trial.findings[0].summary.contains("with spec.hosts[*] i "), "{}", trial.findings[0].summary);
}

#[test]
fn messages_can_be_expressions() {
    let rest = "message-expression = \"'wants ' + string(self.spec.n)\"";
    let trial = trial(&invariant("object", "self.spec.n <= 3", rest), &made("a", 10, ".spec.n=4"));
    assert!(trial.findings[0].summary.ends_with(": wants 4"), "{}", trial.findings[0].summary);
}

#[test]
fn a_group_that_everything_is_in_is_bounded() {
    // Every object with every other, five times.
    let others: String = ["b", "c", "e", "f", "g"].map(|name| format!("objects.exists_one({name}, ")).concat();
    let expression = format!("objects.all(a, !{others}a.spec.host == g.spec.host + b.spec.host{})", ")".repeat(5));
    let rules = invariant("live", &expression, "");
    let items: Vec<String> = (0..20).map(|n| format!("o{n}:u{n}@{}[.spec.host=h{n}]", n + 1)).collect();
    let trial = ruled(&RULE, &rules, &format!("{HEAD}o@A LIST => 700 {{{}}}\n", items.join(", ")));
    assert!(trial.findings.is_empty());
    let open = trial.open.unwrap_or_default();
    assert!(open.contains("it takes more steps than one evaluation may"), "{open}");
}

/// A random history: writes, reads and watches of a store with four names, of which some are recorded. Also the number of
/// objects from each revision on.
fn drawn(seed: u64) -> (String, BTreeMap<u128, usize>) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut text = HEAD.to_owned();
    let mut store: [Option<(u64, u64, String)>; 4] = [const { None }; 4];
    let mut lives = 0;
    let mut counts = BTreeMap::new();
    let mut watch: Option<(u64, String)> = None;
    for revision in 2..2 + 6 + random(20) {
        let at = random(4) as usize;
        let name = ["a", "b", "c", "e"][at];
        // Sometimes only a field that few expressions read differs.
        let rest = ["", " .spec.o.p=1", " .spec.o.q=1", " .spec.o=1", " .status.seen=1", " .status.seen=2"]
            [random(6) as usize];
        let fields = match &store[at] {
            Some((_, _, fields)) if random(2) == 0 => fields.split(" .spec.n").next().unwrap_or_default().to_owned(),
            _ => format!(".spec.host=h{}", random(2)),
        };
        let fields = format!("{fields} .spec.n={}{rest}", random(4));
        let body = |uid: u64| format!("{name}:u{uid}@{revision}[{fields}]");
        let shown = |uid: u64, hidden: bool| if hidden { format!("{name}:u{uid}@{revision}[?]") } else { body(uid) };
        let hidden = random(8) == 0;
        let (act, event) = match store[at].take() {
            None => {
                lives += 1;
                store[at] = Some((lives, revision, fields.clone()));
                (format!("CREATE {name} => {}", body(lives)), format!("+{}", shown(lives, hidden)))
            }
            Some((uid, _, _)) if random(4) == 0 => (
                match random(2) {
                    0 => format!("DELETE {name}:u{uid} => {name}:u{uid}@{revision}[gone]"),
                    _ => format!("DELETE {name}:u{uid} => ok:u{uid}"),
                },
                format!("-{name}:u{uid}@{revision}"),
            ),
            Some((uid, base, _)) => {
                store[at] = Some((uid, revision, fields.clone()));
                let based =
                    if random(2) == 0 { format!("PUT {name}:u{uid}@{base}") } else { format!("PATCH {name}:u{uid}") };
                (format!("{based} => {}", body(uid)), format!("~{}", shown(uid, hidden)))
            }
        };
        counts.insert(revision.into(), store.iter().flatten().count());
        match &mut watch {
            Some((_, events)) => *events += &format!(" {event}"),
            None if random(4) > 0 => text += &format!("o@A {act}\n"),
            None => {}
        }
        if random(5) == 0 {
            if let Some((from, events)) = watch.take() {
                text += &format!("w@A WATCH from {from}{events} ^{revision}\n");
            } else {
                let items: Vec<String> = ["a", "b", "c", "e"]
                    .iter()
                    .zip(&store)
                    .filter_map(|(name, held)| {
                        let (uid, version, fields) = held.as_ref()?;
                        Some(format!("{name}:u{uid}@{version}[{fields}]"))
                    })
                    .collect();
                text += &format!("w@A LIST => {revision} {{{}}}\n", items.join(", "));
                if random(2) == 0 {
                    watch = Some((revision, String::new()));
                }
            }
        }
    }
    if let Some((from, events)) = watch.filter(|(_, events)| !events.is_empty()) {
        text += &format!("w@A WATCH from {from}{events}\n");
    }
    (text, counts)
}

#[test]
fn a_number_of_objects_that_is_found_false_was_false_in_the_store() {
    type Bound = (&'static str, fn(usize) -> bool);
    let bounds: [Bound; 4] = [(">= 1", |n| n >= 1), (">= 2", |n| n >= 2), ("<= 1", |n| n <= 1), ("== 2", |n| n == 2)];
    let mut found = [0; 4];
    for seed in 0..150 {
        let (text, counts) = drawn(seed);
        for (nth, (bound, holds)) in bounds.iter().enumerate() {
            for (_, _, revision, _) in agree(&invariant("live", &format!("objects.size() {bound}"), ""), &text) {
                let count = counts.range(..=revision).next_back().map_or(0, |(_, count)| *count);
                assert!(!holds(count), "seed {seed}, {bound} at {revision}: {count}\n{text}");
                found[nth] += 1;
            }
        }
    }
    assert!(found.iter().all(|found| *found >= 4), "{found:?}");
}

#[test]
fn sweeping_finds_what_evaluating_everything_finds() {
    let named = |nth: usize, text: String| text.replace("\"mine\"", &format!("\"i{nth}\""));
    let rules: Vec<String> = [
        invariant("object", "self.spec.n < 3", ""),
        invariant("object", "self.spec.n < 3 || self.spec.host == 'h0'", "when = { \"spec.host\" = [\"h1\"] }"),
        invariant("transition", "self.spec.n >= oldSelf.spec.n", ""),
        invariant("transition", "self.spec.host == oldSelf.spec.host", "transitive = true"),
        invariant("live", ALONE, ""),
        invariant("live", "objects.size() <= 1", "per = [\"spec.host\"]"),
        invariant("live", "objects.exists(o, o.spec.n > 0)", "per = [\"spec.host\"]"),
        invariant("live", "objects.exists(o, o.spec.n == 3)", ""),
        invariant("live", "objects.size() != 2", "when = { \"spec.host\" = [\"h0\"] }"),
        invariant("live", "objects.exists_one(o, o.spec.n == 1) || objects.size() > 2", ""),
        invariant("object", "!has(self.spec.o) || has(self.spec.o.p)", ""),
        invariant("object", "self.spec.o.p == 2 || self.spec.n > 0", ""),
        invariant("object", "self.metadata.resourceVersion != '9' && self.spec.n >= 0", ""),
        invariant("transition", "has(self.spec.o) || !has(oldSelf.spec.o)", ""),
        invariant("transition", "has(self.spec.o.p) || self.spec.n != oldSelf.spec.n", "transitive = true"),
        invariant("live", "objects.all(a, !has(a.spec.o) || has(a.spec.o.p))", ""),
        invariant("live", "objects.all(a, a.metadata.resourceVersion != '9')", "per = [\"spec.host\"]"),
        invariant("live", "objects.exists_one(a, has(a.status) && a.status.seen == 1)", "per = [\"spec.host\"]"),
        invariant("live", "objects.all(a, objects.all(b, a.spec.n != b.spec.n || a.spec.host == b.spec.host))", ""),
    ]
    .into_iter()
    .enumerate()
    .map(|(nth, text)| named(nth, text))
    .collect();
    let rules = rules.concat();
    let found: usize = (0..40).map(|seed| agree(&rules, &drawn(seed).0).len()).sum();
    assert!(found > 60, "{found}");
}
