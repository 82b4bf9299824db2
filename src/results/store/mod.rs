//! SQL of results. Of the table `run`, [`crate::runs::store`] writes the request, and this module the result.

pub mod cells;
pub mod code;
pub mod downsampled;
pub mod endings;
pub mod imports;
pub mod parts;
pub mod profiles;
pub mod uploads;
pub mod verdicts;
