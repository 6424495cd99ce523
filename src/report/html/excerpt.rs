//! Lines of the evidence as the page shows them: bodies reduced to identity and versions, so that no page carries the data
//! of a Secret.

use crate::explain::visible::visible;
use crate::history::History;
use crate::ingest::{self, FileId, Position};
use rustc_hash::FxHashMap;
use serde_json::Value;

/// Characters of one excerpt.
const LONGEST: usize = 4_000;

/// What of an object's metadata identifies it.
const IDENTITY: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "ownerReferences",
    "continue",
];

/// The lines at these positions, as far as they can be read again.
pub(super) fn read(history: &History, positions: &[Position]) -> FxHashMap<Position, String> {
    let mut by_file: FxHashMap<FileId, Vec<Position>> = FxHashMap::default();
    for position in positions {
        by_file.entry(position.file).or_default().push(*position);
    }
    let mut found = FxHashMap::default();
    for (file, positions) in by_file {
        let Some(input) = history.inputs.iter().find(|input| input.id == file) else { continue };
        for (position, text) in positions.iter().zip(ingest::reread(input, &positions)) {
            if let Some(text) = text {
                found.insert(*position, excerpt(&text));
            }
        }
    }
    found
}

fn excerpt(line: &str) -> String {
    let text = match serde_json::from_str::<Value>(line) {
        Ok(mut value) => {
            reduce(&mut value);
            serde_json::to_string_pretty(&value).unwrap_or_default()
        }
        // What is no JSON here is a log of operations: it has no bodies.
        Err(_) => visible(line.trim_end()).into_owned(),
    };
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Keeps of every object below this value what identifies it.
fn reduce(value: &mut Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                if is_body(fields) {
                    fields.retain(|name, _| {
                        matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "items" | "code" | "reason")
                    });
                    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
                        metadata.retain(|name, _| IDENTITY.contains(&name.as_str()));
                    }
                    open.extend(fields.get_mut("items"));
                } else {
                    for name in ["requestObject", "responseObject", "object", "body"] {
                        // A patch, or a body of an unknown shape, is shown as being there.
                        if let Some(body) = fields.get_mut(name).filter(|body| !body.as_object().is_some_and(is_body)) {
                            *body = Value::String("…".to_owned());
                        }
                    }
                    open.extend(fields.values_mut());
                }
            }
            _ => {}
        }
    }
}

fn is_body(fields: &serde_json::Map<String, Value>) -> bool {
    (fields.contains_key("metadata") || fields.contains_key("kind"))
        && !fields.contains_key("auditID")
        && !matches!(
            fields.get("kind").and_then(Value::as_str),
            Some("capture" | "request" | "response" | "event" | "end" | "mark" | "decision" | "read")
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_names_the_object_and_shows_nothing_of_its_content() {
        let line = r#"{"kind":"Event","auditID":"a","verb":"update","requestObject":{"kind":"Secret","metadata":{"name":"s","resourceVersion":"7","annotations":{"x":"hidden-1"}},"data":{"password":"hidden-2"}},"responseObject":{"kind":"SecretList","items":[{"metadata":{"name":"t"},"data":{"p":"hidden-3"}}]}}"#;
        let shown = excerpt(line);
        assert!(shown.contains("\"resourceVersion\": \"7\"") && shown.contains("\"name\": \"t\""), "{shown}");
        assert!(!shown.contains("hidden"), "{shown}");
        let capture =
            r#"{"kind":"response","id":1,"body":{"kind":"Secret","metadata":{"name":"s"},"data":{"p":"hidden"}}}"#;
        let shown = excerpt(capture);
        assert!(shown.contains("\"name\": \"s\"") && !shown.contains("hidden"), "{shown}");
        let patch = r#"{"kind":"request","id":1,"body":{"data":{"p":"hidden"}}}"#;
        assert!(!excerpt(patch).contains("hidden"));
        let list = r#"{"kind":"request","id":1,"body":[{"op":"add","path":"/data/p","value":"hidden"}]}"#;
        assert!(!excerpt(list).contains("hidden"));
    }

    #[test]
    fn a_line_that_is_no_json_is_shown_as_it_stands_and_no_longer_than_a_screen() {
        assert_eq!(excerpt("{:process 0, :f :read}\n"), "{:process 0, :f :read}");
        assert!(excerpt(&"x".repeat(100_000)).chars().count() <= LONGEST + 1);
    }
}
