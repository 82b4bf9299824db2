//! A dashboard that benchmarks HTTP servers: the server, its pages and its API. The commands are in the crate
//! `brewbench-cli`, which makes the program of it.
//!
//! The modules in dependency order; each uses only those before it. `docs/contributing/architecture.md` has the
//! details and the exceptions.
//!
//! - [`app`]: the process: configuration, database, listener, TLS, logs, errors, rate limits, shared state.
//! - [`web`]: what pages share: shell, assets, formatting, chart parts, security headers.
//! - [`metrics`]: the registry of metrics: key, unit, direction, role, SQL and value of each.
//! - [`auth`]: users, passkeys, sessions, tokens, roles, the audit log.
//! - [`docs`]: the documentation, embedded and searchable.
//! - [`catalog`]: targets, machine sizes, scenarios and their revisions.
//! - [`fleet`]: agents, and which of them are connected.
//! - [`runs`]: stored runs: history, pages, labels, notes, export.
//! - [`results`]: what was measured: ingest, import, verdict, time series, re-judging.
//! - [`distributed`]: runs on several machines.
//! - [`live`]: the feed of runs in progress.
//! - [`baselines`]: named sets of runs.
//! - [`differences`]: accepted differences in the work of two targets.
//! - [`placement`]: feasibility, affinity, wait reason, ETA.
//! - [`compare`]: runs side by side, with their statistics.
//! - [`profiles`]: which functions take the CPU time, and which of them differ.
//! - [`experiments`]: plans, the order of runs, the stopping rule, the knee search, the new-run form.
//! - [`dispatch`]: the queue, leases, and the connections of agents.
//! - [`trends`]: one cell over versions and time.
//! - [`gate`]: pass or fail of a candidate against a baseline.
//! - [`reports`]: a comparison as a file.
//! - [`shares`]: comparisons that can be read without a login.
//! - [`alerts`]: alert rules, alerts and webhooks.
//! - [`maintenance`]: backup, restore, integrity check, retention, health, Prometheus metrics.
//! - [`settings`]: the settings page.
//! - [`dashboard`]: the page at `/`.
//!
//! Invariants: a run ends once; acknowledged means committed; unknown figures are null; invalid runs enter no
//! comparison; the signature of a handler names who may call it.

pub mod alerts;
pub mod app;
pub mod auth;
pub mod baselines;
pub mod catalog;
pub mod compare;
pub mod dashboard;
pub mod differences;
pub mod dispatch;
pub mod distributed;
pub mod docs;
pub mod experiments;
pub mod fleet;
pub mod gate;
pub mod live;
pub mod maintenance;
pub mod mcp;
pub mod metrics;
pub mod placement;
pub mod profiles;
pub mod reports;
pub mod results;
pub mod runs;
pub mod search;
pub mod settings;
pub mod shares;
pub mod trends;
pub mod web;
