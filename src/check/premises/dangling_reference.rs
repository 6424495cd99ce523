#![doc = include_str!("../../../docs/rules/dangling-reference.md")]

use crate::check::facts::catalog::ScanBudget;
use crate::check::facts::commit_evidence;
use crate::check::facts::cross_counter::{end, had_ended, when};
use crate::check::facts::references::{Directory, Mention, is_collector};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{ClientId, IncarnationId, KeyId, Marks, Operation, OperationId, PartId, ResourceId, Symbol, Verb};
use crate::model::declaration::Reference;
use crate::order::{Change, Decisions, Lifetime, Source, Version};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "dangling-reference",
    title: "no write makes, or rests on, a reference to an object that is gone",
    group: Group::Premises,
    promise: BrokenBy::Client,
    needs: "objects with references by uid, and the deletions of the referenced objects",
    causes: &["name-reuse", "monotonic-reads", "read-your-writes", "stale-consistent-read"],
    page: include_str!("../../../docs/rules/dangling-reference.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let by_uid = || evidence.options.declarations.references.iter().filter(|reference| reference.uid.is_some());
    if by_uid().next().is_none() {
        return;
    }
    let directory = Directory::of(evidence);
    let (mut scan_budget, followers) = (ScanBudget::of(evidence), OnceCell::new());
    for reference in by_uid() {
        let mut resources = directory.referring(reference);
        resources.retain(|&resource| {
            let is_left = scan_budget.take(evidence, resource);
            if !is_left {
                result.crowded();
            }
            is_left
        });
        let dangling = Dangling { evidence, directory: &directory, reference, followers: &followers };
        for &resource in &resources {
            dangling.made(result, resource);
        }
        // This looks through all requests.
        if reference.belongs && !resources.is_empty() {
            if !scan_budget.take_many(evidence.history.operations.len() as u64) {
                result.crowded();
                continue;
            }
            let resources: FxHashSet<ResourceId> = resources.into_iter().collect();
            dangling.rested_on(result, &resources);
        }
    }
}

struct Dangling<'e, 'h> {
    evidence: &'e Evidence<'h>,
    directory: &'e Directory<'h>,
    reference: &'e Reference,
    /// Collected at the first use.
    followers: &'e OnceCell<Followers>,
}

/// Clients, by the resources that they list and watch.
#[derive(Default)]
struct Followers {
    /// Clients that list or watch any resource.
    readers: FxHashSet<ClientId>,
    /// Clients with a resource that they list or watch.
    of_resources: FxHashSet<(ClientId, ResourceId)>,
}

impl Followers {
    /// Whether a writer follows a resource, or its lists and watches are not recorded. Servers may log none of them; a client
    /// records all of them.
    fn may_be(&self, evidence: &Evidence<'_>, write: &Operation, target: ResourceId) -> bool {
        if !write.incarnation.is_some() {
            return true;
        }
        let client = evidence.history.incarnations[write.incarnation.index()].client;
        let by_itself = write.marks.has(Marks::CLIENT_SIDE) || write.marks.has(Marks::BOTH_SIDES);
        self.of_resources.contains(&(client, target)) || !(by_itself || self.readers.contains(&client))
    }
}

/// The last version of a name: its uid, its root value, and its mentions.
type LastVersion = (Symbol, Option<PartId>, Option<Vec<Mention>>);

