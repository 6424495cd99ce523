//! The command line's arguments, as typed. The doc comments are the help texts, which snapshots pin.

use super::record_arguments::Record;
use super::value;
use crate::check::RULES;
use crate::ingest::{Format, SourceRule, Time};
use crate::isolation::Level;
use crate::model::Model;
use crate::report;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Checks recorded etcd and Kubernetes histories: does etcd's total order explain what each client saw?
#[derive(Debug, Parser)]
#[command(name = "retrograde", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Arguments {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// When to write colours; NO_COLOR is honoured.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN", display_order = 900)]
    pub color: Color,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check evidence; the human report goes to standard output.
    #[command(after_help = EXIT_CODES)]
    Check(Check),
    /// Explain what each rule proves, needs and cannot see.
    Rules(Rules),
    /// Show the contents of the evidence: inputs, domains, clients, coverage.
    Show(Show),
    /// Explain one request: was this read stale, and whose fault was it? Or the decisions of a client on old state.
    Explain(Explain),
    /// Read and join evidence into one small file, which every command accepts instead of the evidence.
    #[command(after_help = PACKED)]
    Pack(Pack),
    /// Record clients in any language, by a proxy between them and their server.
    Record(Record),
    /// Verify a saved report (of `check --json`) against the evidence, without the engine that made it.
    #[command(after_help = VERIFY_EXIT_CODES)]
    Verify(Verify),
    /// Explore every run that Kubernetes allows for a small protocol of clients: is this fix safe in all of them?
    #[command(after_help = EXPLORE_EXIT_CODES)]
    Explore(Explore),
    /// Serve check, show, explain and rules over a folder to an assistant, on standard input and output (Model Context
    /// Protocol).
    Mcp {
        /// The folder with the evidence. The assistant can name no file outside.
        folder: PathBuf,
    },
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
}

const EXIT_CODES: &str = "Exit codes: 0 holds, 1 violated, 3 unknown, 2 no report could be made.";

const PACKED: &str = "The file keeps --source, --format, --domain and --functions, so give them here. Give --rules here and to every check. Lines of \
                      the evidence are not copied; they are read again from their old path, or from beside the file. \
                      Exit codes: 0 packed, 2 not written, 3 nothing was recognised.";
const EXPLORE_EXIT_CODES: &str = "Exit codes: 0 every explored variant is safe in every run within the bounds, 1 a run breaks a property, 3 the exploration was \
     cut short, or no run shows the finding of --from, 2 the protocol has mistakes.";
const VERIFY_EXIT_CODES: &str =
    "Exit codes: 0 every claim is confirmed, 1 a claim is wrong, 3 a claim is not confirmed, 2 the file is no report.";

/// When to write colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The threshold of `--fail-on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Only violations.
    Violation,
    /// Suspects too.
    Suspect,
    /// Every finding.
    Hazard,
}

/// The evidence, and declarations about it.
#[derive(Debug, Default, Args)]
pub struct Evidence {
    /// Files and directories; `-` is standard input. Formats are detected; gzip and zstd are unpacked. Containers of `retrograde
    /// pack` are evidence too.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// What is declared about it.
    #[command(flatten)]
    pub declared: Declared,
    /// Number of threads; by default one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Memory limit, such as 4GiB; by default three quarters of the memory of the system or the control group. If more is needed,
    /// the verdict is unknown; a line that does not fit is a problem.
    #[arg(long, value_name = "SIZE", value_parser = value::memory)]
    pub memory: Option<u64>,
    /// Keep the evidence in parsed form, and reuse it while no file changes. The cache is $RETROGRADE_CACHE_DIR, or retrograde/
    /// in the system's cache folder; the last 32 entries are kept.
    #[arg(long)]
    pub cache: bool,
    /// List everything instead of the first items.
    #[arg(long, short)]
    pub verbose: bool,
}

