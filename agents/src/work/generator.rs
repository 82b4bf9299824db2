//! The part of an agent that makes one segment of the load on a target that another agent runs.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{Record, Site, WAIT_FOR_OTHERS, WARM_UP_GRACE, Workbench, lost};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::k6::{self, LoadOn, Paused, Round};
use crate::process::Process;
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
        let longest = bench.k6.longest(&self.script, &job.load, &self.generator_group, &cores).await;
        let longest = longest.map_err(&broken)?;
        record.outcome.conditions.ground = bench.quiet.wait(&[self.generator_group.watch()]).await;
        let opening = gates.pass(Gate::Load, None, WAIT_FOR_OTHERS).await?;
        bench.reach.admits(&opening.base_url).map_err(&broken)?;
        let load = LoadOn { base_url: &opening.base_url, segment: Some(segment), cores: &cores };
        let warm_up = Duration::from_millis(job.warm_up_ms);
        if !warm_up.is_zero() {
            record.enter(Phase::WarmingUp);
            self.warm_up_segment(&load, bench, warm_up).await?;
        }
        self.record(Round::Measure).await;
        let paused = self.start_paused(&load, bench).await?;
        let patience = WAIT_FOR_OTHERS + warm_up;
        let generator = self.generator.as_mut().ok_or_else(|| broken("k6 was not started".to_owned()))?;
        tokio::select! {
            biased;
            status = generator.wait() => return Err(ended_early(generator, status.map_err(lost)?).await),
            begins = gates.pass(Gate::Measure, None, patience) => drop(begins?),
        }
        paused.resume().await.map_err(&broken)?;
        record.enter(Phase::Measuring);
        self.begin_recording();
        self.await_end(longest).await?;
        gates.tell(Gate::End);
        record.enter(Phase::Collecting);
        self.stop_recording().await;
        record.outcome.summary = Some(self.script.summary().map_err(&broken)?);
        Ok(())
    }

    async fn warm_up_segment(&mut self, load: &LoadOn<'_>, bench: &Workbench, length: Duration) -> Result<(), Failure> {
        self.record(Round::WarmUp).await;
        self.start_k6(load, bench, Round::WarmUp)?;
        let generator = self.generator.as_mut().ok_or_else(unstarted)?;
        // k6 ends by itself where the load is given, and a little later than the warm-up began here.
        tokio::select! {
            biased;
            status = generator.wait() => {
                let status = status.map_err(lost)?;
                return k6::judge(status, &generator.log().await).map_err(Failure::by(Cause::Generator));
            }
            () = sleep(length + WARM_UP_GRACE) => {}
        }
        generator.signal(nix::sys::signal::Signal::SIGINT);
        let _ = timeout(WARM_UP_GRACE, generator.wait()).await;
        let stopped = self.generator_group.kill().await;
        stopped.map_err(|error| Failure::by(Cause::Generator)(format!("k6 does not end after the warm-up: {error}")))
    }

    /// k6 with all its virtual users made, waiting for the word.
    async fn start_paused(&mut self, load: &LoadOn<'_>, bench: &Workbench) -> Result<Paused, Failure> {
        let broken = Failure::by(Cause::Generator);
        let paused = Paused::choose().map_err(|error| broken(format!("there is no free port: {error}")))?;
        let recording = self.recording.as_ref().map(|(_, recording)| recording);
        let started = bench.k6.start_paused(&self.script, load, &paused, recording, &self.generator_group);
        let started = started.map_err(|error| broken(format!("can't start k6: {error}")))?;
        let generator = self.generator.insert(started);
        tokio::select! {
            biased;
            status = generator.wait() => Err(ended_early(generator, status.map_err(lost)?).await),
            ready = paused.wait(&self.generator_group) => ready.map(|()| paused).map_err(broken),
        }
    }

    async fn await_end(&mut self, longest: Duration) -> Result<(), Failure> {
        let broken = Failure::by(Cause::Generator);
        let generator = self.generator.as_mut().ok_or_else(unstarted)?;
        let status = tokio::select! {
            biased;
            status = generator.wait() => status.map_err(lost)?,
            () = sleep(longest) => {
                let seconds = longest.as_secs();
                return Err(broken(format!("k6 still ran after {seconds} s, which this load can't take")));
            }
        };
        k6::judge(status, &generator.log().await).map_err(broken)
    }
}

fn unstarted() -> Failure {
    Failure::by(Cause::Generator)("k6 was not started".to_owned())
}

/// k6 has ended before it was told to begin.
async fn ended_early(generator: &mut Process, status: std::process::ExitStatus) -> Failure {
    let told = k6::judge(status, &generator.log().await);
    Failure::by(Cause::Generator)(told.err().unwrap_or_else(|| "k6 ended before the measurement".to_owned()))
}
