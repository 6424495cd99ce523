//! Declared references. Input: a declaration and a version. Output: the objects that the version names ([`Mention`]), and
//! their keys.

use crate::check::facts::catalog::ScanBudget;
use crate::check::{Evidence, RuleResult};
use crate::history::resource::{group_of_api_version, plural_of_kind};
use crate::history::{Declared, Key, KeyId, ResourceId, Symbol};
use crate::model::declaration::{Condition, Reference};
use crate::order::Version;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

/// One object that a version names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Its uid, if the reference has one. A text, because the evidence may never show the object.
    pub uid: Option<String>,
    /// Its name.
    pub target: Option<String>,
    namespace: Option<String>,
    kind: Option<String>,
    api_version: Option<String>,
    /// Whether the reference says `controller: true`.
    pub by_controller: bool,
}

/// An index of the names and resources of a history, to resolve mentions.
#[derive(Debug)]
pub struct Directory<'h> {
    evidence: Evidence<'h>,
    keys: OnceCell<FxHashMap<Key, KeyId>>,
}

impl<'h> Directory<'h> {
    /// The directory of one history.
    pub fn of(evidence: &Evidence<'h>) -> Directory<'h> {
        Directory { evidence: *evidence, keys: OnceCell::new() }
    }

    /// The resources of the history that a reference is declared for.
    pub fn referring(&self, reference: &Reference) -> Vec<ResourceId> {
        self.evidence.resources_named(&reference.from)
    }

    /// The mentions of a version; `None` if the evidence does not show them.
    pub fn mentions(&self, reference: &Reference, version: &Version) -> Option<Vec<Mention>> {
        let declared = self.evidence.history.declared(version.key, version.uid, version.attributes)?;
        mentions(reference, &declared)
    }

    /// The key that a mention names, if the history has it.
    pub fn key(&self, reference: &Reference, from: KeyId, mention: &Mention) -> Option<KeyId> {
        let history = self.evidence.history;
        let from = history.keys[from.index()];
        let own = history.resources[from.resource.index()];
        let (plural, group) = match (&reference.to, &mention.kind) {
            (Some(to), _) => {
                // A reference without a group means the group of its own object.
                let group = to.group.as_deref().unwrap_or_else(|| history.name(own.group));
                (to.plural.clone(), group.to_owned())
            }
            (None, Some(kind)) => {
                let api_version = mention.api_version.as_deref().unwrap_or("");
                (plural_of_kind(kind), group_of_api_version(api_version).to_owned())
            }
            (None, None) => return None,
        };
        let (plural, group) = (history.names.find(&plural)?, history.names.find(&group)?);
        let resource = self.evidence.resource(plural, group)?;
        let name = history.names.find(mention.target.as_deref()?)?;
        let keys = self.keys.get_or_init(|| (0..).map(KeyId).zip(&history.keys).map(|(id, key)| (*key, id)).collect());
        let key = |namespace: Symbol| Key { resource, namespace, name };
        match &mention.namespace {
            Some(namespace) => keys.get(&key(history.names.find(namespace)?)).copied(),
            None => {
                let cluster = history.names.find("").and_then(|none| keys.get(&key(none)));
                keys.get(&key(from.namespace)).or(cluster).copied()
            }
        }
    }
}

/// The keys of the resources that a reference is declared for, in order, within the budget of `scan_budget`.
pub fn keys(
    evidence: &Evidence<'_>,
    resources: &[ResourceId],
    scan_budget: &mut ScanBudget,
    result: &mut RuleResult<'_>,
) -> Vec<KeyId> {
    let mut keys = Vec::new();
    for &resource in resources {
        match scan_budget.take(evidence, resource) {
            true => keys.extend_from_slice(evidence.keys_of(resource)),
            false => result.crowded(),
        }
    }
    keys.sort_unstable();
    keys
}

fn mentions(reference: &Reference, declared: &Declared<'_>) -> Option<Vec<Mention>> {
    let met = |condition: &Condition| condition.admits(declared.text(&condition.path).as_deref());
    if !reference.paths().all(|path| declared.shows(path)) {
        return None;
    }
    if !reference.when.iter().all(met) || reference.unless.iter().any(met) {
        return Some(Vec::new());
    }
    let parts = [
        &reference.uid,
        &reference.target,
        &reference.namespace,
        &reference.kind,
        &reference.api_version,
        &reference.controller,
    ];
    let paths: Vec<_> = parts.iter().filter_map(|part| part.as_ref()).collect();
    let mut found = Vec::new();
    for row in declared.rows(&paths)? {
        let mut values = row.into_iter();
        let [uid, target, namespace, kind, api_version, controller] =
            parts.map(|part| part.as_ref().and_then(|_| values.next().flatten()).filter(|text| !text.is_empty()));
        if uid.is_some() || target.is_some() {
            let by_controller = controller.as_deref() == Some("true");
            found.push(Mention { uid, target, namespace, kind, api_version, by_controller });
        }
    }
    Some(found)
}

/// Whether a client is the garbage collector, which acts on dead references by design (kubernetes cmd/kube-controller-manager:
/// its own service account, or its name at the end of the user agent).
pub fn is_collector(evidence: &Evidence<'_>, incarnation: crate::history::IncarnationId) -> bool {
    let name = evidence.history.client_name(incarnation);
    let program = match incarnation.is_some() {
        true => evidence.history.incarnations[incarnation.index()].program.as_str(),
        false => "",
    };
    let is = |text: &str| matches!(text, "generic-garbage-collector" | "garbage-collector");
    name.rsplit(':').next().is_some_and(is) || is(program)
}
