//! Damaged, hostile or foreign input: each yields one clear problem, and the rest is read.

use super::*;

/// Reads the input and returns its records and its one problem.
fn one_problem(bytes: impl AsRef<[u8]>) -> (Vec<String>, u32, String) {
    let (records, summary, mut problems) = read_one(bytes);
    assert_eq!((problems.len(), summary.problems), (1, 1), "{problems:?}");
    let (line, text) = problems.remove(0);
    (records, line, text)
}

#[test]
fn a_last_line_that_is_cut_off_is_a_problem_and_one_that_only_lacks_its_line_end_is_not() {
    let text = event("a") + &event("b");
    let (records, line, problem) = one_problem(&text[..text.len() - 20]);
    assert_eq!((records.len(), line), (1, 2));
    assert!(problem.starts_with("an audit event / a line cut off after 1"), "{problem}");
    assert_eq!(read_one(text.trim_end()).0.len(), 2);
}

#[test]
fn a_document_that_is_cut_off_does_not_cost_the_next_one() {
    let document = watch(1).replace("{\"kind", "{\n  \"kind").replace("}}\n", "}\n}\n");
    let text = format!("{document}{}\n{document}", &document[..40]);
    let (records, line, problem) = one_problem(&text);
    assert_eq!((records.len(), line), (2, 4));
    assert!(problem.contains("cut off"), "{problem}");
}

#[test]
fn invalid_utf_8_is_a_problem_of_its_line() {
    let mut text = (event("a") + &event("b")).into_bytes();
    text[60] = 0xff;
    let (records, line, problem) = one_problem(text);
    assert_eq!((records, line), (vec!["audit b".to_owned()], 1));
    assert!(problem.starts_with("UTF-8 text / the byte 0xff at column 61"), "{problem}");
}

#[test]
fn a_line_longer_than_allowed_is_skipped_without_being_kept() {
    for length in [4090, 5000, 1 << 20] {
        let text = event("a") + &answer("b", &format!("\"{}\"", "x".repeat(length))) + &event("c");
        let (records, line, problem) = one_problem(text);
        assert_eq!((records, line), (vec!["audit a".to_owned(), "audit c".to_owned()], 2));
        assert!(problem.starts_with("a line of at most 4096 bytes / "), "{problem}");
    }
    let (records, line, _) = one_problem(event("a") + &"x".repeat(1 << 20));
    assert_eq!((records.len(), line), (1, 2));
}

#[test]
fn a_document_longer_than_allowed_is_skipped_without_being_kept() {
    let document = watch(1).replace("{\"kind", "{\n  \"kind").replace("}}\n", "}\n}\n");
    let long = document.replace("\"kind\"", &format!("{}\"kind\"", " \n".repeat(1 << 18)));
    let options = ReadOptions { block_bytes: 64, ..small() };
    let (records, reading) = read_all(&[input(format!("{document}{long}{document}"))], &options);
    assert_eq!((records.len(), reading.problems.len()), (2, 1), "{:?}", reading.problems);
    assert_eq!((reading.problems[0].line, records[1].0.line), (4, 7 + (1 << 18)));
}

#[test]
fn deep_nesting_is_skipped_where_nobody_looks_and_a_problem_elsewhere() {
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    let options = ReadOptions { max_line_bytes: 1 << 20, ..small() };
    for (text, records, problems) in [
        (answer("a", &format!("{{\"unread\":{}}}", deep(100_000))), 1, 0),
        (event("a").replace("\"auditID\"", &format!("\"unread\":{},\"auditID\"", deep(100_000))), 1, 0),
        (event("a") + &event("b").replace("\"b\"", &deep(100_000)), 1, 1),
        (event("a") + &"[".repeat(100_000), 1, 1),
        (event("a") + &"{\"user\":".repeat(100_000), 1, 1),
        (event("a") + &answer("b", &deep(100_000)), 2, 0),
        (event("a") + &answer("b", &"{\"metadata\":".repeat(50_000)), 1, 1),
    ] {
        let (found, reading) = read_all(&[input(&text)], &options);
        assert_eq!((found.len(), reading.problems.len()), (records, problems), "{:.200}", text);
    }
}

