//! SQL of what was measured. The table `run` has two halves: [`crate::runs::store`] writes what was requested, this what
//! came of it.

pub mod costs;
pub mod downsampled;
pub mod endings;
pub mod figures;
pub mod imports;
pub mod parts;
pub mod verdicts;
pub mod work;
