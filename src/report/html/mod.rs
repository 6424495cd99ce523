//! One HTML page for offline use, with revisions over time, lanes of clients, and findings.

mod drawing;
mod excerpt;
mod picture;

use super::{Report, Sink};
use crate::explain::markup::{Json, json};
use std::io;

/// Writes the page. It contains its style, script and data, and loads nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Html;

const SHELL: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// Scripts in the order of their dependencies.
const SCRIPTS: [&str; 6] = [
    include_str!("model.js"),
    include_str!("view.js"),
    include_str!("chart.js"),
    include_str!("lanes.js"),
    include_str!("panel.js"),
    include_str!("main.js"),
];

impl Sink for Html {
    fn write(&self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let (head, rest) = SHELL.split_once("/*style*/").expect("the shell has a place for the style");
        let (body, rest) = rest.split_once("/*data*/").expect("the shell has a place for the data");
        let (before, after) = rest.split_once("/*script*/").expect("the shell has a place for the script");
        for part in [head, STYLE, body] {
            out.write_all(part.as_bytes())?;
        }
        json(&drawing::page(report), Json::Html, out)?;
        for part in [before, "\"use strict\";\n(() => {\n"] {
            out.write_all(part.as_bytes())?;
        }
        for script in SCRIPTS {
            out.write_all(script.as_bytes())?;
        }
        out.write_all(b"})();\n")?;
        out.write_all(after.as_bytes())
    }
}
