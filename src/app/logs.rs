//! What the program says while it goes on, on standard error: for people, or a JSON object a line for programs.

use std::{
    env,
    io::{IsTerminal, stderr},
};

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{Layer, filter::Targets, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt};

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Log {
    /// For people
    #[default]
    Text,
    /// A JSON object a line; `spans` has the request or the run that it is about
    Json,
}

/// Logs from now on. `RUST_LOG` sets the level, also of one module: `info,sqlx=debug`.
pub fn begin(log: Log) {
    let usual = || Targets::new().with_default(LevelFilter::INFO).with_target("memory_serve", LevelFilter::WARN);
    let filter = env::var("RUST_LOG").ok().and_then(|text| text.parse().ok()).unwrap_or_else(usual);
    let lines = fmt::layer().with_writer(stderr).with_target(false);
    let lines = match log {
        Log::Text => lines.with_ansi(stderr().is_terminal()).boxed(),
        Log::Json => lines.json().flatten_event(true).with_ansi(false).boxed(),
    };
    registry().with(filter).with(lines).init();
}
