//! Jepsen's `independent` histories: the value of every operation is a tuple of the object's key and its own value.

use super::super::ids::ValueId;
use super::CallRows;
use super::values::{Value, Values};
use crate::ingest::call::Ending;

/// Takes keys out of the values, if the log is of that kind.
///
/// It is if every call has a tuple, and some call asks for a value that is not there yet (`[key nil]`, as a read does): else
/// the pairs may be something of their own, such as the two values of a compare-and-set. A tag that calls them tuples decides
/// without that. A key that is itself a collection is one where what was asked for by it was also answered with it.
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

/// Key, value, and whether a tag says that it is a tuple.
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
