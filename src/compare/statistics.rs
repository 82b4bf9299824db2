//! The statistics of a comparison, from their own crate. Pure.

pub use brewbench_statistics::*;
