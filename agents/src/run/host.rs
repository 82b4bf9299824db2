//! The part of the agent that runs the target of a run whose load comes from others.

use std::time::Duration;

use super::interface;
use crate::engine::Round;
use crate::host::process_snapshot::Roster;

use crate::run::barrier::Gates;
use crate::run::execute::{Record, Site, WAIT_FOR_OTHERS, Workbench};
use crate::run::failure::Failure;
use crate::run::target_side::Start;
use crate::wire::Phase;
use crate::wire::job::Job;
use crate::wire::messages::Gate;
use crate::wire::outcome::Cause;

/// How long a script's own load may take; nobody here knows how long it is.
const LONGEST_SCRIPT: Duration = Duration::from_hours(25);

impl Site {
    /// Starts the target where others reach it, and keeps it until all of them are done.
    pub(super) async fn host<F: Fn(Phase)>(
        &mut self,
        job: &Job,
        bench: &Workbench,
        record: &mut Record<F>,
        mut gates: Gates,
    ) -> Result<(), Failure> {
        let other = Failure::by(Cause::Other);
        let address = bench.load_address.ok_or_else(|| {
            other("the owner of this agent allows no load from other machines: start it with --load-address".to_owned())
        })?;
        self.interface = interface::of_own(address);
        let manifest = self.manifest()?;
        let cores = record.outcome.cores.target.clone();
        let (place, home) = ((&self.target_group, cores.as_slice()), self.target_home());
        let start = Start { manifest: &manifest, address, place, home: &home };
        let mut serving = start.run(bench, &mut self.target, &mut record.outcome).await?;
        self.wait_until_idle(bench, &mut record.outcome.conditions).await;
        let base_url = serving.base_url.clone();
        let warm_up = Duration::from_millis(job.warm_up_ms);
        self.meet(&mut gates, Gate::Load, &base_url, WAIT_FOR_OTHERS, "while others prepared their load").await?;
        if job.warm_up_ms > 0 {
            record.enter(Phase::WarmingUp);
            self.record(Round::WarmUp).await;
        }
        let longest = WAIT_FOR_OTHERS + warm_up;
        self.meet(&mut gates, Gate::Measure, &base_url, longest, "while it was warmed up").await?;
        serving.known.confirm().await;
        record.enter(Phase::Measuring);
        let before = Roster::call(&self.target_group);
        self.record(Round::Measure).await;
        let longest = WAIT_FOR_OTHERS + job.load.duration().unwrap_or(LONGEST_SCRIPT);
        self.meet(&mut gates, Gate::End, &base_url, longest, "during the measurement").await?;
        self.record_target(&before, &serving, record).await;
        Ok(())
    }

    /// Waits at a gate while the target serves.
    async fn meet(
        &mut self,
        gates: &mut Gates,
        gate: Gate,
        base_url: &str,
        longest: Duration,
        when: &str,
    ) -> Result<(), Failure> {
        let unstarted = || Failure::by(Cause::Other)("the target was not started".to_owned());
        let target = self.target.as_mut().ok_or_else(unstarted)?;
        tokio::select! {
            biased;
            _ = target.wait() => {}
            passed = gates.pass(gate, Some(base_url.to_owned()), longest) => return passed.map(drop),
        }
        Err(self.death(when).await)
    }
}
