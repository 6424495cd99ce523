//! `retrograde` checks recorded etcd and Kubernetes histories: does etcd's total order of revisions explain what each client saw?
//!
//! ```text
//! bytes --ingest--> records --history--> operations --order--> timeline + happens-before --check--> findings
//!       findings --counterfactual--> prevention --explain--> narrative --report--> outputs
//! ```
//!
//! Each module is one stage and uses only earlier ones (`docs/architecture.md`). All stages in a few lines:
//!
//! ```no_run
//! use retrograde::{Options, check::Verdict, history, ingest};
//!
//! let inputs = ingest::inputs(&["evidence/".into()], &[], &[])?;
//! let history = history::load(inputs, &retrograde::read_options(), &history::Domains::default(), &());
//! let judgement = retrograde::judge(&history, &Options::default());
//! assert_eq!(judgement.verdict, Verdict::Holds);
//! # Ok::<(), ingest::InputError>(())
//! ```
//!
//! A verdict of [`check::Verdict::Holds`] is about the given evidence only. [`check::Judgement::unchecked`] states what the
//! evidence leaves open.
#![deny(missing_docs)]
// The command line uses all of the crate. A library build without it leaves some functions without a caller.
#![cfg_attr(not(feature = "cli"), allow(dead_code, unused_imports))]

pub mod assertion;
pub mod check;
pub mod explore;
pub mod history;
pub mod ingest;
pub mod isolation;
pub mod model;
pub mod order;
pub mod record;
pub mod report;
pub mod search;

// No user needs these stages. They are public for the program, and for the tests and benchmarks of this repository.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "container")]
#[doc(hidden)]
pub mod container;
#[doc(hidden)]
pub mod counterfactual;
#[doc(hidden)]
pub mod explain;
#[cfg(feature = "proxy")]
mod proxy;
#[doc(hidden)]
pub mod verify;

pub use assertion::Recorder;

use ingest::limits::LONGEST_RULES_FILE;
use model::Declarations;
use model::declaration::Mistake;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The caller's declarations for all stages after reading.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Facts about clocks and processes that the evidence does not show.
    pub order: order::OrderOptions,
    /// The rules to check, and the limits of the run.
    pub check: check::Options,
}

/// Options for reading evidence with the fields that the shipped declarations name, which the rules need.
pub fn read_options() -> ingest::ReadOptions {
    // Cached, since a caller with many small files asks for each.
    static SHIPPED: std::sync::OnceLock<ingest::ReadOptions> = std::sync::OnceLock::new();
    SHIPPED.get_or_init(|| read_options_for(Declarations::shipped())).clone()
}

/// As [`read_options`], for the declarations of a user ([`rules_files`]). Check with the same declarations in
/// [`check::Options`].
pub fn read_options_for(declarations: &Declarations) -> ingest::ReadOptions {
    ingest::ReadOptions { fields: declarations.fields(), ..Default::default() }
}

/// A rules file that cannot be read, or all mistakes in it with their places.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct RulesFileError {
    text: String,
    is_unreadable: bool,
}

impl RulesFileError {
    /// Whether the file could not be read. Otherwise its declarations have mistakes.
    pub fn is_unreadable(&self) -> bool {
        self.is_unreadable
    }
}

/// The shipped packs with these rules files (`docs/rules-file.md`). A later file overrides an earlier one. Pass the result to
/// [`check::Options`] and to [`read_options_for`].
///
/// # Errors
/// If a file cannot be read or has mistakes, with all of them.
pub fn rules_files<P: AsRef<Path>>(paths: &[P]) -> Result<Arc<Declarations>, RulesFileError> {
    let mut all = Declarations::shipped().clone();
    for path in paths {
        let name = path.as_ref().display().to_string();
        let unread = |why: &dyn Display| RulesFileError {
            text: format!("cannot read the rules file {name}: {why}"),
            is_unreadable: true,
        };
        let mut text = String::new();
        let file = File::open(path).map_err(|error| unread(&error))?;
        file.take(LONGEST_RULES_FILE + 1).read_to_string(&mut text).map_err(|error| unread(&error))?;
        if text.len() as u64 > LONGEST_RULES_FILE {
            return Err(unread(&format!("expected at most {LONGEST_RULES_FILE} bytes, found more")));
        }
        let rules_error = |mistakes: Vec<Mistake>| RulesFileError {
            text: mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n"),
            is_unreadable: false,
        };
        let own = Declarations::read_after(&name, &text, &all).map_err(rules_error)?;
        all.add(own);
    }
    Ok(Arc::new(all))
}

/// Derives the order of a history, checks every rule, and computes what would have prevented each finding.
pub fn judge(history: &history::History, options: &Options) -> check::Judgement {
    let order = order::Order::derive(history, &options.order);
    let mut judgement = check::judge(history, &order, &options.check);
    counterfactual::prevent(history, &order, &options.check, &mut judgement);
    judgement
}

/// Pages whose Rust examples are tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../docs/linearizability.md")]
    struct Linearizability;

    #[doc = include_str!("../docs/guide-ci.md")]
    struct GuideCi;
}
