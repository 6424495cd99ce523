//! Damaged reports: the damage is a problem, the rest is judged, and rules that it may concern do not hold.
//!
//! It finds verdicts that rest on missing evidence, and readers that stop at the first damaged value.

use super::{Chance, Report, shown};
use retrograde::check::Judgement;
use retrograde::history::{Domains, load_each};
use retrograde::ingest::{FileId, InputFile};

/// Judges files; `None` if nothing can be read. Also returns the number of problems.
fn judge(files: &[(String, Vec<u8>)]) -> Option<(usize, Judgement)> {
    let in_memory =
        |(id, (name, bytes)): (u32, &(String, Vec<u8>))| InputFile::in_memory(FileId(id), name, bytes.clone());
    let files = (0..).zip(files).map(in_memory).collect();
    let options = retrograde::ingest::ReadOptions { threads: 1, ..retrograde::read_options() };
    let histories = load_each(files, &options, &Domains::default(), &());
    assert!(histories.len() <= 1);
    let history = histories.first()?;
    Some((history.problems.len(), retrograde::judge(history, &retrograde::Options::default())))
}

fn healthy(seed: u64) -> Vec<(String, Vec<u8>)> {
    let files = Report::draw(seed, true).files();
    files.into_iter().map(|(name, text)| (name, text.into_bytes())).collect()
}

#[test]
fn a_file_that_ends_too_early_is_told_and_convicts_nobody() {
    for seed in 0..12 {
        let files = healthy(seed);
        let dice = &mut Chance::new(seed);
        for _ in 0..24 {
            let mut cut = files.clone();
            let at = dice.below(cut.len() as u64) as usize;
            let length = 1 + dice.below(cut[at].1.len() as u64 - 1) as usize;
            cut[at].1.truncate(length);
            let whole = cut[at].1.ends_with(b"\n") || cut[at].1.ends_with(b"}") && files[at].1[length] == b'\n';
            let (problems, judgement) = judge(&cut).expect("a report");
            assert!(problems > 0 || whole, "seed {seed}: {} cut at {length}", cut[at].0);
            assert_ne!(
                judgement.verdict.word(),
                "violated",
                "seed {seed}: {} cut at {length}: {}",
                cut[at].0,
                shown(&judgement)
            );
            assert!(problems == 0 || judgement.verdict.word() == "unknown", "seed {seed}: {:?}", judgement.verdict);
        }
    }
}

#[test]
fn a_file_that_is_missing_convicts_nobody() {
    for seed in 0..24 {
        let files = healthy(seed);
        for at in 0..files.len() {
            let mut fewer = files.clone();
            let (name, _) = fewer.remove(at);
            let Some((_, judgement)) = judge(&fewer) else { continue };
            assert_ne!(judgement.verdict.word(), "violated", "seed {seed}, without {name}: {}", shown(&judgement));
        }
    }
}

