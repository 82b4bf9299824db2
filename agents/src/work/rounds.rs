//! The rounds of k6, whoever runs the target: the warm-up, and the end of the measured load.

use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::{sleep, timeout};

use super::{Site, Workbench, lost};
use crate::failure::Failure;
use crate::k6::{self, LoadOn, Round};
use crate::process::Process;
use crate::wire::job::Job;
use crate::wire::load::{Load, SHORTEST};
use crate::wire::outcome::Cause;

/// How long k6 may take to end once its warm-up is over: an iteration may be in the middle of something.
const WARM_UP_GRACE: Duration = Duration::from_millis(500);

impl Site {
    /// Warms up for as long as the job says.
    pub(super) async fn warm_up(&mut self, job: &Job, bench: &Workbench, load: &LoadOn<'_>) -> Result<(), Failure> {
        let broken = Failure::by(Cause::Generator);
        self.start(load, bench, Round::WarmUp).await?;
        // k6 knows the length itself, if it is not too short for it; a script's own load is interrupted.
        let length = match (&job.load, Duration::from_millis(job.warm_up_ms)) {
            (Load::Closed(_) | Load::Open(_), length) if length >= SHORTEST => length + WARM_UP_GRACE,
            (_, length) => length,
        };
        let generator = self.generator.as_mut().ok_or_else(unstarted)?;
        let early = tokio::select! {
            biased;
            () = end_of(&mut self.target) => return Err(self.death("while it was warmed up").await),
            status = generator.wait() => Some(status.map_err(lost)?),
            () = sleep(length) => None,
        };
        if let Some(status) = early {
            return k6::judge(status, &generator.log().await).map_err(broken);
        }
        generator.signal(Signal::SIGINT);
        // However it ends now, it was the warm-up's end.
        let _ = timeout(WARM_UP_GRACE, generator.wait()).await;
        let stopped = self.generator_group.kill().await;
        stopped.map_err(|error| broken(format!("k6 does not end after the warm-up: {error}")))
    }

    /// Starts k6 for a round, and the recording of it.
    pub(super) async fn start(&mut self, load: &LoadOn<'_>, bench: &Workbench, round: Round) -> Result<(), Failure> {
        self.record(round).await;
        let recording = self.recording.as_ref().map(|(_, recording)| recording);
        let started = bench.k6.start(&self.script, load, round, recording, &self.generator_group);
        let started = started.map_err(|error| Failure::by(Cause::Generator)(format!("can't start k6: {error}")));
        self.generator = Some(started?);
        Ok(())
    }

    /// Waits for the end of the measured load, which takes no longer than this.
    pub(super) async fn measured(&mut self, longest: Duration) -> Result<(), Failure> {
        const WHEN: &str = "during the measurement";
        let broken = Failure::by(Cause::Generator);
        let generator = self.generator.as_mut().ok_or_else(unstarted)?;
        let status = tokio::select! {
            biased;
            () = end_of(&mut self.target) => return Err(self.death(WHEN).await),
            status = generator.wait() => status.map_err(lost)?,
            () = sleep(longest) => {
                let seconds = longest.as_secs();
                return Err(broken(format!("k6 still ran after {seconds} s, which this load can't take")));
            }
        };
        k6::judge(status, &generator.log().await).map_err(broken)?;
        if self.target.as_mut().is_some_and(|target| target.ended().is_some()) {
            return Err(self.death(WHEN).await);
        }
        Ok(())
    }
}

/// Waits for the end of the target; for ever where another agent runs it.
async fn end_of(target: &mut Option<Process>) {
    match target {
        Some(target) => drop(target.wait().await),
        None => std::future::pending().await,
    }
}

pub(super) fn unstarted() -> Failure {
    Failure::by(Cause::Generator)("k6 was not started".to_owned())
}
