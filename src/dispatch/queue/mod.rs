//! The queue: what waits, for which agent, why, and when it will start, as far as that is known.
//!
//! The order is that of submission, except for what was put first. [`list`] reads the queue;
//! [`crate::placement::wait_reason`] says why a run waits, by the rule that also assigns runs, and
//! [`crate::placement::eta`] estimates when it starts.

pub mod api;
pub mod list;
pub mod model;
pub mod pages;
