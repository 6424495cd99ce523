//! Tests of whole logs: findings, open questions, and their sentences.

use super::*;
use crate::check::{Judgement, Verdict as Ruled};
use crate::history::{History, load};
use crate::ingest::{FileId, InputFile, ReadOptions};

fn history(text: &str) -> History {
    let input = InputFile::in_memory(FileId(0), "run.edn", text.as_bytes());
    load(vec![input], &ReadOptions::default(), &Default::default(), &())
}

fn judge(history: &History, options: &crate::check::Options) -> Judgement {
    let order = crate::order::Order::derive(history, &Default::default());
    crate::check::judge(history, &order, options)
}

fn judged(text: &str) -> (History, Judgement) {
    let history = history(text);
    let judgement = judge(&history, &Default::default());
    (history, judgement)
}

/// Two lines an operation.
fn call(process: u32, function: &str, argument: &str, answer: &str) -> String {
    format!(
        "{{:process {process} :type :invoke :f :{function} :value {argument}}}\n{{:process {process} :type :ok :f :{function} :value {answer}}}\n"
    )
}

fn stale(key: u32, process: u32) -> String {
    let write = |value| call(process, "write", &format!("[{key} {value}]"), &format!("[{key} {value}]"));
    write(1) + &write(2) + &call(process + 1, "read", &format!("[{key} nil]"), &format!("[{key} 1]"))
}

fn report<'j>(judgement: &'j Judgement, slug: &str) -> &'j crate::check::RuleReport {
    judgement.rules.iter().find(|rule| rule.rule == slug).unwrap()
}

#[test]
fn a_violation_names_who_was_told_what_and_where_it_stands() {
    let (history, judgement) = judged(&stale(7, 3));
    assert_eq!(judgement.verdict, Ruled::Violated);
    let [finding] = judgement.findings.as_slice() else { panic!("{:?}", judgement.findings) };
    assert_eq!(history.client_name(finding.incarnation), "process 4");
    assert_eq!(history.key_name(finding.key), "key 7");
    assert!(finding.summary.contains("`read` answered 1 of key 7"), "{}", finding.summary);
    let last = finding.certificate.facts.last().unwrap();
    assert_eq!((last.position.line, last.says.contains("(lines 5 to 6)")), (6, true), "{last:?}");
    assert!(finding.certificate.reason.contains("was answered before process 4's `read` was invoked"));
    let clients: Vec<_> =
        judgement.clients.iter().map(|c| (history.name(history.clients[c.client.index()]), c.verdict.word())).collect();
    assert_eq!(clients, [("process 3", "holds"), ("process 4", "violated")]);
}

#[test]
fn every_object_of_a_log_that_is_at_fault_gets_its_finding() {
    let (history, judgement) = judged(&(stale(7, 1) + &call(1, "write", "[8 1]", "[8 1]") + &stale(9, 5)));
    let mut keys: Vec<String> = judgement.findings.iter().map(|finding| history.key_name(finding.key)).collect();
    keys.sort();
    assert_eq!(keys, ["key 7", "key 9"]);
}

#[test]
fn only_rules_about_operations_are_asked() {
    let (_, judgement) = judged(&call(0, "write", "1", "1"));
    assert_eq!(judgement.verdict, Ruled::Holds);
    for rule in &judgement.rules {
        let expected = match rule.rule {
            "linearizability" => Ruled::Holds,
            _ => Ruled::NotChecked(crate::check::OTHER_NATURE.to_owned()),
        };
        assert_eq!(rule.verdict, expected, "{}", rule.rule);
    }
    assert_eq!(report(&judgement, "linearizability").checked, 1);
    assert!(judgement.unchecked.is_empty(), "{:?}", judgement.unchecked);
}

#[test]
fn a_log_of_no_known_model_is_unknown_and_lists_the_models() {
    let (_, judgement) = judged(&call(0, "enqueue", "1", "1"));
    let Ruled::Unknown(reason) = &judgement.verdict else { panic!("{:?}", judgement.verdict) };
    assert!(reason.contains("queue, unordered-queue") && reason.contains("--model"), "{reason}");
}

