//! Reads files of etcd clusters into recordings.

use super::batch::Batch;
use super::builder::Builder;
use super::recording::Recording;
use crate::ingest::{self, EtcdReport, FileId, FileSummary, Format, InputFile, Problem, Progress, ReadOptions};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A poisoned lock means that another thread panicked, which ends the reading.
fn locked(builder: &Mutex<Builder>) -> MutexGuard<'_, Builder> {
    builder.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads all reports together, so that small ones keep every thread busy and an archive of many is read in one pass.
pub fn load(mut reports: Vec<EtcdReport>, options: &ReadOptions, progress: &dyn Progress) -> Vec<Recording> {
    // All files in the given order, which is that of archives too, with the recording of each.
    let mut given: Vec<(usize, FileId, InputFile)> = Vec::new();
    for (at, report) in reports.iter_mut().enumerate() {
        for (n, file) in report.files.iter_mut().enumerate() {
            given.push((at, FileId(n as u32), file.clone()));
            file.id = FileId(n as u32);
        }
    }
    given.sort_by_key(|(_, _, file)| file.id);
    let places: Vec<(usize, FileId)> = given.iter().map(|(at, file, _)| (*at, *file)).collect();
    let inputs: Vec<InputFile> =
        (0..).zip(given).map(|(id, (_, _, file))| InputFile { id: FileId(id), ..file }).collect();
    let builders: Vec<Mutex<Builder>> = reports.iter().map(|_| Mutex::new(Builder::new())).collect();
    let reading = ingest::read(
        &inputs,
        options,
        progress,
        |file, format| {
            let (recording, local) = places[file.id.0 as usize];
            // A single thread reads in order and appends directly. Several threads build batches and merge them, with the same
            // result.
            let alone = options.threads == 1 && format == Format::EtcdOperations;
            match locked(&builders[recording]).begin(alone) {
                Some(rows) => Batch::behind(rows, recording, local, format),
                None => Batch::new(recording, local, format),
            }
        },
        |_, first_line, batch: Batch| locked(&builders[batch.recording]).merge(first_line, batch),
    );
    let mut files: Vec<Vec<FileSummary>> =
        reports.iter().map(|report| vec![FileSummary::default(); report.files.len()]).collect();
    for (summary, (at, file)) in reading.files.into_iter().zip(&places) {
        files[*at][file.0 as usize] = summary;
    }
    let mut problems: Vec<Vec<Problem>> = reports.iter().map(|_| Vec::new()).collect();
    for problem in reading.problems {
        if let Some((at, file)) = problem.file.and_then(|id| places.get(id.0 as usize)) {
            problems[*at].push(Problem { file: Some(*file), ..problem });
        }
    }
    problems.iter_mut().for_each(|problems| problems.sort_by_key(|problem| problem.file));
    let parts = reports.into_iter().zip(builders).zip(files).zip(problems);
    let builder = |builder: Mutex<Builder>| builder.into_inner().unwrap_or_else(PoisonError::into_inner);
    parts
        .map(|(((report, built), files), problems)| builder(built).finish(report.name, report.files, files, problems))
        .collect()
}
