//! Separates keys in Jepsen's `independent` histories, where each value is a tuple of the object's key and the operation's value.

use super::super::ids::ValueId;
use super::CallRows;
use super::values::{Value, Values};
use crate::ingest::call::Ending;

/// Moves keys out of the values if the log is of this kind.
///
/// It is if every call has a tuple and either a tag says so, or some call asks for a missing value (`[key nil]`, as a read does).
/// Otherwise the pairs may be values, such as those of a compare-and-set. A key that is a collection counts only if the reads'
/// answers repeat their keys.
pub(super) fn separate(calls: &mut CallRows, values: &mut Values) {
    let (mut certain, mut collections, mut confirmed, mut denied) = (false, false, false, false);
    for call in calls.iter() {
        let Some((key, value, tagged)) = tuple(values, call.argument) else { return };
        if call.key.is_some() {
            return;
        }
        let atom = matches!(
            values.get(key),
            Value::Int(_) | Value::Number(_) | Value::Text(_) | Value::Keyword(_) | Value::Word(_) | Value::Char(_)
        );
        collections |= !tagged && !atom;
        let asks = *values.get(value) == Value::Nil;
        if asks && call.ending == Ending::Ok && call.answer.is_some() {
            let agrees = tuple(values, call.answer).is_some_and(|(of, ..)| of == key);
            confirmed |= agrees;
            denied |= !agrees;
        }
        certain |= tagged || asks;
    }
    if !certain || collections && (denied || !confirmed) {
        return;
    }
    for at in 0..calls.len() {
        let call = calls.get(at);
        let Some((key, argument, _)) = tuple(values, call.argument) else { continue };
        calls.change(at, |call| {
            call.key = key;
            call.argument = argument;
            if let Some((_, answer, _)) = tuple(values, call.answer).filter(|(of, ..)| *of == key) {
                call.answer = answer;
            }
        });
    }
}

/// Key, value, and whether a tag marks it as a tuple.
pub(super) fn tuple(values: &Values, id: ValueId) -> Option<(ValueId, ValueId, bool)> {
    if !id.is_some() {
        return None;
    }
    let (inner, tagged) = match values.get(id) {
        Value::Tagged(tag, inner) if values.texts.get(*tag).to_ascii_lowercase().ends_with("tuple") => (*inner, true),
        _ => (id, false),
    };
    match values.sequence(inner) {
        Some([key, value]) => Some((*key, *value, tagged)),
        _ => None,
    }
}