/// Declarations about evidence.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct Declared {
    /// Declare the source of files: GLOB:server=NAME,client=NAME,clock=NAME,cluster=NAME (repeatable). GLOB is matched against
    /// the end of the path. Times of files with one clock compare freely. Each cluster is checked by itself.
    #[arg(long, value_name = "GLOB:KEY=NAME,...", value_parser = SourceRule::parse)]
    pub source: Vec<SourceRule>,
    /// Force the format of files (repeatable): audit, capture, watch, list, etcd-watch, edn, jepsen-log, operations,
    /// transactions.
    #[arg(long, value_name = "GLOB:NAME", value_parser = value::format)]
    pub format: Vec<(String, Format)>,
    /// Declare resources with a revision counter of their own (repeatable).
    #[arg(long, value_name = "GROUP/RESOURCE=NAME", value_parser = value::domain)]
    pub domain: Vec<(String, String, String)>,
    /// The model of operation logs, if neither the log nor its functions name it: register, cas-register, multi-register, kv,
    /// list-append, mutex, queue, unordered-queue, set, counter, pool.
    #[arg(long, value_name = "NAME", value_parser = models(), hide_possible_values = true)]
    pub model: Option<String>,
    /// Functions of operation logs that have other names than in the models (docs/linearizability.md): `write-set=add`.
    #[arg(long, value_name = "NAME=FUNCTION,...", value_delimiter = ',', value_parser = value::function)]
    pub functions: Vec<(String, String)>,
    /// A rules file: the meaning of your objects' fields, and conditions on them (repeatable; docs/rules-file.md).
    #[arg(long, value_name = "FILE")]
    pub rules: Vec<PathBuf>,
    /// Treat each user whose name contains PATTERN as one process, whatever the evidence says of restarts (repeatable).
    #[arg(long, value_name = "PATTERN")]
    pub same_process: Vec<String>,
    /// The largest difference between any two clocks.
    #[arg(long, value_name = "DURATION", value_parser = value::duration)]
    pub clock_skew: Option<Duration>,
}

/// `retrograde check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The evidence.
    #[command(flatten)]
    pub evidence: Evidence,
    /// Write JSON to standard output instead of the human report, or to FILE beside it.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write a report of a kind (human, json, html, markdown, junit, sarif, dot, perfetto) to a file, `-` for standard output
    /// (repeatable).
    #[arg(long, value_name = "KIND=FILE", value_parser = value::report)]
    pub report: Vec<(report::Format, PathBuf)>,
    /// Check only these rules; `retrograde rules` lists them.
    #[arg(long, alias = "rule", value_name = "RULE", value_delimiter = ',', value_parser = slugs(), hide_possible_values = true)]
    pub only: Vec<String>,
    /// Do not check these rules.
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = slugs(), hide_possible_values = true)]
    pub skip: Vec<String>,
    /// The least grave kind of finding that makes the exit code 1.
    #[arg(long, value_enum, default_value_t = FailOn::Violation, value_name = "KIND")]
    pub fail_on: FailOn,
    /// Presume that every client has seen the end of an object this long after it. A later report on the object is then a ghost
    /// actor, whether or not the evidence shows that the client saw the end.
    #[arg(long, value_name = "DURATION", value_parser = value::duration)]
    pub grace: Option<Duration>,
    /// The isolation level that the transactions of an operation log are to have, such as snapshot-isolation; without it,
    /// strict-serializable (docs/isolation.md).
    #[arg(long, value_name = "LEVEL", value_parser = value::level)]
    pub level: Option<Level>,
    /// A report (JSON) with known findings, so that only others fail. Findings of one rule, client and object count as one.
    #[arg(long, value_name = "REPORT.json")]
    pub baseline: Option<PathBuf>,
    /// Only findings of clients whose user name contains CLIENT. All evidence still counts for the order of writes.
    #[arg(long, value_name = "CLIENT")]
    pub client: Option<String>,
    /// Only findings about objects in this namespace.
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Only findings that end at this time or later (RFC 3339).
    #[arg(long, value_name = "TIME", value_parser = value::time)]
    pub since: Option<Time>,
    /// Only findings that begin at this time or earlier.
    #[arg(long, value_name = "TIME", value_parser = value::time)]
    pub until: Option<Time>,
    /// Write no human report; the exit code gives the verdict.
    #[arg(long, short)]
    pub quiet: bool,
    /// Write to standard error how long reading, judging and writing took.
    #[arg(long)]
    pub timings: bool,
    /// Keep in the JSON also the order that explains an operation log which holds, for `retrograde verify`.
    #[arg(long)]
    pub proofs: bool,
    /// Stop after this time, such as 60s, and report what is known; undecided rules are unknown. Ctrl-C does the same.
    #[arg(long, value_name = "DURATION", value_parser = value::duration)]
    pub time_budget: Option<Duration>,
}

