//! The results of invariants as findings. Input: tallies. Output: findings, and undecided obligations by reason. Names of
//! invariants in reasons are bounded by `MAX_NAMED`.

use crate::check::facts::catalog::CROWDED;
use crate::check::invariants::declared::case::{Failure, Place, Tally};
use crate::check::{BrokenBy, Draft, Evidence, Fact, Kind, RuleResult};
use crate::history::{IncarnationId, OperationId, ResourceId, Revision};
use crate::ingest::fields::Path;
use crate::model::declaration::{Invariant, Scope, Severity};
use crate::order::Version;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

/// Upper bounds on the values of an object in a fact, and on the characters of each value.
const MAX_VALUES: usize = 4;
const MAX_CHARACTERS: usize = 60;

/// Upper bound on the invariants that are named with their undecided obligations. Those of the others are counted together.
const MAX_NAMED: usize = 100;
const OTHERS: &str = "other invariants";

/// States the results of invariants.
pub struct InvariantReporter<'e, 'h> {
    evidence: &'e Evidence<'h>,
    named: usize,
    /// The first list of a resource with a revision.
    lists: OnceCell<FxHashMap<(ResourceId, Revision), OperationId>>,
}

impl<'e, 'h> InvariantReporter<'e, 'h> {
    /// A reporter without results.
    pub fn new(evidence: &'e Evidence<'h>) -> InvariantReporter<'e, 'h> {
        InvariantReporter { evidence, named: 0, lists: OnceCell::new() }
    }

    /// States the result of an invariant.
    pub fn report(&mut self, result: &mut RuleResult<'_>, invariant: &Invariant, tally: &Tally) {
        result.checked_many(IncarnationId::NONE, tally.checked);
        let failed: u64 = tally.failed.values().sum();
        let is_idle = tally.checked == 0 && failed == 0 && tally.unseen.is_empty() && tally.given_up != Some(CROWDED);
        let is_undecided = is_idle || failed > 0 || !tally.unseen.is_empty();
        let is_named = self.named < MAX_NAMED;
        self.named += usize::from(is_undecided);
        let name = if is_named { invariant.name.as_str() } else { OTHERS };
        for (&reason, &count) in &tally.unseen {
            result.undecided_many(format!("{reason} ({name})"), count);
        }
        if let Some((reason, count)) = tally.failed.iter().max_by_key(|(_, count)| **count) {
            let (name, place, of) = (&invariant.name, &invariant.place, failed + tally.checked);
            match is_named {
                true => result.undecided_many(format!("{name}: {reason}"), *count),
                false => result.undecided_many(format!("{OTHERS}: evaluations that failed"), *count),
            }
            result.open.get_or_insert_with(|| {
                format!("invariant {name} ({place}) failed in {failed} of {of} evaluations: {reason}")
            });
        }
        if let Some(why) = tally.given_up {
            let (name, place) = (&invariant.name, &invariant.place);
            result.open.get_or_insert_with(|| format!("invariant {name} ({place}) was given up: {why}"));
            if why == CROWDED {
                result.undecided("invariants beyond those that one run looks at");
            }
        }
        if is_idle {
            match is_named {
                true => result.undecided(format!("no object of {} is in the evidence ({name})", invariant.resource)),
                false => result.undecided(format!("no object of its resource is in the evidence ({OTHERS})")),
            }
        }
        for failure in &tally.failures {
            if result.lists(kind(invariant, failure)) {
                result.found(self.draft(invariant, failure));
            }
        }
        result.unlisted(tally.unlisted);
    }

    fn draft(&self, invariant: &Invariant, failure: &Failure) -> Draft {
        draft(self.evidence, invariant, failure, |list| self.list_fact(failure, list))
    }

    fn list_fact(&self, failure: &Failure, list: Revision) -> Option<Fact> {
        let Place::Group(resource, _) = failure.of else { return None };
        let evidence = self.evidence;
        let lists = self.lists.get_or_init(|| {
            let mut lists = FxHashMap::default();
            for (id, o) in evidence.operations() {
                let Some(scope) = evidence.history.scopes.get(o.scope.index()) else { continue };
                if let Some((revision, _)) = evidence.order.list_revision(evidence.history, id) {
                    lists.entry((scope.resource, revision)).or_insert(id);
                }
            }
            lists
        });
        let id = *lists.get(&(resource, list))?;
        Some(evidence.operation(id, list, format!("all {} were listed", evidence.history.resource_name(resource))))
    }
}

fn kind(invariant: &Invariant, failure: &Failure) -> Kind {
    match (failure.is_certain, invariant.severity) {
        (false, _) => Kind::Suspect,
        (true, Severity::Violation) => Kind::Violation,
        (true, Severity::Hazard) => Kind::Hazard,
    }
}

