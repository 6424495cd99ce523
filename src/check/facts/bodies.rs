//! Bodies of versions. Input: versions of some objects. Output: for each the best recorded body: a whole one if some record
//! has it.
//!
//! One version appears in several records: the answer to its writer, lists, events, other reads. Recorders cut some bodies,
//! and audit policies omit some. An additional file must not hide a body that another file shows.

use crate::check::Evidence;
use crate::check::facts::provenance;
use crate::history::{
    AttributesId, Deletion, DeliveryKind, Document, KeyId, Marks, Revision, Subresource, Symbol, recorded_fields,
};
use crate::order::Version;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use std::cell::OnceCell;

/// The most records of one version that are kept. Records of the whole object come first.
const PLACES: usize = 4;

type Place = (KeyId, Revision);

/// Reads the bodies of versions of some objects.
pub struct BodyReader<'e, 'h> {
    evidence: &'e Evidence<'h>,
    keys: FxHashSet<KeyId>,
    places: OnceCell<FxHashMap<Place, Vec<(Symbol, Document)>>>,
}

/// Bodies that were read.
#[derive(Default)]
pub struct Bodies {
    documents: FxHashMap<Document, Value>,
    best: FxHashMap<Place, Document>,
}

impl Bodies {
    /// A body by its document.
    pub fn get(&self, document: Document) -> Option<&Value> {
        self.documents.get(&document)
    }

    /// The best body of a version.
    pub fn of(&self, version: &Version) -> Option<&Value> {
        self.documents.get(self.best.get(&(version.key, version.revision))?)
    }
}

impl<'e, 'h> BodyReader<'e, 'h> {
    /// A reader for versions of these objects.
    pub fn new(evidence: &'e Evidence<'h>, keys: impl IntoIterator<Item = KeyId>) -> BodyReader<'e, 'h> {
        BodyReader { evidence, keys: keys.into_iter().collect(), places: OnceCell::new() }
    }

    /// Reads the bodies of versions, and additional documents.
    pub fn read(&self, versions: &[Version], documents: impl IntoIterator<Item = Document>) -> Bodies {
        let history = self.evidence.history;
        let mut wanted: Vec<Document> = documents.into_iter().collect();
        let mut first: FxHashMap<Place, Document> = FxHashMap::default();
        for version in versions {
            first.extend(provenance::document(self.evidence, version).map(|d| ((version.key, version.revision), d)));
        }
        wanted.extend(first.values());
        wanted.sort_unstable();
        wanted.dedup();
        let mut bodies = Bodies { documents: history.documents(&wanted), best: FxHashMap::default() };
        let mut lacking: Vec<(Place, Document)> = Vec::new();
        for version in versions {
            let place = (version.key, version.revision);
            let known = first.get(&place).filter(|document| bodies.documents.contains_key(*document));
            bodies.best.extend(known.map(|document| (place, *document)));
            if bodies.of(version).is_none_or(|body| recorded_fields(body).is_some()) {
                let others = self.places().get(&place).into_iter().flatten();
                let is_same = |uid: Symbol| uid == version.uid || !uid.is_some() || !version.uid.is_some();
                lacking.extend(others.filter(|(uid, _)| is_same(*uid)).map(|(_, document)| (place, *document)));
            }
        }
        if !lacking.is_empty() {
            lacking.sort_unstable();
            lacking.dedup();
            let more = history.documents(&lacking.iter().map(|(_, document)| *document).collect::<Vec<_>>());
            for (place, document) in lacking {
                let is_whole =
                    |document: &Document| more.get(document).is_some_and(|body| recorded_fields(body).is_none());
                let before = bodies.best.get(&place);
                let has_whole = before.is_some_and(is_whole);
                if more.contains_key(&document) && (before.is_none() || is_whole(&document) && !has_whole) {
                    bodies.best.insert(place, document);
                }
            }
            bodies.documents.extend(more);
        }
        bodies
    }

