//! Rules as data: one entry a rule, in the order in which causes come before consequences.

use super::ruling::Ruling;
use super::{BrokenBy, Evidence};

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What servers answer to reads.
    Reads,
    /// What servers deliver on watches.
    Watches,
    /// What servers commit.
    Writes,
    /// What one process sees over time.
    Sessions,
    /// How a client uses the protocol.
    Protocol,
    /// What writes were based on.
    Premises,
    /// What holds over T, whoever looks.
    Invariants,
    /// What operation logs without revisions show.
    Operations,
}

impl Group {
    /// The words in lists.
    pub fn title(self) -> &'static str {
        match self {
            Group::Reads => "server: reads",
            Group::Watches => "server: watch",
            Group::Writes => "server: writes",
            Group::Sessions => "client sessions",
            Group::Protocol => "client protocol",
            Group::Premises => "premises",
            Group::Invariants => "invariants over T",
            Group::Operations => "operation logs",
        }
    }

    /// Whether the group's findings are about what a client saw, and so count for that client's verdict.
    pub fn is_about_observations(self) -> bool {
        matches!(self, Group::Reads | Group::Watches | Group::Writes | Group::Sessions | Group::Operations)
    }
}

/// One rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// The slug: the same everywhere.
    pub slug: &'static str,
    /// What it says, in a few words.
    pub title: &'static str,
    /// Group.
    pub group: Group,
    /// Whose promise a violation usually breaks.
    pub promise: BrokenBy,
    /// The evidence that it needs; the reason where it met no obligation.
    pub needs: &'static str,
    /// Slugs of rules whose findings can be the cause of this one's.
    pub causes: &'static [&'static str],
    /// Source text of the rule's file; its leading `//!` lines are the documentation page.
    pub source: &'static str,
    /// The predicate.
    pub check: fn(&Evidence<'_>, &mut Ruling<'_>),
}

impl Rule {
    /// The documentation page: Markdown out of the file's doc comment.
    pub fn page(&self) -> String {
        let mut page = format!("# {}\n\n", self.slug);
        for line in self.source.lines().map_while(|l| l.strip_prefix("//!")) {
            page += line.strip_prefix(' ').unwrap_or(line);
            page.push('\n');
        }
        page
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.slug)
    }
}
