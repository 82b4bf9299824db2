//! Under what a run was measured: its facts in groups, and in what two runs' facts differ. Pure.
//!
//! Facts have dotted names that agents give them (`agents/src/host/environment/`). Facts that are not known here are shown
//! under their own names.

pub mod circumstances;
pub mod difference;
pub mod facts;
pub mod generators;
pub mod names;
