//! Reads inputs into histories. All evidence of one Kubernetes cluster is one history. Every operation log and every etcd report
//! is a history of its own.
//!
//! Blocks are read in parallel and merged in input order, so the result does not depend on the number of threads.

use super::builder::{Domains, short_name};
use super::calls::{self, Pairing};
use super::client::{IdentifiedBy, Incarnation};
use super::clusters::{Batches, Clusters, few_clusters};
use super::etcd;
use super::ids::{ClientId, ClockId, KeyId, ResourceId};
use super::interner::Interner;
use super::nature::{Nature, Subject};
use super::resource::{Key, Resource};
#[cfg(feature = "container")]
use super::snapshot;
use super::store::History;
use crate::ingest::fields::Fields;
use crate::ingest::{
    self, FileId, FileSummary, Format, InputFile, Problem, Progress, ReadOptions, Record, Refused, Time,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The reason why the cluster's history ignores a file.
const OF_ITS_OWN: &str = "an operation log: a history of its own";

/// The reason why a cluster's history ignores a file.
const OF_ANOTHER_CLUSTER: &str = "evidence of another cluster: a history of its own";

/// Reads inputs and returns the first history of [`load_each`].
pub fn load(inputs: Vec<InputFile>, options: &ReadOptions, domains: &Domains, progress: &dyn Progress) -> History {
    load_each(inputs, options, domains, progress).swap_remove(0)
}

/// Reads inputs into at least one history. Order: the cluster's (if there is evidence of one, or nothing could be read), then one
/// for each operation log, then one for each etcd report, each in input order, then those of containers.
pub fn load_each(
    inputs: Vec<InputFile>,
    options: &ReadOptions,
    domains: &Domains,
    progress: &dyn Progress,
) -> Vec<History> {
    let found = ingest::etcd_reports(inputs);
    let mut own: Vec<History> = Vec::new();
    #[cfg(feature = "container")]
    let mut found = found;
    #[cfg(feature = "container")]
    let (packed, left) = {
        let containers = std::mem::take(&mut found.containers);
        let mut opener = ingest::Opener::default();
        let load = |file| snapshot::load(&mut opener, file, &options.fields, progress);
        let histories: Vec<Vec<History>> = containers.iter().map(load).collect();
        drop(opener);
        snapshot::beside::once(containers.into_iter().zip(histories).collect(), &mut found)
    };
    if !found.reports.is_empty() {
        own.extend(etcd::load(found.reports, options, progress).into_iter().map(History::of_etcd));
    }
    #[cfg(feature = "container")]
    own.extend(packed);
    if !found.others.is_empty() || own.is_empty() {
        let mut histories = Vec::new();
        for of_cluster in by_cluster(found.others) {
            histories.append(&mut load_others(of_cluster, options, domains, progress));
        }
        histories.append(&mut own);
        own = histories;
    }
    #[cfg(feature = "container")]
    if let Some(first) = own.first_mut() {
        snapshot::beside::note(first, left);
    }
    own
}

/// Inputs by declared cluster: first those without one.
fn by_cluster(inputs: Vec<InputFile>) -> Vec<Vec<InputFile>> {
    let mut clusters: BTreeMap<Option<String>, Vec<InputFile>> = BTreeMap::new();
    for input in inputs {
        let of = clusters.entry(input.source.cluster.clone()).or_default();
        let id = FileId(of.len() as u32);
        of.push(InputFile { id, ..input });
    }
    if clusters.is_empty() { vec![Vec::new()] } else { clusters.into_values().collect() }
}

/// The histories of all inputs that are not etcd reports.
///
/// Envelopes name clusters. If they name one, files that name none are evidence of that cluster. If they name several, each is a
/// history, and the files that name none are another.
fn load_others(
    inputs: Vec<InputFile>,
    options: &ReadOptions,
    domains: &Domains,
    progress: &dyn Progress,
) -> Vec<History> {
    let can_repeat = inputs.iter().all(InputFile::can_be_read_again);
    if can_repeat && let Ok(histories) = load_by(&inputs, false, options, domains, progress) {
        return histories;
    }
    load_by(&inputs, true, options, domains, progress).unwrap_or_default()
}

/// Envelopes name several clusters.
struct SeveralClusters;

/// Loads inputs. `apart`: the clusters that envelopes name are histories of their own; otherwise several are an error.
fn load_by(
    inputs: &[InputFile],
    apart: bool,
    options: &ReadOptions,
    domains: &Domains,
    progress: &dyn Progress,
) -> Result<Vec<History>, SeveralClusters> {
    let mut clusters = Clusters::new(inputs, apart);
    let mut logs: VecDeque<Log> = VecDeque::new();
    let start = |file: &InputFile, format| Collected::new(file, format, &options.fields);
    let reading = ingest::read(inputs, options, progress, start, |file, first_line, batch| match batch {
        Collected::Cluster(batches) => batches.by_name.into_iter().for_each(|(cluster, batch)| {
            clusters.merge(cluster, file, first_line, batch);
        }),
        Collected::Log(batch) => {
            if logs.back().is_none_or(|log| log.file != file) {
                logs.push_back(Log::new(file, &inputs[file.0 as usize], &options.functions));
            }
            if let Some(log) = logs.back_mut() {
                log.pairing.merge(&mut log.names, first_line, *batch);
            }
        }
    });
    if !apart && clusters.names.len() > 1 {
        return Err(SeveralClusters);
    }
    let mut reading = reading;
    for &id in &clusters.beyond {
        let file = &mut reading.files[id.0 as usize];
        file.problems += 1;
        let (path, found) = (file.path.clone(), "more".to_owned());
        reading.problems.push(Problem { file: Some(id), path, line: 0, expected: few_clusters(), found });
    }
    let is_log = |file: &FileSummary| file.format.and_then(Format::from_name).is_some_and(Format::is_operation_log);
    // A file that could not be read at all may be evidence of the cluster.
    let cluster = logs.is_empty()
        || reading.files.iter().any(|file| match file.format {
            Some(_) => !is_log(file),
            None => file.ignored.is_none(),
        });
    let mut histories = Vec::with_capacity(logs.len() + 1);
    let mut ignored = Vec::new();
    if cluster {
        let mut first = true;
        for (named, builder) in clusters.into_builders() {
            let mut history = builder.finish(domains);
            // Problems found when the lines of a recording were joined count like lines that could not be read.
            let mut files = reading.files.clone();
            for (file, joined) in files.iter_mut().zip(&history.files) {
                file.problems += joined.problems;
            }
            for file in files.iter_mut().filter(|file| is_log(file)) {
                *file = FileSummary { path: std::mem::take(&mut file.path), ..FileSummary::default() };
                file.ignored = Some(OF_ITS_OWN.to_owned());
            }
            if let Some(named) = &named {
                for (at, file) in files.iter_mut().enumerate() {
                    if !named.files.contains(&FileId(at as u32)) && (file.ignored.is_none() || !first) {
                        let path = std::mem::take(&mut file.path);
                        let ignored = Some(OF_ANOTHER_CLUSTER.to_owned());
                        *file = FileSummary { path, ignored, ..FileSummary::default() };
                    }
                    file.export.clusters.retain(|cluster| *cluster == named.name);
                }
            }
            let is_elsewhere = |problem: &Problem| {
                let file = problem.file.and_then(|id| files.get(id.0 as usize));
                file.is_some_and(|file| {
                    file.ignored.as_deref().is_some_and(|why| [OF_ITS_OWN, OF_ANOTHER_CLUSTER].contains(&why))
                })
            };
            history.problems.splice(0..0, reading.problems.iter().filter(|p| !is_elsewhere(p)).cloned());
            history.files = files;
            history.inputs = inputs.to_vec();
            histories.push(history);
            first = false;
        }
    } else {
        ignored.extend(inputs.iter().zip(&reading.files).filter(|(_, file)| file.format.is_none()));
    }
    for log in logs {
        let at = log.file.0 as usize;
        let problems = reading.problems.iter().filter(|problem| problem.file == Some(log.file)).cloned().collect();
        let mut history = log.history(inputs[at].clone(), reading.files[at].clone(), problems);
        for (input, file) in ignored.drain(..) {
            let id = FileId(history.inputs.len() as u32);
            history.inputs.push(InputFile { id, ..input.clone() });
            history.files.push(file.clone());
        }
        histories.push(history);
    }
    once(&mut histories);
    Ok(histories)
}

/// Removes logs of a run that another log shows better: Jepsen's text logs beside the `history.edn` of the run, or a second text
/// log.
fn once(histories: &mut Vec<History>) {
    let format = |history: &History| {
        let format = history.files.first().and_then(|file| file.format).and_then(Format::from_name);
        format.filter(|_| history.nature() == Nature::Operations)
    };
    if histories.len() < 2 {
        return;
    }
    let mut outlines: Vec<u64> = histories.iter().map(calls::outline_of_run).collect();
    let mut at = 0;
    while at < histories.len() {
        let is_log = format(&histories[at]) == Some(Format::JepsenLog);
        let same = (0..histories.len()).filter(|_| is_log).find(|&other| match format(&histories[other]) {
            Some(Format::Edn) => true,
            Some(Format::JepsenLog) => other < at,
            _ => false,
        } && outlines[at] == outlines[other]
            && calls::same_run(&histories[at], &histories[other]));
        let Some(same) = same else {
            at += 1;
            continue;
        };
        let left = histories.remove(at);
        outlines.remove(at);
        let kept = &mut histories[if same > at { same - 1 } else { same }];
        let why = format!("the same run as {}", short_name(&kept.files[0].path));
        for (input, mut file) in left.inputs.into_iter().zip(left.files) {
            if file.ignored.is_none() {
                file = FileSummary { path: file.path, ignored: Some(why.clone()), ..FileSummary::default() };
            }
            let id = FileId(kept.inputs.len() as u32);
            kept.inputs.push(InputFile { id, ..input });
            kept.files.push(file);
        }
    }
}

/// The rows that one worker collects from a block.
enum Collected {
    Cluster(Batches),
    Log(Box<calls::Batch>),
}

impl Collected {
    fn new(file: &InputFile, format: Format, fields: &Arc<Fields>) -> Collected {
        match format.is_operation_log() {
            true => Collected::Log(Box::default()),
            false => Collected::Cluster(Batches::new(file, format, fields)),
        }
    }
}

impl ingest::Batch for Collected {
    fn record(&mut self, line: u32, offset: u64, record: Record<'_>) -> Result<(), Refused> {
        match self {
            Collected::Cluster(batches) => batches.record(line, offset, record),
            Collected::Log(batch) => batch.record(line, offset, record),
        }
    }

    fn origin(&mut self, origin: &ingest::Origin<'_>) {
        if let Collected::Cluster(batches) = self {
            batches.origin(origin);
        }
    }
}

/// One operation log.
struct Log {
    file: FileId,
    names: Interner,
    pairing: Pairing,
}

impl Log {
    fn new(file: FileId, input: &InputFile, functions: &Arc<[(String, String)]>) -> Log {
        Log { file, names: Interner::default(), pairing: Pairing::new(&input.shown, functions.clone()) }
    }

    /// The history of the log. Its only file has id 0.
    fn history(mut self, input: InputFile, mut file: FileSummary, mut problems: Vec<Problem>) -> History {
        let unread = problems.iter().map(|problem| problem.line).filter(|line| *line > 0).min();
        let unread = unread.or((!problems.is_empty()).then_some(0));
        let finished = self.pairing.finish(&self.names, unread);
        file.problems += finished.problem_count;
        problems.extend(finished.problems);
        problems.iter_mut().for_each(|problem| problem.file = Some(FileId(0)));
        problems.sort_by_key(|problem| if problem.line == 0 { u32::MAX } else { problem.line });
        problems.truncate(ingest::limits::KEPT_PROBLEMS_PER_FILE);
        let mut history = History { problems, ..History::default() };
        let clock =
            input.source.clock.clone().or(finished.clock).unwrap_or_else(|| short_name(&input.shown).to_owned());
        history.clocks.push(self.names.intern(&clock));
        for process in finished.processes {
            let name = self.names.get(process);
            let number = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
            let label = if number { format!("process {name}") } else { name.to_owned() };
            let client = ClientId(history.clients.len() as u32);
            history.clients.push(self.names.intern(&label));
            history.incarnations.push(Incarnation {
                client,
                label,
                identified_by: IdentifiedBy::Process,
                place: None,
                program: String::new(),
                span: (Time::UNKNOWN, Time::UNKNOWN),
                clock: ClockId(0),
                served: Vec::new(),
            });
        }
        let mut calls = finished.calls;
        for call in calls.calls.iter() {
            let span = &mut history.incarnations[call.process.index()].span;
            for time in [call.invoke.time, call.ret.time].into_iter().filter(|time| time.is_known()) {
                span.0 = span.0.min(time);
                span.1 = if span.1.is_known() { span.1.max(time) } else { time };
            }
        }
        let resource = Resource { group: self.names.intern(""), plural: self.names.intern("key") };
        for at in 0..calls.calls.len() {
            let key = calls.calls.get(at).key;
            if !key.is_some() || calls.keys.contains_key(&key) {
                continue;
            }
            if history.resources.is_empty() {
                history.resources.push(resource);
            }
            let shown = match calls.values.text(key) {
                Some(text) => text.to_owned(),
                None => calls.values.show(key, 200),
            };
            calls.keys.insert(key, KeyId(history.keys.len() as u32));
            let (namespace, name) = (resource.group, self.names.intern(&shown));
            history.keys.push(Key { resource: ResourceId(0), namespace, name });
        }
        history.subject = Subject::Operations(Box::new(calls));
        history.names = self.names;
        history.inputs = vec![InputFile { id: FileId(0), ..input }];
        history.files = vec![file];
        history
    }
}