#[test]
fn a_call_that_is_no_operation_of_the_model_is_a_problem_and_the_rest_is_checked() {
    let mut history =
        history(&(call(0, "write", "1", "1") + &call(1, "launch", "2", "2") + &call(2, "read", "nil", "1")));
    history.set_model("register");
    let judgement = judge(&history, &Default::default());
    let Ruled::Unknown(reason) = &judgement.verdict else { panic!("{:?}", judgement.verdict) };
    assert!(reason.contains("line 4 is no operation of register"), "{reason}");
    let [problem] = judgement.problems.as_slice() else { panic!("{:?}", judgement.problems) };
    assert_eq!((problem.line, &*problem.expected, &*problem.found), (4, "one of read, write", "`launch`"));
    assert_eq!(report(&judgement, "linearizability").checked, 2);
}

#[test]
fn behind_what_is_missing_a_contradiction_is_a_suspect_and_in_front_of_it_a_violation() {
    let text = |calls: &[String]| calls.concat();
    let (ghost, lost) = (call(1, "read", "nil", "9"), "{:process 2 :type :invoke :f\n".to_owned());
    let (_, judgement) = judged(&text(&[call(0, "write", "1", "1"), lost.clone(), ghost.clone()]));
    assert!(matches!(judgement.verdict, Ruled::Unknown(_)), "{:?}", judgement.verdict);
    let [finding] = judgement.findings.as_slice() else { panic!("{:?}", judgement.findings) };
    assert_eq!(finding.kind, Kind::Suspect);
    assert!(finding.certificate.reason.contains("not whole"), "{}", finding.certificate.reason);
    let (_, judgement) = judged(&text(&[call(0, "write", "1", "1"), ghost, lost]));
    assert_eq!((judgement.verdict, judgement.findings[0].kind), (Ruled::Violated, Kind::Violation));
}

#[test]
fn a_spent_budget_is_unknown_and_says_what_is_open() {
    let history = history(&stale(7, 3));
    let late = crate::check::Options { deadline: Some(Instant::now()), ..Default::default() };
    assert!(matches!(judge(&history, &late).verdict, Ruled::Unknown(_)));
    let mut other_limits = Limits { memory: Some(0), ..Limits::default() };
    let log = Log { calls: history.calls(), names: &history.names };
    let order = crate::order::Order::derive(&history, &Default::default());
    let options = crate::check::Options::default();
    let evidence =
        Evidence { history: &history, order: &order, options: &options, facts: &crate::check::Facts::default() };
    let mut result = RuleResult::new(RULE.slug, &evidence);
    std::mem::swap(&mut result.limits, &mut other_limits);
    Model::Register.visit(
        log,
        Decision {
            history: &history,
            model: Model::Register,
            result: &mut result,
            proofs: false,
            begun: None,
            transactions: None,
        },
    );
    // A search without memory use may decide under any limit.
    if let Some(open) = &result.open {
        assert!(open.contains("the memory limit") && open.contains("key 7"), "{open}");
    } else {
        assert_eq!(result.findings.len(), 1);
    }
}

#[test]
fn an_interrupted_search_says_how_long_it_ran_and_what_is_open() {
    static HALT: Halt = Halt::new();
    HALT.set("interrupted");
    // Appends of unknown outcome and a read of a value that was not appended: a search would take years.
    let unknown = |n: u32| {
        let put = format!(":f :enqueue, :value {n}");
        format!("{{:process {n}, :type :invoke, {put}}}\n{{:process {n}, :type :info, {put}}}\n")
    };
    let mut history = history(&((0..64).map(unknown).collect::<String>() + &call(99, "dequeue", "nil", "1000")));
    history.set_model("queue");
    let order = crate::order::Order::derive(&history, &Default::default());
    let options = crate::check::Options::default();
    let facts = crate::check::Facts::default();
    let evidence = Evidence { history: &history, order: &order, options: &options, facts: &facts };
    let mut result = RuleResult::new(RULE.slug, &evidence);
    result.limits.halt = Some(&HALT);
    RULE.check(&evidence, &mut result);
    let open = result.open.unwrap();
    assert!(open.starts_with("interrupted after 0.0 s of searching: 65 of 65 calls"), "{open}");
}

