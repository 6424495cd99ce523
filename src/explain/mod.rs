//! Findings in words: short names, times, counts, and the rows of a certificate. Input: a [`crate::check::Judgement`] and its
//! history. Output: texts for [`crate::report`]. Invariant: no verdict changes, and no character of the evidence passes that a
//! terminal would act upon.

pub mod before;
pub mod facts;
pub mod markup;
pub mod names;
pub mod terminal_text;
pub mod words;
