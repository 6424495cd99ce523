//! Slots for the search by steps: a pending operation has a small number, free again after its return. So the linearized
//! operations are a few words, however long the history is. Crashed operations of one class are interchangeable and only counted.

use super::partition::Part;
use rustc_hash::FxHashMap;

/// The return of an operation that never returns.
pub(super) const NEVER: u32 = u32::MAX;

/// The slots of the operations of a part.
#[derive(Debug)]
pub(super) struct SlotAllocation {
    /// The slot of an operation that returns; of a crashed one, the index of its kind.
    pub(super) of: Vec<u32>,
    /// The event at which an operation returns, or [`NEVER`].
    pub(super) returns: Vec<u32>,
    /// By kind: the bits that count how many operations were used. A kind is the crashed operations of one class.
    pub(super) kinds: Vec<BitField>,
    /// Words for a bit of each slot and the counts of all kinds.
    pub(super) words: usize,
}

/// A number in some bits of a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitField {
    word: usize,
    shift: u32,
    bits: u32,
}

impl BitField {
    /// The first field from bit `from` on that holds numbers up to `most`.
    fn new(from: usize, most: u32) -> Self {
        let bits = u32::BITS - most.leading_zeros();
        let over = from % 64 + bits as usize > 64;
        let at = if over { from.next_multiple_of(64) } else { from };
        BitField { word: at / 64, shift: (at % 64) as u32, bits }
    }

    /// The bit after it.
    const fn end(self) -> usize {
        self.word * 64 + self.shift as usize + self.bits as usize
    }

    pub(super) fn get(self, words: &[u64]) -> u32 {
        (words[self.word] >> self.shift & ((1 << self.bits) - 1)) as u32
    }

    /// Adds one.
    pub(super) fn increase(self, words: &mut [u64]) {
        words[self.word] += 1 << self.shift;
    }

    /// Subtracts one.
    pub(super) fn decrease(self, words: &mut [u64]) {
        words[self.word] -= 1 << self.shift;
    }
}

impl SlotAllocation {
    /// For the operations of a part and their classes.
    pub(super) fn new(part: &Part, class: &[u32]) -> Self {
        let mut returns = vec![NEVER; part.calls.len()];
        for (at, event) in (0..).zip(&part.events) {
            if event.is_return() {
                returns[event.of() as usize] = at;
            }
        }
        let mut of = vec![0; part.calls.len()];
        let (mut count, mut free) = (0, Vec::new());
        let mut kinds: Vec<u32> = Vec::new();
        let mut kind_of: FxHashMap<u32, u32> = FxHashMap::default();
        for event in &part.events {
            let operation = event.of() as usize;
            of[operation] = if event.is_return() {
                free.push(of[operation]);
                continue;
            } else if returns[operation] == NEVER {
                let kind = *kind_of.entry(class[operation]).or_insert_with(|| {
                    kinds.push(0);
                    kinds.len() as u32 - 1
                });
                kinds[kind as usize] += 1;
                kind
            } else {
                free.pop().unwrap_or_else(|| {
                    count += 1;
                    count as u32 - 1
                })
            };
        }
        let mut end = count;
        let field = |most| {
            let field = BitField::new(end, most);
            end = field.end();
            field
        };
        let kinds = kinds.into_iter().map(field).collect();
        SlotAllocation { of, returns, kinds, words: end.div_ceil(64) }
    }

    /// The index of the kind of a crashed operation.
    pub(super) fn kind(&self, operation: u32) -> Option<usize> {
        (self.returns[operation as usize] == NEVER).then_some(self.of[operation as usize] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_count_beside_one_another() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut fields: Vec<BitField> = Vec::new();
        for most in [1, 1, 3, 4, 1 << 20, u32::MAX, 7, u32::MAX, 1, 2] {
            fields.push(BitField::new(fields.last().map_or(61, |field| field.end()), most));
        }
        let mut words = vec![0; fields[9].end().div_ceil(64)];
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            let (at, more) = (random.usize(..10), random.bool());
            if more && counts[at] < (1 << fields[at].bits.min(20)) - 1 {
                fields[at].increase(&mut words);
                counts[at] += 1;
            } else if !more && counts[at] > 0 {
                fields[at].decrease(&mut words);
                counts[at] -= 1;
            }
            assert!(fields.iter().zip(counts).all(|(field, count)| field.get(&words) == count));
        }
        assert_eq!(words[0] & ((1 << 61) - 1), 0);
    }
}
