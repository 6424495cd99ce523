//! What the readers of all kinds of declarations share: names, paths, resources, and where a mistake stands.

use super::mistake::Mistake;
use crate::ingest::fields::{Path, ResourceName};
use rustc_hash::FxHashSet;
use std::ops::Range;
use toml::Spanned;

/// One file being read.
pub(super) struct Reader<'t> {
    file: &'t str,
    text: &'t str,
    names: FxHashSet<(&'static str, String)>,
    /// Mistakes so far.
    pub mistakes: Vec<Mistake>,
}

impl<'t> Reader<'t> {
    pub fn new(file: &'t str, text: &'t str) -> Reader<'t> {
        Reader { file, text, names: FxHashSet::default(), mistakes: Vec::new() }
    }

    /// The file.
    pub fn file(&self) -> &str {
        self.file
    }

    /// Notes a mistake.
    pub fn mistake(&mut self, span: Range<usize>, message: &str) {
        self.mistakes.push(Mistake::new(self.file, self.text, span, message));
    }

    /// Notes a mistake that begins at a byte of a value, where the value stands in the file as it is.
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

    /// The name of a declaration: it is part of slugs and reports.
    pub fn name(&mut self, kind: &'static str, name: &Spanned<String>) -> Option<String> {
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

    /// A path.
    pub fn path(&mut self, written: &Spanned<String>) -> Option<Path> {
        match Path::parse(written.get_ref()) {
            Ok(path) => Some(path),
            Err(error) => {
                self.mistake_in(written, error.at, 1, &error.to_string());
                None
            }
        }
    }

    /// A path where one is written; `None` inside where none is, outside where it is wrong.
    pub fn optional_path(&mut self, written: Option<&Spanned<String>>) -> Option<Option<Path>> {
        match written {
            None => Some(None),
            Some(written) => self.path(written).map(Some),
        }
    }

    /// The name of a resource.
    pub fn resource(&mut self, written: &Spanned<String>) -> Option<ResourceName> {
        match ResourceName::parse(written.get_ref()) {
            Ok(name) => Some(name),
            Err(expected) => {
                self.mistake(written.span(), expected);
                None
            }
        }
    }
}
