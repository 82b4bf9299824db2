//! SQL of distributed runs.

pub mod participants;
