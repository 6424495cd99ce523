//! Reduces bodies of Kubernetes to what the capture format needs.

use crate::ingest::fields::{self, Cut, Fields};
use serde_json::{Map, Value};

/// The kept parts of bodies about one resource.
#[derive(Clone, Debug, Default)]
pub(super) struct Reduction {
    cut: Cut,
    /// The kept paths, which are written beside each object.
    named: String,
    /// Finalizers hold a deletion back, so they are always kept. A namespace has some in its spec.
    finalizers_in_spec: bool,
    /// Whether the resource is that of Secrets.
    of_secrets: bool,
}

/// Members of options, which describe a request and not an object. Clients send delete options without their kind.
const OF_OPTIONS: [&str; 5] =
    ["preconditions", "dryRun", "propagationPolicy", "gracePeriodSeconds", "orphanDependents"];

/// Members of a `Status`, which describes an answer.
const OF_STATUS: [&str; 4] = ["code", "reason", "message", "details"];

const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl Reduction {
    /// Keeps these fields of a resource's objects, beside their identity.
    pub(super) fn of(fields: &Fields, plural: &str, group: &str) -> Reduction {
        let finalizers_in_spec = (plural, group) == ("namespaces", "");
        let mut named = fields.named(plural, group);
        if finalizers_in_spec {
            named = format!("metadata.finalizers spec.finalizers {named}").trim_end().to_owned();
        }
        let of_secrets = (plural, group) == ("secrets", "");
        Reduction { cut: fields.cut(plural, group).unwrap_or_default(), named, finalizers_in_spec, of_secrets }
    }

    /// Reduces a body: an object, a list, a table, a status, options or a patch.
    pub(super) fn apply(&self, body: &Value) -> Value {
        match body {
            Value::Object(object) => Value::Object(self.object(object)),
            Value::Array(steps) => steps.iter().map(step).collect(),
            _ => Value::Null,
        }
    }

    /// Reduces an event of a watch.
    pub(super) fn event(&self, event: &Value) -> Value {
        let mut kept = Map::new();
        if let Some(kind) = event.get("type") {
            kept.insert("type".to_owned(), kind.clone());
        }
        if let Some(object) = event.get("object") {
            kept.insert("object".to_owned(), self.apply(object));
        }
        Value::Object(kept)
    }

    fn object(&self, object: &Map<String, Value>) -> Map<String, Value> {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        let described: &[&str] = match kind {
            "Status" => &OF_STATUS,
            "DeleteOptions" | "" => &OF_OPTIONS,
            _ => &[],
        };
        // A Secret may be in the answer to any request.
        let bare = Cut::default();
        let cut = if matches!(kind, "Secret" | "SecretList") { &bare } else { &self.cut };
        let mut kept = Map::new();
        for (name, value) in object {
            let value = match name.as_str() {
                "kind" | "apiVersion" => value.clone(),
                "metadata" => metadata(value, cut.member(name)),
                // Items of a list have no kind of their own, so those of Secrets are known by the list's. The declared fields of
                // Secrets are their identity, and those of another resource may be data.
                "items" if kind == "SecretList" && !self.of_secrets => {
                    Value::Array(Reduction::default().elements(name, value))
                }
                "items" | "rows" => Value::Array(self.elements(name, value)),
                "spec" | "status" if value.is_object() => {
                    let field = if name == "spec" { "nodeName" } else { "phase" };
                    let mut part = cut.member(name).and_then(|cut| as_map(kept_of(value, cut))).unwrap_or_default();
                    part.extend(
                        value.get(field).filter(|value| value.is_string()).map(|v| (field.to_owned(), v.clone())),
                    );
                    if self.finalizers_in_spec
                        && let Some(finalizers) = value.get("finalizers").filter(|_| name == "spec")
                    {
                        part.insert("finalizers".to_owned(), finalizers.clone());
                    }
                    Value::Object(part)
                }
                "status" if value.is_string() => value.clone(),
                "target" if kind == "Binding" => value.clone(),
                "deleteOptions" => self.apply(value),
                _ if described.contains(&name.as_str()) => value.clone(),
                _ => match cut.member(name) {
                    Some(cut) => kept_of(value, cut),
                    None => continue,
                },
            };
            kept.insert(name.clone(), value);
        }
        if kept.get("metadata").is_some_and(|metadata| metadata.get("uid").is_some()) {
            let named = if std::ptr::eq(cut, &bare) { "" } else { &self.named };
            kept.insert("recordedFields".to_owned(), Value::from(named));
        }
        kept
    }

    /// Reduces the items of a list, or the objects of a table's rows.
    fn elements(&self, name: &str, value: &Value) -> Vec<Value> {
        let elements = value.as_array().map_or(&[][..], Vec::as_slice);
        let row = |row: &Value| match row.get("object") {
            Some(object) => Value::Object(Map::from_iter([("object".to_owned(), self.apply(object))])),
            None => Value::Object(Map::new()),
        };
        elements.iter().map(|element| if name == "items" { self.apply(element) } else { row(element) }).collect()
    }
}

