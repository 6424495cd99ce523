//! The command line: arguments as typed, the plan they come to, and running it. Decides nothing about histories.

pub mod args;
pub mod baseline;
pub mod cache;
pub mod exit;
pub mod interrupt;
pub mod pack;
pub mod plan;
pub mod progress;
pub mod run;
pub mod value;
pub mod verify;

use crate::explain::visible::visible;
use crate::ingest::Found;
use crate::report::document::SCHEMA;
use anyhow::{Context, anyhow, bail};
use args::{Arguments, Command};
use clap::{CommandFactory, Parser};
use exit::Exit;
use serde::de::DeserializeOwned;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    // Clap's own answers (help, version, usage errors with exit code 2) end the process here.
    let arguments = Arguments::parse();
    match command(arguments) {
        Ok(exit) => exit.into(),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("error: {error:#}"));
            Exit::NoReport.into()
        }
    }
}

/// Says something on standard error. What it names may come from a file system or out of the evidence.
fn tell(text: &str) {
    // Mistakes in rules files are shown in their lines.
    let lines: Vec<_> = text.lines().map(visible).collect();
    // Nobody is left to hear that nobody listens.
    let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
}

/// Reads a report of `check --json`. Who names another file by mistake may have named evidence, so no message repeats what it holds.
fn saved_report<T: DeserializeOwned>(what: &str, path: &Path) -> anyhow::Result<T> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: String,
    }
    let shown = path.display();
    let text = std::fs::read(path).with_context(|| format!("reading {what} {shown}"))?;
    let no_report = |error| anyhow!("{what} {shown} is no report of `check --json`: {}", Found::json(&error));
    let head: Head = serde_json::from_slice(&text).map_err(no_report)?;
    if head.schema != SCHEMA {
        bail!("{what} {shown} has another schema than {SCHEMA}");
    }
    serde_json::from_slice(&text).map_err(no_report)
}

fn command(arguments: Arguments) -> anyhow::Result<Exit> {
    let look = plan::look(arguments.color, io::stdout().is_terminal());
    match arguments.command {
        Command::Check(check) => run::check(plan::Plan::of(check, look)?),
        Command::Rules(rules) => run::rules(rules.rule.as_deref(), look, &mut io::stdout().lock()),
        Command::Explain(explain) => run::explain(plan::Explaining::of(explain, look)?, &mut io::stdout().lock()),
        Command::Pack(typed) => pack::pack(typed, &mut io::stdout().lock()),
        Command::Verify(typed) => verify::run(&plan::Verifying::of(typed, look)?, &mut io::stdout().lock()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "retrograde", &mut script);
            Ok(io::stdout().write_all(&script).map(|()| Exit::Holds)?)
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
            Ok(io::stdout().write_all(&page).map(|()| Exit::Holds)?)
        }
        Command::Show(show) => run::show(plan::Showing::of(show, look)?, &mut io::stdout().lock()),
    }
}

/// Whether somebody stopped reading: `retrograde check … | head` is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
