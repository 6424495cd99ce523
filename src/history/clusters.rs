//! The evidence of the clusters that envelopes name: a batch for each in a block, and a builder for each in a run.

use super::batch::Batch;
use super::builder::Builder;
use crate::ingest::fields::Fields;
use crate::ingest::limits::MOST_CLUSTERS;
use crate::ingest::{self, FileId, Format, InputFile, Record, Refused};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The evidence of clusters, by the names that envelopes give.
pub(super) struct Clusters<'a> {
    inputs: &'a [InputFile],
    apart: bool,
    /// The names so far.
    pub names: BTreeSet<String>,
    /// Builders with the files that have evidence for them. Evidence without a name has the empty one, and so has all evidence
    /// unless the clusters are kept apart.
    builders: BTreeMap<String, (Builder, BTreeSet<FileId>)>,
    /// Files with evidence of any cluster.
    files: BTreeSet<FileId>,
    /// Files with evidence of clusters beyond the limit, which is left out.
    pub beyond: BTreeSet<FileId>,
}

/// The expectation of a problem with too many clusters.
pub(super) fn few_clusters() -> String {
    format!("evidence of at most {MOST_CLUSTERS} clusters (check fewer at a time)")
}

/// A cluster beside others.
pub(super) struct Named {
    /// Its name; empty: the evidence without a name.
    pub name: String,
    /// The files with evidence of it.
    pub files: BTreeSet<FileId>,
}

impl<'a> Clusters<'a> {
    pub fn new(inputs: &'a [InputFile], apart: bool) -> Clusters<'a> {
        let (names, files, builders) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        let mut clusters = Clusters { inputs, apart, names, builders, files, beyond: BTreeSet::new() };
        if !apart {
            clusters.builder("");
        }
        clusters
    }

    fn builder(&mut self, name: &str) -> &mut (Builder, BTreeSet<FileId>) {
        let inputs = self.inputs;
        // Two look-ups, since an entry needs an owned name.
        if !self.builders.contains_key(name) {
            self.builders.insert(name.to_owned(), (Builder::new(inputs), BTreeSet::new()));
        }
        self.builders.entry(name.to_owned()).or_insert_with(|| (Builder::new(inputs), BTreeSet::new()))
    }

    pub fn merge(&mut self, name: String, file: FileId, first_line: u32, batch: Box<Batch>) {
        if !name.is_empty() {
            self.names.insert(name.clone());
        }
        // The caller begins anew.
        if !self.apart && self.names.len() > 1 {
            return;
        }
        if batch.is_empty() && self.apart {
            return;
        }
        if self.apart && !self.builders.contains_key(&name) && self.builders.len() > MOST_CLUSTERS {
            self.beyond.insert(file);
            return;
        }
        self.files.insert(file);
        let (builder, files) = self.builder(if self.apart { &name } else { "" });
        files.insert(file);
        builder.merge(file, first_line, *batch);
    }

    /// The builders; if the clusters are apart, each with its name and its files. A file without evidence of any cluster is with
    /// all of them.
    pub fn into_builders(mut self) -> Vec<(Option<Named>, Builder)> {
        if self.builders.is_empty() {
            self.builder("");
        }
        let nowhere: Vec<FileId> =
            self.inputs.iter().map(|input| input.id).filter(|id| !self.files.contains(id)).collect();
        let apart = self.apart && self.builders.len() > 1;
        let builders = self.builders.into_iter();
        builders
            .map(|(name, (builder, mut files))| {
                files.extend(&nowhere);
                (apart.then_some(Named { name, files }), builder)
            })
            .collect()
    }
}

/// The rows of one block, by the cluster that envelopes name.
pub(super) struct Batches {
    pub by_name: Vec<(String, Box<Batch>)>,
    /// Index of the batch that takes the next record.
    at: usize,
    /// Whether the next record is of a cluster beyond the limit.
    is_beyond: bool,
    /// Whether the user declares the cluster.
    is_declared: bool,
    fields: Arc<Fields>,
}

impl Batches {
    pub fn new(file: &InputFile, format: Format, fields: &Arc<Fields>) -> Batches {
        let first = Batch::new(file.id, format, fields.clone());
        Batches {
            by_name: vec![(String::new(), Box::new(first))],
            at: 0,
            is_beyond: false,
            is_declared: file.source.cluster.is_some(),
            fields: fields.clone(),
        }
    }

    fn batch(&mut self) -> &mut Batch {
        &mut self.by_name[self.at].1
    }

    pub fn origin(&mut self, origin: &ingest::Origin<'_>) {
        let name = if self.is_declared { "" } else { &*origin.cluster };
        let known = self.by_name.iter().position(|(known, _)| known == name);
        self.is_beyond = known.is_none() && self.by_name.len() > MOST_CLUSTERS;
        if self.is_beyond {
            return;
        }
        self.at = known.unwrap_or_else(|| {
            let (file, format) = (self.batch().file, self.batch().format);
            self.by_name.push((name.to_owned(), Box::new(Batch::new(file, format, self.fields.clone()))));
            self.by_name.len() - 1
        });
        self.batch().written_by(origin);
    }

    pub fn record(&mut self, line: u32, offset: u64, record: Record<'_>) -> Result<(), Refused> {
        match self.is_beyond {
            true => Err(Refused { expected: few_clusters(), found: "one more".into() }),
            false => ingest::Batch::record(self.batch(), line, offset, record),
        }
    }
}
