//! An index of the objects that may be in a selection. Each kubelet of a cluster has a selector of its own, and so have most
//! informers of an operator, so not every object is tested with every selector.

use crate::check::Evidence;
use crate::history::{AttributesId, KeyId, ResourceId, Revision, ScopeId, Symbol, selector};
use rustc_hash::FxHashMap;
use std::sync::{Arc, PoisonError};

/// The objects of one resource by the values that equalities in selectors name. An object is listed under each value that a
/// version had.
#[derive(Debug, Default)]
pub struct Selectable {
    labels: Values<(String, String)>,
    nodes: Values<Symbol>,
    phases: Values<Symbol>,
}

/// Objects by one kind of value.
#[derive(Debug)]
struct Values<V> {
    of: FxHashMap<V, Vec<KeyId>>,
    /// Objects with a version without a recorded value.
    unknown: Vec<KeyId>,
}

impl<V> Default for Values<V> {
    fn default() -> Self {
        Values { of: FxHashMap::default(), unknown: Vec::new() }
    }
}

impl<V: Eq + std::hash::Hash> Values<V> {
    fn add(&mut self, key: KeyId, value: Option<V>) {
        let keys = match value {
            Some(value) => self.of.entry(value).or_default(),
            None => &mut self.unknown,
        };
        if keys.last() != Some(&key) {
            keys.push(key);
        }
    }

    fn finish(&mut self) {
        for keys in self.of.values_mut().chain([&mut self.unknown]) {
            keys.sort_unstable();
            keys.dedup();
        }
    }

    /// The objects that had one of some values, or may have had one.
    fn any_of(&self, values: impl Iterator<Item = V>) -> Vec<KeyId> {
        let known = values.filter_map(|value| self.of.get(&value)).flatten();
        known.chain(&self.unknown).copied().collect()
    }
}

impl Evidence<'_> {
    /// The index of a resource, built at the first use.
    pub(in crate::check) fn selectable(&self, resource: ResourceId) -> Arc<Selectable> {
        let mut known = self.facts.selectable.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(resource).or_insert_with(|| Arc::new(Selectable::of(self, resource))).clone()
    }
}

impl Selectable {
    /// Builds the index in one pass over the versions of a resource.
    pub fn of(evidence: &Evidence<'_>, resource: ResourceId) -> Selectable {
        let history = evidence.history;
        let mut selectable = Selectable::default();
        let mut labels: FxHashMap<Symbol, Option<Vec<(String, String)>>> = FxHashMap::default();
        let versions = evidence.order.timeline.of_resource(resource, Revision::NONE, Revision::new(u128::MAX));
        let mut seen: FxHashMap<KeyId, AttributesId> = FxHashMap::default();
        for version in versions {
            if seen.insert(version.key, version.attributes) == Some(version.attributes) {
                continue;
            }
            let shown = version.attributes.is_some().then(|| history.attributes[version.attributes.index()]);
            let known = |symbol: Symbol| symbol.is_some().then_some(symbol);
            let of = shown.and_then(|shown| known(shown.labels)).and_then(|symbol| {
                let read = || selector::labels(history.name(symbol)).map(|map| map.into_iter().collect());
                labels.entry(symbol).or_insert_with(read).as_ref()
            });
            match of {
                Some(of) => of.iter().for_each(|label| selectable.labels.add(version.key, Some(label.clone()))),
                None => selectable.labels.add(version.key, None),
            }
            selectable.nodes.add(version.key, shown.and_then(|shown| known(shown.node)));
            selectable.phases.add(version.key, shown.and_then(|shown| known(shown.phase)));
        }
        selectable.labels.finish();
        selectable.nodes.finish();
        selectable.phases.finish();
        selectable
    }

    /// The objects with a version that may be in a selection; `None` if no equality of the selector narrows them down.
    pub fn keys(&self, evidence: &Evidence<'_>, scope: ScopeId) -> Option<Vec<KeyId>> {
        let history = evidence.history;
        let scope = history.scopes[scope.index()];
        if let Some((label, values)) = selector::wanted_label(history.name(scope.labels)) {
            return Some(self.labels.any_of(values.into_iter().map(|value| (label.to_owned(), value.to_owned()))));
        }
        selector::wanted_fields(history.name(scope.fields)).find_map(|(field, value)| {
            let values = match field {
                "spec.nodeName" => &self.nodes,
                "status.phase" => &self.phases,
                _ => return None,
            };
            // A value without a symbol is the value of no version.
            Some(values.any_of(history.names.find(value).into_iter()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Selectable;
    use crate::check::{Evidence, Facts, Options};
    use crate::history::sketch::sketch;
    use crate::history::{ResourceId, ScopeId};
    use crate::order::{Order, OrderOptions};

    #[test]
    fn no_object_that_may_be_selected_is_left_out() {
        let selectors = [
            "labels(app=web)",
            "labels(app in (web,db),tier)",
            "labels(app!=web)",
            "labels(tier,app=db)",
            "fields(spec.nodeName=n1)",
            "fields(spec.nodeName!=n1)",
            "fields(status.phase=Running)",
            "fields(spec.nodeName=elsewhere)",
        ];
        let mut text = String::from(
            "o@A LIST => 90 {a:u1@10[app=web node=n1] b:u2@20[app=db phase=Running] c:u3@30 d:u4@40[?]}\n",
        );
        text += "o@A PUT a:u1@10 => a:u1@50[app=db node=n2]\n";
        for (at, selector) in selectors.iter().enumerate() {
            text += &format!("w{at}@A LIST {selector} => 90 {{}}\n");
        }
        let history = sketch(&text).unwrap_or_else(|error| panic!("{error}"));
        let order = Order::derive(&history, &OrderOptions::default());
        let (options, derived) = (Options::default(), Facts::default());
        let evidence = Evidence { history: &history, order: &order, options: &options, facts: &derived };
        let selectable = Selectable::of(&evidence, ResourceId(0));
        let mut narrowed = 0;
        for scope in (0..history.scopes.len() as u32).map(ScopeId).filter(|scope| history.is_selective(*scope)) {
            let Some(keys) = selectable.keys(&evidence, scope) else { continue };
            narrowed += 1;
            for version in order.timeline.all().iter() {
                let may = history.selects(scope, version.key, version.attributes) != Some(false);
                assert!(!may || keys.contains(&version.key), "{} leaves out one", history.scope_name(scope));
            }
        }
        assert_eq!(narrowed, 6, "only inequalities narrow nothing down");
    }
}
