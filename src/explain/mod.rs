//! Findings in words: names that fit a line, times, counts, and the rows of a certificate.
//!
//! Input: a [`crate::check::Judgement`] and the history that it is about. Output: texts for [`crate::report`]. Invariant:
//! changes no verdict, and hands on no character of the evidence that a terminal would act upon.

pub(crate) mod before;
pub mod facts;
pub(crate) mod markup;
pub(crate) mod names;
pub(crate) mod terminal_text;
pub(crate) mod words;
