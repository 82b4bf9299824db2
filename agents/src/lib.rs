//! The daemon on a benchmark machine, and everything that crosses the wire between it, the server and the commands.
//!
//! - [`wire`]: plain data that crosses the wire: jobs, outcomes, messages, series.
//! - [`reports`]: reads what load generators print.
//! - [`connection`]: the conversation with the server: session, link, daemon, spool, uploader, client.
//! - [`run`]: one run from its job to its outcome, and what several agents do together.
//! - [`target`]: manifests; starts a target, knows that it serves, says why it died.
//! - [`engine`]: load generators. Everything that knows k6's flags, ports and exit codes is in [`engine::k6`].
//! - [`sandbox`]: machine sizes by control groups, cores, processes, and the cage for k6 and targets.
//! - [`series`]: what happens during a run, second by second.
//! - [`host`]: this machine: environment, CPU tuning, idle wait, procfs, cleanup.
//! - [`doctor`]: whether this machine is fit for an agent, before there is one.
//! - [`scenarios`]: the k6 scripts that come with the program.
//! - [`sanitize`]: makes foreign text fit for sentences.

pub mod connection;
pub mod doctor;
pub mod engine;
pub mod host;
pub mod reports;
pub mod run;
pub mod sandbox;
pub mod sanitize;
pub mod scenarios;
pub mod series;
pub mod target;
pub mod wire;