#[test]
fn drained_elements_left_one_after_the_other_at_some_time_of_the_drain() {
    let put = |element: &str| call(0, "enqueue", element, element);
    let verdict = |text: &str, model: &str| {
        let mut history = history(text);
        history.set_model(model);
        judge(&history, &Default::default()).verdict
    };
    let drained = |by: &str| put("1") + &put("2") + &call(1, "drain", "nil", by) + &call(2, "dequeue", "nil", "nil");
    for (by, queue, unordered) in [
        ("[1 2]", Ruled::Holds, Ruled::Holds),
        ("[2 1]", Ruled::Violated, Ruled::Holds),
        ("#{2 1}", Ruled::Holds, Ruled::Holds),
        ("[2]", Ruled::Violated, Ruled::Violated),
    ] {
        let text = drained(by);
        assert_eq!((verdict(&text, "queue"), verdict(&text, "unordered-queue")), (queue, unordered), "{by}");
    }
    // Another client may own the values in between.
    let event = |process: u32, kind: &str, function: &str, value: &str| {
        format!("{{:process {process} :type :{kind} :f :{function} :value {value}}}\n")
    };
    let both = put("1")
        + &put("2")
        + &put("3")
        + &event(1, "invoke", "drain", "nil")
        + &event(2, "invoke", "dequeue", "nil")
        + &event(2, "ok", "dequeue", "2")
        + &event(1, "ok", "drain", "[1 3]");
    assert_eq!(verdict(&both, "queue"), Ruled::Holds);
    assert_eq!(verdict(&both.replace("[1 3]", "[3 1]"), "queue"), Ruled::Violated);
}

#[test]
fn what_was_interrupted_is_unknown_and_says_so() {
    static HALT: crate::check::Halt = crate::check::Halt::new();
    HALT.set("interrupted");
    let history = crate::history::sketch::sketch("etcd  +a:u1@10\nctrl@A  |-GET a => a:u1@10-|\n").unwrap();
    let order = crate::order::Order::derive(&history, &Default::default());
    let options = crate::check::Options { halt: Some(&HALT), ..Default::default() };
    let judgement = crate::check::judge(&history, &order, &options);
    assert_eq!(judgement.verdict.word(), "unknown");
    assert!(judgement.verdict.reason().contains("interrupted"), "{}", judgement.verdict.reason());
}

#[test]
fn the_reason_names_what_lies_before_what_and_every_way_to_go_on() {
    let (history, judgement) =
        judged(include_str!("../../../histories/rules/linearizability/violation-two-orders.edn"));
    let [finding] = judgement.findings.as_slice() else { panic!("{:?}", judgement.findings) };
    // The two writes are not needed: the values were read in both orders, whichever client wrote them.
    let facts: Vec<&str> = finding.certificate.facts.iter().map(|fact| fact.says.as_str()).collect();
    let told = [
        "`read` answered 1 (lines 5 to 7)",
        "`read` answered 2 (lines 6 to 8)",
        "`read` answered 2 (lines 9 to 11)",
        "`read` answered 1 (lines 10 to 12)",
    ];
    assert_eq!(facts, told);
    assert_eq!(history.client_name(finding.incarnation), "process 3");
    let reason = "No order of these 4 calls, each at one moment between its invocation and its answer, gives these answers, \
                  whatever the other calls did. The order is not free: process 2's `read` (line 7) and process 3's `read` \
                  (line 8) were answered before process 2's `read` (line 11) was invoked; process 2's `read` (line 7) and \
                  process 3's `read` (line 8) were answered before process 3's `read` (line 12) was invoked. After process 2's \
                  `read` answered 1, then process 3's `read` answered 2, then process 2's `read` answered 2, next must come \
                  process 3's `read` answered 1: impossible. After process 3's `read` answered 2, then process 2's `read` \
                  answered 1, then process 3's `read` answered 1, next must come process 2's `read` answered 2: impossible. \
                  The longest order found that begins the log has 5 calls, the last of them process 2's `read`. Without any \
                  one of them the others can be explained.";
    assert_eq!(finding.certificate.reason, reason);
}

