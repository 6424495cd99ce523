//! The house rules that a compiler does not check: `docs/architecture.md`.

use std::fs;
use std::path::{Path, PathBuf};

/// The stages in order: each uses only earlier ones.
const STAGES: [&str; 13] = [
    "container",
    "ingest",
    "history",
    "model",
    "order",
    "search",
    "check",
    "counterfactual",
    "explain",
    "report",
    "assertion",
    "record",
    "cli",
];

/// What the independent verifier may use: the facts and where they stand; and, since an order of calls is right or wrong only
/// by the definition of a data type, that definition.
const VERIFY: [&str; 3] = ["history", "ingest", "model"];

/// What it may use of the search besides: the plain data of what is claimed, and about which calls. Nothing that decides.
const VERIFY_CLAIMS: [&str; 7] = ["Call", "Claim", "Core", "History", "Linearization", "Outcome", "SpecHistory"];

/// What stands at the top of the repository, hidden files aside.
const TOP: [&str; 15] = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "benches",
    "docs",
    "examples",
    "histories",
    "rust-toolchain.toml",
    "src",
    "tests",
];

/// No file is longer.
const LINES: usize = 800;

/// Names that say nothing.
const EMPTY_NAMES: [&str; 5] = ["utils", "util", "helpers", "common", "manager"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<PathBuf> {
    files_below(&["src"])
}

fn files_below(folders: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())).flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The stage that a file belongs to; none for `lib.rs` and `main.rs`.
fn stage(path: &Path) -> Option<String> {
    let inside = path.strip_prefix(root().join("src")).ok()?;
    let first = inside.components().next()?.as_os_str().to_string_lossy().into_owned();
    let name = first.strip_suffix(".rs").unwrap_or(&first).to_owned();
    (!matches!(name.as_str(), "lib" | "main")).then_some(name)
}

/// The stages that code names, with the line of each: `crate::order::...`, `crate::{history, order::Head}`. Comments name what
/// they like.
fn uses(text: &str) -> Vec<(usize, String)> {
    names_behind(text, "crate::")
}

/// The names that follow a path, with the line of each.
fn names_behind(text: &str, path: &str) -> Vec<(usize, String)> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let code = code.join("\n");
    let word = |text: &str| text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>();
    let mut found = Vec::new();
    for (at, _) in code.match_indices(path) {
        let line = code[..at].lines().count().max(1);
        let after = &code[at + path.len()..];
        if !after.starts_with('{') {
            found.push((line, word(after)));
            continue;
        }
        let mut depth = 0;
        for (at, c) in after.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if depth == 1 && matches!(c, '{' | ',') {
                found.push((line, word(after[at + 1..].trim_start())));
            }
        }
    }
    found.retain(|(_, name)| !name.is_empty());
    found
}

