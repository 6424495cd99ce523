//! Groups inputs into histories: the files of one etcd report belong together, apart from all others.
//!
//! Input: files with the result of detection. Groups follow from directories (`etcd::layout`) and, for data
//! directories, from the cluster in their logs.

use super::detection::format::Format;
use super::detection::sniff::Detected;
use super::detection::sniff::Seen;
use super::etcd::layout::{self, Place};
use super::input::InputFile;
use super::input::stream::Opener;
use super::position::FileId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Inputs by the history to which they belong.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// Evidence of etcd clusters: reports of the robustness suite, or data directories of members.
    pub reports: Vec<EtcdReport>,
    /// Packed histories.
    #[cfg(feature = "container")]
    pub containers: Vec<InputFile>,
    /// All other inputs.
    pub others: Vec<InputFile>,
}

/// The inputs of one history of an etcd cluster.
#[derive(Clone, Debug, Default)]
pub struct EtcdReport {
    /// Directory of the report; empty for the current one.
    pub name: String,
    /// The inputs, with their original numbers.
    pub files: Vec<InputFile>,
}

/// Groups the inputs by the beginnings of the files and by their directories. A file that is no evidence joins the
/// report around it; if there are only reports, the first one. Pipes cannot be inspected before they are read, so
/// they join the other inputs.
pub fn etcd_reports(files: Vec<InputFile>) -> Reports {
    let seen = looks(&files);
    let roots = Roots::of(&files, &seen);
    let mut found = Reports::default();
    let mut known: FxHashMap<String, usize> = FxHashMap::default();
    let mut only_reports = true;
    for (file, look) in files.into_iter().zip(seen) {
        let root = match look {
            #[cfg(feature = "container")]
            Look::Container => {
                found.containers.push(file);
                continue;
            }
            Look::Evidence(format, _) if format.is_of_etcd() => Some(roots.root(layout::place(&file.shown, format))),
            Look::Other => roots.around(&file.shown),
            Look::Evidence(..) | Look::Unseen => {
                only_reports = false;
                None
            }
        };
        let Some(name) = root else {
            found.others.push(file);
            continue;
        };
        let at = *known.entry(name.clone()).or_insert_with(|| {
            found.reports.push(EtcdReport { name, files: Vec::new() });
            found.reports.len() - 1
        });
        found.reports[at].files.push(file);
    }
    if let Some(first) = found.reports.first_mut().filter(|_| only_reports) {
        first.files.append(&mut found.others);
    }
    for (at, file) in found.others.iter_mut().enumerate() {
        file.id = FileId(at as u32);
    }
    found
}

/// Result of detection for grouping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Evidence; of an etcd log also its writer.
    Evidence(Format, Option<Writer>),
    Other,
    #[cfg(feature = "container")]
    Container,
    /// A pipe, which can be read only once.
    Unseen,
}

/// Cluster and member id of a log.
type Writer = (u64, u64);

fn looks(files: &[InputFile]) -> Vec<Look> {
    let mut opener = Opener::default();
    let mut buffer = Vec::new();
    files.iter().map(|file| look(&mut opener, file, &mut buffer)).collect()
}

fn look<'a>(opener: &mut Opener<'a>, file: &'a InputFile, buffer: &mut Vec<u8>) -> Look {
    if file.beginning.unread().is_some() {
        return Look::Other;
    }
    if let Some(format) = file.format {
        return Look::Evidence(format, None);
    }
    let seen = match file.beginning.seen().filter(|_| file.bytes.is_none()) {
        Some(seen) => seen,
        None if file.bytes.is_none() && !std::fs::metadata(&file.path).is_ok_and(|data| data.is_file()) => {
            return Look::Unseen;
        }
        None => match opener.open(file, &()) {
            Ok(mut stream) => Seen::at(&mut stream, buffer),
            // An error of opening is reported when the file is read.
            Err(_) => return Look::Other,
        },
    };
    #[cfg(feature = "container")]
    if seen.is_container {
        return Look::Container;
    }
    match seen.detected {
        Detected::Evidence(format, _) => Look::Evidence(format, seen.writer),
        Detected::Ignored(_) => Look::Other,
    }
}

/// Root directories of reports, and of data directories outside of reports.
#[derive(Default)]
struct Roots {
    reports: FxHashSet<String>,
    /// Each root directory, with the one that represents its cluster.
    all: FxHashMap<String, String>,
}

impl Roots {
    fn of(files: &[InputFile], seen: &[Look]) -> Roots {
        let mut roots = Roots::default();
        let mut places = Vec::new();
        for (file, look) in files.iter().zip(seen) {
            let Look::Evidence(format, writer) = look else { continue };
            if !format.is_of_etcd() {
                continue;
            }
            let place = layout::place(&file.shown, *format);
            if place.of_report {
                roots.reports.insert(place.root.clone());
            }
            places.push((place, *writer));
        }
        // Data directories of one cluster belong together if their members differ.
        let mut clusters: FxHashMap<u64, Vec<(String, FxHashSet<u64>)>> = FxHashMap::default();
        for (place, writer) in places {
            let is_data = !place.of_report;
            let own = roots.root(place);
            if roots.all.contains_key(&own) && writer.is_none() {
                continue;
            }
            let mut stands_for = own.clone();
            if let Some((cluster, member)) = writer.filter(|_| is_data && !roots.reports.contains(&own)) {
                let groups = clusters.entry(cluster).or_default();
                let known = groups.iter().position(|(root, members)| *root == own || !members.contains(&member));
                let at = known.unwrap_or_else(|| {
                    groups.push((own.clone(), FxHashSet::default()));
                    groups.len() - 1
                });
                groups[at].1.insert(member);
                stands_for.clone_from(&groups[at].0);
            }
            roots.all.insert(own, stands_for);
        }
        roots
    }

    /// The root of a place. Data directories inside a report belong to the report, whatever their names.
    fn root(&self, place: Place) -> String {
        if place.of_report {
            return place.root;
        }
        let report = layout::around(&place.root).find(|folder| self.reports.contains(*folder)).map(str::to_owned);
        let own = report.unwrap_or(place.root);
        self.all.get(&own).cloned().unwrap_or(own)
    }

    /// The nearest root around a file that is no evidence.
    fn around(&self, path: &str) -> Option<String> {
        layout::around(path).find_map(|folder| self.all.get(folder)).cloned()
    }
}