#[test]
fn the_reason_names_the_call_that_was_invoked_too_late() {
    let reason = |calls: &[(u32, &str, &str, &str)]| {
        let line = |&(process, kind, function, value): &(u32, &str, &str, &str)| {
            format!("{{:process {process}, :type {kind}, :f {function}, :value {value}}}\n")
        };
        let (_, judgement) = judged(&calls.iter().map(line).collect::<String>());
        let [finding] = judgement.findings.as_slice() else { panic!("{:?}", judgement.findings) };
        finding.certificate.reason.clone()
    };
    let read = [(1, ":invoke", ":read", "nil"), (1, ":ok", ":read", "2")];
    let write = [(0, ":invoke", ":write", "2"), (0, ":ok", ":write", "2")];
    let late = reason(&[&read[..], &write].concat());
    let told = "This could be explained had process 0's `write 2` (invoked at line 3, after process 1's `read` was answered) come sooner.";
    assert!(late.contains(told), "{late}");
    let other = [(0, ":invoke", ":write", "3"), (0, ":ok", ":write", "3")];
    let never = reason(&[&read[..], &other].concat());
    assert!(never.contains("No other call of the log would help, whenever it had happened."), "{never}");
    let growing = [
        (0, ":invoke", ":append", "\"a\""),
        (0, ":ok", ":append", "\"a\""),
        (1, ":invoke", ":append", "\"b\""),
        (1, ":ok", ":append", "\"b\""),
        (2, ":invoke", ":get", "nil"),
        (2, ":ok", ":get", "\"ba\""),
    ];
    let swapped = reason(&growing);
    let told = "This could be explained had process 1's `append \"b\"` (invoked at line 3, after process 0's `append \"a\"` was answered) come \
                sooner.";
    assert!(swapped.contains(told), "{swapped}");
}

