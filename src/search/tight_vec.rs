//! Vectors that hold little more than they need, so that a limit on memory means what it says.

/// Adds an item to a vector that grows by an eighth of itself, and a short one by [`FEW`]. How many more items it has room for now.
pub(super) fn push<T>(vec: &mut Vec<T>, item: T) -> usize {
    let before = vec.capacity();
    if vec.len() == before {
        vec.reserve_exact((before / 8).max(FEW));
    }
    vec.push(item);
    vec.capacity() - before
}

/// So much room is soon filled.
const FEW: usize = 16;

/// Bytes that a vector holds.
pub(super) const fn bytes<T>(vec: &Vec<T>) -> usize {
    vec.capacity() * size_of::<T>()
}

/// What an allocation holds beyond what was asked for.
pub(super) const OVERHEAD: usize = 16;
