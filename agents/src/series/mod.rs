//! What happens during a run, second by second.
//!
//! k6 pushes its metrics once a second with Prometheus remote write and native histograms: cumulative since its start,
//! one series per metric and set of tags.
//!
//! - [`recording`]: one k6 process from start to end. [`crate::engine::k6::receiver`] accepts its pushes,
//!   [`crate::engine::k6::remote_write`] unpacks them within limits, and [`messages`] defines their content.
//! - [`collector`]: turns pushes into seconds; [`clock`]: one for all series; [`level`]: detects the end of a warm-up.
//! - [`sampler`]: resource usage, sampled from the kernel; `consumption`: that of a target or a load generator; [`kernel`]:
//!   parses the kernel's files.
//! - [`shared`]: everything else on the run's cores and network; [`network`]: parses the kernel's network files.
//! - [`load_time`]: how long the load lasted, without `setup()`, `teardown()` and waits; limits a series to it.
//! - [`live`]: sends the current run to the server while it is in progress.
//! - [`metric`]: which of k6's metrics are used; [`work_counter`]: counts requests by status, protocol and connection.

pub mod clock;
pub mod collector;
pub mod connections;
mod consumption;
pub mod kernel;
pub mod level;
pub mod live;
pub mod load_time;
pub mod messages;
pub mod metric;
pub mod network;
pub mod recording;
pub mod run_queue;
pub mod sampler;
pub mod shared;
pub mod sock_diag;
pub mod work_counter;
