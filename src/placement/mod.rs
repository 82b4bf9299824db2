//! Where runs go: which agents can do them, which one an experiment sticks to, why a run waits, and when it will start.
//! Each is defined here once; the form, the queue and dispatch read it. Pure.

pub mod affinity;
pub mod eta;
pub mod feasibility;
pub mod wait_reason;
