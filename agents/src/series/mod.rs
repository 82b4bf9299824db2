//! What happens during a run, second by second.
//!
//! k6 pushes its figures once a second, as Prometheus' remote write with native histograms: cumulative since its start,
//! one series for each metric and set of tags.
//!
//! - [`push`]: a push's bytes, unpacked within limits; [`messages`]: what is in them.
//! - [`histogram`]: latencies that can be added, subtracted and asked for percentiles.

pub mod histogram;
pub mod messages;
pub mod push;
