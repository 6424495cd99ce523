//! The scripts of the GitHub Action (`action.yml`) and of releases, run with the built program.
#![cfg(all(unix, feature = "cli"))]

use crate::support::folder::Folder;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_retrograde");
const TAG: &str = "v9.9.9";

/// A script of the repository, in a folder of its own.
fn script(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(".github").join(name));
    command.current_dir(folder);
    command
}

fn said(output: &Output) -> String {
    [output.stdout.as_slice(), output.stderr.as_slice()].map(String::from_utf8_lossy).concat()
}

/// Runs the check of the action; the lines of its outputs, and the summary.
fn checked(evidence: &str, arguments: &str) -> (Vec<String>, String) {
    let folder = Folder::new();
    let programs = Path::new(PROGRAM).parent().expect("the program is in a folder");
    let output = script("action/check.sh", Path::new(env!("CARGO_MANIFEST_DIR")))
        .env("PATH", format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default()))
        .env("RETROGRADE_EVIDENCE", evidence)
        .env("RETROGRADE_ARGUMENTS", arguments)
        .env("RUNNER_TEMP", folder.root())
        .env("GITHUB_OUTPUT", folder.path("outputs"))
        .env("GITHUB_STEP_SUMMARY", folder.path("summary"))
        .output()
        .expect("the script runs");
    assert!(output.status.success(), "{}", said(&output));
    let outputs = fs::read_to_string(folder.path("outputs")).expect("the script wrote its outputs");
    let outputs: Vec<String> = outputs.lines().map(str::to_owned).collect();
    let reports = outputs.iter().find_map(|line| line.strip_prefix("reports=")).expect("a folder of reports");
    for name in ["report.html", "report.json", "report.md", "report.sarif"] {
        let made = fs::metadata(Path::new(reports).join(name)).is_ok_and(|report| report.len() > 0);
        assert_eq!(made, !outputs.contains(&"verdict=none".to_owned()), "{name}");
    }
    (outputs, fs::read_to_string(folder.path("summary")).unwrap_or_default())
}

fn has(outputs: &[String], line: &str) -> bool {
    outputs.iter().any(|output| output == line)
}

#[test]
fn the_action_tells_the_verdict_and_keeps_the_code_for_its_last_step() {
    let (outputs, summary) = checked("histories/incidents/kubelet-restart/buggy\n", "");
    assert!(has(&outputs, "verdict=violated") && has(&outputs, "code=1"), "{outputs:?}");
    assert!(summary.contains("monotonic-reads"), "{summary}");
    let (outputs, _) = checked("\nhistories/incidents/kubelet-restart/quorum-lists\r\n", "");
    assert!(has(&outputs, "verdict=holds") && has(&outputs, "code=0"), "{outputs:?}");
    let (outputs, summary) = checked("histories/no-such-folder", "");
    assert!(has(&outputs, "verdict=none") && has(&outputs, "code=2") && summary.is_empty(), "{outputs:?}");
}

#[test]
fn each_line_of_the_inputs_is_one_argument_of_the_program() {
    let folder = Folder::new();
    let path = folder.path("two words");
    fs::create_dir(&path).expect("the folder is new");
    let from = "histories/incidents/kubelet-restart/buggy";
    for entry in fs::read_dir(from).expect("the history is there").flatten() {
        fs::copy(entry.path(), path.join(entry.file_name())).expect("the file is copied");
    }
    let (outputs, _) = checked(&path.display().to_string(), "--only\nname-reuse\n\n--fail-on=violation");
    assert!(has(&outputs, "verdict=violated"), "{outputs:?}");
    // A path is never read as an option.
    let (outputs, _) = checked("--help", "");
    assert!(has(&outputs, "verdict=none"), "{outputs:?}");
}

/// An archive of the built program among the files of a release, and its name.
fn released(releases: &Path) -> String {
    let files = releases.join("download").join(TAG);
    fs::create_dir_all(&files).expect("the folder is new");
    let target = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("macos", "aarch64") => "aarch64-apple-darwin",
        ("macos", _) => "x86_64-apple-darwin",
        (_, "aarch64") => "aarch64-unknown-linux-musl",
        _ => "x86_64-unknown-linux-musl",
    };
    let output = script("release/pack.sh", &files).args([PROGRAM, TAG, target]).output().expect("the script runs");
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn install(releases: &Path, folder: &Path) -> Output {
    // The path has the tools of the system alone, so that no installed program is taken.
    script("action/install.sh", folder)
        .env("PATH", "/usr/bin:/bin")
        .env("RETROGRADE_RELEASES", format!("file://{}", releases.display()))
        .env("RETROGRADE_VERSION", TAG)
        .env("RUNNER_TEMP", folder)
        .env("GITHUB_PATH", folder.join("path"))
        .output()
        .expect("the script runs")
}

#[test]
fn a_released_archive_is_installed_with_its_manual_and_completions() {
    let (releases, folder) = (Folder::new(), Folder::new());
    released(releases.root());
    let output = install(releases.root(), folder.root());
    assert!(output.status.success(), "{}", said(&output));
    let programs = fs::read_to_string(folder.path("path")).expect("the script named its folder");
    let programs = Path::new(programs.trim());
    let version = Command::new(programs.join("retrograde")).arg("--version").output().expect("the program runs");
    assert!(said(&version).contains(env!("CARGO_PKG_VERSION")));
    for name in ["retrograde.1", "retrograde.bash", "_retrograde", "retrograde.fish", "retrograde.ps1"] {
        assert!(fs::metadata(programs.join("share").join(name)).is_ok_and(|file| file.len() > 100), "{name}");
    }
}

#[test]
fn an_archive_with_another_checksum_is_not_installed() {
    let (releases, folder) = (Folder::new(), Folder::new());
    let archive = released(releases.root());
    let path = releases.path("download").join(TAG).join(&archive);
    let mut bytes = fs::read(&path).expect("the archive is there");
    bytes.push(0);
    fs::write(&path, bytes).expect("the archive is changed");
    let output = install(releases.root(), folder.root());
    assert!(!output.status.success(), "{}", said(&output));
    assert!(!folder.path("path").exists());
}

#[test]
fn the_formula_names_each_archive_with_its_checksum() {
    let folder = Folder::new();
    let systems =
        ["aarch64-apple-darwin", "x86_64-apple-darwin", "aarch64-unknown-linux-musl", "x86_64-unknown-linux-musl"];
    for (number, target) in systems.iter().enumerate() {
        let archive = format!("retrograde-{TAG}-{target}.tar.gz");
        let sum = format!("{number:064x}  {archive}\n");
        fs::write(folder.root().join(format!("{archive}.sha256")), sum).expect("the folder is writable");
    }
    let files = folder.root().display().to_string();
    let output = script("release/formula.sh", folder.root())
        .args(["9.9.9", "https://example.org/releases/download/v9.9.9", &files])
        .output()
        .expect("the script runs");
    assert!(output.status.success(), "{}", said(&output));
    let formula = said(&output);
    for (number, target) in systems.iter().enumerate() {
        let url = format!("url \"https://example.org/releases/download/v9.9.9/retrograde-{TAG}-{target}.tar.gz\"");
        let at = formula.find(&url).unwrap_or_else(|| panic!("{url} is not in {formula}"));
        assert!(formula[at..].contains(&format!("sha256 \"{number:064x}\"")), "{formula}");
    }
}
