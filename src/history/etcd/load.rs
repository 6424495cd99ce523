//! Files to recordings.

use super::batch::Batch;
use super::builder::Builder;
use super::recording::Recording;
use crate::ingest::{self, EtcdReport, FileId, FileSummary, InputFile, Problem, Progress, ReadOptions};

/// Reads reports, all at once, so that small ones keep every thread busy and an archive of many is read in one
/// pass.
pub fn load(reports: Vec<EtcdReport>, options: &ReadOptions, progress: &dyn Progress) -> Vec<Recording> {
    // All files in a row, and where each belongs.
    let mut inputs: Vec<InputFile> = Vec::new();
    let mut places: Vec<(usize, FileId)> = Vec::new();
    for (at, report) in reports.iter().enumerate() {
        for (n, file) in report.files.iter().enumerate() {
            inputs.push(InputFile { id: FileId(inputs.len() as u32), ..file.clone() });
            places.push((at, FileId(n as u32)));
        }
    }
    let mut builders: Vec<Builder> = reports.iter().map(|_| Builder::new()).collect();
    let reading = ingest::read(
        &inputs,
        options,
        progress,
        |file, format| {
            let (recording, local) = places[file.id.0 as usize];
            Batch::new(recording, local, format)
        },
        |_, first_line, batch: Batch| builders[batch.recording].merge(first_line, batch),
    );
    let mut files: Vec<Vec<FileSummary>> = reports.iter().map(|_| Vec::new()).collect();
    for (summary, (at, _)) in reading.files.into_iter().zip(&places) {
        files[*at].push(summary);
    }
    let mut problems: Vec<Vec<Problem>> = reports.iter().map(|_| Vec::new()).collect();
    for problem in reading.problems {
        if let Some((at, file)) = problem.file.and_then(|id| places.get(id.0 as usize)) {
            problems[*at].push(Problem { file: Some(*file), ..problem });
        }
    }
    let parts = reports.into_iter().zip(builders).zip(files).zip(problems);
    parts
        .map(|(((report, builder), files), problems)| builder.finish(report.name, report.files, files, problems))
        .collect()
}
