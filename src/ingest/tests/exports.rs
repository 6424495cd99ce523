//! Events inside envelopes: places, long answers, odd and hostile values.

use super::*;

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn entry(id: &str) -> String {
    let event = event(id);
    format!("{{\n  \"logStreamName\": \"kube-apiserver-audit-1\",\n  \"message\": {}\n}}", quoted(event.trim_end()))
}

/// The ids of the events at the places of the records, read again.
fn again(file: &InputFile, records: &[(Position, String)]) -> Vec<String> {
    let positions: Vec<Position> = records.iter().map(|(position, _)| *position).collect();
    let id = |text: Option<String>| {
        let event: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
        format!("audit {}", event["auditID"].as_str().unwrap())
    };
    reread(file, &positions).into_iter().map(id).collect()
}

#[test]
fn an_answer_longer_than_a_line_may_be_is_read_entry_by_entry() {
    for key in ["events", "records"] {
        let entries: Vec<String> = (0..400).map(|n| entry(&n.to_string())).collect();
        let text = format!(
            "{{\n\"before\": [1, {{}}],\n\"{key}\": [\n{}\n],\n\"after\": [{{\"message\": \"x\"}}]\n}}\n{{\"events\": [{}]}}\n",
            entries.join(",\n").replace('\n', "\n  ").replacen("{\n", "  {\n", 1),
            entry("last").replace('\n', " ")
        );
        assert!(text.len() > 1 << 16);
        let file = input(&text);
        let (marks, summary, problems) = read_input(&file);
        let expected: Vec<String> =
            (0..400).map(|n| n.to_string()).chain(["last".to_owned()]).map(|id| format!("audit {id}")).collect();
        assert_eq!((marks, problems), (expected.clone(), Vec::new()), "{key}");
        assert_eq!((summary.lines, summary.records), (401, 401), "{key}");
        let (records, _) = read_all(std::slice::from_ref(&file), &small());
        assert_eq!(again(&file, &records), expected, "{key}");
        for (position, mark) in &records {
            let line = text.lines().nth(position.line as usize - 1).unwrap();
            let id = mark.strip_prefix("audit ").unwrap();
            assert!(line.contains(&format!("\\\"auditID\\\":\\\"{id}\\\"")), "{key}: {position:?}");
        }
    }
}

#[test]
fn a_line_with_a_prefix_has_the_place_of_its_event() {
    let text = format!(
        "2026-03-02T09:00:00Z {}2026-03-02T09:00:00Z stdout P {{\"kind\"\n2026-03-02T09:00:00Z stdout F :1}}\n2026-03-02T09:00:00Z stdout F {}",
        event("a"),
        event("b")
    );
    let file = input(&text);
    let (marks, summary, problems) = read_input(&file);
    assert_eq!(marks, ["audit a", "audit b"]);
    assert_eq!(problems, [(2, "an event on one line / a part of a line that a container runtime cut".to_owned())]);
    assert_eq!((summary.lines, summary.records, summary.unknown), (4, 2, 1));
    let (records, _) = read_all(std::slice::from_ref(&file), &small());
    assert_eq!(records[0].0, Position { file: FileId(0), line: 1, offset: 21 });
    assert_eq!(again(&file, &records), marks);
}

#[test]
fn envelopes_inside_each_other_are_opened_up_to_the_limit() {
    let wrap = |text: &str| format!("{{\"labels\":{{}},\"line\":{}}}", quoted(text));
    let mut text = event("a").trim_end().to_owned();
    for depth in 1..6 {
        text = wrap(&text);
        let (marks, summary, _) = read_one(format!("{}{text}\n", wrap(event("b").trim_end()) + "\n"));
        let read = usize::from(depth <= limits::DEEPEST_ENVELOPE);
        assert_eq!(marks.len(), 1 + read, "{depth}");
        assert_eq!(summary.unknown, 1 - read as u64, "{depth}");
    }
}

#[test]
fn what_only_looks_like_an_envelope_is_no_evidence() {
    for text in [
        "{\"message\":\"hello\",\"level\":\"info\"}\n",
        "{\"log\":\"hello\\n\",\"stream\":\"stdout\",\"time\":\"t\"}\n",
        "{\"records\":[{\"a\":1}]}\n",
        "{\"events\":[]}\n",
        "{\"data\":\"eyJhIjoxfQ==\"}\n",
        "[{\"message\":\"hello\"}]\n",
        "2026-03-02T09:00:00Z {\"a\":1}\n",
        "a,\"{\"\"b\"\":1}\"\n",
        "{\"@timestamp\":\"t\",\"message\":\"{\\\"a\\\":1}\"}\n",
    ] {
        let (marks, summary, _) = read_one(text);
        assert!(marks.is_empty() && summary.format.is_none() && summary.ignored.is_some(), "{text}: {summary:?}");
    }
}

#[test]
fn times_without_a_zone_are_read_and_counted() {
    let text = event("a").replace("2026-11-20T20:26:58.666053Z", "2026-11-20 20:26:58.66");
    let of_2017 = event("b").replace("requestReceivedTimestamp", "timestamp").replace("stageTimestamp", "x");
    let (marks, summary, problems) = read_one(text + &of_2017);
    assert_eq!((marks.len(), problems.len(), summary.export.without_zone), (2, 0, 1));
    assert!(summary.export.envelopes.contains_key("audit-2017"));
}

#[test]
fn altered_envelopes_never_panic_and_lose_no_line_in_silence() {
    let whole = format!("{}\n2026-03-02T09:00:00Z {}", entry("a").replace('\n', " "), event("b"));
    for at in 0..whole.len() {
        for byte in [b'"', b'\\', b'{', b'}', b'[', b',', b' ', 0, 0xff] {
            let mut bytes = whole.clone().into_bytes();
            bytes[at] = byte;
            let (records, reading) = read_all(&[input(&bytes)], &ReadOptions { threads: 1, ..small() });
            let file = &reading.files[0];
            let accounted = file.records + file.problems + file.unknown;
            assert!(file.ignored.is_some() || accounted >= file.lines, "{at} {byte}: {file:?}");
            reread(&input(&bytes), &records.iter().map(|(position, _)| *position).collect::<Vec<_>>());
        }
    }
}
