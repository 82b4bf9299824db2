//! Under what a run was measured: its facts in groups, and in what two runs' facts differ. Pure.
//!
//! Facts have dotted names that agents give them (`agents/src/environment/`). What is not known here is shown all the same,
//! under its own name.

pub mod circumstances;
pub mod difference;
pub mod facts;
pub mod generators;
pub mod names;
