//! The architecture rules that the compiler does not check (`docs/architecture.md`).

mod imports;

use imports::{Imports, Module};
use std::fs;
use std::path::{Path, PathBuf};

/// The stages in order. Each imports only from earlier ones.
const STAGES: [&str; 16] = [
    "container",
    "ingest",
    "history",
    "model",
    "order",
    "search",
    "isolation",
    "check",
    "counterfactual",
    "explore",
    "explain",
    "report",
    "assertion",
    "record",
    "proxy",
    "cli",
];

/// The stages that the independent verifier imports: facts with their positions, and the definitions of data types.
/// An order of calls is right or wrong only by such a definition.
const VERIFY: [&str; 3] = ["history", "ingest", "model"];

/// The search types that the verifier imports: plain data of claims and calls, and no algorithm.
const VERIFY_CLAIMS: [&str; 7] = ["Call", "Claim", "Core", "History", "Linearization", "Outcome", "SpecHistory"];

/// The entries at the top of the repository, without hidden files.
const TOP: [&str; 17] = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "action.yml",
    "benches",
    "docs",
    "examples",
    "histories",
    "recorders",
    "rust-toolchain.toml",
    "src",
    "tests",
];

/// Most lines of a file.
const LINES: usize = 800;

/// Files that may be in an import cycle, each by one of its members. The list may only shrink.
const CIRCLES: [&str; 0] = [];

/// Module names without meaning.
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

/// The stage of a file; `None` for `lib.rs` and `main.rs`.
fn stage(path: &Path) -> Option<String> {
    let inside = path.strip_prefix(root().join("src")).ok()?;
    let first = inside.components().next()?.as_os_str().to_string_lossy().into_owned();
    let name = first.strip_suffix(".rs").unwrap_or(&first).to_owned();
    (!matches!(name.as_str(), "lib" | "main")).then_some(name)
}

