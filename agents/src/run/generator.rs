//! The part of an agent that makes one segment of the load on a target that another agent runs.

use std::time::Duration;

use super::interface;
use super::rounds::unstarted;
use crate::engine;
use crate::engine::{LoadOn, Paused, Round};
use crate::run::barrier::Gates;
use crate::run::execute::{Record, Site, WAIT_FOR_OTHERS, Workbench, lost};
use crate::run::failure::Failure;
use crate::sandbox::process::Process;
use crate::wire::Phase;
use crate::wire::job::{Job, Segment};
use crate::wire::messages::Gate;
use crate::wire::outcome::Cause;

impl Site {
    /// Makes the load of one segment, and begins to measure when all do.
    pub(super) async fn generate<F: Fn(Phase)>(
        &mut self,
        job: &Job,
        segment: Segment,
        bench: &Workbench,
        record: &mut Record<F>,
        mut gates: Gates,
    ) -> Result<(), Failure> {
        let broken = Failure::by(Cause::Generator);
        let cores = record.outcome.cores.generator.clone();
        let longest = bench.engine.longest(&self.script, &job.load, &self.generator_group, &cores).await;
        let longest = longest.map_err(&broken)?;
        record.outcome.conditions.ground = bench.quiet.wait(&[self.generator_group.watch()]).await;
        let opening = gates.pass(Gate::Load, None, WAIT_FOR_OTHERS).await?;
        bench.reach.admits(&opening.base_url).map_err(&broken)?;
        self.interface = interface::to(&opening.base_url);
        let load = LoadOn { base_url: &opening.base_url, segment: Some(segment), cores: &cores, reach: bench.reach };
        let warm_up = Duration::from_millis(job.warm_up_ms);
        if !warm_up.is_zero() {
            record.enter(Phase::WarmingUp);
            record.outcome.warm_up = self.warm_up(job, bench, &load).await?;
        }
        self.record(Round::Measure).await;
        let paused = self.start_paused(&load, bench).await?;
        let patience = WAIT_FOR_OTHERS + warm_up;
        let generator = self.generator.as_mut().ok_or_else(unstarted)?;
        tokio::select! {
            biased;
            status = generator.wait() => return Err(ended_early(generator, status.map_err(lost)?).await),
            begins = gates.pass(Gate::Measure, None, patience) => drop(begins?),
        }
        paused.resume().await.map_err(&broken)?;
        record.enter(Phase::Measuring);
        self.begin_recording();
        self.measured(longest).await?;
        gates.tell(Gate::End);
        record.enter(Phase::Collecting);
        self.stop_recording().await;
        record.outcome.summary = Some(self.script.summary().map_err(&broken)?);
        Ok(())
    }

    /// k6 with all its virtual users made, waiting for the word.
    async fn start_paused(&mut self, load: &LoadOn<'_>, bench: &Workbench) -> Result<Paused, Failure> {
        let broken = Failure::by(Cause::Generator);
        let paused = Paused::choose().map_err(|error| broken(format!("there is no free port: {error}")))?;
        let recording = self.recording.as_ref().map(|(_, recording)| recording);
        let started = bench.engine.start_paused(&self.script, load, &paused, recording, &self.generator_group);
        let started = started.map_err(|error| broken(format!("can't start k6: {error}")))?;
        let generator = self.generator.insert(started);
        tokio::select! {
            biased;
            status = generator.wait() => Err(ended_early(generator, status.map_err(lost)?).await),
            ready = paused.wait(&self.generator_group) => ready.map(|()| paused).map_err(broken),
        }
    }
}

/// k6 has ended before it was told to begin.
async fn ended_early(generator: &mut Process, status: std::process::ExitStatus) -> Failure {
    let told = engine::judge(status, &generator.log().await);
    Failure::by(Cause::Generator)(told.err().unwrap_or_else(|| "k6 ended before the measurement".to_owned()))
}
