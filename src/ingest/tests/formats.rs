//! Each format, compact and indented, compressed or not.

use super::*;

#[test]
fn audit_events_are_read_from_lines_from_batches_and_from_documents() {
    let lines = event("a") + &event("b");
    let (records, summary, problems) = read_one(&lines);
    assert_eq!(records, ["audit a", "audit b"]);
    assert_eq!((summary.format, summary.lines, summary.records), (Some("audit"), 2, 2));
    assert_eq!(summary.bytes, lines.len() as u64);
    assert!(problems.is_empty());

    let items = format!("{},{}", event("a").trim_end(), event("b").trim_end());
    let batch = format!(r#"{{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{{}},"items":[{items}]}}"#);
    let other = format!(r#"{{"items":[{items}],"apiVersion":"audit.k8s.io/v1","kind":"EventList"}}"#);
    let (records, summary, _) = read_one(format!("{batch}\n{other}\n"));
    assert_eq!(records, ["audit a", "audit b", "audit a", "audit b"]);
    assert_eq!((summary.lines, summary.records), (4, 4));

    let indented = lines.replace(',', ",\n  ").replace('{', "{\n  ").replace('}', "\n}");
    assert_eq!(read_one(indented).0, ["audit a", "audit b"]);
}

#[test]
fn every_capture_kind_is_read_and_unknown_kinds_are_counted() {
    let text = r#"{"kind":"capture","version":1,"client":"c","later":{"x":1}}
{"kind":"request","id":7,"at":"2026-11-20T20:26:58Z","method":"GET","uri":"/a?b=1\u0026c=2"}
{"kind":"response","id":7,"at":1795206418000000000,"status":200,"body":{"metadata":{"resourceVersion":"5"}}}
{"kind":"event","id":"x","event":{"type":"ADDED","object":{}}}
{"kind":"end","id":7,"at":"2026-11-20T20:26:58Z","reason":"eof"}
{"kind":"mark","at":"2026-11-20T20:26:58Z","name":"paused"}
{"kind":"decision","id":"d","at":"2026-11-20T20:26:58Z","phase":"begin"}
{"kind":"read","decision":"d","at":"2026-11-20T20:26:58Z","resource":"pods","name":"p"}
{"kind":"heartbeat","at":"2026-11-20T20:26:58Z"}
"#;
    let (records, summary, problems) = read_one(text);
    let kinds: Vec<_> = records.iter().map(|text| text.split(' ').nth(1).unwrap()).collect();
    assert_eq!(kinds, ["capture", "request", "response", "event", "end", "mark", "decision", "read"]);
    assert_eq!(records[2], "capture response 5");
    assert_eq!((summary.unknown, summary.lines, problems.len()), (1, 9, 0));
}

#[test]
fn watch_events_are_read_compact_and_indented_and_a_whole_list_stays_one_event() {
    let list = r#"{"type":"ADDED","object":{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{},{}]}}"#;
    let text = watch(1) + list + "\n" + &watch(2);
    let (records, summary, _) = read_one(&text);
    assert_eq!(records, ["watch ADDED 1", "watch ADDED 9", "watch ADDED 2"]);
    assert_eq!(summary.format, Some("watch"));
    let indented = text.replace('{', "{\n    ").replace("}\n", "\n}\n");
    assert_eq!(read_one(indented).0, records);
    let (_, summary, problems) = read_one(watch(1) + r#"{"type":"SYNCED","object":{"kind":"Pod"}}"#);
    assert_eq!((summary.unknown, problems.len()), (1, 0));
}

#[test]
fn lists_tables_and_single_objects_are_read() {
    let list = r#"{"apiVersion":"v1","items":[{"metadata":{"resourceVersion":"3"}}],"kind":"List","metadata":{"resourceVersion":""}}"#;
    let table =
        r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"4"},"rows":[{"object":null}]}"#;
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","resourceVersion":"5"}}"#;
    let (records, summary, _) = read_one(format!("{list}\n{table}\n{pod}\n"));
    assert_eq!(records, ["list  1", "list 4 0", "list 5 0"]);
    assert_eq!(summary.format, Some("list"));
    let indented = format!("{list}{table}{pod}").replace('{', "{\n    ");
    let (records, summary, _) = read_one(indented);
    assert_eq!((records.len(), summary.lines), (3, 3));
}

#[test]
fn etcd_watch_responses_are_read() {
    let text = r#"{"Header":{"cluster_id":1645125333264858583,"member_id":1,"revision":2},"Events":[{"type":1,"kv":{"key":"aw==","mod_revision":2}},{"kv":{"key":"aw=="}}],"CompactRevision":0,"Canceled":false,"Created":false}
"#;
    let (records, summary, problems) = read_one(text);
    assert_eq!((records, summary.format, problems.len()), (vec!["etcd 2".to_owned()], Some("etcd-watch"), 0));
}

#[test]
fn legacy_audit_text_is_one_problem_that_counts_every_line() {
    let line = "2026-11-20T20:26:45.607755314Z AUDIT: id=\"e8\" stage=\"RequestReceived\" ip=\"127.0.0.1\"\n";
    let (records, summary, problems) = read_one(line.repeat(3));
    assert!(records.is_empty());
    assert_eq!((summary.format, summary.lines, summary.problems), (Some("audit-legacy"), 3, 3));
    assert!(summary.too_many_problems());
    assert_eq!(problems.len(), 1);
    assert!(problems[0].1.contains("3 lines"), "{problems:?}");
}

#[test]
fn what_is_no_evidence_is_ignored_with_a_reason() {
    for (text, reason) in [
        ("", "empty"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\n", "an audit policy"),
        ("{\"level\":\"info\",\"msg\":\"x\"}\n", "JSON of an unknown kind"),
    ] {
        let (records, summary, problems) = read_one(text);
        assert_eq!((records.len(), problems.len(), summary.format), (0, 0, None));
        assert_eq!(summary.ignored.as_deref(), Some(reason), "{text}");
    }
}

#[cfg(feature = "compress")]
#[test]
fn compressed_input_is_recognised_by_its_first_bytes() {
    let text: String = (0..200).map(|n| event(&n.to_string())).collect();
    let plain = read_one(&text);
    let mut members = gzip(&text[..text.len() / 2 + 7]);
    members.extend(gzip(&text[text.len() / 2 + 7..]));
    assert_eq!(read_one(gzip(&text)).0, plain.0);
    assert_eq!(read_one(members).0, plain.0);
    let mut frames = zstd::encode_all(&text.as_bytes()[..99], 1).unwrap();
    frames.extend(zstd::encode_all(&text.as_bytes()[99..], 1).unwrap());
    let (records, summary, problems) = read_one(frames);
    assert_eq!((records, summary.bytes, problems.len()), (plain.0, text.len() as u64, 0));
}

#[cfg(feature = "compress")]
pub(super) fn gzip(text: impl AsRef<[u8]>) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_ref()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_envelope_survives_bodies_that_do_not_fit() {
    for (body, expected) in [
        // Custom resources may use any top-level name for anything.
        (r#"{"kind":"Odd","metadata":{"resourceVersion":"5"},"items":{"a":1}}"#, "audit a 5"),
        (r#"{"kind":"Odd","metadata":{"resourceVersion":"5"},"details":["x"],"code":"x"}"#, "audit a 5"),
        (r#"{"kind":"Odd","metadata":{"resourceVersion":"5"},"spec":"text","status":7}"#, "audit a 5"),
        (r#"{"kind":"Odd","metadata":null,"items":null}"#, "audit a"),
        (r#"{"kind":"Odd","metadata":{"resourceVersion":5}}"#, "audit a"),
        // A list without its items would look like an observed absence.
        (r#"{"kind":"OddList","metadata":{"resourceVersion":"5"},"items":[7]}"#, "audit a"),
        ("\"skipped-too-big-size-object\"", "audit a"),
        ("[{\"op\":\"test\",\"path\":\"/x\",\"value\":{}}]", "audit a"),
        ("null", "audit a"),
    ] {
        let (records, _, problems) = read_one(answer("a", body));
        assert_eq!((records, problems), (vec![expected.to_owned()], vec![]), "{body}");
    }
    let odd = r#"{"kind":"Odd","metadata":{"resourceVersion":"5"},"items":[1]}"#;
    let (records, ..) = read_one(format!("{{\"type\":\"ADDED\",\"object\":{odd}}}\n"));
    assert_eq!(records, ["watch ADDED 5"]);
    let (records, ..) = read_one(format!("{{\"kind\":\"response\",\"id\":1,\"status\":200,\"body\":{odd}}}\n"));
    assert_eq!(records, ["capture response 5"]);
    let event = format!("{{\"kind\":\"event\",\"id\":1,\"event\":{{\"type\":\"ADDED\",\"object\":{odd}}}}}\n");
    assert_eq!(read_one(event).0, ["capture event"]);
    let single = odd.replace("\"kind\"", "\"apiVersion\":\"v1\",\"kind\"");
    assert_eq!(read_one(single).0, ["list 5 0"]);
}

#[test]
fn one_odd_item_of_a_batch_does_not_cost_the_others() {
    let odd = r#"{"auditID":"b","stage":"Panic","verb":7}"#;
    let fine = event("a");
    let text = format!(r#"{{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[{fine},{odd},{fine}]}}"#);
    let (records, summary, problems) = read_one(text);
    assert_eq!((records.len(), summary.lines, summary.problems, problems.len()), (2, 3, 1, 1));
}
