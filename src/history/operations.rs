//! The operations of a history, as they are kept.

use super::ids::OperationId;
use super::operation::Operation;

/// Operations by number. They are handed out by value, so that nothing outside knows how they are kept.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    rows: Vec<Operation>,
}

impl Operations {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The operation with a number below [`Operations::len`].
    pub fn get(&self, index: usize) -> Operation {
        self.rows[index]
    }

    /// All of them, in order of their numbers.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Operation> + ExactSizeIterator + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// All of them with their ids.
    pub fn by_id(&self) -> impl DoubleEndedIterator<Item = (OperationId, Operation)> + ExactSizeIterator + '_ {
        (0..self.len()).map(|index| (OperationId(index as u32), self.get(index)))
    }

    /// Appends one.
    pub(super) fn push(&mut self, operation: Operation) {
        self.rows.push(operation);
    }

    /// Replaces one.
    pub(super) fn set(&mut self, index: usize, operation: Operation) {
        self.rows[index] = operation;
    }

    /// Changes one.
    pub(super) fn change(&mut self, index: usize, change: impl FnOnce(&mut Operation)) {
        let mut operation = self.get(index);
        change(&mut operation);
        self.set(index, operation);
    }

    /// Puts the operations that `order` names into that order and drops the others, in place: two copies of all of them would be
    /// most of the memory that a history ever takes.
    pub(super) fn arrange(&mut self, mut order: Vec<u32>) {
        const DONE: u32 = u32::MAX;
        let rows = &mut self.rows;
        let stay = order.len();
        let mut stays = vec![false; rows.len()];
        order.iter().for_each(|&row| stays[row as usize] = true);
        order.extend((0..rows.len() as u32).filter(|&row| !stays[row as usize]));
        for start in 0..rows.len() {
            if order[start] == DONE {
                continue;
            }
            let first = rows[start];
            let mut at = start;
            loop {
                let from = std::mem::replace(&mut order[at], DONE) as usize;
                if from == start {
                    rows[at] = first;
                    break;
                }
                rows[at] = rows[from];
                at = from;
            }
        }
        rows.truncate(stay);
        rows.shrink_to_fit();
    }
}
