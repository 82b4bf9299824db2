//! SQL of leases and of the queue.

pub mod leases;
pub mod queue;