    /// All records of versions of the objects.
    fn places(&self) -> &FxHashMap<Place, Vec<(Symbol, Document)>> {
        self.places.get_or_init(|| {
            let history = self.evidence.history;
            let mut places: FxHashMap<Place, Vec<(Symbol, Document)>> = FxHashMap::default();
            let mut add = |place: Place, uid: Symbol, attributes: AttributesId, document: Document| {
                if !place.1.is_some() {
                    return;
                }
                let known = places.entry(place).or_default();
                // Only in a whole object a missing deletionTimestamp has a meaning.
                let whole =
                    attributes.is_some() && history.attributes[attributes.index()].deletion == Deletion::NotBegun;
                if whole {
                    known.insert(0, (uid, document));
                    known.truncate(PLACES);
                } else if known.len() < PLACES {
                    known.push((uid, document));
                }
            };
            for (id, o) in history.operations.by_id() {
                // A dry run shows a content that was never stored, and a Scale shows the version of another object.
                if o.marks.has(Marks::DRY_RUN)
                    || o.subresource == Subresource::Scale
                    || !o.marks.has(Marks::ANSWER_BODY)
                {
                    continue;
                }
                if self.keys.contains(&o.key) && !o.marks.has(Marks::LIST_ANSWER) && !o.marks.has(Marks::STATUS_ANSWER)
                {
                    add((o.key, o.answered), o.answer_uid, o.attributes, Document::Answer(id));
                }
                for item in history.items_of(&o).iter().filter(|item| self.keys.contains(&item.key)) {
                    add((item.key, item.revision), item.uid, item.attributes, Document::Item(id, item.key));
                }
            }
            for stream in &history.streams {
                for index in stream.deliveries() {
                    let event = &history.deliveries[index];
                    // A DELETED event shows the object before its deletion.
                    let shows = matches!(event.kind, DeliveryKind::Added | DeliveryKind::Modified);
                    if shows && self.keys.contains(&event.key) {
                        let document = Document::Delivery(index as u32, stream.operation);
                        add((event.key, event.revision), event.uid, event.attributes, document);
                    }
                }
            }
            places
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::check::invariants::double_allocation;
    use crate::check::premises::lost_update;
    use crate::check::protocol::{blind_write, laundered_conflict};
    use crate::check::testing::trial::{judged, read};
    use crate::check::{Kind, Rule};
    use crate::history::sketch::evidence;
    use crate::ingest::SourceRule;
    use serde_json::{Value, json};

    /// A change of another client is undone after a conflict, or without any precondition.
    const UNDONE: [(&Rule, &str); 3] = [
        (
            &laundered_conflict::RULE,
            "c@A PUT x:u1@10[a=1 b=5] => !409\nc@A GET x => x:u1@12\nc@A PUT x:u1@12[a=1 b=5] => x:u1@15[a=1 b=5]\n",
        ),
        (&blind_write::RULE, "c@A PUT x[a=1 b=5] => x:u1@15[a=1 b=5]\n"),
        (&lost_update::RULE, "c@A PUT x[a=1 b=5] => x:u1@15[a=1 b=5]\n"),
    ];

    fn story(end: &str) -> String {
        format!(
            "recorded both\no@A CREATE x[a=1 b=1] => x:u1@10[a=1 b=1]\nc@A GET x => x:u1@10\no@A PUT x:u1@10[a=2 b=1] => x:u1@12[a=2 b=1]\n{end}"
        )
    }

    /// The findings of a rule in a story with changed lines, each file with its name.
    fn changed(rule: &Rule, story: &str, change: impl Fn(&str, &mut Value)) -> Vec<Kind> {
        let made = evidence(story).unwrap_or_else(|error| panic!("{error}"));
        let sources: Vec<SourceRule> = made.sources.iter().filter_map(|s| SourceRule::parse(s).ok()).collect();
        let line = |name: &str, line: &str| {
            let mut value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            change(name, &mut value);
            format!("{value}\n")
        };
        let text =
            |(name, text): &(String, String)| (name.clone(), text.lines().map(|l| line(name, l)).collect::<String>());
        let files: Vec<(String, String)> = made.files.iter().map(text).collect();
        judged(rule, &read(files.iter().map(|(name, text)| (&name[..], &text[..])), &sources)).kinds()
    }

    fn cut(body: &mut Value) {
        if let Some(object) = body.as_object_mut().filter(|object| object.contains_key("metadata")) {
            object.retain(|name, _| matches!(&**name, "kind" | "apiVersion"));
            object.insert("metadata".to_owned(), json!({"name": "x", "namespace": "default", "uid": "u1"}));
            object.insert("recordedFields".to_owned(), json!(""));
        }
    }

    #[test]
    fn what_one_recorder_left_out_another_one_shows() {
        for (rule, end) in UNDONE {
            let story = story(end).replace("x[", "x[.spec.c=1 ");
            assert_eq!(changed(rule, &story, |_, _| {}), [Kind::Violation], "{}", rule.slug);
            let policy = |name: &str, line: &mut Value| {
                let event = line.as_object_mut().filter(|_| name.ends_with(".log"));
                event.map(|event| ["requestObject", "responseObject"].map(|body| event.remove(body)));
            };
            assert_eq!(changed(rule, &story, policy), [Kind::Violation], "{}", rule.slug);
            let recorder = |name: &str, line: &mut Value| {
                if let Some(body) = line.get_mut("body").filter(|_| !name.ends_with(".log")) {
                    let version = body["metadata"].get("resourceVersion").cloned();
                    cut(body);
                    version.into_iter().for_each(|version| body["metadata"]["resourceVersion"] = version);
                }
            };
            assert_eq!(changed(rule, &story, recorder), [Kind::Violation], "{}", rule.slug);
        }
    }

    #[test]
    fn fields_that_a_recorder_cut_off_the_log_of_the_server_still_shows() {
        let service = |name: &str, uid: &str, version: u32| {
            format!("services/{name}:{uid}@{version}[.spec.clusterIPs=[\"10.0.0.1\"]]")
        };
        let [a, b] = [service("a", "u1", 20), service("b", "u2", 30)];
        let list = "o@A LIST services => 40 {a:u1@20, b:u2@30}\n";
        let story = format!("recorded both\no@A CREATE services/a => {a}\no@A CREATE services/b => {b}\n{list}");
        let recorder = |name: &str, line: &mut Value| {
            let cut = |object: &mut Value| {
                let object = object.as_object_mut().filter(|object| object.contains_key("metadata"));
                if let Some(object) = object {
                    object.remove("spec");
                    object.insert("recordedFields".to_owned(), json!(""));
                }
            };
            if let Some(body) = line.get_mut("body").filter(|_| !name.ends_with(".log")) {
                body.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten().for_each(cut);
                cut(body);
            }
        };
        assert_eq!(changed(&double_allocation::RULE, &story, recorder), [Kind::Violation]);
    }

    #[test]
    fn a_version_in_between_that_nobody_shows_takes_nothing_away() {
        for (rule, end) in UNDONE {
            let between = "o@A PUT x:u1@10[a=1 b=3] => x:u1@11[a=1 b=3]\no@A PUT x:u1@11[a=2 b=1] => x:u1@12";
            let story =
                story(end).replace("o@A PUT x:u1@10[a=2 b=1] => x:u1@12", between).replace("x[", "x[.spec.c=1 ");
            let recorder = |_: &str, line: &mut Value| {
                for body in ["body", "responseObject"] {
                    let body = line.get_mut(body).filter(|body| body["metadata"]["resourceVersion"] == "11");
                    if let Some(body) = body {
                        cut(body);
                        body["metadata"]["resourceVersion"] = json!("11");
                    }
                }
            };
            assert_eq!(changed(rule, &story, recorder), [Kind::Violation], "{}", rule.slug);
        }
    }
}
