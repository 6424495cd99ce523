//! Small histories, decided by the checker and by enumeration of all executions. The two must not contradict.

use crate::chance::Chance;
use crate::etcd::certificate::Certificate;
use crate::etcd::oracle;
use crate::etcd::small::Small;
use crate::support::draws::seeds;
use rayon::prelude::*;
use retrograde::check::{Judgement, Verdict};
use retrograde::history::History;
use retrograde::history::etcd::Recording;
use std::collections::BTreeMap;

/// Histories by default.
const HISTORIES: u64 = 20_000;

/// Histories of one task.
const BLOCK: u64 = 500;

/// The rules on etcd reports.
const RULES: [&str; 17] = [
    "false-compaction",
    "false-progress",
    "linearizability",
    "lost-write",
    "revision-reuse",
    "revision-rewind",
    "split-timeline",
    "stale-consistent-read",
    "watch-before-write",
    "watch-duplicate",
    "watch-filter",
    "watch-gap",
    "watch-prehistory",
    "watch-prev-value",
    "watch-reorder",
    "watch-split",
    "watch-type",
];

/// Contradictions in a failure message.
const SHOWN: usize = 12;

/// The order of a history that holds is accepted, and an altered one is not.
fn certified(recording: &Recording, judgement: &Judgement, seed: u64) -> Result<(), String> {
    let certificate = Certificate::of(judgement).ok_or("it holds without an order")?;
    certificate.replay(recording).map_err(|flaw| format!("{flaw}: {certificate:?}"))?;
    let dice = &mut Chance::new(seed ^ 0x5eed);
    for _ in 0..4 {
        let Some((spoilt, what)) = certificate.spoilt(recording, dice) else { continue };
        if spoilt.replay(recording).is_ok() {
            return Err(format!("accepted with a step {what}: {spoilt:?} of {certificate:?}"));
        }
    }
    Ok(())
}

/// The reason of an unknown verdict, without numbers and names.
fn reason(judgement: &Judgement) -> String {
    let unknown = judgement.rules.iter().filter(|rule| matches!(rule.verdict, Verdict::Unknown(_)));
    let words = unknown.map(|rule| {
        let text = rule.verdict.reason().split('`').step_by(2).collect::<Vec<_>>().join("..");
        let text: String = text.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
        format!("{}: {text}", rule.rule)
    });
    words.collect::<Vec<_>>().join("; ")
}

/// Counts of verdicts by possibility, and the contradictions.
#[derive(Default)]
struct Counts {
    verdicts: BTreeMap<(String, bool), u64>,
    /// Reasons of unknown verdicts: count and first seed.
    reasons: BTreeMap<(bool, String), (u64, u64)>,
    contradictions: Vec<(u64, String)>,
    /// Histories that are possible only if a client without a record granted a lease, and that are unknown for that
    /// reason.
    granted_elsewhere: u64,
}

impl Counts {
    fn of(first: u64) -> Counts {
        let mut counts = Counts::default();
        let mut options = retrograde::Options::default();
        options.check.only = RULES.map(str::to_owned).to_vec();
        options.check.proofs = true;
        for seed in first..first + BLOCK {
            counts.add(seed, &options);
        }
        counts
    }

    /// Decides one history in both ways.
    fn add(&mut self, seed: u64, options: &retrograde::Options) {
        let small = Small::draw(&mut Chance::new(seed));
        let recording = small.recording();
        let judgement = retrograde::judge(&History::of_etcd(small.recording()), options);
        if judgement.verdict == Verdict::Holds
            && let Err(why) = certified(&recording, &judgement, seed)
        {
            self.contradictions.push((small.size(), format!("seed {seed}: {why}\n{small}")));
        }
        let possible = oracle::is_possible(&small);
        let contradicts = match judgement.verdict {
            Verdict::Violated => possible,
            Verdict::Holds => !possible,
            _ => false,
        };
        if contradicts {
            let found: String = judgement.findings.iter().map(|f| format!("{}: {}\n", f.rule, f.summary)).collect();
            let told = format!("seed {seed}, possible: {possible}, yet {}\n{small}{found}", judgement.verdict.word());
            self.contradictions.push((small.size(), told));
        }
        *self.verdicts.entry((judgement.verdict.word().to_owned(), possible)).or_default() += 1;
        if judgement.verdict.word() == "unknown" {
            self.granted_elsewhere += u64::from(possible && !oracle::granted_elsewhere(&small).is_empty());
            self.reasons.entry((possible, reason(&judgement))).or_insert((0, seed)).0 += 1;
        }
    }

