//! Detects containers given together with the evidence that they were packed from, so that no fact counts twice.
//!
//! Input: the unpacked containers and the given files. If all evidence of a container is given, the evidence is read and the
//! container left out. If the container holds all given files, the container is read. Otherwise both are read and the overlap is
//! reported.

use super::present::{Files, Now, Packed};
use crate::history::Subject;
use crate::history::store::History;
use crate::ingest::{FileId, FileSummary, InputFile, Reports, SourceRule};

/// The reason to leave out a container: all its evidence is given.
pub const STANDS_BESIDE: &str = "a container of evidence that was given too: the evidence was read instead";
/// The reason to leave out evidence: a given container holds it.
pub const IS_PACKED: &str = "evidence that a given container holds: the container was read instead";
/// The warning if neither replaces the other.
pub const COUNTS_TWICE: &str =
    "evidence that a given container also holds, so it counts twice: pack all evidence into one container";

/// All reasons.
pub const WHY: [&str; 3] = [STANDS_BESIDE, IS_PACKED, COUNTS_TWICE];

/// An input that was left out or counts twice, with the reason.
pub(in super::super) type Left = (InputFile, &'static str);

/// Removes overlap between containers and given files. Returns the histories of the containers that stay, and the inputs that
/// were left out or count twice.
pub(in super::super) fn once(
    containers: Vec<(InputFile, Vec<History>)>,
    given: &mut Reports,
) -> (Vec<History>, Vec<Left>) {
    let (mut kept, mut left) = (Vec::new(), Vec::new());
    if containers.is_empty() {
        return (kept, left);
    }
    let mut now = Now::default();
    let in_order = given.reports.iter().flat_map(|report| &report.files).chain(&given.others);
    let mut present = Files::of(in_order, &mut now);
    for (container, histories) in containers {
        let packed: Vec<&InputFile> = histories.iter().flat_map(packed_from).collect();
        let places: Vec<Option<usize>> = packed.iter().map(|input| present.find(input, &mut now)).collect();
        let mut files: Vec<&mut InputFile> =
            given.reports.iter_mut().flat_map(|report| &mut report.files).chain(&mut given.others).collect();
        let shared: Vec<usize> = places.iter().flatten().copied().collect();
        if !packed.is_empty() && places.iter().all(Option::is_some) {
            // Declarations made at packing apply, unless the caller declares something else now.
            for (input, at) in packed.iter().zip(&shared) {
                let file = &mut files[*at];
                if file.source == SourceRule::default() && file.format.is_none() {
                    (file.source, file.format) = (input.source.clone(), input.format);
                }
            }
            left.push((container, STANDS_BESIDE));
            continue;
        }
        let all_given = !shared.is_empty() && {
            let known = Packed::of(histories.iter().flat_map(|history| &history.inputs));
            // A pipe that is skipped has no content that a container could hold.
            files.iter().all(|file| file.beginning.is_passed_over() || known.has(file, &mut now))
        };
        left.extend(shared.iter().map(|at| (files[*at].clone(), if all_given { IS_PACKED } else { COUNTS_TWICE })));
        if all_given {
            given.reports.clear();
            given.others.clear();
            present = Files::default();
        }
        kept.extend(histories);
    }
    (kept, left)
}

/// Records in a history the inputs that were left out.
pub(in super::super) fn note(history: &mut History, left: Vec<Left>) {
    for (input, why) in left {
        let id = FileId(u32::try_from(history.inputs.len()).unwrap_or(u32::MAX));
        let file = FileSummary { path: input.shown.clone(), ignored: Some(why.to_owned()), ..FileSummary::default() };
        history.inputs.push(InputFile { id, ..input });
        if let Subject::Etcd(cluster) = &mut history.subject {
            cluster.recording.files.push(file.clone());
        }
        history.files.push(file);
    }
}

/// The inputs of a history that were read as evidence.
fn packed_from(history: &History) -> impl Iterator<Item = &InputFile> {
    let evidence = |at: usize| history.files.get(at).is_some_and(|file| file.format.is_some());
    history.inputs.iter().enumerate().filter(move |(at, _)| evidence(*at)).map(|(_, input)| input)
}
