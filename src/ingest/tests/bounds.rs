//! Bounds on memory and time, whatever the files hold.

use super::*;
use crate::ingest::limits::{FREE_INFLATION, KEPT_PROBLEMS, LONGEST_ADDRESS, LONGEST_NAME};
use std::fs;
use std::io::Write;

/// One file of a tar archive.
fn member(name: &str, kind: u8, link: &str, content: &[u8]) -> Vec<u8> {
    let mut block = [0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[157..157 + link.len()].copy_from_slice(link.as_bytes());
    block[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
    block[156] = kind;
    block[257..263].copy_from_slice(b"ustar\0");
    block[148..156].fill(b' ');
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut bytes = [&block[..], content].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// Adds up the bytes read from disk.
#[derive(Default)]
struct Stored(std::sync::atomic::AtomicU64);

impl Progress for Stored {
    fn bytes(&self, n: u64) {
        self.0.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Records, reading and bytes read from disk for these paths.
fn read_paths(paths: &[PathBuf]) -> (usize, Reading, u64) {
    let (mut records, stored) = (0, Stored::default());
    let files = inputs(paths, &[], &[]).unwrap();
    let reading =
        read(&files, &small(), &stored, |_, _| Notes::default(), |_, _, notes: Notes| records += notes.0.len());
    (records, reading, stored.0.into_inner())
}

fn problems(reading: &Reading) -> Vec<String> {
    reading.problems.iter().map(|p| format!("{} / {}", p.expected, p.found)).collect()
}

#[test]
fn hard_links_and_many_small_files_of_an_archive_are_read_in_one_pass() {
    let folder = Folder::new("one-pass");
    let event = watch(1);
    let mut archive = member("first", b'0', "", event.as_bytes());
    for n in 0..500 {
        archive.extend(member(&format!("link-{n}"), b'1', "first", b""));
        archive.extend(member(&format!("file-{n}"), b'0', "", event.as_bytes()));
    }
    // Incompressible content behind all members.
    let noise: Vec<u8> = (0..200_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    archive.extend(member("noise", b'0', "", &noise));
    let packed = [
        ("plain.tar", archive.clone()),
        #[cfg(feature = "compress")]
        ("a.tar.gz", formats::gzip(&archive)),
        #[cfg(feature = "compress")]
        ("a.tar.zst", zstd::encode_all(&archive[..], 1).unwrap()),
    ];
    for (name, bytes) in packed {
        let path = folder.file(name, "").path;
        fs::write(&path, &bytes).unwrap();
        let (records, reading, stored) = read_paths(std::slice::from_ref(&path));
        assert_eq!((records, reading.problems.len()), (501, 0), "{name}: {:?}", problems(&reading));
        assert!(stored <= bytes.len() as u64, "{name}: {stored} of {} bytes", bytes.len());
        let ignored: Vec<&str> = reading.files.iter().filter_map(|file| file.ignored.as_deref()).collect();
        assert_eq!(ignored, ["binary data", "500 hard links to files that are read"], "{name}");
        let files = inputs(&[path], &[], &[]).unwrap();
        let mut opener = Opener::default();
        let again = files.iter().filter(|file| file.member.as_ref().is_some_and(|member| member.name != "noise"));
        let again: Vec<String> =
            again.filter_map(|file| reread_by(&mut opener, file, &[Position::default()]).pop()?).collect();
        assert_eq!(again, vec![event.trim_end(); 501], "{name}");
    }
}

#[cfg(feature = "compress")]
#[test]
fn a_small_file_that_comes_to_very_much_is_told() {
    // A line of 2 GiB in 64 KB of zstd.
    struct Zeros(u64);
    impl std::io::Read for Zeros {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let n = self.0.min(buffer.len() as u64) as usize;
            buffer[..n].fill(b'x');
            self.0 -= n as u64;
            Ok(n)
        }
    }
    let most = FREE_INFLATION;
    let packed = |length: u64| {
        let mut packed = zstd::Encoder::new(Vec::new(), 1).unwrap();
        packed.write_all(event("a").as_bytes()).unwrap();
        std::io::copy(&mut Zeros(length), &mut packed).unwrap();
        packed.finish().unwrap()
    };
    let bomb = packed(most);
    assert!(bomb.len() < 100_000, "{}", bomb.len());
    let options = ReadOptions { block_bytes: 1 << 20, ..small() };
    let (records, reading) = read_all(&[input(&bomb)], &options);
    let expected = "at most 256.0 MiB or 200 times the stored size after decompression / more after 256.0 MiB";
    assert_eq!(records.len(), 1);
    assert!(problems(&reading).iter().any(|problem| problem == expected), "{:?}", problems(&reading));
    assert!(reading.files[0].bytes <= most);
    // Nested compression counts twice.
    let twice = zstd::encode_all(&member("a.zst", b'0', "", &packed(most - 1_000))[..], 1).unwrap();
    let folder = Folder::new("inflation");
    let path = folder.file("twice.tar.zst", "").path;
    fs::write(&path, twice).unwrap();
    let (records, reading, _) = read_paths(&[path]);
    assert_eq!(records, 1);
    assert!(problems(&reading).iter().any(|problem| problem.contains("/ more after")), "{:?}", problems(&reading));
}

#[cfg(feature = "compress")]
#[test]
fn a_frame_that_asks_for_more_memory_than_any_program_writes_is_refused() {
    // A window of 2 GiB: its exponent is in the upper five bits of the byte behind the flags.
    let mut frame = zstd::encode_all(event("a").as_bytes(), 1).unwrap();
    let single_segment = frame[4] & 0x20 != 0;
    frame[4] &= !0xe0;
    frame.splice(5..6, [(31 - 10) << 3]);
    let (records, summary, problems) = read_one(frame);
    assert_eq!((records.len(), summary.format, problems.len()), (0, None, 1), "{single_segment} {problems:?}");
    assert!(problems[0].1.contains("memory") || problems[0].1.contains("Unsupported"), "{problems:?}");
}

#[test]
fn a_name_longer_than_the_limit_is_a_problem_of_its_line_wherever_it_stands() {
    let name = |length: usize| "n".repeat(length);
    let audit = |field: &str| event("b").replace("}\n", &format!(",{field}}}\n"));
    type Line<'l> = &'l dyn Fn(&str) -> String;
    let limited: [(Line<'_>, usize); 12] = [
        (&|n| audit(&format!(r#""user":{{"username":"{n}"}}"#)), LONGEST_NAME),
        (&|n| audit(&format!(r#""userAgent":"{n}""#)), LONGEST_NAME),
        (&|n| event(n), LONGEST_NAME),
        (&|n| audit(&format!(r#""objectRef":{{"resource":"pods","namespace":"{n}"}}"#)), LONGEST_NAME),
        (
            &|n| audit(&format!(r#""requestURI":"/api/v1/pods?labelSelector={n}""#)),
            LONGEST_ADDRESS - "/api/v1/pods?labelSelector=".len(),
        ),
        (&|n| answer("b", &format!(r#"{{"kind":"Pod","metadata":{{"name":"{n}"}}}}"#)), LONGEST_NAME),
        (&|n| answer("b", &format!(r#"{{"kind":"PodList","items":[{{"metadata":{{"uid":"{n}"}}}}]}}"#)), LONGEST_NAME),
        (&|n| watch(1).replace("\"Pod\"", &format!("\"{n}\"")), LONGEST_NAME),
        (&|n| format!(r#"{{"process":"{n}","type":"ok","op":"read","value":1}}"#), LONGEST_NAME),
        (&|n| format!(r#"{{"process":1,"type":"ok","op":"read","key":["{n}"],"value":1}}"#), LONGEST_NAME - 2),
        (&|n| format!("{{:process 1, :type :ok, :f :{n}, :value 1}}"), LONGEST_NAME),
        (&|n| format!("INFO  jepsen.util - 1\t:ok\t:{n}\t1"), LONGEST_NAME),
    ];
    for (at, (line, longest)) in limited.into_iter().enumerate() {
        let options = ReadOptions { max_line_bytes: 1 << 20, ..small() };
        let read = |length: usize| {
            read_all(&[input(format!("{}\n{}\n", line("x").trim_end(), line(&name(length)).trim_end()))], &options)
        };
        let (records, reading) = read(longest);
        assert_eq!((records.len(), reading.problems.len()), (2, 0), "{at}: {:?}", problems(&reading));
        let (records, reading) = read(longest + 1);
        assert_eq!((records.len(), reading.files[0].problems), (1, 1), "{at}: {:?}", problems(&reading));
        assert!(
            problems(&reading)[0].contains("at most") && problems(&reading)[0].len() < 200,
            "{at}: {:?}",
            problems(&reading)
        );
        assert_eq!(reading.problems[0].line, 2, "{at}");
    }
}

#[test]
fn a_message_of_a_server_may_be_longer_than_a_name() {
    let status = format!(r#"{{"kind":"Status","message":"{}"}}"#, "m".repeat(100_000));
    let options = ReadOptions { max_line_bytes: 1 << 20, ..small() };
    let (records, reading) = read_all(&[input(answer("a", &status))], &options);
    assert_eq!((records.len(), reading.problems.len()), (1, 0), "{:?}", problems(&reading));
}

#[test]
fn of_many_damaged_files_the_first_problem_of_each_is_kept_and_all_are_counted() {
    let broken = event("a") + &"{broken\n".repeat(20);
    let files: Vec<InputFile> = (0..600).map(|n| InputFile::in_memory(FileId(n), "input", broken.as_bytes())).collect();
    let (_, reading) = read_all(&files, &small());
    assert_eq!(reading.problems.len(), KEPT_PROBLEMS + 100);
    assert!(reading.files.iter().all(|file| file.problems == 20));
    assert!((0..600).all(|n| reading.problems.iter().any(|problem| problem.file == Some(FileId(n)))));
}

#[test]
fn nesting_of_any_depth_is_a_problem_of_its_line() {
    let deep = |open: &str, close: &str| open.repeat(1 << 20) + &close.repeat(1 << 20);
    let options = ReadOptions { max_line_bytes: 16 << 20, block_bytes: 1 << 20, ..small() };
    for text in [
        event("b").replace("}\n", &format!(",\"userAgent\":{}}}\n", deep("[", "]"))),
        answer("b", &format!(r#"{{"metadata":{{"labels":{}}}}}"#, deep("{\"a\":", "}"))),
        watch(1).replace("\"Pod\"", &deep("[", "]")),
        deep("{\"a\":", "}") + "\n",
        "[".repeat(1 << 20) + "\n",
    ] {
        let (records, reading) = read_all(&[input(event("a") + &text + &event("c"))], &options);
        assert!((2..=3).contains(&records.len()), "{}: {:?}", &text[..50], problems(&reading));
    }
    let operation = |value: &str| format!("{{:process 1, :type :ok, :f :read, :value {value}}}\n");
    let text = operation("1") + &operation(&deep("[", "]")) + &operation(&deep("(", ")"));
    let (records, reading) = read_all(&[input(text)], &options);
    assert_eq!((records.len(), reading.problems.len()), (3, 0), "{:?}", problems(&reading));
}

#[test]
fn of_a_file_that_grows_while_it_is_read_counts_what_was_there_when_it_was_opened() {
    let folder = Folder::new("grows");
    let file = folder.file("a.log", event("a").repeat(100));
    struct Writes(PathBuf);
    impl Progress for Writes {
        fn bytes(&self, _: u64) {
            let mut file = fs::File::options().append(true).open(&self.0).unwrap();
            file.write_all(event("b").repeat(3).as_bytes()).unwrap();
        }
    }
    let mut records = 0;
    let files = [file];
    let writes = Writes(files[0].path.clone());
    let reading =
        read(&files, &small(), &writes, |_, _| Notes::default(), |_, _, notes: Notes| records += notes.0.len());
    assert_eq!((records, reading.problems.len()), (100, 0), "{:?}", problems(&reading));
    assert!(reading.files[0].has_grown);
    let (records, reading) = read_all(&files, &small());
    assert!(records.len() > 100 && !reading.files[0].has_grown);
}

#[cfg(unix)]
#[test]
fn a_walk_waits_for_no_pipe_and_reads_no_device_and_ends_where_directories_are_too_deep() {
    let folder = Folder::new("special");
    folder.file("a.log", event("a"));
    let (pipe, socket) = (folder.0.join("pipe"), folder.0.join("socket"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for (name, to) in [("to-pipe", &pipe), ("to-socket", &socket), ("to-zero", &PathBuf::from("/dev/zero"))] {
        std::os::unix::fs::symlink(to, folder.0.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(&folder.0, folder.0.join("to-itself")).unwrap();
    let mut deep = folder.0.clone();
    for _ in 0..limits::DEEPEST_DIRECTORY + 50 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("b.log"), event("b")).unwrap();
    fs::write(folder.0.join("d/c.log"), event("c")).unwrap();
    let (records, reading, _) = read_paths(std::slice::from_ref(&folder.0));
    assert_eq!(records, 2);
    assert_eq!(problems(&reading), ["at most 256 nested directories (name an inner one) / one more"]);
    // Each is counted once, under its first name, whatever links lead there.
    let ignored = reading.files.iter().filter(|file| file.ignored.is_some());
    let names: Vec<&str> = ignored.filter_map(|file| file.path.rsplit('/').next()).collect();
    assert_eq!(names, ["pipe", "socket", "to-zero"]);
}
