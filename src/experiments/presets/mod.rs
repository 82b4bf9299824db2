//! Saved presets: named settings of the form for a new run, shared by all users.
//!
//! Members save presets. Who saved a preset and administrators may replace and delete it.

pub mod api;
pub mod model;
pub mod pages;
pub mod store;
