//! Input: the versions of each name. Output: findings for lives that these versions contradict: a life that continues after
//! its end, a life that begins twice, and two lives without a free revision between them. `identity-break` reports them. Trap:
//! a uid from the body of an update is a claim of the client and proves no life.

use crate::check::facts::commit_evidence;
use crate::check::writes::identity_break::adjacent;
use crate::check::{BrokenBy, Draft, Evidence, Fact, Kind, RuleResult};
use crate::history::resource::{is_aggregated, is_built_in};
use crate::history::{Deletion, IncarnationId, KeyId, ResourceId, Revision, Symbol};
use crate::order::{Change, Lifetime, Provenance, Version, Versions};
use rustc_hash::{FxHashMap, FxHashSet};

/// Versions for which two sources show two uids, without evidence which is right.
pub(in crate::check) type Open = FxHashSet<(KeyId, Revision)>;

/// The most revisions between two lives that are examined. Among more of them one is presumed free.
const MAX_REVISIONS: u128 = 32;

pub(in crate::check) fn check(evidence: &Evidence<'_>, open: &Open, result: &mut RuleResult<'_>) {
    let timeline = &evidence.order.timeline;
    let mut processes = timeline.processes(evidence.history);
    for key in (0..evidence.history.keys.len() as u32).map(KeyId) {
        let versions = timeline.versions(key);
        let of_key;
        (of_key, processes) = processes.split_at(versions.len());
        if versions.len() > 1 {
            Name { evidence, open, past: FxHashMap::default(), current: None }.judge(versions, of_key, result);
        }
    }
    of_two_names(evidence, result);
}

/// The known part of one life up to a version.
#[derive(Clone, Copy, Debug)]
struct Life {
    uid: Symbol,
    /// Its last known version.
    last: Option<Version>,
    /// The last version at which it left a selection. It may have been deleted then.
    left: Option<Version>,
    end: Option<Version>,
    /// A version that shows the creationTimestamp.
    created: Option<(Version, u32)>,
    /// The first version with a deletionTimestamp.
    ending: Option<Version>,
    /// Whether a finding was stated. One per life is enough.
    reported: bool,
}

impl Life {
    fn of(uid: Symbol) -> Life {
        Life { uid, last: None, left: None, end: None, created: None, ending: None, reported: false }
    }
}

/// The lives of one name, in the order of their versions.
struct Name<'e> {
    evidence: &'e Evidence<'e>,
    open: &'e Open,
    past: FxHashMap<Symbol, Life>,
    current: Option<Life>,
}

