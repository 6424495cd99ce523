//! Evidence of two clusters that was taken for one.

use crate::history::{History, KeyId, Symbol};
use crate::ingest::FileId;
use crate::order::{Contradiction, Order, VersionId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Namespaces that nobody can delete (apiserver, admission plugin NamespaceLifecycle): each has one uid as long as there is the
/// cluster, also in a store that was restored from a backup, or whose members went apart.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// The uids of one namespace, each with the files that show it.
type Uids = BTreeMap<Symbol, BTreeSet<FileId>>;

/// Why nothing can be said: what some files show is certainly of another cluster than what others do.
///
/// An immortal namespace has one uid in some and another one in others, no file shows both, and these files give one revision to two
/// keys, or disagree in the same way about another immortal namespace. One wrong uid is not enough for that, and two timelines of one
/// cluster have the same namespaces.
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
        "the evidence is of two clusters: namespace {}, which nobody can delete, is {} and {}; check each cluster by itself",
        history.name(name),
        side(one),
        side(other)
    ))
}

/// The names of the immortal namespaces among all keys.
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

/// Their uids, by name.
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
    use crate::check::trial::drawn;
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
        // Two immortal namespaces tell it as well.
        let other =
            |text: &str| text.replace("CREATE x => x:x1@40", "GET namespaces/default => namespaces/default:d1@3");
        let second = SECOND.replace("CREATE y => y:y1@40", "GET namespaces/default => namespaces/default:d2@4");
        assert!(matches!(judged(&format!("{}{second}", other(FIRST))).verdict, Verdict::Unknown(_)));
    }

    #[test]
    fn two_timelines_of_one_cluster_stay_a_violation() {
        let same = format!("{FIRST}{}", SECOND.replace("u2@6", "u1@5"));
        assert_eq!(judged(&same).verdict, Verdict::Violated);
        // Who saw both saw one cluster.
        let both = format!("{FIRST}{SECOND}b@B GET namespaces/kube-system => namespaces/kube-system:u1@5\n");
        assert_eq!(judged(&both).verdict, Verdict::Violated);
        // One wrong uid, and nothing else.
        let wrong = format!("{FIRST}{}", SECOND.replace("y1@40", "y1@41"));
        assert!(!matches!(judged(&wrong).verdict, Verdict::Unknown(reason) if reason.contains("two clusters")));
    }
}
