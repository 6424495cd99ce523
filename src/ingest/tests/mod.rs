//! Whole readings of good and bad input.

mod bad_input;
mod bounds;
mod etcd;
mod exports;
mod formats;
mod places;

use super::*;
use std::path::PathBuf;

/// Records place, kind and a mark of each record.
#[derive(Default)]
struct Notes(Vec<(u32, u64, String)>);

impl Batch for Notes {
    fn record(&mut self, line: u32, offset: u64, record: Record<'_>) -> Result<(), Refused> {
        let text = match record {
            Record::Audit(event) if &*event.verb == "refuse" => {
                return Err(Refused { expected: "another verb".into(), found: "refuse".into() });
            }
            Record::Audit(event) => format!("audit {} {}", &*event.audit_id, version(&event.response_object)),
            Record::Capture(line) => format!("capture {} {}", &*line.kind, version(&line.body)),
            Record::Watch(event) => format!("watch {} {}", &*event.kind, &*event.object.metadata.resource_version),
            Record::List(body) => {
                format!("list {} {}", &*body.metadata.resource_version, body.items.map_or(0, |items| items.len()))
            }
            Record::Etcd(response) => format!("etcd {}", response.header.revision),
            Record::Call(line) => match *line {
                call::Line::Event(event) => {
                    format!("call {} {:?} {}", event.process.as_deref().unwrap_or_default(), event.kind, event.function)
                }
                other => format!("{other:?}"),
            },
            Record::EtcdOperation(operation) => {
                format!("{} {} {}", &*operation.request.kind, operation.call, operation.answer.revision)
            }
            Record::EtcdWatch(part) => etcd::shown(&part),
            Record::EtcdTraffic(traffic) => format!("{traffic:?}"),
            Record::EtcdLog(part) => format!("{part:?}"),
            Record::EtcdStore(part) => format!("{part:?}"),
        };
        self.0.push((line, offset, text.trim_end().to_owned()));
        Ok(())
    }
}

fn version(body: &body::AnyBody<'_>) -> String {
    body.object().map(|body| body.metadata.resource_version.to_string()).unwrap_or_default()
}

/// A small block size, so that every test crosses block boundaries.
fn small() -> ReadOptions {
    ReadOptions { threads: 1, block_bytes: 64, max_line_bytes: 4096, ..ReadOptions::default() }
}

/// Position and text of each record, and the reading.
fn read_all(files: &[InputFile], options: &ReadOptions) -> (Vec<(Position, String)>, Reading) {
    let mut records = Vec::new();
    let reading = read(
        files,
        options,
        &(),
        |_, _| Notes::default(),
        |file, first, notes| {
            for (line, offset, text) in notes.0 {
                records.push((Position { file, line: first + line, offset }, text));
            }
        },
    );
    (records, reading)
}

fn input(bytes: impl AsRef<[u8]>) -> InputFile {
    InputFile::in_memory(FileId(0), "input", bytes.as_ref())
}

/// Reads one input with several block sizes, which must yield the same, and returns records, summary and problems.
fn read_one(bytes: impl AsRef<[u8]>) -> (Vec<String>, FileSummary, Vec<(u32, String)>) {
    read_input(&input(bytes))
}

fn read_input(file: &InputFile) -> (Vec<String>, FileSummary, Vec<(u32, String)>) {
    let mut first = None;
    for block_bytes in [1, 64, 1 << 20] {
        let options = ReadOptions { block_bytes, ..small() };
        let (records, reading) = read_all(std::slice::from_ref(file), &options);
        let problems: Vec<_> =
            reading.problems.iter().map(|p| (p.line, format!("{} / {}", p.expected, p.found))).collect();
        for problem in &reading.problems {
            assert!(problem.found.chars().count() <= 120, "{problem:?}");
            assert!(problem.found.chars().all(|c| !c.is_control()), "{problem:?}");
        }
        let summary = reading.files.into_iter().next().unwrap();
        let result = (records, format!("{summary:?}"), problems.clone());
        let first = first.get_or_insert_with(|| (result.clone(), summary.clone()));
        assert_eq!(first.0, result, "blocks of {block_bytes}");
    }
    let ((records, _, problems), summary) = first.unwrap();
    (records.into_iter().map(|(_, text)| text).collect(), summary, problems)
}

/// An audit event on a line of its own.
fn event(id: &str) -> String {
    format!(
        r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"{id}","stage":"ResponseComplete","requestReceivedTimestamp":"2026-11-20T20:26:58.666053Z","stageTimestamp":"2026-11-20T20:26:58.666053Z"}}"#
    ) + "\n"
}

/// An audit event whose answer is the given body.
fn answer(id: &str, body: &str) -> String {
    event(id).replace("}\n", &format!(",\"responseObject\":{body}}}\n"))
}

fn watch(version: u32) -> String {
    format!(r#"{{"type":"ADDED","object":{{"kind":"Pod","metadata":{{"resourceVersion":"{version}"}}}}}}"#) + "\n"
}

/// A folder for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("retrograde-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> InputFile {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        InputFile { shown: name.to_owned(), path, ..InputFile::default() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
