//! Values with one holder at a time. Input: declared allocations and bindings, as [`Holdings`]. Output: findings for two
//! objects that certainly, or possibly, held one value at one revision. Invariant: only resources of one counter are compared.
//! Ranges overlap; texts are compared for equality.

use crate::check::facts::catalog::ScanBudget;
use crate::check::facts::cross_counter::Place;
use crate::check::facts::version_validity::VersionValidity;
use crate::check::invariants::allocations::{AllocatedValue, End, Hold, Holdings, holdings, words};
use crate::check::{BrokenBy, Draft, Evidence, Fact, Kind, RuleResult};
use crate::history::{IncarnationId, KeyId, Resource, ResourceId, Revision, Symbol};
use crate::model::declaration::{Allocation, Path, READINESS};
use crate::order::Version;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Upper bound on the holders of one value that are compared with a new one, the latest first.
const MAX_COMPARED: usize = 64;

/// Upper bound on the pairs of overlapping ranges that are examined in one space. Ranges of a healthy cluster do not overlap.
const MAX_PAIRS: usize = 1 << 22;

/// The holds of one allocation by objects of one resource.
struct Part<'d> {
    allocation: &'d Allocation,
    resource: ResourceId,
    holdings: Holdings,
}

/// One hold, with its allocation.
#[derive(Clone, Copy)]
struct Claim<'p, 'd> {
    part: &'p Part<'d>,
    hold: &'p Hold,
}

/// Judges the allocations that are bindings, or those that are none.
pub fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, binds: bool) {
    let history = evidence.history;
    let validity = VersionValidity::derive(evidence);
    // Values exclude each other inside one space. A declaration without an API group has one space per group.
    let mut spaces: BTreeMap<(&str, &str), Vec<Part<'_>>> = BTreeMap::new();
    let declared = &evidence.options.declarations.allocations;
    let mut scan_budget = ScanBudget::of(evidence);
    // Records of allocators are needed to judge fields that are updated after them.
    for allocation in declared.iter().filter(|allocation| allocation.binds == binds) {
        for resource in evidence.resources_named(&allocation.resource) {
            if !scan_budget.take(evidence, resource) {
                result.crowded();
                continue;
            }
            let holdings = holdings(evidence, &validity, allocation, resource);
            let own = || history.name(history.resources[resource.index()].group);
            let group = if allocation.resource.group.is_some() { "" } else { own() };
            spaces.entry((&allocation.space, group)).or_default().push(Part { allocation, resource, holdings });
        }
    }
    let records = Records::of(&spaces);
    let (nodes, removed_by) = (nodes(evidence), RefCell::default());
    let judge = Judge { evidence, validity: &validity, records: &records, nodes, removed_by };
    for parts in spaces.values() {
        let mut claims: Vec<Claim<'_, '_>> =
            parts.iter().flat_map(|part| part.holdings.holds.iter().map(move |hold| Claim { part, hold })).collect();
        result.checked_many(IncarnationId::NONE, claims.len() as u64);
        claims.sort_by(|a, b| (&a.hold.value, a.from(), a.hold.key).cmp(&(&b.hold.value, b.from(), b.hold.key)));
        let mut reported = FxHashSet::default();
        for (one, other) in pairs(&claims, result) {
            let (one, other) = if other.from() < one.from() { (other, one) } else { (one, other) };
            let holders = (&one.hold.holder, &other.hold.holder);
            if one.hold.holder != other.hold.holder
                && history.share_counter(one.part.resource, other.part.resource)
                && !reported.contains(&(&one.hold.value, holders))
                && judge.pair(result, one, other)
            {
                reported.insert((&one.hold.value, holders));
            }
        }
    }
}

