//! Cargo, for the crates of recorded clients beside this one. They are no part of the test command's own build.

use std::path::Path;
use std::process::Command;

/// Cargo's command for the crate in `tests/FOLDER`. Its target folder lies inside that of the tests, so it is built once. The
/// crates are not optimised, even if the tests are: their clients wait for servers most of the time.
pub fn cargo(command: &str, folder: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args([command, "--quiet", "--locked", "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder))
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    cargo
}
