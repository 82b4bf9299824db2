//! brewbench's own HTTP load generator: it measures servers that are faster than k6 can load them.
//!
//! A [`Plan`](plan::Plan) says what to do, [`Generator`](generator::Generator) does it, and
//! [`Event`](events::Event)s report it. A [`program`] reads a plan from its standard input and writes the
//! events to its standard output.
//!
//! - [`plan`]: what can be asked for; [`request_list`]: the part that people write, in TOML. [`convert`] makes it from
//!   what they have.
//! - `work`, `message`, `target`, `tls`: the plan, prepared. `share` splits it, `schedule` says when requests start, and
//!   [`turns`] when two loads may.
//! - `worker`: a thread with HTTP/1 connections; `transport`, `response`, `content`: their bytes. `http2`: one with HTTP/2.
//! - `tally`, [`latency`], `outbox`, `collector`: counting, without locks.
//! - [`generator`], [`stop`]: the threads, and their end. `limits`: what this machine allows.
//!
//! Times are nanoseconds since the start of the load, on the monotonic clock.

/// Version of what it measures. It changes when results may change with it.
pub const VERSION: &str = "1";

mod clock;
mod collector;
mod content;
pub mod convert;
pub mod events;
pub mod generator;
mod http2;
pub mod latency;
mod limits;
mod message;
mod outbox;
pub mod plan;
pub mod program;
pub mod request_list;
mod response;
mod schedule;
mod share;
pub mod stop;
pub mod tally;
mod target;
mod tls;
mod transport;
pub mod turns;
mod work;
mod worker;
