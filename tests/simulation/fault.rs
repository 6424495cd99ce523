//! The faults of a simulation, and the rules that must report them.

/// A fault; a run has at most one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// A consistent list answers from the lagging cache.
    StaleConsistentList,
    /// A consistent get answers from the lagging cache.
    StaleConsistentGet,
    /// A list not older than N answers below N.
    BelowMinimum,
    /// An exact list answers another revision.
    WrongSnapshot,
    /// A list lacks an object that lives at its revision.
    LostItem,
    /// A list shows an outdated version of an object.
    OldItem,
    /// A stream leaves an event out.
    DroppedEvent,
    /// A stream delivers an event twice.
    RepeatedEvent,
    /// A stream swaps two events.
    SwappedEvents,
    /// DELETED events carry the object's version before.
    OldDeleteVersion,
    /// A creation is delivered as MODIFIED.
    WrongType,
    /// A bookmark runs ahead of the events.
    EarlyBookmark,
    /// A watch from N delivers N again.
    Prehistory,
    /// After a restart a client lists with resourceVersion=0 from the lagging server.
    TimeTravel,
    /// A reflector resumes from an older version.
    ResumeBackwards,
    /// A write answers a revision below an earlier one.
    Rewind,
    /// Two objects share one revision.
    Collision,
    /// A stale conditional write is accepted.
    BrokenCompare,
    /// After a conflict a controller sends its old content with the new version.
    LaunderedConflict,
    /// A controller replaces an object without naming the version that it had read.
    BlindReplace,
}

impl Fault {
    pub const ALL: [Fault; 20] = [
        Fault::StaleConsistentList,
        Fault::StaleConsistentGet,
        Fault::BelowMinimum,
        Fault::WrongSnapshot,
        Fault::LostItem,
        Fault::OldItem,
        Fault::DroppedEvent,
        Fault::RepeatedEvent,
        Fault::SwappedEvents,
        Fault::OldDeleteVersion,
        Fault::WrongType,
        Fault::EarlyBookmark,
        Fault::Prehistory,
        Fault::TimeTravel,
        Fault::ResumeBackwards,
        Fault::Rewind,
        Fault::Collision,
        Fault::BrokenCompare,
        Fault::LaunderedConflict,
        Fault::BlindReplace,
    ];

    /// Rules of which one must report the fault, and rules that may report its consequences.
    pub fn rules(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Fault::None => (&[], &[]),
            Fault::StaleConsistentList => (&["stale-consistent-read"], &["monotonic-reads", "read-your-writes"]),
            Fault::StaleConsistentGet => (&["stale-consistent-read"], &["monotonic-reads", "read-your-writes"]),
            Fault::BelowMinimum => (&["below-minimum"], &["monotonic-reads"]),
            Fault::WrongSnapshot => (&["wrong-snapshot"], &[]),
            // The watch from the list delivers the item as modified, although the list did not have it.
            Fault::LostItem | Fault::OldItem => {
                (&["torn-snapshot"], &["monotonic-reads", "read-your-writes", "watch-type"])
            }
            Fault::DroppedEvent => (&["watch-gap"], &["watch-type"]),
            Fault::RepeatedEvent => (&["watch-duplicate"], &["watch-type", "watch-reorder"]),
            Fault::SwappedEvents => (&["watch-reorder"], &["watch-type", "false-progress"]),
            Fault::OldDeleteVersion => (&["delete-version"], &["watch-gap"]),
            Fault::WrongType => (&["watch-type"], &[]),
            Fault::EarlyBookmark => (&["false-progress"], &["watch-gap", "resume-backwards", "monotonic-reads"]),
            Fault::Prehistory => (&["watch-prehistory"], &["watch-type", "watch-duplicate"]),
            Fault::TimeTravel => (&["monotonic-reads"], &[]),
            Fault::ResumeBackwards => (&["resume-backwards", "resume-from-item"], &["monotonic-reads"]),
            // A store that goes back breaks nearly every promise above it.
            Fault::Rewind => (&["revision-rewind"], STORE),
            Fault::Collision => (&["revision-reuse", "identity-break"], STORE),
            Fault::LaunderedConflict => (&["laundered-conflict"], &["lost-update"]),
            Fault::BlindReplace => (&["blind-write"], &["lost-update"]),
            Fault::BrokenCompare => (&["broken-compare"], &["read-your-writes", "blind-write"]),
        }
    }
}

/// Rules that a broken revision order also violates.
const STORE: &[&str] = &[
    "revision-rewind",
    "revision-reuse",
    "monotonic-writes",
    "overlapping-lives",
    "writes-follow-reads",
    "stale-consistent-read",
    "torn-snapshot",
    "watch-gap",
    "watch-reorder",
    "watch-duplicate",
    "watch-prehistory",
    "watch-type",
    "false-progress",
    "identity-break",
    "bad-initial-state",
    "broken-compare",
    "monotonic-reads",
    "read-your-writes",
    "resume-backwards",
];
