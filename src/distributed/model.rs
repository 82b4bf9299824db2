//! What one participant of a distributed run has delivered. Pure.

use brewbench_agent::wire::outcome::Outcome;

use crate::results::{blob, clock::Clock, store::parts::PartRow};

/// What one agent has delivered.
#[derive(Clone, Debug)]
pub struct Part {
    /// Whose it is.
    pub agent: String,
    /// Nothing if it was never asked.
    pub clock: Option<Clock>,
    /// Summary and series included.
    pub outcome: Outcome,
}

impl Part {
    /// A part as it was stored; none if nothing came of it yet.
    pub fn stored(row: PartRow) -> Result<Option<Self>, Unreadable> {
        let clock = clock(&row);
        let PartRow { agent, outcome, summary, series, .. } = row;
        let Some(outcome) = outcome else { return Ok(None) };
        let mut outcome: Outcome = serde_json::from_slice(&blob::unpack(&outcome)?)?;
        outcome.summary = match summary {
            Some(body) => Some(String::from_utf8(blob::unpack(&body)?)?),
            None => None,
        };
        outcome.series = series.map(brewbench_agent::wire::series::Packed::from_bytes);
        Ok(Some(Self { agent, clock, outcome }))
    }
}

/// What is known of the clock of a part's agent.
pub fn clock(row: &PartRow) -> Option<Clock> {
    let (offset_ms, error_ms) = (row.clock_offset_ms?, row.clock_error_ms.unwrap_or(0.0));
    Some(Clock { offset_ms, error_ms })
}

/// A part that can't be read any more, though this server has written it.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It can't be unpacked.
    #[error("a part can't be unpacked: {0}")]
    Packed(#[from] std::io::Error),
    /// It is no outcome.
    #[error("a part is no outcome: {0}")]
    Json(#[from] serde_json::Error),
    /// Its summary is no text.
    #[error("a part's summary is no text: {0}")]
    Text(#[from] std::string::FromUtf8Error),
}
