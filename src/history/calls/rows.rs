//! Storage of the calls of a log: rows of 44 bytes. Rare data (times, positions beyond 4 GiB, ranks other than line order) has
//! columns of its own, which exist only if some call needs them.

use super::super::ids::{IncarnationId, Symbol, ValueId};
use super::super::rows::Rows;
use super::{Call, Moment};
use crate::ingest::call::Ending;
use crate::ingest::{FileId, Position, Time};

/// Calls by number. Accessors return values, so the layout stays private.
#[derive(Clone, Debug, Default)]
pub struct CallRows {
    rows: Rows<Row>,
    /// Times of invocation and return, if any is known.
    times: Option<Vec<[Time; 2]>>,
    /// Ranks, if some do not fit into the rows.
    ranks: Option<Vec<[i64; 2]>>,
    /// Positions, if some do not fit into the rows.
    positions: Option<Vec<[Position; 2]>>,
}

/// A call without the rare data.
#[derive(Clone, Copy, Debug)]
struct Row {
    process: IncarnationId,
    function: Symbol,
    key: ValueId,
    argument: ValueId,
    answer: ValueId,
    invoke: Place,
    ret: Place,
}

const _: () = assert!(size_of::<Row>() == 44);

/// The moment of an invocation or a return.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The rank in the low [`RANK`] bits; in that of the invocation, the ending is above it.
    rank: u32,
    line: u32,
    offset: u32,
}

/// Bits of a rank.
const RANK: u32 = 30;
/// The rank of a return that never came.
const NEVER: u32 = (1 << RANK) - 1;

/// Endings by their stored code.
const ENDINGS: [Ending; 4] = [Ending::Ok, Ending::Refused, Ending::Fail, Ending::Unknown];

impl Place {
    /// The stored rank; `None` if it does not fit.
    fn rank(moment: &Moment) -> Option<u32> {
        match moment.rank {
            i64::MAX => Some(NEVER),
            rank => u32::try_from(rank).ok().filter(|rank| *rank < NEVER),
        }
    }

    /// The stored offset; `None` if it does not fit.
    fn offset(moment: &Moment) -> Option<u32> {
        u32::try_from(moment.position.offset).ok().filter(|_| moment.position.file == FileId(0))
    }

    fn of(moment: &Moment) -> Place {
        let (rank, offset) = (Place::rank(moment).unwrap_or(NEVER), Place::offset(moment).unwrap_or(0));
        Place { rank, line: moment.position.line, offset }
    }

    fn moment(self) -> Moment {
        let rank = self.rank & NEVER;
        Moment {
            rank: if rank == NEVER { i64::MAX } else { i64::from(rank) },
            time: Time::UNKNOWN,
            position: Position { file: FileId(0), line: self.line, offset: u64::from(self.offset) },
        }
    }
}

impl Row {
    fn of(call: &Call) -> Row {
        let mut invoke = Place::of(&call.invoke);
        invoke.rank |= (ENDINGS.iter().position(|ending| *ending == call.ending).unwrap_or(0) as u32) << RANK;
        Row {
            process: call.process,
            function: call.function,
            key: call.key,
            argument: call.argument,
            answer: call.answer,
            invoke,
            ret: Place::of(&call.ret),
        }
    }
}

