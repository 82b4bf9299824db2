//! The program: server, agent and commands in one binary.

use std::process::ExitCode;

use brewbench::{
    app::logs,
    cli::{Cli, gate},
};
use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => return told_by(&told),
    };
    logs::begin(cli.log());
    match cli.run().await {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("brewbench: {fault:#}");
            ExitCode::FAILURE
        }
    }
}

/// Help and versions are no faults.
fn told_by(told: &clap::Error) -> ExitCode {
    let _ = told.print();
    let code = u8::try_from(told.exit_code()).unwrap_or(2);
    ExitCode::from(if told.use_stderr() { gate::usage_code(std::env::args(), code) } else { code })
}
