//! The author of a version, as one process knows it. This is the only place where rules ask whether two records belong to two
//! processes.

use crate::check::Evidence;
use crate::history::{IncarnationId, Marks};
use crate::order::Version;

/// The author of a version, the clearest case first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Author {
    /// Certainly another process.
    Another,
    /// An unknown writer, or a life that may be of the same process: see [`crate::order::Sessions::are_two`].
    Unknown,
    /// The process itself.
    Itself,
}

/// The author of a version in relation to a process.
pub fn author(evidence: &Evidence<'_>, version: &Version, process: IncarnationId) -> Author {
    let (history, sessions) = (evidence.history, &evidence.order.sessions);
    if !version.writer.is_some() {
        return Author::Unknown;
    }
    let writer = history.operation(version.writer);
    if writer.incarnation == process || sessions.index_of(writer.incarnation) == sessions.index_of(process) {
        return Author::Itself;
    }
    // A record of the server's side may know the process by another name.
    let one_user = history.client_name(writer.incarnation) == history.client_name(process);
    let shadow = writer.marks.has(Marks::SHADOW) && one_user;
    let another = !shadow && sessions.are_two(history, writer.incarnation, process);
    if another { Author::Another } else { Author::Unknown }
}
