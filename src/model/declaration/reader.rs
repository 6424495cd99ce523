//! What the readers of all kinds of declarations share: names, paths, resources, and the place of a mistake. A reader notes every
//! mistake and continues, so that a user sees all of them at once.

use super::mistake::Mistake;
use super::unchecked::{Name, Unchecked, Words};
use crate::ingest::fields::{Path, ResourceName};
use crate::model::expression::{Expression, ResultType, Variables};
use rustc_hash::FxHashSet;
use std::ops::Range;
use toml::Spanned;

/// Bytes of a text for people, at most.
const WORDS: usize = 1_000;

/// Names that a wrong name is compared with, at most.
const MOST_NAMES: usize = 1_000;

/// Mistakes that are listed of one file, at most.
pub(super) const TOLD: usize = 100;

/// A file that is being read.
pub(super) struct Reader<'t> {
    file: &'t str,
    text: &'t str,
    /// The byte at which each line begins.
    lines: Vec<usize>,
    names: FxHashSet<(&'static str, String)>,
    /// Names of allocations that other allocations declare as their allocator's records.
    records: Vec<Spanned<String>>,
    /// The first mistakes, at most [`TOLD`].
    pub mistakes: Vec<Mistake>,
    /// How many more there are.
    untold: usize,
}

impl<'t> Reader<'t> {
    pub fn new(file: &'t str, text: &'t str) -> Reader<'t> {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let (names, records, mistakes) = (FxHashSet::default(), Vec::new(), Vec::new());
        Reader { file, text, lines, names, records, mistakes, untold: 0 }
    }

    /// The place of a value: `FILE:LINE`.
    pub fn place(&self, value: &Spanned<String>) -> String {
        format!("{}:{}", self.file, self.line(self.start(value)))
    }

    /// The line of a byte, from 1.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|&begins| begins <= at)
    }

    /// The byte at which a value begins, without its quotes and the line break after them.
    fn start(&self, value: &Spanned<String>) -> usize {
        let span = value.span();
        let inside = self.text.get(span.clone()).and_then(|written| written.find(value.get_ref().trim_start()));
        span.start + inside.unwrap_or(0)
    }

    /// Notes a mistake.
    pub fn mistake(&mut self, span: Range<usize>, message: &str) {
        if self.mistakes.len() == TOLD {
            self.untold += 1;
            return;
        }
        self.mistakes.push(Mistake::new(self.file, self.text, span, message));
    }

    /// The mistakes. The last one names the number of those that are not listed.
    pub fn mistakes(mut self) -> Vec<Mistake> {
        if let Some(last) = self.mistakes.last_mut().filter(|_| self.untold > 0) {
            last.message += &format!(" ({} more mistakes are not listed)", self.untold);
        }
        self.mistakes
    }

    /// Notes a mistake at a byte of a value, if the file has the value verbatim; else at the whole value.
    pub fn mistake_in(&mut self, value: &Spanned<String>, at: usize, length: usize, message: &str) {
        let span = value.span();
        let inside = self.text.get(span.clone()).and_then(|written| written.find(value.get_ref().as_str()));
        match inside {
            Some(inside) => {
                let start = span.start + inside + at;
                self.mistake(start..start + length, message);
            }
            None => self.mistake(span, message),
        }
    }

    /// The name of a declaration, which is part of slugs and reports.
    pub fn name(&mut self, kind: &'static str, name: &Unchecked<Name>) -> Option<String> {
        let text = name.get_ref();
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if text.is_empty() || !text.bytes().all(plain) || text.starts_with('-') || text.len() > 80 {
            self.mistake(name.span(), "a name of small letters, digits and hyphens is expected, such as one-owner");
            return None;
        }
        if !self.names.insert((kind, text.clone())) {
            self.mistake(name.span(), &format!("another {kind} of this file has the name {text}"));
            return None;
        }
        Some(text.clone())
    }

    /// The name of an allocation that the allocator itself keeps. It may be declared further down.
    pub fn record(&mut self, name: Unchecked<Name>) -> String {
        let name = name.into_text();
        self.records.push(name.clone());
        name.into_inner()
    }

    /// Checks that every such name is an allocation of this file or of an earlier one.
    pub fn check_records<'n>(&mut self, others: impl Iterator<Item = &'n str>) {
        let own = self.names.iter().filter(|(kind, _)| *kind == "allocation").map(|(_, name)| name.clone());
        let known: FxHashSet<String> = own.chain(others.map(str::to_owned)).collect();
        for name in std::mem::take(&mut self.records) {
            if known.contains(name.get_ref()) {
                continue;
            }
            // Comparing each name with all of many names takes long.
            let is_told = self.mistakes.len() < TOLD && known.len() <= MOST_NAMES;
            let near = nearest(name.get_ref(), known.iter().map(String::as_str).filter(|_| is_told));
            let near = near.map(|near| format!("; did you mean `{near}`?"));
            let short: String = name.get_ref().chars().take(80).collect();
            let message = format!("there is no allocation `{short}`, here or in a file before this one");
            self.mistake(name.span(), &(message + &near.unwrap_or_default()));
        }
    }

    /// A path.
    pub fn path(&mut self, written: &Unchecked<Path>) -> Option<Path> {
        match Path::parse(written.get_ref()) {
            Ok(path) => Some(path),
            Err(error) => {
                self.mistake_in(written, error.at, 1, &error.to_string());
                None
            }
        }
    }

    /// A path, if one is written: the inner `None` if not, the outer one if it is wrong.
    pub fn optional_path(&mut self, written: Option<&Unchecked<Path>>) -> Option<Option<Path>> {
        match written {
            None => Some(None),
            Some(written) => self.path(written).map(Some),
        }
    }

    /// A text for people.
    pub fn words(&mut self, written: Option<Unchecked<Words>>) -> Option<String> {
        let written = written?.into_text();
        if written.get_ref().len() > WORDS {
            self.mistake(written.span(), &format!("a text of {WORDS} bytes at most is expected"));
        }
        Some(written.into_inner())
    }

    /// An expression in CEL.
    pub fn expression(
        &mut self,
        written: &Unchecked<Expression>,
        variables: Variables,
        result_type: ResultType,
    ) -> Option<Expression> {
        match Expression::read(written.get_ref(), variables, result_type) {
            Ok(expression) => Some(expression),
            Err(flaws) => {
                for flaw in flaws {
                    self.mistake_in(written, flaw.at.start, flaw.at.len().max(1), &flaw.message);
                }
                None
            }
        }
    }

    /// The name of a resource.
    pub fn resource(&mut self, written: &Unchecked<ResourceName>) -> Option<ResourceName> {
        match ResourceName::parse(written.get_ref()) {
            Ok(name) => Some(name),
            Err(expected) => {
                self.mistake(written.span(), expected);
                None
            }
        }
    }
}

/// The name that was probably meant: the nearest, if few letters differ.
pub(in crate::model) fn nearest<'n>(written: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let most = (written.chars().count() / 3).clamp(1, 3);
    names.map(|name| (distance(written, name), name)).filter(|(far, _)| *far <= most).min().map(|(_, name)| name)
}

/// How many letters must be inserted, removed, changed or exchanged with a neighbour (the restricted distance of Damerau and
/// Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (rows[i][j] + usize::from(x != y)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