impl CallRows {
    /// Number of calls.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no calls.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 0
    }

    /// The call with a number below [`CallRows::len`].
    pub fn get(&self, index: usize) -> Call {
        let row = &self.rows[index];
        let mut call = Call {
            process: row.process,
            function: row.function,
            key: row.key,
            argument: row.argument,
            answer: row.answer,
            ending: ENDINGS[(row.invoke.rank >> RANK) as usize],
            invoke: row.invoke.moment(),
            ret: row.ret.moment(),
        };
        if let Some(times) = &self.times {
            [call.invoke.time, call.ret.time] = times[index];
        }
        if let Some(ranks) = &self.ranks {
            [call.invoke.rank, call.ret.rank] = ranks[index];
        }
        if let Some(positions) = &self.positions {
            [call.invoke.position, call.ret.position] = positions[index];
        }
        call
    }

    /// All calls, by number.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Call> + ExactSizeIterator + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Appends a call.
    pub fn push(&mut self, call: Call) {
        self.make_room(&call);
        self.rows.push(Row::of(&call));
        if let Some(times) = &mut self.times {
            times.push([call.invoke.time, call.ret.time]);
        }
        if let Some(ranks) = &mut self.ranks {
            ranks.push([call.invoke.rank, call.ret.rank]);
        }
        if let Some(positions) = &mut self.positions {
            positions.push([call.invoke.position, call.ret.position]);
        }
    }

    /// Changes a call in place.
    pub(super) fn change(&mut self, index: usize, change: impl FnOnce(&mut Call)) {
        let mut call = self.get(index);
        change(&mut call);
        self.make_room(&call);
        self.rows[index] = Row::of(&call);
        if let Some(times) = &mut self.times {
            times[index] = [call.invoke.time, call.ret.time];
        }
        if let Some(ranks) = &mut self.ranks {
            ranks[index] = [call.invoke.rank, call.ret.rank];
        }
        if let Some(positions) = &mut self.positions {
            positions[index] = [call.invoke.position, call.ret.position];
        }
    }

    /// Sorts the calls by their invocations.
    pub(super) fn sort(&mut self) {
        let key = |call: Call| (call.invoke.rank, call.invoke.position);
        if self.iter().map(key).is_sorted() {
            return;
        }
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_by_key(|&at| key(self.get(at as usize)));
        let before = std::mem::take(self);
        order.iter().for_each(|&at| self.push(before.get(at as usize)));
    }

    /// Adds the columns that a call needs.
    fn make_room(&mut self, call: &Call) {
        let moments = [&call.invoke, &call.ret];
        if self.times.is_none() && moments.iter().any(|moment| moment.time != Time::UNKNOWN) {
            self.times = Some(vec![[Time::UNKNOWN; 2]; self.len()]);
        }
        if self.ranks.is_none() && moments.iter().any(|moment| Place::rank(moment).is_none()) {
            self.ranks = Some(self.iter().map(|call| [call.invoke.rank, call.ret.rank]).collect());
        }
        if self.positions.is_none() && moments.iter().any(|moment| Place::offset(moment).is_none()) {
            self.positions = Some(self.iter().map(|call| [call.invoke.position, call.ret.position]).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_back_as_they_were_whatever_they_need() {
        let moment = |rank: i64, time: i64, line: u32, offset: u64| Moment {
            rank,
            time: Time(time),
            position: Position { file: FileId(0), line, offset },
        };
        let ranks = [0, 7, i64::from(NEVER) - 1, i64::from(NEVER), i64::MAX, i64::MIN, -1];
        let times = [i64::MAX, 0, -5, i64::MAX - 1];
        let offsets = [0, 9, u64::from(u32::MAX), 1 << 32, u64::MAX];
        let mut drawn = Vec::new();
        for at in 0..400_usize {
            // Values that need a column appear one kind after another.
            let one = |of: usize, later: usize| if at < later { 0 } else { of };
            let moment = |salt: usize| {
                let rank = ranks[(at + salt) % if at < 100 { 3 } else { ranks.len() }];
                moment(rank, times[one(at * 3 + salt, 50) % 4], at as u32, offsets[one(at + salt, 200) % 5])
            };
            drawn.push(Call {
                process: IncarnationId(at as u32),
                function: Symbol(at as u32 % 3),
                key: ValueId::NONE,
                argument: ValueId(at as u32),
                answer: ValueId(7),
                ending: ENDINGS[at % 4],
                invoke: moment(0),
                ret: moment(1),
            });
        }
        let mut rows = CallRows::default();
        for (at, call) in drawn.iter().enumerate() {
            rows.push(*call);
            assert_eq!(rows.get(at), *call);
        }
        assert!(rows.iter().eq(drawn.iter().copied()));
        for at in 0..drawn.len() {
            let other = drawn[(at * 7 + 3) % drawn.len()];
            rows.change(at, |call| *call = other);
            drawn[at] = other;
        }
        assert!(rows.iter().eq(drawn.iter().copied()));
        let mut few = CallRows::default();
        drawn[..5].iter().for_each(|call| few.push(*call));
        drawn[5..9].iter().for_each(|call| few.change(2, |changed| *changed = *call));
        assert_eq!((few.len(), few.get(2)), (5, drawn[8]));
        rows.sort();
        drawn.sort_by_key(|call| (call.invoke.rank, call.invoke.position));
        assert!(rows.iter().eq(drawn));
    }
}
