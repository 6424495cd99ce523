//! Several logs of one run: Jepsen keeps the operations of a test as `history.edn`, as `history.txt` and in `jepsen.log`.

use super::super::store::History;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::path::Path;

/// Whether two logs stand in one folder and tell the same of every process: what it asked, in its order, and what came of it.
/// Times, and how the processes lie to each other, are not asked: loggers of several threads get ahead of one another.
pub fn same(one: &History, other: &History) -> bool {
    folder(one) == folder(other) && one.calls().calls.len() == other.calls().calls.len() && told(one) == told(other)
}

/// A number that is the same for all logs of one run, and seldom for others: thousands of logs may stand in one folder.
pub fn outline(history: &History) -> u64 {
    let of = |process, function, ending| {
        FxBuildHasher.hash_one((history.client_name(process), history.name(function), ending))
    };
    let calls = history.calls().calls.iter();
    calls.map(|call| of(call.process, call.function, call.ending)).fold(0, u64::wrapping_add)
}

fn folder(history: &History) -> Option<&Path> {
    Path::new(&history.files.first()?.path).parent()
}

fn told(history: &History) -> FxHashMap<&str, Vec<String>> {
    let mut told: FxHashMap<&str, Vec<String>> = FxHashMap::default();
    for call in history.calls().calls.iter() {
        let value = |id| history.calls().values.show(id, usize::MAX);
        let (key, argument, answer) = (value(call.key), value(call.argument), value(call.answer));
        let function = history.name(call.function);
        let says = format!("{function} {key} {argument} {answer} {:?}", call.ending);
        told.entry(history.client_name(call.process)).or_default().push(says);
    }
    told
}
