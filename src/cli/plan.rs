//! Turns arguments into a plan: finds inputs and outputs, and refuses contradictions before any work begins.

use super::args::{Check, Color, Evidence, Explain, FailOn, Show, Verify};
use super::baseline::Baseline;
use super::halting::{self, Limits};
use super::output::{Destination, Id, id_of, is_stdout};
use crate::check::{self, Focus, Kind};
use crate::history::Domains;
use crate::ingest::{self, InputFile, ReadOptions};
use crate::model::declaration::Declarations;
use crate::order::OrderOptions;
use crate::report::evidence::Question;
use crate::report::page::Look;
use crate::report::reading::Wanted;
use crate::report::{Format, Report};
use anyhow::bail;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Revisions that `--around` shows on each side.
const MARGIN: usize = 5;

/// The reason to keep an input.
const AN_INPUT: &str = "one of the inputs";

/// The evidence to read, with all options of reading.
#[derive(Debug)]
pub struct Input {
    /// The files.
    pub files: Vec<InputFile>,
    /// Options of reading.
    pub read: ReadOptions,
    /// Declared domains.
    pub domains: Domains,
    /// Declared clocks and processes.
    pub order: OrderOptions,
    /// Declarations of fields and conditions: the shipped packs and the user's rules files.
    pub declarations: Arc<Declarations>,
    /// Number of threads, if given.
    pub threads: Option<usize>,
    /// The model of operation logs, if given.
    pub model: Option<String>,
    /// Whether to use the cache.
    pub cache: bool,
    /// The rules files.
    pub rules: Vec<PathBuf>,
    /// The limits of the run.
    pub limits: Limits,
}

/// A check that is ready to run.
#[derive(Debug)]
pub struct Plan {
    /// The evidence.
    pub input: Input,
    /// The rules to check.
    pub rules: check::Options,
    /// The least grave kind of finding that fails.
    pub fail_on: Kind,
    /// Known findings.
    pub baseline: Option<Baseline>,
    /// The requested findings.
    pub focus: Focus,
    /// Whether to write the duration of each step.
    pub timings: bool,
    /// The reports to write.
    pub outputs: Vec<Output>,
}

/// A `show` that is ready to run.
#[derive(Debug)]
pub struct Showing {
    /// The evidence.
    pub input: Input,
    /// The question; `None` for the overview.
    pub question: Option<Question>,
    /// Whether to show the rows of the contract instead.
    pub contract: bool,
    /// The look of the answer.
    pub look: Look,
}

/// One report and its target.
#[derive(Debug)]
pub struct Output {
    format: Format,
    look: Look,
    to: Destination,
}

impl Output {
    /// Writes the report to its target.
    pub fn write(self, report: &Report<'_>) -> anyhow::Result<()> {
        let sink = self.format.sink(self.look);
        self.to.write(|out| sink.write(report, out))
    }
}

/// The look of text on standard output.
pub fn look(color: Color, terminal: bool) -> Look {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let colour = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => terminal && !set("NO_COLOR") && !dumb,
    };
    Look { colour, ..Look::default() }
}

impl Plan {
    /// Makes the plan. On an error nothing was read or written.
    pub fn of(typed: Check, look: Look) -> anyhow::Result<Plan> {
        let look = Look { verbose: typed.evidence.verbose, ..look };
        let mut wanted = typed.report;
        if let Some(path) = typed.json {
            wanted.push((Format::Json, path));
        }
        if !typed.quiet && !wanted.iter().any(|(_, path)| is_stdout(path)) {
            wanted.insert(0, (Format::Human, PathBuf::from("-")));
        }
        if wanted.iter().filter(|(_, path)| is_stdout(path)).count() > 1 {
            bail!("two reports would go to standard output; give one of them a file");
        }
        let baseline = typed.baseline.as_deref().map(Baseline::read).transpose()?;
        // The time for finding the inputs counts too.
        let deadline = typed.time_budget.and_then(|budget| Instant::now().checked_add(budget));
        let mut input = Input::of(typed.evidence)?;
        input.limits.deadline = deadline;
        let declarations = input.declarations.clone();
        let outputs = outputs(wanted, look, &input, typed.baseline.as_deref())?;
        Ok(Plan {
            input,
            rules: check::Options {
                only: typed.only,
                skip: typed.skip,
                grace: typed.grace.map(nanoseconds),
                level: typed.level,
                declarations,
                proofs: typed.proofs,
                ..check::Options::default()
            },
            baseline,
            focus: Focus { client: typed.client, namespace: typed.namespace, since: typed.since, until: typed.until },
            timings: typed.timings,
            fail_on: match typed.fail_on {
                FailOn::Violation => Kind::Violation,
                FailOn::Suspect => Kind::Suspect,
                FailOn::Hazard => Kind::Hazard,
            },
            outputs,
        })
    }
}

/// An `explain` that is ready to run.
#[derive(Debug)]
pub struct Explaining {
    /// The evidence.
    pub input: Input,
    /// The requests to explain.
    pub wanted: Wanted,
    /// The look of the answer.
    pub look: Look,
}