impl Name<'_> {
    fn judge(&mut self, versions: Versions<'_>, processes: &[IncarnationId], result: &mut RuleResult<'_>) {
        for (version, process) in versions.iter().zip(processes) {
            let uid = self.uid(&version);
            // A uid that only the body of an update names is a claim of its client.
            if !uid.is_some()
                || version.provenance == Provenance::Base
                || self.open.contains(&(version.key, version.revision))
            {
                continue;
            }
            let before = self.current.filter(|life| life.uid != uid);
            if self.current.is_none_or(|life| life.uid != uid) {
                let known = self.past.remove(&uid);
                if let Some(past) = self.current.replace(known.unwrap_or(Life::of(uid))) {
                    self.past.insert(past.uid, past);
                }
            }
            let Some(mut life) = self.current else { continue };
            match version.change.lives() {
                Some(true) => {
                    if !life.reported {
                        let by = (&version, *process);
                        life.reported = self.continues(&life, before, by, result) || self.keeps(&mut life, by, result);
                    }
                    life.last = Some(version);
                }
                Some(false) => life.end = life.end.or(Some(version)),
                None => life.left = Some(version),
            }
            self.current = Some(life);
        }
    }

    /// The uid of a version. A tombstone without a previous value has the uid from the answer of the request that left it.
    fn uid(&self, version: &Version) -> Symbol {
        let unnamed = version.change == Change::Deleted && !version.uid.is_some() && version.writer.is_some();
        if unnamed { self.evidence.history.operation(version.writer).answer_uid } else { version.uid }
    }

    /// Compares one version of a life, with its process, with the versions before it. Returns whether it stated a finding.
    fn continues(
        &self,
        life: &Life,
        before: Option<Life>,
        (version, process): (&Version, IncarnationId),
        result: &mut RuleResult<'_>,
    ) -> bool {
        if let Some(end) = &life.end {
            result.checked(process);
            self.after_its_end(end, version, result);
            return true;
        }
        if let Some(earlier) = life.last.or(life.left).filter(|_| is_made_by(self.evidence, version)) {
            result.checked(process);
            second_birth(self.evidence, &earlier, version, result);
            return true;
        }
        let Some((before, last)) = before.and_then(|before| Some((before, before.last?))) else { return false };
        if life.last.is_some() {
            return false;
        }
        result.checked(process);
        let full = self.taken_between(&before, &last, version);
        // A change on the base of a version with another uid is reported as that.
        let stands = commit_evidence::is_update(self.evidence, version) && adjacent(self.evidence, &last, version);
        if let Some(taken) = full.filter(|_| !stands) {
            no_room(self.evidence, [&last, version], &taken, result);
        }
        false
    }

    /// Compares what an object keeps for life. Returns whether it stated a finding.
    fn keeps(
        &self,
        life: &mut Life,
        (version, process): (&Version, IncarnationId),
        result: &mut RuleResult<'_>,
    ) -> bool {
        let evidence = self.evidence;
        if !version.attributes.is_some() {
            return false;
        }
        let shown = evidence.history.attributes[version.attributes.index()];
        match life.created {
            None if shown.created != 0 => life.created = Some((*version, shown.created)),
            Some((first, created)) if shown.created != 0 => {
                result.checked(process);
                if created != shown.created {
                    changed(evidence, [&first, version], "its creationTimestamp differs", result);
                    return true;
                }
            }
            _ => {}
        }
        match (life.ending, shown.deletion) {
            (None, Deletion::Begun) => life.ending = Some(*version),
            (Some(begun), Deletion::NotBegun) => {
                changed(evidence, [&begun, version], "its deletionTimestamp is gone", result);
                return true;
            }
            _ => {}
        }
        false
    }

    fn after_its_end(&self, end: &Version, version: &Version, result: &mut RuleResult<'_>) {
        let evidence = self.evidence;
        let name = evidence.history.key_name(version.key);
        let uid = evidence.short_uid(version.uid);
        let draft = Draft {
            summary: format!(
                "{name} with uid {uid} was deleted at revision {}, and existed again at {}",
                end.revision, version.revision
            ),
            facts: vec![
                evidence.version(end, format!("{name} with uid {uid} was deleted at revision {}", end.revision)),
                evidence.version(version, format!("{name} had uid {uid} again at {}", version.revision)),
            ],
            reason: "One uid has one life, so no version of an object comes after its deletion.".into(),
            refuted_by: "evidence that another object was deleted, or that the event carries an earlier version".into(),
            consequence: "clients that acted on the deletion (volumes, addresses, children) acted on a living object"
                .into(),
            ..bare(evidence, version)
        };
        let is_dated = evidence.order.timeline.is_dated(end);
        let doubt = (!is_dated).then_some(
            "servers before 1.10 put the object's last version into the event, so the event does not date the deletion",
        );
        state(evidence, [end, version], draft, doubt, result);
    }

    /// The versions of other names that use up every revision between two lives, so that the deletion of the first and the
    /// creation of the second have no revision. `None` if there is room.
    fn taken_between(&self, before: &Life, last: &Version, first: &Version) -> Option<Vec<Version>> {
        let timeline = &self.evidence.order.timeline;
        let shown = timeline.present_through(last).max(last.revision);
        let end = before.end.filter(|end| end.revision > last.revision && end.revision < first.revision);
        let from = end.map_or(shown, |end| end.revision);
        // The second life may begin at its first known version, unless that version is an update.
        let mut needs = u128::from(end.is_none()) + u128::from(commit_evidence::is_update(self.evidence, first));
        let gap = first.revision.value().checked_sub(from.value())?.checked_sub(1)?;
        let mut taken = Vec::new();
        if needs == 0 || gap >= MAX_REVISIONS {
            return None;
        }
        let mut revision = from.next();
        while revision < first.revision {
            // A version of the name itself may be the deletion or the creation.
            match self.other_at(first.key, revision) {
                Some(other) => taken.push(other),
                None => needs -= 1,
            }
            if needs == 0 {
                return None;
            }
            revision = revision.next();
        }
        Some(taken)
    }

    /// The version of another name at a revision of the same counter.
    fn other_at(&self, key: KeyId, revision: Revision) -> Option<Version> {
        let (history, timeline) = (self.evidence.history, &self.evidence.order.timeline);
        let own = history.resource_of(key);
        let resources = (0..history.resources.len() as u32).map(ResourceId);
        let mut at = resources
            .filter(|resource| history.share_counter(own, *resource))
            .flat_map(|resource| timeline.of_resource(resource, revision.previous(), revision));
        at.find(|version| version.key != key && version.provenance != Provenance::Base)
    }
}

