//! Logging to standard error, as text or as one JSON object per line.

use std::{
    env,
    io::{IsTerminal, stderr},
};

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{Layer, filter::Targets, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt};

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Log {
    /// Text
    #[default]
    Text,
    /// One JSON object per line; `spans` names the request or run
    Json,
}

/// Starts logging from a level. `RUST_LOG` sets other levels, also per module: `info,sqlx=debug`.
pub fn begin(log: Log, level: LevelFilter) {
    // The protocol of assistants is logged message by message.
    let default = || Targets::new().with_default(level).with_target("rmcp", level.min(LevelFilter::WARN));
    let filter = env::var("RUST_LOG").ok().and_then(|text| text.parse().ok()).unwrap_or_else(default);
    let lines = fmt::layer().with_writer(stderr).with_target(false);
    let lines = match log {
        Log::Text => lines.with_ansi(stderr().is_terminal()).boxed(),
        Log::Json => lines.json().flatten_event(true).with_ansi(false).boxed(),
    };
    registry().with(filter).with(lines).init();
}
