//! Which inputs are one history: those of an etcd report belong together, and not to anything else.

use super::etcd::layout::{self, Place};
use super::format::Format;
use super::input::InputFile;
use super::position::FileId;
use super::sniff::Detected;
use super::sniff::Seen;
use super::stream::Opener;
use rustc_hash::{FxHashMap, FxHashSet};

/// Inputs, told apart.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// Evidence of etcd clusters: a report of the robustness suite each, or the data directory of a member.
    pub reports: Vec<EtcdReport>,
    /// Histories that were packed.
    #[cfg(feature = "container")]
    pub containers: Vec<InputFile>,
    /// Everything else.
    pub others: Vec<InputFile>,
}

/// The inputs of one history of an etcd cluster.
#[derive(Clone, Debug, Default)]
pub struct EtcdReport {
    /// The directory that holds them; empty where it is the one in which the command runs.
    pub name: String,
    /// The inputs, numbered as they were given.
    pub files: Vec<InputFile>,
}

/// Tells the reports among the inputs apart, by the beginnings of the files and by where they stand. What is no evidence goes
/// with the report around it, or, where there is nothing but reports, with the first one. Pipes cannot be looked at before they
/// are read, and are taken for something else.
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

/// What the beginning of a file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Evidence; of a log, whose.
    Evidence(Format, Option<Writer>),
    Other,
    #[cfg(feature = "container")]
    Container,
    /// It can be read once only.
    Unseen,
}

/// Cluster and member that write a log.
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
            // What cannot be opened will say so when it is read.
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

/// The directories of reports, and of data that is no report's.
#[derive(Default)]
struct Roots {
    reports: FxHashSet<String>,
    /// Every directory of reports or data, with the one that stands for the cluster.
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
        // Data directories of one cluster belong together, where they are those of different members.
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

    /// The directory that stands for a place: data directories inside a report are the report's, however they are called.
    fn root(&self, place: Place) -> String {
        if place.of_report {
            return place.root;
        }
        let report = layout::around(&place.root).find(|folder| self.reports.contains(*folder)).map(str::to_owned);
        let own = report.unwrap_or(place.root);
        self.all.get(&own).cloned().unwrap_or(own)
    }

    /// The root around a file that is no evidence.
    fn around(&self, path: &str) -> Option<String> {
        layout::around(path).find_map(|folder| self.all.get(folder)).cloned()
    }
}
