//! The EDN reader against another one: values that both accept must be equal.

use clojure_reader::edn::{self, Edn};
use fastrand::Rng;
use retrograde::history::ValueId;
use retrograde::history::calls::{Value, Values};
use retrograde::ingest::call::parse;

const ATOMS: [&str; 34] = [
    "nil",
    "true",
    "false",
    "0",
    "-0",
    "7",
    "+7",
    "-42",
    "7N",
    "9223372036854775807",
    "9223372036854775808",
    "-170141183460469231731687303715884105728N",
    "1.5",
    "-0.25",
    "1.5e-3",
    "1/2",
    "-22/7",
    ":a",
    ":a/b",
    ":type",
    "x",
    "foo/bar",
    "nilly",
    "+",
    "->x",
    "a.b.C",
    "\"\"",
    "\"plain\"",
    "\"a \\\"b\\\" \\\\ \\n\"",
    "\"; #_ {[(\"",
    "\\a",
    "\\newline",
    "\\{",
    "\"\u{e9}\u{6771}\"",
];

const SPACES: [&str; 9] = [" ", ",", "\n", "\t", " ; comment ) ]\n", " #_x ", " #_[1 {2 3}] ", ", ,", " #_ #_ 1 2 "];

/// Writes a value, without what the two readers are known to differ in: repeated keys and elements, decimals, ratios that are
/// not in lowest terms, and metadata, which the other one takes for symbols.
fn write(text: &mut String, random: &mut Rng, depth: usize) {
    let space = |text: &mut String, random: &mut Rng| text.push_str(random.choice(SPACES).unwrap_or_default());
    match random.usize(..if depth == 0 { 5 } else { 10 }) {
        0..5 => text.push_str(random.choice(ATOMS).unwrap_or_default()),
        5 | 6 => {
            let (open, close) = if random.usize(..2) == 0 { ("[", "]") } else { ("(", ")") };
            text.push_str(open);
            for _ in 0..random.usize(..4) {
                space(text, random);
                write(text, random, depth - 1);
            }
            space(text, random);
            text.push_str(close);
        }
        7 | 8 => {
            let set = random.usize(..2) == 0;
            text.push_str(if set { "#{" } else { "{" });
            for n in 0..random.usize(..4) {
                space(text, random);
                text.push_str(&format!("{n}{}", random.usize(..10)));
                if !set {
                    space(text, random);
                    write(text, random, depth - 1);
                }
            }
            text.push('}');
        }
        _ => {
            text.push_str(random.choice(&["#foo ", "#foo.Bar", "#a/b\n"]).copied().unwrap_or_default());
            text.push('[');
            write(text, random, depth - 1);
            text.push(']');
        }
    }
}

/// Converts a value of the other reader.
fn take(values: &mut Values, edn: &Edn<'_>) -> ValueId {
    let all = |values: &mut Values, parts: &mut dyn Iterator<Item = &Edn<'_>>| -> Vec<ValueId> {
        parts.map(|part| take(values, part)).collect()
    };
    let value = match edn {
        Edn::Nil => Value::Nil,
        Edn::Bool(truth) => Value::Bool(*truth),
        Edn::Int(number) => Value::Int(*number),
        Edn::BigInt(number) => match i64::try_from(number) {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Number(values.texts.intern(&number.to_string())),
        },
        Edn::Double(number) => Value::Number(values.texts.intern(&format!("{:?}", number.0))),
        Edn::Rational((a, b)) => Value::Number(values.texts.intern(&format!("{a}/{b}"))),
        Edn::Char(c) => Value::Char(*c),
        Edn::Str(text) => Value::Text(values.texts.intern(text)),
        Edn::Key(name) => Value::Keyword(values.texts.intern(name)),
        Edn::Symbol(name) => Value::Word(values.texts.intern(name)),
        Edn::Vector(parts) | Edn::List(parts) => Value::Sequence(all(values, &mut parts.iter()).into()),
        Edn::Set(parts) => {
            let mut parts = all(values, &mut parts.iter());
            parts.sort_unstable();
            Value::Set(parts.into())
        }
        Edn::Map(pairs) => {
            let mut pairs: Vec<_> = pairs.iter().map(|(key, value)| (take(values, key), take(values, value))).collect();
            pairs.sort_unstable();
            Value::Map(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect())
        }
        Edn::Tagged(tag, inner) => {
            let inner = take(values, inner);
            Value::Tagged(values.texts.intern(tag), inner)
        }
        other => panic!("{other:?}"),
    };
    values.intern(value)
}

#[test]
fn both_readers_read_the_same_values() {
    let mut random = Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    let mut compared = 0;
    for _ in 0..20_000 {
        let mut text = String::new();
        write(&mut text, &mut random, 4);
        let Ok(other) = edn::read_string(&text) else { continue };
        let mut values = Values::default();
        let theirs = take(&mut values, &other);
        let ours = parse(&text).unwrap_or_else(|error| panic!("{text}\n{error:?}"));
        let ours = values.take(&ours);
        assert_eq!(ours, theirs, "{text}\n{}\n{other}", values.show(ours, 1000));
        compared += 1;
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn what_the_other_reader_prints_is_read_as_the_same_value() {
    let mut random = Rng::with_seed(0x2545_f491_4f6c_dd1d);
    for _ in 0..5_000 {
        let mut text = String::new();
        write(&mut text, &mut random, 3);
        let Ok(other) = edn::read_string(&text) else { continue };
        let mut values = Values::default();
        let theirs = take(&mut values, &other);
        let printed = format!("{other}");
        let ours = parse(&printed).unwrap_or_else(|error| panic!("{printed}\n{error:?}"));
        assert_eq!(values.take(&ours), theirs, "{text}\n{printed}");
    }
}

#[test]
fn text_that_neither_can_read_is_refused_by_both() {
    for text in ["(", "[1 2)", "{:a}", "\"abc", "#", "]", "{1 2 3}", "[1 #_]", "1x", "\\newlin"] {
        assert!(parse(text).is_err(), "{text}");
        assert!(edn::read_string(text).is_err(), "{text}");
    }
}
