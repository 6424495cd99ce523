//! Thousands of damaged inputs: reading must not panic, must account for every line, must keep undamaged
//! lines, and must not depend on the number of threads.
//!
//! The run is deterministic for the same seeds.

use crate::support::draws::seeds;
use fastrand::Rng;
use retrograde::history::{Domains, load_each};
use retrograde::ingest::{
    Batch, FileId, FileSummary, Format, InputFile, Problem, ReadOptions, Reading, Record, Refused, read,
};
use std::collections::HashSet;

/// The samples, and whether they hold one record a line.
const SAMPLES: [(&str, Format, bool, &[u8]); 21] = [
    ("audit.log", Format::Audit, true, include_bytes!("samples/audit.log")),
    ("audit-webhook.ndjson", Format::Audit, false, include_bytes!("samples/audit-webhook.ndjson")),
    ("audit-legacy.log", Format::LegacyAudit, false, include_bytes!("samples/audit-legacy.log")),
    ("capture.jsonl", Format::Capture, true, include_bytes!("samples/capture.jsonl")),
    ("watch.json", Format::Watch, true, include_bytes!("samples/watch.json")),
    ("watch-indented.json", Format::Watch, false, include_bytes!("samples/watch-indented.json")),
    ("list.json", Format::List, false, include_bytes!("samples/list.json")),
    ("list-compact.json", Format::List, true, include_bytes!("samples/list-compact.json")),
    ("objects.json", Format::List, false, include_bytes!("samples/objects.json")),
    ("etcd-watch.json", Format::EtcdWatch, true, include_bytes!("samples/etcd-watch.json")),
    ("history.edn", Format::Edn, false, include_bytes!("samples/history.edn")),
    ("history-lines.edn", Format::Edn, false, include_bytes!("samples/history-lines.edn")),
    ("jepsen.log", Format::JepsenLog, true, include_bytes!("samples/jepsen.log")),
    ("operations.jsonl", Format::Operations, true, include_bytes!("samples/operations.jsonl")),
    ("transactions.txt", Format::Transactions, true, include_bytes!("samples/transactions.txt")),
    ("transactions-lines.txt", Format::Transactions, false, include_bytes!("samples/transactions-lines.txt")),
    ("r/client-1/operations.json", Format::EtcdOperations, true, include_bytes!("samples/etcd-operations.json")),
    ("r/client-2/watch.json", Format::EtcdWatches, false, include_bytes!("samples/etcd-watches.json")),
    ("r/traffic.json", Format::EtcdTraffic, false, include_bytes!("samples/etcd-traffic.json")),
    // Files of a member of etcd 3.4 after puts, deletes and a compaction, without the allocated end of the log.
    ("r/server-a/member/wal/0-0.wal", Format::EtcdLog, false, include_bytes!("samples/member.wal")),
    ("r/server-a/member/snap/db", Format::EtcdStore, false, include_bytes!("samples/member.db")),
];

/// Tokens of JSON, logs and editors, inserted more often than chance would.
const TOKENS: [&[u8]; 36] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b",",
    b":",
    b"\n",
    b"\r\n",
    b"\0\0\0\0",
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\xef\xbb\xbf",
    b" ",
    b"\"kind\":\"Event\",",
    b"\"metadata\":null,",
    b"[[[[[[[[[[[[[[[[",
    b"{\n",
    b"}\n{\"type\":\"ADDED\",\"object\":{}}\n",
    b"(",
    b")",
    b";",
    b"#",
    b"#_",
    b"#{",
    b"^",
    b"\n#x.Y{:process 1, :type :ok, :f :read}",
    b" 99999999999999999999N ",
    b"\t:ok\t:read\t1",
];

fn mutate(bytes: &mut Vec<u8>, random: &mut Rng) {
    let at = random.usize(..bytes.len().max(1));
    match random.usize(..12) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << random.usize(..8),
        1 if !bytes.is_empty() => bytes[at] = random.u8(..),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(..at)),
        4 => drop(bytes.drain(at..(at + random.usize(..200)).min(bytes.len()))),
        5 => {
            let token = TOKENS[random.usize(..TOKENS.len().max(1))];
            bytes.splice(at..at, token.iter().copied());
        }
        6 => {
            let token = TOKENS[random.usize(..TOKENS.len().max(1))];
            let end = (at + token.len()).min(bytes.len());
            bytes.splice(at..end, token.iter().copied());
        }
        7 => {
            let other = SAMPLES[random.usize(..SAMPLES.len().max(1))].3;
            let start = random.usize(..other.len().max(1));
            let end = (start + random.usize(..600)).min(other.len());
            bytes.splice(at..at, other[start..end].iter().copied());
        }
        8 => {
            let (start, end) = line_at(bytes, at);
            let line = bytes[start..end].to_vec();
            let to = line_at(bytes, random.usize(..bytes.len().max(1))).0;
            bytes.splice(to..to, line);
        }
        9 => {
            let (start, end) = line_at(bytes, at);
            drop(bytes.drain(start..end));
        }
        _ => {
            let digits: Vec<usize> = (0..bytes.len()).filter(|n| bytes[*n].is_ascii_digit()).collect();
            if !digits.is_empty() {
                let first = random.usize(..digits.len().max(1));
                for n in &digits[first..(first + 1 + random.usize(..4)).min(digits.len())] {
                    bytes[*n] = b'0' + random.usize(..10) as u8;
                }
            }
        }
    }
}

