//! Where runs go: feasibility, the affinity of experiments to agents, wait reasons and estimated start times.
//! The form, the queue and dispatch share these rules. Pure.

pub mod affinity;
pub mod eta;
pub mod feasibility;
pub mod offer;
pub mod wait_reason;
