//! One run on this machine, from its job to its outcome; or one agent's part of it.
//!
//! [`execute`] sets everything up and clears it away; [`participant`] does the job: it runs the target,
//! generates load, or both. [`barrier`] is where participants of a
//! distributed run wait for each other, [`admission`] whether this machine can do a job, [`address_policy`] whom it may
//! load.

pub mod address_policy;
pub mod admission;
pub mod barrier;
pub mod execute;
pub mod failure;
pub mod interface;
pub mod participant;
pub mod rounds;
