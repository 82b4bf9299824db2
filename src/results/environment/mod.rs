//! The environment of a run: its facts in groups, and the differences between two runs. Pure.
//!
//! Agents name facts with dotted names (`agents/src/host/environment/`). Unknown facts are shown under those names.

pub mod circumstances;
pub mod difference;
pub mod facts;
pub mod generators;
pub mod names;
