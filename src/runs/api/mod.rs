//! JSON of runs.

pub mod environment;
pub mod export;
pub mod list;
pub mod remarks;
pub mod show;
pub mod trash;