/// Claims with values that exclude each other and intervals that may overlap. The claims are sorted by value, then by
/// revision.
fn pairs<'p, 'd>(claims: &[Claim<'p, 'd>], result: &mut RuleResult<'_>) -> Vec<(Claim<'p, 'd>, Claim<'p, 'd>)> {
    let mut found = Vec::new();
    let mut open: Vec<Claim<'p, 'd>> = Vec::new();
    let mut compared = 0;
    for &claim in claims {
        match claim.hold.value {
            AllocatedValue::Text(_) => {
                open.retain(|other| other.hold.value == claim.hold.value && other.through() >= claim.from());
                let latest = open.len().saturating_sub(MAX_COMPARED);
                found.extend(open[latest..].iter().map(|&other| (other, claim)));
            }
            AllocatedValue::Range(six, first, _) => {
                open.retain(|other| match other.hold.value {
                    AllocatedValue::Range(of_six, _, last) => of_six == six && last >= first,
                    AllocatedValue::Text(_) => false,
                });
                compared += open.len();
                if compared > MAX_PAIRS {
                    result.undecided("more overlapping ranges than one run looks at");
                    return found;
                }
                let at_one_time =
                    |other: &&Claim<'_, '_>| other.through() >= claim.from() && claim.through() >= other.from();
                found.extend(open.iter().filter(at_one_time).map(|&other| (other, claim)));
            }
        }
        open.push(claim);
    }
    found
}

impl<'p, 'd> Claim<'p, 'd> {
    fn from(&self) -> Revision {
        self.part.holdings.from(self.hold)
    }

    fn through(&self) -> Revision {
        self.part.holdings.through(self.hold)
    }

    /// The first revision at which both claims certainly exist.
    fn meets(&self, other: &Claim<'p, 'd>) -> Option<Revision> {
        let mine = self.part.holdings.versions(self.hold).iter();
        let theirs = other.part.holdings.versions(other.hold).iter();
        let (mut mine, mut theirs) = (mine.peekable(), theirs.peekable());
        while let (Some(a), Some(b)) = (mine.peek(), theirs.peek()) {
            let begun = a.version.revision.max(b.version.revision);
            if begun <= a.through.min(b.through) {
                return Some(begun);
            }
            if a.through < b.through {
                mine.next()
            } else {
                theirs.next()
            };
        }
        None
    }

    /// The object as allocators write it: `NAMESPACE/NAME`.
    fn path(&self, evidence: &Evidence<'_>) -> String {
        crate::check::facts::live_keys::path(evidence, self.hold.key)
    }
}

