//! Reads declared fields of one version by path.

use super::ids::{AttributesId, KeyId, PartId, Symbol};
use super::json_parts::Part;
use super::store::History;
use crate::ingest::fields::{Path, Step};
use serde_json::Value as Json;
use std::borrow::Cow;

/// The content of an object in one piece of evidence: its identity and its declared fields.
#[derive(Clone, Copy, Debug)]
pub struct Declared<'h> {
    history: &'h History,
    key: KeyId,
    uid: Symbol,
    root: PartId,
    whole: bool,
}

/// Bound on the result of [`Declared::rows`], above what any object that fits into etcd yields.
const MOST_ROWS: usize = 1 << 16;

/// A place in a value.
#[derive(Clone, Debug)]
enum Node {
    /// A kept value.
    Kept(PartId),
    /// Inside a text that holds JSON, or a part of the identity.
    Json(Json),
}

/// One combination of elements that the paths pass through, with the values on it.
#[derive(Clone, Debug, Default)]
struct Row<'p> {
    /// Elements chosen so far: the path to each, its place, its key if it has one.
    chosen: Vec<(&'p [Step], Node, Option<String>)>,
    values: Vec<Option<String>>,
}

impl History {
    /// The declared fields that a version shows; `None` if the evidence shows none.
    #[doc(hidden)]
    pub fn declared(&self, key: KeyId, uid: Symbol, attributes: AttributesId) -> Option<Declared<'_>> {
        let shown = attributes.is_some().then(|| self.attributes[attributes.index()])?;
        shown.fields.is_some().then_some(Declared { history: self, key, uid, root: shown.fields, whole: shown.whole })
    }
}

impl History {
    /// Whether any object may have a value at a path: the evidence has each of its leading names.
    pub(crate) fn has_names_of(&self, path: &Path) -> bool {
        is_identity(&path.steps) || path.leading_names().all(|name| self.names.find(name).is_some())
    }
}

impl<'h> Declared<'h> {
    /// The id of all declared fields together: equal for two versions with equal fields.
    pub fn root(&self) -> PartId {
        self.root
    }

    /// Whether the evidence would include this field if the object had it.
    pub fn shows(&self, path: &Path) -> bool {
        self.whole || path.steps.first() == Some(&Step::Member("metadata".to_owned()))
    }

    /// Whether the object has no value at a path, since it lacks one of the leading names.
    pub fn lacks(&self, path: &Path) -> bool {
        !is_identity(&path.steps) && self.literal(path).is_none()
    }

    /// The first text, number or truth value that a path leads to.
    pub fn text(&self, path: &Path) -> Option<String> {
        self.shown(path).map(Cow::into_owned)
    }

