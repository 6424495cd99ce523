//! Boundaries of the contract: for two forms of a read, a shortest run in which a server may answer one form as it may never answer
//! the other. People who test an API server or a cache replay them on it (`docs/explorer.md`).

use super::error::ProtocolError;
use super::file::read;
use super::machine::{Event, Machine, Outcome};
use super::state::State;
use super::system::TransitionSystem;
use serde::Serialize;
use std::collections::{HashSet, VecDeque};

/// A boundary between two rows of the contract ([`crate::model::contract::CONTRACT`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Boundary {
    /// The row of the read in the run.
    pub row: &'static str,
    /// The query of this read. `{known}` stands for the version of the list.
    pub query: &'static str,
    /// The row that excludes its answer.
    pub other: &'static str,
    /// The query of a read in that row.
    pub other_query: &'static str,
    /// The run.
    pub actions: Vec<Action>,
    /// How many of the writes the answer shows.
    pub shown: usize,
}

/// What a tester does. Before the first action there is one object, and two servers whose caches have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Change the object, through a server that is not behind.
    Write,
    /// List the most recent state. A read "from a version" or "at a version" names the version of this list.
    Know,
    /// Wait until the second server's cache has all writes so far, and then keep it there.
    Hold,
    /// Send the read to the second server.
    Read,
}

/// A form of a read.
struct Form {
    /// The row of the contract.
    row: &'static str,
    /// The step of a protocol.
    step: &'static str,
    /// The query of the request.
    query: &'static str,
}

const fn form(row: &'static str, step: &'static str, query: &'static str) -> Form {
    Form { row, step, query }
}

/// The query of a watch that begins with the initial events.
macro_rules! initial {
    ($version:literal) => {
        concat!(
            "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
            $version
        )
    };
}