#[test]
fn a_key_that_stands_twice_is_a_problem() {
    let twice = event("b").replace("\"stage\"", "\"auditID\":\"c\",\"stage\"");
    let (records, line, problem) = one_problem(event("a") + &twice);
    assert_eq!((records.len(), line), (1, 2));
    assert!(problem.starts_with("each key once in an object / duplicate field `auditID` at column"), "{problem}");
    let body = r#"{"metadata":{"resourceVersion":"5","resourceVersion":"6"}}"#;
    assert!(one_problem(answer("a", body)).2.contains("duplicate field `resourceVersion`"));
    let body = r#"{"status":{"phase":"a","phase":"b"}}"#;
    assert!(one_problem(answer("a", body)).2.contains("duplicate field `phase`"));
}

#[test]
fn a_line_of_another_kind_is_one_problem_and_the_rest_is_read() {
    let etcd = r#"{"Header":{"revision":2},"Events":null,"Canceled":false}"#.to_owned() + "\n";
    let capture = r#"{"kind":"request","id":1,"method":"GET","uri":"/"}"#.to_owned() + "\n";
    let object = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"1"}}"#.to_owned() + "\n";
    let kinds = [
        (event("a"), "an audit event"),
        (capture, "a capture line"),
        (watch(1), "a watch event"),
        (etcd, "an etcd watch response"),
        (object, "a Kubernetes object"),
    ];
    for (own, _) in &kinds {
        for (other, words) in kinds.iter().filter(|(other, _)| other != own) {
            let (records, line, problem) = one_problem(own.repeat(2) + other + own);
            assert_eq!((records.len(), line), (3, 3), "{own} {other}");
            assert!(problem.ends_with(words), "{own} {other} {problem}");
        }
    }
    let (records, _, problem) = one_problem(event("a") + "{\"msg\":\"x\"}\n");
    assert_eq!((records.len(), problem.as_str()), (1, "an audit event / JSON of an unknown kind"));
    let (_, _, problem) = one_problem(event("a") + "[\"Event\",\"audit.k8s.io/v1\"]\n");
    assert!(problem.contains("no JSON object"), "{problem}");
}

#[test]
fn times_that_are_missing_unreadable_or_in_the_wrong_order_are_problems() {
    let both = "requestReceivedTimestamp and stageTimestamp";
    for (line, expected) in [
        ("{\"auditID\":\"a\",\"stage\":\"Panic\"}\n".to_owned(), format!("{both} / an event without requestReceivedTimestamp")),
        (event("a").replace(",\"stageTimestamp\":\"2026-11-20T20:26:58.666053Z\"", ""), format!("{both} / an event without stageTimestamp")),
        (
            event("a").replace("stageTimestamp\":\"2026-11-20T20:26:58", "stageTimestamp\":\"2026-11-20T20:26:57"),
            "a stageTimestamp not before its requestReceivedTimestamp / 2026-11-20T20:26:57.666053Z after 2026-11-20T20:26:58.666053Z"
                .to_owned(),
        ),
    ] {
        // The event itself counts.
        let (records, number, problem) = one_problem(event("b") + &line);
        assert_eq!((records, number, problem), (vec!["audit b".to_owned(), "audit a".to_owned()], 2, expected));
    }
    let (records, line, problem) = one_problem(event("a") + &event("b").replace("2026", "year"));
    assert_eq!((records.len(), line), (1, 2));
    assert_eq!(problem, "a time (RFC 3339) / a text of 27 characters");
    let capture = r#"{"kind":"request","id":1,"at":"noon"}"#;
    assert_eq!(one_problem(capture).2, "a time (RFC 3339) / a text of 4 characters");
    assert!(one_problem(capture.replace("\"noon\"", "1.5e18")).2.contains("a time (RFC 3339, or nanoseconds"));
}

#[test]
fn nul_bytes_are_a_problem_and_what_follows_them_is_read() {
    for nuls in [1, 100, 200_000] {
        let nuls = "\0".repeat(nuls);
        let text = format!("{nuls}{}{}", event("a"), event("b"));
        let (records, line, problem) = one_problem(text);
        assert_eq!((records.len(), line), (2, 1));
        assert!(problem.ends_with("of NUL"), "{problem}");
        let (records, line, _) = one_problem(format!("{}{nuls}{}", event("a"), event("b")));
        assert_eq!((records.len(), line), (2, 2));
        let (records, line, _) = one_problem(format!("{}{}{nuls}", event("a"), event("b")));
        assert_eq!((records.len(), line), (2, 3));
        assert_eq!(read_one(nuls).1.ignored.as_deref(), Some("nothing but NUL bytes"));
    }
}

