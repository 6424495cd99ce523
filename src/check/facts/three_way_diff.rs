//! Three-way comparison of bodies: the version read, the versions since, and the write. Output: a field that the write put
//! back or overwrote although others had changed it. Trap: a body that a recorder cut shows no absence ([`Fields::shows`]).

use crate::check::facts::authorship::Author;
use crate::history::recorded_fields;
use crate::ingest::fields::covers;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The fields of an object by path, arrays as a whole, without the server's bookkeeping and without times.
#[derive(Clone, Debug, Default)]
pub struct Fields<'v> {
    values: BTreeMap<String, &'v Value>,
    /// The paths that a recorder kept beside the identity; `None`: the object is whole.
    kept: Option<&'v str>,
}

impl<'v> Fields<'v> {
    /// The fields of one body.
    pub fn of(object: &'v Value) -> Fields<'v> {
        let mut fields = Fields { values: BTreeMap::new(), kept: recorded_fields(object) };
        flatten(object, String::new(), &mut fields.values);
        fields
    }

    /// The value of a field.
    pub fn get(&self, path: &str) -> Option<&'v Value> {
        self.values.get(path).copied()
    }

    /// All paths.
    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.values.keys()
    }

    /// Whether a field that is missing here was missing in the object.
    pub fn shows(&self, path: &str) -> bool {
        self.kept.is_none_or(|kept| covers(kept, path))
    }
}

fn flatten<'v>(value: &'v Value, path: String, found: &mut BTreeMap<String, &'v Value>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if !is_bookkeeping(&path, name) {
                    flatten(member, path, found);
                }
            }
        }
        _ => {
            found.insert(path, value);
        }
    }
}

fn is_bookkeeping(path: &str, name: &str) -> bool {
    let metadata = path.strip_prefix("metadata.").unwrap_or("");
    matches!(metadata, "managedFields" | "resourceVersion" | "generation" | "uid" | "selfLink")
        || matches!(path, "apiVersion" | "kind" | "status.observedGeneration" | "recordedFields")
        || name.ends_with("Time")
        || name.ends_with("Timestamp")
}

/// The fields that a request writes: a whole object, a merge patch, or the values that a JSON patch adds and replaces. Paths
/// that a JSON patch tests first are left out, because its author knew their values.
pub fn written(request: &Value) -> Fields<'_> {
    let Some(steps) = request.as_array() else {
        let mut all = Fields::of(request);
        // A null in a merge patch removes a field.
        all.values.retain(|_, value| !value.is_null());
        return all;
    };
    let mut found = BTreeMap::new();
    let mut tested: Vec<&str> = Vec::new();
    for step in steps {
        let text = |name: &str| step.get(name).and_then(Value::as_str).unwrap_or("");
        if text("op") == "test" {
            tested.push(text("path"));
        }
        let is_tested = tested.iter().any(|path| {
            text("path").strip_prefix(path).is_some_and(|below| below.is_empty() || below.starts_with('/'))
        });
        let sets = matches!(text("op"), "add" | "replace") && !is_tested;
        let parts: Vec<String> =
            text("path").split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
        // An array index names no field.
        let plain = !parts.is_empty() && parts.iter().all(|p| p != "-" && !p.bytes().all(|b| b.is_ascii_digit()));
        let last = parts.last().map_or("", |p| p);
        if let Some(value) = step.get("value").filter(|_| sets && plain && !is_bookkeeping(&parts.join("."), last)) {
            flatten(value, parts.join("."), &mut found);
        }
    }
    Fields { values: found, kept: None }
}

/// The bodies of one object around a write.
pub struct WriteHistory<'v> {
    /// The version that the writer had read.
    pub read: &'v Value,
    /// The versions after it and before the write: their bodies, if recorded, and their authors.
    pub since: Vec<(Option<&'v Value>, Author)>,
    /// The request of the write.
    pub request: &'v Value,
    /// The object after the write. Without it nothing shows the effect of the request (an ignored status, a merged list).
    pub answer: &'v Value,
    /// Whether the request is a whole object.
    pub whole: bool,
}