    /// As [`Declared::text`], borrowed from the history if the text is stored there.
    pub fn shown(&self, path: &Path) -> Option<Cow<'h, str>> {
        if is_plain(path) {
            return self.plain(path);
        }
        self.rows(&[path])?.into_iter().find_map(|mut row| row.pop().flatten()).map(Cow::Owned)
    }

    /// The values of several paths together, one row per combination of elements. Paths with a common prefix up to a `[*]` share
    /// the element. A path without a value in a row has `None` there. `None` for the whole result above 65,536 rows.
    pub fn rows(&self, paths: &[&Path]) -> Option<Vec<Vec<Option<String>>>> {
        // Most paths are names only: they yield one row without any state.
        if paths.iter().all(|path| is_plain(path)) {
            return Some(vec![paths.iter().map(|path| self.plain(path).map(Cow::into_owned)).collect()]);
        }
        let mut rows = vec![Row::default()];
        for path in paths {
            let mut next = Vec::new();
            for row in rows {
                self.follow(path, row, &mut next);
                if next.len() > MOST_ROWS {
                    return None;
                }
            }
            rows = next;
        }
        Some(rows.into_iter().map(|row| row.values).collect())
    }

    /// The value of a path of names only.
    fn plain(&self, path: &Path) -> Option<Cow<'h, str>> {
        if let Some(text) = self.identity(&path.steps) {
            return Some(Cow::Owned(text));
        }
        let at = self.literal(path)?;
        match self.history.parts.get(at) {
            Part::Number(symbol) | Part::Text(symbol) => Some(Cow::Borrowed(self.history.name(symbol))),
            _ => self.leaf(&Node::Kept(at)).map(Cow::Owned),
        }
    }

    /// The value that the leading names of a path lead to.
    fn literal(&self, path: &Path) -> Option<PartId> {
        let (parts, names) = (&self.history.parts, &self.history.names);
        path.leading_names().try_fold(self.root, |at, name| parts.member(at, names.find(name)?))
    }

    fn follow<'p>(&self, path: &'p Path, row: Row<'p>, next: &mut Vec<Row<'p>>) {
        let steps = path.steps.as_slice();
        let shared =
            row.chosen.iter().filter(|(prefix, ..)| steps.starts_with(prefix)).max_by_key(|(prefix, ..)| prefix.len());
        let (from, node, key) = match shared {
            Some((prefix, node, key)) => (prefix.len(), node.clone(), key.clone()),
            None => match self.identity(steps) {
                Some(text) => (steps.len(), Node::Json(Json::String(text)), None),
                None => (0, Node::Kept(self.root), None),
            },
        };
        let mut end = |chosen, text: Option<String>| {
            next.push(Row { chosen, values: [row.values.as_slice(), &[text]].concat() });
            next.len() <= MOST_ROWS
        };
        let mut open = vec![(from, node, key, row.chosen)];
        while let Some((at, node, key, chosen)) = open.pop() {
            let on = match steps.get(at) {
                None => end(chosen, self.leaf(&node)),
                Some(Step::Key) => end(chosen, key),
                Some(Step::Member(name)) => match self.member(&node, name) {
                    Some(node) => {
                        open.push((at + 1, node, None, chosen));
                        true
                    }
                    None => end(chosen, None),
                },
                Some(Step::Json) => match self.leaf(&node).and_then(|text| serde_json::from_str(&text).ok()) {
                    Some(json) => {
                        open.push((at + 1, Node::Json(json), None, chosen));
                        true
                    }
                    None => end(chosen, None),
                },
                Some(Step::Each) => {
                    let elements = self.elements(&node);
                    let none = elements.is_empty();
                    // Pushed in reverse, so that elements are popped in their order.
                    for (node, key) in elements.into_iter().rev() {
                        let mut chosen = chosen.clone();
                        chosen.push((&steps[..=at], node.clone(), key.clone()));
                        open.push((at + 1, node, key, chosen));
                    }
                    !none || end(chosen, None)
                }
            };
            if !on {
                return;
            }
        }
    }

    /// Name, namespace and uid are known for every version.
    fn identity(&self, steps: &[Step]) -> Option<String> {
        let key = self.history.keys[self.key.index()];
        let symbol = match identity_field(steps)? {
            "name" => key.name,
            "namespace" => key.namespace,
            _ => self.uid,
        };
        Some(self.history.name(symbol).to_owned()).filter(|text| !text.is_empty())
    }

    fn member(&self, node: &Node, name: &str) -> Option<Node> {
        match node {
            Node::Kept(id) => {
                let symbol = self.history.names.find(name)?;
                self.history.parts.member(*id, symbol).map(Node::Kept)
            }
            Node::Json(json) => json.get(name).cloned().map(Node::Json),
        }
    }

    fn elements(&self, node: &Node) -> Vec<(Node, Option<String>)> {
        let name = |symbol: Symbol| symbol.is_some().then(|| self.history.name(symbol).to_owned());
        match node {
            Node::Kept(id) => match self.history.parts.get(*id) {
                Part::List(all) | Part::Map(all) => all.iter().map(|&(key, id)| (Node::Kept(id), name(key))).collect(),
                _ => Vec::new(),
            },
            Node::Json(Json::Array(all)) => all.iter().map(|json| (Node::Json(json.clone()), None)).collect(),
            Node::Json(Json::Object(all)) => {
                all.iter().map(|(key, json)| (Node::Json(json.clone()), Some(key.clone()))).collect()
            }
            Node::Json(_) => Vec::new(),
        }
    }

    fn leaf(&self, node: &Node) -> Option<String> {
        match node {
            Node::Kept(id) => match self.history.parts.get(*id) {
                Part::Bool(value) => Some(value.to_string()),
                Part::Number(symbol) | Part::Text(symbol) => Some(self.history.name(symbol).to_owned()),
                Part::Null | Part::List(_) | Part::Map(_) => None,
            },
            Node::Json(Json::String(text)) => Some(text.clone()),
            Node::Json(Json::Number(number)) => Some(number.to_string()),
            Node::Json(Json::Bool(value)) => Some(value.to_string()),
            Node::Json(_) => None,
        }
    }
}

