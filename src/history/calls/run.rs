//! Recognizes several logs of one run: Jepsen writes the operations of a test to `history.edn`, `history.txt` and `jepsen.log`.

use super::super::store::History;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::path::Path;

/// Whether two logs in one folder have the same calls of every process, in the same order and with the same outcome. Times and
/// the interleaving of processes are ignored, since loggers of several threads overtake each other.
pub fn same(one: &History, other: &History) -> bool {
    folder(one) == folder(other)
        && one.calls().calls.len() == other.calls().calls.len()
        && calls_by_client(one) == calls_by_client(other)
}

/// A hash that is equal for all logs of one run and rarely equal otherwise, since a folder may hold thousands of logs.
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

fn calls_by_client(history: &History) -> FxHashMap<&str, Vec<String>> {
    let mut calls_by_client: FxHashMap<&str, Vec<String>> = FxHashMap::default();
    for call in history.calls().calls.iter() {
        let value = |id| history.calls().values.show(id, usize::MAX);
        let (key, argument, answer) = (value(call.key), value(call.argument), value(call.answer));
        let function = history.name(call.function);
        let says = format!("{function} {key} {argument} {answer} {:?}", call.ending);
        calls_by_client.entry(history.client_name(call.process)).or_default().push(says);
    }
    calls_by_client
}
