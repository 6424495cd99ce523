//! Looks up the facts of findings about a report of etcd in its records. Two or three facts are also compared, where they
//! contradict each other by the definition of their rule alone.

use crate::history::Symbol;
use crate::history::etcd::{
    Event, LogEntry, Operation, Outcome, Previous, Recording, Request, Response, Step, StoredRevision, Txn, ValueId,
    Watch,
};
use crate::ingest::{InputFile, Time};
use crate::verify::facts::{FactFlaw, FindingCheck};
use crate::verify::report::{ReportedFact, ReportedFinding, ReportedSource, file_named};
use std::collections::{HashMap, HashSet};

/// A record that a fact cites.
#[derive(Clone, Copy)]
enum Record<'r> {
    Operation(&'r Operation),
    Watch(u32),
    /// Indices of the watch and of the response among all responses.
    Response(u32, u32),
    /// Indices of the watch, the response and the event among all events.
    Event(u32, u32, u32),
    Entry(&'r LogEntry),
    Stored(&'r StoredRevision),
}

/// A fact with its record.
struct Cited<'r> {
    record: Record<'r>,
    revision: i64,
    key: Option<Symbol>,
    /// Whether no other record begins at this place and could be meant.
    sure: bool,
}

/// The records at the places that findings cite.
pub(crate) struct Records<'r> {
    recording: &'r Recording,
    inputs: &'r [InputFile],
    /// Records with their line, by index of the file and offset.
    places: HashMap<(usize, u64), Vec<(u32, Record<'r>)>>,
}

impl<'r> Records<'r> {
    /// Indexes the cited places of a recording and its files.
    pub(crate) fn of(recording: &'r Recording, inputs: &'r [InputFile], findings: &[ReportedFinding]) -> Records<'r> {
        let mut records = Records { recording, inputs, places: HashMap::new() };
        let facts = findings.iter().flat_map(|finding| &finding.occurrences).flat_map(|occurrence| &occurrence.facts);
        let wanted: HashSet<u64> = facts.map(|fact| fact.source.offset).collect();
        let mut add = |file: crate::ingest::FileId, offset: u64, line: u32, record: Record<'r>| {
            if wanted.contains(&offset) {
                records.places.entry((file.0 as usize, offset)).or_default().push((line, record));
            }
        };
        for operation in &recording.operations {
            let place = operation.position;
            add(place.file, place.offset, place.line, Record::Operation(operation));
        }
        for (at, watch) in (0..).zip(&recording.watches) {
            let file = watch.position.file;
            add(file, watch.position.offset, watch.position.line, Record::Watch(at));
            for n in watch.responses.start..watch.responses.start + watch.responses.len {
                let response = &recording.responses[n as usize];
                add(file, response.offset, response.line, Record::Response(at, n));
                for e in response.events.start..response.events.start + response.events.len {
                    let event = &recording.events[e as usize];
                    add(file, event.offset, event.line, Record::Event(at, n, e));
                }
            }
        }
        for member in &recording.members {
            for entry in member.log.iter().flat_map(|log| &log.entries) {
                add(entry.position.file, entry.position.offset, entry.position.line, Record::Entry(entry));
            }
            for row in member.store.iter().flat_map(|store| &store.revisions) {
                add(row.position.file, row.position.offset, row.position.line, Record::Stored(row));
            }
        }
        records
    }

    /// Looks up the facts of a finding.
    pub(crate) fn check(&self, finding: &ReportedFinding) -> FindingCheck {
        let mut check = FindingCheck::default();
        for occurrence in &finding.occurrences {
            let cited: Vec<Cited<'r>> =
                occurrence.facts.iter().filter_map(|fact| self.fact(fact, &mut check)).collect();
            if cited.len() < occurrence.facts.len() {
                continue;
            }
            match self.contradict(&finding.rule, &cited) {
                Some(true) => check.contradictions += 1,
                Some(false) if cited.iter().all(|cited| cited.sure) => {
                    check.flaws.push(FactFlaw::Consistent { rule: finding.rule.clone() })
                }
                _ => {}
            }
        }
        check
    }

    fn fact(&self, fact: &ReportedFact, check: &mut FindingCheck) -> Option<Cited<'r>> {
        let ReportedSource { file, line, offset } = fact.source.clone();
        let Some(at) = file_named(self.inputs, &file).map(|input| input.id.0 as usize) else {
            check.flaws.push(FactFlaw::NoSuchFile { file });
            return None;
        };
        let Some(here) = self.places.get(&(at, offset)) else {
            check.flaws.push(FactFlaw::NothingThere { file, offset });
            return None;
        };
        let Some((_, first)) = here.iter().find(|(other, _)| *other == line || line == 0) else {
            let found = here[0].0;
            check.flaws.push(FactFlaw::OtherLine { file, offset, claimed: line, found });
            return None;
        };
        check.standing += 1;
        let key = fact.key.as_deref().map(|key| key.split_once(' ').map_or(key, |(_, key)| key));
        let symbol = key.and_then(|key| self.recording.texts.find(key));
        let revision = fact.revision.as_deref().and_then(|revision| revision.parse::<i64>().ok());
        // A response and its first event may begin at one place.
        let names = |record: &Record<'r>| {
            let of_key = symbol.is_none_or(|key| self.keys(record).contains(&key));
            let of_revision = revision.is_none_or(|revision| self.revisions(record).contains(&revision));
            // An event is cited with its key, a response without.
            let of_kind = match record {
                Record::Event(..) => key.is_some(),
                Record::Watch(_) | Record::Response(..) => key.is_none(),
                _ => true,
            };
            (of_kind, of_revision, of_key)
        };
        let of_line = || here.iter().filter(|(other, _)| *other == line || line == 0).map(|(_, record)| record);
        let record = of_line().max_by_key(|record| names(record)).unwrap_or(first);
        let (_, of_revision, of_key) = names(record);
        let sure = of_line().filter(|other| names(other) == names(record)).count() == 1;
        let claims = [
            ("revision", fact.revision.as_ref().map(|_| revision.is_some() && of_revision)),
            ("key", key.map(|_| symbol.is_some() && of_key)),
        ];
        for (claim, shown) in claims {
            match shown {
                Some(true) => check.confirmed += 1,
                Some(false) => *check.derived.entry(claim).or_default() += 1,
                None => {}
            }
        }
        Some(Cited { record: *record, revision: revision.unwrap_or(0), key: symbol, sure })
    }

    fn event(&self, e: u32) -> &'r Event {
        &self.recording.events[e as usize]
    }

    fn response(&self, n: u32) -> &'r Response {
        &self.recording.responses[n as usize]
    }

    fn watch(&self, at: u32) -> &'r Watch {
        &self.recording.watches[at as usize]
    }

    /// The revisions in a record.
    fn revisions(&self, record: &Record<'r>) -> Vec<i64> {
        match record {
            Record::Operation(operation) => {
                let asked = match operation.request {
                    Request::Range(range) => range.revision,
                    Request::Compact { revision } => revision,
                    _ => 0,
                };
                let results = operation.results.of(&self.recording.results).iter();
                let pairs = results.flat_map(|result| result.pairs.of(&self.recording.pairs));
                pairs.map(|pair| pair.revision).chain([operation.revision, asked]).collect()
            }
            Record::Watch(at) => vec![self.watch(*at).revision.max(0)],
            Record::Response(_, n) => {
                let events = self.response(*n).events.of(&self.recording.events).iter();
                events.map(|event| event.revision).chain([self.response(*n).revision]).collect()
            }
            Record::Event(.., e) => vec![self.event(*e).revision],
            // Entries of a log have no revision; revisions are counted.
            Record::Entry(_) => Vec::new(),
            Record::Stored(row) => vec![row.main],
        }
    }

    /// The keys in a record.
    fn keys(&self, record: &Record<'r>) -> Vec<Symbol> {
        let of_request = |request: &Request| match *request {
            Request::Range(range) => vec![range.keys.key],
            Request::Txn(txn) => self.keys_of(txn),
            _ => Vec::new(),
        };
        match record {
            Record::Operation(operation) => {
                let results = operation.results.of(&self.recording.results).iter();
                let pairs = results.flat_map(|result| result.pairs.of(&self.recording.pairs));
                pairs.map(|pair| pair.key).chain(of_request(&operation.request)).collect()
            }
            Record::Watch(at) => vec![self.watch(*at).key],
            Record::Response(_, n) => {
                self.response(*n).events.of(&self.recording.events).iter().map(|event| event.key).collect()
            }
            Record::Event(.., e) => vec![self.event(*e).key],
            Record::Entry(entry) => of_request(&entry.request),
            Record::Stored(row) => vec![row.key],
        }
    }

    fn keys_of(&self, txn: Txn) -> Vec<Symbol> {
        let requests = &self.recording.requests;
        let steps = txn.success.of(&requests.steps).iter().chain(txn.failure.of(&requests.steps));
        let of_steps = steps.filter_map(|step| match step {
            Step::Put { key, .. } => Some(*key),
            Step::Delete(keys) => Some(keys.key),
            Step::Range(range) => Some(range.keys.key),
            Step::Txn(_) | Step::Nothing => None,
        });
        of_steps.chain(txn.conditions.of(&requests.conditions).iter().map(|c| c.keys.key)).collect()
    }

    /// The changes of an acknowledged write; `None` if its answer does not determine them.
    fn written(&self, operation: &Operation) -> Option<Vec<(Symbol, Option<ValueId>)>> {
        let Request::Txn(txn) = operation.request else { return None };
        if operation.outcome != Outcome::Answered {
            return None;
        }
        let steps = txn.taken(!operation.failure).of(&self.recording.requests.steps);
        let results = operation.results.of(&self.recording.results);
        let mut written = Vec::new();
        for (step, result) in steps.iter().zip(results) {
            match step {
                Step::Put { key, value, .. } => written.push((*key, Some(*value))),
                Step::Delete(keys) if result.deleted > 0 && keys.end.is_some() => return None,
                Step::Delete(keys) if result.deleted > 0 => written.push((keys.key, None)),
                Step::Txn(_) | Step::Nothing => return None,
                _ => {}
            }
        }
        (steps.len() == results.len()).then_some(written)
    }

    /// The content that a record shows for a key at a revision, if it shows one.
    fn content(&self, record: &Record<'r>, key: Symbol, revision: i64) -> Option<Option<ValueId>> {
        self.contents(record, key, revision).first().copied()
    }

    /// The values in an answer for a key at a revision.
    fn found(&self, operation: &'r Operation, key: Symbol, revision: i64) -> impl Iterator<Item = ValueId> {
        let steps = match operation.request {
            Request::Txn(txn) => txn.taken(!operation.failure).of(&self.recording.requests.steps),
            _ => &[],
        };
        let keys_only = move |at: usize| match (operation.request, steps.get(at)) {
            (Request::Range(range), _) => range.keys_only,
            (_, Some(Step::Range(range))) => range.keys_only,
            _ => false,
        };
        let results = operation.results.of(&self.recording.results).iter().enumerate();
        let shown = results.filter(move |(at, _)| !keys_only(*at)).map(|(_, result)| result);
        let pairs = shown.flat_map(|result| result.pairs.of(&self.recording.pairs));
        pairs.filter(move |pair| (pair.key, pair.revision) == (key, revision)).map(|pair| pair.value)
    }

    /// All contents that a record shows for a key at a revision. One answer may show it twice.
    fn contents(&self, record: &Record<'r>, key: Symbol, revision: i64) -> Vec<Option<ValueId>> {
        match record {
            Record::Operation(operation) => {
                let written = self.written(operation).filter(|_| operation.revision == revision).unwrap_or_default();
                let own = written.into_iter().rfind(|(of, _)| *of == key).map(|(_, value)| value);
                own.into_iter().chain(self.found(operation, key, revision).map(Some)).collect()
            }
            Record::Event(.., e) => {
                let event = self.event(*e);
                let shown = (event.key, event.revision) == (key, revision);
                shown.then_some((!event.delete).then_some(event.value)).into_iter().collect()
            }
            Record::Stored(row) => {
                let shown = (row.key, row.main) == (key, revision);
                shown.then_some((!row.tombstone).then_some(row.value)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The position in the revision order that a record proves to be reached, and the time by which it was. Each revision has
    /// four positions: the write, then evidence of it, then answers after it.
    fn reached(&self, record: &Record<'r>) -> Option<(i64, Time)> {
        match record {
            Record::Operation(operation) if operation.returned.is_known() => {
                let place = match operation.request {
                    Request::Compact { revision } => revision.checked_mul(4)?.checked_add(1)?,
                    // A serializable read proves only that the revision exists.
                    Request::Range(range) if range.serializable => operation.revision.checked_mul(4)?.checked_add(1)?,
                    _ => self.place(operation)?,
                };
                (operation.outcome == Outcome::Answered).then_some((place, operation.returned))
            }
            Record::Event(_, n, _) | Record::Response(_, n) => {
                let response = self.response(*n);
                let events = response.events.of(&self.recording.events).iter().map(|event| event.revision);
                let highest = events.chain(response.progress.then_some(response.revision)).max()?;
                Some((highest.checked_mul(4)?.checked_add(1)?, response.time))
            }
            _ => None,
        }
    }

    /// The only position that an answer allows, or the highest one.
    fn place(&self, operation: &Operation) -> Option<i64> {
        let write = |revision: i64| revision.checked_mul(4);
        match (operation.outcome, operation.request) {
            (Outcome::Future, Request::Range(range)) => write(range.revision)?.checked_sub(1),
            (Outcome::Future, Request::Compact { revision }) => write(revision)?.checked_sub(1),
            (Outcome::Answered, Request::Range(range)) if !range.serializable => {
                write(operation.revision)?.checked_add(2)
            }
            (Outcome::Answered, Request::LeaseGrant { .. }) => write(operation.revision)?.checked_add(2),
            (Outcome::Answered, Request::Txn(_)) => {
                let wrote = !self.written(operation)?.is_empty();
                write(operation.revision)?.checked_add(if wrote { 0 } else { 2 })
            }
            _ => None,
        }
    }

    fn is_about(&self, watch: &Watch, key: Symbol) -> bool {
        let (first, key) = (self.recording.texts.get(watch.key), self.recording.texts.get(key));
        match watch.end.is_some().then(|| self.recording.texts.get(watch.end)) {
            _ if watch.prefix => key.starts_with(first),
            None => key == first,
            Some(end) => key >= first && (end == "\0" || key < end),
        }
    }

    /// Whether facts contradict each other by the definition of their rule; `None` if that needs more than these facts.
    fn contradict(&self, rule: &str, facts: &[Cited<'r>]) -> Option<bool> {
        let records: Vec<Record<'r>> = facts.iter().map(|fact| fact.record).collect();
        match (rule, &records[..]) {
            ("revision-reuse", [Record::Operation(a), Record::Operation(b)]) => {
                let of_a = self.written(a).filter(|written| !written.is_empty())?;
                let writes = self.written(b).is_some_and(|written| !written.is_empty());
                if writes && a.revision == b.revision && a.position != b.position {
                    return Some(true);
                }
                // The content found at this revision belongs to another key.
                let shown = facts[1].key.filter(|key| self.content(&records[1], *key, a.revision).is_some());
                match shown {
                    Some(key) => Some(of_a.iter().all(|(other, _)| *other != key)),
                    None => writes.then_some(false),
                }
            }
            ("revision-reuse", [Record::Operation(a), Record::Event(.., e)]) => {
                let (written, event) = (self.written(a)?, self.event(*e));
                Some(a.revision == event.revision && written.iter().all(|(key, _)| *key != event.key))
            }
            ("revision-rewind" | "stale-consistent-read", [earlier, Record::Operation(later)]) => {
                let same = matches!(earlier, Record::Operation(earlier) if earlier.position == later.position);
                let (place, by) = self.reached(earlier).filter(|_| !same)?;
                Some(by < later.call && self.place(later)? < place)
            }
            ("split-timeline", [Record::Stored(a), Record::Stored(b)]) => {
                let differ = a.key != b.key
                    || (a.tombstone, a.create_revision, a.version, a.lease)
                        != (b.tombstone, b.create_revision, b.version, b.lease)
                    || self.recording.values.same(a.value, b.value) == Some(false);
                // A revision that one of them lacks is shown by all its rows.
                ((a.main, a.sub) == (b.main, b.sub) && differ).then_some(true)
            }
            ("split-timeline", [a, b]) => {
                let (key, revision) = (facts[1].key?, facts[0].revision);
                let differ = |(a, b): (&Option<ValueId>, &Option<ValueId>)| match (a, b) {
                    (Some(a), Some(b)) => self.recording.values.same(*a, *b).map(|same| !same),
                    (a, b) => Some(a != b),
                };
                let (a, b) = (self.contents(a, key, revision), self.contents(b, key, revision));
                let all: Vec<Option<bool>> = a.iter().flat_map(|a| b.iter().map(move |b| (a, b))).map(differ).collect();
                match all.contains(&Some(true)) {
                    true => Some(true),
                    false => (!all.is_empty() && !all.contains(&None)).then_some(false),
                }
            }
            ("linearizability", [Record::Operation(asked), Record::Operation(read)])
                if asked.position == read.position =>
            {
                self.is_incoherent(read).then_some(true)
            }
            ("linearizability", [version, Record::Operation(read)]) => {
                let (key, revision) = (facts[0].key?, facts[0].revision);
                let Request::Range(range) = read.request else { return None };
                let at = if range.revision > 0 { range.revision } else { read.revision };
                let results = read.results.of(&self.recording.results).iter();
                let mut pairs = results.flat_map(|result| result.pairs.of(&self.recording.pairs));
                let found = pairs.find(|pair| pair.key == key)?;
                let changed = self.content(version, key, revision).is_some() && revision <= at;
                (changed && found.revision < revision).then_some(true)
            }
            ("watch-duplicate", [Record::Watch(watch), Record::Event(a, _, before), Record::Event(b, _, again)]) => {
                let (one, other) = (self.event(*before), self.event(*again));
                let same = (one.key, one.revision) == (other.key, other.revision);
                Some(a == watch && b == watch && before != again && same)
            }
            ("watch-reorder", [Record::Watch(watch), Record::Event(a, _, before), Record::Event(b, _, later)]) => {
                let falls = self.event(*later).revision < self.event(*before).revision;
                Some(a == watch && b == watch && before < later && falls)
            }
            ("watch-prehistory", [Record::Watch(watch), Record::Event(a, _, e)]) => {
                let from = self.watch(*watch).revision;
                // A store begins at revision 1.
                Some(a == watch && self.event(*e).revision < from.max(2))
            }
            ("watch-type" | "watch-prev-value", [Record::Watch(watch), Record::Event(a, _, e)]) => {
                (a == watch && contradicts_itself(self.event(*e))).then_some(true)
            }
            ("watch-filter", [Record::Watch(watch), Record::Event(a, _, e)]) => {
                Some(a == watch && !self.is_about(self.watch(*watch), self.event(*e).key))
            }
            ("watch-split", [Record::Watch(watch), Record::Event(a, n, e), other]) => {
                let (key, revision) = (facts[2].key?, self.event(*e).revision);
                self.content(other, key, revision)?;
                let apart = match other {
                    Record::Event(b, m, _) if a == b => n != m,
                    _ => {
                        let mut events = self.response(*n).events.of(&self.recording.events).iter();
                        !events.any(|event| (event.key, event.revision) == (key, revision))
                    }
                };
                // Deliveries of one response may still be in a wrong order.
                (a == watch && self.is_about(self.watch(*watch), key) && apart).then_some(true)
            }
            ("watch-gap", [Record::Watch(watch), .., past]) if facts.len() >= 3 => {
                let missing = &facts[facts.len() - 2];
                self.is_gap(*watch, facts, missing, past)
            }
            ("watch-before-write", [delivered, Record::Operation(write)]) => {
                let (place, by) = self.reached(delivered)?;
                let first = write.revision.checked_mul(4)?;
                Some(by < write.call && !self.written(write)?.is_empty() && first <= place)
            }
            ("false-progress", [claim, against]) => self.is_false_progress(claim, against),
            _ => None,
        }
    }

    /// Whether the result of a read contradicts itself: keys out of order, too few or too many keys, or impossible versions.
    fn is_incoherent(&self, read: &Operation) -> bool {
        let (Request::Range(range), [result]) = (read.request, read.results.of(&self.recording.results)) else {
            return false;
        };
        let pairs = result.pairs.of(&self.recording.pairs);
        let names: Vec<&str> = pairs.iter().map(|pair| self.recording.texts.get(pair.key)).collect();
        let as_text = !names.iter().any(|name| name.contains(char::REPLACEMENT_CHARACTER));
        let most = if range.limit > 0 { result.count.min(range.limit) } else { result.count };
        let miscounted =
            !range.count_only && pairs.len() as i64 != most || !range.keys.end.is_some() && result.count > 1;
        miscounted
            || as_text && !range.sorted && !names.is_sorted()
            || pairs.iter().any(|pair| pair.version < 0 || pair.revision > 0 && pair.version >= pair.revision)
    }

    fn is_gap(&self, at: u32, facts: &[Cited<'r>], missing: &Cited<'r>, past: &Record<'r>) -> Option<bool> {
        let (key, revision) = (missing.key?, missing.revision);
        self.content(&missing.record, key, revision)?;
        let watch = self.watch(at);
        let before = facts[1..facts.len() - 2].iter().find_map(|fact| match fact.record {
            Record::Event(of, _, e) if of == at => Some(self.event(e).revision),
            _ => None,
        });
        let begun = if watch.revision > 0 { Some(watch.revision) } else { before };
        let went_past = match past {
            Record::Event(of, _, e) => *of == at && self.event(*e).revision > revision,
            Record::Response(of, n) => {
                *of == at && self.response(*n).progress && self.response(*n).revision >= revision
            }
            _ => return None,
        };
        let responses = watch.responses.of(&self.recording.responses).iter();
        let mut events = responses.flat_map(|response| response.events.of(&self.recording.events));
        let came = events.any(|event| (event.key, event.revision) == (key, revision));
        Some(begun? <= revision && went_past && !came && self.is_about(watch, key))
    }

    fn is_false_progress(&self, claim: &Record<'r>, against: &Record<'r>) -> Option<bool> {
        match (claim, against) {
            (Record::Watch(at), Record::Response(of, n)) => {
                let from = self.watch(*at).revision;
                Some(at == of && self.response(*n).progress && self.response(*n).revision < from)
            }
            // A response with a lower store revision than its event.
            (Record::Response(a, n), Record::Event(b, m, e)) if !self.response(*n).progress => {
                Some(a == b && n == m && self.response(*n).revision < self.event(*e).revision)
            }
            (Record::Response(a, n), Record::Event(b, m, e)) => {
                let progress = self.response(*n);
                Some(a == b && n <= m && progress.progress && self.event(*e).revision <= progress.revision)
            }
            (Record::Event(a, n, e), Record::Response(b, m)) => {
                let progress = self.response(*m);
                Some(a == b && n <= m && progress.progress && self.event(*e).revision > progress.revision)
            }
            (Record::Response(a, n), Record::Response(b, m)) => {
                let both = self.response(*n).progress && self.response(*m).progress;
                Some(a == b && n < m && both && self.response(*m).revision < self.response(*n).revision)
            }
            _ => None,
        }
    }
}

/// Whether no store can produce an event: a delete with a value or a creation mark, a creation with a previous value, or a
/// previous revision that is not lower.
fn contradicts_itself(event: &Event) -> bool {
    let of_removal = event.delete && (event.value != ValueId::default() || event.create);
    let past = |previous: &Previous| {
        let known = previous.revision != 0;
        let too_late = previous.revision >= event.revision || previous.revision < 2;
        event.create || known && (too_late || previous.version < 0 || previous.version >= previous.revision)
    };
    of_removal || event.previous.as_ref().is_some_and(past)
}
