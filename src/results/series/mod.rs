//! The time series of a run: as JSON and for charts, as CSV, and downsampled.

pub mod downsample;
pub mod model;
pub mod table;
