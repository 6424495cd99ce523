//! Looks up the certificates of a saved report in the evidence that they cite.
//!
//! A fact is confirmed as far as its own line shows it: a record begins at that place, has that audit id, and names the revision,
//! the key and the uid. A fact may also rest on other records (the revision of a list, which the next watch discloses; the key of
//! an answer without recorded body). Its line then lacks the value, and the result counts it as derived. The reader judges the
//! step from the facts to the verdict, which the certificate's reason states.

use super::cited_record::CitedRecord;
use super::report::{Report, ReportedFact, ReportedFinding, ReportedHistory, ReportedSource, file_named};
use crate::ingest::{self, Batch, FileId, InputFile, Position, ReadOptions, Record, Refused};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The result of looking up all facts of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingCheck {
    /// Number of facts found at the place in the report.
    pub standing: u64,
    /// Number of values that the cited lines confirm: audit ids, revisions, keys, uids.
    pub confirmed: u64,
    /// Values that the cited line lacks, as (kind of value, count).
    pub derived: BTreeMap<&'static str, u64>,
    /// Number of certificates whose facts contradict each other by the definition of their rule alone.
    pub contradictions: u64,
    /// All flaws.
    pub flaws: Vec<FactFlaw>,
}

/// The reason why a fact is not confirmed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactFlaw {
    /// The file was not given.
    #[error("{file} is not among the evidence")]
    NoSuchFile {
        /// The name in the report.
        file: String,
    },
    /// No record begins there.
    #[error("no record begins at byte {offset} of {file}")]
    NothingThere {
        /// The file.
        file: String,
        /// The byte offset.
        offset: u64,
    },
    /// It begins on another line.
    #[error("the record at byte {offset} of {file} is on line {found}, not {claimed}")]
    OtherLine {
        /// The file.
        file: String,
        /// The byte offset.
        offset: u64,
        /// The line that the report names.
        claimed: u32,
        /// The line in the evidence.
        found: u32,
    },
    /// The facts exist but do not contradict each other.
    #[error("its facts are in the evidence, but do not contradict each other by the definition of {rule}")]
    Consistent {
        /// The rule.
        rule: String,
    },
    /// The record is another audit event.
    #[error("{file}:{line} is an audit event, but not {claimed}")]
    OtherAuditEvent {
        /// The file.
        file: String,
        /// The line.
        line: u32,
        /// The audit id that the report names.
        claimed: String,
    },
}

impl FactFlaw {
    /// Whether evidence is missing rather than wrong.
    pub fn is_missing_evidence(&self) -> bool {
        matches!(self, FactFlaw::NoSuchFile { .. })
    }
}

/// Looks up every fact of every finding, in the order of the report. Findings of reports of etcd are left to [`super::etcd`].
pub(super) fn findings(report: &Report, files: &[InputFile], options: &ReadOptions) -> Vec<Vec<FindingCheck>> {
    let facts = || {
        let findings = report.histories.iter().filter(|h| !is_of_etcd(h)).flat_map(|history| &history.findings);
        findings.flat_map(|finding| finding.occurrences.iter().flat_map(|certificate| &certificate.facts))
    };
    let names: HashSet<&str> = facts().map(|fact| fact.source.file.as_str()).collect();
    let files: HashMap<&str, &InputFile> =
        names.into_iter().filter_map(|name| Some((name, file_named(files, name)?))).collect();
    let mut wanted: HashMap<&str, HashSet<u64>> = HashMap::new();
    for fact in facts() {
        wanted.entry(&fact.source.file).or_default().insert(fact.source.offset);
    }
    let cited = wanted.iter().filter_map(|(name, offsets)| Some((*name, *files.get(name)?, offsets))).collect();
    let places = Places::read(cited, options);
    let check = |finding: &ReportedFinding| {
        let mut check = FindingCheck::default();
        for fact in finding.occurrences.iter().flat_map(|certificate| &certificate.facts) {
            check.fact(fact, places.get(fact.source.file.as_str()));
        }
        check
    };
    let others = |history: &ReportedHistory| match is_of_etcd(history) {
        true => Vec::new(),
        false => history.findings.iter().map(check).collect(),
    };
    report.histories.iter().map(others).collect()
}

/// Whether a history is a report of etcd.
pub(super) fn is_of_etcd(history: &ReportedHistory) -> bool {
    history.kind == "etcd"
}

/// The records that begin at given offsets of a file.
struct Places(HashMap<u64, CitedRecord>);

/// Offsets to find, and the records found in one block.
struct Wanted<'a>(&'a HashSet<u64>, Vec<Found>);

/// Line, offset, the ids of audit events, keys of etcd.
type Found = (u32, u64, Vec<String>, Vec<String>);

