//! Synchronizes the participants of a distributed run: an agent reports that it is at a gate, and continues at the time
//! that the server sets for all.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use brewbench_wire::messages::Gate;
use brewbench_wire::now_ms;
use brewbench_wire::outcome::Cause;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::run::failure::Failure;

/// A participant that continues this long after the common time has not started together with the others.
const LATE_MS: i64 = 250;

/// The common time is soon, once all have arrived; the clock of a machine may have been set in between.
const EARLIEST_MS: i64 = 60_000;

/// A gate that has opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The gate.
    pub gate: Gate,
    /// When to continue, on this agent's clock; unix milliseconds.
    pub at_ms: i64,
    /// Base URL of the target.
    pub base_url: String,
}

/// Lets participants wait until all have arrived.
#[derive(Debug)]
pub enum Barrier {
    /// There is only one participant.
    Open,
    /// The two runs of a duet, on the same machine.
    Pair(Arc<tokio::sync::Barrier>),
    /// The server opens the gates.
    Shared(Gates),
}

impl Barrier {
    /// Whether there are no other participants.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    /// Reports that this agent is at a gate, without waiting.
    pub fn report(&self, gate: Gate) {
        if let Self::Shared(gates) = self {
            gates.report(gate);
        }
    }
}

/// The gates of one part of a run.
pub struct Gates {
    on_gate: Box<dyn Fn(Gate, Option<String>) + Send + Sync>,
    opened: watch::Receiver<Option<Opening>>,
}

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gates").field("opened", &*self.opened.borrow()).finish_non_exhaustive()
    }
}

impl Gates {
    /// `on_gate` reports to the server that this agent is at a gate, with the target's URL if it runs the target.
    pub fn new(
        on_gate: impl Fn(Gate, Option<String>) + Send + Sync + 'static,
        opened: watch::Receiver<Option<Opening>>,
    ) -> Self {
        Self { on_gate: Box::new(on_gate), opened }
    }

    /// Reports that this agent is at a gate, and waits for the common time to continue.
    pub async fn pass(&mut self, gate: Gate, base_url: Option<String>, longest: Duration) -> Result<Opening, Failure> {
        (self.on_gate)(gate, base_url);
        let is_open = |opened: &Option<Opening>| opened.as_ref().is_some_and(|opening| opening.gate == gate);
        let opening = match timeout(longest, self.opened.wait_for(is_open)).await {
            Ok(Ok(opened)) => opened.clone(),
            Ok(Err(_)) => None,
            Err(_) => {
                let seconds = longest.as_secs();
                let reason = format!("the other participants were not ready within {seconds} s");
                return Err(Failure { reason, cause: Cause::Other });
            }
        };
        let gone = || Failure::by(Cause::Other)("the agent is stopping".to_owned());
        let opening = opening.ok_or_else(gone)?;
        let early_ms = opening.at_ms.saturating_sub(now_ms());
        if early_ms > EARLIEST_MS {
            let reason = format!("the load shall start in {early_ms} ms, and the limit is {EARLIEST_MS} ms");
            return Err(Failure { reason, cause: Cause::Other });
        }
        if early_ms < -LATE_MS && gate == Gate::Measure {
            let reason = format!(
                "the load could not start simultaneously: this agent was notified {} ms late",
                early_ms.unsigned_abs()
            );
            return Err(Failure { reason, cause: Cause::Generator });
        }
        sleep(Duration::from_millis(early_ms.max(0).unsigned_abs())).await;
        Ok(opening)
    }

    /// Reports that this agent is at a gate, without waiting.
    pub fn report(&self, gate: Gate) {
        (self.on_gate)(gate, None);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn opening(gate: Gate, at_ms: i64) -> Opening {
        Opening { gate, at_ms, base_url: "http://10.0.0.5:1".to_owned() }
    }

    #[tokio::test]
    async fn a_participant_reports_its_gate_and_continues_at_the_common_time() {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let (open, opened) = watch::channel(None);
        let log = Arc::clone(&reported);
        let on_gate = move |gate, base_url| log.lock().expect("not poisoned").push((gate, base_url));
        let mut gates = Gates::new(on_gate, opened);
        // The gate that opened before is another one.
        open.send_replace(Some(opening(Gate::Load, 0)));
        let at_ms = now_ms() + 30;
        let passing = gates.pass(Gate::Measure, Some("http://10.0.0.5:1".to_owned()), LONG);
        let opening_it = async { open.send_replace(Some(opening(Gate::Measure, at_ms))) };
        let (passed, _) = tokio::join!(passing, opening_it);
        assert_eq!(passed.expect("open"), opening(Gate::Measure, at_ms));
        assert!(now_ms() >= at_ms);
        assert_eq!(*reported.lock().expect("not poisoned"), [(Gate::Measure, Some("http://10.0.0.5:1".to_owned()))]);
    }

    #[tokio::test]
    async fn a_late_participant_fails_at_the_measurement_only() {
        let (open, opened) = watch::channel(Some(opening(Gate::Measure, now_ms() - 10_000)));
        let mut gates = Gates::new(|_, _| (), opened);
        let failure = gates.pass(Gate::Measure, None, LONG).await.expect_err("late");
        assert!(failure.reason.starts_with("the load could not start simultaneously"), "{failure:?}");
        open.send_replace(Some(opening(Gate::End, now_ms() - 10_000)));
        assert!(gates.pass(Gate::End, None, LONG).await.is_ok(), "the end has no deadline");
        let waited = gates.pass(Gate::Measure, None, Duration::from_millis(1)).await.expect_err("a timeout");
        assert!(waited.reason.starts_with("the other participants were not ready"), "{waited:?}");
        drop(open);
        assert!(gates.pass(Gate::Load, None, LONG).await.is_err());
    }
}
