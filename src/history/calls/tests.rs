//! Pairing of operation logs: the calls, the problems, and the certain part.

use super::super::load::load_each;
use super::super::store::History;
use super::*;
use crate::ingest::{FileId, InputFile, ReadOptions};

fn histories(files: &[(&str, &str)]) -> Vec<History> {
    let input =
        |(id, (name, text)): (usize, &(&str, &str))| InputFile::in_memory(FileId(id as u32), name, text.as_bytes());
    let inputs = files.iter().enumerate().map(input).collect();
    load_each(inputs, &ReadOptions { block_bytes: 64, ..ReadOptions::default() }, &Default::default(), &())
}

fn log(text: &str) -> History {
    let mut all = histories(&[("run.edn", text)]);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Writes `PROCESS TYPE F VALUE` and an optional time, one event per line, as EDN.
fn events(lines: &[&str]) -> String {
    let line = |line: &&str| {
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().unwrap_or("nil");
        let (process, kind, function, value) = (word(), word(), word(), word());
        let time = line.splitn(5, ' ').nth(4).map(|time| format!(" :time {time}")).unwrap_or_default();
        format!("{{:process {process} :type :{kind} :f :{function} :value {value}{time}}}\n")
    };
    lines.iter().map(line).collect()
}

/// The calls in words, with their ranks.
fn calls(history: &History) -> Vec<String> {
    let words = |call: Call| {
        let ret = if call.ret.rank == i64::MAX { "\u{2026}".to_owned() } else { call.ret.rank.to_string() };
        let said = history.calls().words(&call, history.name(call.function));
        format!("{} {said} {}-{ret}", history.client_name(call.process), call.invoke.rank)
    };
    history.calls().calls.iter().map(words).collect()
}

fn problems(history: &History) -> Vec<String> {
    history.problems.iter().map(|p| format!("{}: expected {}, found {}", p.line, p.expected, p.found)).collect()
}

fn certain_below(history: &History) -> Option<i64> {
    history.calls().lost.as_ref().map(|lost| lost.from)
}

#[test]
fn a_return_belongs_to_the_open_invocation_of_its_process() {
    let history =
        log(&events(&["0 invoke write 1", "1 invoke read nil", "1 ok read 1", "0 ok write 1", "2 invoke read nil"]));
    assert_eq!(
        calls(&history),
        [
            "process 0 `write 1` was done 0-3",
            "process 1 `read` answered 1 1-2",
            "process 2 `read` was never answered 4-\u{2026}"
        ]
    );
    assert_eq!((problems(&history).len(), certain_below(&history)), (0, None));
    let places: Vec<_> = history.calls().calls.iter().map(|c| (c.invoke.position.line, c.ret.position.line)).collect();
    assert_eq!(places, [(1, 4), (2, 3), (5, 0)]);
}

#[test]
fn failures_and_unknown_outcomes_are_told_apart() {
    let history = log(&events(&["0 invoke write 1", "0 fail write 1", "1 invoke write 2", "1 info write :timeout"]));
    assert_eq!(
        calls(&history),
        ["process 0 `write 1` failed 0-1", "process 1 `write 2` was never answered 2-\u{2026}"]
    );
}

#[test]
fn a_return_without_invocation_leaves_nothing_certain() {
    let history = log(&events(&["0 ok write 1", "1 invoke read nil", "1 ok read 2"]));
    assert_eq!(
        problems(&history),
        ["1: expected an invocation before its return, found a return of process 0, which has no open operation"]
    );
    assert_eq!((certain_below(&history), history.files[0].problems), (Some(i64::MIN), 1));
    assert_eq!(calls(&history).len(), 1);
}

#[test]
fn a_process_that_does_two_things_at_once_gets_no_answers() {
    let history = log(&events(&[
        "0 invoke read nil",
        "0 invoke read nil",
        "0 ok read 1",
        "0 ok read 2",
        "1 invoke read nil",
        "1 ok read 3",
    ]));
    assert_eq!(
        calls(&history),
        [
            "process 0 `read` was never answered 0-\u{2026}",
            "process 0 `read` was never answered 1-\u{2026}",
            "process 1 `read` answered 3 4-5"
        ]
    );
    assert_eq!(
        problems(&history),
        [
            "2: expected the return of an operation before the next one, found an invocation of process 0 while the operation of line 1 is open"
        ]
    );
    // The other calls stay known, but the log counts as incomplete.
    assert_eq!(certain_below(&history), Some(i64::MAX));
}

#[test]
fn a_return_of_another_operation_is_a_problem() {
    let history = log(&events(&["0 invoke read nil", "0 ok write 1"]));
    assert_eq!(problems(&history), ["2: expected the return of read (line 1), found the return of write"]);
    assert_eq!(certain_below(&history), Some(i64::MIN));
}

#[test]
fn what_stands_in_front_of_an_unreadable_line_is_certain() {
    let text = events(&["0 invoke read nil", "0 ok read 1"]) + "{:process 1, :type\n" + &events(&["2 invoke read nil"]);
    let history = log(&text);
    assert_eq!(certain_below(&history), Some(2));
    assert_eq!((history.files[0].problems, history.calls().calls.len()), (1, 2));
    let cut = log(&(events(&["0 invoke read nil", "0 ok read 1"]) + "{:process 1, :type :inv"));
    assert_eq!(certain_below(&cut), Some(2));
}

#[test]
fn whole_operations_are_ordered_by_their_times() {
    let history = log(r#"{"process":"b","op":"read","result":1,"invoke":50,"return":70}
{"process":"a","op":"write","value":1,"invoke":10,"return":60}
{"process":"c","op":"write","value":2,"invoke":20}
{"process":"a","op":"write","value":3,"invoke":60,"return":65,"outcome":"fail"}
"#);
    assert_eq!(
        calls(&history),
        [
            "a `write 1` was done 10-60",
            "c `write 2` was never answered 20-\u{2026}",
            "b `read` answered 1 50-70",
            "a `write 3` failed 60-65"
        ]
    );
    assert_eq!((problems(&history).len(), certain_below(&history)), (0, None));
}

#[test]
fn whole_operations_that_cannot_be_are_problems() {
    for (second, problem) in [
        (r#"{"process":1,"op":"read","invoke":50,"return":40}"#, "a return at or after the invocation"),
        (r#"{"process":1,"op":"read","invoke":"","return":40}"#, "the time of the invocation"),
        (r#"{"process":0,"op":"read","invoke":15,"return":40}"#, "the return of an operation before the next one"),
        (r#"{"process":1,"op":"read","type":"invoke"}"#, "events or whole operations, as before"),
    ] {
        let first = r#"{"process":0,"op":"read","invoke":10,"return":20}"#;
        let history = log(&format!("{first}\n{second}\n"));
        let found = problems(&history);
        assert!(found.len() == 1 && found[0].starts_with("2: ") && found[0].contains(problem), "{found:?}");
        assert_eq!(certain_below(&history), Some(i64::MIN), "{second}");
    }
}

#[test]
fn where_times_fall_back_only_what_lines_and_times_agree_about_is_order() {
    let history = log(&events(&[
        "0 invoke write 1 10",
        "0 ok write 1 20",
        "1 invoke read nil 15",
        "1 ok read 1 30",
        "2 invoke read nil 40",
        "2 ok read 1 50",
    ]));
    assert_eq!(history.calls().falls_back, 5);
    assert_eq!(
        calls(&history),
        [
            "process 0 `write 1` was done 10-20",
            "process 1 `read` answered 1 15-30",
            "process 2 `read` answered 1 40-50"
        ]
    );
    // Earlier by time and later by line: no order either way.
    let history = log(&events(&["0 invoke write 1 50", "0 ok write 1 60", "1 invoke read nil 10", "1 ok read 1 20"]));
    assert_eq!(calls(&history), ["process 0 `write 1` was done 10-60", "process 1 `read` answered 1 10-60"]);
}

#[test]
fn tuples_of_independent_keys_are_taken_apart() {
    let keys = |history: &History| {
        let mut keys: Vec<String> = (0..history.keys.len() as u32).map(|n| history.key_name(KeyId(n))).collect();
        keys.sort();
        keys
    };
    let history =
        log(&events(&["0 invoke read [7,nil]", "0 ok read [7,1]", "1 invoke cas [8,[1,2]]", "1 info cas nil"]));
    assert_eq!(keys(&history), ["key 7", "key 8"]);
    assert_eq!(
        calls(&history),
        ["process 0 `read` answered 1 0-1", "process 1 `cas [1 2]` was never answered 2-\u{2026}"]
    );
    // The pairs of a compare-and-set, and pairs that are values, are no tuples.
    for text in [
        events(&["0 invoke cas [1,2]", "0 ok cas [1,2]"]),
        events(&["0 invoke read nil", "0 ok read [7,1]", "1 invoke write [7,nil]"]),
        events(&["0 invoke txn [[:r,1,nil],[:w,2,3]]"]),
    ] {
        assert!(keys(&log(&text)).is_empty(), "{text}");
    }
    // A key may be a collection if reads repeat it in their answer.
    let read = |answer: &str| {
        log(&events(&["0 invoke write [[:a,1],5]", "1 invoke read [[:a,2],nil]", &format!("1 ok read {answer}")]))
    };
    assert_eq!(keys(&read("[[:a,2],6]")), ["key [:a 1]", "key [:a 2]"]);
    assert!(keys(&read("[[:a,1],6]")).is_empty() && keys(&read("7")).is_empty());
    let tagged = log(&events(&["0 invoke write #jepsen.independent/tuple[7,1]"]));
    assert_eq!((keys(&tagged), calls(&tagged)[0].contains("`write 1`")), (vec!["key 7".to_owned()], true));
}

#[test]
fn a_header_names_model_and_clock_and_the_nemesis_is_counted() {
    let history = log(r#"{"kind":"operations","version":1,"model":"kv","clock":"recorder"}
{"process":0,"type":"invoke","op":"get","key":"x","at":1}
{"process":"nemesis","type":"info","op":"start"}
{"process":0,"type":"ok","op":"get","key":"x","result":null,"at":2}
"#);
    assert_eq!(
        (history.calls().model.as_deref(), history.clock_name(crate::history::ClockId(0))),
        (Some("kv"), "recorder")
    );
    assert_eq!(history.calls().others, 1);
    let [function] = history.calls().functions.as_slice() else { panic!("{:?}", history.calls().functions) };
    assert_eq!((history.name(function.name), function.ok, function.nothing), ("get", 1, 1));
    assert_eq!(calls(&history), ["process 0 `get` answered nil 0-1"]);
}

#[test]
fn every_log_is_a_history_of_its_own_and_the_cluster_is_one() {
    let run = events(&["0 invoke read nil", "0 ok read nil"]);
    let capture = "{\"kind\":\"capture\",\"version\":1,\"client\":\"c\"}\n";
    let all = histories(&[("a.edn", &run), ("notes.txt", "hello\n"), ("b.edn", &run), ("empty.log", "")]);
    let shape = |history: &History| -> Vec<String> {
        history
            .files
            .iter()
            .map(|f| format!("{} {}", f.path, f.format.or(f.ignored.as_deref()).unwrap_or_default()))
            .collect()
    };
    // A file without evidence yields no history, but is reported with one.
    assert_eq!(
        all.iter().map(shape).collect::<Vec<_>>(),
        [vec!["a.edn edn", "notes.txt text of an unknown kind", "empty.log empty"], vec!["b.edn edn"]]
    );
    let all = histories(&[("a.edn", &run), ("c.jsonl", capture), ("b.edn", &run)]);
    assert_eq!(
        all.iter().map(shape).collect::<Vec<_>>(),
        [
            vec![
                "a.edn an operation log: a history of its own",
                "c.jsonl capture",
                "b.edn an operation log: a history of its own"
            ],
            vec!["a.edn edn"],
            vec!["b.edn edn"]
        ]
    );
    assert_eq!(histories(&[("notes.txt", "hello\n")]).len(), 1);
    assert_eq!(histories(&[]).len(), 1);
}

#[test]
fn a_run_that_jepsen_kept_three_times_counts_once() {
    let edn = events(&["0 invoke write 1 1", "0 ok write 1 2", "1 invoke cas [1,2] 3", "1 fail cas [1,2] 4"]);
    let text = "0\t:invoke\t:write\t1\n1\t:invoke\t:cas\t[1 2]\n0\t:ok\t:write\t1\n1\t:fail\t:cas\t[1 2]\t:timeout\n";
    let log: String = text.lines().map(|line| format!("12:00 INFO [worker] jepsen.util: {line}\n")).collect();
    let runs = |files: &[(&str, &str)]| -> Vec<String> {
        let all = histories(files);
        let said =
            |f: &crate::ingest::FileSummary| format!("{} {}", f.path, f.format.or(f.ignored.as_deref()).unwrap());
        all.iter().map(|history| history.files.iter().map(said).collect::<Vec<_>>().join(", ")).collect()
    };
    assert_eq!(
        runs(&[("a/jepsen.log", &log), ("a/history.edn", &edn), ("a/history.txt", text)]),
        ["a/history.edn edn, a/jepsen.log the same run as history.edn, a/history.txt the same run as history.edn"]
    );
    assert_eq!(
        runs(&[("a/history.txt", text), ("a/jepsen.log", &log)]),
        ["a/history.txt jepsen-log, a/jepsen.log the same run as history.txt"]
    );
    // A log in another folder, or with another answer, is another run.
    assert_eq!(runs(&[("a/jepsen.log", &log), ("b/history.edn", &edn)]).len(), 2);
    let other = text.replace(":ok\t:write", ":info\t:write");
    assert_eq!(runs(&[("a/history.edn", &edn), ("a/history.txt", &other)]).len(), 2);
    let other = text.replace("write\t1", "write\t2");
    assert_eq!(runs(&[("a/history.edn", &edn), ("a/history.txt", &other)]).len(), 2);
    assert_eq!(runs(&[("a/history.edn", &edn), ("a/again.edn", &edn)]).len(), 2);
}

#[test]
fn who_is_called_by_a_keyword_is_a_client_if_it_asks_for_something() {
    let history = log(&events(&[
        ":nemesis info start nil",
        ":storm info start nil",
        ":c3 invoke read nil",
        ":c3 ok read 3",
        "c2 invoke read nil",
        "c2 info read nil",
        ":c3 invoke read nil",
        ":c3 info read nil",
    ]));
    assert_eq!(
        calls(&history),
        [
            ":c3 `read` answered 3 0-1",
            "c2 `read` was never answered 2-\u{2026}",
            ":c3 `read` was never answered 4-\u{2026}"
        ]
    );
    assert_eq!((history.calls().others, problems(&history).len()), (2, 0));
}

#[test]
fn a_return_of_another_value_than_was_written_is_a_problem() {
    for (asked, answered, found) in
        [("write 1", "write 2", "2"), ("cas [1,2]", "cas [1,3]", "[1 3]"), ("add 1", "add :done", ":done")]
    {
        let history = log(&events(&[&format!("0 invoke {asked}"), &format!("0 ok {answered}")]));
        let problems = problems(&history);
        assert!(problems.len() == 1 && problems[0].starts_with("2: expected the value of line 1, "), "{problems:?}");
        assert!(problems[0].ends_with(&format!("found {found}")), "{problems:?}");
        assert_eq!(certain_below(&history), Some(i64::MIN));
    }
    // The result of a read is its answer; a value that only confirms success contradicts nothing.
    for (asked, answered) in [
        ("cas [7,[1,2]]", "cas [7,false]"),
        ("write [7,1]", "write [7,nil]"),
        ("write 1", "write nil"),
        ("write 1", "write true"),
        ("cas [1,2]", "cas false"),
        ("read nil", "read 2"),
        ("read 1", "read 2"),
        ("txn [[:r,1,nil]]", "txn [[:r,1,2]]"),
    ] {
        let history = log(&events(&[&format!("0 invoke {asked}"), &format!("0 ok {answered}")]));
        assert_eq!((problems(&history).len(), certain_below(&history)), (0, None), "{asked} {answered}");
    }
    let history = log(
        "{\"process\":0,\"type\":\"invoke\",\"op\":\"put\",\"value\":1}\n{\"process\":0,\"type\":\"ok\",\"op\":\"put\",\"result\":\"OK\"}\n",
    );
    assert_eq!((problems(&history).len(), certain_below(&history)), (0, None));
}

#[test]
fn keys_are_those_of_the_invocation_and_all_calls_have_one_or_none() {
    let put = r#"{"process":1,"type":"invoke","op":"put","key":"a","value":"1"}"#;
    for (rest, problem) in [
        (
            r#"{"process":1,"type":"ok","op":"put","key":"b"}"#,
            "2: expected a return on the key \"a\" (line 1), found one on \"b\"",
        ),
        (r#"{"process":2,"type":"invoke","op":"get"}"#, "2: expected a key, as other operations have, found none"),
    ] {
        let history = log(&format!("{put}\n{rest}\n"));
        assert_eq!((problems(&history), certain_below(&history)), (vec![problem.to_owned()], Some(i64::MIN)));
    }
    let history = log(&format!("{put}\n{{\"process\":1,\"type\":\"ok\",\"op\":\"put\"}}\n"));
    assert_eq!((problems(&history).len(), certain_below(&history)), (0, None));
}

#[test]
fn a_call_that_was_given_up_at_once_is_none_that_the_process_waits_for() {
    let history = log(r#"{"process":2,"op":"write","value":1,"invoke":1001}
{"process":2,"op":"read","result":1,"invoke":1001,"return":1002}
"#);
    assert_eq!((problems(&history).len(), certain_below(&history)), (0, None));
}

#[test]
fn an_event_without_time_lies_where_its_neighbours_say() {
    let history = log(&events(&[
        "0 invoke write 1 10",
        "0 ok write 1 5",
        "0 invoke write 2",
        "0 ok write 2",
        "0 invoke read nil",
        "0 ok read 1 20",
        "0 invoke read nil",
        "0 ok read 1",
    ]));
    assert_eq!(
        calls(&history),
        [
            "process 0 `write 1` was done 5-10",
            "process 0 `write 2` was done 10-20",
            "process 0 `read` answered 1 10-20",
            "process 0 `read` answered 1 20-20"
        ]
    );
}
