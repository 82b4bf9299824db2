//! From when on something is an alert, and when it is none any more. Pure: what is there and the time come from outside.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::ids::RunId;

/// The longest time that can be asked for, s.
pub const MOST_S: u32 = 30 * 24 * 60 * 60;

/// From when on something is an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// How long an agent may be away, s.
    pub agent_away_s: u32,
    /// How long runs may wait that nobody begins, s.
    pub queue_standstill_s: u32,
}

impl Default for Rule {
    fn default() -> Self {
        Self { agent_away_s: 5 * 60, queue_standstill_s: 15 * 60 }
    }
}

impl Rule {
    /// Itself, if it makes sense; else what is wrong, the field first.
    pub fn checked(self) -> Result<Self, String> {
        let Self { agent_away_s, queue_standstill_s } = self;
        for (field, seconds) in [("agent_away_s", agent_away_s), ("queue_standstill_s", queue_standstill_s)] {
            if !(1..=MOST_S).contains(&seconds) {
                return Err(format!("{field}: from 1 to {MOST_S}"));
            }
        }
        Ok(self)
    }
}

/// What an alert is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An agent is away.
    AgentAway,
    /// Runs wait, and nobody begins them.
    QueueStandstill,
}

impl Kind {
    /// The word for columns.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentAway => "agent.away",
            Self::QueueStandstill => "queue.standstill",
        }
    }
}

/// Something that somebody should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// What it is about.
    pub kind: Kind,
    /// The agent; empty for the queue.
    pub subject: String,
    /// What is wrong.
    pub sentence: String,
    /// When it began, unix ms.
    pub since_ms: i64,
}

/// An agent that is missed while it is away: nobody has disabled, revoked or forgotten it, and it was there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// Its name.
    pub name: String,
    /// Whether it is connected.
    pub is_connected: bool,
    /// When it came or went last, unix ms.
    pub last_seen_at_ms: i64,
}

/// A run that waits although nobody works on something that comes first: the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The run's id.
    pub run: RunId,
    /// What it waits for, in a sentence.
    pub why: String,
}

/// What is there at a time.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Unix ms.
    pub now_ms: i64,
    /// All agents that would be missed.
    pub agents: Vec<Missed>,
    /// In the order of the queue.
    pub stuck: Vec<Stuck>,
}

/// What is to be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// There is something new.
    Raise(Raised),
    /// It is over.
    Clear(Raised),
}

/// What has to be remembered between two looks. A server that starts anew begins to count anew: it was away itself.
#[derive(Clone, Debug)]
pub struct Memory {
    started_ms: i64,
    stuck_since: BTreeMap<RunId, i64>,
}

impl Memory {
    /// From a time on, unix ms.
    pub fn from(started_ms: i64) -> Self {
        Self { started_ms, stuck_since: BTreeMap::new() }
    }

    /// Looks at what is there; says what is to be changed in what was raised before.
    pub fn look(&mut self, seen: &Seen, raised: &[Raised], rule: Rule) -> Vec<Change> {
        let mut changes = self.agents(seen, raised, rule.agent_away_s);
        changes.extend(self.queue(seen, raised, rule.queue_standstill_s));
        changes
    }

    fn agents(&self, seen: &Seen, raised: &[Raised], away_s: u32) -> Vec<Change> {
        let of = |name: &str| raised.iter().find(|alert| alert.kind == Kind::AgentAway && alert.subject == name);
        let mut changes = Vec::new();
        for alert in raised.iter().filter(|alert| alert.kind == Kind::AgentAway) {
            let is_away = seen.agents.iter().any(|agent| agent.name == alert.subject && !agent.is_connected);
            if !is_away {
                changes.push(Change::Clear(alert.clone()));
            }
        }
        for agent in seen.agents.iter().filter(|agent| !agent.is_connected && of(&agent.name).is_none()) {
            let counted_from = agent.last_seen_at_ms.max(self.started_ms);
            if seen.now_ms - counted_from >= i64::from(away_s) * 1_000 {
                changes.push(Change::Raise(Raised {
                    kind: Kind::AgentAway,
                    subject: agent.name.clone(),
                    sentence: format!("{} is away", agent.name),
                    since_ms: agent.last_seen_at_ms,
                }));
            }
        }
        changes
    }

