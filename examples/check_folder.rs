//! Checks a folder of evidence and prints the verdict, the facts of each finding, and what was not checked.
//!
//! ```console
//! $ cargo run --example check_folder -- PATH
//! ```
//!
//! Without PATH it checks an incident of this repository: a kubelet lists from a lagging API server after its restart.

use retrograde::history::{self, Domains};
use retrograde::report::Part;
use retrograde::{Options, ingest};
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The incident that is checked without an argument.
pub const INCIDENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/histories/incidents/kubelet-restart/buggy");

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(|| PathBuf::from(INCIDENT), PathBuf::from);
    print!("{}", checked(&folder)?);
    Ok(())
}

/// The verdict and the findings for a folder, as text. A folder without evidence is no error: its verdict is unknown.
pub fn checked(folder: &Path) -> Result<String, Box<dyn Error>> {
    let inputs = ingest::inputs(&[folder.to_owned()], &[], &[])?;
    let mut text = String::new();
    // A folder can hold several histories: one of a cluster, and one for each operation log or report of etcd.
    for history in history::load_each(inputs, &retrograde::read_options(), &Domains::default(), &()) {
        let judgement = retrograde::judge(&history, &Options::default());
        writeln!(text, "{}: {}", Part::of(&history, &judgement).name, judgement.verdict.word())?;
        if !judgement.verdict.reason().is_empty() {
            writeln!(text, "  because {}", judgement.verdict.reason())?;
        }
        for finding in &judgement.findings {
            writeln!(text, "\n{:?} of {}: {}", finding.kind, finding.rule, finding.summary)?;
            for fact in &finding.certificate.facts {
                writeln!(text, "  {}\n    at {}", fact.says, fact.place(&history))?;
            }
            writeln!(text, "  because {}", finding.certificate.reason)?;
        }
        for problem in history.problems.iter().chain(&judgement.problems) {
            let (path, line) = (&problem.path, problem.line);
            writeln!(text, "\nnot read: {path}:{line}: expected {}, found {}", problem.expected, problem.found)?;
        }
        for sentence in &judgement.unchecked {
            writeln!(text, "\nnot checked: {sentence}")?;
        }
    }
    Ok(text)
}
