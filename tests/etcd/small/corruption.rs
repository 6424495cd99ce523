//! Changes of answers and deliveries.

use super::{Answer, Ask, Look, Name, Small, Step, Told, Watch};
use crate::chance::Chance;

impl Small {
    /// Changes something; the history may stay possible.
    pub fn corrupt(&mut self, dice: &mut Chance) {
        let nudge = |number: &mut i64, dice: &mut Chance| *number += [-2, -1, -1, 1, 1, 2][dice.below(6) as usize];
        if !self.watches.is_empty() && dice.below(3) == 0 {
            let at = dice.below(self.watches.len() as u64) as usize;
            corrupt_watch(&mut self.watches[at], dice, &nudge);
            return;
        }
        let at = dice.below(self.operations.len() as u64) as usize;
        let operation = &mut self.operations[at];
        match dice.below(12) {
            0 => operation.returned = (operation.returned - dice.below(6) as i64).max(operation.call),
            1 => operation.call = (operation.call + dice.below(6) as i64).min(operation.returned),
            2 if !matches!(operation.ask, Ask::Grant(_)) => operation.answer = Answer::Unknown,
            3 if matches!(operation.ask, Ask::Range(Look { revision: 1.., .. }) | Ask::Compact(_)) => {
                operation.answer = if dice.below(2) == 0 { Answer::Compacted } else { Answer::Future };
            }
            _ => {}
        }
        match (&mut operation.ask, dice.below(4)) {
            (Ask::Compact(through), 0) if *through > 2 => nudge(through, dice),
            (Ask::Range(look), 0) if look.revision > 1 => nudge(&mut look.revision, dice),
            (Ask::Grant(lease) | Ask::Revoke(lease), 0) => *lease = 15 - *lease,
            _ => {}
        }
        let counts = !matches!(operation.ask, Ask::Compact(_));
        let values = !matches!(operation.ask, Ask::Range(Look { keys_only: true, .. }));
        let Answer::Done { revision, failure, results } = &mut operation.answer else { return };
        match dice.below(4) {
            0 if counts && *revision > 2 => nudge(revision, dice),
            1 if matches!(&operation.ask, Ask::Txn { success, failure, .. } if success.len() == failure.len()) => {
                *failure = !*failure;
            }
            _ => {}
        }
        if results.is_empty() {
            return;
        }
        let at = dice.below(results.len() as u64) as usize;
        let result = &mut results[at];
        let only = match &operation.ask {
            Ask::Txn { success, .. } if !*failure => match &success[..] {
                [step] => Some(step),
                _ => None,
            },
            _ => None,
        };
        match only {
            Some(Step::Delete(_)) => {
                result.deleted = 1 - result.deleted;
                return;
            }
            Some(Step::DeleteBetween(..)) => {
                nudge(&mut result.deleted, dice);
                result.deleted = result.deleted.max(0);
                return;
            }
            _ => {}
        }
        let count = result.pairs.len() as u64;
        match dice.below(6) {
            0 if count > 0 => drop(result.pairs.remove(dice.below(count) as usize)),
            1 if count > 0 => nudge(&mut result.pairs[dice.below(count) as usize].2, dice),
            2 if count > 0 => {
                let version = &mut result.pairs[dice.below(count) as usize].3;
                nudge(version, dice);
                // Old reports have no count at all.
                *version = (*version).max(1);
            }
            3 if count > 0 && values => result.pairs[dice.below(count) as usize].1 = Name(dice.below(8) as u8),
            4 if count > 0 => result.count += 1,
            5 if count == 0 && matches!(operation.ask, Ask::Txn { .. }) => result.deleted = 1 - result.deleted.min(1),
            _ => {}
        }
    }
}

fn corrupt_watch(watch: &mut Watch, dice: &mut Chance, nudge: &impl Fn(&mut i64, &mut Chance)) {
    if watch.told.is_empty() || dice.below(8) == 0 {
        if watch.from > 1 {
            nudge(&mut watch.from, dice);
        }
        return;
    }
    let at = dice.below(watch.told.len() as u64) as usize;
    if dice.below(6) == 0 {
        watch.told.remove(at);
        return;
    }
    if dice.below(8) == 0 {
        let time = match watch.told[at] {
            Told::Events { time, .. } | Told::Progress { time, .. } | Told::Compacted { time } => time,
        };
        let told = if dice.below(3) == 0 {
            Told::Compacted { time }
        } else {
            Told::Progress { time, revision: 1 + dice.below(8) as i64 }
        };
        watch.told.insert(at, told);
        return;
    }
    match &mut watch.told[at] {
        Told::Progress { time, revision } => match dice.below(2) {
            0 if *revision > 2 => nudge(revision, dice),
            _ => nudge(time, dice),
        },
        Told::Compacted { time } => nudge(time, dice),
        Told::Events { time, revision, events } => {
            let n = dice.below(events.len() as u64) as usize;
            match dice.below(9) {
                0 => nudge(time, dice),
                1 if *revision > 2 => nudge(revision, dice),
                2 if events.len() > 1 => drop(events.remove(n)),
                3 => events.insert(n, events[n].clone()),
                4 => nudge(&mut events[n].revision, dice),
                5 => events[n].value = events[n].value.map(|_| Name(dice.below(8) as u8)),
                6 => events[n].create = !events[n].create,
                7 => events[n].previous = None,
                _ => {
                    if let Some(previous) = &mut events[n].previous {
                        nudge(if dice.below(2) == 0 { &mut previous.1 } else { &mut previous.2 }, dice);
                        previous.2 = previous.2.max(1);
                    }
                }
            }
            events.retain(|event| event.revision > 0);
            if events.is_empty() {
                watch.told.remove(at);
            }
        }
    }
}