    fn queue(&mut self, seen: &Seen, raised: &[Raised], standstill_s: u32) -> Option<Change> {
        let before = std::mem::take(&mut self.stuck_since);
        for stuck in &seen.stuck {
            let since = before.get(&stuck.run).copied().unwrap_or(seen.now_ms);
            self.stuck_since.insert(stuck.run.clone(), since);
        }
        let limit_ms = i64::from(standstill_s) * 1_000;
        let since = |stuck: &Stuck| self.stuck_since.get(&stuck.run).copied().unwrap_or(seen.now_ms);
        let too_long = seen.stuck.iter().find(|stuck| seen.now_ms - since(stuck) >= limit_ms);
        let known = raised.iter().find(|alert| alert.kind == Kind::QueueStandstill);
        match (known, too_long) {
            (None, Some(stuck)) => Some(Change::Raise(Raised {
                kind: Kind::QueueStandstill,
                subject: String::new(),
                sentence: format!("the queue stands still: {}", stuck.why),
                since_ms: since(stuck),
            })),
            // After a start nothing has waited for long yet; that is no sign that it goes on.
            (Some(alert), None) if seen.stuck.is_empty() || seen.now_ms - self.started_ms >= limit_ms => {
                Some(Change::Clear(alert.clone()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { agent_away_s: 300, queue_standstill_s: 900 };
    const START: i64 = 1_000_000;

    fn agent(name: &str, is_connected: bool) -> Missed {
        Missed { name: name.to_owned(), is_connected, last_seen_at_ms: 400_000 }
    }

    /// So many seconds after the start.
    fn seen(after_s: i64, agents: &[Missed], stuck: &[&str]) -> Seen {
        let stuck =
            stuck.iter().map(|run| Stuck { run: (*run).to_owned().into(), why: format!("nobody can do {run}") });
        Seen { now_ms: START + after_s * 1_000, agents: agents.to_vec(), stuck: stuck.collect() }
    }

    /// Looks once after the other, as the task does; gives what was raised (`+`) and cleared (`-`) at which second.
    fn story(looks: &[(i64, &[Missed], &[&str])]) -> Vec<(i64, String)> {
        let (mut memory, mut raised, mut told) = (Memory::from(START), Vec::new(), Vec::new());
        for (after_s, agents, stuck) in looks {
            for change in memory.look(&seen(*after_s, agents, stuck), &raised, RULE) {
                match change {
                    Change::Raise(alert) => {
                        told.push((*after_s, format!("+{}", alert.sentence)));
                        raised.push(alert);
                    }
                    Change::Clear(alert) => {
                        told.push((*after_s, format!("-{}", alert.sentence)));
                        raised.retain(|held| *held != alert);
                    }
                }
            }
        }
        told
    }

    fn told(told: &[(i64, &str)]) -> Vec<(i64, String)> {
        told.iter().map(|(at, text)| (*at, (*text).to_owned())).collect()
    }

    #[test]
    fn an_agent_that_is_away_too_long_is_told_once_and_once_more_when_it_is_back() {
        let (away, back) = ([agent("rack", false)], [agent("rack", true)]);
        let looks: &[(i64, &[Missed], &[&str])] = &[
            (0, &away, &[]),
            (299, &away, &[]),
            (300, &away, &[]),
            (900, &away, &[]),
            (901, &back, &[]),
            (902, &back, &[]),
        ];
        assert_eq!(story(looks), told(&[(300, "+rack is away"), (901, "-rack is away")]));
    }

    #[test]
    fn nobody_misses_who_was_disabled_or_forgotten_meanwhile() {
        let away = [agent("rack", false)];
        let looks: &[(i64, &[Missed], &[&str])] = &[(300, &away, &[]), (400, &[], &[]), (9_000, &[], &[])];
        assert_eq!(story(looks), told(&[(300, "+rack is away"), (400, "-rack is away")]));
    }

    #[test]
    fn after_a_start_everybody_has_the_whole_time_again_and_what_was_raised_stays() {
        let raised = Raised {
            kind: Kind::AgentAway,
            subject: "attic".to_owned(),
            sentence: "attic is away".to_owned(),
            since_ms: 0,
        };
        let queue = Raised { kind: Kind::QueueStandstill, subject: String::new(), ..raised.clone() };
        let both = [raised, queue];
        let mut memory = Memory::from(START);
        let away = [agent("attic", false), agent("rack", false)];
        assert_eq!(memory.look(&seen(1, &away, &["a"]), &both, RULE), [], "no storm, and nothing is over");
        let later = memory.look(&seen(300, &away, &["a"]), &both, RULE);
        let [Change::Raise(rack)] = later.as_slice() else { panic!("{later:?}") };
        assert_eq!((rack.subject.as_str(), rack.since_ms), ("rack", 400_000), "it has been away for longer than that");
    }

    #[test]
    fn a_queue_stands_still_once_a_run_has_been_stuck_for_so_long_and_not_when_runs_take_turns() {
        let looks: &[(i64, &[Missed], &[&str])] = &[
            (0, &[], &["a"]),
            (600, &[], &["b"]),
            (1_200, &[], &["c", "a"]),
            (2_099, &[], &["c", "a"]),
            (2_100, &[], &["b", "a"]),
            (2_200, &[], &["b", "a"]),
            (2_300, &[], &["b"]),
            (2_400, &[], &[]),
        ];
        let expected =
            [(2_100, "+the queue stands still: nobody can do a"), (2_300, "-the queue stands still: nobody can do a")];
        assert_eq!(story(looks), told(&expected));
    }

    #[test]
    fn a_rule_is_in_whole_seconds_of_a_month_at_most() {
        assert_eq!(Rule::default().checked(), Ok(Rule::default()));
        for (away, still, field) in
            [(0, 900, "agent_away_s"), (300, 0, "queue_standstill_s"), (300, MOST_S + 1, "queue_")]
        {
            let told = Rule { agent_away_s: away, queue_standstill_s: still }.checked().expect_err("nonsense");
            assert!(told.starts_with(field), "{told}");
        }
    }
}
