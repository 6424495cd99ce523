//! Reads the evidence of a command.

use super::cache::Cache;
use super::console::tell;
use super::halting;
use super::plan::Input;
use super::progress::Progress;
use crate::explain::terminal_text::visible;
use crate::explain::words::count;
use crate::history::{self, History};
use anyhow::Context;

/// Reads the files of the input, which move into the histories.
pub fn read(input: &mut Input, progress: &Progress) -> anyhow::Result<Vec<History>> {
    if let Some(threads) = input.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("starting threads")?;
    }
    let cache = if input.cache { Cache::of(input) } else { None };
    let mut histories = match cache.as_ref().and_then(|cache| cache.find(input)) {
        Some(histories) => histories,
        None => {
            let files = std::mem::take(&mut input.files);
            let histories = history::load_each(files, &input.read, &input.domains, progress);
            if let Some(cache) = &cache {
                cache.keep(input, &histories);
            }
            histories
        }
    };
    let mut grown = histories.iter().flat_map(|history| &history.files).filter(|file| file.has_grown);
    if let Some(first) = grown.next() {
        let others = match grown.count() as u64 {
            0 => String::new(),
            others => format!(" and {}", count(others, "other file")),
        };
        let first = visible(&first.path);
        tell(format_args!("{first}{others} grew during reading: only the content at the beginning was read"));
    }
    if let Some(model) = &input.model {
        histories.iter_mut().for_each(|history| history.set_model(model));
    }
    progress.judging();
    Ok(histories)
}

/// Reads for a command that reports nothing before its end.
pub fn read_whole(input: &mut Input) -> anyhow::Result<Vec<History>> {
    halting::keep(input.limits);
    let progress = Progress::over(&input.files);
    let histories = read(input, &progress)?;
    progress.end();
    Ok(histories)
}