#[test]
fn a_stage_uses_only_earlier_stages() {
    let mut wrong = Vec::new();
    for path in sources() {
        let Some(stage) = stage(&path) else { continue };
        let place = STAGES.iter().position(|s| *s == stage);
        assert!(place.is_some() || stage == "verify", "src/{stage} is not in the table of docs/architecture.md");
        let text = fs::read_to_string(&path).unwrap_or_default();
        for (line, used) in uses(&text) {
            let known = STAGES.iter().position(|s| *s == used);
            let allowed = match (place, known) {
                _ if used == stage => true,
                (None, _) if stage == "verify" => used == "search" || VERIFY.contains(&used.as_str()),
                (Some(place), Some(known)) => known < place,
                // `crate::judge` and `crate::Options` are the whole library: for its face and its command line.
                (Some(_), None) => matches!(stage.as_str(), "assertion" | "record" | "cli"),
                (None, _) => false,
            };
            if !allowed {
                wrong.push(format!("{}:{line}: {stage} uses {used}", shown(&path)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_verifier_takes_nothing_from_the_search_but_what_is_claimed() {
    let mut files = 0;
    for path in sources().into_iter().filter(|path| stage(path).as_deref() == Some("verify")) {
        files += 1;
        let text = fs::read_to_string(&path).unwrap_or_default();
        for (line, name) in names_behind(&text, "search::") {
            assert!(VERIFY_CLAIMS.contains(&name.as_str()), "{}:{line}: verify uses search::{name}", shown(&path));
        }
    }
    assert!(files > 0);
}

/// What SECURITY.md promises: evidence can neither reach a network nor start a program. Tests may start one.
#[test]
fn the_program_opens_no_connection_and_starts_no_process() {
    for path in sources().into_iter().filter(|path| !shown(path).contains("/tests/")) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        for forbidden in ["TcpStream", "TcpListener", "UdpSocket", "UnixStream", "process::Command"] {
            assert!(!text.contains(forbidden), "{} uses {forbidden}", shown(&path));
        }
    }
    let locked = fs::read_to_string(root().join("Cargo.lock")).unwrap_or_default();
    assert!(locked.contains("name = \"serde\""), "Cargo.lock is read");
    for client in ["hyper", "reqwest", "ureq", "curl", "socket2", "mio", "tokio"] {
        assert!(!locked.contains(&format!("name = \"{client}\"\n")), "{client} can open connections");
    }
}

/// The scheduled workflow runs what is here: every format that has a parser has a fuzz target.
#[test]
fn every_format_is_fuzzed() {
    let target = |name: &str| root().join(format!("tests/fuzz/fuzz_targets/{}.rs", name.replace('-', "_")));
    let formats = retrograde::ingest::Format::ALL.map(|format| format.name());
    for name in formats.into_iter().chain(["archive", "container", "report", "rules_file"]) {
        // Its text is recognised and not read.
        assert!(name == "audit-legacy" || target(name).is_file(), "{} is missing", target(name).display());
    }
    let workflow = fs::read_to_string(root().join(".github/workflows/fuzz.yml")).unwrap_or_default();
    assert!(workflow.contains("tests/fuzz/fuzz_targets/*.rs") && workflow.contains("schedule:"), "{workflow}");
}

#[test]
fn no_file_is_too_long() {
    for path in files_below(&["src", "tests", "benches"]) {
        let lines = fs::read_to_string(&path).unwrap_or_default().lines().count();
        assert!(lines <= LINES, "{} has {lines} lines, more than {LINES}", shown(&path));
    }
}

#[test]
fn every_module_has_a_name_that_says_something() {
    for path in sources() {
        let name = path.file_stem().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        assert!(!EMPTY_NAMES.contains(&name.as_str()), "{}", shown(&path));
    }
}

#[test]
fn the_top_level_holds_what_it_should() {
    for entry in fs::read_dir(root()).unwrap_or_else(|e| panic!("{e}")).flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let built = name == "target";
        assert!(name.starts_with('.') || built || TOP.contains(&name.as_str()), "{name} is not in the allowed list");
    }
}

#[test]
fn every_stage_is_in_the_table_of_the_architecture_page() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap_or_default();
    for path in sources() {
        let Some(stage) = stage(&path) else { continue };
        assert!(page.contains(&format!("| `{stage}` |")), "{stage} is missing in docs/architecture.md");
    }
    assert!(page.lines().count() < 200, "docs/architecture.md is to be read in one sitting");
}

#[test]
fn the_scan_sees_what_code_uses() {
    let names = |text: &str| uses(text).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    assert_eq!(names("use crate::order::{Head, Order};"), ["order"]);
    assert_eq!(names("use crate::{\n    history::{A, B},\n    order,\n};"), ["history", "order"]);
    assert_eq!(names("let x = crate::check::judge(crate::order::y()); // crate::cli"), ["check", "order"]);
    assert!(names("/// See [`crate::report::Sink`].").is_empty());
    assert_eq!(uses("\n\nuse crate::order;")[0].0, 3);
}
