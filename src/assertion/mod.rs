//! The interface for test suites: record what clients do, then assert that it is consistent.
//!
//! ```
//! use retrograde::model::{Register, register};
//! use retrograde::{Recorder, assert_linearizable};
//!
//! let recorder = Recorder::new();
//! let call = recorder.client("a").invoke(register::Operation::Write(7));
//! call.ok(register::Answer::Done);
//! let call = recorder.client("b").invoke(register::Operation::Read);
//! call.ok(register::Answer::Value(Some(7)));
//! assert_linearizable!(Register::default(), recorder);
//! ```
//!
//! Input: a recording, a history of calls, or a history of evidence. Output: nothing, or a panic with the human report.
//! Invariant: every decision is made by `check` and `search`. `docs/guide-ci.md` has a complete example.

mod capture;
mod claim;
mod claim_error;
mod journal;
pub(crate) mod lines;
mod outline;
mod recorder;

pub use capture::{Capture, Exchange, Subject};
pub use claim::{Claim, Evidence, Undecided};
pub use claim_error::ClaimError;
pub use journal::{JournalError, replay};
pub use recorder::{Client, Pending, Recorder, Recording};

/// Panics with the human report if a history of evidence is not consistent.
///
/// The second argument, a [`Claim`], sets what is allowed. By default every violation fails, and so does an unknown verdict.
///
/// ```
/// use retrograde::{assert_consistent, assertion::Claim, history::sketch::sketch};
///
/// let history = sketch("
/// etcd     +a:u1@10  ~a@12  -a@15
/// ctrl@A   |-LIST => 15 {}-|
/// ctrl@B                      |-GET a => !404-|
/// ").expect("a sketch");
/// assert_consistent!(history, Claim::default().only(["monotonic-reads"]));
/// ```
#[macro_export]
macro_rules! assert_consistent {
    ($history:expr $(,)?) => {
        $crate::assert_consistent!($history, $crate::assertion::Claim::default())
    };
    ($history:expr, $claim:expr $(,)?) => {
        if let Err(report) = $claim.consistent(&$history) {
            panic!("{report}");
        }
    };
}

/// Panics with the human report if no order of the calls explains their answers.
///
/// Takes a [`crate::model::Spec`] and a [`Recorder`] or [`crate::search::History`]. A third argument, a [`Claim`], sets the
/// search time and the meaning of an undecided history.
#[macro_export]
macro_rules! assert_linearizable {
    ($spec:expr, $history:expr $(,)?) => {
        $crate::assert_linearizable!($spec, $history, $crate::assertion::Claim::default())
    };
    ($spec:expr, $history:expr, $claim:expr $(,)?) => {
        if let Err(report) = $claim.linearizable(&$spec, &$history) {
            panic!("{report}");
        }
    };
}
