//! The program: server, agent and commands in one binary.

use std::{
    io::{IsTerminal, stderr},
    process::ExitCode,
};

use brewbench::cli::Cli;
use clap::Parser;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,memory_serve=warn"));
    let fmt = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    fmt.with_ansi(stderr().is_terminal()).with_target(false).init();
    match Cli::parse().run().await {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("brewbench: {fault:#}");
            ExitCode::FAILURE
        }
    }
}
