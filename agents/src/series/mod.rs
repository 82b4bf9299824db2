//! What happens during a run, second by second.
//!
//! k6 pushes its figures once a second, as Prometheus' remote write with native histograms: cumulative since its start,
//! one series for each metric and set of tags.
//!
//! - [`recording`]: one k6 from its start to its end. [`crate::engine::k6::receiver`] takes its pushes,
//!   [`crate::engine::k6::remote_write`] unpacks them within limits, and [`messages`] is what is in them.
//! - [`collector`]: what happened in each second; [`clock`]: one for everything; [`level`]: whether a target has warmed up.
//! - [`sampler`]: what was used meanwhile, by the kernel's word; [`kernel`]: its words.
//! - [`shared`]: what the run's cores and its network did besides; [`network`]: the kernel's words for that.
//! - [`live`]: what the run in work has made of it so far, for whoever watches.
//! - [`metric`]: which of k6's figures are wanted; [`work_counter`]: what its requests were.
//! - [`histogram`]: latencies that can be added, subtracted and asked for percentiles.

pub mod clock;
pub mod collector;
pub mod histogram;
pub mod kernel;
pub mod level;
pub mod live;
pub mod messages;
pub mod metric;
pub mod network;
pub mod recording;
pub mod sampler;
pub mod shared;
pub mod work_counter;
