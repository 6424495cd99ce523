//! One order out of the orders of parts.

use super::partition::Part;

/// Merges an order of each part, given as operations of it, into one of all calls.
///
/// An operation is given the latest invocation among itself and those before it as its point: none of those returned before that,
/// or the order of the part would be wrong. So points lie within intervals, and sorting by them keeps every order.
pub(super) fn merge_linearizations(parts: &[Part], orders: &[Vec<u32>]) -> Vec<u32> {
    if let ([part], [order]) = (parts, orders) {
        return order.iter().map(|&operation| part.calls[operation as usize]).collect();
    }
    let mut points = Vec::with_capacity(orders.iter().map(Vec::len).sum());
    for (part, order) in parts.iter().zip(orders) {
        let mut point = 0;
        for &operation in order {
            point = point.max(part.invoked[operation as usize]);
            points.push((point, part.calls[operation as usize]));
        }
    }
    // Each part's points are of its own ranks: a stable sort keeps its order.
    points.sort_by_key(|&(point, _)| point);
    points.into_iter().map(|(_, call)| call).collect()
}