#[test]
fn what_was_answered_false_was_not_done() {
    let verdict = |calls: &[(&str, &str, &str)], model: &str| {
        let line = |(n, (function, value, result)): (usize, &(&str, &str, &str))| {
            let head = format!("{{\"process\":{n},\"op\":\"{function}\",\"key\":\"k\",\"type\":");
            let result = if result.is_empty() { String::new() } else { format!(",\"result\":{result}") };
            format!("{head}\"invoke\",\"value\":{value}}}\n{head}\"ok\"{result}}}\n")
        };
        let text: String = calls.iter().enumerate().map(line).collect();
        let mut history = history(&text);
        history.set_model(model);
        judge(&history, &Default::default()).verdict
    };
    for (model, calls, found) in [
        (
            "mutex",
            vec![("acquire", "null", "true"), ("acquire", "null", "false"), ("release", "null", "")],
            Ruled::Holds,
        ),
        ("mutex", vec![("acquire", "null", "true"), ("acquire", "null", "true")], Ruled::Violated),
        (
            "mutex",
            vec![("acquire", "null", ""), ("release", "null", "false"), ("acquire", "null", "")],
            Ruled::Violated,
        ),
        (
            "pool",
            vec![("allocate", "null", "1"), ("allocate", "null", "false"), ("allocate", "null", "false")],
            Ruled::Holds,
        ),
        ("pool", vec![("allocate", "null", "1"), ("allocate", "null", "1")], Ruled::Violated),
        ("queue", vec![("enqueue", "1", "false"), ("dequeue", "null", "null")], Ruled::Holds),
        ("queue", vec![("enqueue", "1", "\"OK\""), ("dequeue", "null", "null")], Ruled::Violated),
        ("kv", vec![("put", "\"1\"", "false"), ("get", "null", "null")], Ruled::Holds),
        ("kv", vec![("put", "\"1\"", ""), ("delete", "null", "false"), ("get", "null", "\"1\"")], Ruled::Holds),
        ("kv", vec![("put", "\"1\"", ""), ("delete", "null", "true"), ("get", "null", "\"1\"")], Ruled::Violated),
        ("register", vec![("write", "1", "false"), ("read", "null", "null")], Ruled::Holds),
        ("register", vec![("write", "false", "false"), ("read", "null", "false")], Ruled::Holds),
        ("register", vec![("write", "false", "false"), ("read", "null", "null")], Ruled::Violated),
        ("set", vec![("add", "1", "false"), ("read", "null", "[]")], Ruled::Holds),
        ("cas-register", vec![("write", "1", ""), ("cas", "[2,3]", "false"), ("read", "null", "1")], Ruled::Holds),
        ("cas-register", vec![("write", "1", ""), ("cas", "[2,3]", "true"), ("read", "null", "3")], Ruled::Violated),
        ("cas-register", vec![("write", "1", ""), ("cas", "[1,3]", "false"), ("read", "null", "1")], Ruled::Violated),
        ("cas-register", vec![("write", "1", ""), ("cas", "[2,3]", "[2,3]"), ("read", "null", "1")], Ruled::Violated),
    ] {
        assert_eq!(verdict(&calls, model), found, "{model} {calls:?}");
    }
    for answer in ["null", "0", "\"precondition failed\"", "{\"swapped\":false}"] {
        let calls = [("write", "1", ""), ("cas", "[2,3]", answer), ("read", "null", "1")];
        assert!(matches!(verdict(&calls, "cas-register"), Ruled::Unknown(_)), "{answer}");
    }
}

fn violated_or_open(text: &str) -> (String, Judgement) {
    let (_, judgement) = judged(text);
    (judgement.verdict.word().to_owned(), judgement)
}

#[test]
fn keys_that_may_be_in_the_values_leave_a_violation_open() {
    for text in [
        call(0, "put", "[\"a\" 1]", "[\"a\" 1]") + &call(0, "put", "[\"b\" 2]", "nil") + &call(0, "get", "\"a\"", "1"),
        call(0, "put", "[:a 1]", "[:a 1]")
            + &call(0, "put", "[:b 2]", "nil")
            + &call(0, "get", "[:a nil]", "[:a 1]")
            + &call(0, "delete", ":a", "nil"),
        call(0, "write", "{:key 1 :value 5}", "nil")
            + &call(0, "write", "{:key 2 :value 6}", "nil")
            + &call(0, "read", "{:key 1}", "{:key 1 :value 5}")
            + &call(0, "cas", "[1 2]", "true"),
    ] {
        let (verdict, judgement) = violated_or_open(&text);
        assert_eq!((verdict.as_str(), judgement.problems.is_empty()), ("unknown", false), "{text}");
        assert!(judgement.findings.iter().all(|finding| finding.kind == Kind::Suspect), "{text}");
    }
    for text in [
        call(0, "write", "[1 5]", "[1 5]") + &call(0, "write", "[2 6]", "[2 6]") + &call(0, "read", "nil", "[1 5]"),
        call(0, "write", "[1 5]", "nil")
            + &call(0, "write", "[2 6]", "nil")
            + &call(0, "cas", "[1 [5 6]]", "[1 [5 6]]"),
    ] {
        let (verdict, judgement) = violated_or_open(&text);
        let [problem] = judgement.problems.as_slice() else { panic!("{:?}", judgement.problems) };
        assert_eq!(
            (verdict.as_str(), problem.line, judgement.findings[0].kind),
            ("unknown", 2, Kind::Suspect),
            "{text}"
        );
        assert!(judgement.findings[0].certificate.reason.contains("pairs of a key and a value (line 2: "), "{text}");
    }
    // A register of pairs, and an argument that appears only in an answer.
    for (text, found) in [
        (
            call(0, "write", "[1 5]", "[1 5]") + &call(0, "write", "[2 6]", "[2 6]") + &call(0, "read", "nil", "[2 6]"),
            "holds",
        ),
        (
            call(0, "write", "[1 5]", "nil") + &call(0, "write", "7", "nil") + &call(0, "read", "nil", "[1 5]"),
            "violated",
        ),
        (
            call(0, "write", "[1 5]", "nil") + &call(0, "write", "[1 6]", "nil") + &call(0, "read", "nil", "[1 5]"),
            "violated",
        ),
        (call(0, "write", "1", "1") + &call(0, "write", "2", "2") + &call(0, "read", "1", "1"), "violated"),
        (call(0, "write", "1", "1") + &call(0, "read", "1", "1"), "holds"),
    ] {
        assert_eq!(violated_or_open(&text).0, found, "{text}");
    }
}

