//! Executes one run on this machine, or one agent's part of it: from a job to an outcome.
//!
//! [`execute`] prepares and cleans up; [`participant`] runs the target, generates load, or both. At a [`barrier`] the
//! participants of a distributed run wait for each other, and the two runs of a [`duet`]. [`admission`] decides whether this machine can execute a job,
//! [`address_policy`] which targets it may load, and [`destination`] which addresses are the target's.

pub mod address_policy;
pub mod admission;
pub mod barrier;
mod budget;
#[cfg(feature = "kubernetes")]
mod cluster_load;
pub mod context;
pub mod destination;
pub mod duet;
pub mod execute;
pub mod failure;
pub mod interface;
pub mod participant;
mod prepare;
mod refusals;
pub mod rounds;
mod secrets;
