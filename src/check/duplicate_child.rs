//! A controller makes more children than their owner wants: **duplicate child**.
//!
//! A controller that does not see its own creation makes the child again. Here it created an object for an owner while as many
//! children of that owner lived as it wants, or while one had the very place (a node, an ordinal). What counts as a child, and
//! where the owner says how many it wants, is declared (`src/model/packs/controllers-and-children.toml`).
//!
//! ```text
//! T              20 replicaset r, replicas 1   22 create pod r-1 (owner r)   23 create pod r-2 (owner r)
//! controller     its cache stands at 20: no pods of r
//! ```
//!
//! **A violation**, of the client that created it: every child counted certainly lived at that revision and had not begun to
//! end, and no version of the owner up to then wanted as many.
//!
//! **Evidence**: the creations with their owner references, the owner's versions from its creation on, and what shows that the
//! earlier children still stood.
//!
//! **Not judged**: owners of which not every version until then is known; children that were adopted; creations that stay
//! within the highest number that the owner ever wanted.
//!
//! Sources: kubernetes#129795 (ReplicaSet), #137210 (Job), #134937 (DaemonSet).

use super::holding::{Held, Hold, Holdings, holdings};
use super::place::Place;
use super::standing::Standing;
use super::{BrokenBy, Draft, Evidence, Group, Kind, Rule, Ruling};
use crate::history::resource::plural_of_kind;
use crate::history::{ResourceId, Revision};
use crate::ingest::fields::Path;
use crate::model::declaration::{Allocation, Child, Compare};
use crate::order::{Change, Version};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "duplicate-child",
    title: "a controller makes no more children than their owner wants",
    group: Group::Invariants,
    promise: BrokenBy::Client,
    needs: "creations of owned objects, with all versions of their owner",
    causes: &["read-your-writes", "monotonic-reads", "watch-gap"],
    source: include_str!("duplicate_child.rs"),
    check,
};

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    let history = evidence.history;
    let children = &evidence.options.declarations.children;
    if children.is_empty() {
        return;
    }
    let standing = Standing::derive(evidence);
    for child in children {
        let Some(owned) = owned(child) else { continue };
        for (index, resource) in history.resources.iter().enumerate() {
            if child.resource.is(history.name(resource.plural), history.name(resource.group)) {
                let mut all = holdings(evidence, &standing, &owned, ResourceId(index as u32));
                let mut holds = std::mem::take(&mut all.holds);
                holds.sort_by(|a, b| (&a.value, all.from(a), a.key).cmp(&(&b.value, all.from(b), b.key)));
                for family in holds.chunk_by(|a, b| a.value == b.value) {
                    let family = Family { evidence, standing: &standing, child, all: &all, members: family };
                    family.check(ruling);
                }
            }
        }
    }
}

/// Being a child as something that is held: owner, whether its controller says so, its kind, the place.
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
        binds: false,
    })
}

/// The children of one owner (in one place), by creation.
struct Family<'f, 'h> {
    evidence: &'f Evidence<'h>,
    standing: &'f Standing<'h>,
    child: &'f Child,
    all: &'f Holdings,
    members: &'f [Hold],
}

impl Family<'_, '_> {
    fn check(&self, ruling: &mut Ruling<'_>) {
        let Held::Text(value) = &self.members[0].value else { return };
        let mut parts = value.splitn(4, '/');
        let (owner, controller, kind) = (parts.next(), parts.next(), parts.next());
        if controller != Some("true") || kind.is_none_or(|kind| plural_of_kind(kind) != self.child.owner.plural) {
            return;
        }
        let mut open: Vec<&Hold> = Vec::new();
        for hold in self.members {
            let from = self.all.from(hold);
            open.retain(|other| self.all.through(other) >= from);
            let first = self.all.stands(hold)[0].version;
            if first.change == Change::Created && first.writer.is_some() {
                let standing: Vec<&Hold> = open.iter().copied().filter(|o| self.all.at(o, from).is_some()).collect();
                self.judge(ruling, owner.unwrap_or(""), &first, &standing);
            }
            open.push(hold);
        }
    }

    fn judge(&self, ruling: &mut Ruling<'_>, owner: &str, new: &Version, others: &[&Hold]) {
        let (evidence, history) = (self.evidence, self.evidence.history);
        let by = history.operation(new.writer).incarnation;
        let wanted = match &self.child.desired {
            None => Some((1, None)),
            // Nothing can be too many where there is nothing else.
            Some(_) if others.is_empty() => Some((u64::MAX, None)),
            Some(path) => self.most_wanted(owner, path, new).map(|(count, version)| (count, Some(version))),
        };
        let Some((wanted, version)) = wanted else {
            ruling.undecided("children of owners of which not every version is known");
            return;
        };
        ruling.checked(by);
        if (others.len() as u64) < wanted {
            return;
        }
        let (name, client) = (history.key_name(new.key), evidence.short_client(&history.operation(new.writer)));
        let count = others.len() + 1;
        let mut facts = Vec::new();
        let family = match version {
            Some(version) => {
                let owner = history.key_name(version.key);
                facts.push(evidence.version(&version, format!("{owner} wanted {wanted}, the most that it ever had")));
                owner
            }
            None => format!("one place of an owner with uid {}", shortened(owner)),
        };
        for other in others.iter().take(if wanted == 1 { 1 } else { 2 }) {
            let Some(stand) = self.all.at(other, new.revision) else { continue };
            let child = history.key_name(other.key);
            facts.push(evidence.version(&stand.version, format!("{child} was a child of it")));
            facts.extend(self.standing.fact(&stand.version, stand.proof));
        }
        facts.truncate(4);
        facts.push(evidence.version(new, format!("{client} created {name} as another child")));
        ruling.found(Draft {
            kind: Kind::Violation,
            broken_by: BrokenBy::Client,
            incarnation: by,
            key: new.key,
            cause: self.child.name.clone(),
            summary: format!("{client} created {name}, child {count} of {family}, which wants {wanted}"),
            facts,
            reason: format!(
                "{} other children lived at revision {}, none of them ending, and the owner never wanted more than {wanted}",
                others.len(),
                new.revision
            ),
            refuted_by: "a version of the owner that wants more, or the end of another child before".to_owned(),
            consequence: "the same work is done twice until the surplus is removed".to_owned(),
        });
    }

    /// The most children that an owner had wanted until another was made, where every version of it until then is known.
    fn most_wanted(&self, owner: &str, path: &Path, new: &Version) -> Option<(u64, Version)> {
        let (evidence, history) = (self.evidence, self.evidence.history);
        let lifetime = evidence.order.lifetimes(history).of(history.names.find(owner)?)?;
        if !lifetime.is_born {
            return None;
        }
        let until = Place::of_version(evidence, new, history.resource_of(lifetime.key)).through?;
        let mut most: Option<(u64, Version)> = None;
        let mut reach = lifetime.from;
        let own = |v: &Version| v.uid == lifetime.uid && v.change.lives() == Some(true) && v.revision <= until;
        for version in evidence.order.timeline.versions(lifetime.key).iter().filter(own) {
            if version.revision > Revision::new(reach.value() + 1) && version.revision != lifetime.from {
                return None;
            }
            let declared = history.declared(version.key, version.uid, version.attributes)?;
            let wanted: u64 = declared.text(path)?.parse().ok()?;
            if most.is_none_or(|(most, _)| wanted > most) {
                most = Some((wanted, version));
            }
            reach = self.standing.through(&version).0;
        }
        most.filter(|_| reach >= until)
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
    use super::super::trial::{holds, kinds};
    use super::{Kind, RULE};

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
}
