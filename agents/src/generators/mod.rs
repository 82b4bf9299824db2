//! Load generators in a Kubernetes cluster: k6 in Pods of its own, all of which push to this agent.
//!
//! - [`manifest`]: what the agent's owner allows.
//! - `objects`: what is created: Jobs, or a `TestRun` for k6-operator.
//! - `files`: how the scenario gets into them: in a `ConfigMap`, or in several.
//! - `names`: how a round and its Jobs are called.
//! - `operator`: whether k6-operator is installed.
//! - [`runners`]: the Pods of one round, from their creation to their removal.
//! - `usage`: their CPU time, as reported by their nodes.

mod files;
pub mod manifest;
mod names;
mod objects;
mod operator;
pub mod runners;
pub mod usage;

pub use manifest::Generators;
pub(crate) use names::job_name;
pub(crate) use objects::JOB_VARIABLE;
pub(crate) use operator::test_runs;