impl WriteHistory<'_> {
    /// The first field that the write put back to the value that its writer had read, although other processes had changed it
    /// in between, with the range of versions that changed it.
    ///
    /// Never for an apply (a patch with a kind): it states the wishes of its owner, and the server reports conflicts.
    pub fn reverted(&self) -> Option<(String, Changed)> {
        if self.applies() { None } else { self.others(|read, sent| read == sent) }
    }

    /// The same for any value other than the current one: the change of other processes is gone. Never for an apply.
    pub fn overwritten(&self) -> Option<(String, Changed)> {
        if self.applies() { None } else { self.others(|_, _| true) }
    }

    fn applies(&self) -> bool {
        !self.whole && self.request.get("kind").is_some()
    }

    fn others(&self, counts: impl Fn(Option<&Value>, Option<&Value>) -> bool) -> Option<(String, Changed)> {
        let read = Fields::of(self.read);
        let since: Vec<Option<Fields<'_>>> = self.since.iter().map(|(body, _)| body.map(Fields::of)).collect();
        let before = since.last()?.as_ref()?;
        let after = Fields::of(self.answer);
        let sent = written(self.request);
        let is_shown = |path: &str| [&read, before, &after].into_iter().all(|fields| fields.shows(path));
        let put = sent
            .values
            .iter()
            .filter(|(path, value)| before.get(path) != Some(value) && is_shown(path))
            .filter(|(path, value)| counts(read.get(path), Some(value)) && after.get(path) == Some(value))
            .map(|(path, _)| path);
        // A whole object removes the fields that it lacks.
        let taken_away = before
            .paths()
            .filter(|path| self.whole && sent.get(path).is_none() && sent.shows(path) && is_shown(path))
            .filter(|path| counts(read.get(path), None) && after.get(path).is_none());
        let authors: Vec<Author> = self.since.iter().map(|(_, author)| *author).collect();
        let by_others = |path: &String| {
            let changed = last_change(path, &read, &since)?;
            Some((is_by_others(&authors, &changed)?, path.clone(), changed))
        };
        // A change that others certainly made comes first.
        let mut open = None;
        for (certain, path, changed) in put.chain(taken_away).filter_map(by_others) {
            if certain {
                return Some((path, changed));
            }
            open = open.or(Some((path, changed)));
        }
        open
    }
}

/// The range of versions of which one changed a field. The last of them is the first one that shows the change.
pub type Changed = RangeInclusive<usize>;

/// Whether other processes certainly made a change. `Some(false)`: a version with a cut body and an unknown writer may have
/// made it. `None`: the process itself may have made it.
pub fn is_by_others(authors: &[Author], changed: &Changed) -> Option<bool> {
    let of = &authors[changed.clone()];
    let shown = of.last() == Some(&Author::Another) && !of.contains(&Author::Itself);
    shown.then(|| of.iter().all(|author| *author == Author::Another))
}

/// The versions that may have set a field's last value, if that value differs from the one read. A version that does not show
/// the field may have changed it.
pub fn last_change(path: &str, read: &Fields<'_>, since: &[Option<Fields<'_>>]) -> Option<Changed> {
    let mut changed = None;
    let (mut value, mut next) = (read.get(path), 0);
    for (at, fields) in since.iter().enumerate() {
        let Some(fields) = fields.as_ref().filter(|fields| fields.shows(path)) else { continue };
        if fields.get(path) != value {
            changed = Some(next..=at);
        }
        (value, next) = (fields.get(path), at + 1);
    }
    changed
}

/// Whether two bodies agree on the fields that both show, without bookkeeping and times, inside arrays too.
pub fn is_same(a: &Value, b: &Value) -> bool {
    let (a, b) = (Fields::of(a), Fields::of(b));
    a.paths().chain(b.paths()).filter(|path| a.shows(path) && b.shows(path)).all(|path| {
        match (a.get(path), b.get(path)) {
            (Some(a), Some(b)) => is_same_value(a, b),
            _ => false,
        }
    })
}

