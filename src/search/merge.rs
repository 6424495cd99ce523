//! Merges the linearizations of the parts into one of the history (locality, Herlihy and Wing 1990). Input: an order of each
//! part. Output: an order of all calls that respects every interval.

use super::partition::Part;

/// Merges an order of each part, given as operations, into an order of all calls.
///
/// The point of an operation is the latest invocation among itself and those before it in its part. None of them returned before
/// that, or the order of the part would be invalid. So points are within intervals, and sorting by them keeps every order.
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
    // No two parts have a point in common: a stable sort keeps the order of each.
    points.sort_by_key(|&(point, _)| point);
    points.into_iter().map(|(_, call)| call).collect()
}
