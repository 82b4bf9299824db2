//! What stands for a cluster in a build without the feature `kubernetes`: a type without values. Connecting to a
//! cluster fails with the reason, so nothing else of this file is ever executed.

use std::convert::Infallible;
use std::sync::Arc;

use brewbench_wire::job::{Job, Size};
use brewbench_wire::outcome::Cause;
use brewbench_wire::series::Consumption;
use brewbench_wire::{Phase, RunId};

use crate::run::context::RunContext;
use crate::run::execute::{OutcomeBuilder, RunResources};
use crate::run::failure::Failure;
use crate::target::manifest::{Manifest, Workload};
use crate::target::{Ended, Serving};

const NOT_BUILT: &str =
    "this program was built without Kubernetes; build it with the cargo feature `kubernetes`, as `make build` does";

#[expect(clippy::unused_async, reason = "it stands for a function that waits for a cluster")]
impl RunResources {
    /// Fails with the reason.
    pub(crate) async fn work_with_cluster<F: Fn(Phase)>(
        &mut self,
        _: &Job,
        _: &RunContext,
        _: &mut OutcomeBuilder<F>,
    ) -> Result<(), Failure> {
        Err(Failure::by(Cause::Other)(NOT_BUILT.to_owned()))
    }
}

/// A connection to a cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Its namespace.
    pub namespace: String,
    never: Infallible,
}

/// The Pods of a target.
pub type PodTarget = Cluster;
/// The figures of these Pods.
pub type Replicas = Cluster;
/// Generators in Pods.
pub type Runners = Cluster;

/// What is known of a target before its Pods are created.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The manifest's part.
    pub workload: Workload,
    /// Where it runs.
    pub cluster: Cluster,
    /// Its requests and limits.
    pub size: Size,
    /// The run.
    pub run: RunId,
}

#[expect(missing_docs, reason = "they do nothing; the feature's own types say what for")]
#[expect(clippy::unused_async, reason = "they stand for functions that wait for a cluster")]
impl Cluster {
    pub async fn connect(_: &str, _: Option<&str>) -> Result<Self, String> {
        Err(NOT_BUILT.to_owned())
    }

    pub async fn open(_: &str, _: Option<&str>) -> Result<Self, String> {
        Err(NOT_BUILT.to_owned())
    }

    pub async fn missing_permissions(&self) -> Result<Vec<String>, String> {
        match self.never {}
    }

    pub async fn missing_generator_permissions(&self) -> Result<Vec<String>, String> {
        match self.never {}
    }

    pub fn new(prepared: Prepared) -> Self {
        let Prepared { cluster, .. } = prepared;
        match cluster.never {}
    }

    pub async fn start(&mut self, _: &Manifest, _: impl Fn(String)) -> Result<Serving, Failure> {
        match self.never {}
    }

    pub async fn wait(&self) {
        match self.never {}
    }

    pub fn has_ended(&self) -> bool {
        match self.never {}
    }

    pub async fn exit_report(&mut self, _: &str) -> Failure {
        match self.never {}
    }

    pub fn replicas(&self) -> Option<Arc<Self>> {
        match self.never {}
    }

    pub async fn stop(self) -> Ended {
        match self.never {}
    }

    pub async fn read(&self) -> Consumption {
        match self.never {}
    }

    pub async fn settle(&self) {
        match self.never {}
    }

    pub fn cpu_at(&self, _: &[i64]) -> Vec<Option<u64>> {
        match self.never {}
    }

    pub fn cpu_here_at(&self, _: &[i64]) -> Vec<Option<u64>> {
        match self.never {}
    }

    pub async fn remove(self) -> Result<(), String> {
        match self.never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_error_names_the_feature() {
        let fault = Cluster::open("rack", None).await.expect_err("no cluster");
        assert!(fault.contains("feature `kubernetes`"), "{fault}");
    }
}