#[test]
fn what_another_beginning_explains_is_a_suspect() {
    let write = |value: &str| call(0, "write", value, value);
    let read = |value: &str| call(1, "read", "nil", value);
    for (text, found) in [
        (read("0") + &call(2, "cas", "[0 1]", "[0 1]"), "unknown"),
        (call(2, "cas", "[0 1]", "[0 1]") + &read("1"), "unknown"),
        (read("0") + &write("1"), "unknown"),
        // No object begins with 7 by itself.
        (read("7") + &write("1"), "violated"),
        // Whatever its first value, it was overwritten, or had no value, or another one.
        (write("1") + &read("0"), "violated"),
        (read("0") + &read("nil") + &write("1"), "violated"),
        (read("nil") + &read("0") + &write("1"), "violated"),
        (read("0") + &write("1") + &read("0"), "violated"),
        (read("0") + &read("1") + &write("1"), "violated"),
        (read("nil") + &write("1") + &read("1"), "holds"),
        (
            call(0, "txn", "[[:r :x nil]]", "[[:r :x 0]]")
                + &call(0, "txn", "[[:w :y 2] [:r :x nil]]", "[[:w :y 2] [:r :x 0]]"),
            "unknown",
        ),
        (call(0, "txn", "[[:w :x 1]]", "[[:w :x 1]]") + &call(0, "txn", "[[:r :x nil]]", "[[:r :x 0]]"), "violated"),
        // Each object has its own first value.
        (call(0, "read", "[7 nil]", "[7 0]") + &stale(8, 1), "violated"),
        (
            call(0, "read", "[7 nil]", "[7 0]")
                + &call(0, "read", "[8 nil]", "[8 0]")
                + &call(0, "write", "[8 1]", "nil"),
            "unknown",
        ),
    ] {
        let (verdict, judgement) = violated_or_open(&text);
        assert_eq!(verdict, found, "{text}");
        if found == "unknown" {
            let reason = &judgement.findings[0].certificate.reason;
            assert!(reason.starts_with("The log shows values that none of its calls had set before"), "{reason}");
        }
    }
}

#[test]
fn a_process_does_one_thing_at_a_time_whatever_its_times_say() {
    let event = |process: u32, kind: &str, function: &str, value: &str, time: u32| {
        format!("{{:process {process} :type :{kind} :f :{function} :value {value} :time {time}}}\n")
    };
    let log = |read: &str| {
        event(0, "invoke", "write", "1", 0)
            + &event(0, "ok", "write", "1", 100)
            + &event(0, "invoke", "read", "nil", 60)
            + &event(0, "ok", "read", read, 70)
    };
    assert_eq!(violated_or_open(&log("nil")).0, "unknown");
    assert_eq!(violated_or_open(&log("1")).0, "holds");
    // The order of another process's request is open if lines and times disagree.
    let other = event(0, "invoke", "write", "1", 0)
        + &event(0, "ok", "write", "1", 100)
        + &event(1, "invoke", "read", "nil", 60)
        + &event(1, "ok", "read", "nil", 70);
    assert_eq!(violated_or_open(&other).0, "holds");
}
