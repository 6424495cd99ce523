//! The command line of `retrograde`.

use std::process::ExitCode;

fn main() -> ExitCode {
    retrograde::cli::main()
}
