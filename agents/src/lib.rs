//! The agent of a benchmark machine. What it exchanges with the server is in the crate `brewbench-wire`.
//!
//! - [`connection`]: the connection to the server: session, link, daemon, spool, uploader, key.
//! - [`run`]: executes one run, alone or together with other agents.
//! - [`target`]: manifests; starts a target, checks its readiness, describes its exit.
//! - [`engine`]: load generators. Everything specific to k6 is in [`engine::k6`].
//! - [`generators`]: load generators in a Kubernetes cluster.
//! - [`sandbox`]: machine sizes by control groups, CPU assignment, processes, and the cage for k6 and targets.
//! - [`series`]: per-second data of a run.
//! - `counters`: context switches, page faults and hardware events of a target.
//! - [`profile`]: profiles of a target: profilers, and the pprof format.
//! - [`host`]: this machine: environment, CPU tuning, idle wait, procfs, cleanup.
//! - [`doctor`]: checks whether this machine is fit for an agent.

mod build;
pub mod connection;
mod counters;
pub mod doctor;
pub mod engine;
pub mod generators;
pub mod host;
#[cfg(not(feature = "kubernetes"))]
mod no_kubernetes;
pub mod profile;
pub mod run;
pub mod sandbox;
pub mod series;
pub mod target;
