//! Findings in words: names that fit a line, times, counts, and the rows of a certificate.
//!
//! Input: a [`crate::check::Judgement`] and the history that it is about. Output: texts for [`crate::report`]. Invariant:
//! changes no verdict, and hands on no character of the evidence that a terminal would act upon.

pub mod before;
pub mod facts;
pub mod markup;
pub mod names;
pub mod terminal_text;
pub mod words;
