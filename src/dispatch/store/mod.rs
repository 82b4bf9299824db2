//! SQL of handing runs out.

pub mod leases;
pub mod queue;
