//! Validity intervals, compared with all revisions of small random histories.

use super::{Order, OrderOptions, Reading, Seen, ValidityIntervals};
use crate::history::sketch::sketch;
use crate::history::{History, KeyId, Revision};
use fastrand::Rng;

/// The true history: at each revision from 11, the changed key and its new value.
struct Truth {
    changes: Vec<(u64, usize, Option<u64>)>,
}

const FIRST: u64 = 11;

impl Truth {
    /// The version of a key at a revision.
    fn at(&self, key: usize, revision: u64) -> Option<u64> {
        let last = self.changes.iter().rfind(|(r, k, _)| *r <= revision && *k == key)?;
        last.2
    }

    fn last(&self) -> u64 {
        self.changes.len() as u64 + FIRST - 1
    }
}

/// A random history of three keys, and a sketch that shows part of it.
fn history(seed: u64, whole: bool) -> (Truth, String) {
    let mut dice = Rng::with_seed(seed);
    let mut truth = Truth { changes: Vec::new() };
    let (mut text, mut etcd) = (String::from("column 10ms\n"), String::from("etcd "));
    let mut uids = [0u64; 3];
    for revision in FIRST..FIRST + 8 + dice.u64(..12) {
        let key = dice.u64(..3) as usize;
        let before = truth.at(key, revision);
        let shown = whole || dice.u64(..3) > 0;
        let name = ["a", "b", "c"][key];
        let (line, event) = match before {
            None => {
                uids[key] = revision;
                let object = format!("{name}:u{revision}@{revision}");
                (format!("w@A CREATE {name} => {object}"), format!("+{object}"))
            }
            Some(_) if dice.u64(..3) == 0 => {
                let object = format!("{name}:u{}", uids[key]);
                (format!("w@A DELETE {object} => ok:u{}", uids[key]), format!("-{object}@{revision}"))
            }
            Some(base) => {
                let object = format!("{name}:u{}", uids[key]);
                (format!("w@A PUT {object}@{base} => {object}@{revision}"), format!("~{object}@{revision}"))
            }
        };
        let holds = if event.starts_with('-') { None } else { Some(revision) };
        truth.changes.push((revision, key, holds));
        if shown {
            text += &(line + "\n");
        }
        etcd += &format!(" {event}");
        if dice.u64(..4) == 0 {
            let items: Vec<String> = (0..3)
                .filter_map(|k| Some((k, truth.at(k, revision)?)))
                .map(|(k, version)| format!("{}:u{}@{version}", ["a", "b", "c"][k], uids[k]))
                .collect();
            text += &format!("r@A LIST => {revision} {{{}}}\n", items.join(" "));
        }
    }
    if whole {
        text += &(etcd + "\n");
    }
    (truth, text)
}

fn key(history: &History, name: &str) -> Option<KeyId> {
    (0..history.keys.len() as u32).map(KeyId).find(|k| history.name(history.keys[k.index()].name) == name)
}

#[test]
fn every_revision_at_which_a_value_was_true_lies_in_its_interval_and_with_a_witness_no_other() {
    let (mut versions, mut absences) = (0, 0);
    for seed in 1..400 {
        let whole = seed % 3 == 0;
        let (truth, text) = history(seed, whole);
        let history = sketch(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let order = Order::derive(&history, &OrderOptions::default());
        let truths = ValidityIntervals::derive(&history, &order);
        let mut dice = Rng::with_seed(!seed);
        for (index, name) in ["a", "b", "c"].into_iter().enumerate() {
            let Some(key) = key(&history, name) else { continue };
            for read in FIRST..=truth.last() {
                let inside = |t: &super::ValidityInterval, r: u64| {
                    t.from <= Revision::from(r) && t.through.is_none_or(|through| through >= Revision::from(r))
                };
                let value = match truth.at(index, read) {
                    Some(version) => Reading::Present { uid: Default::default(), revision: Revision::from(version) },
                    None => Reading::Absent,
                };
                // The read may have shown any state from `low` to `high`.
                let (low, high) = (read - dice.u64(..3).min(read - FIRST), (read + dice.u64(..3)).min(truth.last()));
                let seen = Seen { from: Revision::from(low), through: Some(Revision::from(high)) };
                let of = truths.of(key, value, seen);
                // The interval around the read in which the key held the same value.
                let same = |r: u64| truth.at(index, r) == truth.at(index, read);
                let first = (FIRST..=read).rev().take_while(|r| same(*r)).last().unwrap_or(read);
                let last = (read..=truth.last()).take_while(|r| same(*r)).last().unwrap_or(read);
                for r in first..=last {
                    assert!(inside(&of, r), "seed {seed}: {name} held {value:?} at {r}, not in {of:?}\n{text}");
                }
                match value {
                    Reading::Absent => absences += 1,
                    Reading::Present { .. } => {
                        versions += 1;
                        assert!(first == FIRST || !inside(&of, first - 1), "seed {seed}: {of:?} begins early\n{text}");
                        let next = whole && last < truth.last() && inside(&of, last + 1);
                        assert!(!next, "seed {seed}: {of:?} ends late\n{text}");
                    }
                }
                if whole && low == high && matches!(value, Reading::Absent) {
                    let beyond = |r: u64| (FIRST..=truth.last()).contains(&r) && inside(&of, r);
                    assert!(!beyond(last + 1) && !beyond(first - 1), "seed {seed}: {of:?} is too wide\n{text}");
                }
            }
        }
    }
    assert!(versions > 1_000 && absences > 1_000, "{versions} {absences}");
}
