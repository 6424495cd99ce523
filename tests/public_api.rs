//! The public interface of the library, as `docs/public-api.txt` lists it.
//!
//! Rust 1.88, the oldest supported one, describes the library, because the form of this description changes with each
//! release of Rust. cargo-public-api 0.47 reads this form. Items with `#[doc(hidden)]` are not listed.

use std::path::Path;
use std::process::{Command, Output};

const LISTING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/public-api.txt");

fn succeeded(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
#[ignore = "needs cargo-public-api and Rust 1.88: see CONTRIBUTING.md"]
fn the_public_interface_is_the_listed_one() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("public-api");
    succeeded(
        Command::new("cargo")
            .arg(concat!("+", env!("CARGO_PKG_RUST_VERSION")))
            .args(["rustdoc", "--locked", "--lib", "--target-dir"])
            .arg(&target)
            .args(["--", "-Z", "unstable-options", "--output-format", "json"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            // The description is unstable: a stable compiler makes it only if this is set.
            .env("RUSTC_BOOTSTRAP", "1")
            .env_remove("RUSTFLAGS"),
    );
    let mut reader = Command::new("cargo-public-api");
    // Without implementations that every type has, or that a derive made.
    reader.args(["public-api", "-sss", "--rustdoc-json"]).arg(target.join("doc/retrograde.json"));
    let found = String::from_utf8(succeeded(&mut reader).stdout).expect("a listing");
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(LISTING, &found).expect("docs/public-api.txt");
    }
    let listed = std::fs::read_to_string(LISTING).unwrap_or_default();
    let of = |one: &str, other: &str, sign: char| -> String {
        let other: std::collections::HashSet<&str> = other.lines().collect();
        one.lines().filter(|line| !other.contains(line)).map(|line| format!("{sign} {line}\n")).collect()
    };
    let (gone, new) = (of(&listed, &found, '-'), of(&found, &listed, '+'));
    assert!(listed == found, "expected docs/public-api.txt, found\n{gone}{new}`UPDATE=1` writes it anew");
}

#[test]
fn every_public_module_has_an_example() {
    let listed = std::fs::read_to_string(LISTING).expect("docs/public-api.txt");
    let modules: Vec<&str> = listed.lines().filter_map(|line| line.strip_prefix("pub mod retrograde")).collect();
    assert!(modules.len() > 20, "{modules:?}");
    for module in modules {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(module.replace("::", "/").trim_matches('/'));
        let files = [path.join("lib.rs"), path.with_extension("rs"), path.join("mod.rs")];
        let text = files.iter().find_map(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        let mut documentation = text.lines().take_while(|line| line.starts_with("//!"));
        assert!(documentation.any(|line| line.starts_with("//! ```")), "retrograde{module} has no example");
    }
}
