//! No secret leaves: every command reads folders with secret strings, and no output may contain one.
//!
//! Names of objects, namespaces, users and clients are not secret, nor are values in recognised operation logs.
//! Everything else is: bodies, annotations, headers, messages, token ids, values of etcd, lines that cannot be read.
#![cfg(feature = "cli")]

mod folders;
mod hostile;
mod member;

use crate::support::folder::Folder;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

/// The secret text.
pub const SECRET: &str = "Hunter2secret";

/// The secret as a number.
pub const NUMBER: &str = "7333774259";

/// A label of Secrets. Selectors are compared with labels, so a container has them. No report does.
pub const LABEL: &str = "Hunter3label";

/// A text plain, in base64 at each of its three alignments, and in hexadecimal.
fn forms(secret: &str) -> Vec<String> {
    use base64::Engine as _;
    let mut forms = vec![secret.to_owned()];
    for before in 0..3usize {
        let text = [&vec![0; before], secret.as_bytes()].concat();
        let code = base64::engine::general_purpose::STANDARD_NO_PAD.encode(&text);
        // The characters at the ends depend on neighbouring bytes.
        let (begin, end) = ((before * 8).div_ceil(6), text.len() * 8 / 6);
        forms.push(code[begin..end].to_owned());
    }
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    forms.extend([hex.to_ascii_uppercase(), hex]);
    forms
}

fn assert_clean(bytes: &[u8], secrets: &[&str], of: &str) {
    for form in secrets.iter().flat_map(|secret| forms(secret)) {
        let found = bytes.windows(form.len()).position(|window| window == form.as_bytes());
        if let Some(at) = found {
            let (begin, end) = (at.saturating_sub(300), (at + 100).min(bytes.len()));
            panic!("{of} has {form}: {}", String::from_utf8_lossy(&bytes[begin..end]));
        }
    }
}

/// The decompressed chunks of a container.
fn unpacked(container: &[u8]) -> Vec<u8> {
    let (mut all, mut rest) = (Vec::new(), &container[16..]);
    while rest.len() >= 20 {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()) as usize;
        let (bytes, next) = rest[20..].split_at(word(12));
        match rest[2] {
            0 => all.extend_from_slice(bytes),
            _ => assert!(zstd::Decoder::new(bytes).unwrap().read_to_end(&mut all).unwrap() > 0),
        }
        rest = next;
    }
    assert!(rest.is_empty() && all.len() > 100);
    all
}

const REPORTS: [&str; 8] = ["human", "json", "html", "markdown", "junit", "sarif", "dot", "perfetto"];

/// Runs every command on a folder and searches all output for secrets. Returns the page.
fn run_all(evidence: &str, name: &str) -> String {
    let to = Folder::new();
    let reports = |prefix: &str| REPORTS.map(|kind| format!("{kind}={}", to.text(&format!("{prefix}.{kind}"))));
    let check = |path: &str, prefix: &str| {
        let mut arguments = vec!["check".to_owned(), path.to_owned(), "--verbose".into(), "--proofs".into()];
        arguments.extend(reports(prefix).into_iter().flat_map(|report| ["--report".to_owned(), report]));
        arguments
    };
    let (json, packed) = (to.text("direct.json"), to.text("packed.rgh"));
    let typed = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let commands = [
        check(evidence, "direct"),
        [check(evidence, "cached"), typed(&["--cache"])].concat(),
        [check(evidence, "again"), typed(&["--cache"])].concat(),
        typed(&["show", evidence, "--verbose"]),
        typed(&["show", evidence, "--verbose", "--key", "s"]),
        typed(&["show", evidence, "--verbose", "--key", "k"]),
        typed(&["show", evidence, "--verbose", "--around", "105"]),
        typed(&["show", evidence, "--verbose", "--around", "2"]),
        typed(&["explain", evidence, "--verbose", "--client", "e"]),
        typed(&["verify", &json, evidence]),
        typed(&["pack", evidence, "-o", &packed]),
    ];
    let run = |arguments: &[String]| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_retrograde"));
        command.args(arguments).env("RETROGRADE_CACHE_DIR", to.path("cache")).output().unwrap()
    };
    let look = |arguments: &[String]| {
        let output = run(arguments);
        for (stream, bytes) in [("out", &output.stdout), ("error", &output.stderr)] {
            assert_clean(bytes, &[SECRET, NUMBER, LABEL], &format!("{name}: {arguments:?}, standard {stream}"));
        }
    };
    commands.iter().for_each(|arguments| look(arguments));
    // Evidence in place of a report.
    for entry in fs::read_dir(evidence).into_iter().flatten().flatten() {
        let path = entry.path().display().to_string();
        look(&typed(&["verify", &path, evidence]));
        look(&typed(&["check", evidence, "--quiet", "--baseline", &path]));
    }
    if Path::new(&packed).exists() {
        look(&check(&packed, "packed"));
        look(&typed(&["show", &packed, "--verbose"]));
    }
    for folder in [to.root().to_owned(), to.path("cache")] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_file()) {
            let bytes = fs::read(entry.path()).unwrap();
            let of = format!("{name}: {}", entry.path().display());
            match entry.path().extension().is_some_and(|extension| extension == "rgh") {
                true => assert_clean(&unpacked(&bytes), &[SECRET, NUMBER], &of),
                false => assert_clean(&bytes, &[SECRET, NUMBER, LABEL], &of),
            }
        }
    }
    for kind in REPORTS {
        assert!(fs::metadata(to.text(&format!("direct.{kind}"))).is_ok_and(|data| data.len() > 0), "{name}: {kind}");
    }
    fs::read_to_string(to.text("direct.html")).unwrap()
}

#[test]
fn no_command_writes_what_is_secret_in_any_folder() {
    let folders = folders::all();
    assert!(folders.len() >= 15);
    let failed: Vec<&str> = std::thread::scope(|scope| {
        let shares = folders.chunks(folders.len().div_ceil(2));
        let threads: Vec<_> = shares
            .map(|share| scope.spawn(|| share.iter().filter(|folder| fails(folder)).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).map(|folder| folder.name).collect()
    });
    assert!(failed.is_empty(), "{failed:?}");
}

/// Whether a secret leaves a folder, or a required text is not shown. Standard error has the reason.
fn fails(folder: &folders::Laden) -> bool {
    std::panic::catch_unwind(|| {
        let evidence = Folder::new();
        let mut laden = false;
        for (name, bytes) in &folder.files {
            let path = evidence.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
            let has = |form: &String| bytes.windows(form.len()).any(|window| window == form.as_bytes());
            laden |= name.ends_with(".gz") || forms(SECRET).iter().any(has);
        }
        assert!(laden, "{} has nothing secret", folder.name);
        let page = run_all(&evidence.root().display().to_string(), folder.name);
        for shown in &folder.shown {
            assert!(page.contains(shown), "{}: the page lacks {shown}", folder.name);
        }
    })
    .is_err()
}

#[test]
fn the_forms_of_a_text_are_found_where_it_stands() {
    use base64::Engine as _;
    for before in ["", "a", "ab", "abc"] {
        let code = base64::engine::general_purpose::STANDARD.encode(format!("{before}{SECRET} and more"));
        assert!(forms(SECRET).iter().any(|form| code.contains(form)), "{before}");
    }
}
