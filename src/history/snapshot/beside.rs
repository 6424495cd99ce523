//! Containers beside the evidence that they were packed from: both say the same, and must count once.

use super::present::{Files, Now, Packed};
use crate::history::Subject;
use crate::history::store::History;
use crate::ingest::{FileId, FileSummary, InputFile, Reports, SourceRule};

/// Why a container is left out: what it was packed from is read instead.
pub const STANDS_BESIDE: &str = "a container of evidence that is here itself: the evidence was read instead";
/// Why evidence is left out.
pub const IS_PACKED: &str = "evidence that a container beside it holds: the container was read instead";
/// What is said where neither can stand for the other.
pub const COUNTS_TWICE: &str =
    "evidence that a container beside it holds as well: it counts twice, pack all of it together";

/// All of these.
pub const WHY: [&str; 3] = [STANDS_BESIDE, IS_PACKED, COUNTS_TWICE];

/// What was left out, or counts twice, and why.
pub(in super::super) type Left = (InputFile, &'static str);

/// Leaves out of what was given, or of its containers, what both have: the container, where all evidence that it was packed from is
/// given; the evidence, where a container holds all that is given. Returns what is left of the containers, and what was left out.
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
            // What was said of the files when they were packed, and is not said otherwise now, holds.
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
            // A pipe that is passed over says nothing that a container could hold.
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

/// Notes in a history what was left out beside it.
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

/// The inputs of a history that were evidence.
fn packed_from(history: &History) -> impl Iterator<Item = &InputFile> {
    let evidence = |at: usize| history.files.get(at).is_some_and(|file| file.format.is_some());
    history.inputs.iter().enumerate().filter(move |(at, _)| evidence(*at)).map(|(_, input)| input)
}
