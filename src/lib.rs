//! A dashboard that benchmarks HTTP server implementations: the server, its pages, its API and its commands.
//!
//! In reading order, each on top of the ones before:
//! [`config`], [`error`], [`db`], [`state`]: what everybody shares.
//! [`web`]: what every page shares.
//! [`runs`]: stored runs.
//! [`compare`]: runs side by side.

pub mod compare;
pub mod config;
pub mod db;
pub mod error;
pub mod runs;
pub mod state;
pub mod web;
