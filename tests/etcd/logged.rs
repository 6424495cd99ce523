//! Small histories with the log of their only member. A violation must be impossible. A history that holds must be
//! possible, though clients without records may have sent entries of the log. A log turns no violation into *holds*. It
//! may turn one into unknown, if it shows that a record is missing or contradicts the record.

use crate::chance::Chance;
use crate::etcd::oracle;
use crate::etcd::small::Small;
use crate::support::draws::seeds;
use rayon::prelude::*;
use retrograde::check::Verdict;
use retrograde::history::History;

/// Histories by default.
const HISTORIES: u64 = 2_000;

/// Contradictions in a failure message.
const SHOWN: usize = 8;

/// Judges a history without and with its log. Returns both verdicts and a contradiction.
fn judged(seed: u64) -> ((&'static str, &'static str), Option<(u64, String)>) {
    let dice = &mut Chance::new(seed);
    let mut small = Small::draw(dice);
    let judge =
        |small: &Small| retrograde::judge(&History::of_etcd(small.recording()), &retrograde::Options::default());
    let alone = judge(&small).verdict;
    small.log_some(dice);
    let judgement = judge(&small);
    let weaker = alone == Verdict::Violated && judgement.verdict == Verdict::Holds;
    let wrong = judgement.verdict == Verdict::Violated && oracle::is_possible(&small);
    let missed = judgement.verdict == Verdict::Holds && !oracle::is_possible_beside_other_clients(&small);
    let words = (alone.word(), judgement.verdict.word());
    if !weaker && !wrong && !missed {
        return (words, None);
    }
    let found: String = judgement.findings.iter().map(|f| format!("{}: {}\n", f.rule, f.summary)).collect();
    let what = match (wrong, missed) {
        (true, _) => "possible",
        (_, true) => "impossible",
        _ => "violated without the log",
    };
    (words, Some((small.size(), format!("seed {seed}, {what}, yet {}\n{small}{found}", words.1))))
}

#[test]
fn beside_a_log_verdicts_agree_with_every_execution_and_no_violation_turns_into_holds() {
    let drawn = seeds(HISTORIES);
    let (from, histories) = (drawn.start, drawn.end - drawn.start);
    let all: Vec<_> = drawn.into_par_iter().map(judged).collect();
    let mut counts = std::collections::BTreeMap::new();
    all.iter().for_each(|(words, _)| *counts.entry(*words).or_insert(0u64) += 1);
    println!("{histories} histories from seed {from}; verdicts without and with the log: {counts:?}");
    let mut contradictions: Vec<_> = all.into_iter().filter_map(|(_, contradiction)| contradiction).collect();
    contradictions.sort();
    let shown: String = contradictions.iter().take(SHOWN).map(|(_, told)| format!("{told}\n")).collect();
    assert!(contradictions.is_empty(), "{} contradictions, the smallest first:\n{shown}", contradictions.len());
    let gained = counts.iter().filter(|((alone, with), _)| alone != with && *with == "violated").map(|(_, n)| n);
    assert!(gained.sum::<u64>() * 100 > histories, "a log seldom shows what answers do not: {counts:?}");
}
