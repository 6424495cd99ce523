//! Counts, sizes, times and verdicts as words for reports.

use crate::check::invariants::declared;
use crate::check::{BrokenBy, Effect, Finding, Kind, Verdict};
use crate::explore::is_recordable;
use crate::ingest::Time;

/// A number with separators: `12,345`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 file`, `2 files`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", thousands(number))
}

/// A size in bytes: `3.2 MiB`.
pub fn bytes(size: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if size < 1024 {
        return count(size, "byte");
    }
    let mut value = size as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A duration from nanoseconds: `4.9 s`, `2 h 5 min`.
pub fn duration(nanoseconds: i64) -> String {
    let seconds = nanoseconds.max(0) as f64 / 1e9;
    if nanoseconds < 1_000_000 {
        format!("{} µs", nanoseconds.max(0) / 1_000)
    } else if seconds < 1.0 {
        format!("{} ms", nanoseconds / 1_000_000)
    } else if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else if seconds < 3600.0 {
        format!("{} min {} s", seconds as u64 / 60, seconds as u64 % 60)
    } else {
        format!("{} h {} min", seconds as u64 / 3600, seconds as u64 % 3600 / 60)
    }
}

/// The day of a time, `2026-11-20`; empty if unknown.
pub fn day(time: Time) -> String {
    let text = time.to_string();
    text.split_once('T').map_or_else(String::new, |(day, _)| day.to_owned())
}

/// Day and time of day in UTC; the time alone if the clock began at zero, like that of some recorders.
pub fn moment(time: Time) -> String {
    let (day, clock) = (day(time), time_of_day(time));
    if day == "1970-01-01" || day.is_empty() { clock } else { format!("{day} {clock}") }
}

/// The time of day in UTC, `19:54:09.301894`; `-` if unknown.
pub fn time_of_day(time: Time) -> String {
    let text = time.to_string();
    match text.split_once('T') {
        Some((_, clock)) => clock.trim_end_matches('Z').to_owned(),
        None => text,
    }
}

/// The items of a sentence: `a, b and c`.
pub fn series<T: AsRef<str>>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [front @ .., last] => {
            let front: Vec<&str> = front.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", front.join(", "), last.as_ref())
        }
    }
}

/// A text with exactly one mark at its end.
pub fn stopped(mut text: String) -> String {
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}

/// The word of a kind in JSON and on the command line.
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Violation => "violation",
        Kind::Suspect => "suspect",
        Kind::Hazard => "hazard",
    }
}

/// The party whose promise broke, as one word.
pub fn broken_by(who: BrokenBy) -> &'static str {
    match who {
        BrokenBy::Server => "server",
        BrokenBy::Client => "client",
        BrokenBy::Nobody => "nobody",
    }
}

/// The command that compares the alternatives of a finding in every run; empty if the explorer has no counterpart of its rule.
pub fn exploration(finding: &Finding) -> String {
    match finding.prevention.is_empty() || !is_recordable(finding.rule) {
        true => String::new(),
        false => format!(
            "This is about the recorded run. `retrograde explore --from {} REPORT.json EVIDENCE` compares alternatives in every \
             run.",
            finding.id
        ),
    }
}

/// The broken promise as a sentence for the reader who has to act on the finding. Empty for findings of a rules file, because
/// their reason names the file.
pub fn promise(finding: &Finding) -> &'static str {
    if finding.rule == declared::RULE.slug {
        return "";
    }
    match (finding.kind, finding.broken_by) {
        (Kind::Suspect, BrokenBy::Server) => "if it is a violation, the server's: its contract excludes this answer.",
        (Kind::Suspect, BrokenBy::Client) => "if it is a violation, the client's: the protocol forbids this use.",
        (Kind::Suspect, BrokenBy::Nobody) => "none broke: each answer is allowed, but they may fit no single history.",
        (Kind::Hazard, BrokenBy::Server) => "none broke, but the server should avoid this.",
        (Kind::Hazard, _) => "none broke, but the client should avoid this.",
        (_, BrokenBy::Server) => "the server's: its contract excludes this answer.",
        (_, BrokenBy::Client) => "the client's: the protocol forbids this use.",
        (_, BrokenBy::Nobody) => "none broke: the API allows each answer, but together they fit no single history.",
    }
}

/// The word of an effect in reports.
pub fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Impossible => "impossible",
        Effect::Narrowed => "narrowed",
        Effect::None => "none",
    }
}

/// The word for the consistency of what a client saw.
pub fn saw(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "consistent",
        Verdict::Violated => "NOT consistent",
        Verdict::Unknown(_) => "undecided",
        Verdict::NotChecked(_) => "not checked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([count(1, "file"), count(2_000, "file")], ["1 file", "2,000 files"]);
        assert_eq!(
            [1, 1023, 1024, 3_355_443, 1_048_575].map(bytes),
            ["1 byte", "1,023 bytes", "1.0 KiB", "3.2 MiB", "1.0 MiB"]
        );
        assert_eq!(
            [5_000, 5_000_000, 4_859_341_000, 125_000_000_000, 7_500_000_000_000].map(duration),
            ["5 µs", "5 ms", "4.9 s", "2 min 5 s", "2 h 5 min"]
        );
        assert_eq!(series(&["a", "b", "c"]), "a, b and c");
    }

    #[test]
    fn times_of_day_keep_the_digits_that_the_evidence_has() {
        let time = Time(1_795_204_449_301_894_000);
        assert_eq!((day(time).as_str(), time_of_day(time).as_str()), ("2026-11-20", "19:54:09.301894"));
        assert_eq!(time_of_day(Time(1_795_204_449_301_894_001)), "19:54:09.301894001");
        assert_eq!((day(Time::UNKNOWN).as_str(), time_of_day(Time::UNKNOWN).as_str()), ("", "-"));
    }
}
