//! Three-way comparison: which fields a write put back to what its writer had read, although others had changed them since.

use serde_json::Value;
use std::collections::BTreeMap;

/// A field by its path, arrays as a whole.
pub type Fields<'v> = BTreeMap<String, &'v Value>;

/// The fields of an object that writers mean: without bookkeeping of the server and without times.
pub fn fields(object: &Value) -> Fields<'_> {
    let mut found = Fields::new();
    flatten(object, String::new(), &mut found);
    found
}

fn flatten<'v>(value: &'v Value, path: String, found: &mut Fields<'v>) {
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
        || matches!(path, "apiVersion" | "kind" | "status.observedGeneration")
        || name.ends_with("Time")
        || name.ends_with("Timestamp")
}

/// What a request writes: a whole object, a merge patch, or the values that a JSON patch adds and replaces.
pub fn written(request: &Value) -> Fields<'_> {
    let Some(steps) = request.as_array() else {
        let mut all = fields(request);
        // A null in a merge patch takes a field away.
        all.retain(|_, value| !value.is_null());
        return all;
    };
    let mut found = Fields::new();
    for step in steps {
        let text = |name: &str| step.get(name).and_then(Value::as_str).unwrap_or("");
        let sets = matches!(text("op"), "add" | "replace");
        let parts: Vec<String> =
            text("path").split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
        // An index of an array names no field.
        let plain = !parts.is_empty() && parts.iter().all(|p| p != "-" && !p.bytes().all(|b| b.is_ascii_digit()));
        let last = parts.last().map_or("", |p| p);
        if let Some(value) = step.get("value").filter(|_| sets && plain && !is_bookkeeping(&parts.join("."), last)) {
            flatten(value, parts.join("."), &mut found);
        }
    }
    found
}

/// One object over time, as far as a write is concerned.
pub struct Course<'v> {
    /// What the writer had read.
    pub read: &'v Value,
    /// The versions after it, before the write: their bodies, and whether another process made each.
    pub since: Vec<(&'v Value, bool)>,
    /// What the write sends.
    pub request: &'v Value,
    /// The object after it, where known.
    pub answer: Option<&'v Value>,
    /// Whether the request is a whole object.
    pub whole: bool,
}

impl Course<'_> {
    /// The first field that the write put back to the value that its writer had read, although another process had changed it
    /// in between, with the place of that change among the versions since.
    pub fn reverted(&self) -> Option<(String, usize)> {
        let read = fields(self.read);
        let since: Vec<Fields<'_>> = self.since.iter().map(|(body, _)| fields(body)).collect();
        let before = since.last()?;
        let after = self.answer.map(fields);
        let holds =
            |path: &String, value: Option<&Value>| after.as_ref().is_none_or(|after| after.get(path).copied() == value);
        let sent = written(self.request);
        let put_back = sent
            .iter()
            .filter(|(path, value)| read.get(*path) == Some(value) && before.get(*path) != Some(value))
            .filter(|(path, value)| holds(path, Some(value)))
            .map(|(path, _)| path);
        // A whole object takes away what it does not have.
        let taken_away = before
            .keys()
            .filter(|path| self.whole && !sent.contains_key(*path) && !read.contains_key(*path))
            .filter(|path| after.is_some() && holds(path, None));
        put_back.chain(taken_away).find_map(|path| {
            let at = (0..since.len()).rev().find(|&at| {
                let older = if at == 0 { &read } else { &since[at - 1] };
                older.get(path) != since[at].get(path)
            })?;
            self.since[at].1.then(|| (path.clone(), at))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn course(read: Value, since: Value, request: Value, whole: bool) -> Option<String> {
        let answer = request.clone();
        let course = Course {
            read: &read,
            since: vec![(&since, true)],
            request: &request,
            answer: whole.then_some(&answer),
            whole,
        };
        course.reverted().map(|(path, _)| path)
    }

    #[test]
    fn a_field_that_others_changed_is_put_back() {
        let read = json!({"spec": {"a": 1, "b": [1]}});
        let since = json!({"spec": {"a": 2, "b": [1]}});
        assert_eq!(course(read.clone(), since.clone(), json!({"spec": {"a": 1, "c": 3}}), false).unwrap(), "spec.a");
        assert_eq!(course(read.clone(), since.clone(), json!({"spec": {"c": 3}}), false), None);
        assert_eq!(course(read.clone(), since.clone(), json!({"spec": {"a": 5}}), false), None);
        let patch = json!([{"op": "replace", "path": "/spec/a", "value": 1}]);
        assert_eq!(course(read, since, patch, false).unwrap(), "spec.a");
    }

    #[test]
    fn a_whole_object_takes_away_what_others_added() {
        let read = json!({"data": {"a": "1"}});
        let since = json!({"data": {"a": "1", "b": "2"}});
        assert_eq!(course(read.clone(), since.clone(), json!({"data": {"a": "3"}}), true).unwrap(), "data.b");
        assert_eq!(course(read, since, json!({"data": {"a": "3", "b": "2"}}), true), None);
    }

    #[test]
    fn bookkeeping_and_times_are_nobody_s_fields() {
        let read =
            json!({"metadata": {"resourceVersion": "5", "generation": 1}, "status": {"lastHeartbeatTime": "t1"}});
        let since =
            json!({"metadata": {"resourceVersion": "6", "generation": 2}, "status": {"lastHeartbeatTime": "t2"}});
        assert_eq!(course(read.clone(), since, read, true), None);
    }

    #[test]
    fn an_own_change_is_no_one_else_s() {
        let (read, since) = (json!({"a": 1}), json!({"a": 2}));
        let course = Course { read: &read, since: vec![(&since, false)], request: &read, answer: None, whole: false };
        assert_eq!(course.reverted(), None);
    }
}
