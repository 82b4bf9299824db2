//! The daemon on a benchmark machine, and everything that crosses the wire between it, the server and the commands.
//!
//! - [`wire`]: jobs, outcomes, messages, k6's summaries: plain data.

pub mod wire;
