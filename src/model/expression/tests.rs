use super::*;
use crate::history::{Domains, History, load};
use crate::ingest::fields::{Fields, ResourceName};
use crate::ingest::{FileId, InputFile, ReadOptions};

const STEPS: u64 = 50_000;

fn flaws(text: &str, variables: Variables) -> Vec<(String, String)> {
    let flaws = Expression::read(text, variables, ResultType::Truth).err().unwrap_or_default();
    flaws.into_iter().map(|flaw| (text.get(flaw.at).unwrap_or("?").to_owned(), flaw.message)).collect()
}

fn read(text: &str, variables: Variables) -> Expression {
    Expression::read(text, variables, ResultType::Truth).unwrap_or_else(|flaws| panic!("{text}: {flaws:?}"))
}

/// A history of two objects whose fields an expression reads.
fn history(expression: &Expression, specs: [&str; 2]) -> History {
    let resource = ResourceName::parse("*").unwrap_or_else(|error| panic!("{error}"));
    let fields = Fields::default().with_shape(expression.paths().iter().map(|path| (resource.clone(), path.clone())));
    let object = |nth: usize, spec: &str| {
        format!(
            r#"{{"metadata":{{"name":"o{nth}","namespace":"n","uid":"u{nth}","resourceVersion":"{}","creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"b":"2","a":"1"}}}},"spec":{spec}}}"#,
            nth + 5
        )
    };
    let items = [object(0, specs[0]), object(1, specs[1])].join(",");
    let text =
        format!(r#"{{"apiVersion":"v1","kind":"WidgetList","metadata":{{"resourceVersion":"9"}},"items":[{items}]}}"#);
    let input = InputFile::in_memory(FileId(0), "x.json", text.as_bytes());
    let options = ReadOptions { fields: Arc::new(fields), ..ReadOptions::default() };
    let history = load(vec![input], &options, &Domains::default(), &());
    assert!(history.problems.is_empty(), "{:?}", history.problems);
    history
}

fn subjects(history: &History) -> Vec<Subject<'_>> {
    let items = history.items.iter();
    items.map(|item| Subject::of(history, (item.key, item.uid, item.revision), item.attributes)).collect()
}

fn outcome_with(text: &str, variables: Variables, specs: [&str; 2], steps: &mut u64) -> Outcome {
    let expression = read(text, variables);
    let history = history(&expression, specs);
    let all = subjects(&history);
    let bindings = match variables {
        Variables::Object => Bindings::object(all[0].clone()),
        Variables::Change => Bindings::change(all[0].clone(), all[1].clone()),
        Variables::Objects => Bindings::objects(all),
    };
    deep(|| expression.evaluate(&bindings, steps))
}

fn outcome(text: &str, variables: Variables, specs: [&str; 2]) -> Outcome {
    outcome_with(text, variables, specs, &mut STEPS.clone())
}

const SPEC: &str = r#"{"n":3,"big":9223372036854775808,"f":0.5,"s":"text","l":[1,2,3],"e":[],"m":{"y":"b","x":"a"},"z":null,"foo-bar":true,"namespace":"d","o":[{"k":1},{"k":2}]}"#;

#[test]
fn expressions_see_objects_as_kubernetes_does() {
    for text in [
        "self.spec.n == 3 && object.spec.n < 4 && self.spec.f == 0.5",
        "self.spec.big > 5u && self.spec.s.startsWith('te') && self.spec.s.size() == 4",
        "self.spec.l == [1, 2, 3] && [1, 2, 3] == self.spec.l && 2 in self.spec.l && size(self.spec.e) == 0",
        "self.spec.m == {'x': 'a', 'y': 'b'} && {'x': 'a', 'y': 'b'} == self.spec.m && 'x' in self.spec.m",
        "has(self.spec.n) && !has(self.spec.missing) && !has(self.spec.m.missing) && self.spec.z == null",
        "self.spec.foo__dash__bar && self.spec['foo-bar'] && self.spec.__namespace__ == 'd'",
        "self.metadata.name == 'o0' && self.metadata.namespace == 'n' && self.metadata.uid == 'u0'",
        "self.metadata.resourceVersion == '5' && self.metadata.labels.a == '1' && self.metadata.labels['b'] == '2'",
        "self.spec.l.all(x, x > 0) && self.spec.l.exists(x, x == 2) && self.spec.l.exists_one(x, x == 2)",
        "self.spec.l.filter(x, x > 1).map(x, x * 2) == [4, 6] && self.spec.l.map(x, x > 1, x) == [2, 3]",
        "self.spec.o.all(o, o.k > 0) && self.spec.o.map(o, o.k) == [1, 2]",
        "self.spec.m.all(k, self.spec.m[k] != 'c') && self.spec.m.map(k, k) == ['x', 'y']",
        "self.?spec.?missing.?deeper.orValue(7) == 7 && self.spec.?n.hasValue()",
        "self.spec.s.matches('^t.*t$') && !matches(self.spec.s, 'q') && self.spec.s.contains('ex')",
        "type(self.spec.n) == int && int('4') == 4 && string(self.spec.n) == '3' && dyn(1) == 1.0",
        "self.spec.missing == 1 || true",
        "self.spec.l.exists(x, x / 0 == 1 || x == 3)",
    ] {
        assert_eq!(outcome(text, Variables::Object, [SPEC, "{}"]), Outcome::Truth(true), "{text}");
    }
}

