//! Reads without a recorded content, of each process and of what it asked for. Question: may one of them have shown the process
//! a name between two moments? Of two reads on one clock, the one that was sent earlier and answered later decides. So only an
//! antichain is kept, by the time of sending, and the last read of it that was sent early enough answers for all before it.

use crate::history::{ClockId, History, IncarnationId, KeyId, Operation, OperationId, ResourceId, Symbol};
use crate::ingest::Time;
use crate::order::clock::of_each_clock;
use crate::order::{Clocks, Relation};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A process and what it asked for: resource, namespace, name. [`Symbol::NONE`] asks for every namespace or name.
type Asked = (IncarnationId, ResourceId, Symbol, Symbol);

/// See the head of the file.
#[derive(Debug, Default)]
pub(super) struct UnrecordedReads {
    reads: FxHashMap<Asked, Vec<OperationId>>,
}

impl UnrecordedReads {
    /// Adds a read with a scope. Questions count it after [`UnrecordedReads::arrange`].
    pub(super) fn push(&mut self, history: &History, id: OperationId, o: &Operation) {
        let scope = history.scopes[o.scope.index()];
        let part = |symbol: Symbol| if history.name(symbol).is_empty() { Symbol::NONE } else { symbol };
        let asked = (o.incarnation, scope.resource, part(scope.namespace), part(scope.name));
        self.reads.entry(asked).or_default().push(id);
    }

    /// Sorts the reads and drops those that other reads answer for.
    pub(super) fn arrange(&mut self, history: &History) {
        let operations = &history.operations;
        for reads in self.reads.values_mut() {
            // A read that was sent at an unknown time may have been sent at any time.
            reads.sort_unstable_by_key(|id| {
                let (sent, clock) = sent(history, id);
                (clock, sent.is_known(), sent, Reverse(operations.ret(id.index())))
            });
            let mut latest: Option<(ClockId, Time)> = None;
            reads.retain(|id| {
                let (clock, answered) = (operations.clock(id.index()), operations.ret(id.index()));
                let is_later = latest.is_none_or(|(of, latest)| of != clock || answered > latest);
                if is_later {
                    latest = Some((clock, answered));
                }
                is_later
            });
            reads.shrink_to_fit();
        }
    }

    /// Whether a read of a process, whose scope covers a name, may have been answered after one moment and sent before another.
    pub(super) fn may_show(
        &self,
        history: &History,
        clocks: &Clocks,
        (incarnation, key): (IncarnationId, KeyId),
        after: (Time, ClockId),
        before: (Time, ClockId),
    ) -> bool {
        let of = history.keys[key.index()];
        let namespaces = [Symbol::NONE, of.namespace];
        let asked = namespaces
            .into_iter()
            .flat_map(|namespace| [Symbol::NONE, of.name].map(|name| (incarnation, of.resource, namespace, name)));
        asked.filter_map(|asked| self.reads.get(&asked)).any(|reads| {
            of_each_clock(reads, |id| sent(history, id)).any(|reads| {
                let in_time =
                    reads.partition_point(|id| clocks.relation(sent(history, id), before) != Relation::NotBefore);
                // It was answered last.
                let last = reads[..in_time].last();
                last.is_some_and(|id| {
                    let answered = (history.operations.ret(id.index()), history.operations.clock(id.index()));
                    !clocks.before(answered, after)
                })
            })
        })
    }
}

fn sent(history: &History, id: &OperationId) -> (Time, ClockId) {
    (history.operations.invoke(id.index()), history.operations.clock(id.index()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::trial::drawn;
    use crate::order::{Order, OrderOptions};
    use proptest::prelude::*;

    /// One client of two API servers, each with a clock of its own. Reads overlap, and their contents are not recorded.
    fn sketch(reads: &[(usize, usize, usize, bool)]) -> String {
        let asked = ["GET w", "GET v", "GET other/w", "LIST", "LIST in other", "LIST configmaps"];
        let mut text = String::from("client c recorded=audit\n");
        for &(start, width, what, is_second) in reads {
            let server = if is_second { "B" } else { "A" };
            let act = format!("{} => bare", asked[what % asked.len()]);
            text += &format!("c@{server} {}|-{act:-<width$}-|\n", " ".repeat(start), width = act.len() + width);
        }
        text + "---\no@A CREATE w => w:u@5\no@A CREATE other/w => other/w:u2@6\n"
    }

    proptest! {
        #[test]
        fn the_antichain_answers_as_all_reads_do(
            reads in prop::collection::vec((0_usize..60, 0_usize..40, 0_usize..6, any::<bool>()), 1..12),
            skew in prop::option::of(0_i64..30_000_000),
        ) {
            let history = drawn(&sketch(&reads));
            let options = OrderOptions { clock_skew: skew, ..OrderOptions::default() };
            let clocks = Order::derive(&history, &options).clocks;
            let mut all = UnrecordedReads::default();
            let silent: Vec<(OperationId, Operation)> = history.operations.ids_but_shadows()
                .map(|id| (id, history.operation(id)))
                .filter(|(_, o)| !o.verb.is_write())
                .collect();
            prop_assert_eq!(silent.len(), reads.len());
            silent.iter().for_each(|(id, o)| all.push(&history, *id, o));
            all.arrange(&history);
            let moments = || silent.iter().flat_map(|(_, o)| [(o.invoke, o.clock), (o.ret, o.clock)]);
            let keys = || (0..history.keys.len()).map(|key| KeyId(key as u32));
            for (of, after, before) in silent.iter().flat_map(|(_, o)| keys().map(|key| (o.incarnation, key)))
                .flat_map(|of| moments().flat_map(move |after| moments().map(move |before| (of, after, before))))
            {
                let expected = silent.iter().any(|(_, o)| {
                    o.incarnation == of.0
                        && history.covers_key(o.scope, of.1)
                        && !clocks.before((o.ret, o.clock), after)
                        && clocks.relation((o.invoke, o.clock), before) != Relation::NotBefore
                });
                prop_assert_eq!(all.may_show(&history, &clocks, of, after, before), expected);
            }
        }
    }
}
