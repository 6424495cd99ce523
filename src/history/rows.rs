//! A vector in chunks of one size, which never move.
//!
//! A growing or shrinking `Vec` with cache-line alignment is always copied, since no allocator reallocates memory of that
//! alignment in place. For a moment both copies exist. Chunks avoid this peak.

use std::ops::{Index, IndexMut};

/// Rows by number, in chunks of `PIECE` rows.
#[derive(Clone, Debug)]
pub(super) struct Rows<T, const PIECE: usize = { 1 << 16 }> {
    /// Chunks; all but the last are full.
    pieces: Vec<Vec<T>>,
}

impl<T, const PIECE: usize> Default for Rows<T, PIECE> {
    fn default() -> Self {
        Rows { pieces: Vec::new() }
    }
}

impl<T, const PIECE: usize> Rows<T, PIECE> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    /// Appends a row.
    pub fn push(&mut self, row: T) {
        match self.pieces.last_mut().filter(|last| last.len() < PIECE) {
            Some(last) => last.push(row),
            None => {
                // The first chunk grows on demand, since most histories are small.
                let room = if self.pieces.is_empty() { 1 } else { PIECE };
                let mut piece = Vec::with_capacity(room);
                piece.push(row);
                self.pieces.push(piece);
            }
        }
    }

    /// Keeps the first `length` rows.
    pub fn truncate(&mut self, length: usize) {
        if length >= self.len() {
            return;
        }
        self.pieces.truncate(length.div_ceil(PIECE));
        if let Some(last) = self.pieces.last_mut()
            && !length.is_multiple_of(PIECE)
        {
            last.truncate(length % PIECE);
            last.shrink_to_fit();
        }
    }

    /// All rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }

    /// All rows, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.pieces.iter_mut().flatten()
    }
}

impl<T, const PIECE: usize> Index<usize> for Rows<T, PIECE> {
    type Output = T;

    #[inline(always)]
    fn index(&self, at: usize) -> &T {
        &self.pieces[at / PIECE][at % PIECE]
    }
}

impl<T, const PIECE: usize> IndexMut<usize> for Rows<T, PIECE> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.pieces[at / PIECE][at % PIECE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_a_vector() {
        // Up to three chunks.
        for length in 0..12 {
            let (mut rows, mut vector) = (Rows::<usize, 4>::default(), Vec::new());
            for row in 0..length {
                rows.push(row);
                vector.push(row);
            }
            for row in 0..length {
                (rows[row], vector[row]) = (rows[row] + 1, vector[row] + 1);
            }
            for left in (0..=length + 1).rev() {
                rows.truncate(left);
                vector.truncate(left);
                assert_eq!((rows.len(), rows.iter().collect::<Vec<_>>()), (vector.len(), vector.iter().collect()));
                assert!(rows.iter_mut().eq(vector.iter_mut()));
            }
            rows.push(7);
            assert_eq!((rows.len(), rows[0]), (1, 7));
        }
    }
}
