//! Findings in words: short names, times, counts, and the rows of a certificate. Input: a [`crate::check::Judgement`] and its
//! history. Output: texts for [`crate::report`]. Invariant: no verdict changes, and no character of the evidence passes that a
//! terminal would act upon.

pub(crate) mod before;
pub mod facts;
pub(crate) mod markup;
pub(crate) mod names;
pub(crate) mod terminal_text;
pub(crate) mod words;
