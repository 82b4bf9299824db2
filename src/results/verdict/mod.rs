//! What a finished run is worth, and why: a pure judgement of its figures, its time series and its circumstances.
//!
//! [`judge`] applies every rule; each rule has a file of its own; [`limits`] has the numbers.

pub mod drift;
pub mod generator;
pub mod generators;
pub mod host;
pub mod input;
pub mod judge;
pub mod limits;
pub mod little;
pub mod load;
pub(crate) mod making;
pub mod model;
pub mod network;
pub mod series;
pub mod steadiness;
pub mod target;
#[cfg(test)]
pub mod tests;
pub mod usage;
