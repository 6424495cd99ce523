#![doc = include_str!("../../../docs/rules/duplicate-child.md")]

use crate::check::facts::catalog::ScanBudget;
use crate::check::facts::cross_counter::Place;
use crate::check::facts::version_validity::VersionValidity;
use crate::check::invariants::allocations::{AllocatedValue, HeldVersion, Hold, Holdings, holdings};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::Revision;
use crate::history::resource::plural_of_kind;
use crate::ingest::fields::Path;
use crate::model::declaration::{Allocation, Child, Compare};
use crate::order::{Change, Version};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "duplicate-child",
    title: "a controller creates no more children than their owner wants",
    group: Group::Invariants,
    promise: BrokenBy::Client,
    needs: "creations of owned objects, and all versions of their owner",
    causes: &["read-your-writes", "monotonic-reads", "watch-gap"],
    page: include_str!("../../../docs/rules/duplicate-child.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let children = &evidence.options.declarations.children;
    if children.is_empty() {
        return;
    }
    let validity = VersionValidity::derive(evidence);
    let mut scan_budget = ScanBudget::of(evidence);
    for child in children {
        let Some(owned) = owned(child) else { continue };
        for resource in evidence.resources_named(&child.resource) {
            if !scan_budget.take(evidence, resource) {
                result.crowded();
                continue;
            }
            let mut all = holdings(evidence, &validity, &owned, resource);
            let mut holds = std::mem::take(&mut all.holds);
            holds.sort_by(|a, b| (&a.value, all.from(a), a.key).cmp(&(&b.value, all.from(b), b.key)));
            for family in holds.chunk_by(|a, b| a.value == b.value) {
                let (validity, owned, all) = (&validity, &owned, &all);
                let family = Family { evidence, validity, child, owned, all, members: family };
                family.check(result);
            }
        }
    }
}

/// The relation of child and owner as an allocation: owner uid, controller flag, kind, and the place.
fn owned(child: &Child) -> Option<Allocation> {
    let owner = ["uid", "controller", "kind"].map(|field| format!("metadata.ownerReferences[*].{field}"));
    let owner: Option<Vec<Path>> = owner.iter().map(|path| Path::parse(path).ok()).collect();
    Some(Allocation {
        name: child.name.clone(),
        what: String::new(),
        resource: child.resource.clone(),
        value: owner?.into_iter().chain(child.place.iter().cloned()).collect(),
        compare: Compare::Text,
        holder: None,
        space: child.name.clone(),
        when: Vec::new(),
        unless: child.unless.clone(),
        except: Vec::new(),
        record: None,
        reported: false,
        node: None,
        binds: false,
    })
}

/// The children of one owner (in one place), by creation.
struct Family<'f, 'h> {
    evidence: &'f Evidence<'h>,
    validity: &'f VersionValidity<'h>,
    child: &'f Child,
    owned: &'f Allocation,
    all: &'f Holdings,
    members: &'f [Hold],
}

/// A child of one family.
struct Member<'m> {
    hold: &'m Hold,
    /// The revision from which it was made for its place, or is known to have it.
    since: Revision,
    /// The version that made it.
    made: Option<Version>,
    /// The values of its owner and its place, if it was not created with them.
    values: Vec<String>,
}

impl Family<'_, '_> {
    fn check(&self, result: &mut RuleResult<'_>) {
        let AllocatedValue::Text(value) = &self.members[0].value else { return };
        let mut parts = value.splitn(4, '/');
        let (owner, controller, kind) = (parts.next(), parts.next(), parts.next());
        if controller != Some("true") || kind.is_none_or(|kind| plural_of_kind(kind) != self.child.owner.plural) {
            return;
        }
        let mut members: Vec<Member<'_>> = self.members.iter().map(|hold| self.member(hold, value)).collect();
        members.sort_by_key(|member| (member.since, member.hold.key));
        let mut open: Vec<&Member<'_>> = Vec::new();
        for member in &members {
            open.retain(|other| self.all.through(other.hold) >= member.since);
            if let Some(made) = member.made.filter(|made| made.writer.is_some()) {
                self.judge(result, owner.unwrap_or(""), &made, member, &open);
            }
            open.push(member);
        }
    }

