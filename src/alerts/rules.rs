//! Rules that raise and clear alerts. Pure: the observed state and the time are arguments.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::ids::RunId;

/// The largest threshold, s.
pub const MAX_THRESHOLD_S: u32 = 30 * 24 * 60 * 60;

/// Thresholds of alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// Alert when an agent has been away for this long, s.
    pub agent_away_s: u32,
    /// Alert when a run has been queued for this long and cannot start, s.
    pub queue_standstill_s: u32,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { agent_away_s: 5 * 60, queue_standstill_s: 15 * 60 }
    }
}

impl Thresholds {
    /// Checks the thresholds; an error begins with the field.
    pub fn checked(self) -> Result<Self, String> {
        let Self { agent_away_s, queue_standstill_s } = self;
        for (field, seconds) in [("agent_away_s", agent_away_s), ("queue_standstill_s", queue_standstill_s)] {
            if !(1..=MAX_THRESHOLD_S).contains(&seconds) {
                return Err(format!("{field}: must be from 1 to {MAX_THRESHOLD_S}"));
            }
        }
        Ok(self)
    }
}

/// The kind of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An agent is away.
    AgentDisconnected,
    /// Queued runs do not start.
    QueueStalled,
}

impl Kind {
    /// Returns the text stored in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentDisconnected => "agent.disconnected",
            Self::QueueStalled => "queue.stalled",
        }
    }
}

/// A raised alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// Its kind.
    pub kind: Kind,
    /// The agent; empty for the queue.
    pub subject: String,
    /// What is wrong.
    pub sentence: String,
    /// When it began, unix ms.
    pub since_ms: i64,
}

/// An agent that must stay connected: it has connected before and is not disabled, revoked or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedAgent {
    /// Its name.
    pub name: String,
    /// Whether it is connected.
    pub is_connected: bool,
    /// When it last connected or disconnected, unix ms.
    pub last_seen_at_ms: i64,
}

/// A queued run that cannot start for a reason other than busy agents or a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckRun {
    /// The run's id.
    pub run: RunId,
    /// The wait reason as a sentence.
    pub why: String,
}

/// The state observed at a time.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Unix ms.
    pub now_ms: i64,
    /// All agents that must stay connected.
    pub agents: Vec<WatchedAgent>,
    /// In queue order.
    pub stuck: Vec<StuckRun>,
}

/// A change of the raised alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new alert.
    Raise(Raised),
    /// The alert is over.
    Clear(Raised),
}

/// Evaluates the rules and remembers since when runs are stuck. A restart starts all times again.
#[derive(Clone, Debug)]
pub struct Evaluator {
    started_ms: i64,
    stuck_since: BTreeMap<RunId, i64>,
}

impl Evaluator {
    /// Creates an evaluator at the start of the server, unix ms.
    pub fn new(started_ms: i64) -> Self {
        Self { started_ms, stuck_since: BTreeMap::new() }
    }

    /// Evaluates the rules; returns the changes to the raised alerts.
    pub fn evaluate(&mut self, observed: &Observed, raised: &[Raised], rule: Thresholds) -> Vec<Change> {
        let mut changes = self.agents(observed, raised, rule.agent_away_s);
        changes.extend(self.queue(observed, raised, rule.queue_standstill_s));
        changes
    }

    fn agents(&self, observed: &Observed, raised: &[Raised], away_s: u32) -> Vec<Change> {
        let is_raised =
            |name: &str| raised.iter().any(|alert| alert.kind == Kind::AgentDisconnected && alert.subject == name);
        let mut changes = Vec::new();
        for alert in raised.iter().filter(|alert| alert.kind == Kind::AgentDisconnected) {
            let is_away = observed.agents.iter().any(|agent| agent.name == alert.subject && !agent.is_connected);
            if !is_away {
                changes.push(Change::Clear(alert.clone()));
            }
        }
        for agent in observed.agents.iter().filter(|agent| !agent.is_connected && !is_raised(&agent.name)) {
            let counted_from = agent.last_seen_at_ms.max(self.started_ms);
            if observed.now_ms - counted_from >= i64::from(away_s) * 1_000 {
                changes.push(Change::Raise(Raised {
                    kind: Kind::AgentDisconnected,
                    subject: agent.name.clone(),
                    sentence: format!("{} is disconnected", agent.name),
                    since_ms: agent.last_seen_at_ms,
                }));
            }
        }
        changes
    }

