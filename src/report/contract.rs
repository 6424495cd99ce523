//! The rows of the contract that the evidence exercises: the output of `retrograde show --contract`. People who test API servers
//! read from it which forms of a read their run has tried, and which of them a server broke.

use super::page::{Column, Page, Row};
use crate::check::registry::find;
use crate::check::{BrokenBy, Group, Judgement, Kind};
use crate::explain::words::{count, thousands};
use crate::history::{History, OperationId, Outcome, Verb};
use crate::model::{CONTRACT, promise};
use rustc_hash::FxHashSet;
use std::io;

/// Verbs of the contract.
const READS: [Verb; 3] = [Verb::Get, Verb::List, Verb::Watch];

/// The requests of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Exercise {
    asked: u64,
    answered: u64,
    refused: u64,
    /// Answers that a violation of a server names.
    broken: u64,
}

/// Writes a table of all rows, with those that no request exercises at the end.
pub fn write(page: &mut Page<'_>, history: &History, judgement: &Judgement) -> io::Result<()> {
    let exercises = exercises(history, &broken(history, judgement));
    let of = |at: usize| (&CONTRACT[at], exercises[at]);
    // The last row is that of requests without a promise.
    let promised = CONTRACT.len() - 1;
    let tried = (0..promised).filter(|&at| exercises[at].answered > 0).count();
    page.title(&format!("Contract of reads: {tried} of {promised} rows have an answer"))?;
    let columns = [
        Column::left("row", 28),
        Column::right("requests", 10),
        Column::right("answered", 10),
        Column::right("refused", 10),
        Column::right("broken", 10),
    ];
    let used = (0..CONTRACT.len()).map(of).filter(|(_, exercise)| exercise.asked > 0);
    let rows: Vec<_> = used
        .map(|(row, exercise)| {
            let numbers = [exercise.asked, exercise.answered, exercise.refused, exercise.broken].map(thousands);
            Row::new(std::iter::once(row.id.to_owned()).chain(numbers).collect(), row.promise.to_owned())
        })
        .collect();
    page.table(2, &columns, &rows)?;
    let missing: Vec<_> = (0..promised).map(of).filter(|(_, exercise)| exercise.asked == 0).collect();
    if missing.is_empty() {
        return Ok(());
    }
    page.title(&format!("No request exercises {}", count(missing.len() as u64, "row")))?;
    let rows: Vec<_> = missing
        .iter()
        .map(|(row, _)| {
            let since = if row.since > 0 { format!(" (Kubernetes 1.{} or later)", row.since) } else { String::new() };
            Row::new(vec![row.id.to_owned()], format!("{} {}{since}", row.verb.name(), row.condition))
        })
        .collect();
    page.table(2, &[Column::left("", 28)], &rows)
}

/// The reads at fault in violations of a server: in each, the last read that it cites. Rules about writes and identities cite
/// reads too, whose own promise holds.
fn broken(history: &History, judgement: &Judgement) -> FxHashSet<OperationId> {
    let is_about_reads = |rule| find(rule).is_some_and(|rule| matches!(rule.group, Group::Reads | Group::Watches));
    let by_server = judgement.findings.iter().filter(|finding| {
        finding.kind == Kind::Violation && finding.broken_by == BrokenBy::Server && is_about_reads(finding.rule)
    });
    let is_read = |id: &OperationId| id.is_some() && READS.contains(&history.operation(*id).verb);
    let certificates = by_server.flat_map(|finding| &finding.occurrences);
    certificates.filter_map(|certificate| certificate.facts.iter().rev().map(|f| f.operation).find(is_read)).collect()
}

fn exercises(history: &History, broken: &FxHashSet<OperationId>) -> Vec<Exercise> {
    let mut exercises = vec![Exercise::default(); CONTRACT.len()];
    for (id, o) in history.operations.but_shadows() {
        if !READS.contains(&o.verb) {
            continue;
        }
        let (_, row) = promise(history, &o, history.stream_of(id));
        let Some(at) = CONTRACT.iter().position(|known| known.id == row.id) else { continue };
        let exercise = &mut exercises[at];
        exercise.asked += 1;
        match o.outcome() {
            Outcome::Rejected => exercise.refused += 1,
            _ if o.is_answered() => exercise.answered += 1,
            _ => {}
        }
        exercise.broken += u64::from(broken.contains(&id));
    }
    exercises
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::trial::drawn;
    use crate::check::{Options, judge};
    use crate::order::{Order, OrderOptions};

    fn judged(history: &History) -> Judgement {
        judge(history, &Order::derive(history, &OrderOptions::default()), &Options::default())
    }

    /// Requests, answers, refusals and broken answers of each row that a drawn history exercises.
    fn exercised(sketch: &str) -> Vec<(&'static str, [u64; 4])> {
        let history = drawn(sketch);
        let judgement = judged(&history);
        let all = CONTRACT.iter().zip(exercises(&history, &broken(&history, &judgement)));
        let used = all.filter(|(_, exercise)| exercise.asked > 0);
        used.map(|(row, e)| (row.id, [e.asked, e.answered, e.refused, e.broken])).collect()
    }

    #[test]
    fn each_read_counts_for_its_row_with_its_outcome() {
        let text = "w@A CREATE a => a:u1@10\nr@A GET a => a:u1@10\nr@A GET b => !404\nr@A LIST rv=0 => 10 {a:u1@10}\n\
                    r@A WATCH from 10\nr@A LIST exact=3 => !410\n";
        assert_eq!(
            exercised(text),
            [
                ("get-unset", [2, 1, 1, 0]),
                ("list-any", [1, 1, 0, 0]),
                ("list-exact", [1, 0, 1, 0]),
                ("watch-from", [1, 1, 0, 0])
            ]
        );
    }

    #[test]
    fn an_answer_that_its_row_excludes_is_broken_and_its_legal_twin_is_not() {
        let write = "w@A CREATE a => a:u1@10\n";
        let stale = exercised(&format!("{write}r@A LIST => 5 {{}}\n"));
        assert_eq!(stale, [("list-unset", [1, 1, 0, 1])]);
        assert_eq!(exercised(&format!("{write}r@A LIST rv=0 => 5 {{}}\n")), [("list-any", [1, 1, 0, 0])]);
        // The finding may cite the read first.
        let absent = exercised(&format!("{write}r@A GET a => !404\nw@A PUT a:u1@10 => a:u1@25\n"));
        assert_eq!(absent, [("get-unset", [1, 0, 1, 1])]);
    }

    #[test]
    fn a_read_that_only_shows_what_a_write_broke_keeps_its_promise() {
        let one_uid_twice = "w@A CREATE a => a:u1@10\nw@A CREATE b => b:u1@11\nr@A LIST => 11 {a:u1@10 b:u1@11}\n";
        let findings = judged(&drawn(one_uid_twice)).findings;
        assert!(findings.iter().any(|f| f.kind == Kind::Violation && f.broken_by == BrokenBy::Server), "{findings:?}");
        assert_eq!(exercised(one_uid_twice), [("list-unset", [1, 1, 0, 0])]);
    }
}
