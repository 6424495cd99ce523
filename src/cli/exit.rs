//! The table of exit codes.

use super::baseline::Baseline;
use crate::check::judgement::lost_input;
use crate::check::{Kind, Verdict};
use crate::report::Report;
use std::process::ExitCode;

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: every checked obligation holds (or the command is not a check).
    Holds,
    /// 1: a violation was proved, or a finding at least as grave as `--fail-on`.
    Violated,
    /// 2: no report could be made, because of a usage error, a missing path, or an output that is not writable.
    NoReport,
    /// 3: undecided, which is never success.
    Unknown,
}

impl Exit {
    /// The exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Exit::Holds => 0,
            Exit::Violated => 1,
            Exit::NoReport => 2,
            Exit::Unknown => 3,
        }
    }

    /// The result of a check. `fail_on` is the least grave kind of finding that counts as a failure. Findings in the baseline do
    /// not count.
    pub fn of(report: &Report<'_>, fail_on: Kind, baseline: Option<&Baseline>) -> Exit {
        let Some(baseline) = baseline else { return Exit::table(&report.verdict(), report.gravest(), fail_on) };
        let all =
            report.histories.iter().flat_map(|part| part.judgement.findings.iter().map(move |f| (part.history, f)));
        let new =
            all.filter(|(history, finding)| !baseline.has(history, finding)).map(|(_, finding)| finding.kind).min();
        let verdict = match new {
            Some(Kind::Violation) => Verdict::Violated,
            Some(Kind::Suspect) => Verdict::Unknown(String::new()),
            Some(Kind::Hazard) | None => beside_findings(report),
        };
        Exit::table(&verdict, new, fail_on)
    }

    fn table(verdict: &Verdict, gravest: Option<Kind>, fail_on: Kind) -> Exit {
        match verdict {
            Verdict::Violated => Exit::Violated,
            // `Kind` orders from grave to harmless.
            _ if gravest.is_some_and(|kind| kind <= fail_on) => Exit::Violated,
            Verdict::Holds => Exit::Holds,
            Verdict::Unknown(_) | Verdict::NotChecked(_) => Exit::Unknown,
        }
    }
}

/// The verdict if all violations and suspects are known: unknown if anything without a finding is open.
fn beside_findings(report: &Report<'_>) -> Verdict {
    for part in &report.histories {
        let open = part.judgement.rules.iter().find_map(|rule| rule.open.clone());
        if let Some(reason) = open.or_else(|| lost_input(part.history)) {
            return Verdict::Unknown(reason);
        }
        let grave = part.judgement.findings.iter().any(|finding| finding.kind != Kind::Hazard);
        if !grave && part.judgement.verdict != Verdict::Holds {
            return Verdict::Unknown(part.judgement.verdict.reason().to_owned());
        }
    }
    if report.histories.is_empty() { report.verdict() } else { Verdict::Holds }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_exit_codes_is_the_documented_one() {
        let unknown = Verdict::Unknown(String::new());
        let unchecked = Verdict::NotChecked(String::new());
        for (verdict, gravest, fail_on, code) in [
            (&Verdict::Holds, None, Kind::Violation, 0),
            (&Verdict::Holds, Some(Kind::Hazard), Kind::Violation, 0),
            (&Verdict::Holds, Some(Kind::Hazard), Kind::Suspect, 0),
            (&Verdict::Holds, Some(Kind::Hazard), Kind::Hazard, 1),
            (&Verdict::Violated, Some(Kind::Violation), Kind::Violation, 1),
            (&unknown, None, Kind::Hazard, 3),
            (&unknown, Some(Kind::Suspect), Kind::Violation, 3),
            (&unknown, Some(Kind::Suspect), Kind::Suspect, 1),
            (&unknown, Some(Kind::Suspect), Kind::Hazard, 1),
            (&unchecked, None, Kind::Violation, 3),
        ] {
            assert_eq!(Exit::table(verdict, gravest, fail_on).code(), code, "{verdict:?} {gravest:?} {fail_on:?}");
        }
        assert_eq!(Exit::NoReport.code(), 2);
    }
}
