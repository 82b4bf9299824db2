//! What an agent observed about a run besides its summary, as stored. Pure.

use std::collections::BTreeMap;

use brewbench_wire::{
    load_record::Messages,
    outcome::{Conditions, Cores, Observed, Outcome},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::results::generator_record::GeneratorRecord;

/// What an agent observed about a run besides its summary; stored as one blob.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// The target's last output.
    pub target_log: String,
    /// The load generator's last output; in a distributed run each generator has its own.
    #[serde(alias = "k6_log")]
    pub generator_log: String,
    /// What the sandbox counted.
    pub observed: Option<Observed>,
    /// Processors of target and load generator.
    pub cores: Cores,
    /// Facts about the machine.
    pub environment: BTreeMap<String, String>,
    /// Conditions of the measurement.
    #[serde(default)]
    pub conditions: Conditions,
    /// Responses that the script did not expect, such as `404 (GET /hash)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<Messages>,
    /// Generators of a distributed run, in the order of their segments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorRecord>,
    /// The script's thresholds, evaluated for the load of all generators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<WholeThreshold>,
    /// Why the target's agent failed, if another agent had already ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "said_later")]
    pub reported_later: Option<String>,
    /// Why a profile of the target is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profile_faults: Vec<String>,
}

impl Evidence {
    /// Returns the evidence of one agent, without that of other participants.
    pub(crate) fn from_outcome(outcome: &Outcome) -> Self {
        Self {
            target_log: outcome.target_log.clone(),
            generator_log: outcome.generator_log.clone(),
            observed: outcome.observed,
            cores: outcome.cores.clone(),
            environment: outcome.environment.clone(),
            conditions: outcome.conditions.clone().checked(),
            failures: outcome.work.clone().checked().failures,
            generators: Vec::new(),
            thresholds: Vec::new(),
            reported_later: None,
            profile_faults: profile_faults(outcome),
        }
    }
}

/// The most sentences about missing profiles, and characters of each; an agent sends far less.
const MAX_FAULTS: usize = 10;
const MAX_FAULT: usize = 1_000;

fn profile_faults(outcome: &Outcome) -> Vec<String> {
    let reported = outcome.profiled.iter().flat_map(|profiled| &profiled.faults);
    reported.take(MAX_FAULTS).map(|fault| fault.chars().take(MAX_FAULT).collect()).collect()
}

/// A threshold of the script in a distributed run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WholeThreshold {
    /// Its metric.
    pub metric: String,
    /// E.g. `p(95)<500`.
    pub expression: String,
    /// Whether the run as a whole passed it; null if that is unknown.
    pub passed: Option<bool>,
    /// How that was determined, or why it is unknown.
    pub basis: Basis,
    /// Whether each generator's part passed it, as its k6 reports, in the order of their segments; null if its k6 does
    /// not report it.
    pub own: Vec<Option<bool>>,
}

/// How it was determined whether a threshold passed, or why that is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// From metrics that add up exactly.
    Added,
    /// From the merged histograms.
    Histogram,
    /// All parts agree.
    Unanimous,
    /// Unknown: the limit is within the histogram bucket of the percentile.
    WithinBucket,
    /// Unknown: the metric can't be merged, and the parts disagree.
    Parts,
    /// Unknown: there were no values.
    Nothing,
    /// Unknown: the expression is not supported.
    Unread,
}

impl Basis {
    /// Describes the basis; shown after the result.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Added => "from the summed metrics",
            Self::Histogram => "from the merged histograms",
            Self::Unanimous => "all generators agree",
            Self::WithinBucket => "the limit is within the histogram bucket of the percentile",
            Self::Parts => "the metric can’t be merged, and the generators disagree",
            Self::Nothing => "no data",
            Self::Unread => "the expression is not supported",
        }
    }
}

#[cfg(test)]
mod tests {
    use brewbench_wire::{
        counters::Counters,
        outcome::{CoreUse, IdleWaitResult, NetworkUse, Placement},
    };
    use serde_json::json;

    use super::*;

    /// One stored sample of each shape that a version wrote. Add the newest before it changes.
    #[test]
    fn evidence_of_every_earlier_version_is_read() {
        let read = |stored: serde_json::Value| {
            let read: Evidence = serde_json::from_value(stored).expect("evidence");
            let again = serde_json::to_value(&read).expect("JSON");
            assert_eq!(
                again,
                serde_json::to_value(serde_json::from_value::<Evidence>(again.clone()).expect("again")).expect("JSON")
            );
            read
        };
        let mut stored = json!({
            "target_log": "up", "k6_log": "done", "cores": {"target": [0], "generator": [1]}, "environment": {"cores": "2"},
            "observed": {"cpu_us": 5, "throttled_us": null, "peak_memory_bytes": 7, "oom_kills": 0},
        });
        let first = read(stored.clone());
        assert_eq!((first.generator_log.as_str(), first.conditions), ("done", Conditions::default()));
        assert_eq!(first.observed.and_then(|observed| observed.cpu_us), Some(5));

        stored["conditions"] = json!({
            "startup_ms": 1.5, "idle_memory_bytes": 9, "clock_jump_ms": 0, "processes": 1, "processes_gone": 0,
            "ground": {"waited_ms": 20, "busy_cores": 0.1, "limit_cores": 0.2, "quiet": true}, "response_change": "",
        });
        let idle_wait = IdleWaitResult { waited_ms: 20, busy_cores: 0.1, limit_cores: 0.2, idle: true };
        assert_eq!(read(stored.clone()).conditions.idle_wait, Some(idle_wait));

        // The server's own types, with absent and with null fields.
        stored["conditions"] = json!({
            "startup_ms": 1.5, "round_trip_ms": null, "emulated": null, "idle_memory_bytes": null,
            "idle_wait": {"waited_ms": 20, "busy_cores": 0.1, "limit_cores": 0.2, "idle": true}, "placement": "sibling_threads",
            "core_use": {"cores": 2, "elapsed_us": 10, "busy_us": 9, "target_us": 5, "generator_us": 3},
            "network": {"interface": "eth0", "speed_bits": null, "peak_bits": 4, "segments": 3, "retransmitted": 1},
            "counters": {"page_faults": 3, "missing": ["no perf"]}, "generator_quota": 1.5, "script_may_wait": false,
        });
        let conditions = read(stored.clone()).conditions;
        let counters = Counters { page_faults: Some(3), missing: vec!["no perf".to_owned()], ..Counters::default() };
        let core_use = CoreUse {
            cores: 2,
            elapsed_us: 10,
            busy_us: 9,
            target_us: 5,
            generator_us: 3,
            target_waited_us: None,
            generator_waited_us: None,
        };
        let interface = Some("eth0".to_owned());
        let network =
            NetworkUse { interface, speed_bits: None, peak_bits: Some(4), segments: Some(3), retransmitted: Some(1) };
        let expected = Conditions {
            startup_ms: Some(1.5),
            idle_wait: Some(idle_wait),
            placement: Some(Placement::SiblingThreads),
            core_use: Some(core_use),
            network: Some(network),
            counters: Some(counters),
            generator_quota: Some(1.5),
            script_may_wait: Some(false),
            ..Conditions::default()
        };
        assert_eq!(conditions, expected);

        let record =
            json!({"agent": "rack", "k6_version": "1.8.1", "k6_log": "up", "conditions": stored["conditions"]});
        stored["generators"] = json!([record]);
        stored["said_later"] = json!("it died");
        let distributed = read(stored);
        assert_eq!(
            (&distributed.generators[0].conditions, distributed.reported_later.as_deref()),
            (&expected, Some("it died"))
        );
    }
}
