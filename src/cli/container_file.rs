//! Writes histories to a container file, for `retrograde pack` and `--cache`.

use crate::history::History;
use crate::history::snapshot::{self, Packing};
use crate::ingest::InputFile;
use anyhow::Context;
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, Write};

/// Inputs that changed since they were identified, before reading.
pub fn changed(histories: &[History]) -> Vec<&InputFile> {
    let inputs = histories.iter().flat_map(|history| &history.inputs);
    inputs.filter(|input| !input.gone && input.identity.is_some_and(|known| !known.is_at(&input.path))).collect()
}

/// Writes a container and reads it back as a check. Returns its length in bytes.
pub fn write(file: &mut File, histories: &[History], packing: &Packing<'_>) -> anyhow::Result<u64> {
    let mut out =
        snapshot::write(BufWriter::new(&mut *file), histories, packing).context("the container cannot be written")?;
    out.flush().context("the container cannot be written")?;
    drop(out);
    let length = file.metadata().context("the container cannot be read back")?.len();
    file.rewind().context("the container cannot be read back")?;
    snapshot::read(&mut BufReader::new(&mut *file), packing.fields, None)
        .context("what was packed cannot be read back")?;
    Ok(length)
}
