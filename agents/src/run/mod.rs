//! One run on this machine, from its job to its outcome; or one agent's part of it.
//!
//! [`execute`] does the job; [`host`] runs the target and [`generator`] makes load. [`barrier`] is where participants of a
//! distributed run wait for each other, [`admission`] whether this machine can do a job, [`address_policy`] whom it may
//! load.

pub mod address_policy;
pub mod admission;
pub mod barrier;
pub mod execute;
pub mod failure;
pub mod generator;
pub mod host;
pub mod interface;
pub mod rounds;
mod target_side;