impl Explaining {
    /// Makes the plan.
    pub fn of(typed: Explain, look: Look) -> anyhow::Result<Explaining> {
        let look = Look { verbose: typed.evidence.verbose, ..look };
        let wanted = Wanted { audit_id: typed.audit_id, client: typed.client, key: typed.key };
        Ok(Explaining { input: Input::of(typed.evidence)?, wanted, look })
    }
}

/// A `verify` that is ready to run.
#[derive(Debug)]
pub struct Verifying {
    /// The evidence.
    pub input: Input,
    /// The report.
    pub report: crate::verify::Report,
    /// The look of the answer.
    pub look: Look,
}

impl Verifying {
    /// Makes the plan.
    pub fn of(typed: Verify, look: Look) -> anyhow::Result<Verifying> {
        let look = Look { verbose: typed.evidence.verbose, ..look };
        let report = super::saved_report("the report", &typed.report)?;
        Ok(Verifying { input: Input::of(typed.evidence)?, report, look })
    }
}

impl Showing {
    /// Makes the plan.
    pub fn of(typed: Show, look: Look) -> anyhow::Result<Showing> {
        let look = Look { verbose: typed.evidence.verbose, ..look };
        let question = typed.key.map(Question::Key).or(typed.around.map(|r| Question::Around(r, MARGIN)));
        Ok(Showing { contract: typed.contract, input: Input::of(typed.evidence)?, question, look })
    }
}

impl Input {
    /// Finds the files and applies the declarations.
    pub fn of(typed: Evidence) -> anyhow::Result<Input> {
        if typed.paths.iter().filter(|path| is_stdout(path)).count() > 1 {
            bail!("standard input can be read only once");
        }
        let declared = typed.declared;
        let declarations = crate::rules_files(&declared.rules)?;
        let files = ingest::inputs(&typed.paths, &declared.source, &declared.format)?;
        refuse_to_change_what_is_packed(&files, !declared.domain.is_empty() || !declared.functions.is_empty())?;
        let threads = typed.threads.map(usize::from);
        let memory = typed.memory.unwrap_or_else(halting::default_memory);
        let clock_skew = declared.clock_skew.map(nanoseconds);
        Ok(Input {
            files,
            read: ReadOptions { functions: declared.functions.into(), ..read_options(threads, memory, &declarations) },
            declarations,
            domains: Domains { overrides: declared.domain },
            order: OrderOptions { clock_skew, same_process: declared.same_process },
            threads,
            model: declared.model,
            cache: typed.cache,
            rules: declared.rules,
            limits: Limits { deadline: None, memory },
        })
    }
}

impl Input {
    /// The reason why no output may replace this file, if it is read.
    pub fn needs(&self, file: &Id) -> Option<&'static str> {
        let is = |path: &PathBuf| id_of(path).is_some_and(|id| id == *file);
        if self.rules.iter().any(is) {
            return Some("one of the rules files");
        }
        // The files of an archive share one path.
        let is_next = |at: &usize| *at == 0 || self.files[*at].path != self.files[*at - 1].path;
        (0..self.files.len()).filter(is_next).any(|at| is(&self.files[at].path)).then_some(AN_INPUT)
    }
}

/// Refuses declarations for a container, whose evidence was read with those given to `pack`.
fn refuse_to_change_what_is_packed(files: &[InputFile], declared: bool) -> anyhow::Result<()> {
    let said = |file: &&InputFile| declared || !file.source.glob.is_empty() || file.format.is_some();
    let mut opener = ingest::Opener::default();
    match files.iter().filter(said).find(|file| opener.is_container(file)) {
        Some(file) => bail!(
            "{} is a container: give --source, --format, --domain and --functions to `retrograde pack`",
            file.shown
        ),
        None => Ok(()),
    }
}

/// Block and line lengths that keep reading below the memory limit. Each thread holds one block in work and one waiting, and a
/// block may grow by one line.
fn read_options(threads: Option<usize>, memory: u64, declarations: &Declarations) -> ReadOptions {
    let mut options = ReadOptions { threads: threads.unwrap_or(0), ..crate::read_options_for(declarations) };
    let threads = threads.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let share = usize::try_from(memory).unwrap_or(usize::MAX) / (4 * threads);
    options.block_bytes = options.block_bytes.min(share).max(64 << 10);
    options.max_line_bytes = options.max_line_bytes.min(share).max(64 << 10);
    options
}

fn nanoseconds(length: Duration) -> i64 {
    i64::try_from(length.as_nanos()).unwrap_or(i64::MAX)
}

/// The outputs of a check. None may be an input or another output.
fn outputs(
    wanted: Vec<(Format, PathBuf)>,
    look: Look,
    input: &Input,
    baseline: Option<&Path>,
) -> anyhow::Result<Vec<Output>> {
    let baseline = baseline.and_then(id_of);
    let mut outputs: Vec<Output> = Vec::new();
    for (format, path) in wanted {
        let kept = |file: &Id| match baseline.as_ref() == Some(file) {
            true => Some("the baseline"),
            // A report of an earlier run may lie among the evidence; it is overwritten.
            false => input.needs(file).filter(|why| *why != AN_INPUT || !is_report(&path)),
        };
        let to = Destination::of(&path, kept)?;
        if outputs.iter().any(|output| output.to.is(&to)) {
            bail!("two reports would go to {}", path.display());
        }
        let look = if to.is_stdout() { look } else { Look { colour: false, ..look } };
        outputs.push(Output { format, look, to });
    }
    Ok(outputs)
}

