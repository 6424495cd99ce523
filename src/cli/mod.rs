//! The command line: parses arguments, makes a plan, and runs it. Decides nothing about histories.

pub(crate) mod args;
pub(crate) mod baseline;
pub(crate) mod cache;
pub(crate) mod console;
mod container_file;
pub(crate) mod exit;
mod explore;
pub(crate) mod halting;
pub(crate) mod judging;
#[cfg(feature = "mcp")]
mod mcp;
pub(crate) mod output;
pub(crate) mod pack;
pub(crate) mod plan;
pub(crate) mod progress;
mod reading;
mod record;
pub(crate) mod record_arguments;
pub(crate) mod run;
pub(crate) mod value;
pub(crate) mod verify;

use crate::explain::words::bytes;
use crate::ingest::Found;
use crate::ingest::limits::LONGEST_REPORT;
use crate::report::document::SCHEMA;
use anyhow::{Context, anyhow, bail};
use args::{Arguments, Command};
use clap::{CommandFactory, Parser};
use console::{UntilClosed, tell};
use exit::Exit;
use serde::de::DeserializeOwned;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;

/// Runs the command of the process's arguments.
pub fn main() -> ExitCode {
    // For help, version and usage errors (exit code 2) clap ends the process here.
    let arguments = Arguments::parse();
    halting::take_signals();
    exit_of(command(arguments)).into()
}

/// The exit of a run that may have failed. Writes the error to standard error.
fn exit_of(exit: anyhow::Result<Exit>) -> Exit {
    exit.unwrap_or_else(|error| {
        tell(format_args!("error: {error:#}"));
        Exit::NoReport
    })
}

/// Reads a report of `check --json`. The file may be evidence by mistake, so no message repeats its content.
fn saved_report<T: DeserializeOwned>(what: &str, path: &Path) -> anyhow::Result<T> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: String,
    }
    let shown = path.display();
    let reading = || format!("reading {what} {shown}");
    let mut text = Vec::new();
    let file = std::fs::File::open(path).with_context(reading)?;
    file.take(LONGEST_REPORT + 1).read_to_end(&mut text).with_context(reading)?;
    if text.len() as u64 > LONGEST_REPORT {
        bail!("{what} {shown} is longer than {}", bytes(LONGEST_REPORT));
    }
    let no_report = |error| anyhow!("{what} {shown} is no report of retrograde: {}", Found::json(&error));
    let head: Head = serde_json::from_slice(&text).map_err(no_report)?;
    if head.schema != SCHEMA {
        bail!("{what} {shown} has another schema than {SCHEMA}");
    }
    serde_json::from_slice(&text).map_err(no_report)
}

#[cfg(feature = "mcp")]
use mcp::serve;

/// Says how to get a program with the tools for assistants.
#[cfg(not(feature = "mcp"))]
fn serve(_: &Path) -> anyhow::Result<Exit> {
    bail!(
        "this program was built without `mcp`; build one with it: cargo install --path . --features mcp (releases have it)"
    )
}

fn command(arguments: Arguments) -> anyhow::Result<Exit> {
    let look = plan::look(arguments.color, io::stdout().is_terminal());
    // Not locked, since a check writes its reports on another thread.
    let out = &mut UntilClosed(io::stdout());
    match arguments.command {
        Command::Check(check) => run::check(plan::Plan::of(check, look)?),
        Command::Rules(rules) => run::rules(rules.rule.as_deref(), look, out),
        Command::Explain(explain) => run::explain(plan::Explaining::of(explain, look)?, out),
        Command::Explore(typed) => explore::run(typed, look, out),
        Command::Pack(typed) => pack::pack(typed, out),
        Command::Record(typed) => record::record(typed),
        Command::Mcp { folder } => serve(&folder),
        Command::Verify(typed) => verify::run(&plan::Verifying::of(typed, look)?, out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "retrograde", &mut script);
            Ok(out.write_all(&script).map(|()| Exit::Holds)?)
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
            Ok(out.write_all(&page).map(|()| Exit::Holds)?)
        }
        Command::Show(show) => run::show(plan::Showing::of(show, look)?, out),
    }
}