fn is_same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_value(a, b)),
        (Value::Object(_), Value::Object(_)) => is_same(a, b),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reverted_path(read: Value, since: Value, request: Value, whole: bool) -> Option<String> {
        let write = WriteHistory {
            read: &read,
            since: vec![(Some(&since), Author::Another)],
            request: &request,
            answer: &request,
            whole,
        };
        write.reverted().map(|(path, _)| path)
    }

    #[test]
    fn a_field_that_others_changed_is_put_back() {
        let read = json!({"spec": {"a": 1, "b": [1]}});
        let since = json!({"spec": {"a": 2, "b": [1]}});
        assert_eq!(
            reverted_path(read.clone(), since.clone(), json!({"spec": {"a": 1, "c": 3}}), false).unwrap(),
            "spec.a"
        );
        assert_eq!(reverted_path(read.clone(), since.clone(), json!({"spec": {"c": 3}}), false), None);
        assert_eq!(reverted_path(read.clone(), since.clone(), json!({"spec": {"a": 5}}), false), None);
        let patch = json!([{"op": "replace", "path": "/spec/a", "value": 1}]);
        let since = vec![(Some(&since), Author::Another)];
        let write = WriteHistory { read: &read, since, request: &patch, answer: &read, whole: false };
        assert_eq!(write.reverted().unwrap().0, "spec.a");
        let tested = json!([{"op": "test", "path": "/spec", "value": {"a": 2}}, patch[0]]);
        assert_eq!(WriteHistory { request: &tested, ..write }.reverted(), None);
    }

    #[test]
    fn a_whole_object_takes_away_what_others_added() {
        let read = json!({"data": {"a": "1"}});
        let since = json!({"data": {"a": "1", "b": "2"}});
        assert_eq!(reverted_path(read.clone(), since.clone(), json!({"data": {"a": "3"}}), true).unwrap(), "data.b");
        assert_eq!(reverted_path(read, since, json!({"data": {"a": "3", "b": "2"}}), true), None);
    }

    #[test]
    fn bookkeeping_and_times_are_nobody_s_fields() {
        let read =
            json!({"metadata": {"resourceVersion": "5", "generation": 1}, "status": {"lastHeartbeatTime": "t1"}});
        let since =
            json!({"metadata": {"resourceVersion": "6", "generation": 2}, "status": {"lastHeartbeatTime": "t2"}});
        assert_eq!(reverted_path(read.clone(), since, read, true), None);
    }

    #[test]
    fn a_new_value_over_a_change_of_others_overwrites_it_and_reverts_nothing() {
        let (read, since) = (json!({"a": 1, "b": 1}), json!({"a": 2, "b": 1}));
        let request = json!({"a": 3, "b": 5});
        let write = WriteHistory {
            read: &read,
            since: vec![(Some(&since), Author::Another)],
            request: &request,
            answer: &request,
            whole: false,
        };
        assert_eq!((write.reverted(), write.overwritten().map(|(path, _)| path)), (None, Some("a".to_owned())));
        let agrees = json!({"a": 2});
        let others = || write.since.clone();
        assert_eq!(WriteHistory { request: &agrees, answer: &agrees, since: others(), ..write }.overwritten(), None);
        let apply = json!({"kind": "X", "a": 3});
        assert_eq!(WriteHistory { request: &apply, answer: &apply, since: others(), ..write }.overwritten(), None);
        // The server kept the existing value.
        assert_eq!(WriteHistory { answer: &since, since: others(), ..write }.overwritten(), None);
    }

    #[test]
    fn bodies_that_differ_in_times_only_are_the_same() {
        let one = json!({"metadata": {"resourceVersion": "1"}, "status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": "t1"}]}});
        let two = json!({"metadata": {"resourceVersion": "2"}, "status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": "t2"}]}});
        assert!(is_same(&one, &two));
        assert!(!is_same(&one, &json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})));
        assert!(!is_same(&one, &json!({})));
    }

    #[test]
    fn a_version_that_nobody_shows_may_have_made_the_change() {
        let (read, last) = (json!({"a": 1}), json!({"a": 2}));
        let reverted = |author| {
            let since = vec![(None, author), (Some(&last), Author::Another)];
            WriteHistory { read: &read, since, request: &read, answer: &read, whole: false }.reverted()
        };
        assert_eq!(reverted(Author::Another), Some(("a".to_owned(), 0..=1)));
        assert_eq!(reverted(Author::Unknown), Some(("a".to_owned(), 0..=1)));
        assert_eq!(reverted(Author::Itself), None);
        assert_eq!(is_by_others(&[Author::Unknown, Author::Another], &(0..=1)), Some(false));
        assert_eq!(is_by_others(&[Author::Another, Author::Unknown], &(0..=1)), None);
        let since = vec![(Some(&last), Author::Another), (None, Author::Another)];
        assert_eq!(WriteHistory { read: &read, since, request: &read, answer: &read, whole: false }.reverted(), None);
    }

    #[test]
    fn what_a_recorder_cut_off_is_not_missing() {
        let (whole, changed) = (json!({"spec": {"a": 1, "b": 1}}), json!({"spec": {"a": 2, "b": 2}}));
        let sent = json!({"spec": {"a": 1}});
        let cut = |kept: &str| json!({"spec": {"a": 1}, "recordedFields": kept});
        let reverted = |read: &Value, answer: &Value, request: &Value| {
            let since = vec![(Some(&changed), Author::Another)];
            WriteHistory { read, since, request, answer, whole: true }.reverted().map(|(path, _)| path)
        };
        assert_eq!(reverted(&cut(""), &sent, &sent), None);
        assert_eq!(reverted(&cut("spec.a"), &sent, &sent).as_deref(), Some("spec.a"));
        assert_eq!(reverted(&json!({"spec": {"a": 2}}), &sent, &sent).as_deref(), Some("spec.b"));
        assert_eq!(reverted(&json!({"spec": {"a": 2}, "recordedFields": "spec.a"}), &sent, &sent), None);
        assert!(is_same(&whole, &cut("spec.a")) && !is_same(&changed, &cut("spec.a")) && is_same(&changed, &cut("")));
    }

    #[test]
    fn an_own_change_is_no_one_else_s() {
        let (read, since) = (json!({"a": 1}), json!({"a": 2}));
        let write = WriteHistory {
            read: &read,
            since: vec![(Some(&since), Author::Itself)],
            request: &read,
            answer: &read,
            whole: false,
        };
        assert_eq!(write.reverted(), None);
    }
}