/// Whether a version is certainly a creation: an etcd witness or the answer of its writer shows it.
fn is_made_by(evidence: &Evidence<'_>, version: &Version) -> bool {
    let answered = || version.writer.is_some() && evidence.history.operation(version.writer).status == 201;
    version.change == Change::Created && (version.provenance == Provenance::Witness || answered())
}

/// Two versions of one life that differ in what an object keeps.
fn changed(evidence: &Evidence<'_>, versions: [&Version; 2], what: &str, result: &mut RuleResult<'_>) {
    let [before, after] = versions;
    let name = evidence.history.key_name(after.key);
    let draft = Draft {
        summary: format!(
            "{name} with uid {} at version {} is not the object that it was at {}: {what}",
            evidence.short_uid(after.uid),
            after.revision,
            before.revision
        ),
        facts: vec![
            evidence.version(before, format!("{name} was shown at version {}", before.revision)),
            evidence.version(after, format!("{name} was shown at version {}: {what}", after.revision)),
        ],
        reason: "An object keeps its creationTimestamp for life, and a deletion that has begun never ends without a removal."
            .into(),
        refuted_by: "evidence that one of the two was altered in transit, or belongs to another cluster".into(),
        consequence: "controllers act on a wrong age or a wrong deletion".into(),
        ..bare(evidence, after)
    };
    state(evidence, versions, draft, None, result);
}

fn second_birth(evidence: &Evidence<'_>, earlier: &Version, version: &Version, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let [first, second] = [earlier, version].map(|v| history.key_name(v.key));
    let uid = evidence.short_uid(version.uid);
    let draft = Draft {
        summary: format!(
            "{second} was created with uid {uid} at revision {}, although {first} had that uid at {}",
            version.revision, earlier.revision
        ),
        facts: vec![
            evidence.version(earlier, format!("{first} had uid {uid} at {}", earlier.revision)),
            evidence.version(version, format!("{second} was created with uid {uid} at {}", version.revision)),
        ],
        reason: "A server gives a new uid to every object that it creates, so no two objects have one uid.".into(),
        refuted_by: "evidence that one of the two answers belongs to another request, or that nothing was created"
            .into(),
        consequence: "a client that identifies objects by uid (owners, volumes, leases) treats two objects as one"
            .into(),
        ..bare(evidence, version)
    };
    state(evidence, [earlier, version], draft, None, result);
}

fn no_room(evidence: &Evidence<'_>, lives: [&Version; 2], taken: &[Version], result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let [last, first] = lives;
    let name = history.key_name(first.key);
    let [one, other] = lives.map(|version| evidence.short_uid(version.uid));
    let mut facts = vec![evidence.version(last, format!("{name} had uid {one} at {}", last.revision))];
    let shown = evidence.order.timeline.present_through(last);
    let list = evidence.order.presence(history).list_showing(shown, last.key, last.uid);
    if let Some(list) = list.filter(|_| shown > last.revision) {
        let says = format!("a list of revision {shown} still showed uid {one}");
        facts.push(evidence.item(list, last.key, last.uid, shown, says));
    }
    facts.extend(taken.iter().take(2).map(|other| evidence.version(other, evidence.change_words(other))));
    facts.push(evidence.version(first, format!("{name} had uid {other} at {}", first.revision)));
    let draft = Draft {
        summary: format!(
            "{name} had uid {one} through revision {shown} and uid {other} at {}: no revision is left for a deletion in between",
            first.revision
        ),
        facts,
        reason: "A uid never changes, so the first object was deleted and another was created. These are two writes \
                with two revisions."
            .into(),
        refuted_by: "evidence that one of the versions belongs to another cluster".into(),
        consequence: "a client that identifies objects by uid (owners, volumes, leases) mistakes one object for \
                     another"
            .into(),
        ..bare(evidence, first)
    };
    state(evidence, lives, draft, None, result);
}

/// Reports one uid that two names of a built-in resource were created with.
fn of_two_names(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let (history, timeline) = (evidence.history, &evidence.order.timeline);
    let lives = evidence.order.lifetimes(history);
    if lives.twice().is_empty() {
        return;
    }
    let mut creations: FxHashMap<(Symbol, ResourceId), Version> = FxHashMap::default();
    let is_born = |life: &&Lifetime| life.is_born && lives.twice().binary_search(&life.uid).is_ok();
    for life in lives.all().iter().filter(is_born) {
        let resource = history.resource_of(life.key);
        let made = timeline.version_at(life.key, life.from).filter(|version| is_made_by(evidence, version));
        let Some(made) = made.filter(|_| is_built_in(history.name(history.resources[resource.index()].group))) else {
            continue;
        };
        match creations.get(&(life.uid, resource)) {
            Some(other) if other.revision <= made.revision => second_birth(evidence, other, &made, result),
            Some(other) => second_birth(evidence, &made, other, result),
            None => {
                creations.insert((life.uid, resource), made);
            }
        }
    }
}

