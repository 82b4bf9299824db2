//! The program from its arguments to its exit code.
//!
//! It is not in `main.rs`, where all of it would be compiled a second time: a future is compiled where it is polled.

use std::process::ExitCode;

use anyhow::Context;
use brewbench::app::{logs, memory};
use tokio::runtime::Runtime;

use crate::{Cli, gate};

/// The only argument with which an agent starts this program as its native load generator. It is no command of people.
pub const GENERATE: &str = "generate";

/// Runs the command of the arguments and returns its exit code.
pub fn main() -> ExitCode {
    // It handles signals itself, before any thread exists.
    if std::env::args_os().skip(1).eq([GENERATE]) {
        return brewbench_load::program::main();
    }
    memory::return_at_once();
    let cli = match Cli::parse_arguments() {
        Ok(cli) => cli,
        Err(error) => return report(&error),
    };
    logs::begin(cli.log(), cli.log_level());
    match run(cli) {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("brewbench: {fault:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    Runtime::new().context("cannot start the async runtime")?.block_on(cli.run())
}

/// Prints a usage error, help or the version; only the first is a failure.
fn report(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    ExitCode::from(if error.use_stderr() { gate::usage_code(std::env::args(), code) } else { code })
}
