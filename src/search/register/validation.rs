//! Validation of a linearization. Input: an order of the operations of a part. Output: whether it is a linearization. It must use
//! nothing that the search computes, because it is the check on the search.

use super::forms::{Forms, RegisterOp};
use crate::model::Value;
use crate::search::partition::Part;

/// Whether an order contains every returning operation and none twice, respects the intervals, and explains every answer. Two
/// threads check a long order.
pub(in crate::search) fn is_valid_linearization(part: &Part, forms: &Forms<'_>, order: &[u32]) -> bool {
    let (intervals, answers) = (|| keeps_to_intervals(part, order), || explains_answers(part, forms, order));
    match order.len() >= MIN_PARALLEL_OPERATIONS && rayon::current_num_threads() > 1 {
        true => rayon::join(intervals, answers) == (true, true),
        false => intervals() && answers(),
    }
}

/// Lower bound on the operations for which a second thread is worth waking.
const MIN_PARALLEL_OPERATIONS: usize = 1 << 13;

/// Whether an order contains every returning operation and none twice, each between its invocation and its return.
fn keeps_to_intervals(part: &Part, order: &[u32]) -> bool {
    const NEVER: u32 = u32::MAX;
    // By operation: the events of its invocation and its return.
    let mut open = vec![(0, NEVER); part.calls.len()];
    for (at, event) in (0..).zip(&part.events) {
        let (invoked, returned) = &mut open[event.of() as usize];
        *(if event.is_return() { returned } else { invoked }) = at;
    }
    let mut latest = 0;
    for &operation in order {
        let Some((invoked, returned)) = open.get_mut(operation as usize) else { return false };
        latest = latest.max(*invoked);
        // The invocation of an operation that occurred already is `NEVER`.
        if *returned < latest || *invoked == NEVER {
            return false;
        }
        *invoked = NEVER;
    }
    open.iter().all(|&(invoked, returned)| invoked == NEVER || returned == NEVER)
}

/// Whether the register gives every recorded answer if the operations run in this order.
fn explains_answers(part: &Part, forms: &Forms<'_>, order: &[u32]) -> bool {
    let Some(&first) = part.calls.first() else { return order.is_empty() };
    let mut content = Content::Known(forms.content[forms.register(first) as usize]);
    for &operation in order {
        let Some(&call) = part.calls.get(operation as usize) else { return false };
        let happens = match forms.operation[call as usize] {
            RegisterOp::Nothing => true,
            RegisterOp::Read(value) => content.equals(value, &forms.values),
            RegisterOp::FailedCas(value) => !content.equals(value, &forms.values),
            RegisterOp::Write(value) => {
                content = Content::Known(value);
                true
            }
            RegisterOp::Cas(from, to) => {
                let happens = content.equals(from, &forms.values);
                content = Content::Known(to);
                happens
            }
            RegisterOp::Append(value) => content.append(value, &forms.values),
        };
        if !happens {
            return false;
        }
    }
    true
}

/// Bytes reserved for a text; most texts stay shorter.
const TEXT_CAPACITY: usize = 256;

/// What the register holds.
enum Content {
    /// A value of the history, by number.
    Known(u32),
    Text(String),
    List(Vec<i64>),
}

impl Content {
    fn equals(&self, value: u32, values: &[Value<'_>]) -> bool {
        match (self, values.get(value as usize)) {
            (Content::Known(content), _) => *content == value,
            (Content::Text(content), Some(Value::Text(text))) => content == text,
            (Content::List(content), Some(Value::List(list))) => content == list,
            _ => false,
        }
    }

    fn append(&mut self, value: u32, values: &[Value<'_>]) -> bool {
        if let Content::Known(content) = *self {
            *self = match (values[content as usize], values[value as usize]) {
                (Value::Text(text), _) => Content::Text(text.to_owned()),
                (Value::List(list), _) => Content::List(list.to_vec()),
                (Value::Absent, Value::Text(_)) => Content::Text(String::with_capacity(TEXT_CAPACITY)),
                (Value::Absent, Value::List(_)) => Content::List(Vec::new()),
                _ => return false,
            };
        }
        match (self, values[value as usize]) {
            (Content::Text(content), Value::Text(text)) => content.push_str(text),
            (Content::List(content), Value::List(list)) => content.extend_from_slice(list),
            _ => return false,
        }
        true
    }
}