fn draft(
    evidence: &Evidence<'_>,
    invariant: &Invariant,
    failure: &Failure,
    list_fact: impl Fn(Revision) -> Option<Fact>,
) -> Draft {
    let writer = began_by(failure).map(|version| version.writer).filter(|writer| writer.is_some());
    let incarnation = writer.map_or(IncarnationId::NONE, |writer| evidence.history.operation(writer).incarnation);
    let kind = kind(invariant, failure);
    let of = place_words(evidence, invariant, failure);
    let says = failure.message.as_deref().unwrap_or(&invariant.title);
    let mut reason =
        format!("{} ({}) requires: {}", invariant.name, invariant.place, one_line(invariant.expression.text()));
    if let Some(list) = failure.complete {
        reason += &format!(
            ". All objects are known: a list of revision {list} shows them, and later evidence shows every change."
        );
    }
    if !failure.is_certain {
        reason += ". Not proved: nothing shows that no other version lies between these two.";
    }
    Draft {
        kind,
        broken_by: BrokenBy::Client,
        incarnation,
        key: began_by(failure).map_or_else(Default::default, |version| version.key),
        cause: invariant.name.clone(),
        summary: format!("{} is false of {of}{}: {says}", invariant.name, time_words(evidence, failure)),
        facts: facts(evidence, invariant, failure, list_fact),
        reason,
        refuted_by: match (invariant.scope, failure.is_certain) {
            (Scope::Object, _) => "another content of that version".to_owned(),
            (Scope::Transition, true) => "another content of one of the two versions".to_owned(),
            (Scope::Transition, false) => {
                "a version between the two, such that each change keeps the invariant".to_owned()
            }
            (Scope::Live, _) => "a change or an end of one of these objects before that revision".to_owned(),
        },
        consequence: String::new(),
    }
}

/// The version that made it false.
fn began_by(failure: &Failure) -> Option<&Version> {
    match failure.of {
        Place::Key(_) => failure.versions.iter().find(|version| version.revision == failure.from),
        Place::Group(..) => failure.versions.iter().max_by_key(|version| version.revision),
    }
}

fn place_words(evidence: &Evidence<'_>, invariant: &Invariant, failure: &Failure) -> String {
    match &failure.of {
        Place::Key(key) => evidence.history.key_name(*key),
        Place::Group(resource, values) => {
            let named = invariant.per.iter().zip(values).map(|(path, value)| format!("{path} {}", shortened(value)));
            let with: Vec<String> = named.collect();
            let resource = evidence.history.resource_name(*resource);
            if with.is_empty() { format!("the {resource}") } else { format!("the {resource} with {}", with.join(", ")) }
        }
    }
}

/// The interval in which it was false, in words.
fn time_words(evidence: &Evidence<'_>, failure: &Failure) -> String {
    let is_change = matches!(failure.of, Place::Key(_))
        && failure.versions.len() == 2
        && failure.versions[1].revision == failure.from;
    if is_change {
        return format!(" at revision {}", failure.from);
    }
    let Some(ended) = failure.ended else {
        return match failure.through == failure.from {
            true => format!(" at revision {}", failure.from),
            false => format!(" from revision {} at least through {}", failure.from, failure.through),
        };
    };
    let length = began_by(failure).and_then(|began| {
        let (from, to) = (began.moment(evidence.history), ended.moment(evidence.history));
        let both = from.1 == to.1 && from.1.is_some() && from.0.is_known() && to.0.is_known();
        both.then(|| to.0.since(from.0)).filter(|length| *length >= 0)
    });
    let length = length.map_or(String::new(), |length| format!(" ({})", duration(length)));
    format!(" from revision {} through {}{length}", failure.from, failure.through)
}

/// A duration in nanoseconds, in words.
fn duration(length: i64) -> String {
    match length {
        ..1_000_000_000 => format!("{} ms", length / 1_000_000),
        1_000_000_000..120_000_000_000 => format!("{}.{} s", length / 1_000_000_000, length / 100_000_000 % 10),
        _ => format!("{} min", length / 60_000_000_000),
    }
}

fn facts(
    evidence: &Evidence<'_>,
    invariant: &Invariant,
    failure: &Failure,
    list_fact: impl Fn(Revision) -> Option<Fact>,
) -> Vec<Fact> {
    let name = &invariant.name;
    let mut facts = Vec::new();
    if let Some(before) = &failure.before {
        facts.push(evidence.version(before, format!("{name} was true: {}", values(evidence, invariant, before))));
    }
    for version in &failure.versions {
        let says = values(evidence, invariant, version);
        facts.push(evidence.version(version, says));
    }
    if let Some(list) = failure.complete
        && facts.len() < 4
        && let Some(fact) = list_fact(list)
    {
        facts.push(fact);
    }
    if let Some(ended) = failure.ended.as_ref().filter(|_| facts.len() < 5) {
        let says = match ended.change.lives() {
            Some(false) => format!("{} ended", evidence.history.key_name(ended.key)),
            _ => format!("it was true again: {}", values(evidence, invariant, ended)),
        };
        facts.push(evidence.version(ended, says));
    }
    if let [only] = facts.as_slice()
        && only.operation.is_some()
    {
        // Only the request is known.
        let says = format!("{} was sent", evidence.history.request_name(&evidence.history.operation(only.operation)));
        let asked = evidence.request(only.operation, Revision::NONE, says);
        facts.insert(0, asked);
    }
    facts
}

/// The values of an object that the invariant reads, in words.
fn values(evidence: &Evidence<'_>, invariant: &Invariant, version: &Version) -> String {
    let name = evidence.version_words(version.key, version.uid, version.revision);
    let declared = evidence.history.declared(version.key, version.uid, version.attributes);
    let mut paths: Vec<&Path> = invariant.per.iter().chain(invariant.expression.paths()).collect();
    paths.dedup();
    let value = |path: &&Path| {
        let text = declared.and_then(|declared| declared.shown(path));
        text.map(|text| format!("{path} = {}", shortened(&text)))
    };
    let values: Vec<String> = paths.iter().filter_map(value).take(MAX_VALUES).collect();
    if values.is_empty() { format!("{name} was current") } else { format!("{name} had {}", values.join(", ")) }
}

fn shortened(text: &str) -> String {
    let short: String = text.chars().take(MAX_CHARACTERS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

/// An expression on one line, cut to 200 characters.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() > 200 { line.chars().take(200).chain(['…']).collect() } else { line }
}
