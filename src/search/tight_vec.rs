//! Vectors with little spare capacity, so that the memory counted for a limit is the memory held. Use [`push`] wherever bytes are
//! counted.

/// Adds an item; a full vector grows by an eighth, at least by [`MIN_GROWTH`]. Returns by how many items the capacity grew.
pub(super) fn push<T>(vec: &mut Vec<T>, item: T) -> usize {
    let before = vec.capacity();
    if vec.len() == before {
        vec.reserve_exact((before / 8).max(MIN_GROWTH));
    }
    vec.push(item);
    vec.capacity() - before
}

/// Items that a vector grows by, at least.
const MIN_GROWTH: usize = 16;

/// Bytes that a vector holds.
pub(super) const fn bytes<T>(vec: &Vec<T>) -> usize {
    vec.capacity() * size_of::<T>()
}

/// Bytes of an allocation beyond those asked for.
pub(super) const OVERHEAD: usize = 16;
