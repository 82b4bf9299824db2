//! Profiles of a target during the measurement.
//!
//! - [`collapsed`]: the format of perf and commands; [`brewbench_wire::profile`] has the other one, what every profile
//!   is decoded into, and how one is made small enough to be stored.
//! - [`quality`]: how complete a profile is.
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