    /// A child with the version that made it one of this family: the first version that shows it, or an earlier one of the
    /// same owner without the place. An adopted object was made for another owner.
    fn member<'m>(&self, hold: &'m Hold, value: &str) -> Member<'m> {
        let (evidence, history) = (self.evidence, self.evidence.history);
        let first = self.all.versions(hold)[0].version;
        let mut member = Member { hold, since: first.revision, made: None, values: Vec::new() };
        if first.change == Change::Created {
            member.made = Some(first);
        } else if !self.child.place.is_empty() {
            let whole = |row: Vec<Option<String>>| row.into_iter().collect::<Option<Vec<String>>>();
            let values = self.rows(&first).into_iter().filter_map(whole).find(|row| row.join("/") == value);
            let life = evidence.order.lifetimes(history).of(hold.uid).filter(|life| life.is_born);
            let made = life.and_then(|life| evidence.order.timeline.version_at(life.key, life.from));
            member.values = values.unwrap_or_default();
            member.made = made.filter(|made| made.change == Change::Created && self.may_be(made, &member.values));
            member.since = member.made.map_or(first.revision, |made| made.revision);
        }
        member
    }

    /// The owner and place values of a version.
    fn rows(&self, version: &Version) -> Vec<Vec<Option<String>>> {
        let declared = self.evidence.history.declared(version.key, version.uid, version.attributes);
        let paths: Vec<&Path> = self.owned.value.iter().collect();
        declared.and_then(|declared| declared.rows(&paths)).unwrap_or_default()
    }

    /// Whether a version has the same values, or shows less of the place.
    fn may_be(&self, version: &Version, values: &[String]) -> bool {
        let place = values.len().saturating_sub(self.child.place.len());
        self.rows(version).iter().any(|row| {
            row.len() == values.len()
                && row.iter().zip(values).enumerate().all(|(at, (had, has))| match had.as_deref() {
                    None | Some("") => at >= place,
                    Some(had) => had == has,
                })
        })
    }

    /// The version by which a child certainly was one at a revision.
    fn at(&self, member: &Member<'_>, revision: Revision) -> Option<HeldVersion> {
        if revision >= self.all.from(member.hold) {
            return self.all.at(member.hold, revision).copied();
        }
        // It had not ended by then, because it is a child later.
        let version = self.evidence.order.timeline.at_or_before(member.hold.key, revision)?;
        let (through, proof) = self.validity.through(&version);
        let is_one = version.uid == member.hold.uid && version.change.lives() == Some(true);
        (is_one && through >= revision && self.may_be(&version, &member.values)).then_some(HeldVersion {
            version,
            through,
            proof,
        })
    }

    /// Judges a creation against the children from before it that still exist after it.
    fn judge(
        &self,
        result: &mut RuleResult<'_>,
        owner: &str,
        new: &Version,
        member: &Member<'_>,
        others: &[&Member<'_>],
    ) {
        let (evidence, history) = (self.evidence, self.evidence.history);
        let by = history.operation(new.writer).incarnation;
        let wanted = match &self.child.desired {
            None => Some((1, None)),
            // A single child cannot exceed any wanted number.
            Some(_) if others.is_empty() => Some((u64::MAX, None)),
            Some(path) => self.most_wanted(owner, path, new).map(|(count, version)| (count, Some(version))),
        };
        let Some((wanted, version)) = wanted else {
            result.undecided("children of owners without a complete history of versions");
            return;
        };
        result.checked(by);
        let existing: Vec<&Member<'_>> =
            others.iter().copied().filter(|other| self.at(other, new.revision).is_some()).collect();
        let certain = existing.len() as u64 >= wanted;
        let counted = if certain { &existing } else { others };
        if (counted.len() as u64) < wanted {
            return;
        }
        let (name, client) = (history.key_name(new.key), evidence.short_client(&history.operation(new.writer)));
        let mut facts = Vec::new();
        let family = match version {
            Some(version) => {
                let owner = history.key_name(version.key);
                facts.push(
                    evidence.version(&version, format!("{owner} wanted {wanted}, its highest number until then")),
                );
                owner
            }
            None => format!("one place of an owner with uid {}", shortened(owner)),
        };
        let shown = self.all.versions(member.hold)[0].version;
        let is_later = shown.revision != new.revision;
        let mut unseen = None;
        for other in counted.iter().take(if wanted == 1 { 1 } else { 2 }) {
            let child = history.key_name(other.hold.key);
            let was = format!("{child} was a child of it");
            match self.at(other, new.revision) {
                Some(held) => {
                    facts.push(evidence.version(&held.version, was));
                    facts.extend(self.validity.fact(&held.version, held.proof));
                }
                None => {
                    let later = self.all.versions(other.hold).iter().find(|held| held.version.revision > new.revision);
                    facts.extend(later.map(|later| evidence.version(&later.version, was)));
                    unseen = unseen.or(Some(child));
                }
            }
        }
        facts.truncate(4 - usize::from(is_later));
        facts.push(evidence.version(new, format!("{client} created {name} as another child")));
        if is_later {
            facts.push(evidence.version(&shown, format!("{name} received the place that it was made for")));
        }
        let reason = format!(
            "{} other children existed at revision {}, none of them with a deletion begun, and the owner never wanted \
            more than {wanted}",
            counted.len(),
            new.revision
        );
        let doubt = |child: String| format!(". Not proved: {child} was one before and after, perhaps not in between");
        result.found(Draft {
            kind: if certain { Kind::Violation } else { Kind::Suspect },
            broken_by: BrokenBy::Client,
            incarnation: by,
            key: new.key,
            cause: self.child.name.clone(),
            summary: format!("{client} created {name}, child {} of {family}, which wants {wanted}", counted.len() + 1),
            facts,
            reason: format!("{reason}{}", unseen.filter(|_| !certain).map_or(String::new(), doubt)),
            refuted_by: "a version of the owner that wants more, or an earlier end of another child".to_owned(),
            consequence: "the same work is done twice until the surplus is removed".to_owned(),
        });
    }

    /// The highest number of children that an owner wanted before another was created, if every version of the owner until
    /// then is known.
    fn most_wanted(&self, owner: &str, path: &Path, new: &Version) -> Option<(u64, Version)> {
        let (evidence, history) = (self.evidence, self.evidence.history);
        let lifetime = evidence.order.lifetimes(history).of(history.names.find(owner)?)?;
        if !lifetime.is_born {
            return None;
        }
        let until = Place::of_version(evidence, new, history.resource_of(lifetime.key)).through?;
        let mut most: Option<(u64, Version)> = None;
        let mut known_through = lifetime.from;
        let own = |v: &Version| v.uid == lifetime.uid && v.change.lives() == Some(true) && v.revision <= until;
        for version in evidence.order.timeline.versions(lifetime.key).iter().filter(own) {
            if version.revision > known_through.next() && version.revision != lifetime.from {
                return None;
            }
            let declared = history.declared(version.key, version.uid, version.attributes)?;
            let wanted: u64 = declared.text(path)?.parse().ok()?;
            if most.is_none_or(|(most, _)| wanted > most) {
                most = Some((wanted, version));
            }
            known_through = self.validity.through(&version).0;
        }
        most.filter(|_| known_through >= until)
    }
}