/// The forms that are compared, in groups of one verb.
const FORMS: [&[Form]; 3] = [
    &[
        form("list-unset", r#"list = "configmaps""#, ""),
        form("list-any", r#"list = "configmaps", resource-version = "0""#, "resourceVersion=0"),
        form(
            "list-from",
            r#"list = "configmaps", resource-version = "known""#,
            "resourceVersion={known}&resourceVersionMatch=NotOlderThan",
        ),
        form(
            "list-exact",
            r#"list = "configmaps", resource-version = "known", exact = true"#,
            "resourceVersion={known}&resourceVersionMatch=Exact",
        ),
    ],
    &[
        form("get-unset", r#"get = "configmaps/a""#, ""),
        form("get-any", r#"get = "configmaps/a", resource-version = "0""#, "resourceVersion=0"),
        form("get-from", r#"get = "configmaps/a", resource-version = "known""#, "resourceVersion={known}"),
    ],
    &[
        form("watchlist-unset", r#"watch = "configmaps", initial-events = true"#, initial!("")),
        form(
            "watchlist-any",
            r#"watch = "configmaps", initial-events = true, resource-version = "0""#,
            initial!("&resourceVersion=0"),
        ),
        form(
            "watchlist-from",
            r#"watch = "configmaps", initial-events = true, resource-version = "known""#,
            initial!("&resourceVersion={known}"),
        ),
    ],
];

/// The step of the read in the reader's program.
const READ: u8 = 3;

/// A boundary for each two forms of a verb of which one allows an answer that the other excludes.
///
/// # Errors
/// If a protocol of a form has mistakes, which would be a fault of this program.
pub fn boundaries() -> Result<Vec<Boundary>, ProtocolError> {
    let mut found = Vec::new();
    for forms in FORMS {
        for form in forms {
            for other in forms.iter().filter(|other| other.row != form.row) {
                found.extend(boundary((form, &machine(form)?), (other, &machine(other)?)));
            }
        }
    }
    Ok(found)
}

/// A writer, and a reader that reads in a form.
fn machine(form: &Form) -> Result<Machine, ProtocolError> {
    let step = form.step;
    let text = format!(
        r#"
        name = "boundary"
        properties = ["monotonic-reads"]
        limits = {{ servers = 2, writes = 2, crashes = 0, breaks = 0 }}
        [[object]]
        key = "configmaps/a"
        [[client]]
        name = "writer"
        steps = [
            {{ patch = "configmaps/a", fields = "{{'data': 1}}" }},
            {{ patch = "configmaps/a", fields = "{{'data': 2}}" }},
        ]
        [[client]]
        name = "reader"
        steps = [{{ list = "configmaps", into = "known" }}, {{ {step}, into = "seen" }}]
        "#
    );
    Machine::new(read(&text, None)?)
}

/// The revisions of answers to the read.
fn answers(machine: &Machine, state: &State) -> Vec<u8> {
    let mut revisions = Vec::new();
    machine.transitions(state, &mut |_, _, event, _| {
        if let Event::Read { actor, revision, .. } = event
            && actor.step == READ
        {
            revisions.push(revision);
        }
    });
    revisions
}

/// A shortest run to an answer that the row allows and the other one excludes.
fn boundary((form, of_row): (&Form, &Machine), (other, of_other): (&Form, &Machine)) -> Option<Boundary> {
    let initial = of_row.initial();
    let mut known = HashSet::from([initial.clone()]);
    let mut open = VecDeque::from([(initial, Vec::new())]);
    while let Some((state, run)) = open.pop_front() {
        let excluded = answers(of_other, &state);
        if let Some(revision) = answers(of_row, &state).into_iter().find(|revision| !excluded.contains(revision)) {
            let begin = of_row.layout.last(&of_row.initial());
            return Some(Boundary {
                row: form.row,
                query: form.query,
                other: other.row,
                other_query: other.query,
                actions: actions(&run, revision, begin),
                shown: (revision - begin).into(),
            });
        }
        of_row.transitions(&state, &mut |after, _, event, _| {
            if known.insert(after.clone()) {
                open.push_back((after, [&run[..], &[event]].concat()));
            }
        });
    }
    None
}

/// The actions of a run whose read shows a revision.
fn actions(run: &[Event], shown: u8, begin: u8) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut last = begin;
    for event in run {
        match event {
            Event::Wrote { outcome: Outcome::Committed(revision), .. } => {
                if last == shown {
                    actions.push(Action::Hold);
                }
                last = *revision;
                actions.push(Action::Write);
            }
            Event::Read { .. } => actions.push(Action::Know),
            _ => {}
        }
    }
    actions.push(Action::Read);
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_two_forms_are_separated_unless_one_excludes_all_that_the_other_does() {
        let found = boundaries().unwrap();
        let pairs: Vec<(&str, &str)> = found.iter().map(|boundary| (boundary.row, boundary.other)).collect();
        assert_eq!(
            pairs,
            [
                ("list-unset", "list-exact"),
                ("list-any", "list-unset"),
                ("list-any", "list-from"),
                ("list-any", "list-exact"),
                ("list-from", "list-unset"),
                ("list-from", "list-exact"),
                ("list-exact", "list-unset"),
                ("get-any", "get-unset"),
                ("get-any", "get-from"),
                ("get-from", "get-unset"),
                ("watchlist-any", "watchlist-unset"),
                ("watchlist-any", "watchlist-from"),
                ("watchlist-from", "watchlist-unset"),
            ]
        );
        use Action::{Hold, Know, Read, Write};
        let of =
            |row, other| &found.iter().find(|boundary| (boundary.row, boundary.other) == (row, other)).unwrap().actions;
        assert_eq!(of("list-from", "list-unset"), &[Know, Hold, Write, Read]);
        assert_eq!(of("list-any", "list-from"), &[Hold, Write, Know, Read]);
        assert_eq!(of("list-unset", "list-exact"), &[Know, Write, Read]);
    }
}