fn as_map(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

fn metadata(value: &Value, cut: Option<&Cut>) -> Value {
    let Some(metadata) = value.as_object() else { return Value::Null };
    let mut kept = cut.and_then(|cut| as_map(kept_of(value, cut))).unwrap_or_default();
    for (name, value) in metadata.iter().filter(|(name, _)| fields::IDENTITY.contains(&name.as_str())) {
        kept.insert(name.clone(), value.clone());
    }
    if let Some(mark) = metadata.get("annotations").and_then(|annotations| annotations.get(INITIAL_EVENTS_END)) {
        let annotations = kept.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(annotations) = annotations {
            annotations.insert(INITIAL_EVENTS_END.to_owned(), mark.clone());
        }
    }
    Value::Object(kept)
}

/// The kept part of a value.
fn kept_of(value: &Value, cut: &Cut) -> Value {
    if cut.whole {
        return value.clone();
    }
    match value {
        Value::Array(elements) => match cut.element() {
            Some(cut) => elements.iter().map(|element| kept_of(element, cut)).collect(),
            None => elements.iter().map(|_| Value::Null).collect(),
        },
        Value::Object(members) => {
            let each = cut.element();
            // If no path leads below this value, the names of its members are kept.
            let names = each.is_none() && cut.members.is_empty();
            let kept = members.iter().filter_map(|(name, value)| match cut.member(name).or(each) {
                Some(cut) => Some((name.clone(), kept_of(value, cut))),
                None => names.then(|| (name.clone(), Value::Null)),
            });
            Value::Object(kept.collect())
        }
        _ => Value::Null,
    }
}

/// Reduces a step of a JSON patch. Only steps on identity and version have conditions.
fn step(step: &Value) -> Value {
    let text = |name: &str| step.get(name).cloned().unwrap_or_default();
    let mut kept = Map::from_iter([("op".to_owned(), text("op")), ("path".to_owned(), text("path"))]);
    let is_kept = text("path").as_str().is_some_and(|path| {
        fields::IDENTITY.iter().any(|name| path.strip_prefix("/metadata/").is_some_and(|rest| rest == *name))
    });
    if is_kept && let Some(value) = step.get("value") {
        kept.insert("value".to_owned(), value.clone());
    }
    Value::Object(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_holds_a_namespace_is_kept() {
        let shown = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "n", "uid": "u", "annotations": {"a": "b"}},
                           "spec": {"finalizers": ["kubernetes"], "more": 1}});
        let fields = crate::read_options().fields;
        let kept = Reduction::of(&fields, "namespaces", "").apply(&shown);
        assert_eq!(kept["spec"], json!({"finalizers": ["kubernetes"]}));
        assert!(kept["recordedFields"].as_str().is_some_and(|named| named.contains("spec.finalizers")));
        let other = Reduction::of(&fields, "widgets", "example.com").apply(&shown);
        assert_eq!(other["spec"], json!({}));
    }

    #[test]
    fn data_of_secrets_is_not_kept_whatever_resource_was_asked_for() {
        let path = crate::ingest::fields::Path::parse("data.free").expect("it is a path");
        let name = crate::ingest::fields::ResourceName::parse("widgets.example.com").expect("it is a name");
        let reduction = Reduction::of(&Fields::of([(name, path)]), "widgets", "example.com");
        let object =
            |kind: &str| json!({"kind": kind, "metadata": {"name": "n", "uid": "u"}, "data": {"free": "hidden"}});
        let list = |kind: &str| json!({"kind": kind, "items": [{"metadata": {"name": "n", "uid": "u"}, "data": {"free": "hidden"}}]});
        for body in [object("Secret"), list("SecretList")] {
            let kept = reduction.apply(&body).to_string();
            assert!(!kept.contains("hidden") && kept.contains("recordedFields"), "{kept}");
        }
        for body in [object("Widget"), list("WidgetList")] {
            assert!(reduction.apply(&body).to_string().contains("hidden"));
        }
    }
}