/// Whether a file is a report of an earlier run, which may be overwritten even among the evidence.
fn is_report(path: &Path) -> bool {
    let mut head = [0; 64];
    let read = File::open(path).and_then(|mut file| file.read(&mut head)).unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..read]);
    read == 0
        || head.trim_start_matches(['{', ' ', '\n']).starts_with("\"schema\": \"retrograde/report/")
        || ["VIOLATED  ", "HOLDS  ", "UNKNOWN  "].iter().any(|word| head.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::{Arguments, Command};
    use clap::Parser;

    fn plan(arguments: &[&str]) -> anyhow::Result<Plan> {
        let typed = Arguments::try_parse_from(["retrograde", "check"].iter().chain(arguments)).unwrap();
        match typed.command {
            Command::Check(check) => Plan::of(check, Look::default()),
            other => panic!("{other:?}"),
        }
    }

    fn formats(plan: &Plan) -> Vec<(Format, bool)> {
        plan.outputs.iter().map(|o| (o.format, o.to.is_stdout())).collect()
    }

    #[test]
    fn json_replaces_the_human_report_or_stands_beside_it() {
        let file = std::env::temp_dir().join(format!("retrograde-plan-{}.json", std::process::id()));
        assert_eq!(formats(&plan(&["-"]).unwrap()), [(Format::Human, true)]);
        assert_eq!(formats(&plan(&["--json", "-"]).unwrap()), [(Format::Json, true)]);
        let both = plan(&[&format!("--json={}", file.display()), "-"]).unwrap();
        assert_eq!(formats(&both), [(Format::Human, true), (Format::Json, false)]);
        assert!(!file.exists(), "a plan writes nothing");
    }

    #[test]
    fn what_cannot_work_is_refused_before_anything_is_read() {
        for (arguments, why) in [
            (&["/no/such/path"][..], "no such file"),
            (&["--json=/no/such/folder/x.json", "-"], "cannot write"),
            (&["--json", "--report", "human=-", "-"], "two reports"),
            (&["-", "-"], "only once"),
        ] {
            let error = format!("{:#}", plan(arguments).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn rules_files_add_to_the_packs_and_every_mistake_of_theirs_is_shown() {
        let file = std::env::temp_dir().join(format!("retrograde-rules-{}.toml", std::process::id()));
        let path = file.display().to_string();
        let rule = |resource: &str, expression: &str| {
            format!("[[invariant]]\nname = \"a\"\nresource = \"{resource}\"\nexpression = \"{expression}\"\n")
        };
        std::fs::write(&file, rule("widgets", "self.spec.n > 0")).unwrap();
        let made = plan(&["--rules", &path, "-"]).unwrap();
        assert_eq!(made.rules.declarations.invariants.len(), 1);
        assert!(made.rules.declarations.references.len() > 1);
        assert!(made.input.read.fields.cut("widgets", "").is_some_and(|cut| cut.member("spec").is_some()));
        std::fs::write(&file, rule("Widget", "slef.spec.n > 0")).unwrap();
        let error = format!("{:#}", plan(&["--rules", &path, "-"]).unwrap_err());
        assert!(error.contains(&format!("{path}:3:12: a resource is expected")), "{error}");
        assert!(error.contains(&format!("{path}:4:15: there is no `slef` here; did you mean self?")), "{error}");
        assert!(error.contains("\n4 | expression = \"slef.spec.n > 0\"\n  |               ^^^^"), "{error}");
        std::fs::remove_file(file).unwrap();
        assert!(format!("{:#}", plan(&["--rules", &path, "-"]).unwrap_err()).contains("cannot read the rules file"));
    }

    #[test]
    fn evidence_is_never_overwritten_and_an_old_report_is() {
        let file = std::env::temp_dir().join(format!("retrograde-evidence-{}.log", std::process::id()));
        let path = file.display().to_string();
        std::fs::write(&file, "{\"kind\":\"capture\",\"version\":1}\n").unwrap();
        let error = format!("{:#}", plan(&[&format!("--json={path}"), &path]).unwrap_err());
        assert!(error.contains("will not be overwritten"), "{error}");
        std::fs::write(&file, "{\n  \"schema\": \"retrograde/report/1\"").unwrap();
        assert!(plan(&[&format!("--json={path}"), &path]).is_ok());
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn memory_bounds_blocks_and_lines_but_never_to_nothing() {
        let shipped = Declarations::shipped();
        let options = read_options(Some(2), 64 << 20, shipped);
        assert_eq!((options.block_bytes, options.max_line_bytes), (8 << 20, 8 << 20));
        assert_eq!(read_options(Some(2), 1, shipped).block_bytes, 64 << 10);
        assert_eq!(read_options(Some(2), u64::MAX, shipped).max_line_bytes, ReadOptions::default().max_line_bytes);
    }
}
