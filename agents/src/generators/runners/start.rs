//! Waits until generators can start, and starts them.

use std::time::Duration;

use brewbench_wire::outcome::Cause;
use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use tokio::time::{Instant, sleep, timeout};

use super::{FIRST_PUSH, MAX_SETUP, PAUSE, Runners, Start};
use crate::engine::Arrivals;
use crate::engine::k6::Paused;
use crate::engine::remote::PORT;
use crate::run::failure::Failure;
use crate::series::clock::Clock;
use crate::target::kubernetes::pods::Placed;
use crate::target::kubernetes::state::State;

/// Pause between two looks at what starts the generators.
const STARTER_PAUSE: Duration = Duration::from_secs(1);

impl Runners {
    /// Waits until every generator runs, has all virtual users, and its series arrives here. `progress` is called with
    /// sentences.
    pub async fn ready(
        &self,
        arrivals: &Arrivals,
        url: &str,
        progress: impl Fn(String),
    ) -> Result<Vec<Placed>, Failure> {
        let begun = Instant::now();
        loop {
            let running = (0..self.count).filter(|index| self.address(*index).is_some()).count();
            let limit = self.check_start(begun).await?;
            if running == self.count as usize {
                break;
            }
            progress(format!("starts its generators: {running} of {} run", self.count));
            if begun.elapsed() > limit {
                let reason =
                    format!("only {running} of {} generators run after {} s", self.count, begun.elapsed().as_secs());
                return Err(Failure::by(Cause::Generator)(reason));
            }
            let _ = timeout(PAUSE * 5, self.pods.changed()).await;
        }
        progress("waits for the virtual users of its generators".to_owned());
        let waiting = (0..self.count).map(|index| self.wait_until_ready(index, arrivals, url));
        tokio::select! {
            biased;
            failure = self.any_failed() => Err(failure),
            placed = try_join_all(waiting) => placed,
        }
    }

    /// Fails if a generator can't start. Returns how long the slowest may take.
    async fn check_start(&self, begun: Instant) -> Result<Duration, Failure> {
        let patience = self.cluster.patience;
        let mut limit = patience.preparation;
        for index in 0..self.count {
            let job = self.names.job(index);
            let fault = match self.pods.of_job(&job).as_ref().map(State::from_pod) {
                Some(State::Ended(exit)) => Some(exit.reason),
                Some(state) => {
                    if matches!(state, State::Unscheduled(_)) {
                        limit = patience.scheduling;
                    }
                    self.fault(state, begun)
                }
                // The first one speaks for all.
                None if limit == patience.preparation => {
                    limit = patience.scheduling;
                    self.refusal(&job).await
                }
                None => None,
            };
            if let Some(fault) = fault {
                return Err(self.failure(index, &format!("did not start: {fault}")));
            }
        }
        Ok(limit)
    }

    /// Explains why a Pod can't start, once that is certain.
    fn fault(&self, state: State, begun: Instant) -> Option<String> {
        let patience = self.cluster.patience;
        match state {
            State::Broken(why) => Some(why),
            State::PullFails(why) => {
                (begun.elapsed() > patience.pull_retries).then(|| format!("can't pull its image: {why}"))
            }
            State::Unscheduled(why) => {
                (begun.elapsed() > patience.scheduling).then(|| format!("waits for a node: {why}"))
            }
            State::Runs | State::Waiting(_) | State::Ended(_) => None,
        }
    }

    /// Explains why a Job gets no Pod, if the cluster says so.
    async fn refusal(&self, job: &str) -> Option<String> {
        let own = ListParams::default().fields(&format!("involvedObject.name={job}"));
        let listed = self.cluster.api::<Event>().list(&own).await.ok()?;
        let failed = listed.into_iter().find(|event| event.reason.as_deref() == Some("FailedCreate"))?;
        failed.message
    }

    /// Waits until the Pod with which k6-operator starts all generators can't start.
    async fn starter_failed(&self) -> Failure {
        let (begun, job) = (Instant::now(), self.names.starter());
        loop {
            let fault = match self.pods.of_job(&job).as_ref().map(State::from_pod) {
                Some(State::Ended(exit)) => (exit.code != Some(0)).then_some(exit.reason),
                Some(state) => self.fault(state, begun),
                None => self.refusal(&job).await,
            };
            if let Some(fault) = fault {
                return Failure::by(Cause::Generator)(format!("k6-operator can't start the generators: {fault}"));
            }
            sleep(STARTER_PAUSE).await;
        }
    }

    async fn wait_until_ready(&self, index: u32, arrivals: &Arrivals, url: &str) -> Result<Placed, Failure> {
        let place = index as usize;
        let pod = self.pods.of_job(&self.names.job(index)).ok_or_else(|| self.failure(index, "its Pod was deleted"))?;
        if self.has_operator {
            // It starts k6 as soon as that is ready, so there is nothing to wait for.
            return Ok(Placed::from_pod(&pod));
        }
        let paused = self.paused(index)?;
        let begun = Instant::now();
        loop {
            match paused.is_ready().await {
                Ok(true) => break,
                Ok(false) | Err(_) if begun.elapsed() < MAX_SETUP => sleep(PAUSE).await,
                Ok(false) => return Err(self.failure(index, "did not create its virtual users in time")),
                Err(fault) => return Err(self.failure(index, &format!("does not answer on port {PORT}: {fault}"))),
            }
        }
        let ready = Instant::now();
        while !arrivals.has_pushed(place) {
            if ready.elapsed() > FIRST_PUSH {
                return Err(self.unreachable(index, url));
            }
            sleep(PAUSE).await;
        }
        Ok(Placed::from_pod(&pod))
    }

    /// Starts all at once. They were created at `created_ms`.
    pub async fn start(&self, clock: Clock, created_ms: i64) -> Result<Vec<Start>, Failure> {
        let starting = (0..self.count).map(|index| async move {
            let paused = self.paused(index)?;
            if self.has_operator {
                return self.wait_for_start(index, &paused, (clock, created_ms)).await;
            }
            let at_ms = clock.now_ms();
            paused.resume().await.map_err(|fault| self.failure(index, &fault))?;
            Ok(Start { at_ms, error_ms: clock.now_ms().saturating_sub(at_ms) })
        });
        tokio::select! {
            biased;
            failure = self.any_failed() => Err(failure),
            started = try_join_all(starting) => started,
            failure = self.starter_failed(), if self.has_operator => Err(failure),
        }
    }

    /// Waits until k6-operator has started it.
    async fn wait_for_start(
        &self,
        index: u32,
        paused: &Paused,
        (clock, created_ms): (Clock, i64),
    ) -> Result<Start, Failure> {
        let begun = Instant::now();
        let mut at_ms = created_ms;
        while begun.elapsed() < MAX_SETUP {
            let asked_ms = clock.now_ms();
            match paused.has_started().await {
                Ok(true) => return Ok(Start { at_ms, error_ms: clock.now_ms().saturating_sub(at_ms) }),
                Ok(false) => at_ms = asked_ms,
                Err(_) => {}
            }
            sleep(PAUSE / 2).await;
        }
        Err(self.failure(index, "was not started by k6-operator"))
    }
}
