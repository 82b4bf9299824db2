//! The queue: the waiting runs, for which agents and why they wait, and their estimated start.
//!
//! Runs are ordered by submission, after prioritized ones. [`list`] reads the queue,
//! [`crate::placement::wait_reason`] explains why a run waits, by the rules that also assign runs, and
//! [`crate::placement::eta`] estimates when it starts.

pub mod api;
pub mod list;
pub mod model;
pub mod pages;
