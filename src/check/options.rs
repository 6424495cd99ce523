//! The options of a check and its limits.

use super::halt::Halt;
use crate::model::declaration::Declarations;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

/// The beginning of the reason of a rule that met no obligation.
pub const NO_EVIDENCE: &str = "no such evidence";

/// The reason of a rule that the user left out.
pub const NOT_ASKED_FOR: &str = "not asked for";

/// The reason of a rule about histories of another nature.
pub const OTHER_NATURE: &str = "not about histories of this nature";

/// The rules to run and their parameters.
#[derive(Clone, Debug)]
pub struct Options {
    /// The meaning of fields. Rules about them need a history that was read with [`Declarations::fields`].
    pub declarations: Arc<Declarations>,
    /// Only these slugs; empty means all.
    pub only: Vec<String>,
    /// Slugs to leave out.
    pub skip: Vec<String>,
    /// Nanoseconds after an object's end by which every process is presumed to have seen it; `None`: only processes with
    /// evidence.
    pub grace: Option<i64>,
    /// The isolation level that transactions are to have; `None`: strict serializability.
    pub level: Option<crate::isolation::Level>,
    /// No rule begins after this moment, and no search continues. The rest is unknown.
    pub deadline: Option<std::time::Instant>,
    /// The most bytes that a searching rule may hold at a time.
    pub memory: Option<usize>,
    /// Whether to keep proofs that are as long as the evidence: the order that explains an operation log.
    pub proofs: bool,
    /// The signal by which another thread ends it.
    #[doc(hidden)]
    pub halt: Option<&'static Halt>,
}

impl Default for Options {
    fn default() -> Self {
        // All runs share one copy.
        static SHIPPED: LazyLock<Arc<Declarations>> = LazyLock::new(|| Arc::new(Declarations::shipped().clone()));
        Options {
            declarations: SHIPPED.clone(),
            only: Vec::new(),
            skip: Vec::new(),
            grace: None,
            level: None,
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

    /// The reason why no further rule or computation begins, if there is one.
    pub(crate) fn halted(&self) -> Option<&'static str> {
        self.limits().halted()
    }

    pub(super) fn limits(&self) -> Limits {
        Limits { deadline: self.deadline, memory: self.memory, halt: self.halt }
    }
}

/// The beginning of reasons after the time budget was spent.
pub const SPENT: &str = "the time budget was spent";

/// The limits of a searching rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The moment at which it ends.
    pub deadline: Option<Instant>,
    /// The most bytes that it may hold at a time.
    pub memory: Option<usize>,
    /// The signal by which another thread ends it.
    pub halt: Option<&'static Halt>,
}

impl Limits {
    /// The reason to begin nothing more, if there is one.
    pub fn halted(&self) -> Option<&'static str> {
        let is_late = || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.halt.and_then(Halt::why).or_else(|| is_late().then_some(SPENT))
    }

    /// The flag that searches poll.
    pub fn cancel(&self) -> Option<&'static AtomicBool> {
        self.halt.map(Halt::flag)
    }
}
