//! What every agent that runs the target does with it, whether the load is its own or comes from other machines.

use std::net::IpAddr;
use std::path::Path;

use super::admission::fingerprint;
use super::execute::{Record, Site, Workbench};
use super::failure::Failure;
use crate::host::process_snapshot::Roster;
use crate::sandbox::Group;
use crate::sandbox::process::Process;
use crate::series::sampler::memory_bytes;
use crate::target::{self, Manifest, Serving};
use crate::wire::Phase;
use crate::wire::outcome::{Cause, Conditions, Outcome};

/// A target to start.
pub(super) struct Start<'a> {
    /// What it is.
    pub manifest: &'a Manifest,
    /// Where it listens.
    pub address: IpAddr,
    /// Its group, and its cores.
    pub place: (&'a Group, &'a [usize]),
    /// Where it keeps temporary files.
    pub home: &'a Path,
}

impl Start<'_> {
    /// Identifies the target, starts it, and waits until it serves.
    pub async fn run(
        self,
        bench: &Workbench,
        slot: &mut Option<Process>,
        outcome: &mut Outcome,
    ) -> Result<Serving, Failure> {
        let Self { manifest, address, place, home } = self;
        let sha256 = fingerprint(manifest, bench).await.map_err(Failure::by(Cause::Other))?;
        outcome.environment.insert("target.sha256".to_owned(), sha256.clone());
        outcome.target_sha256 = Some(sha256);
        let serving = target::start(manifest, address, place, home, slot).await?;
        outcome.conditions.startup_ms = Some(serving.startup.as_secs_f64() * 1_000.0);
        Ok(serving)
    }
}

impl Site {
    /// Waits until the machine is idle, the run's own processes aside. The target has had no load then.
    pub(super) async fn wait_until_idle(&self, bench: &Workbench, conditions: &mut Conditions) {
        let own = [self.target_group.watch(), self.generator_group.watch()];
        conditions.ground = bench.quiet.wait(&own).await;
        conditions.idle_memory_bytes = memory_bytes(&self.target_group.watch());
    }

    /// Records which of the target's processes are gone after the measurement, and whether it still answers as before.
    pub(super) async fn record_target<F: Fn(Phase)>(
        &mut self,
        before: &Roster,
        serving: &Serving,
        record: &mut Record<F>,
    ) {
        let conditions = &mut record.outcome.conditions;
        conditions.processes = Some(before.len());
        conditions.processes_gone = Some(before.gone(&Roster::call(&self.target_group)));
        record.enter(Phase::Collecting);
        // What is asked now is no part of the series.
        self.stop_recording().await;
        record.outcome.conditions.response_change = Some(serving.known.change().await);
    }
}