    fn and(mut self, other: Counts) -> Counts {
        other.verdicts.into_iter().for_each(|(kind, count)| *self.verdicts.entry(kind).or_default() += count);
        for (kind, (count, seed)) in other.reasons {
            let known = self.reasons.entry(kind).or_insert((0, seed));
            *known = (known.0 + count, known.1.min(seed));
        }
        self.contradictions.extend(other.contradictions);
        self.granted_elsewhere += other.granted_elsewhere;
        self
    }
}

#[test]
fn no_verdict_contradicts_trying_every_way_in_which_it_can_have_happened() {
    let drawn = seeds(HISTORIES);
    let (from, histories) = (drawn.start, drawn.end - drawn.start);
    let counts = (0..histories.div_ceil(BLOCK)).into_par_iter().map(|at| Counts::of(from + at * BLOCK));
    let Counts { verdicts, reasons, mut contradictions, granted_elsewhere } =
        counts.reduce(Counts::default, Counts::and);
    println!("{histories} histories from seed {from}; verdict and whether possible: {verdicts:?}");
    for ((possible, reason), (count, seed)) in reasons {
        println!("unknown{}: {count}, first {seed}: {reason}", if possible { " though possible" } else { "" });
    }
    contradictions.sort();
    let shown: String = contradictions.iter().take(SHOWN).map(|(_, told)| format!("{told}\n")).collect();
    assert!(contradictions.is_empty(), "{} contradictions, the smallest first:\n{shown}", contradictions.len());
    let count = |word: &str, possible| verdicts.get(&(word.to_owned(), possible)).copied().unwrap_or(0);
    let (possible, impossible) = [true, false]
        .map(|which| ["holds", "unknown", "violated"].map(|word| count(word, which)).iter().sum::<u64>())
        .into();
    assert!((count("unknown", true) - granted_elsewhere) * 1000 < possible, "few are decided: {verdicts:?}");
    assert!(count("unknown", false) * 8 < impossible, "few are decided: {verdicts:?}");
    assert!(possible * 4 > histories && impossible * 5 > histories, "one kind is rare: {verdicts:?}");
}

/// A lease that was granted and ended between two revisions cannot end again after them, nor twice between the same
/// two. Puts in between cannot use it.
#[test]
fn histories_that_were_once_decided_wrongly_are_not_said_to_hold() {
    // The fourth is possible if a grant without an id is of the lease that another request names, which is unknown.
    for (seed, possible) in
        [(1_012_355, false), (176_207, false), (20_876_553, false), (20_966_700, true), (103_232_471, false)]
    {
        let small = Small::draw(&mut Chance::new(seed));
        assert_eq!(oracle::is_possible(&small), possible, "{seed}: {small}");
        let judgement = retrograde::judge(&History::of_etcd(small.recording()), &retrograde::Options::default());
        assert_ne!(judgement.verdict, Verdict::Holds, "{seed}");
    }
}

/// A compaction that a watch reported precedes requests that were sent after the report.
#[test]
fn an_order_that_was_once_wrong_is_accepted() {
    let seed = 200_612_214;
    let small = Small::draw(&mut Chance::new(seed));
    let mut options = retrograde::Options::default();
    options.check.proofs = true;
    let judgement = retrograde::judge(&History::of_etcd(small.recording()), &options);
    assert_eq!(judgement.verdict, Verdict::Holds);
    certified(&small.recording(), &judgement, seed).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn other_rules_have_nothing_to_say_about_reports_of_etcd() {
    let mut options = retrograde::Options::default();
    options.check.skip = RULES.map(str::to_owned).to_vec();
    for seed in 0..BLOCK {
        let small = Small::draw(&mut Chance::new(seed));
        let judgement = retrograde::judge(&History::of_etcd(small.recording()), &options);
        assert!(
            judgement.rules.iter().all(|rule| matches!(rule.verdict, Verdict::NotChecked(_))),
            "{:?}",
            judgement.rules
        );
    }
}
