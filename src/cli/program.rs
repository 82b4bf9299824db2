//! The program from its arguments to its exit code.
//!
//! It is here and not in `main.rs`, where all of it would be compiled a second time: a future is compiled where it is polled.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use tokio::runtime::Runtime;

use crate::{
    app::{logs, memory},
    cli::{Cli, gate},
};

/// Does what the arguments ask for.
pub fn main() -> ExitCode {
    memory::return_at_once();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(asked) => return answered(&asked),
    };
    logs::begin(cli.log());
    match run(cli) {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("brewbench: {fault:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    Runtime::new().context("starting the async runtime")?.block_on(cli.run())
}

/// Help and versions are no faults.
fn answered(asked: &clap::Error) -> ExitCode {
    let _ = asked.print();
    let code = u8::try_from(asked.exit_code()).unwrap_or(2);
    ExitCode::from(if asked.use_stderr() { gate::usage_code(std::env::args(), code) } else { code })
}
