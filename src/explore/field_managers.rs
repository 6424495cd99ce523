//! Managers of fields, by which servers decide about server-side apply. Input: an object, and the fields that a manager sends.
//! Output: the object after it, with the managers of each field. Rules: "Server-Side Apply" in Kubernetes' documentation.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The path of a field that is no map. Lists are fields as a whole.
type Path = Vec<String>;

/// The fields of each manager.
type Managers = BTreeMap<String, BTreeSet<Path>>;

/// An object after an apply; `None` if another manager has one of the fields with another value.
pub fn applied(before: Option<&Value>, sent: &Value, manager: &str, force: bool) -> Option<Value> {
    let mut after = opened(before.cloned().unwrap_or_else(|| json!({})));
    let sent = &opened(sent.clone());
    let mut managers = managers(&after);
    let own = managers.remove(manager).unwrap_or_default();
    let fields = fields(sent);
    for path in &fields {
        let is_same = at(&after, path) == at(sent, path);
        let mut others = managers.values_mut().filter(|others| others.iter().any(|other| overlap(other, path)));
        if !is_same && !force && others.next().is_some() {
            return None;
        }
        if !is_same {
            managers.values_mut().for_each(|others| others.retain(|other| !overlap(other, path)));
        }
    }
    // A field that the manager sends no more is removed, unless another one has it too.
    for path in own.difference(&fields) {
        let is_kept = managers.values().any(|others| others.iter().any(|other| overlap(other, path)));
        if !is_kept && !fields.iter().any(|field| overlap(field, path)) {
            remove(&mut after, path);
        }
    }
    for path in &fields {
        set(&mut after, path, at(sent, path).cloned().unwrap_or_default());
    }
    managers.insert(manager.to_owned(), fields);
    Some(with(after, managers))
}

/// An object after a write that is no apply: its manager has each field that it changed, and no other manager has it.
pub fn written(before: Option<&Value>, after: &Value, manager: &str) -> Value {
    let before = &opened(before.cloned().unwrap_or_else(|| json!({})));
    let after = &opened(after.clone());
    let mut managers = managers(before);
    let (old, new) = (fields(before), fields(after));
    let changed = |path: &&Path| at(before, path) != at(after, path);
    for path in old.union(&new).filter(changed) {
        managers.values_mut().for_each(|others| others.retain(|other| !overlap(other, path)));
    }
    // Kubernetes keeps what a manager applied apart from what it wrote in other ways.
    let own = managers.entry(format!("{manager} by update")).or_default();
    own.extend(new.iter().filter(changed).cloned());
    with(after.clone(), managers)
}

/// Whether one of two paths is the other or leads to it.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn at<'v>(value: &'v Value, path: &Path) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

fn set(value: &mut Value, path: &[String], to: Value) {
    let Some((name, rest)) = path.split_first() else { return *value = to };
    if !value.is_object() {
        *value = json!({});
    }
    set(&mut value[name.as_str()], rest, to);
}

/// Removes a field, and each map that is empty without it.
fn remove(value: &mut Value, path: &[String]) {
    let (Some((name, rest)), Value::Object(fields)) = (path.split_first(), value) else { return };
    if let Some(inner) = fields.get_mut(name).filter(|_| !rest.is_empty()) {
        remove(inner, rest);
        if inner.as_object().is_some_and(Map::is_empty) {
            fields.remove(name);
        }
    } else {
        fields.remove(name);
    }
}

/// The fields of an object that managers can have.
fn fields(value: &Value) -> BTreeSet<Path> {
    fn visit(value: &Value, path: &mut Path, found: &mut BTreeSet<Path>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    path.push(name.clone());
                    visit(value, path, found);
                    path.pop();
                }
            }
            _ => drop(found.insert(path.clone())),
        }
    }
    let mut found = BTreeSet::new();
    visit(value, &mut Vec::new(), &mut found);
    found.retain(|path| {
        let of_server = ["managedFields", "deletionTimestamp", "name", "uid", "resourceVersion"];
        !(path[0] == "metadata" && path.get(1).is_some_and(|name| of_server.contains(&name.as_str())))
    });
    found
}

fn managers(value: &Value) -> Managers {
    let managers = value["metadata"].get("managedFields").cloned();
    managers.and_then(|managers| serde_json::from_value(managers).ok()).unwrap_or_default()
}

fn with(mut value: Value, mut managers: Managers) -> Value {
    managers.retain(|_, fields| !fields.is_empty());
    value["metadata"]["managedFields"] = json!(managers);
    closed(value)
}