fn bare(evidence: &Evidence<'_>, version: &Version) -> Draft {
    let history = evidence.history;
    Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: IncarnationId::NONE,
        key: version.key,
        cause: history.resource_name(history.resource_of(version.key)),
        summary: String::new(),
        facts: Vec::new(),
        reason: String::new(),
        refuted_by: String::new(),
        consequence: String::new(),
    }
}

fn state(
    evidence: &Evidence<'_>,
    versions: [&Version; 2],
    mut draft: Draft,
    doubt: Option<&str>,
    result: &mut RuleResult<'_>,
) {
    if versions.into_iter().any(|version| commit_evidence::went_back(evidence, version)) {
        return result.undecided("lives on both sides of a revision rewind of the store");
    }
    let group = evidence.history.resources[evidence.history.resource_of(draft.key).index()].group;
    let own_store = is_aggregated(evidence.history.name(group))
        .then_some("an extension API server may assign uids and versions differently");
    if let Some(doubt) = doubt.or(own_store) {
        draft.kind = Kind::Suspect;
        draft.reason = format!("{} Not proved: {doubt}.", draft.reason);
    }
    let shown: Vec<&Fact> = draft.facts.iter().filter(|fact| fact.incarnation.is_some()).collect();
    if let Some(first) = shown.first().filter(|first| shown.iter().all(|fact| fact.incarnation == first.incarnation)) {
        draft.incarnation = first.incarnation;
    }
    result.found(draft);
}

#[cfg(test)]
mod tests {
    use super::Kind;
    use crate::check::testing::trial::{kinds, trial};
    use crate::check::writes::identity_break::RULE;

    /// Tries every place of a deletion and a creation between two lives, with the revisions of a mask taken.
    fn has_place(first: u32, second: u32, taken: u32, is_update: bool) -> bool {
        let free = |revision: &u32| taken >> (revision - first) & 1 == 0;
        (first + 1..second).filter(free).any(|deletion| {
            let may_create = |created: &u32| *created == second && !is_update || *created < second && free(created);
            (deletion + 1..=second).any(|created| may_create(&created))
        })
    }

    #[test]
    fn two_lives_of_a_name_need_room_for_an_end_and_a_beginning() {
        for (second, is_update) in (21..25).flat_map(|second| [(second, false), (second, true)]) {
            for taken in (0..1 << (second - 20)).step_by(2) {
                let mut text = "o@A CREATE a => a:u1@20\n".to_owned();
                for other in (21..second).filter(|other| taken >> (other - 20) & 1 == 1) {
                    text += &format!("o@A CREATE b{other} => b{other}:v{other}@{other}\n");
                }
                text += &match is_update {
                    true => format!("w@A WATCH from {} ~a:u2@{second}\n", second - 1),
                    false => format!("o@A CREATE a => a:u2@{second}\n"),
                };
                let found = kinds(&RULE, &text).contains(&Kind::Violation);
                assert_eq!(found, !has_place(20, second, taken, is_update), "{text}");
            }
        }
    }

    #[test]
    fn a_deletion_that_nothing_dates_may_be_an_earlier_version() {
        let text = |watch: &str| format!("r@A GET a => a:u1@12\nw@A {watch} -a:u1@21\no@A GET a => a:u1@30\n");
        assert_eq!(kinds(&RULE, &text("WATCH from 19")), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &text("WATCH rv=0")), [Kind::Suspect]);
    }

    #[test]
    fn a_list_shows_that_no_room_was_left() {
        let text =
            |list: u32| format!("o@A CREATE a => a:u1@20\nc@A LIST => {list} {{a:u1@20}}\no@A CREATE a => a:u2@26\n");
        assert_eq!(kinds(&RULE, &text(25)), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &text(24)), []);
    }

    #[test]
    fn a_store_that_went_back_leaves_it_open() {
        let text = "o@A CREATE a => a:u1@20\no@A CREATE b => b:u2@29\no@A CREATE a => a:u1@24\n";
        let trial = trial(&RULE, text);
        assert_eq!((trial.findings.len(), trial.undecided), (0, 1));
    }
}
