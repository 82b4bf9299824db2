//! Where an agent that does a part of a run waits for the others: it says that it is at a gate, and goes on at the time
//! that the server names for all.

use std::fmt;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::run::failure::Failure;
use crate::wire::messages::Gate;
use crate::wire::now_ms;
use crate::wire::outcome::Cause;

/// Who goes on later than this after the time that was named for all does not begin together with the others.
const LATE_MS: i64 = 250;

/// A gate that has opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Which.
    pub gate: Gate,
    /// When to go on, by this agent's clock; unix milliseconds.
    pub at_ms: i64,
    /// Where the target serves.
    pub base_url: String,
}

/// What holds participants back until all are as far.
#[derive(Debug)]
pub enum Barrier {
    /// There is only one.
    Open,
    /// The server opens the gates.
    Shared(Gates),
}

impl Barrier {
    /// Whether there is nobody to wait for.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    /// Says that this agent is at a gate and has nothing to wait for.
    pub fn tell(&self, gate: Gate) {
        if let Self::Shared(gates) = self {
            gates.tell(gate);
        }
    }
}

/// The gates of one part of a run.
pub struct Gates {
    say: Box<dyn Fn(Gate, Option<String>) + Send + Sync>,
    opened: watch::Receiver<Option<Opening>>,
}

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gates").field("opened", &*self.opened.borrow()).finish_non_exhaustive()
    }
}

impl Gates {
    /// `say` tells the server that this agent is at a gate, and, if it runs the target, where that serves.
    pub fn new(
        say: impl Fn(Gate, Option<String>) + Send + Sync + 'static,
        opened: watch::Receiver<Option<Opening>>,
    ) -> Self {
        Self { say: Box::new(say), opened }
    }

    /// Says that this agent is at a gate, waits until it has opened and the time has come.
    pub async fn pass(&mut self, gate: Gate, base_url: Option<String>, longest: Duration) -> Result<Opening, Failure> {
        (self.say)(gate, base_url);
        let is_open = |opened: &Option<Opening>| opened.as_ref().is_some_and(|opening| opening.gate == gate);
        let opening = match timeout(longest, self.opened.wait_for(is_open)).await {
            Ok(Ok(opened)) => opened.clone(),
            Ok(Err(_)) => None,
            Err(_) => {
                let seconds = longest.as_secs();
                let reason = format!("the other agents were not as far within {seconds} s");
                return Err(Failure { reason, cause: Cause::Other });
            }
        };
        let gone = || Failure::by(Cause::Other)("the agent ends".to_owned());
        let opening = opening.ok_or_else(gone)?;
        let early_ms = opening.at_ms.saturating_sub(now_ms());
        if early_ms < -LATE_MS && gate == Gate::Measure {
            let reason = format!("the load could not begin together: this agent heard of it {} ms late", -early_ms);
            return Err(Failure { reason, cause: Cause::Generator });
        }
        sleep(Duration::from_millis(early_ms.max(0).unsigned_abs())).await;
        Ok(opening)
    }

    /// Says that this agent is at a gate and has nothing to wait for.
    pub fn tell(&self, gate: Gate) {
        (self.say)(gate, None);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn opening(gate: Gate, at_ms: i64) -> Opening {
        Opening { gate, at_ms, base_url: "http://10.0.0.5:1".to_owned() }
    }

    #[tokio::test]
    async fn who_is_at_a_gate_says_so_and_goes_on_at_the_time_that_is_named() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let (open, opened) = watch::channel(None);
        let saying = Arc::clone(&said);
        let say = move |gate, base_url| saying.lock().expect("whole").push((gate, base_url));
        let mut gates = Gates::new(say, opened);
        // What opened before is another gate.
        open.send_replace(Some(opening(Gate::Load, 0)));
        let at_ms = now_ms() + 30;
        let passing = gates.pass(Gate::Measure, Some("http://10.0.0.5:1".to_owned()), LONG);
        let opening_it = async { open.send_replace(Some(opening(Gate::Measure, at_ms))) };
        let (passed, _) = tokio::join!(passing, opening_it);
        assert_eq!(passed.expect("open"), opening(Gate::Measure, at_ms));
        assert!(now_ms() >= at_ms);
        assert_eq!(*said.lock().expect("whole"), [(Gate::Measure, Some("http://10.0.0.5:1".to_owned()))]);
    }

    #[tokio::test]
    async fn who_hears_too_late_of_a_measurement_has_not_begun_with_the_others() {
        let (open, opened) = watch::channel(Some(opening(Gate::Measure, now_ms() - 10_000)));
        let mut gates = Gates::new(|_, _| (), opened);
        let failure = gates.pass(Gate::Measure, None, LONG).await.expect_err("late");
        assert!(failure.reason.starts_with("the load could not begin together"), "{failure:?}");
        open.send_replace(Some(opening(Gate::End, now_ms() - 10_000)));
        assert!(gates.pass(Gate::End, None, LONG).await.is_ok(), "at its end nobody is late");
        let waited = gates.pass(Gate::Measure, None, Duration::from_millis(1)).await.expect_err("nobody came");
        assert!(waited.reason.starts_with("the other agents were not as far"), "{waited:?}");
        drop(open);
        assert!(gates.pass(Gate::Load, None, LONG).await.is_err());
    }
}
