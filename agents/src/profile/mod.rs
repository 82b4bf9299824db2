//! Profiles of a target during the measurement.
//!
//! - [`stacks`]: what every profile is decoded into. [`pprof`] and [`collapsed`] are the formats.
//! - [`trim`]: makes a profile small enough to be stored.

pub mod collapsed;
pub mod pprof;
pub mod stacks;
pub mod trim;
