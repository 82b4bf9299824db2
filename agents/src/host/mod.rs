//! This machine: its description, its processes, and preparing it for a measurement.

pub mod cleanup;
pub mod clocks;
pub mod cpu_tuning;
pub mod disk;
pub mod environment;
pub mod idle_wait;
pub mod machine;
pub mod process_snapshot;
pub mod procfs;
