//! The part of a distributed run that one participant has delivered. Pure.

use brewbench_wire::outcome::{Conditions, Cores, Ended, Generator, Outcome};

use crate::results::{blob, clock::Clock, store::parts::PartRow};

/// The part of one agent.
#[derive(Clone, Debug)]
pub struct AgentPart {
    /// The name of the agent.
    pub agent: String,
    /// The clock of the agent; none if it was never probed.
    pub clock: Option<Clock>,
    /// The outcome, including summary and series.
    pub outcome: Outcome,
}

impl AgentPart {
    /// Returns the parts of a run whose agent had the load generated in its cluster: its own, and one for each
    /// generator. All times are by the agent's clock.
    pub fn of_cluster(agent: &str, outcome: &Outcome) -> (Self, Vec<Self>) {
        let part = |generator: &Generator| {
            let Generator { name, summary, series, work, log, engine, environment, start_error_ms } = generator.clone();
            let clock = Clock { offset_ms: 0.0, error_ms: start_error_ms };
            let outcome = Outcome {
                ended: Ended::Finished,
                summary: Some(summary),
                series: Some(series),
                work,
                generator_log: log,
                engine,
                environment,
                cores: Cores::default(),
                conditions: Conditions { script_may_wait: outcome.conditions.script_may_wait, ..Conditions::default() },
                target_log: String::new(),
                observed: None,
                generators: Vec::new(),
                profiled: None,
                ..outcome.clone()
            };
            Self { agent: name, clock: Some(clock), outcome }
        };
        let host = Self {
            agent: agent.to_owned(),
            clock: Some(Clock { offset_ms: 0.0, error_ms: 0.0 }),
            outcome: Outcome { generators: Vec::new(), ..outcome.clone() },
        };
        (host, outcome.generators.iter().map(part).collect())
    }

    /// Decodes a stored part; none if it is not delivered yet.
    pub fn stored(row: PartRow) -> Result<Option<Self>, Unreadable> {
        let clock = clock(&row);
        let PartRow { agent, outcome, summary, series, .. } = row;
        let Some(outcome) = outcome else { return Ok(None) };
        let mut outcome: Outcome = serde_json::from_slice(&blob::unpack(&outcome)?)?;
        outcome.summary = match summary {
            Some(body) => Some(String::from_utf8(blob::unpack(&body)?)?),
            None => None,
        };
        outcome.series = series.map(brewbench_wire::series::Packed::from_bytes);
        Ok(Some(Self { agent, clock, outcome }))
    }
}

/// Returns the clock of a part's agent.
pub fn clock(row: &PartRow) -> Option<Clock> {
    let (offset_ms, error_ms) = (row.clock_offset_ms?, row.clock_error_ms.unwrap_or(0.0));
    Some(Clock { offset_ms, error_ms })
}

/// A stored part that can't be decoded.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The part can't be unpacked.
    #[error("failed to unpack a stored part: {0}")]
    Packed(#[from] std::io::Error),
    /// The part is not a valid outcome.
    #[error("a stored part is not a valid outcome: {0}")]
    Json(#[from] serde_json::Error),
    /// The summary is not valid UTF-8.
    #[error("the summary of a stored part is not valid UTF-8: {0}")]
    Text(#[from] std::string::FromUtf8Error),
}
