//! The verdict on a finished run, with reasons: judges its metrics, time series and conditions.
//!
//! [`judge`] applies all rules; each rule has its own file; [`limits`] has the numbers.

pub mod cell;
pub mod code;
mod connections;
mod cut_short;
mod delayed_ack;
mod exceptions;
pub mod generator;
pub mod generators;
pub mod host;
mod idle_users;
pub mod input;
mod interrupted;
pub mod judge;
pub mod limits;
pub mod little;
pub mod load;
pub mod model;
mod negative;
pub mod network;
mod protocol;
mod reach;
mod reader;
mod records;
mod retransmits;
pub mod series;
pub(crate) mod setup;
mod stalled;
pub mod steadiness;
pub mod target;
#[cfg(test)]
pub mod tests;
mod turns;
mod unsolicited;
pub mod usage;
