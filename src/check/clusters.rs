//! Input: the history and its order. Output: the reason why the evidence belongs to two clusters, if it certainly does. Then
//! no rule is run. Trap: one wrong uid is not enough, and a store that was restored from a backup is still one cluster.

use crate::history::{History, KeyId, Revision, Symbol};
use crate::ingest::{FileId, Position, Time};
use crate::order::{Contradiction, Order, VersionId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Namespaces that the API server refuses to delete (admission plugin NamespaceLifecycle). Each has one uid for the life of
/// the cluster, also in a store that was restored from a backup, or with members that diverged.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// The uids of one namespace, each with the files that show it.
type Uids = BTreeMap<Symbol, BTreeSet<FileId>>;

/// The reason why some files certainly belong to another cluster than others.
///
/// An immortal namespace has one uid in some files and another uid in others, and no file shows both. These files also give
/// one revision to two keys, or disagree in the same way about another immortal namespace. A single wrong uid does not
/// suffice, and two revision orders of one cluster have the same namespaces.
pub fn of_two(history: &History, order: &Order) -> Option<String> {
    let keys = immortal(history);
    let differs = |key: &KeyId| {
        let uids = order.timeline.versions(*key).iter().map(|version| version.uid).filter(|uid| uid.is_some());
        uids.collect::<BTreeSet<Symbol>>().len() > 1
            || order.timeline.contradictions().iter().any(|c| matches!(c, Contradiction::TwoUids(of, ..) if of == key))
    };
    if !keys.keys().any(differs) {
        return None;
    }
    if let Some(anew) = replaced_cluster(history, &keys) {
        return Some(anew);
    }
    let known = uids(history, &keys);
    let apart = known.iter().filter_map(|(name, uids)| {
        let sides: Vec<(&Symbol, &BTreeSet<FileId>)> = uids.iter().collect();
        match sides.as_slice() {
            [one, other] if one.1.is_disjoint(other.1) => Some((*name, *one, *other)),
            _ => None,
        }
    });
    let apart: Vec<_> = apart.collect();
    let (name, one, other) = *apart.first()?;
    let meets = |a: &BTreeSet<FileId>, b: &BTreeSet<FileId>| !a.is_disjoint(b);
    let parts = |a, b| one.1.contains(&a) && other.1.contains(&b) || one.1.contains(&b) && other.1.contains(&a);
    let file = |id: VersionId| order.timeline.version(id).position(history).file;
    let again = apart[1..].iter().any(|(_, a, b)| {
        let crossed = meets(one.1, a.1) && meets(other.1, b.1) || meets(one.1, b.1) && meets(other.1, a.1);
        let mixed = meets(one.1, a.1) && meets(one.1, b.1) || meets(other.1, a.1) && meets(other.1, b.1);
        crossed && !mixed
    });
    let two_keys = |c: &Contradiction| matches!(*c, Contradiction::TwoKeys(a, b) if parts(file(a), file(b)));
    if !again && !order.timeline.contradictions().iter().any(two_keys) {
        return None;
    }
    let side = |(uid, files): (&Symbol, &BTreeSet<FileId>)| {
        let file = files.first().map_or("", |file| history.file_name(*file));
        format!("uid {} in {file}", history.name(*uid))
    };
    Some(format!(
        "the evidence is of two clusters: namespace {}, which the API server never deletes, is {} and {}; check each \
        cluster separately",
        history.name(name),
        side(one),
        side(other)
    ))
}

/// A change of an object's uid in one file: the last observation of the first uid, and the first observation of the second.
#[derive(Clone, Copy)]
struct Change {
    key: KeyId,
    until: Time,
    from: Position,
    since: Time,
    version: Revision,
}

/// An observation of an object in an answer: request time, uid, version, position.
type ObjectState = (Time, Symbol, Revision, Position);

/// The reason why the lines of one file belong to a cluster and then to its replacement, if the file was appended to.
///
/// From some time on, an immortal namespace and another object that each cluster creates for itself (another such namespace, a
/// node, the service `kubernetes`) have other uids. The version of each lies at or below the highest revision that the file
/// showed before, so revisions began again. If revisions continue, one cluster created the object again. A restored store
/// keeps the uids.
fn replaced_cluster(history: &History, immortal: &FxHashMap<KeyId, Symbol>) -> Option<String> {
    let mut states: BTreeMap<(FileId, KeyId), Vec<ObjectState>> = BTreeMap::new();
    let is_own: Vec<bool> = (0..history.keys.len() as u32).map(|key| is_own(history, immortal, KeyId(key))).collect();
    let mut show = |key: KeyId, uid: Symbol, version: Revision, time: Time, at: Position| {
        if uid.is_some() && time.is_known() && is_own.get(key.index()).is_some_and(|&own| own) {
            states.entry((at.file, key)).or_default().push((time, uid, version, at));
        }
    };
    for o in history.operations.iter().filter(|o| o.is_answered() && o.status < 400) {
        if o.subresource.answers_parent() {
            show(o.key, o.answer_uid, o.answered, o.invoke, o.position);
        }
        for item in history.items_of(&o) {
            show(item.key, item.uid, item.revision, o.invoke, o.position);
        }
    }
    for seen in states.values_mut() {
        seen.sort_unstable_by_key(|(time, uid, ..)| (*time, *uid));
    }
    let changes = states.iter().filter_map(|((file, key), seen)| Some((*file, change(*key, seen)?)));
    let mut of_file: BTreeMap<FileId, Vec<Change>> = BTreeMap::new();
    changes.for_each(|(file, change)| of_file.entry(file).or_default().push(change));
    of_file.into_iter().find_map(|(file, mut changes)| {
        let domain = history.domain_of(history.resource_of(changes.first()?.key));
        let shown = |until: Time| {
            let before = history.operations.iter().filter(|o| {
                o.position.file == file
                    && o.is_answered()
                    && o.ret.is_known()
                    && o.ret < until
                    && o.scope.is_some()
                    && history.domain_of(history.scopes[o.scope.index()].resource) == domain
            });
            before.map(|o| o.answered).filter(|revision| revision.is_some()).max()
        };
        let cluster = changes.iter().filter(|change| immortal.contains_key(&change.key));
        let since = cluster.map(|change| change.since).min()?;
        let highest = shown(since)?;
        let is_again = |version: Revision| version.is_some() && version <= highest;
        changes.retain(|change| is_again(change.version) && change.until < since && change.since >= since);
        let first = changes.iter().find(|change| immortal.contains_key(&change.key))?;
        let other = changes.iter().find(|change| change.key != first.key)?;
        Some(format!(
            "the evidence is of two clusters: from {}:{} on, {} and {} have other uids than before, and revisions \
            begin again below {highest} (a cluster was replaced, and its logs continued in the same file); check each \
            cluster separately",
            history.file_name(file),
            first.from.line,
            history.key_name(first.key),
            history.key_name(other.key),
        ))
    })
}

/// The change of an object's uid, if there is one and the first uid does not reappear.
fn change(key: KeyId, seen: &[(Time, Symbol, Revision, Position)]) -> Option<Change> {
    let (_, one, ..) = *seen.first()?;
    let at = seen.iter().position(|(_, uid, ..)| *uid != one)?;
    let (former, later) = seen.split_at(at);
    let (since, other, _, from) = later[0];
    let version = later.iter().map(|(_, _, version, _)| *version).filter(|version| version.is_some()).min();
    let until = former.last()?.0;
    let is_one = later.iter().all(|(_, uid, ..)| *uid == other);
    is_one.then_some(Change { key, until, from, since, version: version.unwrap_or(Revision::NONE) })
}

/// Whether each cluster creates the object of a key for itself.
fn is_own(history: &History, immortal: &FxHashMap<KeyId, Symbol>, key: KeyId) -> bool {
    let of = history.keys[key.index()];
    let Some(resource) = history.resources.get(of.resource.index()) else { return false };
    let core = history.name(resource.group).is_empty();
    immortal.contains_key(&key)
        || core && history.name(resource.plural) == "nodes"
        || core
            && history.name(resource.plural) == "services"
            && (history.name(of.namespace), history.name(of.name)) == ("default", "kubernetes")
}

/// The keys of the immortal namespaces, with their names.
fn immortal(history: &History) -> FxHashMap<KeyId, Symbol> {
    let name = |key: KeyId| {
        let key = history.keys[key.index()];
        let resource = history.resources.get(key.resource.index())?;
        let is_namespace = history.name(resource.plural) == "namespaces" && history.name(resource.group).is_empty();
        (is_namespace && IMMORTAL.contains(&history.name(key.name))).then_some(key.name)
    };
    let ids = (0..history.keys.len() as u32).map(KeyId);
    ids.filter_map(|key| Some((key, name(key)?))).collect()
}

/// The uids of the immortal namespaces, by name.
fn uids(history: &History, keys: &FxHashMap<KeyId, Symbol>) -> BTreeMap<Symbol, Uids> {
    let mut known: BTreeMap<Symbol, Uids> = BTreeMap::new();
    let mut show = |key: KeyId, uid: Symbol, file: FileId| {
        if let Some(name) = keys.get(&key).filter(|_| uid.is_some()) {
            known.entry(*name).or_default().entry(uid).or_default().insert(file);
        }
    };
    for o in history.operations.iter().filter(|o| o.is_answered()) {
        if o.subresource.answers_parent() {
            show(o.key, o.answer_uid, o.position.file);
        }
        for item in history.items_of(&o) {
            show(item.key, item.uid, o.position.file);
        }
    }
    for d in &history.deliveries {
        show(d.key, d.uid, d.position.file);
    }
    known
}

#[cfg(test)]
mod tests {
    use crate::check::testing::trial::drawn;
    use crate::check::{Judgement, Options, Verdict, judge};
    use crate::order::{Order, OrderOptions};

    const FIRST: &str = "a@A GET namespaces/kube-system => namespaces/kube-system:u1@5\na@A CREATE x => x:x1@40\n";
    const SECOND: &str = "b@B GET namespaces/kube-system => namespaces/kube-system:u2@6\nb@B CREATE y => y:y1@40\n";

    fn judged(sketch: &str) -> Judgement {
        let history = drawn(sketch);
        let order = Order::derive(&history, &OrderOptions::default());
        judge(&history, &order, &Options::default())
    }

    #[test]
    fn evidence_of_two_clusters_is_one_problem_and_convicts_nobody() {
        let judgement = judged(&format!("{FIRST}{SECOND}"));
        assert!(judgement.findings.is_empty(), "{:?}", judgement.findings);
        let Verdict::Unknown(reason) = judgement.verdict else { panic!("{:?}", judgement.verdict) };
        assert!(reason.contains("two clusters") && reason.contains("uid u2 in"), "{reason}");
        // Two immortal namespaces show it as well.
        let other =
            |text: &str| text.replace("CREATE x => x:x1@40", "GET namespaces/default => namespaces/default:d1@3");
        let second = SECOND.replace("CREATE y => y:y1@40", "GET namespaces/default => namespaces/default:d2@4");
        assert!(matches!(judged(&format!("{}{second}", other(FIRST))).verdict, Verdict::Unknown(_)));
    }

    /// One log in which two namespaces and then their successors were created.
    fn replaced_cluster(second: &str) -> String {
        format!(
            "recorded audit\nserver A clock=lab\na@A CREATE namespaces/kube-system => namespaces/kube-system:u1@5\n\
             a@A CREATE namespaces/default => namespaces/default:d1@7\na@A CREATE x => x:x1@40\n--- 1s\n{second}"
        )
    }

    #[test]
    fn a_cluster_that_was_made_anew_is_one_problem_and_one_that_goes_on_is_none() {
        let again = "a@A CREATE namespaces/kube-system => namespaces/kube-system:u2@4\n\
                     a@A CREATE namespaces/default => namespaces/default:d2@9\na@A CREATE y => y:y1@11\n";
        let judgement = judged(&replaced_cluster(again));
        assert!(judgement.findings.is_empty(), "{:?}", judgement.findings);
        let Verdict::Unknown(reason) = judgement.verdict else { panic!("{:?}", judgement.verdict) };
        assert!(reason.contains("a cluster was replaced"), "{reason}");
        // Revisions that continue belong to one cluster, and a restored cluster keeps its uids.
        let on = again.replace("@4", "@44").replace("@9", "@49").replace("@11", "@51");
        let others = ["was replaced", "two clusters"];
        let of_two = |judgement: &Judgement| match &judgement.verdict {
            Verdict::Unknown(reason) => others.iter().any(|word| reason.contains(word)),
            _ => false,
        };
        assert!(!of_two(&judged(&replaced_cluster(&on))));
        let restored = "a@A GET namespaces/kube-system => namespaces/kube-system:u1@5\na@A CREATE y => y:y1@11\n";
        assert_eq!(judged(&replaced_cluster(restored)).verdict, Verdict::Violated);
    }

    #[test]
    fn two_timelines_of_one_cluster_stay_a_violation() {
        let same = format!("{FIRST}{}", SECOND.replace("u2@6", "u1@5"));
        assert_eq!(judged(&same).verdict, Verdict::Violated);
        // A client that saw both uids saw one cluster.
        let both = format!("{FIRST}{SECOND}b@B GET namespaces/kube-system => namespaces/kube-system:u1@5\n");
        assert_eq!(judged(&both).verdict, Verdict::Violated);
        // One wrong uid and nothing else.
        let wrong = format!("{FIRST}{}", SECOND.replace("y1@40", "y1@41"));
        assert!(!matches!(judged(&wrong).verdict, Verdict::Unknown(reason) if reason.contains("two clusters")));
    }
}