#[test]
fn a_report_with_nothing_in_it_never_holds() {
    let name = |name: &str| format!("report/{name}");
    for files in [
        vec![(name("client-1/operations.json"), Vec::new())],
        vec![(name("client-1/operations.json"), Vec::new()), (name("client-1/watch.json"), Vec::new())],
        vec![(name("traffic.json"), b"{}".to_vec())],
        vec![(name("client-1/watch.json"), br#"{"Request":{"Key":"","Revision":0,"WithPrefix":true}}"#.to_vec())],
    ] {
        let judged = judge(&files);
        assert!(judged.is_none_or(|(_, judgement)| judgement.verdict.word() != "holds"), "{files:?}");
    }
}

#[test]
fn a_client_that_stands_there_twice_counts_once_and_is_told() {
    for seed in 0..12 {
        let mut files = healthy(seed);
        let (name, text) = files[0].clone();
        if text.iter().filter(|byte| **byte == b'\n').count() < 3 {
            continue;
        }
        files.push((name.replace("client-", "client-9"), text));
        let (problems, judgement) = judge(&files).expect("a report");
        assert!(problems > 0, "seed {seed}");
        assert_eq!(judgement.verdict.word(), "unknown", "seed {seed}");
    }
}

#[test]
fn numbers_and_times_that_cannot_be_are_told_and_the_rest_is_judged() {
    // The request precedes the answer in the line.
    let spoil = |text: &str, field: &str, number: &str, answered: bool| -> Option<String> {
        let line = text.find('\n').unwrap_or(text.len());
        let at = if answered { text[..line].rfind(field) } else { text[..line].find(field) };
        let at = at? + field.len();
        let end = at + text[at..].find([',', '}'])?;
        Some(format!("{}{number}{}", &text[..at], &text[end..]))
    };
    for (field, number) in [
        ("\"Revision\":", "0"),
        ("\"Revision\":", "9223372036854775808"),
        ("\"Revision\":", "99999999999999999999"),
        ("\"Revision\":", "-9223372036854775808"),
        ("\"Call\":", "-5"),
        ("\"Call\":", "9223372036854775807"),
        ("\"Return\":", "-9223372036854775808"),
    ] {
        for seed in 0..24 {
            let mut files = healthy(seed / 2);
            let text = String::from_utf8(files[0].1.clone()).expect("text");
            let Some(spoilt) = spoil(&text, field, number, seed % 2 == 1) else { continue };
            files[0].1 = spoilt.into_bytes();
            let (_, judgement) = judge(&files).expect("a report");
            // A request may name any revision; a changed answer must not.
            assert_ne!(judgement.verdict.word(), "violated", "seed {seed}, {field} {number}: {:?}", judgement.findings);
        }
    }
}

#[test]
fn the_log_of_another_cluster_convicts_nobody_and_logs_without_clients_never_hold() {
    let log = || {
        let bytes = include_bytes!("../samples/member.wal").to_vec();
        ("report/server-m0/member/wal/0000000000000000-0000000000000000.wal".to_owned(), bytes)
    };
    let (_, alone) = judge(&[log()]).expect("a report");
    assert_eq!(alone.verdict.word(), "unknown", "{}", shown(&alone));
    // If clients observed nothing, any logged change may be theirs.
    for seed in (0..24).filter(|seed| Report::draw(*seed, true).etcd.revision() > 1) {
        let mut files = healthy(seed);
        files.push(log());
        let (_, judgement) = judge(&files).expect("a report");
        assert_eq!(judgement.verdict.word(), "unknown", "seed {seed}: {}", shown(&judgement));
        assert!(judgement.verdict.reason().contains("log"), "seed {seed}: {}", judgement.verdict.reason());
    }
}

#[test]
fn of_a_revision_that_nobody_made_the_candidates_are_told_with_what_excludes_them_and_the_rest_is_counted() {
    let put = |call: u32, value: &str, output: &str| {
        format!(
            r#"{{"ClientId":0,"Input":{{"Type":"txn","Txn":{{"Conditions":null,"OperationsOnSuccess":[{{"Type":"put-operation","Put":{{"Key":"k","Value":{{"Value":"{value}"}},"LeaseID":0}}}}],"OperationsOnFailure":null}}}},"Call":{call},"Output":{output},"Return":{}}}"#,
            call + 5
        ) + "\n"
    };
    let mut client =
        put(10, "1", r#"{"Txn":{"Failure":false,"Results":[{"KVs":null,"Count":0,"Deleted":0}]},"Revision":2}"#);
    client.extend((0..20).map(|n| put(20 + 10 * n, &format!("u{n}"), r#"{"Error":"context deadline exceeded"}"#)));
    let read = r#"{"ClientId":0,"Input":{"Type":"range","Range":{"Start":"k","End":"","Limit":0,"Revision":0}},"Call":300,"Output":{"Range":{"KVs":[{"Key":"k","Value":{"Value":"of nobody"},"ModRevision":3}],"Count":1},"Revision":3},"Return":310}"#;
    let watch = r#"{"Request":{"Key":"k","Revision":1},"Responses":[{"Events":[{"Type":"put-operation","Key":"k","Value":{"Value":"1"},"Revision":2,"IsCreate":true},{"Type":"put-operation","Key":"k","Value":{"Value":"of nobody"},"Revision":3}],"Revision":3,"Time":300}]}"#;
    let operations = ("report/client-1/operations.json".to_owned(), (client.clone() + read).into_bytes());
    let watched = [
        ("report/client-1/operations.json".to_owned(), client.into_bytes()),
        ("report/client-2/watch.json".to_owned(), watch.as_bytes().to_vec()),
    ];
    for files in [&[operations][..], &watched[..]] {
        let (problems, judgement) = judge(files).expect("a report");
        assert_eq!(problems, 0, "{}", shown(&judgement));
        let certificate = &judgement.findings.first().expect("a suspect").certificate;
        let candidates = certificate.facts.iter().filter(|fact| fact.says.contains("its effect does not fit there"));
        assert_eq!((candidates.count(), certificate.facts.len()), (16, 1 + 16), "{}", shown(&judgement));
        assert!(
            certificate.reason.ends_with("; 4 more of unknown outcome are not shown here"),
            "{}",
            certificate.reason
        );
    }
}