impl<'h> Dangling<'_, 'h> {
    /// The life that a mention names by uid.
    fn life(&self, mention: &Mention) -> Option<&'h Lifetime> {
        let uid = self.evidence.history.names.find(mention.uid.as_deref()?)?;
        self.evidence.order.lifetimes(self.evidence.history).of(uid)
    }

    /// Judges writes that make a reference.
    fn made(&self, result: &mut RuleResult<'_>, resource: ResourceId) {
        let (evidence, history) = (self.evidence, self.evidence.history);
        let mut new: Vec<(Version, Mention)> = Vec::new();
        for &key in evidence.keys_of(resource) {
            self.made_in(key, &mut new);
        }
        new.sort_by_key(|(version, _)| (version.revision, version.key));
        let asked = self.reference.followed || new.iter().any(|(_, mention)| mention.by_controller);
        let none = Followers::default();
        let followers = if asked { self.followers.get_or_init(|| self.followers()) } else { &none };
        for (version, mention) in &new {
            let o = history.operation(version.writer);
            let writer = o.incarnation;
            let exempt = is_collector(evidence, writer);
            match self.life(mention) {
                _ if exempt => {}
                None if mention.by_controller => {}
                None => result.undecided("references to uids that the evidence does not show"),
                Some(life) => {
                    let target = history.resource_of(life.key);
                    let controls = mention.by_controller || self.reference.followed;
                    if controls && followers.may_be(evidence, &o, target) {
                        continue;
                    }
                    result.checked(writer);
                    self.judge(result, version, life, mention.by_controller);
                }
            }
        }
    }

    /// The resources that each client lists or watches.
    fn followers(&self) -> Followers {
        let (evidence, history) = (self.evidence, self.evidence.history);
        let mut followers = Followers::default();
        let scoped =
            evidence.of_verbs(&[Verb::List, Verb::Watch]).filter(|(_, o)| o.scope.is_some() && o.incarnation.is_some());
        for (_, o) in scoped {
            let client = history.incarnations[o.incarnation.index()].client;
            followers.readers.insert(client);
            followers.of_resources.insert((client, history.scopes[o.scope.index()].resource));
        }
        followers
    }

    /// Collects the references that writes to one name make.
    fn made_in(&self, key: KeyId, new: &mut Vec<(Version, Mention)>) {
        let evidence = self.evidence;
        let mut had: Option<LastVersion> = None;
        for version in evidence.order.timeline.versions(key).iter() {
            let alive = version.change.lives() == Some(true);
            let declared = evidence.history.declared(version.key, version.uid, version.attributes).filter(|_| alive);
            let root = declared.map(|declared| declared.root());
            // Most versions have the same value as the one before.
            let same = had.as_ref().is_some_and(|(uid, before, _)| (*uid, *before) == (version.uid, root));
            if same && root.is_some() && version.change != Change::Created {
                continue;
            }
            let known = declared.and_then(|_| self.directory.mentions(self.reference, &version));
            let before = had.replace((version.uid, root, known.clone()));
            for mention in known.filter(|_| version.writer.is_some()).into_iter().flatten() {
                let is_new = match (&before, version.change) {
                    (_, Change::Created) => true,
                    (Some((uid, _, Some(before))), _) => *uid == version.uid && !before.contains(&mention),
                    _ => false,
                };
                if is_new && mention.uid.is_some() {
                    new.push((version, mention));
                }
            }
        }
    }

    fn judge(&self, result: &mut RuleResult<'_>, version: &Version, life: &Lifetime, by_controller: bool) {
        let (evidence, history) = (self.evidence, self.evidence.history);
        let late = had_ended(evidence, life, version.writer);
        let shared = history.share_counter(history.resource_of(life.key), history.resource_of(version.key));
        let over = life.over(&evidence.order.timeline).is_some_and(|over| shared && over < version.revision);
        if !late && !over {
            return;
        }
        let o = history.operation(version.writer);
        let (name, target) = (history.key_name(version.key), history.key_name(life.key));
        let uid = evidence.short_uid(life.uid);
        let mut facts: Vec<Fact> = end(evidence, life, &target, version.writer).into_iter().collect();
        facts.push(evidence.version(version, format!("{name} was given a reference to {target} with uid {uid}")));
        result.found(Draft {
            kind: if late && !by_controller { Kind::Violation } else { Kind::Hazard },
            broken_by: BrokenBy::Client,
            incarnation: o.incarnation,
            key: version.key,
            cause: self.reference.name.clone(),
            summary: format!(
                "{} gave {name} a reference to {target} with uid {uid}, which was deleted {}",
                evidence.short_client(&o),
                when(evidence, life)
            ),
            facts,
            reason: match late {
                true if by_controller => {
                    "the uid was gone before the write was sent; the new object names it as its controller, but no \
                    list or watch of that resource by the writer is in the evidence"
                        .to_owned()
                }
                true => "the uid was gone before the write was sent, and no later object gets a uid again".to_owned(),
                false => "the uid was deleted while the write was in progress, so the writer could not know".to_owned(),
            },
            refuted_by: "a later version of the referenced object".to_owned(),
            consequence: match self.reference.owns {
                true => "the garbage collector removes the object, because no owner of it exists".to_owned(),
                false => "a client that follows it finds nothing, or another object of the same name".to_owned(),
            },
        });
    }

    /// Judges decisions and reads that rest on an object with a deleted target.
    fn rested_on(&self, result: &mut RuleResult<'_>, resources: &FxHashSet<ResourceId>) {
        let (evidence, history) = (self.evidence, self.evidence.history);
        // Clients that create such objects read them to maintain them.
        let makers: FxHashSet<ClientId> = evidence
            .of_verbs(&[Verb::Create])
            .filter(|(_, o)| o.key.is_some() && resources.contains(&history.resource_of(o.key)))
            .filter(|(_, o)| o.incarnation.is_some())
            .map(|(_, o)| history.incarnations[o.incarnation.index()].client)
            .collect();
        let decisions = Decisions::collect(history);
        let mut writes: FxHashMap<(IncarnationId, Symbol), Vec<OperationId>> = FxHashMap::default();
        let decided = history.operations.decided().filter(|(_, o)| !o.marks.has(Marks::SHADOW));
        for (id, o) in decided.filter(|(id, o)| commit_evidence::took_effect(evidence, *id, o)) {
            writes.entry((o.incarnation, o.decision)).or_default().push(id);
        }
        for (id, o) in evidence.of_verbs(&[Verb::Get]) {
            let read = o.is_answered() && o.key.is_some() && o.incarnation.is_some();
            if !read || !resources.contains(&history.resource_of(o.key)) {
                continue;
            }
            let client = history.incarnations[o.incarnation.index()].client;
            if makers.contains(&client) || is_collector(evidence, o.incarnation) {
                continue;
            }
            let Some(version) = evidence.order.timeline.version_at(o.key, o.answered) else { continue };
            for mention in self.directory.mentions(self.reference, &version).unwrap_or_default() {
                let Some(life) = self.life(&mention) else { continue };
                result.checked(o.incarnation);
                if !had_ended(evidence, life, id) {
                    continue;
                }
                let decided = writes.get(&(o.incarnation, o.decision)).filter(|_| o.decision.is_some());
                // A write to the object itself maintains it. A write rests on the last read of the object in its decision.
                let rests = |w: &OperationId| {
                    let last = decisions.of(*w).and_then(|(pass, nth)| pass.last_of(history, nth, o.key));
                    last.is_some_and(|last| matches!(last.source, Source::Answer(read) if read == id))
                };
                let other = |w: &OperationId| history.operation(*w).answer_uid != version.uid;
                let write = decided.into_iter().flatten().copied().find(|w| other(w) && rests(w));
                self.read(result, id, &o, &version, life, write);
            }
        }
    }

    fn read(
        &self,
        result: &mut RuleResult<'_>,
        id: OperationId,
        o: &Operation,
        version: &Version,
        life: &Lifetime,
        write: Option<OperationId>,
    ) {
        let (evidence, history) = (self.evidence, self.evidence.history);
        let (name, target) = (history.key_name(version.key), history.key_name(life.key));
        let (client, uid) = (evidence.short_client(o), evidence.short_uid(life.uid));
        let mut facts: Vec<Fact> = end(evidence, life, &target, id).into_iter().collect();
        let says = format!("{client} read {name}, which belongs to {target} with uid {uid}");
        facts.push(evidence.item(id, version.key, version.uid, o.answered, says));
        if let Some(write) = write {
            let w = history.operation(write);
            let what = history.key_name(w.key);
            facts.push(evidence.operation(write, w.answered, format!("{client} wrote {what} in the same decision")));
        }
        result.found(Draft {
            kind: if write.is_some() { Kind::Violation } else { Kind::Hazard },
            broken_by: BrokenBy::Client,
            incarnation: o.incarnation,
            key: version.key,
            cause: self.reference.name.clone(),
            summary: format!(
                "{client} read {name}, which belongs to {target} with uid {uid}, deleted {}{}",
                when(evidence, life),
                if write.is_some() { ", and wrote on that premise" } else { "" }
            ),
            facts,
            reason: "the object has no use without the object that it belongs to, which was gone before the read"
                .to_owned(),
            refuted_by: "a later version of the object that it belongs to".to_owned(),
            consequence: "the client may apply the object's data to another object of the same name".to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    const OWNER: &str = "o@A CREATE configmaps/c => configmaps/c:o@20\n";
    const GONE: &str = "o@A DELETE configmaps/c:o => ok\n";

    /// A reference that no controller made.
    const REFERS: &str =
        "[.metadata.ownerReferences=[{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"name\":\"c\",\"uid\":\"o\"}]]";

    #[test]
    fn an_owner_must_live_when_it_is_named() {
        let child = format!("x@A CREATE p => p:u1@30{REFERS}\n");
        assert_eq!(kinds(&RULE, &format!("{OWNER}{GONE}o@A CREATE q => q:q@25\n{child}")), [Kind::Violation]);
        assert!(holds(&RULE, &format!("{OWNER}{child}{GONE}")));
        let later =
            format!("x@A CREATE p => p:u1@22\n{GONE}o@A CREATE q => q:q@25\nx@A PUT p:u1@22 => p:u1@30{REFERS}\n");
        assert_eq!(kinds(&RULE, &format!("{OWNER}{later}")), [Kind::Violation]);
    }

    #[test]
    fn a_reference_that_was_there_is_nobody_s_fault() {
        let text = format!(
            "{OWNER}x@A CREATE p => p:u1@22{REFERS}\n{GONE}o@A CREATE q => q:q@25\ny@A PUT p:u1@22 => p:u1@30{REFERS}\n"
        );
        assert!(holds(&RULE, &text));
    }

    /// A volume, and a claim that is deleted; then `write`.
    fn claimed(write: &str) -> String {
        format!(
            "o@A CREATE persistentvolumes/v => persistentvolumes/v:v1@10[.spec.storageClassName=slow]\n\
             o@A CREATE persistentvolumeclaims/q => persistentvolumeclaims/q:q1@20\n\
             o@A DELETE persistentvolumeclaims/q:q1 => ok\no@A CREATE persistentvolumeclaims/q => persistentvolumeclaims/q:q2@30\n{write}\n"
        )
    }

    /// A volume that names its claim.
    fn volume(version: &str, uid: &str) -> String {
        format!(
            "persistentvolumes/v:v1@{version}[.spec.claimRef={{\"namespace\":\"default\",\"name\":\"q\",\"uid\":\"{uid}\"}}]"
        )
    }

    #[test]
    fn a_volume_is_given_to_a_claim_that_is_gone() {
        let given = |uid: &str| format!("b@A PUT {} => {}", volume("10", uid), volume("40", uid));
        assert_eq!(kinds(&RULE, &claimed(&given("q1"))), [Kind::Violation]);
        assert!(holds(&RULE, &claimed(&given("q2"))));
        // A released volume keeps the uid of its claim, whichever client writes it.
        let text = claimed(&format!("b@A PUT {} => {}", volume("22", "q1"), volume("40", "q1")));
        let bound = format!("p@A PUT persistentvolumes/v:v1@10 => {}\no@A DELETE", volume("22", "q1"));
        assert!(holds(&RULE, &text.replacen("o@A DELETE", &bound, 1)));
    }

    #[test]
    fn who_binds_volumes_follows_the_claims_and_releases_them_again() {
        let given = format!("b@A PUT {} => {}", volume("10", "q1"), volume("40", "q1"));
        let follows = "b@A LIST persistentvolumeclaims => 9 {}\n";
        assert_eq!(kinds(&RULE, &format!("{follows}{}", claimed(&given))), []);
        // A server's log may leave out the lists and watches of a client, unless it shows some of them.
        let logged = format!("recorded audit\n{}", claimed(&given));
        assert_eq!(kinds(&RULE, &logged), []);
        let other = "recorded audit\nb@A LIST persistentvolumes => 9 {}\n";
        assert_eq!(kinds(&RULE, &format!("{other}{}", claimed(&given))), [Kind::Violation]);
    }

    #[test]
    fn a_controller_may_be_overtaken_by_the_end_of_its_owner() {
        let text = "o@A CREATE replicasets/r => replicasets/r:o@20\no@A DELETE replicasets/r:o => ok\n\
                    o@A CREATE q => q:q@25\nx@A CREATE p => p:u1@30[owner=ReplicaSet/r:o]\n";
        assert_eq!(kinds(&RULE, &format!("x@A LIST replicasets => 19 {{}}\n{text}")), []);
        // A client that never lists or watches owners is no controller of them.
        assert_eq!(kinds(&RULE, text), [Kind::Hazard]);
    }

    #[test]
    fn what_ends_while_a_write_is_under_way_cannot_be_known() {
        // Custom resources certainly share one counter.
        let text = format!(
            "default widgets\no@A CREATE c => c:o@20\n---\nx@A |------CREATE p => p:u1@30{REFERS}------|\n\
             o@A    |-DELETE c:o => ok-|\n---\nw@A WATCH from 19 +c:o@20 -c:o@26 +p:u1@30\n"
        );
        assert_eq!(kinds(&RULE, &text), [Kind::Hazard]);
    }

    /// A node is deleted, its configuration remains for a while, and an agent reads it.
    fn story(read: &str, write: &str) -> String {
        format!(
            "o@A CREATE nodes/n => nodes/n:n1@20\n\
             m@A CREATE nodenetworkconfigs/n => nodenetworkconfigs/n:c1@22[owner=Node/n:n1]\n\
             o@A DELETE nodes/n:n1 => ok\no@A CREATE nodes/n => nodes/n:n2@30\n{read}{write}"
        )
    }

    #[test]
    fn a_decision_must_not_rest_on_what_belongs_to_the_dead() {
        let read = "a@A GET nodenetworkconfigs/n for d => nodenetworkconfigs/n:c1@22\n";
        let write = "a@A CREATE configmaps/x for d => configmaps/x:x1@40\n";
        assert_eq!(kinds(&RULE, &story(read, write)), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &story(read, "")), [Kind::Hazard]);
        let own = "a@A PATCH nodenetworkconfigs/n for d => nodenetworkconfigs/n:c1@40\n";
        assert_eq!(kinds(&RULE, &story(read, own)), [Kind::Hazard]);
        // The object that the decision read again belongs to a living target.
        let again = "m@A DELETE nodenetworkconfigs/n:c1 => ok\n\
            m@A CREATE nodenetworkconfigs/n => nodenetworkconfigs/n:c2@35[owner=Node/n:n2]\n\
            a@A GET nodenetworkconfigs/n for d => nodenetworkconfigs/n:c2@35\n";
        assert_eq!(kinds(&RULE, &story(read, &format!("{again}{write}"))), [Kind::Hazard]);
    }

    #[test]
    fn who_makes_such_objects_and_who_collects_them_read_them_as_well() {
        let read = |who: &str| story(&format!("{who}@A GET nodenetworkconfigs/n => nodenetworkconfigs/n:c1@22\n"), "");
        assert_eq!(kinds(&RULE, &read("m")), []);
        let collector = "client gc user=system:serviceaccount:kube-system:generic-garbage-collector\n";
        assert_eq!(kinds(&RULE, &format!("{collector}{}", read("gc"))), []);
    }
}
