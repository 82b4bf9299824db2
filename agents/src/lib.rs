//! The daemon on a benchmark machine, and everything that crosses the wire between it, the server and the commands.
//!
//! - [`wire`]: jobs, outcomes, messages, k6's summaries: plain data.
//! - [`scenarios`]: the bundled k6 scripts.

pub mod scenarios;
pub mod wire;
