//! Runs the commands of docs/guide-ci.md and docs/guide-benchmark.md as written.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The commands of this program in a guide's code blocks of one language.
fn commands(guide: &str, language: &str) -> Vec<String> {
    let guide = std::fs::read_to_string(root().join("docs").join(guide)).expect("the guide");
    let fence = format!("```{language}\n");
    let blocks = guide.split(&fence).skip(1).filter_map(|rest| rest.split("```").next());
    let lines =
        blocks.flat_map(str::lines).map(|line| line.trim().trim_start_matches("- ").trim_start_matches("run: "));
    lines.filter(|line| line.starts_with("retrograde ")).map(str::to_owned).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for file in std::fs::read_dir(from).expect("evidence").flatten() {
        let copy = to.join(file.file_name());
        if file.path().is_dir() {
            copied(&file.path(), &copy);
        } else {
            std::fs::copy(file.path(), copy).expect("a copy");
        }
    }
}

/// A shell in which this program is first on the PATH.
fn shell(command: &str, folder: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_retrograde"));
    let mut path = vec![program.parent().expect("a folder").to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).env("PATH", std::env::join_paths(path).expect("a path"));
    shell
}

#[test]
fn the_commands_of_the_guide_do_what_it_says() {
    let commands = commands("guide-ci.md", "yaml");
    assert_eq!(commands.len(), 2, "{commands:?}");
    for (n, command) in commands.iter().enumerate() {
        for (variant, code) in [("buggy", 1), ("quorum-lists", 0)] {
            let folder: PathBuf =
                std::env::temp_dir().join(format!("retrograde-guide-{n}-{variant}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&folder);
            copied(&root().join("histories/incidents/kubelet-restart").join(variant), &folder.join("evidence"));
            let _ = std::fs::remove_file(folder.join("evidence/expected.json"));
            let mut shell = shell(command, &folder);
            let artifacts = folder.join("artifacts");
            std::fs::create_dir(&artifacts).expect("a folder");
            let output = shell.env("ARTIFACTS", &artifacts).output().expect("a shell");
            assert_eq!(output.status.code(), Some(code), "{command}");
            for report in command.split(" --report ").skip(1) {
                let (_, name) = report.trim().split_once('=').expect("KIND=FILE");
                let name = name.trim_matches('"').replace("$ARTIFACTS", "artifacts");
                let written = std::fs::metadata(folder.join(&name)).map_or(0, |file| file.len());
                assert!(written > 0, "{command} wrote no {name}");
            }
            std::fs::remove_dir_all(&folder).expect("the folder");
        }
    }
}

#[test]
fn the_commands_that_compare_checkers_give_a_verdict_for_each_history_and_a_proof_that_verifies() {
    let commands = commands("guide-benchmark.md", "sh");
    assert_eq!(commands.len(), 4, "{commands:?}");
    let folder = std::env::temp_dir().join(format!("retrograde-guide-benchmark-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    copied(&root().join("histories/rules/linearizability"), &folder.join("histories/rules/linearizability"));
    copied(&root().join("histories/rules/watch-gap"), &folder.join("histories/rules/watch-gap"));
    let run = |command: &str| shell(command, &folder).output().expect("a shell");
    let timed = run(&commands[0]);
    let told = String::from_utf8_lossy(&timed.stderr);
    assert_eq!(timed.status.code(), Some(1), "{told}");
    assert!(told.contains("reading") && told.contains("judging"), "{told}");
    assert_eq!(run(&commands[1]).status.code(), Some(1));
    let verdicts = std::fs::read(folder.join("verdicts.json")).expect("a report");
    let verdicts: serde_json::Value = serde_json::from_slice(&verdicts).expect("JSON");
    let histories = verdicts["histories"].as_array().expect("histories");
    let with = |verdict: &str| histories.iter().filter(|history| history["verdict"] == verdict).count();
    assert!(with("holds") > 3 && with("violated") > 3, "{histories:?}");
    for command in &commands[2..] {
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    std::fs::remove_dir_all(&folder).expect("the folder");
}
