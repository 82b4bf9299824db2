//! A dashboard that benchmarks HTTP server implementations: the server, its pages, its API and its commands.
//!
//! In reading order, each on top of the ones before:
//! - [`config`], [`networks`], [`error`], [`input`], [`data_folder`], [`db`], [`secrets_key`], [`limits`], [`meters`], [`notices`], [`together`], [`underway`],
//!   [`state`]: what everybody shares;
//!   [`web`]: what every page shares.
//! - [`metrics`]: every figure of a run that has a unit, described once.
//! - [`auth`]: who may do what.
//! - [`catalog`]: targets, machine sizes, scenarios; [`fleet`]: agents.
//! - [`runs`]: stored runs, how they get in, what they are worth; [`baselines`]: some of them under a name;
//!   [`differences`]: where their work may differ.
//! - [`experiments`]: submissions; [`dispatch`]: who does which run.
//! - [`compare`]: runs side by side; [`trends`]: a cell over versions and time; [`gate`]: whether that is a regression; [`reports`] and [`shares`]: comparisons for
//!   people elsewhere; [`dashboard`]: the pages that look at all of it.
//! - [`alerts`]: what somebody should look at, on pages and by webhook.
//! - [`keeping`]: backups, looking for damage, how the server does, how long series are kept.
//! - [`server`] puts the slices together, [`listener`] is its door, [`tls`] its certificate; [`owner`] acts on a data folder
//!   without it.
//! - [`cli`]: the commands; [`demo`]: all of it in one process; [`logs`]: what it says meanwhile; [`signal`]: how it ends.
//!
//! What always holds: a run ends in one phase and keeps it; acknowledged means committed; a figure that is not known is
//! null; an invalid run enters no comparison; whoever may call a handler stands in its signature.

pub mod alerts;
pub mod app;
pub mod auth;
pub mod baselines;
pub mod catalog;
pub mod cli;
pub mod compare;
pub mod dashboard;
pub mod differences;
pub mod dispatch;
pub mod distributed;
pub mod experiments;
pub mod fleet;
pub mod gate;
pub mod live;
pub mod maintenance;
pub mod metrics;
pub mod placement;
pub mod reports;
pub mod results;
pub mod runs;
pub mod settings;
pub mod shares;
pub mod trends;
pub mod web;
