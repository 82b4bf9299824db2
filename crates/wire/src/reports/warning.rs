//! What a reader of a report has to know before it believes the values. Pure.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::reports::validate::ShortNumber;

/// A remark on a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// Connections could not be opened: the load is not the one that was requested.
    ConnectionsFailed {
        /// How many were requested.
        requested: u64,
        /// How often one could not be opened.
        failed: u64,
        /// How many made the load, if that is known.
        open: Option<u64>,
    },
    /// No request had an expected response.
    AllFailed {
        /// How many there were.
        requests: u64,
    },
    /// No request had a response in time, so there is no latency.
    NoLatency,
    /// A time is negative: a clock went back. The statistic is unknown.
    NegativeTime {
        /// The statistic.
        statistic: String,
        /// Its value.
        ms: f64,
    },
    /// A time is longer than any test: a counter overflowed. The statistic is unknown.
    Overflow {
        /// The statistic.
        statistic: String,
        /// Its value.
        ms: f64,
    },
    /// The slowest requests took as long as the client waits: the real latencies are longer.
    Capped {
        /// The client's timeout.
        timeout_ms: f64,
    },
    /// The requested rate was not reached.
    RateMissed {
        /// Requests per second that were requested.
        requested: f64,
        /// Requests per second that were made.
        reached: f64,
    },
    /// The tool does not report the load: the requested rate, or the connections.
    LoadUnknown(String),
    /// The report ends before its end, or lacks a part.
    Incomplete(String),
    /// Anything else that one has to know.
    Note(String),
}

/// What a warning means for a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The values are what they say.
    Note,
    /// The values may not mean what they seem to mean.
    Suspect,
    /// The values must not be compared.
    Invalid,
}

impl Warning {
    /// Returns what it means for a comparison.
    pub fn severity(&self) -> Severity {
        match self {
            Self::AllFailed { .. } | Self::NoLatency => Severity::Invalid,
            Self::ConnectionsFailed { .. } | Self::RateMissed { .. } | Self::Capped { .. } | Self::Incomplete(_) => {
                Severity::Suspect
            }
            Self::NegativeTime { .. } | Self::Overflow { .. } | Self::LoadUnknown(_) | Self::Note(_) => Severity::Note,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectionsFailed { requested, failed, open: Some(open) } => write!(
                f,
                "{failed} of {requested} connections could not be opened: this is a load of {open} connections"
            ),
            Self::ConnectionsFailed { requested, failed, open: None } => write!(
                f,
                "a connection could not be opened {failed} times, with {requested} requested: how many made the load \
                 is unknown"
            ),
            Self::AllFailed { requests } => write!(f, "all {requests} requests failed"),
            Self::NoLatency => f.write_str("no response arrived in time: the latency is unknown"),
            Self::NegativeTime { statistic, ms } => {
                write!(f, "the {statistic} is {} ms, because a clock went back: it is unknown", ShortNumber(*ms))
            }
            Self::Overflow { statistic, ms } => {
                write!(f, "the {statistic} is {} ms, which no test can measure: it is unknown", ShortNumber(*ms))
            }
            Self::Capped { timeout_ms } => write!(
                f,
                "the slowest requests took {timeout_ms} ms, the client's timeout: the highest latencies are capped"
            ),
            Self::RateMissed { requested, reached } => {
                write!(f, "{requested} requests/s were requested, {reached:.0} were made: the load is another one")
            }
            Self::LoadUnknown(what) => write!(f, "the load is unknown: {what}"),
            Self::Incomplete(what) | Self::Note(what) => f.write_str(what),
        }
    }
}