/// `retrograde verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// The report.
    #[arg(value_name = "REPORT.json")]
    pub report: PathBuf,
    /// The evidence.
    #[command(flatten)]
    pub evidence: Evidence,
}

/// `retrograde rules`.
#[derive(Debug, Args)]
pub struct Rules {
    /// The rule to explain.
    #[arg(value_parser = slugs(), hide_possible_values = true)]
    pub rule: Option<String>,
}

/// `retrograde show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The evidence.
    #[command(flatten)]
    pub evidence: Evidence,
    /// Show every version and every record of one key, such as 'pods default/web-0' or web-0.
    #[arg(long, value_name = "KEY", conflicts_with = "around")]
    pub key: Option<String>,
    /// Show the records nearest to a revision.
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    pub around: Option<crate::history::Revision>,
    /// Show which rows of the contract of reads the evidence exercises, and which of them a server broke.
    #[arg(long, conflicts_with_all = ["key", "around"])]
    pub contract: bool,
}

/// `retrograde explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The evidence.
    #[command(flatten)]
    pub evidence: Evidence,
    /// The request with this audit id.
    #[arg(long, value_name = "ID")]
    pub audit_id: Option<String>,
    /// Requests of clients whose user name or incarnation contains this; without --key, their decisions on old state.
    #[arg(long, value_name = "CLIENT", required_unless_present = "audit_id")]
    pub client: Option<String>,
    /// Requests for a key or with it in the answer, such as 'pods default/web-0' or web-0.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

/// `retrograde explore`.
#[derive(Debug, Args)]
pub struct Explore {
    /// A shipped protocol, or a file with one (docs/explorer.md). Without it, the shipped protocols are listed. With --from: the
    /// JSON report.
    #[arg(value_name = "PROTOCOL|REPORT")]
    pub protocol: Option<String>,
    /// Take the protocol from this finding of a report: its id or the begin of it, or its rule. Then the arguments are the JSON
    /// report and its evidence.
    #[arg(long, value_name = "FINDING", requires = "evidence")]
    pub from: Option<String>,
    /// With --from: the evidence of the report.
    #[arg(value_name = "EVIDENCE", requires = "from")]
    pub evidence: Vec<PathBuf>,
    /// Only the protocol with this fix. `none` is the protocol without any. By default it is explored without and with each.
    #[arg(long, value_name = "FIX")]
    pub fix: Option<String>,
    /// List the boundaries of the contract: the smallest runs in which a server may answer one form of a read as it may never
    /// answer another one. For tests of API servers and caches; --json gives them for programs.
    #[arg(long, conflicts_with_all = ["protocol", "fix", "output", "minimise"])]
    pub boundaries: bool,
    /// Print the text of the protocol, as a begin for one of your own.
    #[arg(long, requires = "protocol")]
    pub print: bool,
    /// Write the shortest counterexample as evidence into this new folder: audit logs, captures, rules, and the sketch.
    #[arg(long, short, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Find the fewest servers, writes and faults of a counterexample.
    #[arg(long)]
    pub minimise: bool,
    /// API servers, instead of those of the protocol.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub servers: Option<u8>,
    /// Writes that etcd commits.
    #[arg(long, value_name = "N")]
    pub writes: Option<u8>,
    /// Crashes of clients.
    #[arg(long, value_name = "N")]
    pub crashes: Option<u8>,
    /// Streams that break.
    #[arg(long, value_name = "N")]
    pub breaks: Option<u8>,
    /// Versions that are answered with 410.
    #[arg(long, value_name = "N")]
    pub expirations: Option<u8>,
    /// Writes without an answer.
    #[arg(long, value_name = "N")]
    pub timeouts: Option<u8>,
    /// Steps of a run.
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub steps: u32,
    /// States of each variant; each takes about 60 bytes of memory.
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    pub states: usize,
    /// Time for each variant.
    #[arg(long, value_name = "DURATION", value_parser = value::duration, default_value = "10m")]
    pub time_budget: Duration,
    /// Number of threads; by default one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Write JSON to standard output instead of the table, or to FILE beside it.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// List each request of a run.
    #[arg(long, short)]
    pub verbose: bool,
    /// With --from: the declarations with which the report was made.
    #[command(flatten, next_help_heading = "Declarations about the evidence, with --from")]
    pub declared: Declared,
}

