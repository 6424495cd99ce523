//! Recordings from which a recorder dropped records, since the disk was slower than the client.

use crate::check::Verdict;
use crate::history::{self, Domains};
use crate::ingest;
use std::{env, fs};

/// The verdict over one file, and the problems in it.
fn judged(name: &str, lines: &str) -> (Verdict, Vec<String>) {
    let folder = env::temp_dir().join(format!("retrograde-dropped-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("recorded.jsonl");
    fs::write(&path, lines).unwrap();
    let inputs = ingest::inputs(std::slice::from_ref(&path), &[], &[]).unwrap();
    let history = history::load(inputs, &crate::read_options(), &Domains::default(), &());
    fs::remove_dir_all(&folder).unwrap();
    let problems = history.problems.iter().map(|problem| problem.found.clone()).collect();
    (crate::judge(&history, &crate::Options::default()).verdict, problems)
}

#[test]
fn nothing_holds_if_a_recorder_dropped_records_and_their_number_is_told() {
    let list = r#"{"kind":"capture","version":1,"client":"c"}
{"kind":"request","id":1,"at":1,"method":"GET","uri":"/api/v1/pods"}
{"kind":"response","id":1,"at":2,"status":200,"body":{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}}
{"kind":"request","id":2,"at":3,"method":"GET","uri":"/api/v1/pods"}
{"kind":"response","id":2,"at":4,"status":200,"body":{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"8"},"items":[]}}
"#;
    assert_eq!(judged("none", list), (Verdict::Holds, vec![]));
    let dropped = format!("{list}{{\"kind\":\"dropped\",\"at\":5,\"count\":12}}\n");
    let (verdict, problems) = judged("some", &dropped);
    assert!(matches!(verdict, Verdict::Unknown(_)), "{verdict:?}");
    assert_eq!(problems, ["12 records that the recorder dropped"]);
    // One among very many lines: the file as a whole is incomplete.
    let mark = |at: u32| format!("{{\"kind\":\"mark\",\"at\":{at},\"name\":\"m\"}}\n");
    let many = (10..5_000).map(mark).collect::<String>();
    let (verdict, problems) = judged("long", &format!("{list}{{\"at\":5,\"kind\":\"dropped\",\"count\":1}}\n{many}"));
    assert!(matches!(verdict, Verdict::Unknown(_)), "{verdict:?}");
    assert_eq!(problems, ["1 record that the recorder dropped"]);
    let operations = r#"{"process":"a","op":"write","value":1,"invoke":1,"return":2,"outcome":"ok"}
{"process":"b","op":"read","result":1,"invoke":3,"return":4,"outcome":"ok"}
"#;
    assert_eq!(judged("calls", operations).0, Verdict::Holds);
    let (verdict, _) = judged("calls", &format!("{operations}{{\"kind\":\"dropped\",\"at\":5,\"count\":2}}\n"));
    assert!(matches!(verdict, Verdict::Unknown(_)), "{verdict:?}");
}