    fn queue(&mut self, observed: &Observed, raised: &[Raised], standstill_s: u32) -> Option<Change> {
        let before = std::mem::take(&mut self.stuck_since);
        for stuck in &observed.stuck {
            let since = before.get(&stuck.run).copied().unwrap_or(observed.now_ms);
            self.stuck_since.insert(stuck.run.clone(), since);
        }
        let limit_ms = i64::from(standstill_s) * 1_000;
        let since = |stuck: &StuckRun| self.stuck_since.get(&stuck.run).copied().unwrap_or(observed.now_ms);
        let too_long = observed.stuck.iter().find(|stuck| observed.now_ms - since(stuck) >= limit_ms);
        let known = raised.iter().find(|alert| alert.kind == Kind::QueueStalled);
        match (known, too_long) {
            (None, Some(stuck)) => Some(Change::Raise(Raised {
                kind: Kind::QueueStalled,
                subject: String::new(),
                sentence: format!("the queue is stalled: {}", stuck.why),
                since_ms: since(stuck),
            })),
            // Shortly after a start no run has waited for long, which does not mean that the queue moves.
            (Some(alert), None) if observed.stuck.is_empty() || observed.now_ms - self.started_ms >= limit_ms => {
                Some(Change::Clear(alert.clone()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Thresholds = Thresholds { agent_away_s: 300, queue_standstill_s: 900 };
    const START: i64 = 1_000_000;

    fn agent(name: &str, is_connected: bool) -> WatchedAgent {
        WatchedAgent { name: name.to_owned(), is_connected, last_seen_at_ms: 400_000 }
    }

    /// Returns the state this many seconds after the start.
    fn observed(after_s: i64, agents: &[WatchedAgent], stuck: &[&str]) -> Observed {
        let stuck =
            stuck.iter().map(|run| StuckRun { run: (*run).to_owned().into(), why: format!("no agent can run {run}") });
        Observed { now_ms: START + after_s * 1_000, agents: agents.to_vec(), stuck: stuck.collect() }
    }

    /// Evaluates one state after another; returns what was raised (`+`) and cleared (`-`) at which second.
    fn changes(states: &[(i64, &[WatchedAgent], &[&str])]) -> Vec<(i64, String)> {
        let (mut evaluator, mut raised, mut changes) = (Evaluator::new(START), Vec::new(), Vec::new());
        for (after_s, agents, stuck) in states {
            for change in evaluator.evaluate(&observed(*after_s, agents, stuck), &raised, RULE) {
                match change {
                    Change::Raise(alert) => {
                        changes.push((*after_s, format!("+{}", alert.sentence)));
                        raised.push(alert);
                    }
                    Change::Clear(alert) => {
                        changes.push((*after_s, format!("-{}", alert.sentence)));
                        raised.retain(|held| *held != alert);
                    }
                }
            }
        }
        changes
    }

    fn expected(changes: &[(i64, &str)]) -> Vec<(i64, String)> {
        changes.iter().map(|(at, text)| (*at, (*text).to_owned())).collect()
    }

    #[test]
    fn an_agent_alert_is_raised_once_and_cleared_once() {
        let (away, back) = ([agent("rack", false)], [agent("rack", true)]);
        let states: &[(i64, &[WatchedAgent], &[&str])] = &[
            (0, &away, &[]),
            (299, &away, &[]),
            (300, &away, &[]),
            (900, &away, &[]),
            (901, &back, &[]),
            (902, &back, &[]),
        ];
        assert_eq!(changes(states), expected(&[(300, "+rack is disconnected"), (901, "-rack is disconnected")]));
    }

    #[test]
    fn a_disabled_or_removed_agent_clears_its_alert() {
        let away = [agent("rack", false)];
        let states: &[(i64, &[WatchedAgent], &[&str])] = &[(300, &away, &[]), (400, &[], &[]), (9_000, &[], &[])];
        assert_eq!(changes(states), expected(&[(300, "+rack is disconnected"), (400, "-rack is disconnected")]));
    }

    #[test]
    fn a_restart_restarts_all_times_and_keeps_raised_alerts() {
        let raised = Raised {
            kind: Kind::AgentDisconnected,
            subject: "attic".to_owned(),
            sentence: "attic is disconnected".to_owned(),
            since_ms: 0,
        };
        let queue = Raised { kind: Kind::QueueStalled, subject: String::new(), ..raised.clone() };
        let both = [raised, queue];
        let mut evaluator = Evaluator::new(START);
        let away = [agent("attic", false), agent("rack", false)];
        assert_eq!(evaluator.evaluate(&observed(1, &away, &["a"]), &both, RULE), [], "nothing is raised or cleared");
        let later = evaluator.evaluate(&observed(300, &away, &["a"]), &both, RULE);
        let [Change::Raise(rack)] = later.as_slice() else { panic!("{later:?}") };
        assert_eq!((rack.subject.as_str(), rack.since_ms), ("rack", 400_000), "it was away before the start");
    }

    #[test]
    fn a_queue_alert_needs_one_run_that_is_stuck_for_the_whole_time() {
        let states: &[(i64, &[WatchedAgent], &[&str])] = &[
            (0, &[], &["a"]),
            (600, &[], &["b"]),
            (1_200, &[], &["c", "a"]),
            (2_099, &[], &["c", "a"]),
            (2_100, &[], &["b", "a"]),
            (2_200, &[], &["b", "a"]),
            (2_300, &[], &["b"]),
            (2_400, &[], &[]),
        ];
        let sentence = "the queue is stalled: no agent can run a";
        let (raised, cleared) = (format!("+{sentence}"), format!("-{sentence}"));
        assert_eq!(changes(states), [(2_100, raised), (2_300, cleared)]);
    }

    #[test]
    fn thresholds_are_from_a_second_to_a_month() {
        assert_eq!(Thresholds::default().checked(), Ok(Thresholds::default()));
        for (away, still, field) in
            [(0, 900, "agent_away_s"), (300, 0, "queue_standstill_s"), (300, MAX_THRESHOLD_S + 1, "queue_")]
        {
            let error =
                Thresholds { agent_away_s: away, queue_standstill_s: still }.checked().expect_err("out of range");
            assert!(error.starts_with(field), "{error}");
        }
    }
}
