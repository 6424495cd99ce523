//! Stage 4 of 5: history, order and contract to findings. Input: a [`crate::history::History`] and its
//! [`crate::order::Order`]. Output: a [`Judgement`]. Invariant: prints nothing; a rule is a pure predicate that returns its
//! certificate. Trap: a rule imports facts and its own group only.
//!
//! ```
//! use retrograde::check::{Kind, Verdict};
//! use retrograde::history::sketch::sketch;
//! use retrograde::{Options, judge};
//!
//! let history = sketch("
//! etcd     +a:u1@10  ~a@12  -a@15
//! ctrl@A   |-LIST => 15 {}-|
//! ctrl@B                      |-LIST rv=0 => 12 {a:u1@12}-|
//! ")?;
//! let mut options = Options::default();
//! options.check.only = vec!["monotonic-reads".to_owned()];
//! let judgement = judge(&history, &options);
//! assert_eq!(judgement.verdict, Verdict::Violated);
//! let finding = &judgement.findings[0];
//! assert_eq!((finding.rule, finding.kind), ("monotonic-reads", Kind::Violation));
//! for fact in &finding.certificate.facts {
//!     println!("{}: {}", fact.place(&history), fact.says);
//! }
//! # Ok::<(), retrograde::history::sketch::SketchError>(())
//! ```

pub(crate) mod engine;
pub(crate) mod finding;
pub(crate) mod focus;
pub(crate) mod halt;
#[doc(hidden)]
pub mod invariants;
pub(crate) mod judgement;
pub(crate) mod options;
#[doc(hidden)]
pub mod registry;
pub(crate) mod rule;
pub(crate) mod rule_result;

mod certificate;
mod clusters;
mod etcd;
pub(crate) mod facts;
mod isolation;
mod linearizability;
pub(crate) mod premises;
mod protocol;
mod published;
mod reads;
mod sessions;
#[cfg(test)]
pub(crate) mod testing;
mod watches;
mod writes;

pub use finding::{
    BrokenBy, Certificate, Effect, Fact, Finding, Judgement, Kind, Prevention, RuleReport, Undecided, Verdict,
};
pub use options::Options;
pub use published::Published;

#[doc(hidden)]
pub use self::{
    certificate::Proof,
    engine::{RuleRun, judge},
    facts::{Evidence, Facts},
    finding::{ClientReport, CoverageReport, Draft},
    focus::Focus,
    halt::Halt,
    options::{Limits, NO_EVIDENCE, NOT_ASKED_FOR, OTHER_NATURE},
    published::PUBLISHED,
    registry::RULES,
    rule::{Checks, Group, Rule},
    rule_result::RuleResult,
};
