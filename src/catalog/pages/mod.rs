//! `/targets`, `/sizes` and `/scenarios`.

pub mod new_target;
mod pickup;
pub mod revision_diff;
pub mod scenarios;
pub mod sizes;
pub mod targets;
pub mod upload;