/// The records of allocators, by allocation, value and holder.
struct Records<'p, 'd>(FxHashMap<(&'d str, &'p AllocatedValue, &'p str), Vec<Claim<'p, 'd>>>);

/// The state of a holder's record at a revision.
enum Record<'p, 'd> {
    /// The record exists.
    Exists(Claim<'p, 'd>),
    /// The record had ended before the holder first showed the value.
    Gone(Claim<'p, 'd>),
    /// The record ended while the holder showed the value, so the field is only stale.
    Released,
    /// The evidence leaves it open.
    Open,
    /// There never was a record.
    Missing,
}

impl<'p, 'd> Records<'p, 'd> {
    fn of(spaces: &'p BTreeMap<(&str, &str), Vec<Part<'d>>>) -> Records<'p, 'd> {
        let parts = || spaces.values().flatten();
        let named: FxHashSet<&str> = parts().filter_map(|part| part.allocation.record.as_deref()).collect();
        let mut all: FxHashMap<_, Vec<Claim<'p, 'd>>> = FxHashMap::default();
        for part in parts().filter(|part| named.contains(part.allocation.name.as_str())) {
            for hold in &part.holdings.holds {
                let at = (part.allocation.name.as_str(), &hold.value, hold.holder.as_str());
                all.entry(at).or_default().push(Claim { part, hold });
            }
        }
        Records(all)
    }

    /// The state of a claim's record while another claim is made.
    fn state_of(&self, evidence: &Evidence<'_>, claim: &Claim<'p, 'd>, met: &Version) -> Option<Record<'p, 'd>> {
        let name = claim.part.allocation.record.as_deref()?;
        let path = claim.path(evidence);
        let holders = [path.as_str(), claim.hold.holder.as_str()];
        let shown = claim.part.holdings.versions(claim.hold)[0].version;
        let mut state = Record::Missing;
        for &record in holders.iter().filter_map(|&holder| self.0.get(&(name, &claim.hold.value, holder))).flatten() {
            let (holdings, hold) = (&record.part.holdings, record.hold);
            let place = Place::of_version(evidence, met, record.part.resource);
            let first = Place::of_version(evidence, &shown, record.part.resource);
            let over = |place: &Place| holdings.had_ended(hold, place.from) == Some(true);
            let before_claim = over(&first) || hold.ended_before(evidence, shown.writer);
            let exists = record.from() <= place.from
                && place.through.is_some_and(|through| holdings.had_ended(hold, through) == Some(false));
            match () {
                () if exists => return Some(Record::Exists(record)),
                () if before_claim => state = Record::Gone(record),
                () if over(&place) || hold.ended_before(evidence, met.writer) => return Some(Record::Released),
                () => return Some(Record::Open),
            }
        }
        Some(state)
    }
}

/// The nodes of a history, by name.
fn nodes(evidence: &Evidence<'_>) -> FxHashMap<Symbol, KeyId> {
    let history = evidence.history;
    let is_node = |resource: &Resource| (history.name(resource.plural), history.name(resource.group)) == ("nodes", "");
    let Some(nodes) = history.resources.iter().position(is_node) else { return FxHashMap::default() };
    let keys = history.keys.iter().enumerate().filter(|(_, key)| key.resource.index() == nodes);
    keys.map(|(index, key)| (key.name, KeyId(index as u32))).collect()
}

fn is_unready(evidence: &Evidence<'_>, node: &Version) -> bool {
    let declared = evidence.history.declared(node.key, node.uid, node.attributes);
    let paths = READINESS.map(|path| Path::parse(path).ok());
    let [Some(kind), Some(status)] = &paths else { return false };
    let rows = declared.and_then(|declared| declared.rows(&[kind, status]));
    let says_not = |row: &Vec<Option<String>>| {
        row[0].as_deref() == Some("Ready") && row[1].as_deref().is_some_and(|status| status != "True")
    };
    rows.is_some_and(|rows| rows.iter().any(says_not))
}

struct Judge<'p, 'h, 'd> {
    evidence: &'p Evidence<'h>,
    validity: &'p VersionValidity<'h>,
    records: &'p Records<'p, 'd>,
    nodes: FxHashMap<Symbol, KeyId>,
    removed_by: RefCell<RemovalBounds>,
}

/// Per node, the uid of its last known life (`None`: no life is known) and a resource: the lowest revision of the resource that
/// was certainly written after a removal of the node was answered.
type RemovalBounds = FxHashMap<(KeyId, Option<Symbol>, ResourceId), Option<Revision>>;

impl<'p, 'h, 'd> Judge<'p, 'h, 'd> {
    /// Judges two claims; `one` began first. Returns whether it stated a finding.
    fn pair(&self, result: &mut RuleResult<'_>, one: Claim<'p, 'd>, other: Claim<'p, 'd>) -> bool {
        let evidence = self.evidence;
        let met = one.meets(&other);
        let revision = met.unwrap_or(other.from());
        // The meeting begins with a version of one of the two.
        let at = |claim: &Claim<'p, 'd>| {
            claim.part.holdings.versions(claim.hold).iter().find(|s| s.version.revision == revision)
        };
        let Some(meeting) = at(&other).or_else(|| at(&one)).map(|held| held.version) else { return false };
        let records = [&one, &other].map(|claim| self.records.state_of(evidence, claim, &meeting));
        if records.iter().any(|record| matches!(record, Some(Record::Released))) {
            return false;
        }
        // A value without a record may belong to another allocator, for another network or node.
        if records.iter().any(|record| matches!(record, Some(Record::Missing))) {
            result.undecided("values without an allocator's record for both holders");
            return false;
        }
        // A field that its node no longer updates says nothing about the current state.
        if [&one, &other].into_iter().any(|claim| self.is_left_behind(claim, revision)) {
            return false;
        }
        let what = &one.part.allocation.what;
        let value = words(&one.hold.value);
        let name = |claim: &Claim<'_, '_>| match claim.part.allocation.holder {
            None => evidence.history.key_name(claim.hold.key),
            Some(_) => format!("{} ({})", claim.hold.holder, evidence.history.key_name(claim.hold.key)),
        };
        let says = |claim: &Claim<'_, '_>| {
            format!("{} had {} {}", name(claim), claim.part.allocation.what, words(&claim.hold.value))
        };
        let mut facts = Vec::new();
        for claim in [&one, &other] {
            let versions = claim.part.holdings.versions(claim.hold);
            let at = claim.part.holdings.at(claim.hold, revision);
            let held = at.unwrap_or(&versions[0]);
            facts.push(evidence.version(&held.version, says(claim)));
            if held.version.revision == revision {
                continue;
            }
            match at {
                Some(held) => facts.extend(self.validity.fact(&held.version, held.proof)),
                None => facts.extend(versions.last().map(|last| evidence.version(&last.version, says(claim)))),
            }
        }
        let mut doubt = met
            .is_none()
            .then(|| format!("nothing shows {} at revision {revision}; it had the value before and after", name(&one)));
        if one.part.allocation.reported || other.part.allocation.reported {
            let late = format!("{what} is reported with a delay, so one of the two may have released it by then");
            doubt = doubt.or(Some(late));
        }
        match &records[0] {
            None => {}
            Some(Record::Exists(record)) => facts.insert(1, self.recorded(record)),
            Some(Record::Gone(record)) => facts.insert(0, self.gone(record)),
            Some(_) => {
                let missing = format!("nothing shows whether the allocator had taken {value} back from {}", name(&one));
                doubt = doubt.or(Some(missing));
            }
        }
        facts.truncate(5);
        let reason =
            format!("{what} {value} has one holder at a time, but at revision {revision} two existing objects have it");
        let writer = other.part.holdings.versions(other.hold)[0].version.writer;
        result.found(Draft {
            kind: if doubt.is_some() { Kind::Suspect } else { Kind::Violation },
            broken_by: BrokenBy::Client,
            incarnation: if writer.is_some() {
                evidence.history.operation(writer).incarnation
            } else {
                IncarnationId::NONE
            },
            key: other.hold.key,
            cause: one.part.allocation.name.clone(),
            summary: format!("{} and {} both had {what} {value} at revision {revision}", name(&one), name(&other)),
            facts,
            reason: match doubt {
                Some(doubt) => format!("{reason}. Not proved: {doubt}."),
                None => reason,
            },
            refuted_by: format!("a version of {} between the two that releases {what}", name(&one)),
            consequence: "requests for one of them reach the other, and a release by one takes the value from both"
                .to_owned(),
        });
        true
    }

    /// Whether a node reported the claim, and the node was gone or not ready at a revision.
    fn is_left_behind(&self, claim: &Claim<'p, 'd>, revision: Revision) -> bool {
        let (evidence, history) = (self.evidence, self.evidence.history);
        let Some(path) = &claim.part.allocation.node else { return false };
        let version = claim.part.holdings.versions(claim.hold)[0].version;
        let declared = history.declared(version.key, version.uid, version.attributes);
        let name = declared.and_then(|declared| history.names.find(&declared.text(path)?));
        let node = name.and_then(|name| self.nodes.get(&name));
        let Some(&node) = node else { return false };
        let last = evidence.order.timeline.at_or_before(node, revision);
        last.is_some_and(|node| node.change.lives() == Some(false) || is_unready(evidence, &node))
            || self.was_removed(node, last, claim.part.resource, revision)
    }

    /// Whether a removal at an unknown revision had certainly ended the last known life of a node at a revision of a resource: a
    /// write at that revision or below was sent after the removal was answered.
    fn was_removed(&self, node: KeyId, last: Option<Version>, resource: ResourceId, revision: Revision) -> bool {
        let (history, order) = (self.evidence.history, self.evidence.order);
        let uid = last.map(|last| last.uid);
        let mut bounds = self.removed_by.borrow_mut();
        let bound = bounds.entry((node, uid, resource)).or_insert_with(|| {
            let removals = match uid {
                Some(uid) => order.timeline.removals_of(node, uid),
                None => order.timeline.removals(node),
            };
            let later = removals.iter().filter(|removal| removal.uid.is_some()).filter_map(|removal| {
                let o = history.operation(removal.operation);
                order.watermarks.after_answer(history, &order.clocks, resource, &o)
            });
            later.map(|(revision, _)| revision).min()
        });
        bound.is_some_and(|bound| bound <= revision)
    }

    /// The existing record as a fact.
    fn recorded(&self, record: &Claim<'p, 'd>) -> Fact {
        let version = record.part.holdings.versions(record.hold)[0].version;
        let says = format!("the allocator recorded {} for {}", words(&record.hold.value), record.hold.holder);
        self.evidence.version(&version, says)
    }

    /// The end of a record as a fact.
    fn gone(&self, record: &Claim<'p, 'd>) -> Fact {
        let says = format!("the allocator took {} back from {}", words(&record.hold.value), record.hold.holder);
        match record.hold.end {
            End::By(version) => self.evidence.version(&version, says),
            End::Removed(removal) => self.evidence.operation(removal.operation, removal.after, says),
            End::Open => self.recorded(record),
        }
    }
}