/// An object with its finalizers as a map: they are a set, of which each manager has members.
fn opened(mut value: Value) -> Value {
    let finalizers = value.get_mut("metadata").and_then(|metadata| metadata.get_mut("finalizers"));
    if let Some(finalizers) = finalizers
        && let Some(names) = finalizers.as_array()
    {
        *finalizers = names.iter().filter_map(Value::as_str).map(|name| (name.to_owned(), json!(true))).collect();
    }
    value
}

/// The object with its finalizers as a list.
fn closed(mut value: Value) -> Value {
    let finalizers = value.get_mut("metadata").and_then(|metadata| metadata.get_mut("finalizers"));
    if let Some(finalizers) = finalizers
        && let Some(names) = finalizers.as_object()
    {
        *finalizers = names.keys().map(String::as_str).collect();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(before: &Value, sent: Value, manager: &str) -> Option<Value> {
        applied(Some(before), &sent, manager, false)
    }

    /// The object without its managers.
    fn plain(mut value: Value) -> Value {
        value.as_object_mut().unwrap().remove("metadata");
        value
    }

    #[test]
    fn a_field_of_another_manager_conflicts_if_the_value_differs() {
        let made = applied(None, &json!({"spec": {"image": "a", "replicas": 1}}), "ann", false).unwrap();
        assert_eq!(apply(&made, json!({"spec": {"replicas": 2}}), "bob"), None);
        assert_eq!(apply(&made, json!({"spec": {"image": {"name": "a"}}}), "bob"), None, "a map in place of a text");
        let shared = apply(&made, json!({"spec": {"replicas": 1}}), "bob").unwrap();
        assert_eq!(apply(&shared, json!({"spec": {"replicas": 3}}), "bob"), None, "ann has it too");
        let forced = applied(Some(&made), &json!({"spec": {"replicas": 2}}), "bob", true).unwrap();
        assert_eq!(plain(forced.clone()), json!({"spec": {"image": "a", "replicas": 2}}));
        let own = apply(&forced, json!({"spec": {"replicas": 3}}), "bob").unwrap();
        assert_eq!(plain(own), json!({"spec": {"image": "a", "replicas": 3}}), "force took it from ann");
    }

    #[test]
    fn a_field_that_is_sent_no_more_goes_unless_another_manager_has_it() {
        let made = applied(None, &json!({"spec": {"image": "a", "size": {"cpu": 1}}}), "ann", false).unwrap();
        let less = apply(&made, json!({"spec": {"image": "a"}}), "ann").unwrap();
        assert_eq!(plain(less), json!({"spec": {"image": "a"}}));
        let shared = apply(&made, json!({"spec": {"size": {"cpu": 1}}}), "bob").unwrap();
        let less = apply(&shared, json!({"spec": {"image": "a"}}), "ann").unwrap();
        assert_eq!(plain(less), json!({"spec": {"image": "a", "size": {"cpu": 1}}}));
    }

    #[test]
    fn the_same_apply_changes_nothing() {
        let sent = json!({"spec": {"image": "a"}, "metadata": {"labels": {"app": "web"}}});
        let made = applied(None, &sent, "ann", false).unwrap();
        assert_eq!(apply(&made, sent, "ann"), Some(made));
    }

    #[test]
    fn finalizers_are_a_set_of_which_each_manager_has_members() {
        let finalizer = |names: &[&str]| json!({"metadata": {"finalizers": names}});
        let made = applied(None, &finalizer(&["a"]), "ann", false).unwrap();
        let both = apply(&made, finalizer(&["b"]), "bob").unwrap();
        assert_eq!(both["metadata"]["finalizers"], json!(["a", "b"]));
        let less = apply(&both, json!({}), "ann").unwrap();
        assert_eq!(less["metadata"]["finalizers"], json!(["b"]));
        let mut removed = both.clone();
        removed["metadata"]["finalizers"] = json!(["a"]);
        let removed = written(Some(&both), &removed, "ops");
        assert_eq!(apply(&removed, finalizer(&["b"]), "bob").unwrap()["metadata"]["finalizers"], json!(["a", "b"]));
    }

    #[test]
    fn an_update_takes_the_fields_that_it_changes() {
        let made = applied(None, &json!({"spec": {"image": "a", "replicas": 1}}), "ann", false).unwrap();
        let mut after = made.clone();
        after["spec"]["replicas"] = json!(5);
        let written = written(Some(&made), &after, "hpa");
        assert_eq!(apply(&written, json!({"spec": {"image": "a", "replicas": 1}}), "ann"), None);
        let without = apply(&written, json!({"spec": {"image": "b"}}), "ann").unwrap();
        assert_eq!(plain(without), json!({"spec": {"image": "b", "replicas": 5}}));
        // What hpa applies is not what it wrote.
        assert_eq!(apply(&written, json!({"spec": {"replicas": 6}}), "hpa"), None);
    }
}
