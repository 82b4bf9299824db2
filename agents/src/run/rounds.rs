//! The rounds of k6, whoever runs the target: the warm-up, and the end of the measured load.

use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep, timeout};

use crate::engine;
use crate::engine::{LoadOn, Round};
use crate::run::execute::{Site, Workbench, lost};
use crate::run::failure::Failure;
use crate::series::collector::MAX_SECONDS;
use crate::series::level::is_level;
use crate::series::live::Live;
use crate::series::recording::SoFar;
use crate::target::Running;
use crate::wire::job::Job;
use crate::wire::load::{Load, SHORTEST};
use crate::wire::outcome::{Cause, WarmUp};
use crate::wire::series::Second;

/// How long k6 may take to end once its warm-up is over: an iteration may be in the middle of something.
const WARM_UP_GRACE: Duration = Duration::from_millis(500);

impl Site {
    /// Warms up for as long as the job says, or until the target is steady; returns what the latter came to.
    pub(super) async fn warm_up(
        &mut self,
        job: &Job,
        bench: &Workbench,
        load: &LoadOn<'_>,
    ) -> Result<Option<WarmUp>, Failure> {
        let broken = Failure::by(Cause::Generator);
        self.start(load, bench, Round::WarmUp).await?;
        let begun = Instant::now();
        let longest = job.warm_up_max_ms.unwrap_or(job.warm_up_ms);
        let level = level(job, self.recording.as_ref().map(|(_, recording)| recording.so_far()), &self.live);
        // k6 knows the length itself, if it is not too short for it; a script's own load is interrupted.
        let length = match (&job.load, Duration::from_millis(longest)) {
            (Load::Closed(_) | Load::Open(_), length) if length >= SHORTEST => length + WARM_UP_GRACE,
            (_, length) => length,
        };
        let generator = self.generator.as_mut().ok_or_else(unstarted)?;
        let (early, steady) = tokio::select! {
            biased;
            () = end_of(&mut self.target) => return Err(self.death("while it was warmed up").await),
            status = generator.wait() => (Some(status.map_err(lost)?), false),
            () = level => (None, true),
            () = sleep(length) => (None, false),
        };
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let outcome = job.warm_up_max_ms.map(|_| WarmUp { took_ms, steady });
        if let Some(status) = early {
            return engine::judge(status, &generator.log().await).map_err(broken).map(|()| outcome);
        }
        generator.signal(Signal::SIGINT);
        // However it ends now, it was the warm-up's end.
        let _ = timeout(WARM_UP_GRACE, generator.wait()).await;
        let stopped = self.generator_group.kill().await;
        stopped.map_err(|error| broken(format!("k6 does not end after the warm-up: {error}")))?;
        Ok(outcome)
    }

    /// Starts k6 for a round, and the recording of it.
    pub(super) async fn start(&mut self, load: &LoadOn<'_>, bench: &Workbench, round: Round) -> Result<(), Failure> {
        self.record(round).await;
        let recording = self.recording.as_ref().map(|(_, recording)| recording);
        let started = bench.engine.start(&self.script, load, round, recording, &self.generator_group);
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
        engine::judge(status, &generator.log().await).map_err(broken)?;
        if self.target.as_mut().is_some_and(Running::has_ended) {
            return Err(self.death(WHEN).await);
        }
        Ok(())
    }
}

/// Waits until the target is steady and was warmed up for the shortest time; for ever where nobody asked for that, or
/// nothing is recorded.
fn level(job: &Job, so_far: Option<SoFar>, live: &Live) -> impl Future<Output = ()> + use<> {
    let shortest = Duration::from_millis(job.warm_up_ms);
    let so_far = so_far.filter(|_| job.warm_up_max_ms.is_some());
    let (is_open, mut news) = (matches!(job.load, Load::Open(_)), live.listen());
    async move {
        let Some(so_far) = so_far else { return std::future::pending().await };
        sleep(shortest).await;
        while !is_level(&points(&so_far.seconds_after(0, MAX_SECONDS), is_open)) {
            // Once the recording is over, nothing more comes.
            if news.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

/// Requests a second under virtual users, under a rate the median latency: of each second but the first, in which k6
/// starts, and the last, which may still grow.
fn points(seconds: &[Second], is_open: bool) -> Vec<f64> {
    let whole = seconds.split_last().map_or(&[][..], |(_, whole)| whole);
    let point = |pair: &[Second]| {
        if is_open {
            return Some(pair[1].succeeded.quantile(0.5)?.estimate);
        }
        let lasted_s = (f64::from(pair[1].until_ms) - f64::from(pair[0].until_ms)) / 1_000.0;
        (lasted_s > 0.0).then(|| pair[1].requests() as f64 / lasted_s)
    };
    whole.windows(2).filter_map(point).collect()
}

/// Waits for the end of the target; for ever where another agent runs it.
async fn end_of(target: &mut Option<Running>) {
    match target {
        Some(target) => target.wait().await,
        None => std::future::pending().await,
    }
}

pub(super) fn unstarted() -> Failure {
    Failure::by(Cause::Generator)("k6 was not started".to_owned())
}