#[test]
fn a_stage_uses_only_earlier_stages() {
    let imports = Imports::of(&root().join("src"));
    let place = |stage: &str| STAGES.iter().position(|name| *name == stage);
    let mut wrong = Vec::new();
    for module in imports.modules().filter(|module| !module.is_empty()) {
        let stage = module[0].as_str();
        assert!(place(stage).is_some() || stage == "verify", "src/{stage} is not in the table of docs/architecture.md");
        for target in imports.from(module) {
            let allowed = match (place(stage), target.first().map(String::as_str)) {
                (_, Some(used)) if used == stage => true,
                (None, Some(used)) => used == "search" || VERIFY.contains(&used),
                (Some(own), Some(used)) => {
                    let shown_to_users = used == "verify" && matches!(stage, "assertion" | "cli");
                    place(used).is_some_and(|used| used < own) || shown_to_users
                }
                // `crate::judge` and `crate::Options` stand for the whole library. Only its interface and command
                // line may use them.
                (_, None) => matches!(stage, "assertion" | "record" | "proxy" | "cli"),
            };
            if !allowed {
                wrong.push(format!("{} uses {}", module.join("::"), target.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_files_import_from_each_other_in_a_circle() {
    let imports = Imports::of(&root().join("src"));
    assert!(imports.modules().count() > 300, "the sources are read");
    let name = |module: &Module| module.join("::");
    let circles = imports.circles();
    let excused = |circle: &&Vec<Module>| circle.iter().any(|module| CIRCLES.contains(&name(module).as_str()));
    let words = |circle: &Vec<Module>| {
        let line = |module: &Module| {
            let inside = imports.from(module).into_iter().filter(|target| circle.contains(target));
            format!("    {} -> {}", name(module), inside.map(|target| name(&target)).collect::<Vec<_>>().join(", "))
        };
        circle.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let wrong: Vec<String> = circles.iter().filter(|circle| !excused(circle)).map(words).collect();
    assert!(wrong.is_empty(), "{} circles:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(
        CIRCLES.len() <= 5 && circles.iter().filter(excused).count() == CIRCLES.len(),
        "CIRCLES names what is no circle"
    );
}

/// Shared facts import no rule, and groups of rules do not import each other.
#[test]
fn groups_of_rules_know_only_what_is_below_them() {
    let imports = Imports::of(&root().join("src"));
    let rooms = ["reads", "watches", "writes", "sessions", "protocol", "premises", "invariants"];
    let room = |module: &Module| match module.as_slice() {
        [check, room, ..] if check == "check" => rooms.iter().position(|name| name == room),
        _ => None,
    };
    let is_fact = |module: &Module| module.starts_with(&["check".to_owned(), "facts".to_owned()]);
    let mut seen = 0;
    for module in imports.modules().filter(|module| is_fact(module) || room(module).is_some()) {
        for target in imports.from(module) {
            seen += 1;
            assert!(
                room(&target).is_none_or(|of| Some(of) == room(module)),
                "{} uses {}",
                module.join("::"),
                target.join("::")
            );
        }
    }
    assert!(seen > 300, "{seen} imports are seen");
}

#[test]
fn the_verifier_takes_nothing_from_the_search_but_what_is_claimed() {
    let imports = Imports::of(&root().join("src"));
    let mut seen = 0;
    for module in imports.modules().filter(|module| module.first().is_some_and(|stage| stage == "verify")) {
        for (target, name) in imports.names(module) {
            if target.first().is_some_and(|stage| stage == "search") {
                seen += 1;
                let name = name.unwrap_or_default();
                let allowed = VERIFY_CLAIMS.contains(&name.as_str());
                assert!(allowed, "{} uses {}::{name}", module.join("::"), target.join("::"));
            }
        }
    }
    assert!(seen > 0);
}

/// SECURITY.md promises that evidence can neither reach a network nor start a program. Tests may start one. Only the
/// stage `proxy` has a network, and it uses nothing that reads evidence. The tools for assistants start this program.
#[test]
fn the_program_opens_no_connection_and_starts_no_process() {
    const STARTS_ITSELF: &str = "let mut child = Command::new(&self.program)";
    let mut proxies = 0;
    for path in sources().into_iter().filter(|path| !shown(path).contains("/tests/")) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        if shown(&path) == "src/cli/mcp.rs" {
            let started: Vec<&str> = text.lines().filter(|line| line.contains("Command::new(")).collect();
            assert_eq!(started.iter().map(|line| line.trim()).collect::<Vec<_>>(), [STARTS_ITSELF]);
            assert!(text.contains("program: std::env::current_exe()?") && !text.contains("tokio::net"), "{text}");
            continue;
        }
        assert!(!text.contains("process::Command"), "{} starts a process", shown(&path));
        if stage(&path).is_some_and(|stage| stage == "proxy") {
            proxies += 1;
            for reader in ["ingest::inputs", "history::load", "crate::judge"] {
                assert!(!text.contains(reader), "{} reads evidence", shown(&path));
            }
            continue;
        }
        for forbidden in ["TcpStream", "TcpListener", "UdpSocket", "UnixStream", "tokio::", "hyper::", "hyper_util::"] {
            assert!(!text.contains(forbidden), "{} uses {forbidden}", shown(&path));
        }
    }
    assert!(proxies > 5, "{proxies} files of the proxies are read");
}

/// Only the feature `proxy` has crates that can open connections. It is off by default, and no other feature contains it.
/// The feature `mcp` has the runtime without its network, and is off by default too.
#[test]
fn only_the_feature_of_the_proxies_can_open_connections() {
    const CLIENTS: [&str; 9] = ["curl", "hyper", "hyper-util", "mio", "reqwest", "rustls", "socket2", "tokio", "ureq"];
    let read = |name: &str| -> toml::Table {
        let text = fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        text.parse().unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    let texts = |value: &toml::Value| -> Vec<String> {
        let items = value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect()
    };
    let manifest = read("Cargo.toml");
    let features = manifest["features"].as_table().expect("features");
    // Every dependency that a feature other than `proxy` needs.
    let mut open: Vec<String> = Vec::new();
    for (_, items) in features.iter().filter(|(name, _)| !["proxy", "mcp"].contains(&name.as_str())) {
        for item in texts(items) {
            assert!(!["proxy", "mcp"].contains(&item.as_str()), "another feature contains {item}");
            open.extend(item.strip_prefix("dep:").map(str::to_owned));
        }
    }
    let tables = |name: &str| {
        let of_targets = manifest["target"].as_table().expect("targets").values().filter_map(|target| target.get(name));
        manifest.get(name).into_iter().chain(of_targets).filter_map(toml::Value::as_table).cloned().collect::<Vec<_>>()
    };
    for (name, dependency) in tables("dependencies").into_iter().flatten() {
        let is_optional = dependency.get("optional").and_then(toml::Value::as_bool) == Some(true);
        open.extend((!is_optional).then_some(name));
    }
    let lock = read("Cargo.lock");
    let packages = lock["package"].as_array().expect("packages");
    let mut seen: Vec<String> = Vec::new();
    while let Some(name) = open.pop() {
        if seen.contains(&name) {
            continue;
        }
        let named = packages.iter().filter(|package| package["name"].as_str() == Some(name.as_str()));
        // A dependency is a name, with its version if there are several.
        let next = named.filter_map(|package| package.get("dependencies")).flat_map(texts);
        open.extend(next.filter_map(|text| text.split(' ').next().map(str::to_owned)));
        seen.push(name);
    }
    assert!(seen.iter().any(|name| name == "serde_core") && seen.len() > 50, "{seen:?}");
    for client in CLIENTS {
        assert!(!seen.iter().any(|name| name == client), "{client} can open connections");
    }
    let proxy = texts(&features["proxy"]);
    assert!(proxy.iter().any(|item| item == "dep:tokio"), "{proxy:?}");
    let mcp = texts(&features["mcp"]);
    assert_eq!(mcp, ["cli", "dep:rmcp", "dep:tokio", "tokio/io-util", "tokio/process"]);
}

/// The scheduled workflow fuzzes every format with a parser, so each needs a fuzz target.
#[test]
fn every_format_is_fuzzed() {
    let target = |name: &str| root().join(format!("tests/fuzz/fuzz_targets/{}.rs", name.replace('-', "_")));
    let formats = retrograde::ingest::Format::ALL.map(|format| format.name());
    for name in formats.into_iter().chain(["archive", "container", "report", "rules_file"]) {
        // The legacy text is recognised and not read.
        assert!(name == "audit-legacy" || target(name).is_file(), "{} is missing", target(name).display());
    }
    let workflow = fs::read_to_string(root().join(".github/workflows/fuzz.yml")).unwrap_or_default();
    assert!(workflow.contains("tests/fuzz/fuzz_targets/*.rs") && workflow.contains("schedule:"), "{workflow}");
}

#[test]
fn no_file_is_too_long() {
    for path in files_below(&["src", "tests", "benches", "examples"]) {
        let lines = fs::read_to_string(&path).unwrap_or_default().lines().count();
        assert!(lines <= LINES, "{} has {lines} lines, more than {LINES}", shown(&path));
    }
}

/// Tests run what ships: a size that tests set is a field or an argument.
#[test]
fn no_value_depends_on_whether_tests_are_compiled() {
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap_or_default();
        assert!(!text.contains("cfg!(test)"), "{}", shown(&path));
    }
}

#[test]
fn every_module_stands_where_its_path_says() {
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap_or_default();
        assert!(!text.contains("#[path"), "{}", shown(&path));
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