/// The line around a byte, with its line end.
fn line_at(bytes: &[u8], at: usize) -> (usize, usize) {
    let start = bytes[..at].iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
    let end = bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n + 1);
    (start, end)
}

/// Counts the records, and keeps a mark of each to compare threads.
struct Marks {
    keep: bool,
    marks: Vec<(u32, u64, String)>,
}

impl Batch for Marks {
    fn record(&mut self, line: u32, offset: u64, record: Record<'_>) -> Result<(), Refused> {
        if self.keep {
            self.marks.push((line, offset, format!("{record:?}")));
        }
        Ok(())
    }
}

fn read_all(inputs: &[InputFile], threads: usize, keep: bool) -> (Vec<(FileId, u32, String)>, Reading) {
    let options = ReadOptions { threads, block_bytes: 2048, max_line_bytes: 16 * 1024, ..retrograde::read_options() };
    let mut all = Vec::new();
    let start = |_: &InputFile, _| Marks { keep, marks: Vec::new() };
    let reading = read(inputs, &options, &(), start, |file, first, batch: Marks| {
        all.extend(
            batch.marks.into_iter().map(|(line, offset, mark)| (file, first + line, format!("{offset} {mark}"))),
        );
    });
    (all, reading)
}

struct Case {
    sample: usize,
    bytes: Vec<u8>,
    compressed: bool,
    forced: bool,
}

impl Case {
    fn new(random: &mut Rng) -> Case {
        let sample = random.usize(..SAMPLES.len().max(1));
        let mut bytes = SAMPLES[sample].3.to_vec();
        let compressed = cfg!(feature = "compress") && random.usize(..16) == 0;
        if compressed {
            bytes = compress(&bytes, random);
        }
        for _ in 0..1 + random.usize(..4) {
            mutate(&mut bytes, random);
        }
        Case { sample, bytes, compressed, forced: random.usize(..2) == 0 }
    }

    fn input(&self, id: usize) -> InputFile {
        let (name, format, ..) = SAMPLES[self.sample];
        let format = self.forced.then_some(format);
        InputFile { format, ..InputFile::in_memory(FileId(id as u32), name, self.bytes.as_slice()) }
    }

    /// Lines without damage, each of which must be a record.
    fn intact(&self, originals: &[HashSet<&[u8]>]) -> usize {
        let (_, _, by_line, _) = SAMPLES[self.sample];
        let odd_start = matches!(self.bytes.first(), Some(0x1f | 0x28 | 0xfe | 0xff));
        let indented = self.bytes.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
        if !by_line || !self.forced || self.compressed || odd_start || indented.is_none_or(|line| line.ends_with(b"{"))
        {
            return 0;
        }
        self.bytes.split(|b| *b == b'\n').filter(|line| originals[self.sample].contains(line)).count()
    }

    fn check(&self, summary: &FileSummary, problems: &[&Problem], intact: usize) {
        let text = String::from_utf8_lossy(&self.bytes);
        let of_the_file = problems.iter().filter(|problem| problem.line == 0).count() as u64;
        let legacy = summary.format == Some("audit-legacy");
        let accounted = summary.records + summary.problems + summary.unknown;
        if legacy {
            assert!(accounted >= summary.lines, "{summary:?}\n{text}");
        } else {
            assert_eq!(accounted, summary.lines + of_the_file, "{summary:?}\n{problems:?}\n{text}");
        }
        assert!(summary.records >= intact as u64, "{intact} lines are intact: {summary:?}\n{problems:?}\n{text}");
        assert!(
            !self.forced || self.compressed || summary.format.is_some() || accounted > 0 || summary.ignored.is_some()
        );
        assert_eq!(summary.problems == 0, problems.is_empty(), "{summary:?}\n{text}");
        for problem in problems {
            assert!(problem.found.chars().count() <= 120, "{problem:?}");
            assert!(!problem.found.chars().any(char::is_control), "{problem:?}");
            assert!(!problem.expected.is_empty(), "{problem:?}");
        }
    }
}

