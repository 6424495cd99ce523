//! Reports of histories, as the program writes them.

use retrograde::history::History;
use retrograde::report::{Format, Look, Part, Report};

/// The report of `check --json --proofs`.
pub fn json_with_proofs(histories: &[History]) -> Vec<u8> {
    let check = retrograde::check::Options { proofs: true, ..Default::default() };
    let options = retrograde::Options { check, ..Default::default() };
    let judgements: Vec<_> = histories.iter().map(|history| retrograde::judge(history, &options)).collect();
    let parts = histories.iter().zip(&judgements).map(|(history, judgement)| Part::of(history, judgement));
    let mut out = Vec::new();
    Report { histories: parts.collect() }.write(Format::Json, Look::default(), &mut out).unwrap();
    out
}