impl Batch for Wanted<'_> {
    fn record(&mut self, line: u32, offset: u64, record: Record<'_>) -> Result<(), Refused> {
        if self.0.contains(&offset) {
            let keys = match &record {
                Record::Etcd(response) => {
                    let events = response.events.iter().flatten();
                    let decoded = events.filter_map(|event| STANDARD.decode(event.kv.key.as_bytes()).ok());
                    decoded.map(|key| String::from_utf8_lossy(&key).into_owned()).collect()
                }
                _ => Vec::new(),
            };
            let audit_ids = match &record {
                Record::Audit(event) => vec![event.audit_id.to_string()],
                _ => Vec::new(),
            };
            self.1.push((line, offset, audit_ids, keys));
        }
        Ok(())
    }
}

impl Places {
    /// Reads the cited files, by name. The files of an archive are read in one pass.
    fn read<'n>(
        mut cited: Vec<(&'n str, &InputFile, &HashSet<u64>)>,
        options: &ReadOptions,
    ) -> HashMap<&'n str, Places> {
        cited.sort_by_key(|(_, file, _)| file.id);
        let inputs: Vec<InputFile> =
            (0..).zip(&cited).map(|(id, (_, file, _))| InputFile { id: FileId(id), ..(*file).clone() }).collect();
        let mut found: Vec<Vec<Found>> = inputs.iter().map(|_| Vec::new()).collect();
        ingest::read(
            &inputs,
            options,
            &(),
            |file, _| Wanted(cited[file.id.0 as usize].2, Vec::new()),
            |file, first, batch| {
                let lines = batch.1.into_iter().map(|(line, at, audit, keys)| (first + line, at, audit, keys));
                found[file.0 as usize].extend(lines);
            },
        );
        let mut opener = ingest::Opener::default();
        let read = cited.iter().zip(&inputs).zip(found);
        read.map(|(((name, ..), file), found)| (*name, Places::of(&mut opener, file, found))).collect()
    }

    fn of<'a>(opener: &mut ingest::Opener<'a>, file: &'a InputFile, mut found: Vec<Found>) -> Places {
        found.dedup_by(|later, kept| {
            let is_same = later.1 == kept.1;
            if is_same {
                kept.2.append(&mut later.2);
            }
            is_same
        });
        let positions: Vec<Position> =
            found.iter().map(|&(line, offset, ..)| Position { file: file.id, line, offset }).collect();
        let texts = ingest::reread_by(opener, file, &positions);
        let places = found.into_iter().zip(texts).map(|((line, offset, audit_ids, etcd_keys), text)| {
            (offset, CitedRecord::new(line, audit_ids, text.unwrap_or_default(), etcd_keys))
        });
        Places(places.collect())
    }
}

impl FindingCheck {
    /// The check of a report without evidence.
    pub(super) fn without_evidence(name: &str) -> FindingCheck {
        FindingCheck { flaws: vec![FactFlaw::NoSuchFile { file: name.to_owned() }], ..FindingCheck::default() }
    }

    fn fact(&mut self, fact: &ReportedFact, places: Option<&Places>) {
        let ReportedSource { file, line, offset } = fact.source.clone();
        let Some(places) = places else { return self.flaws.push(FactFlaw::NoSuchFile { file }) };
        // A fact about a whole file has no line.
        let Some(place) = places.0.get(&offset) else {
            return self.flaws.push(FactFlaw::NothingThere { file, offset });
        };
        if place.line != line && line != 0 {
            return self.flaws.push(FactFlaw::OtherLine { file, offset, claimed: line, found: place.line });
        }
        if let Some(claimed) = &fact.audit_id
            && !place.audit_ids.is_empty()
            && !place.audit_ids.contains(claimed)
        {
            return self.flaws.push(FactFlaw::OtherAuditEvent { file, line, claimed: claimed.clone() });
        }
        self.standing += 1;
        let shows_key = |key: &str| {
            let object = key.split_once(' ').map_or(key, |(_, object)| object);
            object.split('/').all(|part| place.names(part)) || place.has_etcd_key(object)
        };
        let claims = [
            (
                "audit id",
                fact.audit_id.as_deref().map(|id| place.audit_ids.iter().any(|known| known == id) || place.names(id)),
            ),
            ("revision", fact.revision.as_deref().map(|revision| place.names(revision))),
            ("key", fact.key.as_deref().map(shows_key)),
            ("uid", fact.uid.as_deref().map(|uid| place.names(uid))),
        ];
        for (claim, shown) in claims {
            match shown {
                Some(true) => self.confirmed += 1,
                Some(false) => *self.derived.entry(claim).or_default() += 1,
                None => {}
            }
        }
    }
}
