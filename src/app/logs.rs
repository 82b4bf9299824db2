//! What the program says while it goes on, on standard error: for people, or a JSON object a line for programs.

use std::io::{IsTerminal, stderr};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Log {
    /// For people
    #[default]
    Text,
    /// A JSON object a line; `spans` has the request or the run that it is about
    Json,
}

/// From now on everything is told. `RUST_LOG` says how much.
pub fn begin(log: Log) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,memory_serve=warn"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr).with_target(false);
    match log {
        Log::Text => lines.with_ansi(stderr().is_terminal()).init(),
        Log::Json => lines.json().flatten_event(true).with_ansi(false).init(),
    }
}
