//! Load generators. The rest of the agent uses the names in this file; everything specific to k6 is in [`k6`].

pub mod k6;

pub use k6::receiver::{Arrivals, Received, Receiver, Sent};
pub use k6::remote;
pub use k6::remote_write::Push;
pub use k6::{
    Bounds, INSPECTION, K6 as Engine, K6Process, LoadTarget, Log, NoK6 as NoEngine, Paused, Round, Script, inspection,
    is_aborted, judge, name_thresholds, offer,
};
