//! Growth of processor time and peak memory with the evidence: every shape of `tests/growth` at three sizes, each
//! twice the one before, with every command on one thread. Exits with code 1 if a bound is broken.
//!
//! ```text
//! cargo bench --bench growth -- [NAME...] [--commands=check,show] [--megabytes=20]
//! ```
//!
//! A name selects the shapes that contain it; `--megabytes` is the largest size. `RETROGRADE_BIN` names another
//! program to measure. GNU `time` reports the usage of a process.

mod measure {
    /// Whether this run only shows that the bench works (`cargo test --benches`).
    pub fn is_trial() -> bool {
        !std::env::args().any(|arg| arg == "--bench")
    }
}
#[path = "../tests/growth/shape/mod.rs"]
mod shape;

use shape::{Shape, shapes};
use std::fmt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Highest growth of time and memory when the evidence doubles.
const GROWTH: f64 = 2.5;
/// Limits for 20 MB: seconds of processor time, and MB.
const SECONDS: f64 = 20.0;
const MEGABYTES: f64 = 2_000.0;
/// Below these a measurement depends more on the machine than on the shape.
const SHORT: f64 = 0.3;
const SMALL: f64 = 50.0;
/// Measurements of a cell whose first one breaks a bound. Their medians decide, since other work on the machine doubles the
/// time of a short run.
const REPETITIONS: usize = 15;
/// Limit of processor seconds at which a process is killed.
const LIMIT: u32 = 120;

const COMMANDS: [&str; 6] = ["check", "show", "explain", "pack", "verify", "html"];

/// Usage of one run.
#[derive(Clone, Copy)]
struct Usage {
    seconds: f64,
    megabytes: f64,
}

/// Measurements of one command over one shape, each with its runs by size. Fewer runs if the last one failed.
struct Runs {
    repetitions: Vec<Vec<Usage>>,
    broken: bool,
}

impl Runs {
    fn median(&self, of: impl Fn(&[Usage]) -> f64) -> f64 {
        let mut values: Vec<f64> = self.repetitions.iter().map(|usages| of(usages)).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    }

    /// The highest growth of one step, of the steps that end above `least`.
    fn growth(&self, of: impl Fn(&Usage) -> f64, least: f64) -> f64 {
        let steps = self.repetitions.first().map_or(0, |usages| usages.len().saturating_sub(1));
        let counts = |step: &usize| self.median(|usages| of(&usages[step + 1])) > least;
        let growth = |step: usize| self.median(|usages| of(&usages[step + 1]) / of(&usages[step]));
        (0..steps).filter(counts).map(growth).fold(0.0, f64::max)
    }

    /// The usage of the largest size.
    fn last(&self, of: impl Fn(&Usage) -> f64) -> f64 {
        self.median(|usages| usages.last().map_or(0.0, &of))
    }

    fn holds(&self) -> bool {
        let (seconds, megabytes) = (|usage: &Usage| usage.seconds, |usage: &Usage| usage.megabytes);
        !self.broken
            && self.last(seconds) <= SECONDS
            && self.last(megabytes) <= MEGABYTES
            && self.growth(seconds, SHORT) <= GROWTH
            && self.growth(megabytes, SMALL) <= GROWTH
    }
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.broken {
            return write!(f, "**ended**");
        }
        let growth = self.growth(|usage| usage.seconds, SHORT);
        let growth = if growth > 0.0 { format!(" ×{growth:.1}") } else { String::new() };
        let bold = if self.holds() { "" } else { "**" };
        let (seconds, megabytes) = (self.last(|usage| usage.seconds), self.last(|usage| usage.megabytes));
        write!(f, "{bold}{seconds:.1} s{growth}, {megabytes:.0} MB{bold}")
    }
}

/// The programs and folders of the measurement.
struct Bench<'a> {
    program: &'a str,
    folder: &'a Path,
    sizes: [u64; 3],
}

