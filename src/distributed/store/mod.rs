//! SQL of distributed runs: participants with their leases, and what each has delivered.

pub mod participants;
