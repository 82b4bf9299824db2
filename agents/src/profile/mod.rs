//! Profiles of a target during the measurement.
//!
//! - [`stacks`]: what every profile is decoded into. [`pprof`] and [`collapsed`] are the formats.
//! - [`trim`]: makes a profile small enough to be stored; [`quality`]: how complete it is.
//! - [`endpoint`], [`perf`] and [`command`]: the profilers. The last two run in a [`place`] beside the target.
//! - [`attached`]: one of them during a run. [`offer`]: whether it can be used.

pub mod attached;
pub mod collapsed;
pub mod command;
pub mod endpoint;
pub mod offer;
pub mod perf;
pub mod place;
pub mod quality;