#[test]
fn windows_line_ends_and_byte_order_marks_are_no_problem() {
    let text = format!("\u{feff}{}\u{feff}{}", event("a"), event("b")).replace('\n', "\r\n");
    let (records, summary, problems) = read_one(text);
    assert_eq!((records.len(), summary.lines, problems.len()), (2, 2, 0));
    let wide: Vec<u8> = std::iter::once(0xfeff).chain(event("a").encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let (records, summary, problems) = read_one(wide);
    assert_eq!((records.len(), summary.format, summary.ignored), (0, None, None));
    assert!(problems[0].1.starts_with("UTF-8 text (convert the file) / UTF-16"), "{problems:?}");
}

#[cfg(feature = "compress")]
#[test]
fn a_compressed_file_cut_in_half_is_used_as_far_as_it_goes() {
    let text: String = (0..5000).map(|n| event(&format!("{:x}", n * 2_654_435_761u64))).collect();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for whole in [formats::gzip(&text), zstd] {
        let (records, summary, problems) = read_one(&whole[..whole.len() / 2]);
        assert!(records.len() > 500, "{}", records.len());
        assert!(summary.format.is_some());
        let (line, problem) = problems.last().unwrap();
        assert_eq!(*line, 0);
        assert!(problem.starts_with("a whole ") && problem.contains("cut off after"), "{problem}");
        // The rest ends inside a line.
        assert!(problems.len() <= 2, "{problems:?}");
        let (records, _, problems) = read_one(&whole[..5]);
        assert_eq!((records.len(), problems.len()), (0, 1), "{problems:?}");
    }
    let mut garbage = formats::gzip(&text);
    garbage.extend_from_slice(b"garbage behind the end");
    let (records, _, problems) = read_one(garbage);
    assert_eq!((records.len(), problems.len()), (5000, 1), "{problems:?}");
}

#[test]
fn what_cannot_be_read_is_a_problem_of_the_file() {
    let folder = Folder::new("unreadable");
    let named = |path: PathBuf| InputFile { shown: path.display().to_string(), path, ..InputFile::default() };
    let mut files = vec![(named(folder.0.clone()), "a directory"), (named(folder.0.join("none")), "No such file")];
    if cfg!(unix) {
        files.push((named("/dev/null".into()), "a device"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = folder.file("secret", "x");
        std::fs::set_permissions(&file.path, std::fs::Permissions::from_mode(0o000)).unwrap();
        // The superuser can read every file.
        if std::fs::read(&file.path).is_err() {
            files.push((file, "ermission denied"));
        }
    }
    for (file, found) in files {
        let (records, summary, problems) = read_input(&file);
        assert_eq!((records.len(), problems.len(), summary.format, summary.ignored), (0, 1, None, None));
        assert!(problems[0].1.contains(found), "{problems:?}");
        assert_eq!(problems[0].0, 0);
    }
}

#[test]
fn few_problems_are_kept_and_all_are_counted() {
    let text = event("a") + &"{broken\n".repeat(500) + &event("b");
    let (_, reading) = read_all(&[input(text)], &small());
    assert_eq!(reading.files[0].problems, 500);
    assert_eq!(reading.problems.len(), limits::KEPT_PROBLEMS_PER_FILE);
    assert!(reading.files[0].too_many_problems());
}

#[test]
fn a_forced_format_is_obeyed_and_what_does_not_fit_is_a_problem() {
    let file = InputFile { format: Some(Format::Watch), ..input(event("a") + &watch(1)) };
    let (records, summary, problems) = read_input(&file);
    assert_eq!((records.len(), summary.format, problems.len()), (1, Some("watch"), 1));
    let file = InputFile { format: Some(Format::Audit), ..input("plain text\n") };
    let (_, summary, problems) = read_input(&file);
    assert_eq!((summary.format, problems.len()), (Some("audit"), 1));
}
