//! The program: server, agent and commands in one binary.

use std::{
    io::{IsTerminal, stderr},
    process::ExitCode,
};

use brewbench::cli::{Cli, gate};
use clap::Parser;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,memory_serve=warn"));
    let fmt = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    fmt.with_ansi(stderr().is_terminal()).with_target(false).init();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => return told_by(&told),
    };
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
