//! `retrograde pack`: packs evidence into a container.

use super::args::Pack;
use super::console::tell;
use super::exit::Exit;
use super::output::Destination;
use super::plan::Input;
use super::{container_file, reading};
use crate::explain::terminal_text::visible;
use crate::explain::words::count;
use crate::history::History;
use crate::history::snapshot::Packing;
use crate::ingest;
use anyhow::bail;
use std::io::Write;

/// Problems to list if nothing can be packed.
const MAX_PROBLEMS: usize = 5;

/// Packs evidence and reports the result. Exit code 3 if nothing was recognised; then no file is written.
pub fn pack(typed: Pack, out: &mut dyn Write) -> anyhow::Result<Exit> {
    if typed.output.as_os_str() == "-" {
        bail!("a container goes into a file, not to standard output");
    }
    let mut input = Input::of(typed.evidence)?;
    let to = Destination::of(&typed.output, |file| input.needs(file))?;
    ingest::identify(&mut input.files);
    let histories = reading::read_whole(&mut input)?;
    for file in container_file::changed(&histories) {
        tell(format_args!("warning: {} changed while it was read: its lines cannot be read again", file.shown));
    }
    if histories.iter().all(History::is_empty) {
        let problems = histories.iter().flat_map(|history| &history.problems);
        for problem in problems.take(MAX_PROBLEMS) {
            let text = format!("{}: expected {}, found {}", problem.path, problem.expected, problem.found);
            tell(text);
        }
        tell("nothing to pack: no evidence was recognised");
        return Ok(Exit::Unknown);
    }
    let packing = Packing { fields: &input.read.fields, request: "", compress: true };
    let beside_it = to.is_stdout();
    let length = to.write_whole(|file| container_file::write(file, &histories, &packing))?;
    let sum = |of: &dyn Fn(&History) -> u64| histories.iter().map(of).sum::<u64>();
    let read = sum(&|history| history.files.iter().map(|file| file.bytes).sum());
    let problems = sum(&|history| history.files.iter().map(|file| file.problems).sum());
    let files = sum(&|history| history.files.iter().filter(|file| file.format.is_some()).count() as u64);
    let said = format!(
        "packed {}, {} of evidence, into {}: {}{}",
        count(files, "file"),
        count(read, "byte"),
        count(length, "byte"),
        visible(&typed.output.display().to_string()),
        if problems > 0 { format!("; with {}", count(problems, "problem")) } else { String::new() }
    );
    match beside_it {
        true => tell(said),
        false => writeln!(out, "{said}")?,
    }
    Ok(Exit::Holds)
}