fn shortened(uid: &str) -> String {
    match uid.char_indices().nth(8) {
        Some((at, _)) if uid.len() > 12 => format!("{}…", &uid[..at]),
        _ => uid.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds, trial};

    fn story(replicas: u32, second: &str, list: &str) -> String {
        format!(
            "o@A CREATE replicasets/r => replicasets/r:o@20[.spec.replicas={replicas}]\n\
             c@A CREATE a => a:u1@22[owner=ReplicaSet/r:o]\n{second}\
             c@A CREATE b => b:u2@26[owner=ReplicaSet/r:o]\n\
             o@A CREATE replicasets/z => replicasets/z:z@30\no@A LIST replicasets => 40 {{replicasets/r:o@20}}\nw@A LIST => 40 {{{list}}}\n"
        )
    }

    #[test]
    fn a_child_too_many() {
        assert_eq!(kinds(&RULE, &story(1, "", "a:u1@22, b:u2@26")), [Kind::Violation]);
        assert!(holds(&RULE, &story(2, "", "a:u1@22, b:u2@26")));
    }

    #[test]
    fn what_has_ended_or_is_about_to_leaves_its_place() {
        let gone = "x@A DELETE a:u1 => ok\n";
        assert!(holds(&RULE, &story(1, gone, "b:u2@26")));
        let ending = "x@A DELETE a:u1@22 => a:u1@24[owner=ReplicaSet/r:o deleting]\n";
        assert!(holds(&RULE, &story(1, ending, "a:u1@24, b:u2@26")));
        let failed = "k@A PUT status a:u1@22 => a:u1@24[owner=ReplicaSet/r:o phase=Failed]\n";
        assert!(holds(&RULE, &story(1, failed, "a:u1@24, b:u2@26")));
    }

    #[test]
    fn an_owner_that_once_wanted_more_excuses_it() {
        let scaled = "o@A PUT replicasets/r:o@20 => replicasets/r:o@23[.spec.replicas=2]\n\
                      o@A PUT replicasets/r:o@23 => replicasets/r:o@24[.spec.replicas=1]\n";
        let text = story(1, scaled, "a:u1@22, b:u2@26").replace("{replicasets/r:o@20}", "{replicasets/r:o@24}");
        assert!(holds(&RULE, &text));
    }

    #[test]
    fn an_owner_with_unknown_versions_leaves_it_open() {
        let text = story(1, "", "a:u1@22, b:u2@26").replace("o@A LIST replicasets => 40 {replicasets/r:o@20}\n", "");
        assert_eq!(kinds(&RULE, &text), []);
    }

    #[test]
    fn two_children_of_one_place() {
        let pod = |name: &str, uid: &str, version: u64, node: &str| {
            format!(
                "c@A CREATE {name} => {name}:{uid}@{version}[owner=DaemonSet/d:o node={node} controller-revision-hash=x]\n"
            )
        };
        let list = "w@A LIST => 40 {a:u1@22, b:u2@26}\n";
        assert_eq!(kinds(&RULE, &(pod("a", "u1", 22, "n1") + &pod("b", "u2", 26, "n1") + list)), [Kind::Violation]);
        assert!(holds(&RULE, &(pod("a", "u1", 22, "n1") + &pod("b", "u2", 26, "n2") + list)));
    }

    /// Pods of a DaemonSet that the scheduler binds: a, then b after `between`, both of this revision of the DaemonSet.
    fn scheduled(between: &str, hash: &str, node: &str) -> String {
        let pod = |pod: &str, fields: &str| format!("{pod}[owner=DaemonSet/d:o {fields}]");
        let (a, b) = ("controller-revision-hash=x".to_owned(), format!("controller-revision-hash={hash}"));
        format!(
            "c@A CREATE a => {}\n{between}c@A CREATE b => {}\n\
             k@A PATCH status a => {}\nk@A PATCH status b => {}\nw@A LIST => 60 {{a:u1@41, b:u2@42}}\n",
            pod("a:u1@22", &a),
            pod("b:u2@26", &b),
            pod("a:u1@41", &format!("{a} node=n1")),
            pod("b:u2@42", &format!("{b} node={node}")),
        )
    }

    #[test]
    fn a_child_was_made_for_the_place_that_it_shows_later() {
        // Nothing shows that the first pod was a child the whole time: it may have been released and adopted again.
        let text = scheduled("", "x", "n1");
        assert_eq!(kinds(&RULE, &text), [Kind::Suspect]);
        let watch = "w@A WATCH from 21 +a:u1@22 +b:u2@26\n";
        let trial = trial(&RULE, &(text + watch));
        assert_eq!(trial.kinds(), [Kind::Violation]);
        let facts: Vec<_> = trial.findings[0].certificate.facts.iter().map(|f| f.revision.to_string()).collect();
        assert_eq!(facts, ["22", "26", "26", "42"]);
        assert!(holds(&RULE, &(scheduled("", "x", "n2") + watch)));
        // Bound before the second pod is created.
        let bound = "k@A PATCH status a => a:u1@24[owner=DaemonSet/d:o controller-revision-hash=x node=n1]\n";
        assert_eq!(kinds(&RULE, &scheduled(bound, "x", "n1")), [Kind::Suspect]);
        let watch = "w@A WATCH from 21 +a:u1@22 ~a:u1@24 +b:u2@26\n";
        assert_eq!(kinds(&RULE, &(scheduled(bound, "x", "n1") + watch)), [Kind::Violation]);
    }

    #[test]
    fn what_a_daemon_set_s_controller_may_do() {
        // A surge: a pod of the new revision beside one of the old revision.
        assert!(holds(&RULE, &scheduled("", "y", "n1")));
        // The earlier pod failed, is being deleted, or is gone.
        let story = |between: &str, list: &str| {
            let text = scheduled(between, "x", "n1");
            let lines = text.lines().filter(|line| !line.starts_with("k@A PATCH status a => a:u1@41"));
            lines.map(|line| format!("{line}\n")).collect::<String>().replace("a:u1@41, ", list)
        };
        let fields = "owner=DaemonSet/d:o controller-revision-hash=x node=n1";
        let bound = format!("k@A PATCH status a => a:u1@23[{fields}]\n");
        let failed = format!("{bound}k@A PATCH status a => a:u1@24[{fields} phase=Failed]\n");
        assert!(holds(&RULE, &story(&failed, "a:u1@24, ")));
        let ending = format!("{bound}x@A DELETE a:u1@23 => a:u1@24[{fields} deleting]\n");
        assert!(holds(&RULE, &story(&ending, "a:u1@24, ")));
        assert!(holds(&RULE, &story(&format!("{bound}x@A DELETE a:u1 => ok\n"), "")));
    }

    #[test]
    fn what_was_adopted_was_made_for_somebody_else() {
        let fields = "controller-revision-hash=x";
        let text = scheduled("", "x", "n1");
        let orphan = text.replace(&format!("b:u2@26[owner=DaemonSet/d:o {fields}]"), &format!("b:u2@26[{fields}]"));
        assert_eq!(kinds(&RULE, &orphan), []);
        let other = text.replace(
            &format!("b:u2@26[owner=DaemonSet/d:o {fields}]"),
            &format!("b:u2@26[owner=DaemonSet/d:p {fields}]"),
        );
        assert_eq!(kinds(&RULE, &other), []);
    }
}
