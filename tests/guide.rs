//! The commands of docs/guide-ci.md, run as they stand there.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The commands of this program in the YAML of the guide.
fn commands() -> Vec<String> {
    let guide = std::fs::read_to_string(root().join("docs/guide-ci.md")).expect("the guide");
    let blocks = guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
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
        std::fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
    }
}

#[test]
fn the_commands_of_the_guide_do_what_it_says() {
    let commands = commands();
    assert_eq!(commands.len(), 2, "{commands:?}");
    let program = Path::new(env!("CARGO_BIN_EXE_retrograde"));
    let mut path = vec![program.parent().expect("a folder").to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    for (n, command) in commands.iter().enumerate() {
        for (variant, code) in [("buggy", 1), ("quorum-lists", 0)] {
            let folder: PathBuf =
                std::env::temp_dir().join(format!("retrograde-guide-{n}-{variant}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&folder);
            copied(&root().join("histories/incidents/kubelet-restart").join(variant), &folder.join("evidence"));
            let _ = std::fs::remove_file(folder.join("evidence/expected.json"));
            let status = Command::new("sh")
                .args(["-c", command])
                .current_dir(&folder)
                .env("PATH", std::env::join_paths(&path).expect("a path"))
                .env("GITHUB_STEP_SUMMARY", folder.join("summary.md"))
                .stdout(std::process::Stdio::null())
                .status()
                .expect("a shell");
            assert_eq!(status.code(), Some(code), "{command}");
            for report in command.split(" --report ").skip(1) {
                let (_, name) = report.trim().split_once('=').expect("KIND=FILE");
                let name = if name.contains('$') { "summary.md" } else { name };
                let written = std::fs::metadata(folder.join(name)).map_or(0, |file| file.len());
                assert!(written > 0, "{command} wrote no {name}");
            }
            std::fs::remove_dir_all(&folder).expect("the folder");
        }
    }
}
