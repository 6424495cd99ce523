//! Reduces bodies that do not fit the narrow types. Custom resources may use `items`, `code` or `details` for
//! anything.
//!
//! The rest of such a line is still evidence. So the body is reduced to its identity, or to nothing if even that does
//! not fit, and the line is parsed again. A list is never reduced: without its items it would look like an observed
//! absence.

use super::body::{AnyBody, Body};
use crate::ingest::json::members::Members;
use serde_json::value::RawValue;
use std::fmt::Write;

fn worth_a_retry(error: &serde_json::Error) -> bool {
    // A duplicate key is ambiguous: readers disagree on which value counts. A name that is too long must not be
    // hidden by a retry.
    let message = error.to_string();
    error.is_data() && !message.starts_with("duplicate field") && !message.starts_with("invalid length")
}

/// The line with each odd body reduced; `None` if a retry cannot help. `bodies` names the members that may hold one.
pub(in crate::ingest) fn without_odd_bodies(text: &str, error: &serde_json::Error, bodies: &[&str]) -> Option<String> {
    if !worth_a_retry(error) {
        return None;
    }
    rewritten(text, |key, value| match key {
        // A watch event inside a capture line; its object is the body.
        "event" if bodies.contains(&key) => rewritten(value, |key, value| (key == "object").then(|| reduced(value))?),
        _ if bodies.contains(&key) => reduced(value),
        _ => None,
    })
}

/// As [`without_odd_bodies`], for a text that is the body itself (a list file).
pub(in crate::ingest) fn reduced_body(text: &str, error: &serde_json::Error) -> Option<String> {
    if !worth_a_retry(error) {
        return None;
    }
    identity(text)
}

/// `None` if the body fits.
fn reduced(body: &str) -> Option<String> {
    match serde_json::from_str::<AnyBody<'_>>(body) {
        Err(error) if worth_a_retry(&error) => {
            // A number parses as a recorded body without use.
            Some(identity(body).unwrap_or_else(|| "0".to_owned()))
        }
        _ => None,
    }
}

/// The object with its identity alone; `None` for a list.
fn identity(body: &str) -> Option<String> {
    let fields: Members<String, &RawValue> = serde_json::from_str(body).ok()?;
    let list = |(key, value): &(String, &RawValue)| key == "kind" && value.get().ends_with("List\"");
    if fields.0.iter().any(list) {
        return None;
    }
    let text = written(fields.0.iter().filter(|(key, _)| matches!(&**key, "kind" | "apiVersion" | "metadata")));
    serde_json::from_str::<Body<'_>>(&text).is_ok().then_some(text)
}

fn rewritten(text: &str, change: impl Fn(&str, &str) -> Option<String>) -> Option<String> {
    let fields: Members<String, &RawValue> = serde_json::from_str(text).ok()?;
    let changed: Vec<(String, Box<RawValue>)> = fields
        .0
        .into_iter()
        .map(|(key, value)| {
            let new = change(&key, value.get()).and_then(|text| RawValue::from_string(text).ok());
            (key, new.unwrap_or_else(|| value.to_owned()))
        })
        .collect();
    Some(written(changed.iter().map(|(key, value)| (key, &**value)).collect::<Vec<_>>().iter()))
}

trait Field {
    fn key(&self) -> &str;
    fn raw(&self) -> &str;
}

impl Field for (String, &RawValue) {
    fn key(&self) -> &str {
        &self.0
    }
    fn raw(&self) -> &str {
        self.1.get()
    }
}

impl Field for (&String, &RawValue) {
    fn key(&self) -> &str {
        self.0
    }
    fn raw(&self) -> &str {
        self.1.get()
    }
}

fn written<'f, F: Field + 'f>(fields: impl Iterator<Item = &'f F>) -> String {
    let mut text = String::from("{");
    for (nth, field) in fields.enumerate() {
        let comma = if nth == 0 { "" } else { "," };
        let key = serde_json::to_string(field.key()).unwrap_or_default();
        let _ = write!(text, "{comma}{key}:{}", field.raw());
    }
    text.push('}');
    text
}