#[test]
fn changes_and_objects_are_seen_together() {
    let change = "oldSelf.spec.n <= self.spec.n && oldObject.metadata.name == 'o0' && object.metadata.name == 'o1'";
    assert_eq!(outcome(change, Variables::Change, [r#"{"n":1}"#, r#"{"n":2}"#]), Outcome::Truth(true));
    for (text, truth) in [
        ("objects.all(a, objects.all(b, a.metadata.uid == b.metadata.uid || a.spec.n != b.spec.n))", true),
        ("objects.size() == 2 && objects[0].metadata.name == 'o0'", true),
        ("objects.filter(o, o.spec.n > 1).size() == 1", true),
        ("objects.filter(o, o.spec.n > 1)[0].spec.n == 2", true),
        ("objects.exists_one(o, o.spec.n == 1)", true),
        ("objects.map(o, o.spec.n) == [1, 2]", true),
        ("objects.exists(o, o.spec.n == 3)", false),
    ] {
        assert_eq!(outcome(text, Variables::Objects, [r#"{"n":1}"#, r#"{"n":2}"#]), Outcome::Truth(truth), "{text}");
    }
}

#[test]
fn what_cannot_be_evaluated_says_why() {
    for (text, why) in [
        ("self.spec.missing == 1", "a value has no field `missing`"),
        ("1 / (self.spec.n - 3) == 1", "it divides by zero"),
        ("self.spec.n % (self.spec.n - 3) == 1", "it divides by zero"),
        ("self.spec.l[7] == 1", "a list has no element at that place"),
        ("self.spec.n < self.spec.s", "found no matching overload for '_<_' applied to '(int, string)'"),
        ("self.spec.n", "a truth value is expected, found a int"),
        ("self.spec.n * 9223372036854775807 > 1", "a number is too large"),
        ("self.spec.s.matches('(')", "matches: its pattern is not a regular expression, or is too large"),
        (
            "self.spec.s.matches('((a{1000}){1000}){1000}')",
            "matches: its pattern is not a regular expression, or is too large",
        ),
        ("self.spec.n.size() == 1", "found no matching overload for 'size' applied to 'int.()'"),
    ] {
        assert_eq!(outcome(text, Variables::Object, [SPEC, "{}"]), Outcome::Failed(why.to_owned()), "{text}");
    }
}

#[test]
fn flaws_are_told_where_they_stand() {
    for (text, at, why) in [
        ("self.spec.n >", "", "not an expression in CEL: "),
        ("self.spec.n == 1 )", ")", "not an expression in CEL: "),
        ("slef.spec.n == 1", "slef", "there is no `slef` here; did you mean self?"),
        ("oldSelf.spec.n == 1", "oldSelf", "there is no `oldSelf` here; "),
        ("self.spec.s.startWith('a')", "", "there is no function `startWith` like this; did you mean startsWith?"),
        ("lenght(self.spec.s) == 1", "", "there is no function `lenght` like this; known: size"),
        ("self == self", "self", "name a field of the object"),
        ("self.metadata == {}", "", "name a field of metadata"),
        ("self.spec.n + 1", "self.spec.n + 1", "a truth value is expected, found a whole number"),
        ("1 == 'a'", "", "a whole number and a text cannot be used together"),
        ("self.spec.n > 1 && 'yes'", "'yes'", "a truth value is expected here, found a text"),
        ("!1", "1", "a truth value is expected here, found a whole number"),
        ("size(1) == 1", "", "a list is expected here, found a whole number"),
        ("  ", "  ", "an expression in CEL is expected"),
        ("T{a: 1}.a == 1", "", "a message of a named type is not supported"),
    ] {
        let found = flaws(text, Variables::Object);
        let (place, message) = found.first().unwrap_or_else(|| panic!("{text}: nothing wrong"));
        assert!(message.starts_with(why), "{text}: {message}");
        assert!(at.is_empty() || at == place, "{text}: {place}");
    }
    assert!(flaws("objects.spec.n == 1", Variables::Objects)[0].1.starts_with("objects is a list"));
    assert!(flaws(&"1 + ".repeat(3000), Variables::Object)[0].1.starts_with("an expression of 8192 bytes"));
    assert!(!flaws(&"(".repeat(4000), Variables::Object).is_empty());
    assert!(!flaws(&"!".repeat(4000), Variables::Object).is_empty());
    assert!(!flaws(&format!("{}1 == 1", "1 + ".repeat(1000)), Variables::Object).is_empty());
}

#[test]
fn paths_are_what_is_read_of_objects() {
    let paths = |text: &str, variables| {
        let expression = read(text, variables);
        expression.paths().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(paths("has(self.spec.a.b) && self.spec['c-d'].e == 1", Variables::Object), ["spec.a.b", "spec.c-d.e"]);
    assert_eq!(paths("self.spec.l.all(x, x.y > self.spec.m[x.k])", Variables::Object), ["spec.l", "spec.m"]);
    assert_eq!(paths("self.metadata.name == self.status.?x.orValue('')", Variables::Object), ["status.x"]);
    assert_eq!(
        paths("objects.filter(o, o.spec.on).all(a, objects.exists(b, a.spec.x == b.spec.y))", Variables::Objects),
        ["spec.on", "spec.x", "spec.y"]
    );
    assert_eq!(paths("[1].all(self, self > 0)", Variables::Object), [""; 0]);
}

#[test]
fn what_more_objects_can_do_is_read_off_the_form() {
    for (text, growth) in [
        ("1 == 1", Growth::Free),
        ("objects.all(o, o.spec.n > 0)", Growth::False),
        ("objects.all(a, objects.all(b, a.spec.n != b.spec.n || a.metadata.uid == b.metadata.uid))", Growth::False),
        ("objects.filter(o, o.spec.on).all(o, o.spec.n > 0)", Growth::False),
        ("objects.size() <= 1", Growth::False),
        ("size(objects.filter(o, o.spec.on)) < 2", Growth::False),
        ("1 >= objects.map(o, o.spec.n).size()", Growth::False),
        ("!objects.exists(o, o.spec.n == 1)", Growth::False),
        ("!(objects.size() > 1) && objects.all(o, o.spec.on)", Growth::False),
        ("objects.exists(o, o.spec.n == 1)", Growth::True),
        ("objects.size() >= 1", Growth::True),
        ("1 in objects.map(o, o.spec.n)", Growth::True),
        ("objects.all(a, objects.exists(b, b.spec.n == a.spec.n))", Growth::Open),
        ("objects.exists_one(o, o.spec.n == 1)", Growth::Open),
        ("objects.size() == 1", Growth::Open),
        ("objects.map(o, o.spec.n) == [1]", Growth::Open),
        ("objects.filter(o, objects.size() > 1).size() <= 1", Growth::Open),
        ("objects.all(objects, objects.spec.n > 0)", Growth::Open),
        ("objects.size() <= objects.filter(o, o.spec.on).size()", Growth::Open),
        ("objects.all(o, o.spec.n > 0) || objects.exists(o, o.spec.n == 1)", Growth::Open),
    ] {
        assert_eq!(read(text, Variables::Objects).growth(), growth, "{text}");
    }
}

#[test]
fn of_what_was_true_only_what_is_new_is_asked() {
    for (text, truths) in [
        ("objects.all(a, objects.all(b, a.metadata.uid == b.metadata.uid || a.spec.n != b.spec.n))", [true, false]),
        ("objects.filter(o, o.spec.n > 0).all(o, o.spec.n < 3) && 1 < 2", [true, false]),
        ("[1, 2].all(x, objects.all(o, o.spec.n != x * 3))", [true, false]),
    ] {
        let expression = read(text, Variables::Objects);
        assert!(expression.asks_only_news(), "{text}");
        for (n, truth) in [(2, truths[0]), (3, truths[1])] {
            let history = history(&expression, [r#"{"n":3}"#, &format!("{{\"n\":{n}}}")]);
            let all = subjects(&history);
            // The second object is new.
            let bindings = Bindings::objects(all.clone()).with_new([all[1].clone()]);
            let outcome = deep(|| expression.evaluate_news(&bindings, &mut STEPS.clone()));
            assert_eq!(outcome, Outcome::Truth(truth), "{text} {n}");
        }
    }
    for text in
        ["objects.size() <= 1", "!objects.exists(o, o.spec.n == 1)", "objects.all(o, objects.size() > 1)", "1 == 1"]
    {
        assert!(!read(text, Variables::Objects).asks_only_news(), "{text}");
    }
}

/// None of these may run long, take much memory, or be true or false.
#[test]
fn no_expression_runs_for_ever() {
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    let loops: String = (0..20).map(|nth| format!("{ten}.all(x{nth}, ")).collect();
    let doubled = |made: &str| format!("['ab']{}.size() == 1", made.repeat(60));
    for text in [
        format!("{loops}true{}", ")".repeat(20)),
        format!("{loops}false || x1 < 10{}", ")".repeat(20)),
        loops.replace("all", "exists") + "false" + &")".repeat(20),
        loops.replace("all", "exists_one") + "false" + &")".repeat(20),
        loops.replace("all", "filter") + "true" + &").size() == 10".repeat(20),
        (0..20).map(|n| format!("{ten}.map(x{n}, ")).collect::<String>() + "1" + &")".repeat(20) + ".size() == 1",
        doubled(".map(a, a + a)"),
        doubled(".map(a, [a, a])"),
        doubled(".map(a, {'a': a, 'b': a})"),
        format!("[self.spec.s]{}.size() == 1", ".map(a, [a + a, a])".repeat(60)),
    ] {
        let mut steps = STEPS;
        let outcome = outcome_with(&text, Variables::Object, [SPEC, "{}"], &mut steps);
        assert!(outcome == Outcome::Endless && steps == 0, "{text}: {outcome:?}");
    }
    let quiet = outcome("self.spec.l.all(x, self.spec.l.all(y, x + y > 0))", Variables::Object, [SPEC, "{}"]);
    assert_eq!(quiet, Outcome::Truth(true));
}

#[test]
fn long_values_cost_more() {
    let long = format!(r#"{{"s":"{}","n":1}}"#, "x".repeat(40_000));
    let text = "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, !self.spec.s.contains('y')))";
    let (mut short, mut longer) = (STEPS, STEPS);
    outcome_with(text, Variables::Object, [SPEC, "{}"], &mut short);
    outcome_with(text, Variables::Object, [&long, "{}"], &mut longer);
    assert!(longer + 40_000 < short, "{longer} {short}");
}

/// The steps that an evaluation takes.
fn steps_of(text: &str, spec: &str) -> u64 {
    let mut left = 10_000_000;
    outcome_with(text, Variables::Object, [spec, "{}"], &mut left);
    10_000_000 - left
}

#[test]
fn long_expressions_cost_more() {
    let term = "self.spec.n > 0 && ";
    assert_eq!(steps_of("self.spec.n > 0", SPEC), 1);
    let long = steps_of(&format!("{}true", term.repeat(100)), SPEC);
    assert!((20..200).contains(&long), "{long}");
    let looped = |terms: usize| steps_of(&format!("self.spec.l.all(x, {}x > 0)", term.repeat(terms)), SPEC);
    assert!(looped(100) > 3 * looped(1) + 60, "{} {}", looped(100), looped(1));
}

#[test]
fn values_that_are_compared_are_paid_for_each_time() {
    let numbers: Vec<String> = (0..10_000).map(|nth| nth.to_string()).collect();
    let spec = format!(r#"{{"l":[{}]}}"#, numbers.join(","));
    let (once, often) = ("self.spec.l == object.spec.l", "10001 in self.spec.l || ".repeat(20) + "true");
    // Sixteen bytes for a number, 64 for a step.
    assert!(steps_of(once, &spec) >= 2_500 && steps_of(&often, &spec) >= 20 * 2_500);
}

#[test]
fn a_pattern_of_an_object_is_compiled_once_and_paid_for() {
    let spec = r#"{"s":"text","p":"^t[a-z]+(once)?$"}"#;
    let expression = read("self.spec.s.matches(self.spec.p)", Variables::Object);
    let history = history(&expression, [spec, "{}"]);
    let bindings = Bindings::object(subjects(&history)[0].clone());
    let (compiled, costs) = deep(|| {
        let before = pattern::compiled();
        let cost = |_| {
            let mut left = 100_000;
            assert_eq!(expression.evaluate(&bindings, &mut left), Outcome::Truth(true));
            100_000 - left
        };
        let costs: Vec<u64> = (0..50).map(cost).collect();
        (pattern::compiled() - before, costs)
    });
    assert_eq!(compiled, 1);
    assert!(costs[0] > 200 && costs[1..].iter().all(|&cost| cost <= 2), "{costs:?}");
    let long = format!(r#"{{"s":"{}","p":"((a{{50}}){{50}}){{6}}"}}"#, "a".repeat(20_000));
    assert_eq!(outcome("self.spec.s.matches(self.spec.p)", Variables::Object, [&long, "{}"]), Outcome::Endless);
}

/// A random expression; most have a truth value.
fn drawn(random: &mut impl FnMut(usize) -> usize, depth: usize, names: &[&str]) -> String {
    let leaves = [
        "true",
        "false",
        "1",
        "3",
        "0",
        "2.5",
        "'a'",
        "'text'",
        "[1, 2]",
        "[]",
        "{'x': 'a'}",
        "null",
        "self.spec.n",
        "self.spec.s",
        "self.spec.l",
        "self.spec.m",
        "self.spec.m.x",
        "self.spec.missing",
        "self.spec.o",
        "has(self.spec.m.q)",
        "self.metadata.name",
    ];
    if depth == 0 || random(6) == 0 {
        let nth = random(leaves.len() + names.len());
        return leaves.get(nth).copied().unwrap_or_else(|| names[nth - leaves.len()]).to_owned();
    }
    const LOOPS: [&str; 5] = ["all", "exists", "exists_one", "filter", "map"];
    const TWO: [&str; 14] = ["&&", "||", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "in"];
    let mut part = |names: &[&str]| drawn(random, depth - 1, names);
    let (a, b, c) = (part(names), part(names), part(names));
    match random(9) {
        0..=3 => format!("({a} {} {b})", TWO[random(TWO.len())]),
        4 => format!("({a} ? {b} : {c})"),
        5 => format!("!({a})"),
        6 => format!("size({a})"),
        7 => format!("[{a}, {b}]"),
        _ => {
            let name = ["x", "y", "z"][depth % 3];
            let inner: Vec<&str> = names.iter().copied().chain([name]).collect();
            let body = drawn(random, depth - 1, &inner);
            format!(
                "{}.{}({name}, {body})",
                if random(2) == 0 { "self.spec.l".to_owned() } else { a },
                LOOPS[random(5)]
            )
        }
    }
}

#[test]
fn metering_changes_no_outcome() {
    let shape = read(
        "self.spec.n == 1 || self.spec.s == '' || self.spec.l == [] || self.spec.m == {} || self.spec.o == []",
        Variables::Object,
    );
    let history = history(&shape, [SPEC, "{}"]);
    let bindings = Bindings::object(subjects(&history)[0].clone());
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    let texts: Vec<String> = (0..5_000).map(|_| drawn(&mut random, 4, &[])).collect();
    let decided = deep(|| {
        let mut decided = 0;
        for text in texts {
            let Ok(expression) = Expression::read_here(&text, Variables::Object, ResultType::Truth) else { continue };
            let parsed = environment().parser().parse(&text).unwrap_or_else(|error| panic!("{error}"));
            let plain = evaluate(&Metered { part: parsed, cost: 1 }, &bindings, &mut u64::MAX.clone());
            let metered = expression.evaluate(&bindings, &mut 10_000_000);
            assert_eq!(metered, plain, "{text}");
            decided += usize::from(matches!(metered, Outcome::Truth(_)));
        }
        decided
    });
    assert!(decided > 100, "{decided}");
}

#[test]
fn no_text_makes_reading_or_evaluating_panic() {
    const WORDS: [&str; 28] = [
        "self", ".", "spec", "(", ")", "[", "]", "{", "}", ":", ",", "all", "map", "x", "+", "-", "!", "&&", "?", "'",
        "\"", "1", "has", "\u{e9}", "\n", "//", "in", "`",
    ];
    let mut state = 2_463_534_242_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    for _ in 0..400 {
        let text: String = (0..1 + random(24)).map(|_| WORDS[random(WORDS.len())]).collect();
        if let Err(flaws) = Expression::read(&text, Variables::Object, ResultType::Truth) {
            assert!(!flaws.is_empty() && flaws.iter().all(|flaw| flaw.at.start <= flaw.at.end), "{text}: {flaws:?}");
        }
    }
}
