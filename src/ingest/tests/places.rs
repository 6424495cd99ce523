//! Positions, order, threads, and rereading.

use super::*;

#[test]
fn any_number_of_threads_gives_the_same_records_in_the_same_order() {
    let mut files = Vec::new();
    for n in 0..120u32 {
        let text: String = match n % 4 {
            0 => (0..n * 5).map(|id| event(&format!("{n}-{id}"))).collect(),
            1 => (0..n).map(watch).collect::<String>().replace("{\"kind", "{\n  \"kind"),
            2 => format!("{}broken\n{}{{\n", watch(n), watch(n + 1)),
            _ => String::new(),
        };
        files.push(InputFile::in_memory(FileId(n), &format!("file {n}"), text.into_bytes()));
    }
    let one = read_all(&files, &small());
    assert!(one.0.len() > 10_000);
    assert!(one.0.windows(2).all(|pair| pair[0].0 < pair[1].0));
    for (threads, block_bytes) in [(2, 64), (4, 1000), (3, 1 << 20)] {
        let other = read_all(&files, &ReadOptions { threads, block_bytes, ..small() });
        assert_eq!(one.0, other.0);
        assert_eq!(one.1.problems, other.1.problems);
        assert_eq!(format!("{:?}", one.1.files), format!("{:?}", other.1.files));
    }
}

#[test]
fn a_record_can_be_read_again_at_its_position() {
    let lines = format!("\u{feff}{}\n  {}\0\0{}", event("a").trim_end(), event("b"), event("c"));
    let documents = format!("{}{}", watch(1), watch(2)).replace("{\"kind", "{\n  \"kind");
    let folder = Folder::new("again");
    let files = [
        input(&lines),
        folder.file("lines", &lines),
        folder.file("documents", &documents),
        #[cfg(feature = "compress")]
        folder.file("lines.gz", formats::gzip(&lines)),
        #[cfg(feature = "compress")]
        folder.file("documents.gz", formats::gzip(&documents)),
    ];
    for file in &files {
        let (records, _) = read_all(std::slice::from_ref(file), &small());
        let mut positions: Vec<Position> = records.iter().map(|(position, _)| *position).collect();
        positions.reverse();
        positions.push(positions[0]);
        positions.push(Position { offset: 1 << 40, ..positions[0] });
        positions.push(Position { offset: positions[0].offset + 1, ..positions[0] });
        let texts = reread(file, &positions);
        for (n, (_, mark)) in records.iter().rev().enumerate() {
            let text = texts[n].as_deref().unwrap();
            assert_eq!(read_one(text).0, std::slice::from_ref(mark), "{}", file.shown);
        }
        assert_eq!(texts[records.len()], texts[0]);
        assert_eq!(texts[records.len() + 1..], [None, None], "{}", file.shown);
    }
    let gone = InputFile { path: folder.0.join("gone"), ..InputFile::default() };
    assert_eq!(reread(&gone, &[Position::default()]), [None]);
}

#[test]
fn lines_and_offsets_count_from_the_decompressed_start() {
    let text = format!("\u{feff}{}\r\n{}", event("a"), event("b"));
    let (records, _) = read_all(&[input(&text)], &small());
    let second = text.rfind("{\"kind").unwrap() as u64;
    assert_eq!(records[0].0, Position { file: FileId(0), line: 1, offset: 3 });
    assert_eq!(records[1].0, Position { file: FileId(0), line: 3, offset: second });
}

#[test]
fn a_refused_record_is_a_problem_of_its_line() {
    let text = event("a") + &event("b").replace("\"stage\"", "\"verb\":\"refuse\",\"stage\"") + &event("c");
    let (records, summary, problems) = read_one(text);
    assert_eq!((records.len(), summary.records, summary.problems), (2, 2, 1));
    assert_eq!(problems, [(2, "another verb / refuse".to_owned())]);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_to_its_end() {
    let folder = Folder::new("pipe");
    let path = folder.0.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let writer = {
        let path = path.clone();
        std::thread::spawn(move || {
            use std::io::Write;
            let mut pipe = std::fs::File::create(path).unwrap();
            for n in 0..50 {
                let text = event(&n.to_string());
                let (head, tail) = text.split_at(n);
                pipe.write_all(head.as_bytes()).unwrap();
                std::thread::yield_now();
                pipe.write_all(tail.as_bytes()).unwrap();
            }
        })
    };
    let files = inputs(&[path], &[], &[]).unwrap();
    let (records, reading) = read_all(&files, &small());
    writer.join().unwrap();
    assert_eq!((records.len(), reading.problems.len()), (50, 0));
    assert_eq!(reread(&files[0], &[records[0].0]), [None]);
}

/// Longer than the sample of detection: behind it, memory is read in place.
#[test]
fn what_is_in_memory_is_read_like_the_file_that_has_the_same_bytes() {
    let many = |from: u32| (from..from + 400).map(|id| event(&id.to_string())).collect::<String>();
    let long = answer("long", &format!(r#"{{"kind":"Pod","metadata":{{"name":"{}"}}}}"#, "x".repeat(9_000)));
    let odd = format!("  {}\r\n\n{long}{}not JSON\n", event("spaces").trim_end(), watch(7));
    let mut bytes = format!("\u{feff}{}{odd}{}", many(0), many(400)).into_bytes();
    bytes.extend_from_slice(b"{\"auditID\":\"\xff\"}\n");
    bytes.extend_from_slice(&[0; 200_000]);
    bytes.extend_from_slice(many(800).as_bytes());
    let last = event("last");
    let ends: [&[u8]; 4] = [b"", &[0; 9], b"{\"kind\":\"Event\",", last.trim_end().as_bytes()];
    let folder = Folder::new("memory");
    for (n, end) in ends.into_iter().enumerate() {
        for begin in [vec![], vec![0; 100_000]] {
            let bytes = [&begin, &bytes[..], end].concat();
            let file = folder.file(&format!("{n}-{}", begin.len()), &bytes);
            let memory = InputFile { shown: file.shown.clone(), ..input(&bytes) };
            for (threads, block_bytes) in [(1, 1), (1, 1_000), (2, 70_000), (1, 1 << 20)] {
                let options = ReadOptions { threads, block_bytes, ..small() };
                let [file, memory] = [&file, &memory].map(|input| read_all(std::slice::from_ref(input), &options));
                assert!(file.0.len() > 1_000);
                assert_eq!(file.0, memory.0, "{n}, blocks of {block_bytes}");
                assert_eq!(file.1.problems, memory.1.problems, "{n}, blocks of {block_bytes}");
                assert_eq!(format!("{:?}", file.1.files), format!("{:?}", memory.1.files));
            }
        }
    }
}