impl Bench<'_> {
    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Runs the program; `None` if it did not end with a verdict.
    fn run(&self, arguments: &[String]) -> Option<Usage> {
        let told = self.path("usage");
        let status = Command::new("sh")
            .args([
                "-c",
                &format!(r#"ulimit -t {LIMIT}; exec "$@""#),
                "sh",
                "time",
                "-q",
                "-f",
                "%U %S %M",
                "-o",
                &told,
                self.program,
            ])
            .args(arguments)
            .args(["--threads", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("there is a shell");
        let told = std::fs::read_to_string(told).expect("GNU time is on the PATH");
        let numbers: Vec<f64> = told.lines().last()?.split(' ').map_while(|number| number.parse().ok()).collect();
        let &[user, system, kilobytes] = numbers.as_slice() else { return None };
        matches!(status.code(), Some(0 | 1 | 3))
            .then_some(Usage { seconds: user + system, megabytes: kilobytes / 1024.0 })
    }

    fn usage(&self, shape: &Shape, command: &str, evidence: &str) -> Option<Usage> {
        let (evidence, report) = (evidence.to_owned(), self.path("report.json"));
        let saved = [self.path("page.html"), self.path("packed.rgh")];
        let arguments = match command {
            "explain" => [command].into_iter().chain(shape.question()).map(str::to_owned).chain([evidence]).collect(),
            "pack" => vec![command.into(), "-o".into(), saved[1].clone(), evidence],
            "html" => vec!["check".into(), format!("--report=html={}", saved[0]), evidence],
            "verify" => {
                self.run(&["check".into(), format!("--json={report}"), evidence.clone()])?;
                vec![command.into(), report, evidence]
            }
            _ => vec![command.into(), evidence],
        };
        self.run(&arguments)
    }

    /// Runs all commands over one shape.
    fn runs(&self, shape: &Shape, commands: &[String]) -> Vec<Runs> {
        let folders = self.sizes.map(|size| self.path(&format!("{}-{size}", shape.name)));
        for (folder, size) in folders.iter().zip(self.sizes) {
            shape.draw(Path::new(folder), size);
        }
        let run = |command: &String| {
            let mut runs = Runs { repetitions: Vec::new(), broken: false };
            while runs.repetitions.is_empty() || (runs.repetitions.len() < REPETITIONS && !runs.broken) {
                let usages: Vec<Usage> =
                    folders.iter().map_while(|folder| self.usage(shape, command, folder)).collect();
                runs.broken |= usages.len() < folders.len();
                runs.repetitions.push(usages);
                if runs.repetitions.len() == 1 && runs.holds() {
                    break;
                }
            }
            runs
        };
        let runs = commands.iter().map(run).collect();
        for folder in folders {
            std::fs::remove_dir_all(folder).expect("what was written can be removed");
        }
        runs
    }
}

fn main() -> ExitCode {
    let trial = measure::is_trial();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().find_map(|argument| argument.strip_prefix(name));
    let commands: Vec<String> = match option("--commands=") {
        Some(commands) => commands.split(',').map(str::to_owned).collect(),
        None => COMMANDS.map(str::to_owned).to_vec(),
    };
    let largest: f64 =
        option("--megabytes=").map_or(if trial { 0.1 } else { 20.0 }, |size| size.parse().expect("a number of MB"));
    let names: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let chosen = |shape: &Shape| names.is_empty() || names.iter().any(|name| shape.name.contains(name.as_str()));
    let program = std::env::var("RETROGRADE_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_retrograde").to_owned());
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let largest = (largest * 1e6) as u64;
    let bench = Bench { program: &program, folder: folder.path(), sizes: [largest / 4, largest / 2, largest] };
    println!("| shape | {} |\n| --- {}|", commands.join(" | "), "| --- ".repeat(commands.len()));
    let mut broken = 0;
    let shapes = shapes().into_iter().filter(chosen);
    for shape in shapes.take(if trial { 2 } else { usize::MAX }) {
        let runs = bench.runs(&shape, &commands);
        broken += runs.iter().filter(|runs| !runs.holds()).count();
        println!("| {} | {} |", shape.name, runs.iter().map(Runs::to_string).collect::<Vec<_>>().join(" | "));
    }
    println!("\n{broken} bounds are broken");
    if broken > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
