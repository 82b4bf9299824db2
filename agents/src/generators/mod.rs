//! Load generators in a Kubernetes cluster: k6 in Pods of its own, all of which push to this agent.
//!
//! - [`manifest`]: what the agent's owner allows.
//! - `objects`: what is created: Jobs, or a `TestRun` for k6-operator.
//! - `files`: how the scenario gets into them: in a `ConfigMap`, or in several.
//! - `names`: how a round and its Jobs are called.
//! - `operator`: whether k6-operator is installed.
//! - [`runners`]: the Pods of one round, from their creation to their removal.
//! - `usage`: their CPU time, as reported by their nodes.

#[cfg(feature = "kubernetes")]
mod files;
pub mod manifest;
#[cfg(feature = "kubernetes")]
mod names;
#[cfg(feature = "kubernetes")]
mod objects;
#[cfg(feature = "kubernetes")]
mod operator;
#[cfg(feature = "kubernetes")]
pub mod runners;
#[cfg(feature = "kubernetes")]
pub mod usage;

#[cfg(not(feature = "kubernetes"))]
pub(crate) use crate::no_kubernetes as runners;
pub use manifest::Generators;
#[cfg(feature = "kubernetes")]
pub(crate) use names::job_name;
#[cfg(feature = "kubernetes")]
pub(crate) use objects::JOB_VARIABLE;
#[cfg(feature = "kubernetes")]
pub(crate) use operator::test_runs;
