//! `retrograde pack`: evidence into a container.

use super::args::Pack;
use super::exit::Exit;
use super::plan::Input;
use super::{run, tell};
use crate::explain::visible::visible;
use crate::explain::words::count;
use crate::history::History;
use crate::history::snapshot::{self, Packing};
use crate::ingest::{Identity, InputFile};
use anyhow::{Context, bail};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// How many problems are told where nothing can be packed.
const SHOWN: usize = 5;

/// Packs, and says what came of it. Exit code 3 where nothing was recognised: then no file is written.
pub fn pack(typed: Pack, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let mut input = Input::of(typed.evidence)?;
    refuse_to_overwrite(&typed.output, &input.files)?;
    identify(&mut input.files);
    let (histories, progress) = run::read(&mut input)?;
    progress.end();
    for file in changed(&histories) {
        tell(&format!("warning: {} changed while it was read: its lines will not be found again", file.shown));
    }
    if histories.iter().all(History::is_empty) {
        let problems = histories.iter().flat_map(|history| &history.problems);
        for problem in problems.take(SHOWN) {
            tell(&format!("{}: expected {}, found {}", problem.path, problem.expected, problem.found));
        }
        tell("nothing to pack: no evidence was recognised");
        return Ok(Exit::Unknown);
    }
    let packing = Packing { fields: &input.read.fields, request: "", compress: true };
    let length = write(&typed.output, &histories, &packing)?;
    let sum = |of: &dyn Fn(&History) -> u64| histories.iter().map(of).sum::<u64>();
    let read = sum(&|history| history.files.iter().map(|file| file.bytes).sum());
    let problems = sum(&|history| history.files.iter().map(|file| file.problems).sum());
    let files = sum(&|history| history.files.iter().filter(|file| file.format.is_some()).count() as u64);
    writeln!(
        out,
        "packed {}, {} of evidence, into {}: {}{}",
        count(files, "file"),
        count(read, "byte"),
        count(length, "byte"),
        visible(&typed.output.display().to_string()),
        if problems > 0 { format!("; with {}", count(problems, "problem")) } else { String::new() }
    )?;
    Ok(Exit::Holds)
}

/// Notes what the files are before they are read.
pub fn identify(files: &mut [InputFile]) {
    for file in files {
        file.identity = Identity::of(file);
    }
}

/// Inputs that are no longer what they were before they were read.
pub fn changed(histories: &[History]) -> Vec<&InputFile> {
    let inputs = histories.iter().flat_map(|history| &history.inputs);
    inputs.filter(|input| !input.gone && input.identity.is_some_and(|known| !known.is_at(&input.path))).collect()
}

/// Writes a container beside its place, reads it back, and puts it there: whoever reads that file finds a whole one, or none. Returns
/// its length.
pub fn write(path: &Path, histories: &[History], packing: &Packing<'_>) -> anyhow::Result<u64> {
    let draft = Draft(draft_of(path));
    let cannot = || format!("cannot write {}", path.display());
    let file = File::options().write(true).create_new(true).open(&draft.0).with_context(cannot)?;
    let file = snapshot::write(BufWriter::new(file), histories, packing).with_context(cannot)?;
    let length = file.get_ref().metadata().with_context(cannot)?.len();
    file.get_ref().sync_all().with_context(cannot)?;
    let mut back = BufReader::new(File::open(&draft.0).with_context(cannot)?);
    snapshot::read(&mut back, packing.fields, None).context("what was packed cannot be read back")?;
    fs::rename(&draft.0, path).with_context(cannot)?;
    Ok(length)
}

/// A file that is removed unless it was moved away.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn draft_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

fn refuse_to_overwrite(output: &Path, files: &[InputFile]) -> anyhow::Result<()> {
    if output.as_os_str() == "-" {
        bail!("a container goes into a file, not to standard output");
    }
    if let Ok(real) = output.canonicalize()
        && files.iter().any(|file| file.path.canonicalize().is_ok_and(|other| other == real))
    {
        bail!("{} is one of the inputs; it will not be overwritten", output.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_stands_beside_its_container_and_never_stays() {
        assert_eq!(draft_of(Path::new("a/b.rgh")).parent(), Some(Path::new("a")));
        let draft = Draft(std::env::temp_dir().join(format!("retrograde-draft-{}", std::process::id())));
        fs::write(&draft.0, "x").unwrap();
        let path = draft.0.clone();
        drop(draft);
        assert!(!path.exists());
    }
}