/// `retrograde pack`.
#[derive(Debug, Args)]
pub struct Pack {
    /// The evidence.
    #[command(flatten)]
    pub evidence: Evidence,
    /// The file to write; its name ends with .rgh by convention.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
}

/// The slugs of all rules. Clap refuses other values and suggests the nearest one.
fn slugs() -> PossibleValuesParser {
    PossibleValuesParser::new(RULES.iter().map(|rule| rule.slug))
}

/// The names of all models.
fn models() -> PossibleValuesParser {
    PossibleValuesParser::new(Model::ALL.map(Model::name))
}

fn revision(text: &str) -> Result<crate::history::Revision, String> {
    crate::history::Revision::parameter(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn check(arguments: &[&str]) -> Result<Check, clap::Error> {
        let arguments = Arguments::try_parse_from(["retrograde", "check"].iter().chain(arguments))?;
        match arguments.command {
            Command::Check(check) => Ok(check),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn json_without_equals_never_takes_the_path_that_follows() {
        let typed = check(&["--json", "evidence"]).unwrap();
        assert_eq!(typed.json, Some(PathBuf::from("-")));
        assert_eq!(typed.evidence.paths, [PathBuf::from("evidence")]);
        let typed = check(&["--json=report.json", "evidence"]).unwrap();
        assert_eq!(typed.json, Some(PathBuf::from("report.json")));
        let typed = check(&["evidence", "--json"]).unwrap();
        assert_eq!((typed.json, typed.evidence.paths.len()), (Some(PathBuf::from("-")), 1));
        assert!(check(&["--json"]).is_err(), "a path is required");
    }

    #[test]
    fn an_unknown_rule_is_refused_with_the_nearest_name() {
        let slug = RULES[0].slug;
        let error = check(&["--only", &format!("{slug}x"), "evidence"]).unwrap_err().to_string();
        assert!(error.contains(&format!("'{slug}'")) && error.contains("similar"), "{error}");
        let typed = check(&["--skip", slug, "--only", &format!("{slug},{slug}"), "evidence"]).unwrap();
        assert_eq!((typed.skip.len(), typed.only.len()), (1, 2));
    }

    #[test]
    fn an_unknown_kind_of_report_is_refused_with_the_kinds() {
        let error = check(&["--report", "pdf=x", "evidence"]).unwrap_err();
        assert!(error.to_string().contains("human, json, html"), "{error}");
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn the_words_of_fail_on_are_those_of_the_reports() {
        assert_eq!(check(&["x"]).unwrap().fail_on, FailOn::Violation);
        assert_eq!(check(&["--fail-on", "hazard", "x"]).unwrap().fail_on, FailOn::Hazard);
        assert!(check(&["--fail-on", "anything", "x"]).is_err());
    }

    #[test]
    fn standard_input_is_a_path() {
        assert_eq!(check(&["-", "--threads", "2"]).unwrap().evidence.paths, [PathBuf::from("-")]);
        assert!(check(&["-", "--threads", "0"]).is_err());
    }
}