/// The field of the identity that steps lead to: "name", "namespace" or "uid".
fn identity_field(steps: &[Step]) -> Option<&str> {
    let [Step::Member(metadata), Step::Member(name)] = steps else { return None };
    (metadata == "metadata" && matches!(name.as_str(), "name" | "namespace" | "uid")).then_some(name)
}

fn is_identity(steps: &[Step]) -> bool {
    identity_field(steps).is_some()
}

fn is_plain(path: &Path) -> bool {
    path.steps.iter().all(|step| matches!(step, Step::Member(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Domains, load};
    use crate::ingest::fields::{Fields, ResourceName};
    use crate::ingest::{FileId, InputFile, ReadOptions};
    use std::sync::Arc;

    const PATHS: [&str; 10] = [
        "spec.ports[*].protocol",
        "spec.ports[*].nodePort",
        "spec.pool[*].key()",
        "spec.pool[*].who",
        "metadata.annotations[\"a.b/c\"].json()[*].ips[*]",
        "spec.flag",
        "data.free",
        "metadata.name",
        "metadata.labels.app",
        "metadata.deletionTimestamp",
    ];

    fn read(object: &str, resource: &str) -> History {
        let path = |text: &str| Path::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let name = ResourceName::parse(resource).unwrap_or_else(|error| panic!("{error}"));
        let fields = Fields::of(PATHS.iter().map(|text| (name.clone(), path(text))));
        let input = InputFile::in_memory(FileId(0), "x.json", object.as_bytes());
        let options = ReadOptions { fields: Arc::new(fields), ..ReadOptions::default() };
        let history = load(vec![input], &options, &Domains::default(), &());
        assert!(history.problems.is_empty(), "{:?}", history.problems);
        history
    }

    fn rows(history: &History, paths: &[&str]) -> Vec<Vec<Option<String>>> {
        let o = history.operations.get(0);
        let declared = history.declared(o.key, o.answer_uid, o.attributes).expect("fields");
        let paths: Vec<Path> = paths.iter().filter_map(|text| Path::parse(text).ok()).collect();
        declared.rows(&paths.iter().collect::<Vec<_>>()).expect("few rows")
    }

    fn root(history: &History) -> PartId {
        let o = history.operations.get(0);
        history.declared(o.key, o.answer_uid, o.attributes).expect("fields").root()
    }

    fn object(rest: &str) -> String {
        format!(
            r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"s","namespace":"d","uid":"u","resourceVersion":"7",
            "labels":{{"app":"web","tier":"hidden"}},"creationTimestamp":"2026-01-01T00:00:00Z","annotations":{{"a.b/c":"[{{\"ips\":[\"1\",\"2\"]}},{{}},{{\"ips\":[\"3\"]}}]","x":"y"}}}}{rest}}}"#
        )
    }

    #[test]
    fn paths_that_begin_alike_go_through_elements_in_step() {
        let spec = r#","spec":{"ports":[{"protocol":"TCP","nodePort":30000,"name":"a"},{"protocol":"UDP"},{"nodePort":1}],
                       "pool":{"45":{"who":"x","id":1},"46":{}},"flag":true,"hidden":"secret"},"data":{"free":"text","other":"hidden"}"#;
        let history = read(&object(spec), "services");
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            rows(&history, &["spec.ports[*].protocol", "spec.ports[*].nodePort", "spec.flag"]),
            [
                [some("TCP"), some("30000"), some("true")],
                [some("UDP"), None, some("true")],
                [None, some("1"), some("true")],
            ]
        );
        assert_eq!(
            rows(&history, &["spec.pool[*].key()", "spec.pool[*].who"]),
            [[some("45"), some("x")], [some("46"), None]]
        );
        assert_eq!(
            rows(&history, &["metadata.annotations[\"a.b/c\"].json()[*].ips[*]"]),
            [[some("1")], [some("2")], [None], [some("3")]]
        );
        assert_eq!(
            rows(&history, &["data.free", "metadata.name", "metadata.labels.app"]),
            [[some("text"), some("s"), some("web")]]
        );
        assert_eq!(
            history.parts.json(&history.names, root(&history))["metadata"]["labels"],
            serde_json::json!({"app": "web"})
        );
        assert!(history.names.find("secret").is_none());
    }

    #[test]
    fn what_identity_needs_anyway_is_declared_like_anything_else_and_null_is_nothing() {
        let shown = |from: &str, to: &str| {
            let history = read(&object("").replace(from, to), "services");
            let paths = ["metadata.name", "metadata.labels.app", "metadata.deletionTimestamp"];
            let rows = rows(&history, &paths).remove(0).into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>();
            let metadata = history.parts.json(&history.names, root(&history))["metadata"].clone();
            let there = |name: &str| metadata.get(name).is_some();
            (rows.join(" "), there("labels"), there("deletionTimestamp"))
        };
        assert_eq!(shown("", ""), ("s web ".to_owned(), true, false));
        assert_eq!(shown(r#""name":"s""#, r#""name":"\u0073\n""#), ("s\n web ".to_owned(), true, false));
        let deleted = r#""deletionTimestamp":"2026-01-02T00:00:00Z","uid":"#;
        assert_eq!(shown(r#""uid":"#, deleted), ("s web 2026-01-02T00:00:00Z".to_owned(), true, true));
        assert_eq!(shown(r#""uid":"#, r#""deletionTimestamp":null,"uid":"#), ("s web ".to_owned(), true, false));
        let labels = r#"{"app":"web","tier":"hidden"}"#;
        for (other, is_object) in [(r#"{"tier":"hidden"}"#, true), ("{}", true), ("null", false), ("[1]", false)] {
            assert_eq!(shown(labels, other), ("s  ".to_owned(), is_object, false), "{other}");
        }
    }

    #[test]
    fn nothing_is_kept_of_what_a_secret_holds() {
        let secret = object(r#","data":{"free":"cGFzc3dvcmQ="}"#).replace("Service", "Secret");
        let history = read(&secret, "*");
        assert!(history.names.find("cGFzc3dvcmQ=").is_none());
        assert!(history.parts.is_empty() || rows(&history, &["data.free"]) == [[None]]);
    }

    #[test]
    fn a_body_without_more_than_metadata_does_not_show_its_fields() {
        let history = read(&object(""), "services");
        let o = history.operations.get(0);
        let declared = history.declared(o.key, o.answer_uid, o.attributes).expect("fields");
        let path = |text: &str| Path::parse(text).unwrap_or_else(|error| panic!("{error}"));
        assert!(!declared.shows(&path("spec.flag")) && declared.shows(&path("metadata.annotations")));
        let reduced = object("").replace(r#""creationTimestamp":"2026-01-01T00:00:00Z","#, "");
        let history = read(&reduced, "services");
        let o = history.operations.get(0);
        assert!(history.declared(o.key, o.answer_uid, o.attributes).is_none());
    }

    #[test]
    fn fields_of_another_shape_lead_nowhere() {
        for spec in [
            r#","spec":{"ports":{"protocol":"TCP"},"flag":[1]}"#,
            r#","spec":{"ports":7,"flag":{}}"#,
            r#","spec":[1]"#,
            r#","spec":"text","data":null"#,
            r#","spec":null,"data":[]"#,
        ] {
            let history = read(&object(spec), "services");
            assert_eq!(
                rows(&history, &["spec.ports[*].protocol", "spec.flag", "data.free"]),
                [[None, None, None]],
                "{spec}"
            );
        }
    }

    #[test]
    fn a_member_twice_leaves_its_object_without_declared_fields() {
        let history = read(&object(r#","data":{"free":"a","free":"b"}"#), "services");
        let o = history.operations.get(0);
        assert!(history.declared(o.key, o.answer_uid, o.attributes).is_none());
    }
}