#[cfg(feature = "compress")]
fn compress(bytes: &[u8], random: &mut Rng) -> Vec<u8> {
    use std::io::Write;
    if random.usize(..2) == 0 {
        return zstd::encode_all(bytes, 1).unwrap();
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[cfg(not(feature = "compress"))]
fn compress(bytes: &[u8], _: &mut Rng) -> Vec<u8> {
    bytes.to_vec()
}

#[test]
fn samples_are_read_without_a_problem() {
    for (name, format, by_line, bytes) in SAMPLES {
        let (_, reading) = read_all(&[InputFile::in_memory(FileId(0), name, bytes)], 1, false);
        let summary = &reading.files[0];
        assert_eq!(summary.format, Some(format.name()), "{name}");
        if format != Format::LegacyAudit {
            assert!(reading.problems.is_empty(), "{name}: {:?}", reading.problems);
        }
        if by_line {
            assert_eq!(summary.records + summary.unknown, bytes.split(|b| *b == b'\n').count() as u64 - 1, "{name}");
        }
    }
}

#[test]
fn every_format_is_damaged_here_and_is_a_target_of_fuzzing() {
    for format in Format::ALL {
        assert!(SAMPLES.iter().any(|sample| sample.1 == format), "no sample of {}", format.name());
        // The legacy text is not parsed; every target reaches its detection.
        let target = format!("tests/fuzz/fuzz_targets/{}.rs", format.name().replace('-', "_"));
        let there = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(&target).exists();
        assert!(there || format == Format::LegacyAudit, "there is no {target}");
    }
}

#[test]
fn damaged_input_is_accounted_for_line_by_line() {
    let drawn = seeds(20_000);
    let mut random = Rng::with_seed(0x9e37_79b9_7f4a_7c15 ^ drawn.start);
    let originals: Vec<HashSet<&[u8]>> = SAMPLES
        .iter()
        .map(|(.., bytes)| {
            let other = |line: &[u8], word: &str| line.windows(word.len()).any(|part| part == word.as_bytes());
            let records = |line: &&[u8]| {
                let noise = ["jepsen.core", ":nemesis"].into_iter().any(|word| other(line, word));
                !line.is_empty() && !line.starts_with(b"{\"kind\":\"heartbeat\"") && !noise
            };
            bytes.split(|b| *b == b'\n').filter(records).collect()
        })
        .collect();
    let most = (drawn.end - drawn.start) as usize;
    let (mut done, mut intact_lines, mut all_problems) = (0, 0, 0);
    while done < most {
        let cases: Vec<Case> = (0..400).map(|_| Case::new(&mut random)).collect();
        let inputs: Vec<InputFile> = cases.iter().enumerate().map(|(id, case)| case.input(id)).collect();
        let compare = done % 4000 == 0;
        let (records, reading) = read_all(&inputs, 1, compare);
        let mut problems: Vec<Vec<&Problem>> = vec![Vec::new(); cases.len()];
        for problem in &reading.problems {
            problems[problem.file.unwrap().0 as usize].push(problem);
        }
        for (n, case) in cases.iter().enumerate() {
            let intact = case.intact(&originals);
            case.check(&reading.files[n], &problems[n], intact);
            intact_lines += intact;
            all_problems += reading.files[n].problems as usize;
        }
        if compare {
            let (other_records, other) = read_all(&inputs, 4, true);
            assert_eq!(records, other_records);
            assert_eq!(reading.problems, other.problems);
            assert_eq!(format!("{:?}", reading.files), format!("{:?}", other.files));
        }
        done += cases.len();
    }
    // The run must have damage, and lines without it.
    assert!(intact_lines > done / 2 && all_problems > done, "{intact_lines} {all_problems} {done}");
}

#[test]
fn damaged_evidence_is_judged_whatever_is_left_of_it() {
    use retrograde::check::{Kind, Verdict};
    let drawn = seeds(200);
    let mut random = Rng::with_seed(0x2545_f491_4f6c_dd1d ^ drawn.start);
    let (mut violated, mut open) = (0, 0);
    for _ in drawn {
        let case = Case::new(&mut random);
        let options = ReadOptions { threads: 1, ..ReadOptions::default() };
        for history in load_each(vec![case.input(0)], &options, &Domains::default(), &()) {
            let judgement = retrograde::judge(&history, &retrograde::Options::default());
            let text = String::from_utf8_lossy(&case.bytes);
            let found = judgement.findings.iter().any(|finding| finding.kind == Kind::Violation);
            assert_eq!(judgement.verdict == Verdict::Violated, found, "{text}");
            if !history.problems.is_empty() && !history.calls().is_empty() {
                assert_ne!(judgement.verdict, Verdict::Holds, "{text}");
            }
            violated += usize::from(found);
            open += usize::from(matches!(judgement.verdict, Verdict::Unknown(_)));
        }
    }
    assert!(violated > 0 && open > 0, "{violated} {open}");
}

#[test]
fn a_table_of_nobody_knows_what_is_no_evidence() {
    let text = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"27"},"rows":[]}"#;
    let input = InputFile::in_memory(FileId(0), "table.json", text.as_bytes());
    let history = load_each(vec![input], &ReadOptions::default(), &Domains::default(), &()).remove(0);
    let judgement = retrograde::judge(&history, &retrograde::Options::default());
    assert_eq!(judgement.verdict.word(), "unknown");
}
