//! What a caller asks of a check, and what it may spend.

use super::halt::Halt;
use crate::model::declaration::Declarations;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// How the reason of a rule begins that met nothing to check.
pub const NO_EVIDENCE: &str = "no such evidence";

/// Why a rule is not checked that the user left out.
pub const NOT_ASKED_FOR: &str = "not asked for";

/// Why a rule was not asked that is about histories of another nature.
pub const OTHER_NATURE: &str = "not about histories of this nature";

/// Which rules to run, and what they are told.
#[derive(Clone, Debug)]
pub struct Options {
    /// What fields mean. Rules about them need a history that was read with [`Declarations::fields`].
    pub declarations: Arc<Declarations>,
    /// Only these slugs; empty: all.
    pub only: Vec<String>,
    /// Not these.
    pub skip: Vec<String>,
    /// So many nanoseconds after an object's end everybody is taken to have seen it; `None`: only who can be shown to have.
    pub grace: Option<i64>,
    /// No rule begins after this moment, and no search goes on; what is left is unknown.
    pub deadline: Option<std::time::Instant>,
    /// Bytes that a rule which has to search may hold at a time.
    pub memory: Option<usize>,
    /// Whether to keep also proofs that are as long as the evidence: the order that explains an operation log.
    pub proofs: bool,
    /// How another thread ends it.
    pub halt: Option<&'static Halt>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            declarations: Arc::new(Declarations::shipped().clone()),
            only: Vec::new(),
            skip: Vec::new(),
            grace: None,
            deadline: None,
            memory: None,
            proofs: false,
            halt: None,
        }
    }
}

impl Options {
    /// Whether a rule is to run.
    pub(super) fn runs(&self, slug: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|s| s == slug);
        (self.only.is_empty() || named(&self.only)) && !named(&self.skip)
    }

    /// Why no rule and no computation begins any more, if that is so.
    pub fn halted(&self) -> Option<&'static str> {
        self.limits().halted()
    }

    pub(super) fn limits(&self) -> Limits {
        Limits { deadline: self.deadline, memory: self.memory, halt: self.halt }
    }
}

/// How reasons begin where the time budget ended it.
pub const SPENT: &str = "the time budget was spent";

/// What a rule may spend that has to search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// It ends then.
    pub deadline: Option<Instant>,
    /// Bytes that it may hold at a time.
    pub memory: Option<usize>,
    /// How another thread ends it.
    pub halt: Option<&'static Halt>,
}

impl Limits {
    /// Why nothing more is to be begun, if that is so.
    pub fn halted(&self) -> Option<&'static str> {
        let is_late = || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.halt.and_then(Halt::why).or_else(|| is_late().then_some(SPENT))
    }

    /// What searches look at.
    pub fn cancel(&self) -> Option<&'static AtomicBool> {
        self.halt.map(Halt::flag)
    }
}
